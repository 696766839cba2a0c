from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn import examples
from kueue_fleet.dispatch import WaitingTimes
from kueue_fleet.dispatch.waiting import MEMORY_SECONDS, SAMPLES


def test_nothing_is_known_at_first() -> None:
    assert WaitingTimes().seconds("w", "q", 0.0) is None


def test_the_mean_of_recent_admissions() -> None:
    times = WaitingTimes()
    times.admitted("a", "w", "q", 100.0, 10.0)
    times.admitted("b", "w", "q", 110.0, 30.0)
    times.admitted("b", "w", "q", 110.0, 30.0)
    times.admitted("c", "w", "other", 110.0, 999.0)
    assert times.seconds("w", "q", 120.0) == 20.0


def test_only_the_latest_count_and_not_for_ever() -> None:
    times = WaitingTimes()
    times.admitted("old", "w", "q", 1.0, 1000.0)
    for n in range(SAMPLES):
        times.admitted(f"j{n}", "w", "q", 100.0 + n, 5.0)
    assert times.seconds("w", "q", 200.0) == 5.0
    assert times.seconds("w", "q", 200.0 + MEMORY_SECONDS) is None


def test_who_waits_longer_than_that_now_counts() -> None:
    times = WaitingTimes()
    times.admitted("a", "w", "q", 100.0, 10.0)
    times.waits("b", "w", "q", 100.0)
    assert times.seconds("w", "q", 105.0) == 10.0
    assert times.seconds("w", "q", 210.0) == 60.0
    times.gone("b")
    assert times.seconds("w", "q", 210.0) == 10.0


def test_whoever_is_taken_back_waits_there_no_more() -> None:
    times = WaitingTimes()
    for worker in ("v", "w"):
        times.waits("a", worker, "q", 100.0)
    times.waits_only("a", ["w"])
    assert times.seconds("v", "q", 200.0) is None
    assert times.seconds("w", "q", 200.0) == 100.0


def test_an_admission_of_the_far_future_is_none() -> None:
    times = WaitingTimes()
    times.admitted("a", "w", "q", 1e12, 1e9)
    assert times.seconds("w", "q", 100.0) is None


def test_a_worker_that_never_admitted_anybody() -> None:
    times = WaitingTimes()
    times.waits("b", "w", "q", 100.0)
    times.waits("b", "w", "q", 190.0)
    assert times.seconds("w", "q", 200.0) == 100.0


class Plain:
    """The same by going through all who wait."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self.waiting: dict[str, float] = {}

    def seconds(self, now: float) -> float | None:
        mean = sum(self.samples) / len(self.samples) if self.samples else None
        ages = [now - since for since in self.waiting.values()]
        counted = self.samples + [age for age in ages if mean is None or age > mean]
        return max(0.0, sum(counted) / len(counted)) if counted else None


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["waits", "gone", "admitted"]), st.integers(0, 8)), max_size=40))
def test_sums_that_are_kept_are_those_over_all_who_wait(steps: list[tuple[str, int]]) -> None:
    times, plain = WaitingTimes(), Plain()
    for at, (step, number) in enumerate(steps):
        key = f"j{number}"
        if step == "waits":
            times.waits(key, "w", "q", float(at))
            plain.waiting.setdefault(key, float(at))
        elif step == "gone":
            times.gone(key)
            plain.waiting.pop(key, None)
        elif len(plain.samples) < SAMPLES:
            times.admitted(f"a{at}", "w", "q", float(at), float(number))
            plain.samples.append(float(number))
        assert times.seconds("w", "q", at + 20.0) == pytest.approx(plain.seconds(at + 20.0))
