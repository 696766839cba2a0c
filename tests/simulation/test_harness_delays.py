"""Kueue's performance harness and its delays, as `make bench` compares them."""

from __future__ import annotations

import json

import pytest
from tests.bench.generator import HARNESS_DELAYS, prepare_generated, read_generator
from tests.bench.harness import recorded
from tests.bench.harness_delays import WINDOW_SECONDS, measure_delays
from tests.bench.harness_log import read_log
from tests.bench.simulation import HARNESS_MEANS, generator_text, measure

from kueue_admission.simulate.result import waiting_times

WORKERS = HARNESS_DELAYS.workers


def line(second: float, message: str, name: str | None = None, **fields: object) -> str:
    data = {**({"workload": {"name": name, "namespace": "ns"}} if name is not None else {}), **fields}
    time = f"2026-01-01T00:{int(second // 60):02}:{second % 60:09.6f}Z"
    return f"{time}\tLEVEL(-2)\tscheduler\tsource.go:1\t{message}\t{json.dumps(data)}\n"


def created(second: float, name: str) -> str:
    return line(second, "Workload create event", name, status="pending")


def put_back(second: float, name: str, reason: str = "") -> str:
    return line(second, "Workload re-queued", name, requeueReason=reason)


def assumed(second: float, name: str) -> str:
    return line(second, "Workload assumed in the cache", name)


def heard(second: float, name: str, status: str, before: str | None = None) -> str:
    fields = {"status": status} if before is None else {"status": status, "prevStatus": before}
    return line(second, "Workload update event", name, **fields)


def heads(second: float) -> str:
    return line(second, "Obtained heads", headCount=2)


def done(second: float) -> str:
    return line(second, "Workload processing done", duration="1s")


def means(lines: list[str], name: str) -> list[object]:
    delay = getattr(measure_delays(read_log([created(0, "small-0"), *lines]), {"small": 3})[0], name)
    assert delay.seconds == WINDOW_SECONDS
    return [pytest.approx(part.numbers[0]) for part in delay.parts]


def test_workloads_are_created_evenly() -> None:
    log = read_log([created(1, "small-0"), created(1.5, "small-1"), "something else\n"])
    delays, creation = measure_delays(log, {"small": 3})
    assert creation.seconds == 0.5
    assert (delays.decision, delays.burst, delays.workers) == (0.02, 100, 5)


def test_a_cycle_takes_until_it_puts_something_back_or_is_done() -> None:
    lines = [heads(1), put_back(1.1, "small-0"), done(9), heads(9.5), done(9.8)]
    assert means(lines, "cycle") == [0.2]


def test_cycles_that_write_evictions_are_not_counted() -> None:
    assert means([heads(1), put_back(5, "small-0", "PendingPreemption"), done(6)], "cycle") == [0]


def test_a_write_takes_until_the_scheduler_goes_on() -> None:
    lines = [
        *(heads(1), put_back(1, "small-0"), put_back(1.2, "small-1"), heard(1.3, "small-0", "pending")),
        *(done(1.6), heard(1.7, "small-1", "pending")),
    ]
    assert means(lines, "write") == [0.3]


def test_what_is_said_already_is_not_written() -> None:
    lines = [heads(1), put_back(1, "small-0"), put_back(1.4, "small-1"), done(1.4), heard(1.5, "small-0", "pending")]
    lines += [heads(2), put_back(2, "small-0"), put_back(2, "small-1"), done(2)]
    assert means(lines, "write") == [0.4]


def test_what_is_heard_late_is_told_from_what_was_written_next() -> None:
    lines = [heads(1), put_back(1, "small-0"), done(1.4), assumed(2, "small-0")]
    lines += [heard(2.1, "small-0", "pending"), heard(2.6, "small-0", "admitted", "pending")]
    assert means(lines, "write") == [0.4]
    assert means(lines, "start") == [0.6]


def test_most_calls_of_no_time_do_not_hide_a_long_one() -> None:
    lines = []
    for number in range(9):
        name, seconds = f"small-{number}", 0.9 if number == 4 else 0
        lines += [heads(number), put_back(number, name), done(number + seconds), heard(number + 0.95, name, "pending")]
    assert means(lines, "write") == [0.1]


def test_a_start_takes_from_its_turn_until_it_is_heard_of() -> None:
    """Of 150 reservations at once, 100 are written at once and the others one each 0.02 s; each takes 0.5 s."""
    turns = [max(0.0, 0.02 * (number - 99)) for number in range(150)]
    lines = [assumed(1, f"small-{number}") for number in range(150)]
    lines += [heard(1.5 + turn, f"small-{number}", "admitted", "pending") for number, turn in enumerate(turns)]
    assert means(lines, "start") == [0.5]


def test_a_turn_that_comes_early_makes_up_for_one_that_comes_late() -> None:
    lines = [assumed(1, "small-0"), assumed(1, "small-1")]
    lines += [heard(0.9, "small-0", "admitted", "pending"), heard(1.3, "small-1", "admitted", "pending")]
    assert means(lines, "start") == [0.1]


def test_a_release_takes_from_when_a_worker_is_free() -> None:
    """All end their runs at once; each worker takes a second for each."""
    names = [f"small-{number}" for number in range(3 * WORKERS)]
    lines = [text for name in names for text in (assumed(1, name), heard(1, name, "admitted", "pending"))]
    lines += [heard(5 + number // WORKERS, name, "finished", "admitted") for number, name in enumerate(names)]
    assert means(lines, "release") == [1]


def test_a_stop_takes_until_the_quota_is_free() -> None:
    lines = [assumed(1, "small-0"), heard(1, "small-0", "admitted", "pending")]
    lines += [heard(2, "small-0", "admitted"), heard(2.25, "small-0", "pending", "admitted")]
    assert means(lines, "stop") == [0.25]


def test_delays_change_as_the_machine_does() -> None:
    lines = []
    for second, took in ((11, 0.1), (12, 0.3), (31, 0.5)):
        name = f"small-{second}"
        lines += [assumed(second, name), heard(second + took, name, "admitted", "pending")]
    assert means(lines, "start") == [0.2, 0.2, 0.2, 0.5]


def test_waits_of_the_baseline_are_within_a_fifth_of_what_kueue_publishes() -> None:
    result = prepare_generated(read_generator(generator_text("baseline"), "baseline"), HARNESS_DELAYS).run()
    for wait in waiting_times(result.records):
        assert wait.mean == pytest.approx(HARNESS_MEANS["baseline"][wait.name] / 1000, rel=0.2)


def test_waits_of_the_recorded_run_are_within_a_tenth_of_what_it_measured() -> None:
    """Mean, median and 90th percentile of each class, over three seeds."""
    ran = recorded()
    result = measure("baseline", ran.delays, ran.creation, seeds=3)
    assert result["means"] == {label: pytest.approx(mean, rel=0.1) for label, mean in ran.means.items()}
    assert result["quantiles"] == {label: pytest.approx(both, rel=0.1) for label, both in ran.quantiles.items()}
