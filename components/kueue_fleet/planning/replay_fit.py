"""How well a replay fits what happened, and what a change does to waits: quantiles by ClusterQueue."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, NamedTuple

from kueue_admission.read.goals import Judged, Seen, Standing, judge
from kueue_admission.simulate.goals import seen
from kueue_fleet.fleet_file.goals import goals_of
from kueue_fleet.planning.replay import LATER, Replay, Replayed

SHARES: Final = {"p50": 0.5, "p90": 0.9}
"""The quantiles that are shown."""
CLOSE: Final = 0.1
"""Of what is recorded: a wait that differs by less, or by less than CLOSE_SECONDS, fits."""
CLOSE_SECONDS: Final = 60.0
"""Times of Kubernetes are whole seconds, and several pass between a decision and the next."""


class Spread(NamedTuple):
    """A number of several simulations: the middle one, the least and the most; infinite where jobs still waited."""

    middle: float
    least: float
    most: float

    def as_json(self) -> dict[str, float | None]:
        """Its fields; None where jobs still waited."""
        return {name: value if math.isfinite(value) else None for name, value in self._asdict().items()}


@dataclass(frozen=True, slots=True)
class Waits:
    """How jobs of a ClusterQueue waited, from arrival to first admission: in simulations, or really."""

    jobs: Spread
    admitted: Spread
    quantiles: Mapping[str, Spread]

    def as_json(self) -> dict[str, Any]:
        """Its fields."""
        parts = {"jobs": self.jobs, "admitted": self.admitted, **self.quantiles}
        return {name: spread.as_json() for name, spread in parts.items()}


@dataclass(frozen=True, slots=True)
class Fit:
    """What happened and its replay, by ClusterQueue, and what the replay cannot explain: sentences, with numbers."""

    recorded: Mapping[str, Waits]
    replayed: Mapping[str, Waits]
    close: float | None
    """Share of the jobs whose wait fits, in the middle simulation; None: of no job the wait is recorded."""
    not_explained: Sequence[str]

    def off(self, queue: str, share: str) -> float | None:
        """How far a quantile of the replay is from what happened, as a part of that; None: one of them is not known, or
        both are less than CLOSE_SECONDS."""
        was, middle = (waits[queue].quantiles[share].middle for waits in (self.recorded, self.replayed))
        if not (math.isfinite(was) and math.isfinite(middle)) or max(was, middle) < CLOSE_SECONDS:
            return None
        return (middle - was) / max(was, 1.0)


def fit_of(replay: Replay, runs: Sequence[Sequence[Replayed]]) -> Fit:
    """How simulations without any change compare with what happened."""
    counted_runs = [
        [job for job in run if _counts(replay, job) and not has_left(job) and _is_known(job)] for run in runs
    ]

    def was(job: Replayed) -> float:
        return _recorded(replay, job)

    def found(job: Replayed) -> float:
        """Of a job that waited at the end of the record, only an admission before that is one that did not happen."""
        at = job.record.first_admitted_at
        late = at is not None and at > replay.window.end - replay.window.begin
        return math.inf if late and math.isinf(was(job)) else _wait(job)

    close = [sum(_fits(was(job), found(job)) for job in run) / len(run) for run in counted_runs if run]
    return Fit(
        waits_of(replay, counted_runs[:1], was),
        waits_of(replay, counted_runs, found),
        median(close) if close else None,
        list(_not_explained(replay, runs)),
    )


def waits_of(
    replay: Replay, runs: Sequence[Iterable[Replayed]], wait: Callable[[Replayed], float] | None = None
) -> dict[str, Waits]:
    """How the jobs of the window waited in these simulations, by ClusterQueue; those that were deleted meanwhile do not
    count."""
    by_queue: dict[str, list[list[float]]] = {}
    for number, run in enumerate(runs):
        for job in run:
            if _counts(replay, job) and not has_left(job):
                queue = replay.targets[replay.queue_of(job.job)]
                waits_by_run = by_queue.setdefault(queue, [[] for _ in runs])
                waits_by_run[number].append((wait or _wait)(job))
    return {
        queue: Waits(
            _spread(map(len, waits_by_run)),
            _spread(sum(map(math.isfinite, waits)) for waits in waits_by_run),
            {
                name: _spread(_quantile(sorted(waits), share) for waits in waits_by_run)
                for name, share in SHARES.items()
            },
        )
        for queue, waits_by_run in sorted(by_queue.items())
    }


def goals_in(replay: Replay, runs: Sequence[Sequence[Replayed]]) -> list[Judged]:
    """How the goals fare in these simulations: as in the middle one, and at risk where one is missed in another."""
    goals, length = goals_of(replay.fleet), replay.window.end - replay.window.begin
    verdicts = [judge(goals, jobs_seen(replay, run), 0.0, length, length + LATER) for run in runs]
    return [_middle(of_goal) for of_goal in zip(*verdicts, strict=True)]


def jobs_seen(replay: Replay, run: Iterable[Replayed]) -> list[Seen]:
    """The jobs of a simulation as goals look at them, without those that were deleted while they waited."""
    length = replay.window.end - replay.window.begin
    return [_goal_job(replay, job, length) for job in run if not has_left(job)]


def _goal_job(replay: Replay, job: Replayed, length: float) -> Seen:
    job_seen = seen(job.record, replay.fleet.team_of.get(job.record.namespace, ""), length)
    early = job.job.arrival.time - replay.window.begin
    return dataclasses.replace(job_seen, arrived=early) if early < 0 else job_seen


def _middle(verdicts: Sequence[Judged]) -> Judged:
    order = [Standing.NOT_KNOWN, Standing.MET, Standing.AT_RISK, Standing.MISSED]
    middle = sorted(verdicts, key=lambda each: order.index(each.standing))[(len(verdicts) - 1) // 2]
    missed_count = sum(verdict.standing is Standing.MISSED for verdict in verdicts)
    if not missed_count or len(verdicts) == 1:
        return middle
    standing = middle.standing if middle.standing is Standing.MISSED else Standing.AT_RISK
    why = f"{middle.why}; missed in {missed_count} of {len(verdicts)} simulations"
    return dataclasses.replace(middle, standing=standing, why=why)


def _counts(replay: Replay, job: Replayed) -> bool:
    return replay.window.begin <= job.job.arrival.time < replay.window.end


def _is_known(job: Replayed) -> bool:
    """Whether the history says how long it waited, or that it waits."""
    return bool(job.job.runs) or job.job.ended is None


def has_left(job: Replayed) -> bool:
    """Whether it was deleted before it was admitted."""
    return job.job.is_deleted and not job.job.runs


def _wait(job: Replayed) -> float:
    record = job.record
    return math.inf if record.first_admitted_at is None else record.first_admitted_at - record.arrived_at


def _recorded(replay: Replay, each_job: Replayed) -> float:
    job = each_job.job
    is_known = job.wait is not None and job.runs[0].admitted <= replay.window.end
    return job.wait if is_known and job.wait is not None else math.inf


def _fits(was: float, value: float) -> bool:
    return was == value or abs(was - value) <= max(CLOSE_SECONDS, CLOSE * was)


def _spread(numbers: Iterable[float]) -> Spread:
    ordered_numbers = sorted(numbers)
    return Spread(ordered_numbers[(len(ordered_numbers) - 1) // 2], ordered_numbers[0], ordered_numbers[-1])


def _quantile(ordered_numbers: Sequence[float], share: float) -> float:
    return ordered_numbers[max(0, math.ceil(share * len(ordered_numbers)) - 1)] if ordered_numbers else 0.0


def _not_explained(replay: Replay, runs: Sequence[Sequence[Replayed]]) -> Iterable[str]:
    first = [job for job in runs[0] if _counts(replay, job)]
    for why, number in sorted(replay.left_out.items()):
        yield f"jobs {why}, left out: {number}"
    for what, number in sorted(replay.scaled.items()):
        yield f"jobs {what}, scaled to what a node allocates: {number}"
    if replay.past.without_arrival:
        yield f"Workloads without a record of their arrival, left out: {replay.past.without_arrival}"
    counts = Counter[str]()
    window = replay.window
    counts["requests for nodes that found no capacity, which make the waits that are drawn, each by itself"] = sum(
        window.begin <= stock_out.time <= window.end for stock_out in replay.past.stock_outs
    )
    for name in first:
        job, record = name.job, name.record
        was, is_admitted = math.isfinite(_recorded(replay, name)), record.first_admitted_at is not None
        counts["run times that are not recorded, drawn from those of jobs like them"] += job.run_seconds is None
        counts["jobs that were deleted while they waited"] += has_left(name)
        counts["jobs without a record of when they started"] += not (has_left(name) or _is_known(name))
        if not has_left(name) and _is_known(name):
            counts["jobs that were admitted, and are not in the replay"] += was and not is_admitted
            counts["jobs that were not admitted, and are in the replay"] += is_admitted and not was
        counts["jobs that ran on another cluster than in the replay"] += bool(
            job.runs and record.runs and job.runs[0].cluster and job.runs[0].cluster != record.runs[0].cluster
        )
        counts["evictions that happened"] += job.evictions
        counts["evictions in the replay"] += len(record.evictions)
    for what, number in counts.items():
        if number:
            yield f"{what}: {number}"
    if unseen := sorted(_unseen_checks(replay)):
        yield f"waits for {', '.join(unseen)}, which are not recorded and take no time here"


def _unseen_checks(replay: Replay) -> set[str]:
    known_checks = {entry.check for entry in replay.drawn.file.waits}
    checks_asking = {check.name for check in replay.fleet.admission_checks if check.provisioning_request is not None}
    return checks_asking - known_checks
