from __future__ import annotations

from tests.controller.build import COPY, NOW, Fixture, admitted_copy, condition, when, workload

from kueue_fleet.controller.ask_again import count_stuck
from kueue_fleet.dispatch.watchdog import GIVEN_UP_CONDITION
from kueue_fleet.settings.dispatch import Watchdog


def test_jobs_are_counted_by_what_they_wait_for_once_that_is_overdue() -> None:
    result = Fixture()
    used = {**condition(GIVEN_UP_CONDITION, message="us 3 times"), "reason": "RetriesUsed"}
    retry = workload("retry", conditions=[condition("Evicted")], checks={"dws": "Retry"})
    retry["status"]["admissionChecks"][0]["lastTransitionTime"] = when()
    for item in (
        workload(
            "runs",
            conditions=[condition("QuotaReserved"), condition("Admitted"), used],
            status={"clusterName": "us"},
        ),
        workload("waits"),
        workload("evicted", conditions=[condition("QuotaReserved"), condition("Evicted")]),
        workload("deleted", deletionTimestamp=when()),
        workload("dws", conditions=[condition("QuotaReserved"), used]),
        retry,
    ):
        result.take(item)
    ended = admitted_copy("runs", labels=COPY)
    ended["status"]["conditions"].append(condition("Finished"))
    result.workers["us"].take_workload("ns/runs", ended)
    settings = Watchdog(stuck_after="60s")
    counted = {"StuckEviction": 2, "StuckCheck": 1, "RetriesUsed": 1, "LostEnd": 1}
    assert count_stuck(result.fleet, settings, NOW + 60) == counted
    assert count_stuck(result.fleet, settings, NOW + 59) == {"RetriesUsed": 1}
