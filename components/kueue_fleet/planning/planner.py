"""The answer of `plan`: the cheapest fleet that was found, why each change is there, and what is not known.

What simulates is given, so that it may use several processes and what is known from a search that was interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Final, NamedTuple, Protocol

from kueue_admission.read.goals import Standing
from kueue_fleet.fleet_file import FleetSpec, Spot
from kueue_fleet.fleet_file.goals import goals_of
from kueue_fleet.gke.prices import HOURS_PER_MONTH
from kueue_fleet.google.cost import cost_of
from kueue_fleet.planning.plan import FAR, Question, Terms, Tried, missed_by
from kueue_fleet.planning.replay import Replay, Window
from kueue_fleet.planning.search import Outcome, Point, Search

_WORSE: Final = (Standing.MISSED, Standing.AT_RISK, Standing.NOT_KNOWN, Standing.MET)


class Simulate(Protocol):
    """Simulates a fleet once for each seed; unless `whole`, it may end as soon as a goal is missed in one of them."""

    def __call__(self, point: Point, *, whole: bool, window: Window | None = None) -> list[Tried]:
        """The simulations of a point."""


class Goal(NamedTuple):
    """How it is with a goal in all simulations: as in the worst."""

    path: str
    standing: Standing
    why: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fleet that was simulated to the end."""

    point: Point
    paid: float
    """USD a month, whether it is used or not."""
    used: float
    """USD a month for what jobs use beyond that."""
    wait: float
    """Mean seconds that jobs wait."""
    unpriced: float
    """GPU hours a week without a price."""
    goals: tuple[Goal, ...]
    short: float
    """How far goals are missed, or at risk; 0: not at all."""

    @property
    def cost(self) -> float:
        """USD a month."""
        return self.paid + self.used

    @property
    def missed(self) -> list[Goal]:
        """The goals that it misses."""
        return [goal for goal in self.goals if goal.standing is Standing.MISSED]

    def as_json(self, question: Question) -> dict[str, Any]:
        """Its fields, with what is other than in the file."""
        return {
            "changes": [change.text for change in question.changes(self.point)],
            "usdAMonth": round(self.cost, 2),
            "paidAnywayUsdAMonth": round(self.paid, 2),
            "meanWaitSeconds": round(self.wait, 1),
            "gpuHoursAWeekWithoutPrice": round(self.unpriced, 1),
            "goals": [goal._asdict() for goal in self.goals],
        }


class Reason(NamedTuple):
    """Why a number is other than today: how it would be if it alone stayed. None: `check` refuses that."""

    knob: int
    without: Candidate | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found. `held_out` is how the goals fare in the weeks that the search did not see."""

    today: Candidate
    best: Candidate
    is_good: bool
    """Whether it misses no goal, and is within the budget."""
    reasons: tuple[Reason, ...]
    frontier: tuple[Candidate, ...]
    """The Pareto frontier: no simulated fleet is both cheaper and faster than one of these; the cheapest first."""
    held_out: tuple[Goal, ...]
    search: Search
    not_known: tuple[str, ...]
    refused_for: tuple[str, ...]
    """What `check` says of fleets that were not tried, of each problem once."""


class NoGoalKnownError(Exception):
    """No goal can be judged by the history, so that any fleet would do; `reasons` say why."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons))


