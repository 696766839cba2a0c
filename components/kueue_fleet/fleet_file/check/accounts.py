"""Teams' members and regions.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/google-groups-rbac (groups in RBAC). Regions are the
fleet's own rule: what `allowedRegions` promises must be possible.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.fleet_file.model.dispatch import DISPATCHER_NAME
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.gke.regions import REGION_RANGES
from kueue_fleet.kueue_api import suggest
from kueue_fleet.kueue_api.problem import Problem, rule


def check_accounts(scope: Scope) -> Iterator[Problem]:
    """Groups can be looked up; jobs of every team can run somewhere."""
    for team in scope.fleet.teams:
        yield from _members(scope, team)
        yield from _regions(scope, team)


@rule
def _members(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    groups = [member for member in team.members if member.startswith("group:")]
    without = [cluster.name for cluster in scope.fleet.clusters if not cluster.rbac_security_group]
    if groups and without:
        yield Problem(
            f"{scope.path(team)}.members",
            f"{groups[0]} is a group, but {', '.join(without)} looks up no groups",
            "set clusters[...].rbacSecurityGroup, or name people with user:",
            "warning",
        )


@rule
def _regions(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    """Every queue of a team that is kept to some regions is on some cluster there."""
    fleet, path = scope.fleet, f"{scope.path(team)}.allowedRegions"
    if not team.allowed_regions:
        return
    known = {**REGION_RANGES, **fleet.network.own_regions}
    regions = {cluster.name: cluster.region for cluster in fleet.clusters}
    here = dict.fromkeys(regions[name] for name in fleet.job_clusters)
    for index, region in enumerate(team.allowed_regions):
        if region not in known:
            yield Problem(
                f"{path}[{index}]", f"{region} is not a known region", suggest.instead(region, here, "regions")
            )
    if not set(team.allowed_regions) & set(here):
        yield Problem(
            path,
            f"no cluster that runs jobs is in {', '.join(team.allowed_regions)}",
            suggest.instead(team.allowed_regions[0], here, "regions"),
        )
        return
    for local in team.local_queues:
        queue = fleet.queue(local.cluster_queue)
        where = [name for name in fleet.queue_clusters(queue) if name in fleet.job_clusters] if queue else []
        reached = tuple(dict.fromkeys(regions[name] for name in where))
        beyond = [region for region in reached if region not in team.allowed_regions]
        if reached and len(beyond) == len(reached):
            yield Problem(
                path,
                f"queue {local.cluster_queue} is in {', '.join(reached)} only",
                "allow one of these regions, or use another queue",
            )
        elif beyond and not _keeps_to_regions(scope):
            yield Problem(
                path,
                f"queue {local.cluster_queue} is in {', '.join(beyond)} too, and Kueue's own dispatchers know no "
                "regions",
                "limit the clusters of the queue, or dispatch with the fleet's own controller",
                "warning",
            )


def _keeps_to_regions(scope: Scope) -> bool:
    """Whether the fleet's own dispatcher decides where jobs go."""
    settings = scope.fleet.multi_kueue
    return settings is not None and settings.dispatcher_name == DISPATCHER_NAME
