"""Who has how many GPUs, or chips of TPUs, now: by queue, and by flavor with the nodes behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueue_admission.read.printed import Printed, PrintedNode, PrintedWorkload
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.entries import FlavorEntry
from kueue_fleet.fleet_file.model.per_cluster import local_queues
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES, NODE_POOL
from kueue_fleet.status.accelerators import accelerators_asked, amount_of, quotas_in, reserved
from kueue_fleet.status.history import Clusters
from kueue_fleet.status.model import ClusterObjects, FlavorTop, QueueTop


def queue_tops(fleet: FleetSpec, clusters: Clusters) -> Iterator[QueueTop]:
    """Each ClusterQueue with GPUs on each cluster that could be read."""
    leads_to = {(namespace, name): spec.cluster_queue for namespace, name, spec in local_queues(fleet)}
    for cluster, objects in clusters.items():
        pending: dict[str, list[PrintedWorkload]] = {}
        for workload in objects.workloads:
            if not (workload.is_true("QuotaReserved") or workload.is_true("Finished")):
                pending.setdefault(leads_to.get((workload.namespace, workload.queue), ""), []).append(workload)
        for queue in objects.of("clusterqueues"):
            for resource in ACCELERATOR_RESOURCES:
                quotas = [amount for _, amount in _quotas(queue, resource)]
                if quotas:
                    used_amount = sum(reserved(queue, resource, "total").values())
                    borrowed_amount = sum(reserved(queue, resource, "borrowed").values())
                    quota = sum(quotas)
                    pending_amount = sum(
                        accelerators_asked(workload, resource) for workload in pending.get(queue.name, ())
                    )
                    free = max(0, quota - (used_amount - borrowed_amount))
                    yield QueueTop(
                        queue.name, cluster, resource, quota, used_amount, borrowed_amount, free, pending_amount
                    )


def flavor_tops(fleet: FleetSpec, clusters: Clusters) -> Iterator[FlavorTop]:
    """Each flavor with GPUs on each cluster that runs jobs, and the nodes of its pools."""
    for cluster in fleet.job_clusters:
        objects = clusters.get(cluster, ClusterObjects("", unreachable="not read"))
        for entry in fleet.flavors:
            for resource in ACCELERATOR_RESOURCES:
                queues = [
                    queue for queue in objects.of("clusterqueues") if entry.name in dict(_quotas(queue, resource))
                ]
                if not queues:
                    continue
                pools = fleet.flavor_nodes(entry, cluster)
                own = list(_ready(objects.nodes, fleet, entry, cluster, resource)) if objects.knows("nodes") else None
                yield FlavorTop(
                    flavor=entry.name,
                    cluster=cluster,
                    resource=resource,
                    capacity=tuple(
                        dict.fromkeys("owned" if pool.outside_gke else pool.capacity.type for pool in pools)
                    ),
                    nodes=None if own is None else len(own),
                    most_nodes=sum(pool.max_nodes for pool in pools) if pools else None,
                    on_nodes=None if own is None else sum(_allocatable(node, resource) for node in own),
                    used=sum(reserved(queue, resource, "total").get(entry.name, 0) for queue in queues),
                )


def _quotas(queue: Printed, resource: str) -> Iterator[tuple[str, int]]:
    """Flavors that have the resource, with their nominal quota."""
    for flavor, quota in quotas_in(queue):
        if quota.text("name") == resource:
            yield flavor, amount_of({resource: quota.data.get("nominalQuota")}, resource)


def _ready(
    nodes: Sequence[PrintedNode], fleet: FleetSpec, flavor: FlavorEntry, cluster: str, resource: str
) -> Iterator[PrintedNode]:
    """The flavor's ready nodes: of its pools, or that GKE made, as on Autopilot, with its labels and the resource."""
    pools = [pool.name for pool in fleet.flavor_nodes(flavor, cluster) if not pool.outside_gke]
    wanted_labels = fleet.flavor_on(flavor, cluster).node_labels.items()
    for node in nodes:
        labels = node.labels.data
        is_own = (
            labels.get(NODE_POOL) in pools
            if pools
            else wanted_labels <= labels.items() and _allocatable(node, resource) > 0
        )
        if is_own and node.is_true("Ready"):
            yield node


def _allocatable(node: PrintedNode, resource: str) -> int:
    return amount_of(node.status.child("allocatable").data, resource)