class Planner:
    """Answers a question; `say` is given what is going on."""

    def __init__(
        self, question: Question, simulate: Simulate, most: int, budget: float, say: Callable[[str], None]
    ) -> None:
        self._question, self._simulate, self._say = question, simulate, say
        self._terms = Terms(question)
        self._whole: dict[Point, Candidate] = {}
        self._goals = [goal.path for goal in goals_of(question.fleet(question.today))]
        sizes = [len(knob.levels) for knob in question.knobs]
        unordered_knobs = frozenset(number for number, knob in enumerate(question.knobs) if not knob.is_ordered)
        self._search = Search(
            sizes, self._evaluate, self._terms.floor, most, budget, unordered_knobs, paid=self._terms.paid
        )

    def answer(self, held_out: Window | None) -> Answer:
        """The search, and what is made of it. Raises NoGoalKnownError."""
        today = self._candidate(self._question.today)
        if all(goal.standing is Standing.NOT_KNOWN for goal in today.goals):
            raise NoGoalKnownError(dict.fromkeys(not_known(self._question, today)))
        best = self._search.run(self._question.today)
        best = self._kept_as_today(best)
        candidate = self._candidate(best)
        for point in self._around(best):
            self._candidate(point)
        return Answer(
            today,
            candidate,
            not candidate.missed and candidate.cost <= self._search.budget,
            tuple(self._reasons(best)),
            tuple(_frontier(self._whole.values())),
            self._judged(self._simulate(best, whole=True, window=held_out)) if held_out is not None else (),
            self._search,
            tuple(dict.fromkeys(not_known(self._question, candidate))),
            tuple(dict.fromkeys(str(self._terms.refusals[point]) for point in sorted(self._search.refused))),
        )

    def _evaluate(self, point: Point, whole: bool) -> Outcome:
        result = self._simulate(point, whole=whole)
        missed_goals = self._missed(result)
        paid = self._terms.floor(point) or 0.0
        cost = math.inf if math.isinf(missed_goals) else self._cost(point, paid, result).cost
        search = self._search
        now = search.evaluated.get(search.best)
        best_text = "" if now is None else f", the best one costs {now.cost:,.0f} USD a month"
        goals = " and misses goals" if now is not None and now.missed else ""
        self._say(f"{len(search.evaluated) + 1} of at most {search.most} fleets simulated{best_text}{goals}")
        return Outcome(missed_goals, cost)

    def _cost(self, point: Point, paid: float, trials: Sequence[Tried]) -> Candidate:
        usage = HOURS_PER_MONTH * mean(trial.used for trial in trials)
        wait, unpriced_mean = mean(trial.wait for trial in trials), mean(trial.unpriced for trial in trials)
        self._whole[point] = candidate = Candidate(
            point, paid, usage, wait, unpriced_mean, self._judged(trials), self._missed(trials)
        )
        return candidate

    def _candidate(self, point: Point) -> Candidate:
        """A point simulated to the end, which `check` accepts or which is the file's."""
        if point not in self._whole:
            self._cost(point, self._terms.floor(point) or 0.0, self._simulate(point, whole=True))
        return self._whole[point]

    def _missed(self, trials: Sequence[Tried]) -> float:
        """How far goals are missed; most of all by a fleet in which one is not known that is known today."""
        today = self._whole.get(self._question.today)
        lost = 0
        if today is not None and not any(trial.stopped for trial in trials):
            lost = sum(
                now.standing is Standing.NOT_KNOWN is not was.standing
                for now, was in zip(self._judged(trials), today.goals, strict=True)
            )
        return missed_by(trials) + FAR * lost

    def _judged(self, trials: Sequence[Tried]) -> tuple[Goal, ...]:
        return tuple(
            Goal(path, *min(of_goal, key=lambda each: _WORSE.index(each.standing)))
            for path, of_goal in zip(self._goals, zip(*(trial.goals for trial in trials), strict=True), strict=True)
        )

    def _with_today(self, point: Point, number: int) -> Point:
        return (*point[:number], self._question.today[number], *point[number + 1 :])

    def _kept_as_today(self, best: Point) -> Point:
        """The same without changes that save nothing, and without which no goal is missed."""
        for number in range(len(best)):
            trial = self._with_today(best, number)
            if trial == best or self._terms.floor(trial) is None:
                continue
            one, other = self._candidate(best), self._candidate(trial)
            if (other.short, other.cost) <= (one.short, one.cost):
                best = trial
        return best

    def _reasons(self, best: Point) -> Iterator[Reason]:
        for number, (level, today) in enumerate(zip(best, self._question.today, strict=True)):
            if level != today:
                trial = self._with_today(best, number)
                yield Reason(number, None if self._terms.floor(trial) is None else self._candidate(trial))

    def _around(self, best: Point) -> Iterator[Point]:
        """Fleets that are a step away, for the frontier."""
        for number, knob in enumerate(self._question.knobs):
            for way in (-1, 1):
                level = best[number] + way
                point = (*best[:number], level, *best[number + 1 :])
                if 0 <= level < len(knob.levels) and self._terms.floor(point) is not None:
                    yield point


def _frontier(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    least = math.inf
    for item in sorted(candidates, key=lambda candidate: (candidate.cost, candidate.wait)):
        if item.wait < least:
            least = item.wait
            yield item


def not_known(question: Question, candidate: Candidate) -> Iterator[str]:
    """What the history cannot say of a fleet."""
    fleet = question.fleet(candidate.point)
    replay = Replay(fleet, question.past, question.window, question.queues)
    for why, number in sorted(replay.left_out.items()):
        yield f"jobs {why} are left out: {number}"
    for what, number in sorted(replay.scaled.items()):
        yield f"jobs {what} are scaled to what a node allocates: {number}"
    for goal in candidate.goals:
        if goal.standing is Standing.NOT_KNOWN:
            yield f"whether {goal.path} meets a goal: {goal.why}"
    yield from _unseen_waits(fleet, replay)
    yield from _unseen_flavors(fleet, question)
    if candidate.unpriced:
        reason = "they count as on demand, which is not less, or as nothing where that is not known either"
        yield f"what {candidate.unpriced:,.0f} GPU hours a week cost, of flavors without a price: {reason}"
    for unknown_price in cost_of(fleet, question.prices).unknown:
        yield unknown_price if unknown_price.startswith("the price of ") else f"the cost of {unknown_price}"


def _unseen_waits(fleet: FleetSpec, replay: Replay) -> Iterator[str]:
    places_known = {(entry.check, entry.cluster) for entry in replay.drawn.file.waits}
    for check in fleet.admission_checks:
        for cluster in fleet.job_clusters if check.provisioning_request is not None else ():
            if check.name not in fleet.checks_on(cluster) or (check.name, cluster) in places_known:
                continue
            region = fleet.cluster(cluster).region
            other = (
                "those of other regions were taken" if (check.name, None) in places_known else "they take no time here"
            )
            yield f"how long {check.name} takes in {region}, as no wait of it there is recorded: {other}"


def _unseen_flavors(fleet: FleetSpec, question: Question) -> Iterator[str]:
    ran = {flavor for job in question.past.jobs for run in job.runs for flavor in run.flavors}
    for cluster in fleet.job_clusters:
        for name in sorted(fleet.flavors_on(cluster)):
            entry = fleet.flavor(name)
            if name in ran or entry is None:
                continue
            yield f"how fast jobs run on flavor {name}, as none of the history did: they run as long as elsewhere"
            if any(isinstance(pool.capacity, Spot) for pool in fleet.flavor_nodes(entry, cluster)):
                yield f"how often nodes of flavor {name} are reclaimed, for the same reason: they never are here"
