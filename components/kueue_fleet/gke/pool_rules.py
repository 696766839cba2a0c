"""The rules of GKE for one node pool by itself.

`breaches` judges `Pool`, for the fleet file's check, the rehearsal's stand-in for Google Cloud and the policy pack
alike. Rules that need reservations, queues or other pools are elsewhere. A rule that needs a fact that is not known yet
says nothing.

Sources: GoogleCloudPlatform/cluster-toolkit@10470803 modules/compute/gke-node-pool/main.tf (preconditions),
https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest,
https://cloud.google.com/kubernetes-engine/docs/concepts/dws, and the pages named at each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kueue_admission.kernel.unknown import NotKnownError
from kueue_fleet.gke.accelerator_networks import check_cards, check_dranet, check_network_profile, check_network_zone
from kueue_fleet.gke.label_rules import check_labels, check_taints
from kueue_fleet.gke.machine_rules import (
    check_boot_disk,
    check_device_plugin,
    check_fast_socket,
    check_gpu_sharing,
    check_gpus,
    check_local_ssds,
    check_secondary_disks,
    check_tpu_slice,
    check_tpu_topology,
)
from kueue_fleet.gke.machines import COMPACT_FLEX_START, NOT_COMPACT, TPU_MACHINES
from kueue_fleet.gke.pool import RESERVATION_KEY, Breach, Pool
from kueue_fleet.gke.zones import is_elsewhere, is_unknown_zone, zones_of

FLEX_START_MAX_SECONDS: Final = 604_800
"""Longest run of a flex-start node, seven days: also GKE's default.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/dws
"""


@dataclass(frozen=True, slots=True)
class PoolRule:
    """One rule."""

    name: str
    """Such as `dws-not-spot`; also the name of the policy."""
    code: str
    """What `check` prints behind what breaks it."""
    asks: str
    """What must be, in one sentence."""
    source: str
    """Where the rule comes from: a page."""
    check: Callable[[Pool], Iterator[Breach]]
    refused: bool = True
    """Whether GKE, or Google's provider, refuses a pool that breaks it; False: the pool would not work as it should."""

    def breaches(self, pool: Pool) -> list[Breach]:
        """What breaks the rule; nothing where that depends on a fact that is not known."""
        all_breaches: list[Breach] = []
        with suppress(NotKnownError):
            all_breaches.extend(self.check(pool))
        return all_breaches


def breaches(pool: Pool) -> Iterator[tuple[PoolRule, Breach]]:
    """Everything that breaks a rule."""
    for rule in POOL_RULES:
        for breach in rule.breaches(pool):
            yield rule, breach


def is_dws(pool: Pool) -> bool:
    """Whether Dynamic Workload Scheduler makes the pool's nodes."""
    return pool.flex_start or pool.queued


def _one_size(pool: Pool) -> Iterator[Breach]:
    if pool.node_count is not None and pool.autoscaling:
        yield Breach(
            "node_count",
            f"is {pool.node_count}, but autoscaling is set too, and each update would undo what the autoscaler did",
            "keep one of the two",
        )


def _initial_size(pool: Pool) -> Iterator[Breach]:
    initial = pool.initial_node_count
    if initial is None:
        return
    if pool.node_count is not None:
        yield Breach("initial_node_count", f"is {initial}, but nodeCount fixes the size", "remove it, or nodeCount")
    elif pool.autoscaling and not pool.queued and not pool.least_nodes <= initial * pool.zone_count <= pool.most_nodes:
        where = f" in each of {pool.zone_count} zones" if pool.zone_count > 1 else ""
        yield Breach(
            "initial_node_count",
            f"is {initial}{where}, not between the limits of autoscaling, {pool.least_nodes} and {pool.most_nodes}",
            "set a number within the limits, or remove it",
        )


def _limits(pool: Pool) -> Iterator[Breach]:
    if not pool.autoscaling:
        return
    if pool.limits_in_total and pool.limits_by_zone:
        yield Breach("most_nodes", "is set for all zones together and for each zone", "keep one of the two")
    elif pool.most_nodes < 1:
        yield Breach("most_nodes", "is less than 1, so the pool never has a node", "set it to at least 1")
    elif pool.least_nodes > pool.most_nodes:
        yield Breach(
            "least_nodes", f"is {pool.least_nodes}, more than the maximum, {pool.most_nodes}", "set a smaller minimum"
        )


def _dws_autoscaling(pool: Pool) -> Iterator[Breach]:
    if not is_dws(pool) or pool.autoscaling:
        return
    if pool.node_count is not None:
        yield Breach(
            "node_count",
            f"is {pool.node_count}, a fixed size, but DWS nodes come and go",
            "set autoscaling with a maximum instead",
        )
    else:
        yield Breach("autoscaling", "is missing, but DWS nodes come and go", "set autoscaling with a maximum")


