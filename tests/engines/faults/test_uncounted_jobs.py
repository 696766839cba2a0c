"""Jobs of which their queue counts nothing, where no policy refuses them: docs/teams.md has the policy that does."""

from __future__ import annotations

from controller_lab import JOBS, MANAGER, job, restart_kueue, wait_until_connected
from faulty_fleet import Fleet
from kueue_admission.releases import DEFAULT_VERSION
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.status.conditions import NOT_DISPATCHED
from mixed_releases import Mix
from one_cluster import Json, condition, wait_until
from tests.engines.faults.conftest import RELEASE

ON_MANAGER = Mix.named(RELEASE or DEFAULT_VERSION).manager
LEFT = ON_MANAGER >= "0.18"
"""Whether the manager admits such a job without a worker: row `nothing` of docs/releases.md."""


def ignoring(fleet: FleetSpec) -> FleetSpec:
    """The fleet whose manager's Kueue ignores what its queue does not have; workers of 0.17 cannot."""
    wire = fleet.wire()
    [manager] = [item for item in wire["clusters"] if item["role"] == "manager"]
    kueue = manager.setdefault("kueue", {})
    given = kueue.setdefault("configuration", {})
    given["resources"] = {"quotaCheckStrategy": "IgnoreUndeclared"}
    given["featureGates"] = {**given.get("featureGates", {}), "QuotaCheckStrategy": True}
    return parse_fleet(wire)


def requesting(name: str, requests: Json) -> Json:
    """The template of a job whose container requests this alone."""
    template: Json = job(name)["spec"]["template"]
    template["spec"]["containers"][0]["resources"] = {"requests": requests}
    return template


def ends(fleet: Fleet, name: str) -> None:
    """It runs as any other; or `status` calls it stuck, and its user deletes it."""
    if not LEFT:
        wait_until(lambda: condition(fleet.lab.manager.get(f"{JOBS}/{name}"), "Complete") == "True")
        return
    wait_until(lambda: name in [item.name for item in fleet.held.stuck() if item.why == NOT_DISPATCHED])
    fleet.forgotten.add(name)
    fleet.lab.manager.delete(f"{JOBS}/{name}")


def test_a_job_that_requests_nothing_is_called_stuck(fleet: Fleet) -> None:
    name = f"nothing-{fleet.rounds}"
    fleet.survive(lambda: fleet.submit(name, template=requesting(name, {})), lambda: ends(fleet, name))


if LEFT:

    def test_a_job_that_requests_nothing_declared_is_called_stuck(fleet: Fleet) -> None:
        """Where the manager's Kueue ignores what its queue does not have."""
        name, before = f"undeclared-{fleet.rounds}", fleet.lab.fleet

        def submit() -> None:
            fleet.lab.fleet = ignoring(before)
            restart_kueue(fleet.lab, MANAGER)
            wait_until_connected(fleet.lab)
            fleet.submit(name, template=requesting(name, {"memory": "1Gi"}))

        def again() -> None:
            ends(fleet, name)
            fleet.lab.fleet = before
            restart_kueue(fleet.lab, MANAGER)
            wait_until_connected(fleet.lab)

        fleet.survive(submit, again)
