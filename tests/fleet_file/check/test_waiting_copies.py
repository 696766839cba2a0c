"""Preemption of copies that wait for capacity on a worker: seen on real Kueue 0.19.2 to hold quota for ever."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, fleet_data, problems

WITHIN = (
    "warning: clusterQueues[vision].preemption.withinClusterQueue: LowerPriority can preempt a job that waits for its "
    "ProvisioningRequest on a worker, and Kueue 0.19 then keeps that job's quota; set it to Never; jobs of "
    "higher priority still go first"
)
RECLAIM = (
    "warning: clusterQueues[language].preemption.reclaimWithinCohort: Any can preempt a job of queue vision that waits "
    "for its ProvisioningRequest on a worker, and Kueue 0.19 then keeps that job's quota; set it to Never; "
    "jobs of higher priority still go first"
)
LOWER = {"withinClusterQueue": "LowerPriority"}
ANY = {"reclaimWithinCohort": "Any"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"clusterQueues/0/preemption": LOWER}, [WITHIN]),
        ({"clusterQueues/1/preemption": ANY}, [RECLAIM]),
        ({"clusterQueues/0/preemption": LOWER, "clusterQueues/1/preemption": ANY}, [WITHIN, RECLAIM]),
        (
            {
                "cohorts": [{"name": "research"}, {"name": "child", "parentName": "research"}],
                "clusterQueues/1/cohortName": "child",
                "clusterQueues/1/preemption": ANY,
            },
            [RECLAIM],
        ),
    ],
)
def test_a_preemption_that_never_ends_is_named(change: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), change)) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"clusterQueues/1/preemption": LOWER},
        {"clusterQueues/1/preemption": ANY, "clusterQueues/1/cohortName": "elsewhere"},
        {"clusterQueues/1/preemption": ANY, "clusterQueues/1/clusters": ["worker-a"]},
        {"clusterQueues/0/preemption": LOWER, "clusterQueues/0/admissionChecksStrategy": REMOVED},
    ],
)
def test_other_preemption_is_fine(change: dict[str, Any]) -> None:
    assert not [item for item in problems(changed(fleet_data(), change)) if "preemption" in item]
