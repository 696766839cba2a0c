"""The manager's hand-written quotas against the workers'."""

from __future__ import annotations

from typing import Any

import pytest

from spec.builders import COVERED, changed, fleet_data, manager_quotas, problems, quota

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "less than the largest worker": (
        {"clusterQueues/0/manager": manager_quotas(gpu=5)},
        [
            (
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
