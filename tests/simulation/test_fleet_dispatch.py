"""The fleet's own dispatcher, admission checks and watchdog in a simulation."""

from __future__ import annotations

from typing import Any

from tests.simulation.fleets import EUROPE, US, dispatched_data, job, workload_file

from kueue_admission.simulate.delays import Delays
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet


def run(data: dict[str, Any], jobs: list[dict[str, Any]], until: float | None = None, **rest: Any) -> dict[str, Any]:
    result = prepare_fleet(parse_fleet(data), workload_file(jobs, **rest), Delays(), until=until).run()
    return {workload["name"]: workload for workload in result.as_json()["workloads"]}


def checked_data(check: dict[str, Any], **dispatch: Any) -> dict[str, Any]:
    data = dispatched_data(**dispatch)
    data["admissionChecks"] = [
        {"name": "ours", "controllerName": "kueue-fleet.dev/admission-check", "clusters": ["manager"]}
    ]
    data["clusterQueues"][0]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "ours"}]}
    data["controller"]["checks"] = [{"name": "ours", **check}]
    return data


def test_the_cheapest_worker_with_free_quota_is_asked_first_and_alone() -> None:
    result = run(dispatched_data(), [job("a")])["a"]
    assert (result["cluster"], result["copiesThrownAway"]) == (EUROPE, 0)


def test_a_team_stays_in_its_regions() -> None:
    jobs = [job("filler", count=8, runSeconds=500), job("bound", namespace="team-eu", start=1)]
    result = run(dispatched_data(), jobs)
    assert result["bound"]["cluster"] == EUROPE


def test_a_label_keeps_a_job_in_its_regions() -> None:
    result = run(dispatched_data(), [job("a", labels={"kueue-fleet.dev/regions": "us-east4"})])["a"]
    assert result["cluster"] == US


def test_more_workers_are_asked_after_a_while() -> None:
    # Europe is cheaper and is asked first; its eight GPUs are taken for long.
    jobs = [job("filler", count=8, runSeconds=5000, labels={"kueue-fleet.dev/regions": "europe-west4"})]
    data = dispatched_data(widenAfter="5m", weights={"free": 0, "waiting": 0})
    result = run(data, [*jobs, job("a", start=10)])
    assert (result["a"]["cluster"], result["a"]["admittedAt"]) == (US, 310.0)


def test_a_job_that_nobody_admits_gives_up_and_starts_again() -> None:
    jobs = [job("filler", count=16, runSeconds=3000), job("a", start=10)]
    data = checked_data({}, widenAfter="1m", giveUpAfter="10m", retryAfter="2m")
    data["multiKueue"]["headroomPercent"] = 100
    result = run(data, jobs, until=3200)["a"]
    # Given up 600 s after it got quota, and evicted 120 s later: Kueue waits with that until the time of the retry.
    assert [(eviction["time"], eviction["reason"]) for eviction in result["evictions"]] == [
        (730.0, "AdmissionCheck"),
        (1450.0, "AdmissionCheck"),
        (2170.0, "AdmissionCheck"),
        (2890.0, "AdmissionCheck"),
    ]
    assert result["state"] == "Finished"


def test_without_a_check_of_ours_the_job_keeps_its_quota_and_rests() -> None:
    jobs = [job("filler", count=16, runSeconds=1000), job("a", start=10)]
    data = dispatched_data(widenAfter="1m", giveUpAfter="10m", retryAfter="10m")
    data["multiKueue"]["headroomPercent"] = 100
    result = run(data, jobs)["a"]
    # Given up at 610, offered again at 1210.
    assert (result["quotaReservedAt"], result["admittedAt"], result["evictions"]) == (10.0, 1210.0, [])


def test_a_job_that_no_worker_can_ever_hold_frees_its_quota_for_those_behind_it() -> None:
    jobs = [job("too-large", pods=12), job("behind", start=1, pods=8)]
    result = run(dispatched_data(rejectAfter="2m"), jobs, until=3600)
    too_large = result["too-large"]
    assert (too_large["state"], too_large["reason"]) == ("Pending", "Deactivated")
    assert [(one["time"], one["reason"]) for one in too_large["evictions"]] == [(120.0, "Deactivated")]
    assert result["behind"]["admittedAt"] == 121.0


def test_watchdog_takes_a_job_back_from_a_worker_that_does_not_provision() -> None:
    data = dispatched_data(widenAfter="2h", giveUpAfter="10h")
    data["controller"]["watchdog"] = {"provisioningTimeout": "30m", "retries": 1}
    data["admissionChecks"] = [
        {"name": "dws", "provisioningRequest": {"provisioningClassName": "check-capacity.autoscaling.x-k8s.io"}}
    ]
    data["clusterQueues"][0]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "dws"}]}
    waits = [{"cluster": EUROPE, "seconds": 30_000}, {"seconds": 60}]
    result = run(data, [job("a")], waits=waits)["a"]
    assert (result["cluster"], result["admittedAt"]) == (US, 1860.0)


def test_checks_of_the_fleet_are_answered_by_its_rules() -> None:
    window = {"name": "december", "start": "2026-12-01T00:10:00Z", "duration": "1h"}
    data = checked_data({"runDuration": {"max": "1h"}, "windows": [window]})
    jobs = [job("fits", maxRunSeconds=600), job("silent"), job("long", maxRunSeconds=7200)]
    result = run(data, jobs, begin="2026-12-01T00:00:00Z")
    assert result["fits"]["admittedAt"] == 600.0
    for name in ("silent", "long"):
        assert (result[name]["state"], result[name]["reason"]) == ("Pending", "Deactivated")


def test_job_that_ran_on_a_lost_worker_starts_nowhere_else_before_the_worker_is_back() -> None:
    outage = {"cluster": EUROPE, "at": 100, "seconds": 5000}
    result = run(dispatched_data(), [job("a", runSeconds=30_000)], outages=[outage])["a"]
    assert [eviction["time"] for eviction in result["evictions"]] == [5100.0]
    assert [item["startedAt"] >= 5100.0 for item in result["runs"]] == [False, True]
    ended = run(dispatched_data(), [job("a", runSeconds=3000)], outages=[outage])["a"]
    assert (len(ended["runs"]), ended["evictions"], ended["state"]) == (1, [], "Finished")
