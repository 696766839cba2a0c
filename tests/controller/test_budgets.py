"""Budgets that hold jobs back, as the controller counts and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.controller.build import NOW, Fixture, admitted_copy, condition, when, workload

from kueue_admission.kernel.names import (
    ALLOWED_FLAVORS_ANNOTATION,
    BUDGET_CHECK,
    OVER_BUDGET_BY_LABEL,
    OVER_BUDGET_UNTIL_LABEL,
)
from kueue_fleet.dispatch.budgets import OVER_BUDGET_CONDITION
from kueue_fleet.settings.budgets import period_of
from kueue_fleet.settings.configuration import LEDGER_NAME
from kueue_fleet.settings.dispatch import CHECK_CONTROLLER

LEDGER = "/api/v1/configmaps"
FLAVORS = {"gpu": ["spot", "multikueue"]}


def fixture(enforce: str = "wait", **budget: Any) -> Fixture:
    result = Fixture(dispatches=False)
    rules = {
        "cluster": "manager",
        "teams": {"vision": {"enforce": enforce, **(budget or {"gpuHours": 8})}},
        "namespaces": {"ns": "vision"},
        "usd": {"eu": {"l4": 2.0, "h100": 9.0}},
        "interruptible": FLAVORS,
    }
    result.configuration = type(result.configuration).model_validate({**result.configuration.wire(), "budgets": rules})
    result.take_check(BUDGET_CHECK, CHECK_CONTROLLER)
    result.api.put(LEDGER, {"kind": "ConfigMap", "metadata": {"name": LEDGER_NAME, "namespace": "system"}})
    result.restart()
    return result


def ran(made: Fixture, hours: float = 8.0, name: str = "earlier") -> None:
    """A job of the team ran for so long, on `eu`."""
    begin = when(-hours * 3600)
    conditions = [{**condition(kind), "lastTransitionTime": begin} for kind in ("QuotaReserved", "Admitted")]
    conditions.append({**condition("Finished"), "lastTransitionTime": when(0)})
    made.take(workload(name, conditions=conditions, checks={}, status={"clusterName": "eu"}))


def waiting(name: str = "train", **changes: Any) -> dict[str, Any]:
    return workload(name, checks={"multikueue": "Pending", BUDGET_CHECK: "Pending"}, **changes)


async def test_within_the_budget_a_job_passes() -> None:
    result = fixture()
    ran(result, 7.9)
    await result.reconciler.budgets.load()
    await result.look(waiting())
    assert result.check(BUDGET_CHECK)["state"] == "Ready"


async def test_over_it_a_job_is_rejected_and_its_user_learns_why() -> None:
    result = fixture()
    ran(result)
    await result.reconciler.budgets.load()
    await result.look(waiting())
    results = result.check(BUDGET_CHECK)
    assert results["state"] == "Rejected"
    assert results["message"].startswith("Team vision has used 8 of 8 GPU hours per month; it waits until ")
    assert result.told == [("CheckRejected", f"{BUDGET_CHECK}: {results['message']}", True)]
    [output] = [one for one in result.status()["conditions"] if one["type"] == OVER_BUDGET_CONDITION]
    assert output["message"] == results["message"]


def deactivated(**changes: Any) -> dict[str, Any]:
    """As Kueue leaves a job whose check was rejected."""
    output = condition(OVER_BUDGET_CONDITION, message="Team vision has used it")
    result = waiting(active=False, conditions=[condition("Evicted"), condition("QuotaReserved", status=False), output])
    result["metadata"].update(changes)
    del result["status"]["admission"]
    return result


def is_active(made: Fixture) -> bool:
    result = made.api.lists["/apis/kueue.x-k8s.io/v1beta2/workloads"]["ns/train"]["spec"]
    return bool(result.get("active", True))


async def test_it_is_active_again_in_the_next_month_and_not_before() -> None:
    result = fixture()
    ran(result)
    await result.reconciler.budgets.load()
    again = await result.look(deactivated())
    assert not is_active(result)
    assert again == period_of(NOW, "month")[1]
    result.clock.now = again
    await result.reconciler.reconcile("ns/train")
    assert is_active(result)
    [requeued] = result.api.applied[-1][1]["status"]["conditions"]
    assert (requeued["type"], requeued["status"]) == ("Requeued", "True")


async def test_it_is_active_again_once_somebody_allows_it() -> None:
    result = fixture()
    ran(result)
    await result.reconciler.budgets.load()
    await result.look(deactivated(labels={OVER_BUDGET_BY_LABEL: "jane", OVER_BUDGET_UNTIL_LABEL: "2099-12-31"}))
    assert is_active(result)


async def test_what_its_user_deactivated_stays_so() -> None:
    result = fixture()
    await result.reconciler.budgets.load()
    await result.look(workload(active=False, conditions=[condition("Evicted")], checks={}, status={"admission": None}))
    assert result.api.applied == []


async def test_a_job_without_gpus_passes() -> None:
    result = fixture()
    ran(result)
    await result.reconciler.budgets.load()
    [pods] = waiting()["spec"]["podSets"]
    pods["template"]["spec"]["containers"] = [{"resources": {"requests": {"cpu": 1}}}]
    await result.look(waiting(podSets=[pods]))
    assert result.check(BUDGET_CHECK)["state"] == "Ready"


async def test_what_was_let_in_stays_so() -> None:
    result = fixture()
    ran(result)
    await result.reconciler.budgets.load()
    await result.look(workload(checks={"multikueue": "Pending", BUDGET_CHECK: "Ready"}))
    assert result.check(BUDGET_CHECK)["state"] == "Ready"


async def test_a_label_of_its_workload_lets_it_pass() -> None:
    result = fixture()
    ran(result)
    await result.reconciler.budgets.load()
    await result.look(waiting(labels={OVER_BUDGET_BY_LABEL: "jane", OVER_BUDGET_UNTIL_LABEL: "2099-12-31"}))
    results = result.check(BUDGET_CHECK)
    assert (results["state"], results["message"].partition("; ")[2]) == ("Ready", "jane allowed it until 2099-12-31")


async def test_interruptible_flavors_are_written_before_its_quota_goes() -> None:
    result = fixture("interruptibleOnly")
    ran(result)
    await result.reconciler.budgets.load()
    await result.look(waiting())
    assert [path.rpartition("/")[2] for path, _, _ in result.api.applied[-2:]] == ["train", "status"]
    results = result.api.lists["/apis/kueue.x-k8s.io/v1beta2/workloads"]["ns/train"]["metadata"]["annotations"]
    assert results == {ALLOWED_FLAVORS_ANNOTATION: "spot,multikueue"}
    assert result.check(BUDGET_CHECK)["state"] == "Retry"
    await result.look(waiting(annotations=results))
    assert result.check(BUDGET_CHECK)["state"] == "Ready"


async def test_dollars_are_those_of_the_flavor_that_the_copy_had() -> None:
    result = fixture(usd=100)
    conditions = [condition("QuotaReserved"), condition("Admitted")]
    result.take(workload(conditions=conditions, checks={}, status={"clusterName": "eu"}))
    result.workers["eu"].take_workload("ns/train", admitted_copy())
    await result.reconciler.budgets.load()
    result.workers["eu"].take_workload("ns/train", None)
    result.clock.now = NOW + 3600
    result.reconciler.budgets.count()
    assert result.metrics.registry.get_sample_value("kueue_fleet_budget_usd", {"team": "vision"}) == pytest.approx(2.0)


async def test_what_is_counted_is_kept_and_the_next_leader_goes_on_from_it() -> None:
    result = fixture()
    ran(result)
    await result.reconciler.budgets.load()
    await result.reconciler.budgets.keep()
    kept = json.loads(result.api.lists[LEDGER][f"system/{LEDGER_NAME}"]["data"]["ledger"])
    assert kept["used"]["vision"][2] == pytest.approx(8.0)
    result.manager.take_workload("ns/earlier", None)
    result.restart()
    await result.reconciler.budgets.load()
    await result.look(waiting())
    assert result.check(BUDGET_CHECK)["state"] == "Rejected"


async def test_a_ledger_that_cannot_be_read_holds_nothing_back_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    result = fixture()
    result.api.put(
        LEDGER, {"kind": "ConfigMap", "metadata": {"name": LEDGER_NAME, "namespace": "system"}, "data": {"ledger": "{"}}
    )
    await result.reconciler.budgets.load()
    assert "no ledger of budgets" in caplog.text
    await result.look(waiting())
    assert result.check(BUDGET_CHECK)["state"] == "Ready"
