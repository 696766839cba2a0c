"""Queues and nodes of queued provisioning."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems
from tests.fleet_file.pool_builders import FLAVORS, NAMES, flavor_quota, pools_data

from company_fleet import company_data


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


def test_what_a_cluster_holds_is_not_refused() -> None:
    """Queues and pools that are there may not fit each other: their jobs wait."""
    there = {"clusters/0/existing": True} | {p(index, "existing"): True for index in range(6)}
    result = problems(changed(pools_data(), {**REFUSED["queued without check"][0], **there}))
    of_checks = [problem for problem in result if "queued provisioning;" in problem or "no check asks for" in problem]
    assert [problem.partition(":")[0] for problem in of_checks] == ["warning", "warning"]


def test_dws_has_no_spot_vms_on_autopilot() -> None:
    spot = changed(fleet_data(), {"flavors/1/nodeLabels": {"cloud.google.com/gke-spot": "true"}})
    assert problems(spot)[-1] == (
        "warning: clusterQueues[vision].admissionChecksStrategy.admissionChecks[dws]: asks DWS for nodes of flavor t4, "
        "which are Spot VMs, but DWS nodes are not; limit the check to other flavors with onFlavors, or remove the "
        "flavor's label cloud.google.com/gke-spot"
    )


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []


def test_jobs_do_not_go_from_dws_to_the_next_flavor_when_google_has_no_machines() -> None:
    assert problems(changed(pools_data(), {FLAVORS: [flavor_quota(name) for name in NAMES]})) == [
        "warning: clusterQueues[gpu].resourceGroups[0].flavors[queued]: comes before calendar, but a job that got "
        "quota here waits for DWS, however long that takes: the next flavor is for when quota is used up, not for when "
        "Google has no machines; put it last, or say in the queue's fallback how long a job waits for it"
    ]


def test_a_fleet_with_a_controller_says_it_too_as_the_watchdog_only_tries_another_worker() -> None:
    data = company_data() | {"controller": {"image": "registry.company.test/kueue-fleet:1"}}
    (queue, *_) = data["clusterQueues"]
    flavors = queue["resourceGroups"][0]["flavors"]
    flavors.sort(key=lambda flavor: str(flavor["name"]) != "l4-flex")

    def found() -> list[str]:
        return [problem for problem in problems(data) if "flavors[l4-flex]: comes before" in problem]

    (before,) = found()
    assert before.endswith("put it last, or say in the queue's fallback how long a job waits for it")
    queue["fallback"] = [{"flavor": "l4-flex", "patience": "1h"}]
    assert found() == []
