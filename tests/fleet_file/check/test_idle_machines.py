"""Machines that are paid for, and that no job can get."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, group, problems, quota, standalone_data
from tests.fleet_file.pool_builders import FLAVORS, pools_data

LARGER = (
    "warning: reservations[l4].count: {} machines, but its pools have at most 4 nodes, so that {} are paid for and "
)
QUOTA = f"{FLAVORS}/0/resources/0/nominalQuota"


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"reservations/0/count": 8}, "run nothing; write 4, as it counts machines and not GPUs"),
        (
            {"reservations/0/count": 6},
            "run nothing; write 4, let pools have more nodes, or share it with other projects",
        ),
    ],
    ids=["counted in GPUs", "too many machines"],
)
def test_a_reservation_that_is_larger_than_its_pools(changes: dict[str, Any], fix: str) -> None:
    count = changes["reservations/0/count"]
    assert problems(changed(pools_data(), changes)) == [LARGER.format(count, count - 4) + fix]


@pytest.mark.parametrize(
    "changes",
    [
        {"reservations/0/count": 5},
        {"reservations/0/count": 8, "reservations/0/sharedWith": ["123456789"]},
        {
            "reservations/0/count": 12,
            "flavors/+": {"name": "r", "nodeLabels": {"cloud.google.com/reservation-name": "l4"}},
        },
    ],
    ids=["a machine for upgrades", "others use it", "a flavor by its name"],
)
def test_what_others_may_use_is_not_idle(changes: dict[str, Any]) -> None:
    assert [text for text in problems(changed(pools_data(), changes)) if "are paid for" in text] == []


def test_reserved_gpus_without_quota() -> None:
    changes = {"nodePools/0/nodeCount": 8, "reservations/0/count": 8}
    assert problems(changed(pools_data(), changes)) == [
        "warning: flavors[reserved]: queues may use 4 nvidia.com/gpu of it on batch, but its reserved nodes hold 16, "
        "so that 12 are paid for and no job gets them; raise nominalQuota by 12, in a queue or its cohort"
    ]
    assert problems(changed(pools_data(), {**changes, QUOTA: 12})) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 1),
        ({"reservations/0/purpose": "backup"}, 0),
        ({f"{FLAVORS}/1/resources/0/nominalQuota": 0, f"{FLAVORS}/1/resources/1/nominalQuota": 0}, 1),
        ({"nodePools/1/machineType": "a2-highgpu-1g"}, 0),
    ],
    ids=["of one kind", "a backup", "some quota of its own", "of another kind"],
)
def test_reserved_machines_after_others_of_the_kind(changes: dict[str, Any], expected: int) -> None:
    data = pools_data()
    flavors = data["clusterQueues"][0]["resourceGroups"][0]["flavors"]
    flavors[:2] = [flavors[1], flavors[0]]
    said = [text for text in problems(changed(data, changes)) if "comes after" in text]
    wrong = (
        "comes after on-demand, so that jobs start nodes of on-demand on batch while reserved ones, which are paid "
        "for, run nothing; put it before on-demand"
    )
    assert said == [f"warning: clusterQueues[gpu].resourceGroups[0].flavors[reserved]: {wrong}"] * expected


@pytest.mark.parametrize(("cpus", "expected"), [(6, 1), (60, 0)], ids=["as many as nodes", "CPUs"])
def test_quota_of_cpus_that_is_a_number_of_nodes(cpus: int, expected: int) -> None:
    data = standalone_data()
    data["clusters"][0] |= {"mode": "Standard", "zones": ["us-east4-a"]}
    data["nodePools"] = [{"name": "wide", "machineType": "n2-standard-16", "nodeCount": 6}]
    data["flavors"] = [{"name": "wide", "nodePool": "wide"}]
    data["clusterQueues"][0] |= {"resourceGroups": [group(("cpu",), ("wide",))]}
    [quotas] = data["clusterQueues"][0]["resourceGroups"][0]["flavors"]
    quotas["resources"] = [quota("cpu", cpus)]
    result = [text for text in problems(data) if "not more than one of each of its 6 nodes" in text]
    assert len(result) == expected
