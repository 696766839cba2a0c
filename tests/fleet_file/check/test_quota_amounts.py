"""The manager's hand-written quotas against the workers'."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import (
    COVERED,
    REMOVED,
    all_problems,
    changed,
    fleet_data,
    group,
    manager_quotas,
    problems,
    quota,
)

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "less than the largest worker": (
        {"clusterQueues/0/manager": manager_quotas(gpu=5)},
        [
            (
                "warning: "
                "clusterQueues[vision].manager.resourceGroups[0].flavors[multikueue].resources[nvidia.com/gpu].no"
                "minalQuota: 5 is less than the 6 of worker worker-b, so a job that fits there never leaves the "
                "manager; write at least 6, or 10 to use all workers at once"
            )
        ],
    ),
    "less than all workers": (
        {"clusterQueues/0/manager": manager_quotas(gpu=9)},
        [
            (
                "warning: "
                "clusterQueues[vision].manager.resourceGroups[0].flavors[multikueue].resources[nvidia.com/gpu].no"
                "minalQuota: 9 is less than the 10 of all workers together, so some of it is never used; write "
                "at least 10, or remove manager to have the sum"
            )
        ],
    ),
    "resource missing": (
        {
            "clusterQueues/0/manager": {
                "resourceGroups": [
                    {
                        "coveredResources": ["cpu", "memory", "ephemeral-storage"],
                        "flavors": [
                            {
                                "name": "multikueue",
                                "resources": [
                                    quota("cpu", 192),
                                    quota("memory", "768Gi"),
                                    quota("ephemeral-storage", "1200Gi"),
                                ],
                            }
                        ],
                    }
                ]
            }
        },
        [
            (
                "warning: "
                "clusterQueues[vision].manager.resourceGroups: no quota for nvidia.com/gpu, which the workers "
                "have, and a job that requests it never leaves the manager; add nvidia.com/gpu, at least 6"
            )
        ],
    ),
    "resource too many": (
        {
            "clusterQueues/1/manager": {
                "resourceGroups": [
                    {
                        "coveredResources": [*COVERED, "example.com/x"],
                        "flavors": [
                            {
                                "name": "multikueue",
                                "resources": [
                                    *manager_quotas(gpu=16)["resourceGroups"][0]["flavors"][0]["resources"],
                                    quota("example.com/x", 1),
                                ],
                            }
                        ],
                    }
                ]
            }
        },
        [
            (
                "warning: "
                "clusterQueues[language].manager.resourceGroups[0].flavors[multikueue].resources[example.com/x].n"
                "ominalQuota: example.com/x is covered on the manager, but by no worker; remove it, or add quota "
                "for it to the queue"
            )
        ],
    ),
    "unknown flavor": (
        {"clusterQueues/0/manager": manager_quotas("multikue")},
        [
            (
                "clusterQueues[vision].manager.resourceGroups[0].flavors[multikue].name: there is no flavor "
                "multikue; did you mean multikueue?"
            )
        ],
    ),
    "flavor not on the manager": (
        {"clusterQueues/0/manager": manager_quotas("l4")},
        [
            (
                "clusterQueues[vision].manager.resourceGroups[0].flavors[l4].name: flavor l4 does not exist on "
                "the manager, manager; use multikueue, or add manager to flavors[l4].clusters"
            )
        ],
    ),
    "negative": (
        {"clusterQueues/0/manager": manager_quotas(gpu=-1)},
        [
            (
                "clusterQueues[vision].manager.resourceGroups[0].flavors[multikueue].resources[nvidia.com/gpu].no"
                "minalQuota: -1 is negative; write 0 or a positive amount"
            )
        ],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "the sum of all workers": {"clusterQueues/0/manager": manager_quotas()},
    "more": {"clusterQueues/0/manager": manager_quotas(gpu=100)},
    "a flavor of the file on the manager": {
        "flavors/0/clusters": ["manager", "worker-a", "worker-b"],
        "clusterQueues/0/manager": manager_quotas("l4"),
    },
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changes: dict[str, Any]) -> None:
    assert problems(changed(fleet_data(), changes)) == []


KEEPS_IT = "fits the manager's quota and no worker's, and its job keeps that quota"
NO_WORKER: dict[str, tuple[dict[str, Any], str]] = {
    "two workers, and what their cohort lends": ({}, "more than 12 nvidia.com/gpu in queues vision, language"),
    "no cohort": (
        {"clusterQueues/0/cohortName": REMOVED, "clusterQueues/1/cohortName": REMOVED, "cohorts": []},
        "more than 4 nvidia.com/gpu in queue vision or 8 nvidia.com/gpu in queue language",
    ),
    "another resource first": (
        {
            "clusterQueues/+": {
                "name": "cpu-only",
                "namespaceSelector": {},
                "resourceGroups": [group(("cpu", "memory"))],
            }
        },
        "more than 12 nvidia.com/gpu in queues vision, language or 4 cpu in queue cpu-only",
    ),
    "headroom over one worker": (
        {
            "clusters/2": REMOVED,
            "flavors/1": REMOVED,
            "clusterQueues/0": REMOVED,
            "admissionChecks": [],
            "teams": [],
            "localQueues": [],
            "multiKueue/headroomPercent": 50,
        },
        "more than 8 nvidia.com/gpu in queue language",
    ),
}


@pytest.mark.parametrize(("changes", "expected"), NO_WORKER.values(), ids=NO_WORKER.keys())
def test_larger_than_any_worker(changes: dict[str, Any], expected: str) -> None:
    """Without a dispatcher that rejects it, such a job keeps the manager's quota."""
    result = [text for text in all_problems(changed(fleet_data(), changes)) if "multiKueue.dispatcher" in text]
    assert result == [
        f"warning: multiKueue.dispatcher: a pod set of {expected} {KEEPS_IT}; dispatch with the section "
        "controller, which rejects such jobs, or find them with kueue-fleet status"
    ]


