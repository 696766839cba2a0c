"""Jobs that wait for nodes on the controller's own cluster, and go on to other flavors."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controller.build import GPU, NOW, Fixture, condition, workload

from kueue_fleet.controller.patches import FALLBACK_MANAGER
from kueue_fleet.fleet_file.model.dispatch import CHECK_CONTROLLER, FALLBACK_CHECK
from kueue_fleet.kueue_api.names import ALLOWED_FLAVORS_ANNOTATION

PATIENCE = 600


def patient() -> Fixture:
    made = Fixture(dispatches=False)
    rules = {"gpu": {"flavors": ["flex", "od"], "fallback": [{"flavor": "flex", "patience": f"{PATIENCE}s"}]}}
    made.configuration = type(made.configuration).model_validate({**made.configuration.wire(), "fallback": rules})
    made.restart()
    return made


def waiting(flavor: str = "flex", *conditions: Any, state: str = "Pending", **changes: Any) -> dict[str, Any]:
    assigned = {"name": "main", "count": 1, "flavors": {GPU: flavor}, "resourceUsage": {GPU: "1"}}
    status = {"admission": {"clusterQueue": "gpu", "podSetAssignments": [assigned]}}
    checks = {"dws": "Pending", FALLBACK_CHECK: state}
    return workload(conditions=[condition("QuotaReserved"), *conditions], checks=checks, status=status, **changes)


NOT_STARTED = {**condition("PodsReady", status=False), "reason": "WaitForStart"}


def annotation(fixture: Fixture) -> str | None:
    found = fixture.api.lists["/apis/kueue.x-k8s.io/v1beta2/workloads"]["ns/train"]["metadata"]
    text: str | None = (found.get("annotations") or {}).get(ALLOWED_FLAVORS_ANNOTATION)
    return text


async def test_it_lets_the_job_wait_and_says_for_what() -> None:
    fixture = patient()
    again = await fixture.look(waiting())
    assert again == NOW + PATIENCE
    check = fixture.check(FALLBACK_CHECK)
    assert check["state"] == "Ready"
    assert check["message"].startswith("Waits for nodes of flex since ")
    written = len(fixture.api.applied)
    assert await fixture.reconciler.reconcile("ns/train") == again
    assert len(fixture.api.applied) == written
    assert annotation(fixture) is None


async def test_after_its_patience_the_flavor_is_taken_from_it_before_its_quota_is() -> None:
    fixture = patient()
    fixture.clock.now = NOW + PATIENCE
    await fixture.look(waiting(state="Ready"))
    assert [path.rpartition("/")[2] for path, _, _ in fixture.api.applied] == ["train", "status"]
    assert {manager for _, _, manager in fixture.api.applied} == {FALLBACK_MANAGER}
    assert annotation(fixture) == "od"
    check = fixture.check(FALLBACK_CHECK)
    assert (check["state"], check["requeueAfterSeconds"]) == ("Retry", 1)
    assert fixture.told == [("FlavorGivenUp", f"No nodes of flex within {PATIENCE} s; goes on to od", True)]
    # Kueue evicts it now; nothing more is said meanwhile.
    await fixture.reconciler.reconcile("ns/train")
    assert len(fixture.api.applied) == 2


async def test_a_leader_that_ends_between_the_two_is_followed_by_one_that_goes_on() -> None:
    fixture = patient()
    fixture.clock.now = NOW + PATIENCE
    await fixture.look(waiting(state="Ready", annotations={ALLOWED_FLAVORS_ANNOTATION: "od"}))
    assert [path.rpartition("/")[2] for path, _, _ in fixture.api.applied] == ["status"]
    assert fixture.check(FALLBACK_CHECK)["state"] == "Retry"


async def test_an_admitted_job_whose_pods_never_ran_has_its_patience_from_then_on() -> None:
    fixture = patient()
    fixture.clock.now = NOW + PATIENCE
    admitted = condition("Admitted", 60)
    assert await fixture.look(waiting("flex", admitted, NOT_STARTED, state="Ready")) == NOW + 60 + PATIENCE
    fixture.clock.now = NOW + 60 + PATIENCE
    await fixture.reconciler.reconcile("ns/train")
    assert annotation(fixture) == "od"


@pytest.mark.parametrize(
    "pods",
    [condition("PodsReady"), {**condition("PodsReady", status=False), "reason": "WaitForRecovery"}, None],
    ids=["run", "ran", "unknown"],
)
async def test_a_job_that_runs_or_ran_is_left_alone(pods: Any) -> None:
    fixture = patient()
    fixture.clock.now = NOW + 10 * PATIENCE
    conditions = [condition("Admitted"), *([pods] if pods else [])]
    assert await fixture.look(waiting("flex", *conditions, state="Ready")) is None
    assert fixture.api.applied == []


async def test_on_the_last_flavor_it_only_passes() -> None:
    fixture = patient()
    fixture.clock.now = NOW + 10 * PATIENCE
    assert await fixture.look(waiting("od")) is None
    assert fixture.check(FALLBACK_CHECK)["state"] == "Ready"
    assert annotation(fixture) is None


async def test_an_evicted_job_is_left_alone() -> None:
    fixture = patient()
    fixture.clock.now = NOW + PATIENCE
    await fixture.look(waiting("flex", condition("Evicted"), state="Ready"))
    assert fixture.api.applied == []


async def test_the_check_is_active_where_a_queue_has_fallback() -> None:
    for fixture, known in ((patient(), "True"), (Fixture(dispatches=False), "False")):
        fixture.take_check(FALLBACK_CHECK, CHECK_CONTROLLER)
        await fixture.reconciler.reconcile_check(FALLBACK_CHECK)
        [(_, body, _)] = fixture.api.applied
        assert body["status"]["conditions"][0]["status"] == known
