"""Quotas that are others in windows of time, on the virtual clock: jobs get them as soon as a window opens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.simulation.fleets import dispatched_data, job, workload_file

from kueue_admission.simulate.clock import EndReason
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.report import report_data
from kueue_admission.simulate.result import Result
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet

BEGIN, HOUR = "2026-12-01T00:00:00Z", 3600.0


def data(**during: Any) -> dict[str, Any]:
    """Each of two workers has one GPU, and eight from one to two every night."""
    result = dispatched_data(rejectAfter="30h")
    window = {"name": "night", "start": "2026-12-01T01:00:00Z", "duration": "1h"}
    result["controller"]["quotaWindows"] = [
        {**window, "days": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]}
    ]
    [gpus, *_] = result["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"]
    gpus |= {"nominalQuota": 1, "during": {"night": during or {"nominalQuota": 8}}}
    return result


def simulated(*jobs: dict[str, Any], until: float | None = None, begin: str = BEGIN, **changes: Any) -> Result:
    file = workload_file(list(jobs), begin=begin)
    return prepare_fleet(parse_fleet(data() | changes), file, Delays(), until=until).run()


def starts(result: Result) -> dict[str, float | None]:
    return {record.name: record.admitted_at for record in result.records}


def test_what_waits_is_admitted_when_the_window_opens_and_keeps_its_quota_when_it_closes() -> None:
    result = simulated(job("a", count=4, runSeconds=9000), job("late", start=7300, runSeconds=60))
    results = starts(result)
    assert [results[f"a-{number}"] for number in (1, 2)] == [0.0, 0.0]
    assert [results[f"a-{number}"] for number in (3, 4)] == pytest.approx([HOUR, HOUR], abs=2)
    assert all(len(record.runs) == 1 for record in result.records)
    # After two there is no quota for it on a worker until one has no other job any more.
    assert results["late"] == pytest.approx(HOUR + 9000, abs=3)


def test_a_job_that_fits_into_no_quota_but_that_of_the_window_waits_for_it() -> None:
    assert starts(simulated(job("large", pods=6)))["large"] == pytest.approx(HOUR, abs=2)


@pytest.mark.parametrize(("pods", "admitted"), [(2, HOUR), (3, None)])
def test_a_job_that_fits_on_no_worker_but_in_a_window_is_not_rejected(pods: int, admitted: float | None) -> None:
    """The manager has quota for it outside of the window, the sum of two workers, of which none has enough."""
    objects = data(nominalQuota=2)
    objects["controller"]["dispatch"]["rejectAfter"] = "2m"
    result = prepare_fleet(parse_fleet(objects), workload_file([job("large", pods=pods)], begin=BEGIN), Delays()).run()
    results = starts(result)["large"]
    assert results == (None if admitted is None else pytest.approx(admitted, abs=2))


def test_second_0_may_be_in_a_window() -> None:
    begin = "2026-12-01T01:30:00+00:00"
    result = starts(simulated(job("large", pods=6), job("again", start=1900, pods=6), begin=begin))
    # The window of the next day is 23.5 hours later.
    assert result["large"] == 0.0
    assert result["again"] == pytest.approx(23.5 * HOUR, abs=2)


def test_a_run_ends_though_windows_open_for_ever() -> None:
    result = simulated(job("never", pods=17), job("a"))
    assert (starts(result)["never"], result.end.reason) == (None, EndReason.NOTHING_MORE)
    completed = simulated(job("a"))
    assert completed.end.at <= HOUR


def test_a_long_run_still_has_windows_at_its_end() -> None:
    month = 30 * 24 * HOUR
    result = starts(simulated(job("long", count=2, runSeconds=month), job("large", start=month - HOUR, pods=6)))
    assert result["large"] == pytest.approx(month + HOUR, abs=2)


def test_windows_need_to_know_what_second_0_is() -> None:
    with pytest.raises(SimulationError, match="begin: not set, but quotas have windows"):
        prepare_fleet(parse_fleet(data()), workload_file([job("a")]), Delays())


def test_the_quota_of_a_report_follows_windows_and_its_axes_have_times() -> None:
    result = simulated(job("a", count=4, runSeconds=9000))
    results = report_data([("", result)])
    quotas = [
        item["y"]
        for item in results["sections"][0]["quotas"]
        if item["resource"] == "nvidia.com/gpu" and len(set(item.get("y", ()))) > 1
    ]
    by_time = dict(zip(results["x"], [sum(entry) for entry in zip(*quotas, strict=True)], strict=True))
    hours = 60.0 if results["unit"] == "minutes" else 1.0
    assert [by_time[hour * hours] for hour in (0, 1, 2)] == [2, 16, 2]
    assert results["begin"] == datetime(2026, 12, 1, tzinfo=UTC).timestamp()


def test_what_is_held_above_a_quota_that_ended_is_borrowed() -> None:
    result = report_data([("", simulated(job("a", count=4, runSeconds=9000)))])
    borrowed = [each["y"] for each in result["sections"][0]["series"] if each["kind"] == "borrowed"]
    at = result["x"].index(2 * (60.0 if result["unit"] == "minutes" else 1.0))
    assert sum(item[at] for item in borrowed) > 0
    assert sum(entry[at - 1] for entry in borrowed) == 0
