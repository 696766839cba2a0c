"""Queues and nodes of queued provisioning."""

from __future__ import annotations

from typing import Any

import pytest

from spec.builders import changed, problems
from spec.pool_builders import pools_data


def p(index: int, field: str) -> str:
    """Path of a field of a pool."""
    return f"nodePools/{index}/{field}"


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "queued without check": (
        {"clusterQueues/0/admissionChecksStrategy/admissionChecks/0/onFlavors": ["spot"]},
        [
            (
                "clusterQueues[gpu].admissionChecksStrategy.admissionChecks[dws]: asks DWS for nodes of flavor spot, "
                "but no pool behind it on batch has queued provisioning; limit the check to other flavors with "
                "onFlavors, or set the pool's capacity to {type: flexStart, queuedProvisioning: true}"
            ),
            (
                "clusterQueues[gpu].admissionChecksStrategy: no check asks for nodes of queued on batch, which come "
                "only when asked for, so jobs on flavor queued never start; add an admission check with "
                "provisioningRequest of class queued-provisioning.gke.io, onFlavors [queued]"
            ),
        ],
    ),
    "check for nodes that are not queued": (
        {"clusterQueues/0/admissionChecksStrategy/admissionChecks/0/onFlavors": ["queued", "spot"]},
        [
            (
                "clusterQueues[gpu].admissionChecksStrategy.admissionChecks[dws]: asks DWS for nodes of flavor spot, "
                "but no pool behind it on batch has queued provisioning; limit the check to other flavors with "
                "onFlavors, or set the pool's capacity to {type: flexStart, queuedProvisioning: true}"
            ),
        ],
    ),
    "check too long": (
        {
            p(4, "capacity/maxRunDuration"): "1h",
            "admissionChecks/0/provisioningRequest/parameters": {"maxRunDurationSeconds": "3601"},
        },
        [
            (
                'admissionChecks[dws].provisioningRequest.parameters[maxRunDurationSeconds]: "3601" is longer than '
                "nodes of pool queued live, 1h; ask for less, or make the pool's capacity.maxRunDuration longer"
            ),
        ],
    ),
    "check of another class": (
        {"admissionChecks/0/provisioningRequest/provisioningClassName": "check-capacity.autoscaling.x-k8s.io"},
        [
            (
                "clusterQueues[gpu].admissionChecksStrategy: no check asks for nodes of queued on batch, which come "
                "only when asked for, so jobs on flavor queued never start; add an admission check with "
                "provisioningRequest of class queued-provisioning.gke.io, onFlavors [queued]"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []
