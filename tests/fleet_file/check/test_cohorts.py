"""The tree of cohorts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, fleet_data, problems, quota

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "cycle of two": (
        {"cohorts": [{"name": "research", "parentName": "all"}, {"name": "all", "parentName": "research"}]},
        [
            (
                "cohorts[research].parentName: the cohorts form a cycle, research -> all -> research, "
                "and Kueue admits nothing in that tree; remove one of these parents"
            )
        ],
    ),
    "own parent": (
        {"cohorts/0/parentName": "research"},
        [
            (
                "cohorts[research].parentName: the cohorts form a cycle, research -> research, and Kueue "
                "admits nothing in that tree; remove one of these parents"
            )
        ],
    ),
    "below a cycle": (
        {
            "cohorts": [
                {"name": "research", "parentName": "a"},
                {"name": "a", "parentName": "b"},
                {"name": "b", "parentName": "a"},
            ]
        },
        [
            (
                "cohorts[a].parentName: the cohorts form a cycle, a -> b -> a, and Kueue admits nothing "
                "in that tree; remove one of these parents"
            )
        ],
    ),
    "as much as its queues have": (
        {
            "cohorts/0/resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu", "cpu"],
                    "flavors": [{"name": "l4", "resources": [quota("nvidia.com/gpu", 12), quota("cpu", 1000)]}],
                }
            ],
        },
        [
            "warning: cohorts[research].resourceGroups: 12 nvidia.com/gpu of flavor l4 is just what its queues have "
            "together (vision, language), and Kueue adds the two: they can use 24; remove resourceGroups here or the "
            "quotas of the queues, unless the nodes hold both"
        ],
    ),
    "undeclared parent": (
        {"cohorts/0/parentName": "company"},
        [
            (
                "warning: cohorts[research].parentName: no entry of cohorts declares company, so it is a cohort "
                "without quota, limits or parent; add company to cohorts if it should have any"
            )
        ],
    ),
    "misspelt cohort": (
        {"clusterQueues/0/cohortName": "reserch"},
        [
            (
                "warning: clusterQueues[vision].cohortName: no entry of cohorts declares reserch, so it is a "
                "cohort without quota, limits or parent; did you mean research?"
            )
        ],
    ),
    "unused": (
        {"cohorts/+": {"name": "spare"}},
        [
            (
                "warning: cohorts[spare]: no queue and no cohort is in this cohort; name it as cohortName of a "
                "queue, or remove it"
            )
        ],
    ),
    "alone": (
        {"cohorts": REMOVED, "clusterQueues/0/cohortName": "a", "clusterQueues/1/cohortName": REMOVED},
        [
            (
                "warning: clusterQueues[vision].cohortName: vision is alone in cohort a, so there is no queue to "
                "borrow from; put another queue in it, or remove cohortName"
            )
        ],
    ),
    "quota that no queue has": (
        {
            "cohorts/0/resourceGroups": [
                {"coveredResources": ["pods"], "flavors": [{"name": "t4", "resources": [quota("pods", 4)]}]}
            ]
        },
        [
            (
                "warning: cohorts[research].resourceGroups[0].flavors[t4].resources[pods]: has no effect, since no "
                "queue of the cohort has pods of flavor t4; add it to one with a nominalQuota of 0, or remove it here"
            )
        ],
    ),
    "nothing in common": (
        {
            "clusterQueues/1/resourceGroups/0/flavors/0/name": "t4",
            "clusterQueues/1/clusters": ["worker-b"],
            "clusterQueues/0/resourceGroups/0/flavors/1": REMOVED,
            "clusterQueues/0/admissionChecksStrategy": REMOVED,
            "admissionChecks": REMOVED,
        },
        [
            (
                f"warning: clusterQueues[{name}].cohortName: nothing else in cohort research has a flavor of {name}, "
                "so that it neither borrows nor lends; give such a flavor to another queue there, or remove cohortName"
            )
            for name in ("vision", "language")
        ],
    ),
    "unknown flavor": (
        {
            "cohorts/0/resourceGroups": [
                {"coveredResources": ["cpu"], "flavors": [{"name": "l5", "resources": [quota("cpu", 4)]}]}
            ]
        },
        [
            (
                "cohorts[research].resourceGroups[0].flavors[l5].name: there is no flavor l5; use one of the "
                "flavors: l4, t4"
            )
        ],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "a tree": {"cohorts": [{"name": "research", "parentName": "all"}, {"name": "all"}]},
    "alone, with quota of its own": {
        "cohorts/+": {
            "name": "shared",
            "resourceGroups": [
                {"coveredResources": ["cpu"], "flavors": [{"name": "l4", "resources": [quota("cpu", 4)]}]}
            ],
        },
        "clusterQueues/0/cohortName": "shared",
        "clusterQueues/1/cohortName": REMOVED,
        "cohorts/0": REMOVED,
    },
    "no cohort declared": {"cohorts": REMOVED},
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changes: dict[str, Any]) -> None:
    assert problems(changed(fleet_data(), changes)) == []
