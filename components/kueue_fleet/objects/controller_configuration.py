"""The configuration of the deployed controller: the parts of the fleet that it decides by.

What it finds in the clusters (queues, quotas, who is connected) is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from kueue_admission.forms.base import Flag, SpecModel, Text
from kueue_admission.forms.duration import Duration
from kueue_admission.forms.versions import minor_of
from kueue_admission.releases import DEFAULT_VERSION
from kueue_fleet.fleet_file.calendar_pools import fleet_undated
from kueue_fleet.fleet_file.model.calendar_windows import fleet_checks
from kueue_fleet.fleet_file.model.dispatch import DISPATCHER_NAME, AdmissionControllerArgs
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, FlavorPatience
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.per_cluster import backup_flavors, local_queues, manager_groups
from kueue_fleet.fleet_file.worker_tokens import CONTROLLER_NAME, WorkerToken, token_credentials, worker_tokens
from kueue_fleet.objects.teams import limit_range_item

DEFAULT_ORIGIN: Final = "multikueue"
"""Kueue's own default. Source: kueue@v0.19.2 apis/config/v1beta2/defaults.go."""
_DEFAULT_RELEASE: Final = minor_of(DEFAULT_VERSION)
LEASE_NAME: Final = CONTROLLER_NAME
"""Name of the Lease that the leader holds, in the controller's namespace."""


class WorkerConfiguration(SpecModel):
    """A worker cluster."""

    name: Text
    """Name of the cluster."""
    region: Text
    """Its region."""
    kueue: Mapping[str, Any]
    """Kueue's Configuration there, as far as it decides."""
    kueue_release: Text = _DEFAULT_RELEASE
    """The minor release of Kueue there, whose defaults apply."""


class QueueFallback(SpecModel):
    """How long jobs of a queue wait for nodes of its flavors."""

    flavors: tuple[Text, ...]
    """Every flavor of the queue, in its order."""
    fallback: tuple[FlavorPatience, ...]
    """As in the fleet file."""
    manager_flavors: tuple[Text, ...] = ()
    """Flavors of the manager, where it sends the jobs to workers; they stand for all of the workers'."""
    backups: tuple[Text, ...] = ()
    """Flavors of reservations that are kept as a backup."""
    local_queues: tuple[Text, ...] = ()
    """The LocalQueues that lead there, as NAMESPACE/NAME."""


class ControllerConfiguration(SpecModel):
    """Everything that the controller takes from the fleet."""

    fleet: Text
    """Name of the fleet."""
    namespace: Text
    """Where the Lease is."""
    region: Text = ""
    """Region of the cluster that it runs on, where that runs jobs itself; else empty."""
    asks_in: Text = ""
    """Name of the cluster that it runs on, where the queues of that ask for nodes by ProvisioningRequests; else empty.
    """
    origin: Text
    """Mark on the copies that the manager makes on the workers."""
    dispatches: Flag
    """Whether Kueue leaves the choice of clusters to this controller."""
    controller: AdmissionControllerArgs
    """The section `admissionController` of the fleet file."""
    workers: tuple[WorkerConfiguration, ...]
    """The workers, most preferred first; those too that get no jobs any more."""
    team_regions: Mapping[Text, tuple[Text, ...]]
    """Regions where a team's jobs may run, by namespace; a namespace that is not there has no such rule."""
    limit_ranges: Mapping[Text, Mapping[str, Any]] = Field(default_factory=dict)
    """The items of LimitRanges, by namespace. Kueue counts with their defaults, and does not write them into Workloads
    (kueue@v0.19.2 pkg/workload/resources.go, AdjustResources)."""
    kueue: Mapping[str, Any]
    """Kueue's Configuration on the manager, as far as it decides."""
    kueue_release: Text = _DEFAULT_RELEASE
    """The minor release of Kueue on the manager."""
    fallback: Mapping[Text, QueueFallback] = Field(default_factory=dict)
    """How long jobs wait for nodes, by ClusterQueue."""
    tokens: tuple[WorkerToken, ...] = ()
    """The tokens by which the workers are reached, to be renewed."""
    token_lifetime: Duration = Duration("168h")
    """How long a new token lives."""
    following: FleetSpec | None = None
    """The fleet as far as quotas depend on it, where some follow capacity."""


def controller_configuration(fleet: FleetSpec) -> ControllerConfiguration:
    """The configuration of the controller of this fleet. Raises ValueError for a fleet without one."""
    section, settings, home = fleet.admission_controller, fleet.multi_kueue, fleet.controller_cluster
    if section is None or home is None:
        raise ValueError("the fleet has no admissionController; add the section")
    credentials = token_credentials(fleet)
    return ControllerConfiguration(
        fleet=fleet.name,
        namespace=section.namespace,
        region=fleet.cluster(home).region if fleet.cluster(home).runs_jobs else "",
        asks_in=home if asks_for_nodes(fleet, home) else "",
        origin=kueue_configuration(fleet, home).get("multiKueue", {}).get("origin", DEFAULT_ORIGIN),
        dispatches=settings is not None and settings.dispatcher_name == DISPATCHER_NAME,
        controller=section.model_copy(update={"checks": fleet_checks(fleet)}),
        workers=tuple(
            WorkerConfiguration(
                name=name,
                region=fleet.cluster(name).region,
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
        following=_following(fleet),
        **({"token_lifetime": credentials.lifetime} if credentials is not None else {}),
    )


_OF_QUOTAS: Final = (
    "name",
    "project",
    "clusters",
    "node_pools",
    "reservations",
    "flavors",
    "cohorts",
    "cluster_queues",
    "multi_kueue",
)


def _following(fleet: FleetSpec) -> FleetSpec | None:
    """Its calendar pools open and close while the controller runs, not when its configuration is written."""
    if all(queue.quota_follows == "file" for queue in fleet.cluster_queues):
        return None
    undated = fleet_undated(fleet)
    return FleetSpec.model_construct(**{name: getattr(undated, name) for name in _OF_QUOTAS})


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
    found: dict[str, tuple[str, ...]] = {}
    for team in fleet.teams:
        if team.allowed_regions:
            found.update(dict.fromkeys(team.namespace_names, tuple(fleet.allowed_regions(team))))
    return found
