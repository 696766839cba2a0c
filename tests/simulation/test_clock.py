"""Virtual time always passes, and a run always ends: because nothing more happens, or because only the same does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.fleets import US, dispatched_data, fleet_data, job, workload_file

from kueue_admission.simulate import clock
from kueue_admission.simulate.agenda import Agenda
from kueue_admission.simulate.clock import REPEATS_SECONDS, End, EndReason, drive
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.result import Result
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet

DAY = 86_400.0


def run(data: dict[str, Any], jobs: list[dict[str, Any]], until: float | None = None, **rest: Any) -> Result:
    return prepare_fleet(parse_fleet(data), workload_file(jobs, **rest), Delays(), until=until).run()


def occupied() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Seven of the eight GPUs of each worker are taken for ever: `large` is offered, given up and offered again."""
    data = dispatched_data(giveUpAfter="1h")
    data["multiKueue"]["headroomPercent"] = 100
    taken = [
        job(f"taken-{region}", pods=7, runSeconds=None, labels={"kueue-fleet.dev/regions": region})
        for region in ("europe-west4", "us-east4")
    ]
    return data, [*taken, job("large", pods=2, start=1), job("small", start=2)]


def test_run_ends_when_nothing_more_happens() -> None:
    assert run(fleet_data(), [job("a")]).end == End(EndReason.NOTHING_MORE, 101.0)
    assert run(fleet_data(), [job("a")], until=5000).end == End(EndReason.UNTIL, 5000.0)


@pytest.mark.parametrize(
    ("data", "jobs", "rest"),
    [
        (*occupied(), {}),
        (fleet_data(), [job("without-nodes", requests={"cpu": 40})], {}),
        (
            fleet_data(),
            [job("often-reclaimed", runSeconds=2 * DAY)],
            {"reclaims": [{"flavor": "l4-spot", "perHour": 2}]},
        ),
    ],
)
def test_run_of_which_only_the_same_happens_again_ends(
    data: dict[str, Any], jobs: list[dict[str, Any]], rest: dict[str, Any]
) -> None:
    end = run(data, jobs, **rest).end
    assert end.reason is EndReason.REPEATS
    assert REPEATS_SECONDS <= end.at <= 30 * DAY


@pytest.mark.parametrize(
    ("seconds", "rest"),
    [
        (365 * DAY, {"reclaims": [{"flavor": "l4-spot", "perHour": 20}]}),
        (1e9, {"reclaims": [{"flavor": "l4-spot", "perHour": 3600}]}),
        (1e9, {"outages": [{"cluster": US, "at": 1e9, "seconds": 1e9}]}),
    ],
)
def test_run_of_which_the_same_happens_too_often_ends(
    seconds: float, rest: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "_MOST_REPEATS_BY_JOB", 1000)
    data, jobs = occupied()
    end = run(data, [*jobs, job("for-ever", start=3, runSeconds=seconds)], **rest).end
    assert end.reason is EndReason.REPEATS
    assert end.at < 60 * DAY


def test_run_goes_on_to_what_is_still_to_come() -> None:
    data, jobs = occupied()
    result = run(data, [*jobs, job("late", start=3 * DAY)], outages=[{"cluster": US, "at": 4 * DAY, "seconds": 60}])
    assert [record.name for record in result.records if record.finished_at is not None] == ["small", "late"]
    assert result.end.reason is EndReason.REPEATS
    assert result.end.at > REPEATS_SECONDS + 4 * DAY


def test_long_run_is_no_repetition() -> None:
    data, jobs = occupied()
    result = run(data, [*jobs, job("long", runSeconds=1.5 * DAY)])
    assert [record.name for record in result.records if record.finished_at is not None] == ["small", "long"]


def test_what_plans_itself_again_at_the_same_moment_is_stopped() -> None:
    agenda = Agenda()

    def again(now: float) -> None:
        agenda.plan(now, again)

    agenda.plan(5.0, again)
    assert drive(agenda, [], 0.0, 100.0) == End(EndReason.NEVER_SETTLES, 5.0)
    assert agenda.happened < 2000


def test_what_plans_itself_again_at_a_time_that_cannot_count_seconds_is_stopped() -> None:
    agenda = Agenda()

    def again(now: float) -> None:
        agenda.plan(now + 1, again)

    agenda.plan(1e17, again)
    assert drive(agenda, [], 0.0, 1e18) == End(EndReason.NEVER_SETTLES, 1e17)
    assert agenda.happened < 2000


def test_what_plans_itself_again_a_little_later_each_time_is_stopped() -> None:
    agenda = Agenda()

    def again(now: float) -> None:
        agenda.plan(now + 1e-6, again)

    agenda.plan(5.0, again)
    assert drive(agenda, [], 0.0, 1e9).reason is EndReason.NEVER_SETTLES
    assert agenda.happened < 2000


def test_interrupted_run_knows_what_happened_before() -> None:
    data, file = parse_fleet(fleet_data()), workload_file([job("a", count=50, interval=100)])
    result = prepare_fleet(data, file, Delays()).run(lambda now: now < 1000)
    assert result.end == End(EndReason.INTERRUPTED, 1000.0)
    assert len(result.records) == 11
    assert sum(record.finished_at is not None for record in result.records) == 10


def test_incremental_asks_more_workers_although_times_are_rounded() -> None:
    # (212.3 + 300) - 212.3 is less than 300.
    data = fleet_data()
    data["multiKueue"] |= {"dispatcher": "Incremental", "incremental": {"stepSize": 1}}
    jobs = [job("filler", count=9, runSeconds=5000, requests={"cpu": 10}), job("a", start=212.3, requests={"cpu": 10})]
    (result,) = (record for record in run(data, jobs).records if record.name == "a")
    assert result.first_admitted_at == 512.3


def test_window_that_opens_between_two_numbers_opens() -> None:
    # 1980-04-13T09:25:53.1Z and the seconds from there to the window are together less than the window's beginning.
    data = dispatched_data(giveUpAfter="1h")
    data["admissionChecks"] = [
        {"name": "ours", "controllerName": "kueue-fleet.dev/admission-check", "clusters": ["manager"]}
    ]
    data["clusterQueues"][0]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "ours"}]}
    window = {"name": "march", "start": "2027-03-01T02:51:57.7Z", "duration": "1h"}
    data["controller"]["checks"] = [{"name": "ours", "windows": [window]}]
    result = run(data, [job("a")], begin="1980-04-13T09:25:53.1Z")
    assert result.end.reason is EndReason.NOTHING_MORE
    assert result.records[0].finished_at is not None
