from __future__ import annotations

from kueue_fleet.admission.dispatch import WaitingTimes
from kueue_fleet.admission.dispatch.waiting import MEMORY_SECONDS, SAMPLES


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


def test_a_worker_that_never_admitted_anybody() -> None:
    times = WaitingTimes()
    times.waits("b", "w", "q", 100.0)
    times.waits("b", "w", "q", 190.0)
    assert times.seconds("w", "q", 200.0) == 100.0
