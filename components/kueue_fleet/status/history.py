"""What teams used and how long their jobs waited, from the Workloads that are still where jobs are submitted.

Kueue keeps a Workload as long as its job is there, or as `objectRetentionPolicies` says: what was deleted is not
counted. The manager does not record which flavor a job had on its worker: while it runs, its copy there says so; later
it had one of those of its ClusterQueue on that worker.
Source: kueue@v0.19.2 pkg/workload/admissionchecks.go (accumulatedPastExecutionTimeSeconds: earlier runs of a Workload).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from kueue_admission.read.printed import PrintedWorkload
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import local_queues, quotas_on
from kueue_fleet.fleet_file.spending import BudgetUse, Held, Spending, budget_use, spending
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES
from kueue_fleet.gke.prices import Prices
from kueue_fleet.settings.budgets import Period, period_start
from kueue_fleet.status.accelerators import accelerators_asked, accelerators_held
from kueue_fleet.status.model import ClusterObjects, TeamWeek

Clusters = Mapping[str, ClusterObjects]
"""What was listed, by cluster."""


def team_weeks(
    fleet: FleetSpec, clusters: Clusters, holdings: Sequence[Held] | None, prices: Prices, now: datetime
) -> Iterator[TeamWeek]:
    """What each team used in the week of `now`, and how long its jobs waited; `holdings` is from `held_by_teams`."""
    if holdings is None:
        return
    begin = period_start(now, "week").timestamp()
    usage = spending(fleet, holdings, prices, begin, now.timestamp())
    waits: dict[str, list[float]] = {team.name: [] for team in fleet.teams}
    waiting = {team.name: 0.0 for team in fleet.teams}
    for team, workload in _of_teams(fleet, clusters):
        creation_time = workload.created or 0.0
        admission_time = workload.since("Admitted")
        if admission_time is not None and admission_time >= begin:
            waits[team].append(admission_time - creation_time)
        if admission_time is None and not workload.is_true("Finished"):
            waiting[team] = max(waiting[team], now.timestamp() - creation_time)
    for team, use in usage.items():
        times = waits[team]
        yield TeamWeek(
            team=team,
            gpu_hours=round(use.gpu_hours, 3),
            whole_gpu_hours=round(use.whole_gpu_hours, 3),
            usd_least=round(use.usd_least, 2),
            usd_most=round(use.usd_most, 2),
            unpriced=use.unpriced_hours,
            not_in_usd=tuple(dict.fromkeys(amount.why for _, amount in use.unpriced)),
            started=len(times),
            mean_wait_seconds=sum(times) / len(times) if times else None,
            longest_wait_seconds=max(times, default=None),
            waiting_seconds=waiting[team],
        )


def budgets(fleet: FleetSpec, holdings: Sequence[Held] | None, prices: Prices, now: datetime) -> Iterator[BudgetUse]:
    """How far the budgets of teams are used up in the week or month of `now`; `holdings` is from `held_by_teams`."""
    if holdings is None:
        return
    periods: dict[Period, Mapping[str, Spending]] = {}
    for team in fleet.teams:
        if team.budget is None:
            continue
        per = team.budget.per
        if per not in periods:
            begin = period_start(now, per).timestamp()
            periods[per] = spending(fleet, holdings, prices, begin, now.timestamp())
        yield from budget_use(team.name, team.budget, periods[per][team.name])


def finished_since(fleet: FleetSpec, clusters: Clusters) -> tuple[int | None, str | None]:
    """How many Workloads of teams have finished and are still there, and when the first of them did.

    None: not known, since the cluster that jobs are submitted to could not be read.
    """
    if not _home(fleet, clusters).knows("workloads"):
        return None, None
    times = [
        str(workload.conditions["Finished"]["lastTransitionTime"])
        for _, workload in _of_teams(fleet, clusters)
        if workload.is_true("Finished")
    ]
    return len(times), min(times, default=None)


def _home(fleet: FleetSpec, clusters: Clusters) -> ClusterObjects:
    """What was listed where jobs are submitted; nothing is known of it if it could not be read."""
    return clusters.get(fleet.home, ClusterObjects(""))


def _of_teams(fleet: FleetSpec, clusters: Clusters) -> Iterator[tuple[str, PrintedWorkload]]:
    for workload in _home(fleet, clusters).workloads:
        team = fleet.team_of.get(workload.namespace)
        if team is not None:
            yield team, workload


def held_by_teams(fleet: FleetSpec, clusters: Clusters, now: datetime) -> list[Held] | None:
    """What each Workload of a team held: at its last admission, and in earlier runs right before it.

    None: not known, since the cluster that jobs are submitted to could not be read.
    """
    if not _home(fleet, clusters).knows("workloads"):
        return None
    records = []
    queues = {(namespace, name): spec.cluster_queue for namespace, name, spec in local_queues(fleet)}
    copies = {
        (cluster, workload.key): workload for cluster, objects in clusters.items() for workload in objects.workloads
    }
    for team, workload in _of_teams(fleet, clusters):
        since = workload.changed_at("Admitted")
        if since is None:
            continue
        begin = since - workload.status.integer("accumulatedPastExecutionTimeSeconds")
        finish_time = workload.since("Finished")
        end = since if not workload.is_true("Admitted") else now.timestamp() if finish_time is None else finish_time
        cluster = workload.cluster_name or ("" if fleet.manager is not None else fleet.home)
        copy = copies.get((cluster, workload.key))
        queue = queues.get((workload.namespace, workload.queue), "")
        for resource in ACCELERATOR_RESOURCES:
            if count := accelerators_held(workload, resource) or accelerators_asked(workload, resource):
                places = _assigned(cluster, copy, resource) or possible_places(fleet, cluster, queue, resource)
                records.append(Held(team, resource, count, places, begin, end))
    return records


def _assigned(cluster: str, workload: PrintedWorkload | None, resource: str) -> frozenset[tuple[str, str]]:
    """The cluster and flavor that the Workload on that cluster says."""
    flavors = (
        [] if workload is None else [assignment.child("flavors").text(resource) for assignment in workload.assignments]
    )
    return frozenset((cluster, flavor) for flavor in flavors if flavor)


def possible_places(fleet: FleetSpec, cluster: str, queue: str, resource: str) -> frozenset[tuple[str, str]]:
    """The flavors with the resource that a job of the ClusterQueue may have had; on any cluster where none is known."""
    entry = fleet.queue(queue)
    return frozenset(
        (where, flavor.name)
        for where in ([cluster] if cluster else fleet.dispatch_workers(queue) or fleet.job_clusters)
        if entry is not None
        for group in quotas_on(fleet, entry, where)
        for flavor in group.flavors
        if any(quota.name == resource for quota in flavor.resources)
    )
