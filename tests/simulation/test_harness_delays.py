"""Kueue's performance harness and its delays, as `make bench` compares them."""

from __future__ import annotations

import json

import pytest

from bench.harness_delays import measure_delays
from bench.simulation import HARNESS_MEANS, generator_text
from kueue_fleet.simulation.generator import HARNESS_DELAYS, read_generator, simulate_generated
from kueue_fleet.simulation.result import waiting_times


def line(second: float, message: str, name: str, **fields: object) -> str:
    data = json.dumps({"workload": {"name": name, "namespace": "ns"}, **fields})
    return f"2026-01-01T00:00:{second:09.6f}Z\tLEVEL(-2)\tscheduler\tsource.go:1\t{message}\t{data}\n"


def test_delays_are_those_of_the_log() -> None:
    lines = [
        line(0, "Workload create event", "small-0", status="pending"),
        line(0.5, "Workload create event", "small-1", status="pending"),
        line(1, "Workload assumed in the cache", "small-0", schedulingCycle=1),
        line(1, "Workload re-queued", "small-1", schedulingCycle=1),
        line(1.2, "Workload re-queued", "small-2", schedulingCycle=1),
        line(3, "Workload re-queued", "small-1", schedulingCycle=2),
        line(1.4, "Workload update event", "small-0", status="admitted", prevStatus="pending"),
        line(4.6, "Workload update event", "small-0", status="finished", prevStatus="admitted"),
        "something else\n",
    ]
    delays, creation = measure_delays(lines, {"small": 3})
    assert creation.seconds == 0.5
    assert delays.write.numbers[0] == pytest.approx(0.2885)
    assert delays.start.numbers[0] == pytest.approx(0.5771)
    assert delays.release.numbers[0] == pytest.approx(0.2)
    assert (delays.decision, delays.burst) == (0.02, 100)


def test_waits_of_the_baseline_are_within_a_fifth_of_what_kueue_publishes() -> None:
    result = simulate_generated(read_generator(generator_text("baseline"), "baseline"), HARNESS_DELAYS)
    for wait in waiting_times(result.records):
        assert wait.mean == pytest.approx(HARNESS_MEANS["baseline"][wait.name] / 1000, rel=0.2)
