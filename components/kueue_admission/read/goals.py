"""Goals of waiting times, shares and GPU hours, and whether jobs, simulated or recorded, meet them.

A wait is from arrival to first admission. A share is that of the GPU hours which were in use while jobs of the goal
waited for their first admission. GPU hours of a week count where its jobs asked for so many: those that they held, and
those for which they waited.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

NEAR: Final = 0.8
"""How much of a goal may be used up before it is at risk."""
WEEK: Final = 7 * 86_400.0
"""Seconds of a week."""


class Standing(StrEnum):
    """How it is with a goal."""

    MET = "met"
    AT_RISK = "at risk"
    MISSED = "missed"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Goal:
    """One number that jobs of a ClusterQueue, or of a team, are to have."""

    path: str
    """Of its owner in the file: `clusterQueues[gpu]`."""
    of: Literal["wait", "share", "gpuHoursPerWeek"]
    limit: float
    """Seconds at most; a part of 1 at least; GPU hours at least."""
    queue: str = ""
    team: str = ""
    """One of the two is set."""
    quantile: float = 0.95
    """Of the waits, as a part of 1."""
    priority_class: str = ""
    """Only waits of jobs with it; empty: of all."""
    priority: int | None = None
    """Its value, by which jobs of the class are known."""

    def is_of(self, job: Seen) -> bool:
        """Whether it is about the job."""
        return self._owns(job) and self.priority in (None, job.priority)

    def _owns(self, job: Seen) -> bool:
        return job.team == self.team if self.team else job.queue == self.queue


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as goals look at it; times in seconds of one clock."""

    queue: str
    team: str
    priority: int | None
    gpus: float
    arrived: float
    admitted: float | None = None
    """For the first time; None: not yet."""
    held: tuple[tuple[float, float], ...] = ()
    """When it was admitted, each time from when to when."""
    not_known: bool = False
    """Whether it is not known that it will not start."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A goal, how it is with it, and why."""

    goal: Goal
    standing: Standing
    why: str
    found: float | None = None
    """In the unit of the goal; infinite where jobs wait indefinitely; None: not known."""

    def __str__(self) -> str:
        return f"{self.goal.path}: {self.why}"

    def to_dict(self) -> dict[str, object]:
        """Its fields, as in a JSON document; `found` is null where it is not known or has no end."""
        goal = self.goal
        figure = None if self.found is None or math.isinf(self.found) else self.found
        quantile = goal.quantile if goal.of == "wait" else None
        about = {"path": goal.path, "of": goal.of, "limit": goal.limit, "quantile": quantile}
        about |= {"priorityClass": goal.priority_class or None}
        return {**about, "standing": self.standing.value, "found": figure, "why": self.why}


def judge(goals: Iterable[Goal], jobs: Sequence[Seen], begin: float, end: float, until: float) -> list[Judged]:
    """How jobs compare with each goal from `begin` to `end`; what has not happened by `until` is not known to come."""
    verdicts = []
    for goal in goals:
        # When those that came earlier began to wait is not always known.
        own = [job for job in jobs if goal.is_of(job) and (goal.of != "wait" or job.arrived >= begin)]
        if not own:
            verdicts.append(Judged(goal, Standing.NOT_KNOWN, f"there is no job{_class(goal)} to judge by"))
        elif goal.of == "wait":
            verdicts.append(_wait(goal, own, until))
        elif goal.of == "share":
            verdicts.append(_share(goal, own, jobs, end))
        else:
            verdicts.append(_hours(goal, own, begin, end))
    return verdicts


def _class(goal: Goal) -> str:
    return f" of {goal.priority_class}" if goal.priority_class else ""


