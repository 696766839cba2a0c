from __future__ import annotations

import pytest

from kueue_admission.simulate.delays import Delays, DrawnDelays, Workers, Writer, parse_delays
from kueue_admission.simulate.distributions import Changing, constant, exponential
from kueue_admission.simulate.errors import SimulationError


def test_writes_are_through_one_after_the_other() -> None:
    writer = Writer(0.5)
    assert [writer.write(at) for at in (0, 0, 0.1, 10)] == [0.5, 1.0, 1.5, 10.5]


def test_a_burst_is_through_at_once_and_comes_back_after_a_rest() -> None:
    writer = Writer(1, burst=2)
    assert [writer.write(0) for _ in range(4)] == [0, 0, 1, 2]
    assert [writer.write(10) for _ in range(3)] == [10, 10, 11]


def test_without_seconds_everything_is_through_at_once() -> None:
    assert [Writer(0).write(3) for _ in range(3)] == [3, 3, 3]


def test_delays_are_read_by_name() -> None:
    given = Delays(decision=0.02, burst=100)
    result = parse_delays(["burst=7", "release=exponential(0.5)", "stop=3", "workers=2", "cycle=1"], given)
    assert result == Delays(
        decision=0.02, burst=7, cycle=constant(1), release=exponential(0.5), workers=2, stop=constant(3)
    )


def test_every_mistake_is_named() -> None:
    texts = ["relase=1", "release", "stop=-1", "burst=1.5", "decision=exponential(1)", "write=nan", "start=soon"]
    texts += [f"workers={'9' * 5000}", "cycle=1_0", "stop=٣", "start=1e10"]
    with pytest.raises(SimulationError) as refused:
        parse_delays(texts, Delays())
    assert len(refused.value.problems) == len(texts)
    for text, problem in zip(texts, refused.value.problems, strict=True):
        assert text.partition("=")[0] in str(problem)


def test_the_same_seed_draws_the_same() -> None:
    delays = Delays(release=exponential(1))
    first, again, other = (DrawnDelays(delays, seed) for seed in ("1:a", "1:a", "2:a"))
    drawn = [first.release(0) for _ in range(5)]
    assert drawn == [again.release(0) for _ in range(5)]
    assert drawn != [other.release(0) for _ in range(5)]


def test_delays_can_change_as_time_passes() -> None:
    delays = DrawnDelays(Delays(start=Changing(10, (constant(1), constant(2)))), "seed")
    assert [delays.start(now) for now in (-1, 0, 9.9, 10, 500)] == [1, 1, 1, 2, 2]


def test_ends_of_runs_wait_for_a_worker() -> None:
    workers = Workers(2)
    assert [workers.done(now, lambda begun: 3.0) for now in (0, 1, 1, 2, 20)] == [3, 4, 6, 7, 23]
    assert [Workers(0).done(now, lambda begun: begun) for now in (1, 1, 1)] == [2, 2, 2]
