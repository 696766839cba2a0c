"""ResourceQuotas of teams: a job that is more than they give, and jobs that are more together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.simulation.fleets import GPU, fleet_data

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.jobs.workload_file import read_workload_file


def fleet(quota: dict[str, Any], **team: Any) -> FleetSpec:
    data = fleet_data()
    data["teams"][0] |= {"resourceQuota": quota, **team}
    return parse_fleet(data)


def job(name: str = "j", pods: int = 2, namespace: str = "team-a", **resources: dict[str, Any]) -> Document:
    given = {"requests": {"cpu": 1, GPU: 1}, "limits": {GPU: 1}, **resources}
    container = {"name": "main", "image": "busybox", "resources": given}
    data = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    return Document("j.yaml:1", data)


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        ({"requests.nvidia.com/gpu": 1}, "has 2 requests.nvidia.com/gpu, and resourceQuota[requests.nvidia.com/gpu] of "
         "team team-a gives 1 requests.nvidia.com/gpu: Kueue admits it, and not all of it is made; request less"),
        ({"requests.nvidia.com/gpu": 2, "pods": 2, "count/pods": 2, "count/jobs.batch": 1, "cpu": 2}, ""),
        ({"pods": 1}, "has 2 pods, and resourceQuota[pods]"),
        ({"count/jobs.batch": 0}, "has 1 count/jobs.batch, and"),
        ({"cpu": "1500m"}, "has 2 cpu, and resourceQuota[cpu] of team team-a gives 1500m cpu"),
        ({"limits.cpu": 9}, "container main has no limits.cpu, and resourceQuota[limits.cpu] of team team-a refuses"),
        ({"requests.memory": "9Gi"}, "container main has no requests.memory, and"),
    ],
)  # fmt: skip
def test_a_job_that_is_more_than_its_namespace_takes(quota: dict[str, Any], said: str) -> None:
    result = list(map(str, check_manifests(fleet(quota), [job()]).problems))
    assert len(result) == bool(said)
    assert all(said in item for item in result)


def test_what_a_limit_range_says_is_said() -> None:
    limited = fleet({"limits.cpu": 9}, limitRange={"default": {"cpu": "2"}})
    assert check_manifests(limited, [job()]).problems == []


def test_what_is_more_together_is_not_simulated_and_that_is_said() -> None:
    entry = {"name": "e", "namespace": "team-a", "queue": "gpu", "count": 3, "pods": 2, "runSeconds": 10}
    file = read_workload_file(json.dumps({"jobs": [{**entry, "requests": {"cpu": 1, GPU: 1}}]}), "w")

    def warned(quota: dict[str, Any]) -> list[str]:
        return list(map(str, prepare_fleet(fleet(quota), file, Delays(), manifests=[job()]).warnings))

    assert warned({"count/jobs.batch": 4, "pods": 8, "requests.nvidia.com/gpu": 8}) == []
    [result] = warned({"count/jobs.batch": 3, "requests.nvidia.com/gpu": 7})
    assert result == (
        "teams[team-a].resourceQuota: all jobs in namespace team-a together have 4 count/jobs.batch (of 3 "
        "count/jobs.batch), 8 requests.nvidia.com/gpu (of 7 requests.nvidia.com/gpu), and what its ResourceQuota "
        "refuses while others are there, ended jobs included, is not simulated; let ended jobs be deleted by "
        "ttlSecondsAfterFinished, or raise it"
    )
