"""Fleets that differ in some numbers, replayed: what each costs, which goals it misses, and how long jobs wait.

What is paid is what the fleet costs whether it is used or not, and, for GPUs that jobs hold beyond those that are paid
anyway, their price by the hour.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from kueue_admission.history.jobs import Past
from kueue_admission.kernel.form_rules import FaultError
from kueue_admission.kernel.job_rules import OPTION
from kueue_admission.kernel.problem import Problem, SpecError, errors_of
from kueue_admission.kernel.read_model import read_model
from kueue_admission.read.goals import WEEK, Goal, Judged, Standing, judge
from kueue_admission.simulate.clock import Watch
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.records import Record
from kueue_admission.simulate.result import Result
from kueue_admission.simulate.what_if import Change, apply_changes, parse_change
from kueue_fleet.fleet_file import Calendar, FleetSpec, Reserved
from kueue_fleet.fleet_file.calendar_pools import fleet_at
from kueue_fleet.fleet_file.check import FirstProblem
from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.fleet_file.form import read_form
from kueue_fleet.fleet_file.goals import goals_of
from kueue_fleet.fleet_file.knobs import Knob, knob_of
from kueue_fleet.fleet_file.model.planning import MayChange
from kueue_fleet.fleet_file.parse import Reading, read_fleet
from kueue_fleet.fleet_simulation.fleet import accelerator_usd
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES
from kueue_fleet.gke.prices import HOURS_PER_MONTH, Prices
from kueue_fleet.google.cost import cost_of
from kueue_fleet.planning.replay import LATER, Growth, Replay, Replayed, Window
from kueue_fleet.planning.replay_fit import goals_in, has_left, jobs_seen
from kueue_fleet.planning.search import Point

_LEVELS: Final = re.compile(r"(?P<least>[0-9]{1,12})\.\.(?P<most>[0-9]{1,12})(?:/(?P<step>[0-9]{1,12}))?")
_LOOK: Final = 21_600.0
"""Seconds of the simulation between two looks at whether a goal is missed already."""
_SCARCE: Final = 0.5
"""How far a goal that is at risk is missed: other weeks will not be like those of the history."""
_Job = TypeVar("_Job")
FAR: Final = 1000.0
"""How far a goal is missed at most, as where jobs wait indefinitely, or none runs."""


def parse_knob(text: str, data: Any) -> Knob:
    """The knob that `PATH[*N],...=LOW..HIGH[/STEP]`, or `PATH,...=TEXT,...`, says of a file's data. Raises
    SimulationError."""
    paths, equals, values_text = text.rpartition("=")
    path_list = [part.strip() for part in paths.split(",")]
    match = _LEVELS.fullmatch(values_text)
    fields: dict[str, Any] = {"values": [part.strip() for part in values_text.split(",")]}
    if match is not None:
        fields = {name: int(match[name]) for name in ("least", "most", "step") if match[name]}
    if not equals or (match is None and ".." in values_text):
        fix = "write it as nodePools[l4].nodeCount=0..8, or nodePools[l4].nodeCount,reservations[l4].count=0..8/2"
        raise _refused(text, "is not PATH=LOW..HIGH", fix)
    try:
        return knob_of(read_model(MayChange, {"paths": path_list, **fields}), data, text)
    except FaultError as wrong:
        raise _refused(text, wrong.fault.wrong, wrong.fault.fix) from None
    except SpecError as wrong:
        at = f"--may-change {text}"
        raise SimulationError(replace(problem, path=f"{at}: {problem.path}") for problem in wrong.problems) from None


def _refused(text: str, wrong: str, fix: str) -> SimulationError:
    return SimulationError([OPTION.at(f"--may-change {text}", wrong, fix)])


class GoalFound(NamedTuple):
    """How it was with a goal in one simulation, and why."""

    standing: Standing
    why: str


@dataclass(frozen=True, slots=True)
class Tried:
    """One simulation of a fleet. Where it was `stopped`, only that a goal is missed or at risk is known."""

    stopped: bool
    goals: tuple[GoalFound, ...] = ()
    used: float = 0.0
    """USD an hour, beyond what is paid anyway."""
    unpriced: float = 0.0
    """GPU hours a week whose price is not known; they count as on demand, if that is known."""
    wait: float = 0.0
    """Mean seconds from arrival to first admission, up to the end of the window where there was none."""

    missed: float = 0.0
    """How far goals are missed, or at risk: the sum of how many times as long, or as little, as their limits it is."""

    def as_json(self) -> dict[str, Any]:
        """Its fields."""
        return asdict(self)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Tried:
        """The same, from `as_json`."""
        goals = tuple(GoalFound(Standing(standing), why) for standing, why in data["goals"])
        return cls(**{**data, "goals": goals})


@dataclass(frozen=True, slots=True)
class Question:
    """What is planned: a fleet file's data, what may change of it, and the history that is replayed."""

    data: Any
    at: datetime
    past: Past
    window: Window
    knobs: Sequence[Knob]
    prices: Prices
    queues: Mapping[str, str] = field(default_factory=dict)
    growth: Growth = field(default_factory=Growth)
    seed: int = 0
    """Of the simulation in which jobs come as they came; in those with other seeds the days are drawn."""

    @property
    def today(self) -> Point:
        """The fleet as its file is."""
        return tuple(knob.today for knob in self.knobs)

    def changes(self, point: Point) -> list[Change]:
        """What is other than in the file."""
        change_list = [change for knob, level in zip(self.knobs, point, strict=True) for change in knob.changes(level)]
        return [parse_change(f"{path}={text}") for path, text in change_list]

    def form(self, point: Point) -> tuple[FleetSpec | None, list[Problem]]:
        """The fleet of a point as far as it could be read, and what is wrong with its form."""
        fleet, problems = read_form(FleetSpec, apply_changes(self.data, self.changes(point)))
        return (None if fleet is None or problems else fleet_at(fleet, self.at)), problems

    def reading(self, point: Point) -> Reading:
        """The fleet of a point, and what `check` says of it."""
        return read_fleet(apply_changes(self.data, self.changes(point)), self.at)

    def fleet(self, point: Point) -> FleetSpec:
        """The fleet of a point. Raises SpecError where it is none."""
        return self.reading(point).whole()

    def result(self, point: Point) -> Result:
        """A whole simulation of a point in which jobs come as they came, for a report."""
        replay = Replay(self.fleet(point), self.past, self.window, self.queues)
        return replay.result(self.seed, self.growth, self.prices)

    def simulate(self, point: Point, seed: int, *, whole: bool, window: Window | None = None) -> Tried:
        """One simulation. Unless `whole`, it ends when a goal is sure to be missed, or at risk."""
        fleet = self.fleet(point)
        replay = Replay(fleet, self.past, window or self.window, self.queues)
        is_recorded = seed == self.seed or replay.window != self.window
        stop = _Hopeless(replay, by_week=is_recorded)
        begun = (lambda _: None) if whole else stop.begun
        jobs = replay.run(seed, self.growth, begun, redrawn=not is_recorded)
        if stop.is_missed:
            return Tried(stopped=True)
        hours = (replay.window.end - replay.window.begin) / 3600
        usage, unpriced_usage = _use(fleet, jobs, 3600 * hours, self.prices)
        verdicts = list(_judged(replay, jobs) if is_recorded else goals_in(replay, [jobs]))
        goals = tuple(GoalFound(verdict.standing, verdict.why) for verdict in verdicts)
        wait = _mean_wait(jobs, 3600 * hours)
        return Tried(False, goals, usage / hours, 168 * unpriced_usage / hours, wait, sum(map(_missed, verdicts)))


