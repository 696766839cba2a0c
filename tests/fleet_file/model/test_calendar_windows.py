from __future__ import annotations

from typing import Any

from tests.fleet_file.pool_builders import flavor_quota, pool

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.model.calendar_windows import derived_windows, fleet_checks
from kueue_fleet.objects.controller_values import controller_configuration

CHECKS = {"admissionChecks": [{"name": "fleet"}]}


def calendar(reservation: str, start: str) -> dict[str, Any]:
    return {"type": "calendar", "reservation": reservation, "start": start, "duration": "336h"}


def fleet(flavors: tuple[str, ...] = ("december", "january"), **check: Any) -> FleetSpec:
    """A worker with pools for two times and one for always; the queue uses `flavors`."""
    zones = ["us-central1-a"]
    pools = [
        pool("january", calendar("res-january", "2027-01-10T00:00:00Z"), zones=zones, nodeCount=2),
        pool("december", calendar("res-december", "2026-12-01T00:00:00Z"), zones=zones, nodeCount=2),
        pool("always", zones=zones, nodeCount=2),
    ]
    group = {
        "coveredResources": ["nvidia.com/gpu", "cpu", "memory"],
        "flavors": [flavor_quota(name) for name in flavors],
    }
    worker = {"name": "worker", "role": "worker", "region": "us-central1", "mode": "Standard", "zones": zones}
    return parse_fleet(
        {
            "name": "calendar",
            "project": "my-project",
            "clusters": [{"name": "manager", "role": "manager", "region": "us-central1"}, worker],
            "nodePools": [{**item, "clusters": ["worker"]} for item in pools],
            "flavors": [{"name": name, "nodePool": name} for name in ("january", "december", "always")],
            "clusterQueues": [
                {
                    "name": "gpu",
                    "namespaceSelector": {},
                    "resourceGroups": [group],
                    "admissionChecksStrategy": CHECKS,
                }
            ],
            "localQueues": [{"namespace": "team", "name": "gpu", "clusterQueue": "gpu"}],
            "admissionChecks": [
                {"name": "fleet", "controllerName": "kueue-fleet.dev/admission-check", "clusters": ["manager"]}
            ],
            "multiKueue": {
                "dispatcher": "External",
                "external": {"name": "kueue-fleet.dev/dispatcher"},
                "credentials": {"type": "ServiceAccountToken", "rotation": "a", "rotateBy": "2027-02-01"},
            },
            "controller": {"image": "example.com/controller:1", "checks": [{"name": "fleet", **check}]},
        }
    )


def windows(made: FleetSpec) -> list[tuple[str, str, str]]:
    [check] = fleet_checks(made)
    return [(one.name, one.start.isoformat(), str(one.duration)) for one in check.windows]


def test_the_times_of_the_pools_are_the_windows_in_their_order() -> None:
    result = fleet()
    assert windows(result) == [
        ("res-december", "2026-12-01T00:00:00+00:00", "336h"),
        ("res-january", "2027-01-10T00:00:00+00:00", "336h"),
    ]
    [told] = controller_configuration(result).controller.checks
    assert [window.name for window in told.windows] == ["res-december", "res-january"]


def test_windows_that_are_given_count_alone() -> None:
    own = {"name": "own", "start": "2026-12-03T00:00:00Z", "duration": "24h"}
    assert windows(fleet(windows=[own])) == [("own", "2026-12-03T00:00:00+00:00", "24h")]


def test_a_queue_with_other_nodes_too_has_no_windows() -> None:
    assert windows(fleet(("december", "always"))) == []


def test_a_check_that_no_queue_has_and_a_fleet_without_a_controller() -> None:
    result = fleet()
    assert result.controller is not None
    [check] = result.controller.checks
    assert derived_windows(result, check.model_copy(update={"name": "other"})) == ()
    assert fleet_checks(result.model_copy(update={"controller": None})) == ()