def _dws_from_zero(pool: Pool) -> Iterator[Breach]:
    if not pool.queued:
        return
    why = "but nodes of queued provisioning come only for ProvisioningRequests"
    if pool.autoscaling and pool.least_nodes:
        yield Breach("least_nodes", f"is {pool.least_nodes}, {why}", "set it to 0")
    if pool.initial_node_count:
        yield Breach("initial_node_count", f"is {pool.initial_node_count}, {why}", "set it to 0, or remove it")


def _dws_any_location(pool: Pool) -> Iterator[Breach]:
    if pool.queued and pool.location_policy not in (None, "ANY"):
        yield Breach(
            "location_policy",
            f"is {pool.location_policy}, but queued provisioning takes nodes wherever there are any",
            "set it to ANY",
        )


def _dws_no_reservation(pool: Pool) -> Iterator[Breach]:
    if is_dws(pool) and pool.reservation_type != "NO_RESERVATION":
        type_text = "is missing" if pool.reservation_type is None else f"is {pool.reservation_type}"
        yield Breach(
            "reservation_type", f"{type_text}, but DWS nodes come from no reservation", "set it to NO_RESERVATION"
        )


def _dws_not_spot(pool: Pool) -> Iterator[Breach]:
    if pool.spot and is_dws(pool):
        yield Breach("spot", "is true, but DWS nodes are not Spot VMs", "remove it")


def _dws_no_auto_repair(pool: Pool) -> Iterator[Breach]:
    if pool.flex_start and pool.auto_repair:
        yield Breach("auto_repair", "is true, but flex-start nodes cannot be repaired", "set it to false")


def _run_duration(pool: Pool) -> Iterator[Breach]:
    duration, seconds = pool.max_run_duration, pool.max_run_seconds
    if duration is None:
        return
    if seconds is None:
        yield Breach("max_run_duration", f"is {duration}, which is not whole seconds", "round it to seconds")
    elif not 0 < seconds <= FLEX_START_MAX_SECONDS and is_dws(pool):
        yield Breach(
            "max_run_duration",
            f"is {duration}, but DWS nodes live for at most seven days",
            f"set it to at least 1s and at most {FLEX_START_MAX_SECONDS // 3600}h ({FLEX_START_MAX_SECONDS}s)",
        )


def _spot_no_reservation(pool: Pool) -> Iterator[Breach]:
    if pool.spot and not is_dws(pool) and pool.reservation_type not in (None, "NO_RESERVATION"):
        yield Breach(
            "reservation_type", f"is {pool.reservation_type}, but Spot VMs come from no reservation", "remove it"
        )


def _reservation_named(pool: Pool) -> Iterator[Breach]:
    if pool.reservation_type == "SPECIFIC_RESERVATION":
        if pool.reservation_key != RESERVATION_KEY or len(pool.reservations) != 1:
            yield Breach(
                "reservations",
                "must be one name, as the type is SPECIFIC_RESERVATION",
                f"set key to {RESERVATION_KEY} and values to the name",
            )
    elif pool.reservations or pool.reservation_key:
        yield Breach(
            "reservations",
            f"names a reservation, but the type is {pool.reservation_type or 'not set'}",
            "set the type to SPECIFIC_RESERVATION, or remove key and values",
        )


def _compact(pool: Pool) -> Iterator[Breach]:
    """Pools of TPU slices are placed together as their topology has it, and have the rule of slices instead."""
    if not pool.compact or pool.machine_type.startswith(TPU_MACHINES):
        return
    if pool.machine_type.startswith(NOT_COMPACT):
        wrong = f"is set, but Google places no {pool.machine_type} machines close together"
        yield Breach("compact", wrong, "remove it, or use machines that it places so, such as N2, G2, A2 or A3")
    if pool.blue_green:
        yield Breach("compact", "is set, but blue-green upgrades do not keep nodes together", "use surge upgrades")
    if pool.queued:
        yield Breach(
            "compact",
            "is set, but queued provisioning takes nodes wherever there are any",
            "remove it, or turn queued provisioning off",
        )
    elif pool.flex_start and not pool.machine_type.startswith(COMPACT_FLEX_START):
        yield Breach(
            "compact",
            f"is set, but GKE does not place {pool.machine_type} machines of flex-start",
            "remove it, or use A3 Ultra, A4 or H4D machines",
        )


def _compact_zone(pool: Pool) -> Iterator[Breach]:
    if pool.compact and pool.zone_count != 1 and not pool.machine_type.startswith(TPU_MACHINES):
        zones_text = (
            f"are {', '.join(pool.zones)}" if pool.zones else f"are not set, which means {pool.zone_count} zones"
        )
        yield Breach("zones", f"{zones_text}, but compact placement is within one zone", "set exactly one zone")


