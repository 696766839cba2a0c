"""The quotas of Compute Engine that a fleet takes up when it has grown to its limits.

Metrics are those of Compute Engine's API; kinds of GPU that came later share the metric GPUS_PER_GPU_FAMILY, and TPU
v6e and TPU7x TPUS_PER_TPU_FAMILY. How sure each is stands in docs/google-cloud.md.

Sources: https://cloud.google.com/compute/resource-usage (allocation quotas),
https://cloud.google.com/compute/docs/gpus#gpu-quota (GPUs, preemptible ones),
https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus#ensure-quota (TPU chips),
https://cloud.google.com/compute/docs/disks/hd-types/hyperdisk-balanced (what a disk gets by default, and without
charge), and
https://cloud.google.com/compute/docs/instances/reservations-shared (a shared reservation counts for its owner, and
again for who uses it), and
GoogleCloudPlatform/cluster-toolkit, its check of quotas before a deployment (Filestore's, by tier). Flex-start nodes
take preemptible quota:
https://cloud.google.com/blog/products/compute/introducing-flex-start-vms-for-the-compute-engine-instance-api. Machines
that come with GPUs or TPUs are taken to be limited by the quota of these, not by one of CPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Final, NamedTuple

from kueue_fleet.fleet_file.model.capacity import Calendar, FlexStart, ReservationEntry, Reserved, Spot
from kueue_fleet.fleet_file.model.entries import FlavorEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import queue_on
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.model.storage import Filestore, HyperdiskMl, Lustre
from kueue_fleet.fleet_file.model.storage_places import storage_places
from kueue_fleet.fleet_file.projects import clusters_in
from kueue_fleet.gke.labels import (
    ACCELERATOR_RESOURCES,
    FLEX_START,
    PROVISIONING,
    QUEUED_PROVISIONING_CLASS,
    SPOT,
    accelerator_of,
)
from kueue_fleet.gke.machines import LOCAL_SSD_GB, MachineType, machine_type

GPU_FAMILY_METRIC: Final = "GPUS_PER_GPU_FAMILY"
"""The metric of kinds of GPU that have none of their own."""
TPU_FAMILY_METRIC: Final = "TPUS_PER_TPU_FAMILY"
"""The metric of kinds of TPU that have none of their own."""
ALL_GPUS: Final = "GPUS_ALL_REGIONS"
"""The metric of all GPUs of a project."""

_OWN_METRIC: Final[Mapping[str, str]] = {
    "nvidia-l4": "NVIDIA_L4",
    "nvidia-tesla-t4": "NVIDIA_T4",
    "nvidia-tesla-p4": "NVIDIA_P4",
    "nvidia-tesla-p100": "NVIDIA_P100",
    "nvidia-tesla-v100": "NVIDIA_V100",
    "nvidia-tesla-a100": "NVIDIA_A100",
    "nvidia-a100-80gb": "NVIDIA_A100_80GB",
}
_FAMILIES: Final[Mapping[str, str]] = {
    "nvidia-h100-80gb": "NVIDIA_H100",
    "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA",
    "nvidia-h200-141gb": "NVIDIA_H200",
    "nvidia-b200": "NVIDIA_B200",
    "nvidia-gb200": "NVIDIA_GB200",
    "nvidia-rtx-pro-6000": "NVIDIA_RTX_PRO_6000",
}
_TPUS: Final[Mapping[str, tuple[str, str, str]]] = {
    "tpu-v5-lite-podslice": ("TPU_LITE_PODSLICE_V5", "", "PREEMPTIBLE_TPU_LITE_PODSLICE_V5"),
    "tpu-v5p-slice": ("TPU_V5P", "", "PREEMPTIBLE_TPU_V5P"),
    "tpu-v6e-slice": (TPU_FAMILY_METRIC, "CT6E", "PREEMPTIBLE_TPU_V6E"),
    "tpu7x": (TPU_FAMILY_METRIC, "tpu7x", "PREEMPTIBLE_TPU7X"),
}
"""By kind: the metric of its chips, their family, and the metric of preemptible ones."""
_DISKS: Final[Mapping[str, str]] = {
    "pd-standard": "DISKS_TOTAL_GB",
    "pd-balanced": "SSD_TOTAL_GB",
    "pd-ssd": "SSD_TOTAL_GB",
    "hyperdisk-balanced": "HDB_TOTAL_GB",
}
_PER_GB: Final = {"HDB_TOTAL_IOPS": 6.0, "HDB_TOTAL_THROUGHPUT": 1.5}
"""What a hyperdisk-balanced gets for each GB, in IOPS and MiB/s, beyond the 3,000 and 140 that every one has."""
_FILESTORE: Final[Mapping[str, str]] = {
    "BASIC_HDD": "StandardStorageGbPerRegion",
    "BASIC_SSD": "PremiumStorageGbPerRegion",
    "ZONAL": "EnterpriseStorageGibPerRegion",
    "ENTERPRISE": "EnterpriseStorageGibPerRegion",
}
"""By tier; that of REGIONAL is not known."""
_SHARED_CPUS: Final = ("e2", "n1")
_CPU_FAMILIES: Final = ("c2", "c2d", "c3", "m3", "n2", "n2d", "t2a", "t2d")
"""Machine families with a metric of their own."""


class Metric(NamedTuple):
    """What a quota limits."""

    name: str
    """As Compute Engine has it."""
    region: str = ""
    """"": all regions together."""
    family: str = ""
    """The kind of GPU of GPUS_PER_GPU_FAMILY, of TPU of TPUS_PER_TPU_FAMILY."""
    unread: str = ""
    """The service that says the limit in no API that preflight reads; "": Compute Engine, which does."""

    def __str__(self) -> str:
        return f"{self.name} {self.family}".strip()


class QuotaNeed(NamedTuple):
    """How much of a quota a fleet takes up at most."""

    metric: Metric
    amount: int
    standard: Metric | None
    """What counts instead where the project has no preemptible quota; None: nothing."""
    reasons: Mapping[str, int]
    """What takes how much of it: pools, reservations, flavors, by `cluster/name`."""


class _Demand:
    def __init__(self) -> None:
        self._amounts: dict[Metric, dict[str, int]] = {}
        self._standard: dict[Metric, Metric] = {}

    def add(self, standard: Metric, amount: int, reason: str, preemptible: Metric | None = None) -> None:
        """Take up `standard`; or `preemptible`, for which `standard` counts where the project has none of that."""
        if not amount:
            return
        metric = standard if preemptible is None else preemptible
        reasons = self._amounts.setdefault(metric, {})
        reasons[reason] = reasons.get(reason, 0) + amount
        if preemptible is not None:
            self._standard[metric] = standard

    def needs(self) -> list[QuotaNeed]:
        ordered_metrics = sorted(self._amounts, key=lambda metric: (metric.region == "", metric.region, metric))
        return [
            QuotaNeed(metric, sum(self._amounts[metric].values()), self._standard.get(metric), self._amounts[metric])
            for metric in ordered_metrics
        ]

    def gpus(self, kind: str, region: str, count: int, reason: str, *, preemptible: bool) -> None:
        """GPUs, in the quota of their kind and in that of all."""
        own = _OWN_METRIC.get(kind)
        family = _FAMILIES.get(kind)
        standard = Metric(f"{own}_GPUS", region) if own else Metric(GPU_FAMILY_METRIC, region, family or kind)
        spot = Metric(f"PREEMPTIBLE_{own or family}_GPUS", region) if own or family else None
        self.add(standard, count, reason, spot if preemptible else None)
        self.add(Metric(ALL_GPUS), count, reason)

    def accelerators(self, kind: str, region: str, count: int, reason: str, *, preemptible: bool) -> None:
        """GPUs, or TPU chips."""
        if kind not in _TPUS:
            self.gpus(kind, region, count, reason, preemptible=preemptible)
            return
        metric, family, spot = _TPUS[kind]
        self.add(Metric(metric, region, family), count, reason, Metric(spot, region) if preemptible else None)

    def machines(self, machine: MachineType, region: str, count: int, reason: str, *, preemptible: bool) -> None:
        """GPUs, TPU chips and CPUs of so many machines."""
        if machine.accelerator is not None:
            amount = count * machine.accelerators
            self.accelerators(machine.accelerator, region, amount, reason, preemptible=preemptible)
        if machine.accelerator is not None and not machine.attached:
            return
        cpus = count * machine.cpus
        own = f"{machine.family.upper()}_CPUS" if machine.family in _CPU_FAMILIES else "CPUS"
        if machine.family in (*_SHARED_CPUS, *_CPU_FAMILIES):
            self.add(Metric(own, region), cpus, reason, Metric("PREEMPTIBLE_CPUS", region) if preemptible else None)
        self.add(Metric("CPUS_ALL_REGIONS"), cpus, reason)

    def local_ssds(self, count: int, region: str, reason: str, *, preemptible: bool) -> None:
        """Local SSDs that are added to machines; those that come with a machine are limited with it."""
        spot = Metric("PREEMPTIBLE_LOCAL_SSD_GB", region) if preemptible else None
        self.add(Metric("LOCAL_SSD_TOTAL_GB", region), count * LOCAL_SSD_GB, reason, spot)


def quota_needs(fleet: FleetSpec, project: str) -> list[QuotaNeed]:
    """What `fleet` takes up of a project of it at most, by region; what counts for all regions comes last.

    Machines that DWS Calendar grants are not counted: Google raises the quota with the grant.
    """
    demand = _Demand()
    for cluster in clusters_in(fleet, project):
        for pool in fleet.every_pool_on(cluster.name):
            _pool(demand, pool, project)
        cards = [network for pool in fleet.node_pools_on(cluster.name) for network in pool.networks if network.made]
        for metric, names in (
            ("NETWORKS", {of.network for of in cards}),
            ("SUBNETWORKS", {of.subnetwork for of in cards}),
        ):
            demand.add(Metric(metric), len(names), f"networks for GPUs of {cluster.name}")
        if cluster.runs_jobs:
            _flavors_without_pools(demand, fleet, cluster.name)
    if project != fleet.project:
        return demand.needs()
    for entry in fleet.reservations:
        _reservation(demand, entry)
    _commitments(demand, fleet)
    _storage(demand, fleet)
    regions = dict.fromkeys(cluster.region for cluster in fleet.new_clusters if fleet.network.existing is None)
    for name, count in (("NETWORKS", min(1, len(regions))), ("SUBNETWORKS", len(regions)), ("ROUTERS", len(regions))):
        demand.add(Metric(name), count, f"network {fleet.network_name}")
    return demand.needs()


def _pool(demand: _Demand, pool: ResolvedNodePool, project: str) -> None:
    reason, count, capacity = f"{pool.cluster}/{pool.name}", pool.max_nodes, pool.capacity
    demand.add(Metric("INSTANCES", pool.region), count, reason)
    if pool.disk_type in _DISKS:
        demand.add(Metric(_DISKS[pool.disk_type], pool.region), count * pool.disk_size_gb, reason)
    for metric, gigabytes in _PER_GB.items() if pool.disk_type == "hyperdisk-balanced" else ():
        demand.add(Metric(metric, pool.region), count * ceil(gigabytes * pool.disk_size_gb), reason)
    own = isinstance(capacity, Reserved) and capacity.project in (None, project)
    if own or isinstance(capacity, Calendar):
        # A reservation of the project has taken up the quota; its nodes take up none again.
        return
    preemptible = isinstance(capacity, Spot | FlexStart)
    demand.local_ssds(count * pool.local_ssd_count, pool.region, reason, preemptible=preemptible)
    if pool.machine is not None:
        demand.machines(pool.machine, pool.region, count, reason, preemptible=preemptible)
    elif pool.accelerator is not None:
        demand.gpus(pool.accelerator, pool.region, count * pool.gpus_per_node, reason, preemptible=preemptible)


def _reservation(demand: _Demand, entry: ReservationEntry) -> None:
    region, reason = entry.zone.rpartition("-")[0], f"reservation {entry.name}"
    demand.add(Metric("RESERVATIONS", region), 1, reason)
    demand.local_ssds(entry.count * entry.local_ssd_count, region, reason, preemptible=False)
    machine = machine_type(entry.machine_type)
    if machine is not None:
        demand.machines(machine, region, entry.count, reason, preemptible=False)
    if entry.accelerator is not None:
        gpus = entry.count * entry.accelerator.count
        demand.gpus(entry.accelerator.type, region, gpus, reason, preemptible=False)


def _flavors_without_pools(demand: _Demand, fleet: FleetSpec, cluster: str) -> None:
    """GPUs and TPU chips of nodes that GKE makes: as many as queues may admit jobs for."""
    for flavor, count in _accelerator_quotas(fleet, cluster):
        labels = fleet.flavor_on(flavor, cluster).node_labels
        compute_class = flavor.compute_class
        # Of several kinds the first: `check` warns of them.
        kind = next(iter(compute_class.accelerators), None) if compute_class is not None else accelerator_of(labels)
        if kind is None or fleet.flavor_nodes(flavor, cluster):
            continue
        spot = labels.get(SPOT) == "true" or labels.get(PROVISIONING) == "spot" or labels.get(FLEX_START) == "true"
        preemptible = (
            spot or _is_queued(fleet, flavor.name, cluster) or (compute_class is not None and compute_class.preemptible)
        )
        region = fleet.cluster(cluster).region
        demand.accelerators(kind, region, count, f"{cluster}/{flavor.name}", preemptible=preemptible)


def _accelerator_quotas(fleet: FleetSpec, cluster: str) -> Iterator[tuple[FlavorEntry, int]]:
    for queue in fleet.queues_on(cluster):
        for group in queue_on(fleet, queue, cluster).resource_groups:
            for quotas in group.flavors:
                flavor = fleet.flavor(quotas.name)
                for resource in quotas.resources:
                    if flavor is not None and resource.name in ACCELERATOR_RESOURCES:
                        yield flavor, resource.nominal_quota.value


def _is_queued(fleet: FleetSpec, flavor: str, cluster: str) -> bool:
    """Whether jobs get the flavor by DWS."""
    for queue in fleet.queues_on(cluster):
        for rule in queue_on(fleet, queue, cluster).check_rules:
            check = fleet.check(rule.name)
            request = check.provisioning_request if check is not None else None
            is_queued = request is not None and request.provisioning_class_name == QUEUED_PROVISIONING_CLASS
            if is_queued and (not rule.on_flavors or flavor in rule.on_flavors):
                return True
    return False


def _storage(demand: _Demand, fleet: FleetSpec) -> None:
    """Disks and file servers that the fleet makes. The throughput that a disk gets by default is not known."""
    for place in (place for entry in fleet.storage for place in storage_places(fleet, entry) if place.made):
        volume, reason = place.entry.volume, f"storage {place.entry.name}"
        if isinstance(volume, HyperdiskMl):
            size = (volume.capacity_gib or 0) * len(place.zones)
            demand.add(Metric("HDML_TOTAL_GB", place.region), size, reason)
        elif isinstance(volume, Filestore):
            name = _FILESTORE.get(volume.tier, f"capacity of the tier {volume.tier}")
            demand.add(Metric(name, place.region, unread="file.googleapis.com"), volume.capacity_gib or 0, reason)
        elif isinstance(volume, Lustre):
            lustre = Metric("capacity", place.region, unread="lustre.googleapis.com")
            demand.add(lustre, volume.capacity_gib or 0, reason)


def _commitments(demand: _Demand, fleet: FleetSpec) -> None:
    for entry in fleet.commitments:
        reason = f"commitment {entry.name}"
        demand.add(Metric("COMMITMENTS", entry.region), 1, reason)
        for resource in entry.resources:
            kind = _OWN_METRIC.get(resource.accelerator_type or "", _FAMILIES.get(resource.accelerator_type or ""))
            if kind is not None:
                demand.add(Metric(f"COMMITTED_{kind}_GPUS", entry.region), resource.amount, reason)