def _wait(goal: Goal, own: Sequence[Seen], known_until: float) -> Judged:
    waits, never, not_known = list[float](), 0, 0
    for job in own:
        if job.admitted is not None:
            waits.append(job.admitted - job.arrived)
        elif known_until - job.arrived > goal.limit:
            waits.append(math.inf)
            never += 1
            not_known += job.not_known
        # Else it came too late for anybody to know.
    if not waits:
        return Judged(goal, Standing.NOT_KNOWN, f"no job{_class(goal)} has waited long enough to judge by")
    ordered_waits = sorted(waits)
    seconds = ordered_waits[math.ceil(goal.quantile * len(ordered_waits)) - 1]
    is_kept, longer = seconds <= goal.limit, sum(wait > goal.limit for wait in waits) - not_known
    endless = "indefinitely" if never > not_known else "for a time that is not known"
    if math.isinf(known_until) or math.isfinite(seconds):
        length = endless if math.isinf(seconds) else f"at most {seconds:.1f} s"
    else:
        length = f"more than {goal.limit:g} s"
    text = f"of {len(waits)} jobs{_class(goal)} {100 * goal.quantile:g} % waited {length}"
    if is_kept or not longer:
        text += f"; the goal is {goal.limit:g} s"
    else:
        text += f", over the goal of {goal.limit:g} s, which {longer} exceeded"
    if never > not_known and not is_kept:
        text += f", {never - not_known} of them " + ("indefinitely" if math.isinf(known_until) else "still waiting")
    if not_known:
        text += f"; of {not_known} it is not known whether they start"
    near = seconds > NEAR * goal.limit
    return Judged(goal, _standing(is_kept=is_kept, near=near), text, seconds)


def _standing(*, is_kept: bool, near: bool) -> Standing:
    if not is_kept:
        return Standing.MISSED
    return Standing.AT_RISK if near else Standing.MET


def _waiting(job: Seen, end: float) -> tuple[float, float]:
    return job.arrived, end if job.admitted is None else min(job.admitted, end)


def _share(goal: Goal, own: Sequence[Seen], jobs: Sequence[Seen], end: float) -> Judged:
    waiting = list(_united(_waiting(job, end) for job in own))
    all_hours = _hours_in(jobs, waiting)
    if not waiting:
        return Judged(goal, Standing.MET, "none of its jobs had to wait")
    if not all_hours:
        return Judged(goal, Standing.NOT_KNOWN, "no GPU was in use while its jobs waited")
    waiting_share = _hours_in(own, waiting) / all_hours
    text = f"{waiting_share:.0%} of the GPUs in use while its jobs waited; the goal is {goal.limit:.0%}"
    return Judged(
        goal,
        _standing(is_kept=waiting_share >= goal.limit, near=NEAR * waiting_share < goal.limit),
        text,
        waiting_share,
    )


def _united(spans: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The times that any of the spans has, in order, without overlaps."""
    begin = end = -math.inf
    for first, last in sorted(span for span in spans if span[1] > span[0]):
        if first > end:
            if end > begin:
                yield begin, end
            begin, end = first, last
        end = max(end, last)
    if end > begin:
        yield begin, end


def _hours_in(jobs: Iterable[Seen], spans: Sequence[tuple[float, float]]) -> float:
    """GPU hours that were held in these spans, which do not overlap and are in order."""
    edges = [edge for span in spans for edge in span]
    covered_hours, total = [0.0], 0.0
    for number in range(1, len(edges)):
        covered_hours.append(covered_hours[-1] + (edges[number] - edges[number - 1] if number % 2 else 0.0))

    def before(time: float) -> float:
        number = bisect_right(edges, time)
        if not number:
            return 0.0
        return covered_hours[number - 1] + (time - edges[number - 1] if number % 2 else 0.0)

    for job in jobs:
        total += job.gpus * sum(before(last) - before(first) for first, last in job.held) if job.gpus else 0.0
    return total / 3600


def _hours(goal: Goal, own: Sequence[Seen], begin: float, end: float) -> Judged:
    weeks = int((end - begin) // WEEK)
    if not weeks:
        return Judged(goal, Standing.NOT_KNOWN, "less than a week of its GPU hours is known")
    most_hours, asked_in = math.inf, 0
    for number in range(weeks):
        week = [(begin + number * WEEK, begin + (number + 1) * WEEK)]
        hours_held = _hours_in(own, week)
        waited_hours = sum(job.gpus * _common(_waiting(job, end), week[0]) for job in own) / 3600
        if hours_held + waited_hours >= goal.limit:
            asked_in += 1
            most_hours = min(most_hours, hours_held)
    if not asked_in:
        return Judged(goal, Standing.MET, f"in none of {weeks} weeks its jobs asked for so many GPU hours")
    text = f"{most_hours:,.0f} GPU hours in the week with the fewest, of {asked_in} in which its jobs asked for "
    text += f"{goal.limit:,.0f}"
    return Judged(
        goal, _standing(is_kept=most_hours >= goal.limit, near=NEAR * most_hours < goal.limit), text, most_hours
    )


def _common(one: tuple[float, float], other: tuple[float, float]) -> float:
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