def _upgradable(pool: Pool) -> Iterator[Breach]:
    surge = (pool.max_surge, pool.max_unavailable)
    if not pool.blue_green and surge != (None, None) and not any(surge):
        yield Breach(
            "max_surge", "is 0, and so is maxUnavailable, so no node can ever be upgraded", "set one of them to 1"
        )


def _managed(pool: Pool) -> Iterator[Breach]:
    """Source: https://cloud.google.com/kubernetes-engine/docs/how-to/node-auto-upgrades."""
    if not pool.auto_upgrade and pool.release_channel:
        yield Breach(
            "auto_upgrade",
            "is false, but the cluster is on a release channel, which upgrades its nodes",
            "remove it, and set the cluster's maintenance window",
        )
    if not pool.auto_repair and not pool.flex_start and pool.release_channel:
        yield Breach(
            "auto_repair", "is false, but the cluster is on a release channel, which repairs its nodes", "remove it"
        )


def _zones(pool: Pool) -> Iterator[Breach]:
    for index, zone in enumerate(pool.zones):
        if is_elsewhere(zone, pool.region):
            yield Breach(
                "zones", f"is {zone}, which is not in {pool.region}, the cluster's region", "name zones there", index
            )
        elif is_unknown_zone(zone):
            fix = f"use one of {', '.join(zones_of(pool.region))}"
            yield Breach("zones", f"is {zone}, which does not exist", fix, index)


_GKE: Final = "https://cloud.google.com/kubernetes-engine/docs"
_PROVISIONING: Final = f"{_GKE}/how-to/provisioningrequest"
_DWS: Final = f"{_GKE}/concepts/dws"
_RESERVATIONS: Final = f"{_GKE}/how-to/consuming-reservations"
_AUTOSCALER: Final = f"{_GKE}/concepts/cluster-autoscaler"
_MACHINES: Final = "https://cloud.google.com/compute/docs/accelerator-optimized-machines"

