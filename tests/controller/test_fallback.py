"""Jobs that wait for nodes on the controller's own cluster, and go on to other flavors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.controller.build import GPU, NOW, Fixture, condition, given_up, waiting_copy, when, workload

from kueue_admission.kernel.names import ALLOWED_FLAVORS_ANNOTATION, FALLBACK_CHECK
from kueue_fleet.controller.patches import FALLBACK_MANAGER
from kueue_fleet.settings.dispatch import CHECK_CONTROLLER

PATIENCE = 600


def patient() -> Fixture:
    result = Fixture(dispatches=False)
    rules = {"gpu": {"flavors": ["flex", "od"], "fallback": [{"flavor": "flex", "patience": f"{PATIENCE}s"}]}}
    result.configuration = type(result.configuration).model_validate({**result.configuration.wire(), "fallback": rules})
    result.restart()
    return result


def waiting(flavor: str = "flex", *conditions: Any, state: str = "Pending", **changes: Any) -> dict[str, Any]:
    assigned = {"name": "main", "count": 1, "flavors": {GPU: flavor}, "resourceUsage": {GPU: "1"}}
    status = {"admission": {"clusterQueue": "gpu", "podSetAssignments": [assigned]}}
    checks = {"dws": "Pending", FALLBACK_CHECK: state}
    return workload(conditions=[condition("QuotaReserved"), *conditions], checks=checks, status=status, **changes)


NOT_STARTED = {**condition("PodsReady", status=False), "reason": "WaitForStart"}


def annotation(fixture: Fixture) -> str | None:
    result = fixture.api.lists["/apis/kueue.x-k8s.io/v1beta2/workloads"]["ns/train"]["metadata"]
    text: str | None = (result.get("annotations") or {}).get(ALLOWED_FLAVORS_ANNOTATION)
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
    assert fixture.told == [("FlavorGivenUp", f"No nodes of flex within {PATIENCE} s; moves to od", True)]
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


def of_workers(
    manager_flavors: Sequence[str] = ("multikueue",), local_queues: Sequence[str] = (), **section: Any
) -> Fixture:
    result = Fixture(**section)
    rules: dict[str, Any] = {"flavors": ["flex", "od"], "fallback": [{"flavor": "flex", "patience": f"{PATIENCE}s"}]}
    rules |= {"managerFlavors": manager_flavors, "localQueues": local_queues}
    result.configuration = type(result.configuration).model_validate(
        {**result.configuration.wire(), "fallback": {"gpu": rules}}
    )
    for worker in result.workers.values():
        result.configure(worker, flavors=("flex",))
    result.restart()
    return result


def sent(*conditions: Any, state: str = "Ready", **changes: Any) -> dict[str, Any]:
    status = {"nominatedClusterNames": ["eu", "us"], **changes.pop("status", {})}
    checks = {"multikueue": "Pending", FALLBACK_CHECK: state}
    return workload(conditions=[condition("QuotaReserved"), *conditions], checks=checks, status=status, **changes)


def on_flex(at: float, *conditions: Any, check: str = "Pending") -> dict[str, Any]:
    """A copy on a worker that has had quota on flex since then."""
    assigned = {"name": "main", "count": 1, "flavors": {GPU: "flex"}, "resourceUsage": {GPU: "1"}}
    result = waiting_copy(ready=check == "Ready", check=check, conditions=[condition("QuotaReserved", at), *conditions])
    result["status"]["admission"] = {"clusterQueue": "gpu", "podSetAssignments": [assigned]}
    return result


async def test_copies_on_workers_wait_since_the_first_of_them() -> None:
    fixture = of_workers()
    for name, at in (("eu", 10), ("us", 300)):
        fixture.workers[name].take_workload("ns/train", on_flex(at))
    fixture.clock.now = NOW + 10 + PATIENCE - 1
    assert await fixture.look(sent()) == NOW + 10 + PATIENCE
    assert fixture.check(FALLBACK_CHECK)["message"].startswith(f"Waits for nodes of flex since {when(10)}; moves to")
    fixture.clock.now += 1
    await fixture.reconciler.reconcile("ns/train")
    assert annotation(fixture) == "od,multikueue"
    assert fixture.check(FALLBACK_CHECK)["state"] == "Retry"


async def test_without_a_copy_that_has_quota_it_waits_for_no_nodes() -> None:
    fixture = of_workers()
    fixture.workers["eu"].take_workload("ns/train", on_flex(10))
    await fixture.look(sent())
    fixture.workers["eu"].take_workload("ns/train", None)
    await fixture.reconciler.reconcile("ns/train")
    check = fixture.check(FALLBACK_CHECK)
    assert (check["state"], check["message"]) == ("Ready", "Waits for no nodes")


async def test_a_copy_of_an_earlier_reservation_gives_nothing_up_again() -> None:
    fixture = of_workers()
    fixture.workers["eu"].take_workload("ns/train", on_flex(-PATIENCE))
    assert await fixture.look(sent(annotations={ALLOWED_FLAVORS_ANNOTATION: "od,multikueue"})) == NOW + PATIENCE
    assert fixture.check(FALLBACK_CHECK)["state"] == "Ready"


@pytest.mark.parametrize("holds", [True, False], ids=["with quota", "waiting for it"])
async def test_a_job_that_gave_up_a_flavor_may_have_the_new_flavors_of_the_manager(holds: bool) -> None:
    fixture = of_workers(["multikueue-flex", "multikueue"], ["ns/gpu"])
    gave_up = {ALLOWED_FLAVORS_ANNOTATION: "od,multikueue"}
    await fixture.look(sent(annotations=gave_up) if holds else never_had_quota(annotations=gave_up))
    assert annotation(fixture) == "od,multikueue,multikueue-flex"


def never_had_quota(**changes: Any) -> dict[str, Any]:
    result = workload(conditions=[condition("QuotaReserved", status=False)], checks={}, **changes)
    del result["status"]["admission"]
    return result


async def test_what_the_watchdog_took_back_has_waited_already() -> None:
    fixture = of_workers(watchdog={"provisioningTimeout": "100s"})
    fixture.workers["us"].take_workload("ns/train", on_flex(150))
    assert await fixture.look(sent(*given_up(140, "eu"))) == NOW + 40 + PATIENCE


async def test_a_job_that_is_assigned_to_a_worker_is_left_alone() -> None:
    fixture = of_workers()
    fixture.workers["eu"].take_workload("ns/train", on_flex(0, check="Ready"))
    fixture.clock.now = NOW + PATIENCE
    assigned = condition("kueue-fleet.dev/Assigned", reason="Assigned:eu")
    await fixture.look(sent(assigned))
    assert annotation(fixture) is None
    assert fixture.check(FALLBACK_CHECK)["state"] == "Ready"


async def test_on_a_worker_where_its_pods_never_ran_it_has_its_patience_from_its_admission_on() -> None:
    fixture = of_workers()
    admitted = condition("Admitted", 60)
    fixture.workers["us"].take_workload("ns/train", on_flex(0, admitted, NOT_STARTED))
    status = {"clusterName": "us"}
    assert await fixture.look(sent(admitted, status=status)) == NOW + 60 + PATIENCE
    fixture.clock.now = NOW + 60 + PATIENCE
    await fixture.reconciler.reconcile("ns/train")
    assert annotation(fixture) == "od,multikueue"
    fixture = of_workers()
    fixture.clock.now = NOW + 60 + PATIENCE
    fixture.workers["us"].take_workload("ns/train", on_flex(0, admitted, condition("PodsReady", 61)))
    await fixture.look(sent(admitted, status=status))
    assert annotation(fixture) is None