class _Hopeless:
    """Ends a simulation when more jobs have waited too long than a goal lets, in all or, `by_week`, in a week."""

    def __init__(self, replay: Replay, *, by_week: bool) -> None:
        self._replay, self._by_week = replay, by_week
        self._look_at = 0.0
        self._allowed: list[tuple[float, int, list[Record]]] = []
        """Of each goal, in all and in each week: the longest wait, how many may wait longer, and the jobs."""
        self.is_missed = False

    def begun(self, jobs: list[Replayed]) -> Watch:
        """Called before anything happens."""
        replay = self._replay
        own = [job for job in jobs if not has_left(job) and job.job.arrival.time >= replay.window.begin]
        queues = [replay.targets[replay.queue_of(job_there.job)] for job_there in own]
        jobs_there = [
            (replace(job, queue=queue), job_there.record)
            for job, queue, job_there in zip(jobs_seen(replay, own), queues, own, strict=True)
        ]
        for goal in (goal for goal in goals_of(replay.fleet) if goal.of == "wait"):
            of_goal = [(job, record) for job, record in jobs_there if goal.is_of(job)]
            weeks = _weeks(goal, of_goal, lambda pair: pair[0].arrived) if self._by_week else ()
            for jobs_of in (of_goal, *weeks):
                late = len(jobs_of) - math.ceil(goal.quantile * len(jobs_of))
                self._allowed.append((goal.limit, late, [record for _, record in jobs_of]))

        def watch(now: float) -> bool:
            if now >= self._look_at and not self.is_missed:
                self._look_at = now + _LOOK
                self.is_missed = any(_late(records, limit, now) > late for limit, late, records in self._allowed)
            return not self.is_missed

        return watch