POOL_RULES: Final = (
    PoolRule(
        "pool-one-size",
        "KF636",
        "Node pools must have a fixed size or autoscaling, not both.",
        _AUTOSCALER,
        _one_size,
        refused=False,
    ),
    PoolRule(
        "pool-initial-size",
        "KF637",
        "The initial size of a node pool must be within its limits.",
        _AUTOSCALER,
        _initial_size,
    ),
    PoolRule("pool-limits", "KF638", "Autoscaling limits must be possible.", _AUTOSCALER, _limits),
    PoolRule("dws-autoscaling", "KF639", "DWS pools must use autoscaling.", _DWS, _dws_autoscaling),
    PoolRule("dws-from-zero", "KF640", "Queued pools must start from zero nodes.", _PROVISIONING, _dws_from_zero),
    PoolRule(
        "dws-any-location", "KF641", "Queued pools must not ask for balanced zones.", _PROVISIONING, _dws_any_location
    ),
    PoolRule("dws-no-reservation", "KF642", "DWS pools must not use reservations.", _PROVISIONING, _dws_no_reservation),
    PoolRule("dws-not-spot", "KF643", "DWS pools must not be Spot.", _DWS, _dws_not_spot),
    PoolRule("dws-no-auto-repair", "KF644", "Flex-start pools must have auto-repair off.", _DWS, _dws_no_auto_repair),
    PoolRule("dws-run-duration", "KF645", "DWS nodes must not live longer than seven days.", _DWS, _run_duration),
    PoolRule(
        "spot-no-reservation", "KF646", "Spot pools must not use reservations.", _RESERVATIONS, _spot_no_reservation
    ),
    PoolRule(
        "reservation-named",
        "KF647",
        "Pools of reserved nodes must name one reservation.",
        _RESERVATIONS,
        _reservation_named,
    ),
    PoolRule(
        "pool-compact-placement",
        "KF648",
        "Compact placement must be possible with the pool's capacity and upgrades.",
        f"{_GKE}/how-to/compact-placement",
        _compact,
    ),
    PoolRule(
        "pool-compact-zone",
        "KF649",
        "Pools with compact placement must be in one zone.",
        f"{_GKE}/how-to/compact-placement",
        _compact_zone,
    ),
    PoolRule(
        "pool-upgradable",
        "KF650",
        "Upgrades must be able to replace a node.",
        f"{_GKE}/concepts/node-pool-upgrade-strategies",
        _upgradable,
    ),
    PoolRule(
        "pool-managed",
        "KF651",
        "Pools on a release channel must have auto-upgrade and auto-repair on.",
        f"{_GKE}/how-to/node-auto-upgrades",
        _managed,
    ),
    PoolRule(
        "pool-gpus",
        "KF652",
        "Node pools must ask for GPUs that their machines have or take.",
        f"{_GKE}/concepts/gpus",
        check_gpus,
    ),
    PoolRule(
        "pool-gpu-sharing",
        "KF667",
        "GPUs must be shared, and divided, as GKE can.",
        f"{_GKE}/concepts/timesharing-gpus",
        check_gpu_sharing,
    ),
    PoolRule(
        "gpu-device-plugin",
        "KF668",
        "Pools whose GPUs are shared or divided must have GKE's device plugin.",
        f"{_GKE}/how-to/set-up-dra",
        check_device_plugin,
        refused=False,
    ),
    PoolRule(
        "tpu-topology",
        "KF653",
        "TPU topologies must be ones that the machine type has.",
        f"{_GKE}/concepts/plan-tpus",
        check_tpu_topology,
    ),
    PoolRule(
        "tpu-slice",
        "KF654",
        "Pools of multi-host TPU slices must have the size of a slice, in one zone.",
        f"{_GKE}/how-to/tpus",
        check_tpu_slice,
    ),
    PoolRule(
        "accelerator-network",
        "KF655",
        "Accelerator networks must be on machines that have them.",
        f"{_GKE}/how-to/config-auto-net-for-accelerators",
        check_network_profile,
    ),
    PoolRule(
        "accelerator-network-cards",
        "KF673",
        "Machines with network cards for their GPUs must have a network for each.",
        f"{_GKE}/how-to/gpu-bandwidth-gpudirect-tcpx",
        check_cards,
        refused=False,
    ),
    PoolRule(
        "accelerator-network-zone",
        "KF656",
        "Pools with networks of their accelerators must be in one zone.",
        f"{_GKE}/how-to/config-auto-net-for-accelerators",
        check_network_zone,
    ),
    PoolRule(
        "dranet",
        "KF657",
        "DRANET must be on machines that it supports, with networks of their accelerators.",
        f"{_GKE}/how-to/allocate-network-resources-dra",
        check_dranet,
        refused=False,
    ),
    PoolRule(
        "pool-boot-disk", "KF658", "Boot disks must be of a type that the machine takes.", _MACHINES, check_boot_disk
    ),
    PoolRule(
        "pool-local-ssds",
        "KF659",
        "Local SSDs must be as many as the machine takes.",
        "https://cloud.google.com/compute/docs/disks/local-ssd",
        check_local_ssds,
    ),
    PoolRule(
        "pool-secondary-disks",
        "KF663",
        "A pool must have at most one secondary boot disk, of a disk image, with image streaming.",
        f"{_GKE}/how-to/data-container-image-preloading",
        check_secondary_disks,
    ),
    PoolRule(
        "pool-fast-socket",
        "KF664",
        "NCCL Fast Socket must be on pools with GPUs.",
        f"{_GKE}/how-to/nccl-fast-socket",
        check_fast_socket,
    ),
    PoolRule(
        "pool-zones",
        "KF660",
        "Node pools must be in zones of the cluster's region.",
        "https://cloud.google.com/compute/docs/regions-zones",
        _zones,
    ),
    PoolRule(
        "pool-labels",
        "KF661",
        "Node labels must not be in domains of Kubernetes.",
        f"{_GKE}/how-to/update-existing-nodepools",
        check_labels,
    ),
    PoolRule(
        "pool-taints",
        "KF662",
        "Node taints must differ in key or effect.",
        "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
        check_taints,
    ),
)
"""Every rule, in the order in which problems are reported."""

_SEPARATION: Final = "tolerate a taint of your own and select its label in the pods of jobs, and GKE sets both"
ASKED_BY_PODS: Final = {
    "accelerator": "select cloud.google.com/gke-accelerator in the pods of jobs, and limit it in resourceLimits",
    "capacity": "for Spot VMs, select and tolerate cloud.google.com/gke-spot in the pods of jobs",
    "compactPlacement": "select cloud.google.com/gke-placement-group in the pods of jobs",
    "labels": _SEPARATION,
    "machineType": "select cloud.google.com/machine-family in the pods of jobs",
    "secondaryBootDisks": "list the image in a GCPResourceAllowlist on the cluster, and select cloud.google.com."
    "node-restriction.kubernetes.io/gke-secondary-boot-disk-NAME: CONTAINER_IMAGE_CACHE.PROJECT in the pods of jobs",
    "taints": _SEPARATION,
}
"""What to do in place of a pool's field for nodes that GKE makes by itself, by the field of the file.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/node-auto-provisioning."""
