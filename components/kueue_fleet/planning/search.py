"""The search of `plan`: the cheapest point of a lattice at which nothing is missed.

A compass search: from the best point so far each number is tried one step lower and higher, and the steps are halved
when none of it is better. When steps of 1 lead nowhere, one number is lowered while another is raised. Better is what
misses less, then what costs less. A point with no more of anything than one that misses a goal is taken to miss it too.
Each move is an improvement among a finite number of points, so the search ends, also without a limit. It depends on
nothing but its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice, permutations, product
from typing import NamedTuple

Point = tuple[int, ...]
"""The level of each number, counted from 0."""


class Outcome(NamedTuple):
    """What is known of a point."""

    missed: float
    """How far goals are missed; 0: none is."""
    cost: float


Evaluate = Callable[[Point, bool], Outcome]
"""The outcome of a point, by simulation. False: `missed` may be any number above 0 once it is sure not to be 0."""
Floor = Callable[[Point], float | None]
"""What a point costs at least, known without a simulation; None: it is not a fleet."""


@dataclass
class Search:
    """`sizes` are the numbers of levels. At most `most` points are evaluated; `evaluated` has them, `pruned` counts
    those that cannot be better, whatever a simulation says."""

    sizes: Sequence[int]
    evaluate: Evaluate
    floor: Floor
    most: int
    budget: float = math.inf
    """What it may cost; above it, less is better even if it misses more."""
    unordered: Set[int] = frozenset()
    """Numbers of which a higher level is not more of anything, such as machine types: each is tried."""
    paid: Floor | None = None
    """The same as `floor`, at less effort, also where a point is not a fleet."""
    evaluated: dict[Point, Outcome] = field(default_factory=dict)
    pruned: set[Point] = field(default_factory=set)
    refused: set[Point] = field(default_factory=set)
    best: Point = ()

    @property
    def is_spent(self) -> bool:
        """Whether the limit is reached."""
        return len(self.evaluated) >= self.most

    def run(self, start: Point) -> Point:
        """The best point that is found from `start`, which is a fleet, and from the ends and the middle on."""
        self.best = start
        self.evaluated[start] = self.evaluate(start, True)
        for share in (1.0, 0.5, 0.0):
            self._consider(tuple(round(share * (size - 1)) for size in self.sizes))
        steps = [max(1, size // 2) for size in self.sizes]
        while not self.is_spent:
            if self._any(self._neighbours(steps)):
                continue
            if max(steps) > 1:
                steps = [max(1, step // 2) for step in steps]
            elif not self._any(self._exchanges()):
                break
        return self.best

    def _any(self, points: Iterator[Point]) -> bool:
        """Move to each that is better, and say whether one was; the next ones are those of the new point."""
        has_moved = False
        for point in points:
            has_moved = self._consider(point) or has_moved
        return has_moved

    def _neighbours(self, steps: Sequence[int]) -> Iterator[Point]:
        """What saves most comes first."""
        for number in sorted(range(len(self.sizes)), key=self._saved, reverse=True):
            if number in self.unordered:
                for level in range(self.sizes[number]):
                    step = level - self.best[number]
                    yield from () if not step else (*self._fleets({number: step}, -1), *self._fleets({number: step}, 1))
                continue
            for way in (-1, 1):
                before: Point = ()
                while before != self.best:  # Go on where the last step was an improvement.
                    before = self.best
                    yield from self._fleets({number: way * steps[number]}, way)

    def _exchanges(self) -> Iterator[Point]:
        """One number lower, and another one higher: by a level, and by as many as what is saved pays for; or lower with
        another of what has no order."""
        for number, other in product(self.unordered, sorted({*range(len(self.sizes))} - self.unordered)):
            for step in (level - self.best[number] for level in range(self.sizes[number])):
                for down in range(1, self.best[other] + 1) if step else ():
                    yield from self._fleets({number: step, other: -down}, -1)
        for less, more in permutations(sorted({*range(len(self.sizes))} - self.unordered), 2):
            level = self.best[less]
            for down in sorted({*(1 << power for power in range(level.bit_length())), level} - {0}):
                base, ups = self.best, range(self.sizes[more] - 1 - self.best[more], 0, -1)
                yield from list(self._fleets({less: -down, more: 1}, -1)) if ups else ()
                steps = ({less: -down, more: up} for up in ups)
                points = (
                    self._fleets(step, -1, base) for step in steps if not self._costs_more(self._moved(step, base))
                )
                paid = ([point for point in of_up if not self._costs_more(point)] for of_up in points)
                yield from next((of_up for of_up in paid if of_up), ())

    def _fleets(self, steps: dict[int, int], way: int, base: Point = ()) -> Iterator[Point]:
        """The point that the steps lead to, from the best one or `base`. Where it is not a fleet, as quota has to fit
        its nodes: those where another number has gone the same way, as little as is needed."""
        base = base or self.best
        point = self._moved(steps, base)
        if self.floor(point) is not None:
            yield point
            return
        for number, size in enumerate(self.sizes):
            stays = number in steps or number in self.unordered
            ways = (self._moved({**steps, number: way * times}, base) for times in range(1, 0 if stays else size))
            yield from islice((other for other in ways if self.floor(other) is not None), 1)

    def _moved(self, steps: dict[int, int], base: Point) -> Point:
        levels = (level + steps.get(number, 0) for number, level in enumerate(base))
        return tuple(min(max(level, 0), size - 1) for level, size in zip(levels, self.sizes, strict=True))

    def _saved(self, number: int) -> float:
        """What one level less of a number saves of what is paid anyway."""
        now, less = self.floor(self.best), self.floor(self._moved({number: -1}, self.best))
        return 0.0 if now is None or less is None else now - less

    def _costs_more(self, point: Point) -> bool:
        """Whether at least as much is paid anyway as the best one costs."""
        return self.is_good and ((self.paid or self.floor)(point) or 0.0) >= self.evaluated[self.best].cost

    def _has_less(self, point: Point) -> bool:
        """Whether a point with no less of anything misses a goal."""
        return any(
            trial.missed
            and all(mine <= its for mine, its in zip(point, other, strict=True))
            and all(point[number] == other[number] for number in self.unordered)
            for other, trial in self.evaluated.items()
        )

    def _consider(self, point: Point) -> bool:
        if point in self.evaluated or point in self.pruned or point in self.refused or self.is_spent:
            return False
        is_good = self.is_good
        if self._costs_more(point) or (is_good and self._has_less(point)):
            self.pruned.add(point)
            return False
        if self.floor(point) is None:
            self.refused.add(point)
            return False
        self.evaluated[point] = self.evaluate(point, not is_good)
        is_better = self._rank(point) < self._rank(self.best)
        if is_better:
            self.best = point
        return is_better

    def _rank(self, point: Point) -> tuple[float, float]:
        missed_goals, cost = self.evaluated[point]
        return max(missed_goals, 0.0 if cost <= self.budget else cost / self.budget), cost

    @property
    def is_good(self) -> bool:
        """Whether the best one misses nothing, and costs no more than the budget."""
        return not self._rank(self.best)[0]
