"""How the controller answers its own admission checks: windows, residency, jobs that fit nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controller.build import (
    CHECK,
    NOW,
    Fixture,
    condition,
    configured,
    dispatch_condition,
    gated,
    when,
    workload,
)

from kueue_admission.read.dispatch_report import DISPATCH_CONDITION
from kueue_fleet.controller.patches import CHECK_MANAGER, REJECT_MANAGER
from kueue_fleet.kube.answers import ApiError

BOTH = {"multikueue": "Pending", "fleet": "Pending"}
READY = {"multikueue": "Pending", "fleet": "Ready"}
RUN = {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "60"}


async def test_with_a_check_of_ours_giving_up_gives_the_quota_back() -> None:
    fixture = gated(dispatch={"giveUpAfter": "1h"})
    await fixture.look(workload(checks=READY))
    fixture.clock.now += 3600
    await fixture.reconciler.reconcile("ns/train")
    await fixture.reconciler.reconcile("ns/train")
    result = fixture.check("fleet")
    assert (result["state"], result["requeueAfterSeconds"]) == ("Retry", 300)
    assert result["message"] == "Not admitted by us within 3600 s"


async def test_after_the_eviction_the_old_deadline_means_nothing() -> None:
    fixture = gated()
    old = condition(DISPATCH_CONDITION, 0, status=False, reason="DeadlineExceeded", message="Not admitted")
    item = workload(checks=BOTH, conditions=[condition("QuotaReserved", 400), old])
    fixture.clock.now += 401
    await fixture.look(item)
    assert fixture.check("fleet")["state"] == "Ready"
    assert fixture.nominated() == ["us"]


async def test_never_retry_or_anything_else_while_evicted() -> None:
    fixture = gated(runDuration={})
    evicted = [condition("QuotaReserved"), condition("Evicted")]
    gave_up = condition(DISPATCH_CONDITION, 10, status=False, reason="DeadlineExceeded")
    fixture.clock.now += 7200
    await fixture.look(workload(checks=READY, conditions=[*evicted, gave_up]))
    await fixture.look(workload("other", checks=BOTH, conditions=evicted))
    assert fixture.api.applied == []


async def test_a_check_that_can_never_pass_rejects() -> None:
    fixture = gated(runDuration={})
    await fixture.look(workload(checks=BOTH))
    assert fixture.check("fleet")["state"] == "Rejected"
    assert fixture.nominated() == []
    assert fixture.told[0][0] == "CheckRejected"
    [(_, body, manager)] = fixture.api.applied
    assert manager == CHECK_MANAGER
    assert [one["name"] for one in body["status"]["admissionChecks"]] == ["fleet"]


async def test_a_check_that_passes_lets_the_workload_be_dispatched_at_once() -> None:
    fixture = gated(runDuration={})
    await fixture.look(workload(checks=BOTH, annotations=RUN))
    assert fixture.check("fleet")["state"] == "Ready"
    assert fixture.nominated() == ["us"]


async def test_a_check_of_somebody_else_is_not_answered() -> None:
    fixture = Fixture(checks=[{"name": "fleet"}])
    fixture.take_check("fleet", "example.com/other")
    await fixture.look(workload(checks=BOTH))
    assert fixture.api.applied == []


async def test_a_window_that_opens_later() -> None:
    window = {"name": "w", "start": when(600), "duration": "1h"}
    fixture = gated(windows=[window])
    again = await fixture.look(workload(checks=BOTH))
    assert again == NOW + 600
    assert fixture.check("fleet")["message"] == f"Waits for window w, which opens at {when(600)}"
    await fixture.reconciler.reconcile("ns/train")
    assert len(fixture.api.applied) == 1
    fixture.clock.now += 600
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.check("fleet")["state"] == "Ready"
    assert fixture.nominated() == ["us"]


async def test_a_window_that_closes_before_the_admission_sends_the_workload_back_to_wait() -> None:
    windows = [
        {"name": "first", "start": when(-600), "duration": "1h"},
        {"name": "second", "start": when(7200), "duration": "1h"},
    ]
    fixture = gated(windows=windows)
    await fixture.look(workload(checks=BOTH))
    assert fixture.check("fleet")["state"] == "Ready"
    fixture.clock.now += 3000
    await fixture.reconciler.reconcile("ns/train")
    result = fixture.check("fleet")
    assert (result["state"], result["requeueAfterSeconds"]) == ("Retry", 4200)


@pytest.mark.parametrize("clusters", [None, [], ["us", "new"]])
async def test_nobody_is_rejected_while_the_workers_of_the_queue_are_not_known(clusters: list[str] | None) -> None:
    fixture = gated()
    known = configured("MultiKueueConfig", "multikueue", {"clusters": ["eu", "us"]})
    changed = None if clusters is None else configured("MultiKueueConfig", "multikueue", {"clusters": clusters})
    fixture.manager.take_config("multikueue", changed)
    await fixture.look(workload(checks=BOTH, labels={"kueue-fleet.dev/regions": "europe-west4"}))
    result = fixture.check("fleet")
    assert result["state"] == "Pending"
    assert result["message"].endswith("waits until all workers of its queue are known")
    fixture.manager.take_config("multikueue", known)
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.check("fleet")["state"] == "Ready"


async def test_a_retry_keeps_its_time_when_another_check_of_ours_changes() -> None:
    window = {"name": "w", "start": when(600), "duration": "1h"}
    fixture = Fixture(checks=[{"name": "fleet"}, {"name": "later", "windows": [window]}])
    for name in ("fleet", "later"):
        fixture.take_check(name, CHECK)
    item = workload(checks={"multikueue": "Pending", "later": "Pending"})
    retry = {"name": "fleet", "state": "Retry", "message": "m", "lastTransitionTime": when(-60)}
    item["status"]["admissionChecks"].append({**retry, "requeueAfterSeconds": 4200})
    await fixture.look(item)
    [(_, body, _)] = fixture.api.applied
    assert {one["name"] for one in body["status"]["admissionChecks"]} == {"fleet", "later"}
    assert {**retry, "requeueAfterSeconds": 4200} in body["status"]["admissionChecks"]


async def test_who_was_let_in_is_not_sent_back_while_the_workers_are_not_known() -> None:
    fixture = gated()
    bound = {"kueue-fleet.dev/regions": "europe-west4"}
    await fixture.look(workload(checks=READY, labels=bound))
    fixture.manager.take_config("multikueue", None)
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.check("fleet")["state"] == "Ready"


async def test_who_may_be_anywhere_passes_whatever_the_workers_are() -> None:
    fixture = gated()
    fixture.manager.take_config("multikueue", None)
    await fixture.look(workload(checks=BOTH))
    assert fixture.check("fleet")["state"] == "Ready"


async def test_no_worker_where_the_data_may_be_rejects() -> None:
    fixture = gated()
    await fixture.look(workload(checks=BOTH, labels={"kueue-fleet.dev/regions": "asia-east1"}))
    assert fixture.check("fleet")["state"] == "Rejected"


async def test_a_job_that_no_worker_can_ever_hold_is_rejected_with_the_reason() -> None:
    fixture = Fixture(dispatch={"rejectAfter": "10s"})
    assert await fixture.look(workload(gpus=9)) == NOW + 10
    fixture.clock.now += 10
    fixture.restart()
    await fixture.reconciler.reconcile("ns/train")
    text = "None of 2 clusters can ever run this job: eu ExceedsMaxQuota, us ExceedsMaxQuota; request less, or change"
    assert dispatch_condition(fixture)["reason"] == "FitsNoCluster"
    result = fixture.check("multikueue")
    assert (result["state"], result["lastTransitionTime"]) == ("Rejected", when(10))
    assert result["message"].startswith(text)
    assert fixture.told[-1][0] == "FitsNoCluster"
    [*_, (_, body, manager)] = fixture.api.applied
    assert (manager, set(body["status"])) == (REJECT_MANAGER, {"admissionChecks"})
    fixture.clock.now += 3600
    written = len(fixture.api.applied)
    assert await fixture.reconciler.reconcile("ns/train") is None
    assert len(fixture.api.applied) == written


async def test_a_job_whose_only_worker_leaves_the_queue_is_not_rejected_before_the_set_time() -> None:
    """It has waited for that worker for longer than that, which it could have run on one day."""
    fixture = Fixture(dispatch={"rejectAfter": "10s"})
    fixture.connect("eu", active=False, message="no route to host")
    await fixture.look(workload(gpus=9))
    fixture.clock.now += 3600
    fixture.connect("eu")
    assert await fixture.reconciler.reconcile("ns/train") == NOW + 3610
    assert fixture.check("multikueue")["state"] == "Pending"
    fixture.restart()
    fixture.clock.now += 9
    assert await fixture.reconciler.reconcile("ns/train") == NOW + 3610
    fixture.clock.now += 1
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.check("multikueue")["state"] == "Rejected"


async def test_a_rejection_that_was_not_written_is_written_at_the_next_look() -> None:
    fixture = Fixture(dispatch={"rejectAfter": "0s"})
    fixture.api.failures = []
    key = fixture.take(workload(gpus=9))
    refused = fixture.api.apply

    async def refuse(path: str, body: Any, manager: str) -> Any:
        if manager == REJECT_MANAGER:
            raise ApiError(500, "InternalError", "down")
        return await refused(path, body, manager)

    fixture.api.apply = refuse  # type: ignore[method-assign]
    with pytest.raises(ApiError):
        await fixture.reconciler.reconcile(key)
    assert fixture.check("multikueue")["state"] == "Pending"
    fixture.api.apply = refused  # type: ignore[method-assign]
    fixture.restart()
    await fixture.reconciler.reconcile(key)
    assert fixture.check("multikueue")["state"] == "Rejected"


async def test_a_check_that_names_this_controller_becomes_active() -> None:
    fixture = gated()
    await fixture.reconciler.reconcile_check("fleet")
    [(path, body, _)] = fixture.api.applied
    assert path.endswith("/admissionchecks/fleet/status")
    [result] = body["status"]["conditions"]
    assert (result["type"], result["status"]) == ("Active", "True")
    await fixture.reconciler.reconcile_check("fleet")
    assert len(fixture.api.applied) == 1


async def test_a_check_without_rules_is_not_active_and_says_what_to_do() -> None:
    fixture = Fixture()
    fixture.take_check("unknown", CHECK)
    await fixture.reconciler.reconcile_check("unknown")
    [(_, body, _)] = fixture.api.applied
    [result] = body["status"]["conditions"]
    assert result["status"] == "False"
    assert "controller.checks of the fleet has no unknown" in result["message"]


async def test_checks_of_others_are_left_alone() -> None:
    fixture = Fixture()
    fixture.take_check("other", "example.com/other")
    await fixture.reconciler.reconcile_check("other")
    await fixture.reconciler.reconcile_check("gone")
    assert fixture.api.applied == []
