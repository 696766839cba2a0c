"""Who has how many GPUs, or chips of TPUs, now: by queue, and by flavor with the nodes behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.entries import FlavorEntry
from kueue_fleet.fleet_file.model.per_cluster import local_queues
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES, NODE_POOL
from kueue_fleet.status.accelerators import accelerators_asked, amount_of, reserved
from kueue_fleet.status.conditions import Manifest, is_true
from kueue_fleet.status.history import Clusters
from kueue_fleet.status.model import ClusterObjects, FlavorTop, QueueTop


def queue_tops(fleet: FleetSpec, clusters: Clusters) -> Iterator[QueueTop]:
    """Each ClusterQueue with GPUs on each cluster that could be read."""
    leads_to = {(namespace, name): spec.cluster_queue for namespace, name, spec in local_queues(fleet)}
    for cluster, found in clusters.items():
        pending: dict[str, list[Manifest]] = {}
        for workload in found.of("workloads"):
            if not (is_true(workload, "QuotaReserved") or is_true(workload, "Finished")):
                key = workload["metadata"]["namespace"], workload["spec"].get("queueName")
                pending.setdefault(leads_to.get(key, ""), []).append(workload)
        for queue in found.of("clusterqueues"):
            name = queue["metadata"]["name"]
            for resource in ACCELERATOR_RESOURCES:
                quotas = [amount for _, amount in _quotas(queue, resource)]
                if quotas:
                    used = sum(reserved(queue, resource, "total").values())
                    borrowed = sum(reserved(queue, resource, "borrowed").values())
                    quota = sum(quotas)
                    asked = sum(accelerators_asked(each, resource) for each in pending.get(name, ()))
                    free = max(0, quota - (used - borrowed))
                    yield QueueTop(name, cluster, resource, quota, used, borrowed, free, asked)


def flavor_tops(fleet: FleetSpec, clusters: Clusters) -> Iterator[FlavorTop]:
    """Each flavor with GPUs on each cluster that runs jobs, and the nodes of its pools."""
    for cluster in fleet.job_clusters:
        found = clusters.get(cluster, ClusterObjects("", unreachable="not read"))
        listed = found.objects.get("nodes")
        for entry in fleet.flavors:
            for resource in ACCELERATOR_RESOURCES:
                queues = [queue for queue in found.of("clusterqueues") if entry.name in dict(_quotas(queue, resource))]
                if not queues:
                    continue
                pools = fleet.flavor_nodes(entry, cluster)
                own = None if listed is None else list(_ready(listed, fleet, entry, cluster, resource))
                yield FlavorTop(
                    flavor=entry.name,
                    cluster=cluster,
                    resource=resource,
                    capacity=tuple(dict.fromkeys(pool.capacity.type for pool in pools)),
                    nodes=None if own is None else len(own),
                    most_nodes=sum(pool.max_nodes for pool in pools) if pools else None,
                    on_nodes=None if own is None else sum(_allocatable(node, resource) for node in own),
                    used=sum(reserved(queue, resource, "total").get(entry.name, 0) for queue in queues),
                )


def _quotas(queue: Manifest, resource: str) -> Iterator[tuple[str, int]]:
    """Flavors that have the resource, with their nominal quota."""
    for group in queue["spec"].get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for quota in flavor["resources"]:
                if quota["name"] == resource:
                    yield flavor["name"], amount_of({resource: quota["nominalQuota"]}, resource)


def _ready(
    nodes: Sequence[Manifest], fleet: FleetSpec, flavor: FlavorEntry, cluster: str, resource: str
) -> Iterator[Manifest]:
    """The flavor's ready nodes: of its pools, or that GKE made, as on Autopilot, with its labels and the resource."""
    pools = [pool.name for pool in fleet.flavor_nodes(flavor, cluster)]
    wanted = fleet.flavor_on(flavor, cluster).node_labels.items()
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        is_own = labels.get(NODE_POOL) in pools if pools else wanted <= labels.items() and _allocatable(node, resource)
        if is_own and is_true(node, "Ready"):
            yield node


def _allocatable(node: Manifest, resource: str) -> int:
    return amount_of((node.get("status") or {}).get("allocatable"), resource)
