"""The search of `plan` on fleets whose costs and goals are formulas: beside all of them tried."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kueue_fleet.planning.search import Evaluate, Outcome, Point, Search

SIZES = (8, 8, 8)
PRICES = (9.0, 5.0, 2.0)
"""Of a level of reserved, Spot and on-demand nodes; what is paid anyway is that of the first."""


def priced(point: Point) -> float:
    return PRICES[0] * point[0]


def outcome(need: float) -> Evaluate:
    """Reserved and Spot nodes do most of the work; what is left takes the dearest ones, if there are enough."""

    def evaluate(point: Point, whole: bool) -> Outcome:
        left = max(0.0, need - 3 * point[0])
        spot = min(left, 2.0 * point[1])
        rest = left - spot
        return Outcome(max(0.0, rest - point[2]), priced(point) + PRICES[1] * spot + 8 * rest)

    return evaluate


def every(sizes: tuple[int, ...]) -> Iterator[Point]:
    return itertools.product(*map(range, sizes))


@pytest.mark.parametrize("need", range(1, 40, 3))
def test_it_finds_the_best_of_all_with_a_tenth_of_the_evaluations(need: float) -> None:
    evaluate = outcome(need)
    search = Search(SIZES, evaluate, priced, 10_000)
    result = evaluate(search.run((4, 4, 4)), True)
    best = min(evaluate(point, True) for point in every(SIZES))
    assert result.missed == best.missed
    assert result.cost <= best.cost + 1e-9
    assert len(search.evaluated) <= math.prod(SIZES) / 10


def test_what_costs_too_much_is_not_asked_whether_it_is_a_fleet() -> None:
    asked = []

    def floor(point: Point) -> float:
        asked.append(point)
        return priced(point)

    plain = Search(SIZES, outcome(20), priced, 10_000)
    search = Search(SIZES, outcome(20), floor, 10_000, paid=priced)
    assert search.run((4, 4, 4)) == plain.run((4, 4, 4))
    dearest = search.evaluated[search.best].cost
    late = asked[asked.index(search.best) :]
    assert late
    assert [point for point in late[1:] if priced(point) >= search.evaluated[(4, 4, 4)].cost] == []
    assert dearest <= plain.evaluated[plain.best].cost


def test_quota_goes_with_its_nodes() -> None:
    """A fleet whose queues may use more than its nodes hold is refused: neither number can be lowered alone."""
    search = Search(
        (9, 9, 9),
        lambda point, whole: Outcome(0.0 if min(point[1:]) >= 2 else 1.0, float(point[0])),
        lambda point: float(point[0]) if point[1] + point[2] <= point[0] else None,
        10_000,
    )
    assert search.run((8, 4, 4)) == (4, 2, 2)


def test_the_budget_is_kept_first() -> None:
    search = Search((9,), lambda point, whole: Outcome(float(point[0] < 6), 10.0 * point[0]), lambda _: 0.0, 100, 40.0)
    assert search.evaluated[search.run((8,))].cost <= 40
    assert not search.is_good


def test_what_costs_more_anyway_is_not_evaluated() -> None:
    search = Search((9,), lambda point, whole: Outcome(0.0, 10.0 * point[0]), lambda point: 10.0 * point[0], 100)
    search.run((4,))
    assert all(point[0] <= 4 for point in search.evaluated)


def test_it_ends_at_its_limit() -> None:
    search = Search(SIZES, outcome(20), priced, 5)
    search.run((0, 0, 0))
    assert len(search.evaluated) == 5
    assert search.is_spent


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.randoms(use_true_random=False), st.booleans())
def test_it_always_ends_and_is_never_worse_than_its_start(sizes: list[int], source: object, refuses: bool) -> None:
    known: dict[Point, Outcome] = {}
    draw = source.choice  # type: ignore[attr-defined]
    start = tuple(size - 1 for size in sizes)

    def evaluate(point: Point, whole: bool) -> Outcome:
        assert point not in known
        known[point] = Outcome(draw([0.0, 0.0, 1.0]), draw([1.0, 2.0, math.inf]))
        return known[point]

    refused = {point: refuses and draw([True, False]) for point in every(tuple(sizes)) if point != start}
    search = Search(sizes, evaluate, lambda point: None if refused.get(point) else 0.0, 10_000)
    assert known[search.run(start)] <= known[start]


def test_each_of_a_number_without_an_order_is_tried() -> None:
    """Of three machine types the last is the cheapest, and two of them with it do what four do without."""

    def evaluate(point: Point, whole: bool) -> Outcome:
        machine, count = point
        return Outcome(max(0.0, (2.0 if machine == 2 else 4.0) - count), (10.0, 30.0, 12.0)[machine] * count)

    search = Search((3, 9), evaluate, lambda point: 0.0, 10_000, unordered={0})
    assert search.run((0, 8)) == (2, 2)
