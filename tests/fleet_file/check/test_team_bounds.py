"""What bounds teams beside their queues."""

from __future__ import annotations

import pytest
from tests.fleet_file.builders import COVERED, FIRST_QUOTA, changed, fleet_data, problems

from small_fleets import one_pool_data

REGION = "europe-west4"


def test_jobs_of_a_team_are_stored_where_the_manager_is() -> None:
    data = changed(fleet_data(), {"clusters/0/region": "us-west1", "teams/0/allowedRegions": [REGION]})
    assert [text for text in problems(data) if "which stores its jobs" in text] == [
        "warning: teams[team-vision].allowedRegions: europe-west4, but manager, which stores its jobs with their "
        "names, commands and environment, is in us-west1; put the manager into one of these regions, or have nothing "
        "in jobs that has to stay there"
    ]
    data = changed(fleet_data(), {"teams/0/allowedRegions": [REGION]})
    assert [text for text in problems(data) if "which stores its jobs" in text] == []


@pytest.mark.parametrize(("gpus", "expected"), [(3, True), (1000, False)])
def test_a_resource_quota_below_what_kueue_admits(gpus: int, expected: bool) -> None:
    data = changed(fleet_data(), {"teams/0/resourceQuota": {"requests.nvidia.com/gpu": gpus}})
    result = [text for text in problems(data) if "while their pods are refused" in text]
    assert bool(result) is expected
    assert all(
        text.startswith("warning: teams[team-vision].resourceQuota[requests.nvidia.com/gpu]: 3,") for text in result
    )


@pytest.mark.parametrize("prefix", ["", "requests.", "limits."])
@pytest.mark.parametrize(("resource", "least"), [("cpu", "128"), ("memory", "512Gi"), ("ephemeral-storage", "800Gi")])
def test_a_resource_quota_of_what_every_pod_needs(prefix: str, resource: str, least: str) -> None:
    name = f"{prefix}{resource}"

    def warnings(limit: str, **changes: str) -> list[str]:
        data = changed(fleet_data(), {"teams/0/resourceQuota": {name: limit}, **changes})
        return [text for text in problems(data) if "while their pods are refused" in text]

    assert warnings("1") == [
        f"warning: teams[team-vision].resourceQuota[{name}]: 1, but Kueue admits jobs of the team with up to {least}, "
        f"which keep their quota while their pods are refused; write {least} or more, or give the team a queue with 1"
    ]
    assert warnings(least) == []
    number = COVERED.index(resource)
    assert warnings("1", **{f"{FIRST_QUOTA[:-1]}{number}/nominalQuota": "1000000000Gi"}) == []


@pytest.mark.parametrize(("name", "warned"), [("nvidia.com/gpus", True), ("example.com/fpga", False)])
def test_a_resource_quota_of_a_device_that_is_misspelt(name: str, warned: bool) -> None:
    data = changed(fleet_data(), {"teams/0/resourceQuota": {f"requests.{name}": 8}})
    assert [text for text in problems(data) if "limits no pod" in text] == [
        f"warning: teams[team-vision].resourceQuota: requests.{name} limits no pod; did you mean "
        "requests.nvidia.com/gpu?"
    ][: int(warned)]


@pytest.mark.parametrize("name", ["count/jobs.batch", "pods", "count/pods", "requests.cpu", "limits.memory"])
def test_a_resource_quota_under_which_no_job_runs(name: str) -> None:
    data = changed(fleet_data(), {"teams/0/resourceQuota": {name: 0}})
    assert [text for text in problems(data) if "is ever made" in text] == [
        f"warning: teams[team-vision].resourceQuota[{name}]: 0, so that no pod of a job that Kueue admits to the team "
        "is ever made, and it keeps its quota; write what its jobs need, or remove it"
    ]


def test_a_resource_quota_of_nothing_that_jobs_need() -> None:
    data = changed(fleet_data(), {"teams/0/resourceQuota": {"services.loadbalancers": 0, "count/cronjobs.batch": 0}})
    assert [text for text in problems(data) if "is ever made" in text] == []


@pytest.mark.parametrize(("pods", "warned"), [(1, True), (4, False)])
def test_a_resource_quota_of_fewer_pods_than_nodes(pods: int, warned: bool) -> None:
    data = changed(one_pool_data(), {"teams/0/resourceQuota": {"pods": pods}})
    result = [text for text in problems(data) if "pods beyond it are refused" in text]
    assert bool(result) is warned