def test_larger_than_any_worker_where_the_controller_does_not_dispatch() -> None:
    data = changed(fleet_data(), {"controller": {"image": "example.com/controller:1"}})
    [result] = [text for text in all_problems(data) if "multiKueue.dispatcher" in text]
    assert result.endswith(
        "set it to External, and multiKueue.external.name to kueue-fleet.dev/dispatcher, so that "
        "the controller rejects such jobs, or find them with kueue-fleet status"
    )


LARGEST: dict[str, dict[str, Any]] = {
    "our own dispatcher": {
        "multiKueue/dispatcher": "External",
        "multiKueue/external": {"name": "kueue-fleet.dev/dispatcher"},
        "controller": {"image": "example.com/controller:1"},
    },
    "somebody's dispatcher": {"multiKueue/dispatcher": "External", "multiKueue/external": {"name": "example.com/x"}},
    "one worker": {
        "clusters/2": REMOVED,
        "flavors/1": REMOVED,
        "clusterQueues/0": REMOVED,
        "admissionChecks": [],
        "teams": [],
        "localQueues": [],
    },
    "each queue on one worker": {
        "clusterQueues/0/clusters": ["worker-b"],
        "clusterQueues/1/clusters": ["worker-a"],
        "clusterQueues/0/resourceGroups/0/flavors/1": REMOVED,
        "clusterQueues/0/admissionChecksStrategy": REMOVED,
        "clusterQueues/0/cohortName": REMOVED,
        "clusterQueues/1/cohortName": REMOVED,
    },
    "manager's quotas by hand, no larger than a worker's": {
        "clusterQueues/0/manager": manager_quotas(gpu=4),
        "clusterQueues/1/manager": manager_quotas(gpu=8),
        "clusterQueues/0/cohortName": REMOVED,
        "clusterQueues/1/cohortName": REMOVED,
    },
}


@pytest.mark.parametrize("changes", LARGEST.values(), ids=LARGEST.keys())
def test_no_larger_than_a_worker(changes: dict[str, Any]) -> None:
    assert not [text for text in all_problems(changed(fleet_data(), changes)) if "multiKueue.dispatcher" in text]
