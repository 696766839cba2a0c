"""The goals of a fleet as numbers, and jobs of its history as they look at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kueue_admission.history.jobs import Past
from kueue_admission.history.metrics import judge_counted
from kueue_admission.kernel.names import GPU_RESOURCE
from kueue_admission.read.goals import Goal, Judged, Seen, Standing, judge
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cluster_queue_of
from kueue_fleet.fleet_file.model.teams import TeamEntry

_WHAT: Final = {
    "wait": "what {0.quantile:.0%} of the jobs wait, at most {0.limit:g} s, is not known",
    "share": "the share, at least {0.limit:.0%}, is not known",
    "gpuHoursPerWeek": "the GPU hours of a week, at least {0.limit:,}, are not known",
}


def goals_of(fleet: FleetSpec) -> list[Goal]:
    """Every goal of the file: of the queues, then of the teams."""
    values = {priority_class.name: priority_class.value for priority_class in fleet.priority_classes}
    values |= {
        workload_priority_class.name: workload_priority_class.value
        for workload_priority_class in fleet.workload_priority_classes
    }
    owners: list[ClusterQueueEntry | TeamEntry] = [*fleet.cluster_queues, *fleet.teams]
    return [goal for owner in owners for goal in _of(owner, values)]


def _of(owner: ClusterQueueEntry | TeamEntry, values: dict[str, int]) -> Iterator[Goal]:
    goals = owner.goals
    if goals is None:
        return
    of_team = isinstance(owner, TeamEntry)
    path = f"{'teams' if of_team else 'clusterQueues'}[{owner.name}]"
    queue, team = ("", owner.name) if of_team else (owner.name, "")
    if goals.wait is not None:
        name = goals.wait.priority_class or ""
        for quantile, length in goals.wait.quantiles.items():
            yield Goal(path, "wait", length.seconds, queue, team, quantile, name, values.get(name))
    if goals.share is not None:
        yield Goal(path, "share", goals.share / 100, queue, team)
    if goals.gpu_hours_per_week is not None:
        yield Goal(path, "gpuHoursPerWeek", goals.gpu_hours_per_week, queue, team)


def wait_goals(fleet: FleetSpec, local_queue: str, priority: int | None, time: float, now: float) -> list[str]:
    """How the wait of a job that was never admitted compares with each goal that its queue or team has for waits.

    `local_queue` is its namespace and name.
    """
    queue, team = cluster_queue_of(fleet).get(local_queue, ""), fleet.team_of.get(local_queue.partition("/")[0], "")
    job = Seen(queue, team, priority, 0.0, time)
    return [
        f"Goal of {goal.path}: {goal.quantile:.0%} of the jobs wait {goal.limit:g} s at most; "
        f"this one has waited {now - time:.0f} s{', longer than that' if now - time > goal.limit else ''}"
        for goal in goals_of(fleet)
        if goal.of == "wait" and goal.is_of(job)
    ]


class Recorded(NamedTuple):
    """A history and the time that is judged, in seconds since 1970."""

    past: Past
    begin: float
    end: float


def judge_recorded(fleet: FleetSpec, recorded_past: Recorded | None) -> list[Judged]:
    """How it was with each goal; without a history none is known."""
    goals = goals_of(fleet)
    if recorded_past is None:
        why = "without a history; give --store DIR with what `kueue-fleet record` wrote"
        return [Judged(goal, Standing.NOT_KNOWN, f"{_WHAT[goal.of].format(goal)} {why}") for goal in goals]
    counted_rows = [
        row
        for row in recorded_past.past.counted
        if row.cluster == fleet.home and recorded_past.begin <= row.time <= recorded_past.end
    ]
    verdicts = judge(
        goals, list(_goal_jobs(fleet, recorded_past)), recorded_past.begin, recorded_past.end, recorded_past.past.end
    )
    return [
        judge_counted(verdict.goal, counted_rows)
        if counted_rows and verdict.standing is Standing.NOT_KNOWN
        else verdict
        for verdict in verdicts
    ]


def _goal_jobs(fleet: FleetSpec, recorded_past: Recorded) -> Iterable[Seen]:
    queues: dict[str, str] = dict(cluster_queue_of(fleet))
    past, begin, end = recorded_past
    for job in past.jobs:
        arrival = job.arrival
        if (job.ended is not None and job.ended < begin) or arrival.time > end or (job.is_deleted and not job.runs):
            continue
        spans = ((run.admitted, past.end if run.ended is None else run.ended) for run in job.runs)
        yield Seen(
            queues.get(f"{arrival.namespace}/{arrival.queue}", ""),
            fleet.team_of.get(arrival.namespace, arrival.team),
            arrival.priority,
            (arrival.requests or {}).get(GPU_RESOURCE, 0.0),
            arrival.time,
            job.runs[0].admitted if job.runs else None,
            tuple((max(first, begin), min(last, end)) for first, last in spans if last > begin and first < end),
        )
