"""Goals that no fleet like this can meet, or that are about jobs which never come.

The most that a queue can have is as in kueue@v0.19.2 pkg/cache/scheduler/resource_node.go (potentialAvailable).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.quota_amounts import most_by_flavor
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.per_cluster import local_queues
from kueue_fleet.fleet_file.model.team_priorities import allowed_priority_classes
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.fleet_file.rules.queues import GOAL_OF_NO_JOB, GOAL_OUT_OF_REACH
from kueue_fleet.gke.labels import GPU_RESOURCE

_HOURS_OF_WEEK = 168


@fleet_check
def _all_shares(scope: Scope) -> Iterator[Problem]:
    for section in ("clusterQueues", "teams"):
        yield from _shares(scope, section)


@where_read
def _shares(scope: Scope, section: str) -> Iterator[Problem]:
    total = 0
    for owner in scope.entries(section):
        share = owner.goals.share if owner.goals is not None else None
        if share is not None:
            total += share
            if total > 100 and total - share <= 100:
                wrong = f"{share}, with the shares before it {total} % of all GPU hours, more than 100 %"
                yield GOAL_OUT_OF_REACH.at(f"{scope.path(owner)}.goals.share", wrong, "write less in one of them")


@entry_check("clusterQueues", "teams")
def _of_no_job(scope: Scope, owner: ClusterQueueEntry | TeamEntry) -> Iterator[Problem]:
    if owner.goals is None:
        return
    path = f"{scope.path(owner)}.goals"
    if not _queues(scope, owner):
        noun = "team" if isinstance(owner, TeamEntry) else "queue"
        fix = "add a LocalQueue for its jobs, or remove the goals"
        yield GOAL_OF_NO_JOB.at(path, f"no job comes to it: the {noun} has no LocalQueue", fix)
    name = owner.goals.wait.priority_class if owner.goals.wait is not None else None
    if name is None:
        return
    at = f"{path}.wait.priorityClass"
    unknown = list(scope.unknown("workloadPriorityClasses", name, at, scope.names("priorityClasses")))
    yield from unknown
    submitters = _submitters(scope, owner)
    if not unknown and submitters and all(name not in allowed_priority_classes(scope.fleet, t) for t in submitters):
        who = ", ".join(team.name for team in submitters)
        fix = "name a class that they may use, or add it to their allowedPriorityClasses"
        yield GOAL_OF_NO_JOB.at(at, f"no job of {name} comes to it: its teams ({who}) may not use the class", fix)


def _queues(scope: Scope, owner: ClusterQueueEntry | TeamEntry) -> Sequence[str]:
    """The ClusterQueues to which its jobs come."""
    if isinstance(owner, TeamEntry):
        return tuple(dict.fromkeys(queue.cluster_queue for queue in owner.local_queues))
    targets = {spec.cluster_queue for _, _, spec in local_queues(scope.fleet)}
    return (owner.name,) if owner.name in targets else ()


def _submitters(scope: Scope, owner: ClusterQueueEntry | TeamEntry) -> Sequence[TeamEntry]:
    """The teams whose jobs it gets; none where others submit to it too, who may use any class."""
    if isinstance(owner, TeamEntry):
        return (owner,)
    if any(entry.cluster_queue == owner.name for entry in scope.fleet.local_queues):
        return ()
    return [team for team in scope.fleet.teams if owner.name in _queues(scope, team)]


@entry_check("clusterQueues", "teams")
def _hours(scope: Scope, owner: ClusterQueueEntry | TeamEntry) -> Iterator[Problem]:
    hours = owner.goals.gpu_hours_per_week if owner.goals is not None else None
    if hours is None:
        return
    fleet, queues = scope.fleet, _queues(scope, owner)
    most = 0
    for cluster in fleet.job_clusters:
        of_queues = most_by_flavor(fleet, cluster)
        by_flavor: dict[str, int] = {}
        for queue in queues:
            for (flavor, resource), amount in of_queues.get(queue, {}).items():
                if resource == GPU_RESOURCE:
                    by_flavor[flavor] = by_flavor.get(flavor, 0) + int(amount.decimal)
        most += sum(by_flavor.values())
    if queues and hours > most * _HOURS_OF_WEEK:
        wrong = f"{hours:,}, but its quota gives at most {most * _HOURS_OF_WEEK:,}, of {most:,} GPUs"
        yield GOAL_OUT_OF_REACH.at(f"{scope.path(owner)}.goals.gpuHoursPerWeek", wrong, "write less, or more quota")