def _late(records: Iterable[Record], limit: float, now: float) -> int:
    """How many have waited longer."""
    waits = (
        (now if record.first_admitted_at is None else record.first_admitted_at) - record.arrived_at
        for record in records
    )
    return sum(wait > limit for wait in waits)


def _weeks(goal: Goal, jobs: Sequence[_Job], arrival_time: Callable[[_Job], float]) -> Iterator[list[_Job]]:
    """The jobs of each week, from the first on, in which they are enough for the quantile of a goal."""
    weeks: dict[int, list[_Job]] = {}
    for job in jobs:
        weeks.setdefault(int(arrival_time(job) // WEEK), []).append(job)
    enough = 1 / (1 - goal.quantile) - 1e-9
    yield from (of_week for _, of_week in sorted(weeks.items()) if len(of_week) >= enough)


def _judged(replay: Replay, jobs: Sequence[Replayed]) -> Iterator[Judged]:
    """How the goals fare. One that a week misses is at risk: `status` and the alert look at no more than a week."""
    length = replay.window.end - replay.window.begin
    jobs_there = jobs_seen(replay, jobs)
    for verdict in judge(goals_of(replay.fleet), jobs_there, 0.0, length, length + LATER):
        goal = verdict.goal
        own = [job for job in jobs_there if job.arrived >= 0 and goal.is_of(job)] if goal.of == "wait" else []
        weeks = [
            judge([goal], week, 0.0, length, length + LATER)[0] for week in _weeks(goal, own, attrgetter("arrived"))
        ]
        missed_weeks = [week for week in weeks if week.standing is Standing.MISSED]
        if missed_weeks and verdict.standing is not Standing.MISSED:
            why = f"{verdict.why}; but in {len(missed_weeks)} of {len(weeks)} weeks it is missed: {missed_weeks[0].why}"
            verdict = replace(verdict, standing=Standing.AT_RISK, why=why)
        yield verdict


def _missed(verdict: Judged) -> float:
    figure, limit = verdict.found, verdict.goal.limit
    if verdict.standing is not Standing.MISSED or figure is None:
        return _SCARCE if verdict.standing is Standing.AT_RISK else 0.0
    more, less = (figure, limit) if verdict.goal.of == "wait" else (limit, figure)
    return min(more / less, FAR) if less else FAR


def _mean_wait(jobs: Sequence[Replayed], length: float) -> float:
    waits = [
        (length if (at := job.record.first_admitted_at) is None else at) - job.record.arrived_at
        for job in jobs
        if 0 <= job.record.arrived_at < length
    ]
    return sum(waits) / len(waits) if waits else 0.0


def _use(fleet: FleetSpec, jobs: Sequence[Replayed], length: float, prices: Prices) -> tuple[float, float]:
    """USD for the GPU hours of the window beyond those that are paid anyway, and GPU hours without a price."""
    edges: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for run in (run for job in jobs for run in job.record.runs):
        for (flavor, resource), count in run.usage.items():
            begin, end = max(0.0, run.admitted_at), min(length, length if run.ended_at is None else run.ended_at)
            if resource in ACCELERATOR_RESOURCES and end > begin:
                edges.setdefault((run.cluster or fleet.home, flavor), []).extend([(begin, count), (end, -count)])
    known_usd, each_hour = accelerator_usd(fleet, prices), accelerator_usd(fleet, prices.at_most)
    usd = unpriced_amounts = 0.0
    for place, changes in edges.items():
        paid, hours, count_held, since = _paid_anyway(fleet, *place), 0.0, 0, 0.0
        for at, count in sorted(changes):
            hours += max(0, count_held - paid) * (at - since) / 3600
            count_held, since = count_held + count, at
        usd += hours * each_hour.get(place, 0.0)
        unpriced_amounts += 0.0 if place in known_usd else hours
    return usd, unpriced_amounts


def _paid_anyway(fleet: FleetSpec, cluster: str, flavor: str) -> float:
    """GPUs of a flavor on a cluster that are paid whether they are used or not."""
    entry = fleet.flavor(flavor)
    pools = fleet.flavor_nodes(entry, cluster) if entry is not None else ()
    return sum(
        (pool.max_nodes if isinstance(pool.capacity, Reserved | Calendar) else pool.min_nodes) * pool.devices_per_node
        for pool in pools
    )


class Terms:
    """What is known of a fleet without a simulation: whether it is one, and what is paid anyway."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._known: dict[Point, float | None] = {}
        self._paid: dict[Point, float | None] = {}
        self._said = {_about(problem) for problem in question.reading(question.today).problems}
        self._first = FirstProblem()
        self._refused: dict[tuple[str, str], Problem] = {}
        self.refusals: dict[Point, Problem] = {}
        """Why a point is not tried: the first thing that `check` says of it, or of one with the same problem."""

    def paid(self, point: Point) -> float | None:
        """The same as `floor`, without asking `check`; None where the form of the file is wrong."""
        if point not in self._paid:
            fleet, problems = self._question.form(point)
            paid = None if problems or fleet is None else cost_of(fleet, self._question.prices.at_most).always
            self._paid[point] = None if paid is None else paid * HOURS_PER_MONTH
        return self._paid[point]

    def floor(self, point: Point) -> float | None:
        """USD a month that are paid anyway; None where `check` refuses the fleet, or warns as it does not today."""
        if point not in self._known:
            self._known[point] = None if self._is_refused(point) else self.paid(point)
        return self._known[point]

    def _is_refused(self, point: Point) -> bool:
        fleet, _ = self._question.form(point)
        problem_there = None if fleet is None else self._first.of(Scope(fleet), lambda each: _about(each) in self._said)
        if problem_there is not None and _about(problem_there) in self._refused:
            self.refusals[point] = self._refused[_about(problem_there)]
            return True
        problems = self._question.reading(point).problems
        wrong = [*errors_of(problems), *(problem for problem in problems if _about(problem) not in self._said)]
        if wrong:
            self.refusals[point] = wrong[0]
            self._refused.update({} if problem_there is None else {_about(problem_there): wrong[0]})
        return bool(wrong)


def _about(problem: Problem) -> tuple[str, str]:
    return problem.rule.code, problem.path


def missed_by(trials: Sequence[Tried]) -> float:
    """How far simulations of a fleet miss goals, or put them at risk; 0: not at all."""
    if any(trial.stopped for trial in trials):
        return math.inf
    return sum(trial.missed for trial in trials) / len(trials)
