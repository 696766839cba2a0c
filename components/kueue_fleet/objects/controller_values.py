"""The configuration that is deployed with the controller of a fleet: the fields that it decides by."""

from typing import Any, Final

from kueue_admission.kernel.names import ACCELERATOR_RESOURCES
from kueue_admission.kernel.versions import minor_of
from kueue_fleet.fleet_file.calendar_pools import fleet_undated
from kueue_fleet.fleet_file.cost import Unpriced, accelerator_hour
from kueue_fleet.fleet_file.fleet_quotas import fleet_quotas
from kueue_fleet.fleet_file.model.calendar_windows import fleet_checks
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.per_cluster import (
    backup_flavors,
    interruptible_flavors,
    local_queues,
    manager_groups,
)
from kueue_fleet.fleet_file.quota_windows import quota_windows
from kueue_fleet.fleet_file.worker_tokens import token_credentials, worker_tokens
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.objects.teams import limit_range_item
from kueue_fleet.settings.configuration import (
    DEFAULT_ORIGIN,
    HISTORY_FOLDER,
    ControllerConfiguration,
    EnforcedBudgets,
    QueueFallback,
    RecordedFleet,
    WorkerConfiguration,
)
from kueue_fleet.settings.dispatch import DISPATCHER_NAME, History
from kueue_fleet.settings.fleet_quotas import FleetQuotas


def controller_configuration(fleet: FleetSpec) -> ControllerConfiguration:
    """The configuration of the controller of this fleet. Raises ValueError for a fleet without one."""
    section, settings, home = fleet.controller, fleet.multi_kueue, fleet.controller_cluster
    if section is None or home is None:
        raise ValueError("the fleet has no controller; add the section")
    credentials = token_credentials(fleet)
    return ControllerConfiguration(
        fleet=fleet.name,
        namespace=section.namespace,
        region=fleet.cluster(home).place if fleet.cluster(home).runs_jobs else "",
        asks_in=home if asks_for_nodes(fleet, home) else "",
        origin=kueue_configuration(fleet, home).get("multiKueue", {}).get("origin", DEFAULT_ORIGIN),
        dispatches=settings is not None and settings.dispatcher_name == DISPATCHER_NAME,
        controller=section.model_copy(update={"checks": fleet_checks(fleet)}),
        workers=tuple(
            WorkerConfiguration(
                name=name,
                region=fleet.cluster(name).place,
                kueue=_decisive(fleet, name),
                kueue_release=minor_of(fleet.kueue_on(name).version),
            )
            for name in _workers(fleet)
        ),
        team_regions=_team_regions(fleet),
        limit_ranges={
            namespace: limit_range_item(team.limit_range)
            for team in fleet.teams
            if team.limit_range is not None
            for namespace in team.namespace_names
        },
        kueue=_decisive(fleet, home),
        kueue_release=minor_of(fleet.kueue_on(home).version),
        fallback=queue_fallback(fleet),
        tokens=worker_tokens(fleet),
        budgets=enforced_budgets(fleet),
        following=_following(fleet),
        history=_recorded(fleet, home, section.history),
        **({"token_lifetime": credentials.lifetime} if credentials is not None else {}),
    )


def _following(fleet: FleetSpec) -> FleetQuotas | None:
    """Its calendar pools open and close while the controller runs, not when its configuration is written."""
    follows = any(queue.quota_follows != "file" for queue in fleet.cluster_queues) or quota_windows(fleet)
    return fleet_quotas(fleet_undated(fleet)) if follows else None


def _recorded(fleet: FleetSpec, home: str, settings: History | None) -> RecordedFleet | None:
    if settings is None:
        return None
    regions = {name: fleet.cluster(name).place for name in (home, *_workers(fleet))}
    return RecordedFleet(
        store=settings.store or HISTORY_FOLDER, settings=settings, home=home, regions=regions, teams=fleet.team_of
    )


def asks_for_nodes(fleet: FleetSpec, cluster: str) -> bool:
    """Whether a queue on a cluster may ask for nodes by ProvisioningRequests."""
    checks = (check for check in fleet.admission_checks if check.name in fleet.checks_on(cluster))
    return any(check.provisioning_request is not None for check in checks)


def queue_fallback(fleet: FleetSpec) -> dict[str, QueueFallback]:
    """How long jobs wait for nodes, by ClusterQueue; queues without `fallback` are not there."""
    return {
        queue.name: QueueFallback(
            flavors=tuple(dict.fromkeys(queue.flavor_names)),
            fallback=tuple(queue.fallback),
            manager_flavors=_manager_flavors(fleet, queue),
            backups=backup_flavors(fleet, queue),
            local_queues=tuple(
                f"{namespace}/{name}"
                for namespace, name, entrance in local_queues(fleet)
                if entrance.cluster_queue == queue.name
            ),
        )
        for queue in fleet.cluster_queues
        if queue.fallback
    }


def enforced_budgets(fleet: FleetSpec) -> EnforcedBudgets | None:
    """The budgets that hold jobs back, where any does."""
    teams = {team.name: team.budget for team in fleet.teams if team.budget is not None and team.budget.enforce}
    if not teams:
        return None
    prices = list_prices()
    usd = {
        cluster: {name: accelerator_hour(fleet, cluster, name, prices) for name in sorted(fleet.flavors_on(cluster))}
        for cluster in fleet.job_clusters
    }
    return EnforcedBudgets(
        cluster=fleet.home,
        teams=teams,
        namespaces={namespace: team for namespace, team in fleet.team_of.items() if team in teams},
        usd={
            cluster: {name: price for name, price in prices.items() if not isinstance(price, Unpriced)}
            for cluster, prices in usd.items()
        },
        interruptible={queue.name: _interruptible(fleet, queue) for queue in fleet.cluster_queues},
    )


def _interruptible(fleet: FleetSpec, queue: ClusterQueueEntry) -> tuple[str, ...]:
    """With the flavors that have no GPUs or TPUs, and those of the manager; none where none is interruptible."""
    interruptible = interruptible_flavors(fleet, queue)
    others = (
        flavor.name
        for group in queue.resource_groups
        for flavor in group.flavors
        if set(ACCELERATOR_RESOURCES).isdisjoint(group.covered_resources)
    )
    return (*interruptible, *others, *_manager_flavors(fleet, queue)) if interruptible else ()


def _manager_flavors(fleet: FleetSpec, queue: ClusterQueueEntry) -> tuple[str, ...]:
    groups = manager_groups(fleet, queue) if fleet.is_dispatched(queue.name) else ()
    names = (flavor.name for group in groups for flavor in group.flavors)
    return tuple(dict.fromkeys(name for name in names if name not in queue.flavor_names))


def _workers(fleet: FleetSpec) -> tuple[str, ...]:
    """The workers, most preferred first; then those that get no jobs any more, which may still run some."""
    others = (cluster.name for cluster in fleet.clusters if cluster.role == "worker")
    return tuple(dict.fromkeys((*fleet.worker_names, *others)))


_DECISIVE: Final = ("featureGates", "fairSharing", "resources", "waitForPodsReady")


def _decisive(fleet: FleetSpec, cluster: str) -> dict[str, Any]:
    return {key: value for key, value in kueue_configuration(fleet, cluster).items() if key in _DECISIVE}


def _team_regions(fleet: FleetSpec) -> dict[str, tuple[str, ...]]:
    regions_by_team: dict[str, tuple[str, ...]] = {}
    for team in fleet.teams:
        if team.allowed_regions:
            regions_by_team.update(dict.fromkeys(team.namespace_names, tuple(fleet.allowed_regions(team))))
    return regions_by_team
