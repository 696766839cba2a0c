"""Quotas that admit no job, or jobs whose pods no node holds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import FIRST_QUOTA, changed, fleet_data, group, problems, quota
from tests.fleet_file.pool_builders import pools_data

NOTHING = (
    "warning: clusterQueues[language].resourceGroups: the quota for nvidia.com/gpu is 0 in each flavor, and the queue "
    "can borrow none, so no job that requests it is ever admitted; write a nominalQuota, or a cohortName by which it "
    "can borrow"
)
QUOTA = FIRST_QUOTA.replace("clusterQueues/0", "clusterQueues/1")
ZERO = {f"{QUOTA}/nominalQuota": 0, "clusterQueues/1/cohortName": None}


def found(changes: dict[str, Any]) -> list[str]:
    return [text for text in problems(changed(fleet_data(), changes)) if "ever admitted" in text]


def test_a_queue_without_quota_that_borrows_nothing() -> None:
    assert found(ZERO) == [NOTHING]


@pytest.mark.parametrize(
    "more",
    [
        {"clusterQueues/1/stopPolicy": "Hold"},
        {f"{QUOTA}/perCluster": {"worker-b": {"nominalQuota": 2}}},
        {"clusterQueues/1/cohortName": "c", "clusterQueues/0/cohortName": "c"},
    ],
    ids=["it is stopped", "a cluster has some", "it borrows"],
)
def test_a_queue_that_has_some_somewhere(more: dict[str, Any]) -> None:
    assert found({**ZERO, **more}) == []


SHARED = {**ZERO, "clusterQueues/1/cohortName": "c", "clusterQueues/0/cohortName": "c"}
BELOW = changed(group(["nvidia.com/gpu"], borrowingLimit=0), {"flavors/0/resources/0/nominalQuota": 0})
BESIDE = changed(group(["nvidia.com/gpu"], lendingLimit=0), {"flavors/0/resources/0/nominalQuota": 0})


@pytest.mark.parametrize(
    ("more", "fix"),
    [
        ({f"{QUOTA}/borrowingLimit": 0}, "raise borrowingLimit, which is 0"),
        ({f"{FIRST_QUOTA}/lendingLimit": 0}, "raise lendingLimit of vision, which is 0"),
        (
            {f"{QUOTA}/borrowingLimit": 0, f"{FIRST_QUOTA}/lendingLimit": 0},
            "raise borrowingLimit and lendingLimit of vision, which are 0",
        ),
        (
            {f"{FIRST_QUOTA}/nominalQuota": 0},
            "write a nominalQuota, here or for the same flavor elsewhere in cohort c",
        ),
        (
            {
                "clusterQueues/1/cohortName": "below",
                "cohorts": [{"name": "c"}, {"name": "below", "parentName": "c", "resourceGroups": [BELOW]}],
            },
            "raise borrowingLimit of cohort below, which is 0",
        ),
        (
            {
                "clusterQueues/0/cohortName": "below",
                "cohorts": [{"name": "c"}, {"name": "below", "parentName": "c", "resourceGroups": [BESIDE]}],
            },
            "raise lendingLimit of cohort below, which is 0",
        ),
    ],
)
def test_a_queue_that_its_cohort_gives_nothing(more: dict[str, Any], fix: str) -> None:
    [text] = found({**SHARED, **more})
    assert text.startswith("warning: clusterQueues[language].resourceGroups: the quota for nvidia.com/gpu is 0")
    assert text.endswith(f"; {fix}")


MIXED = {"nodePools/1/machineType": "a3-highgpu-8g"}
TWO = "a pod gets 8 nvidia.com/gpu of a node of on-demand, and 2 of one of reserved: one that asks for more than that"


def mixed(changes: dict[str, Any]) -> list[str]:
    return [text for text in problems(changed(pools_data(), changes)) if "where it never starts" in text]


def test_nodes_of_two_sizes_in_one_queue() -> None:
    [text] = mixed(MIXED)
    assert text.startswith(f"warning: clusterQueues[gpu].resourceGroups[0].flavors: {TWO}")


def test_what_tells_nodes_of_one_kind_apart() -> None:
    [text] = mixed({"nodePools/1/machineType": "g2-standard-96"})
    assert text.endswith("or let such pods select cloud.google.com/gke-nodepool: on-demand")


def test_a_container_gets_one_of_the_shares_of_a_node() -> None:
    shared = {"sharing": {"strategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}}
    [text] = mixed({"nodePools/0/accelerator": shared})
    assert "a pod gets 2 nvidia.com/gpu of a node of on-demand, and 1 of one of reserved" in text


@pytest.mark.parametrize(
    ("machine", "sizes"),
    [("n2-standard-8", ("7910m", "31850m")), ("c2-standard-30", None)],
    ids=["a quarter", "nearly as large"],
)
def test_nodes_without_gpus(machine: str, sizes: tuple[str, str] | None) -> None:
    groups = [group(["cpu", "memory"], ["reserved", "on-demand"])]
    for quotas in groups[0]["flavors"]:
        quotas["resources"] = [quota("cpu", 40), quota("memory", "100Gi")]
    pools = {"nodePools/0/machineType": machine, "nodePools/1/machineType": "n2-standard-32"}
    said = mixed({**pools, "clusterQueues/0/resourceGroups": groups})
    assert [sizes is not None and all(size in text for size in sizes) for text in said] == [True] * (sizes is not None)


def test_kueue_sees_the_nodes_of_a_topology_and_the_last_flavor_is_tried_last() -> None:
    levels = [{"nodeLabel": "kubernetes.io/hostname"}]
    seen = {f"flavors/{number}/topologyName": "t" for number in range(6)}
    assert mixed({**MIXED, "topologies": [{"name": "t", "levels": levels}], **seen}) == []
    order = ["on-demand", "reserved"]
    assert mixed({**MIXED, "clusterQueues/0/resourceGroups": [group(["nvidia.com/gpu"], order)]}) == []


KINDS = {"nodePools/1/machineType": "a3-highgpu-8g"}


def of_manager(mode: str, changes: dict[str, Any]) -> list[str]:
    data = changed(pools_data(), changes)
    credentials = {"type": "ServiceAccountToken", "rotation": "a", "rotateBy": "2027-01-01"}
    manager = {"name": "manager", "role": "manager", "region": "us-central1", "mode": mode}
    data["clusters"] = [manager, {**data["clusters"][0], "role": "worker"}]
    return [text for text in problems({**data, "multiKueue": {"credentials": credentials}}) if "one of them" in text]


def test_a_queue_of_two_kinds_of_gpu_under_a_manager_on_autopilot() -> None:
    [text] = of_manager("Autopilot", KINDS)
    assert "manager runs Autopilot, which refuses a job for GPUs that selects no cloud.google.com" in text


@pytest.mark.parametrize(("mode", "changes"), [("Standard", KINDS), ("Autopilot", {})])
def test_one_kind_of_gpu_or_a_standard_manager(mode: str, changes: dict[str, Any]) -> None:
    assert of_manager(mode, changes) == []
