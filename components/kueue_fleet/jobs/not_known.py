"""Why it is not known whether a job starts: what its place depends on is GKE's, and not in the fleet's file.

A job that the simulation does not start is one that never starts only where everything that it waits for is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kueue_admission.decide.pods import PodSet
from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.kernel.form_rules import JOB_UNKNOWN, Fault
from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_admission.simulate.records import State
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.counted_requests import may_be_added
from kueue_fleet.fleet_file.model.entries import FlavorEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.labels import NODE_LABELS, SYSTEM_LABEL, ZONE
from kueue_fleet.jobs.fleet_job import FleetJob
from kueue_fleet.jobs.topology_nodes import placed_labels


def is_label_known(key: str, pool: ResolvedNodePool) -> bool:
    """Whether it is known if the nodes of the pool have the label: GKE gives them others than the documented ones."""
    if key in (HOSTNAME_LABEL, ZONE, *pool.labels, *placed_labels(pool, 0)):
        return True
    if pool.outside_gke:
        return False
    return not SYSTEM_LABEL.search(key) or (key in NODE_LABELS and pool.machine is not None)


def start_not_known(fleet: FleetSpec, job: FleetJob) -> Fault | None:
    """Why it is not known whether the job starts, though it did not in a simulation, with what to do; else None."""
    record = job.record
    if record.finished_at is not None or any(run.started_at is not None for run in record.runs):
        return None
    if QuotaReservedReason.TOPOLOGY_PLACEMENT_FAILED in {record.reason, *job.why.values()}:
        return _place_not_known(fleet, record.cluster_queue, job.workload.pod_sets)
    where = record.runs[-1].cluster if record.runs else None
    if where and not fleet.cluster(where).runs_jobs and not fleet.is_dispatched(record.cluster_queue):
        wrong = f"queue {record.cluster_queue} admits it on {where}, a manager, whose nodes are not known"
        return Fault(wrong, "submit it to a queue that is dispatched to workers", JOB_UNKNOWN)
    if where and not fleet.cluster(where).runs_jobs and may_be_added(fleet, record.cluster_queue):
        wrong = f"it requests nothing that its queue counts, and Autopilot may add requests when it is made on {where}"
        return Fault(wrong, "write the requests of its containers", JOB_UNKNOWN)
    if (where and fleet.cluster(where).runs_jobs) or record.state is State.QUOTA_RESERVED:
        return _nodes_not_known(fleet, record.cluster_queue)
    return None


def _place_not_known(fleet: FleetSpec, queue: str, pod_sets: Iterable[PodSet]) -> Fault | None:
    """In a queue with no other flavors, all jobs get a place in a topology, even if they do not ask."""
    flavors = list(_flavors(fleet, queue))
    asks = any(pod_set.topology is not None and pod_set.topology.is_explicit for pod_set in pod_sets)
    if not asks and any(flavor.topology_name is None for flavor in flavors):
        return None
    return next((why for flavor in flavors for why in _levels_not_known(fleet, flavor)), None)


def _nodes_not_known(fleet: FleetSpec, queue: str) -> Fault | None:
    pools = (pool for flavor in _flavors(fleet, queue) for pool in _pools(fleet, flavor))
    return next(
        (
            Fault(
                f"node pool {pool.name} has machines of type {pool.machine_type}, whose size is not in the catalogue",
                "compare with `kubectl describe nodes`",
                JOB_UNKNOWN,
            )
            for pool in pools
            if pool.machine is None
        ),
        None,
    )


def _levels_not_known(fleet: FleetSpec, flavor: FlavorEntry) -> Iterator[Fault]:
    topology = fleet.topology_of(flavor)
    if topology is None:
        return
    pools = list(_pools(fleet, flavor))
    if not pools:
        yield Fault(
            f"flavor {flavor.name} has topology {topology.name}, and no node pool of the file leads to it, so that "
            "its nodes are not known",
            "compare with `kubectl get nodes`",
            JOB_UNKNOWN,
        )
    for pool in pools:
        for level in topology.levels:
            if not is_label_known(level.node_label, pool):
                yield Fault(
                    f"topology {topology.name} has the level {level.node_label}, which GKE may give to nodes of pool "
                    f"{pool.name}",
                    f"compare with `kubectl get nodes -L {level.node_label}`",
                    JOB_UNKNOWN,
                )


def _flavors(fleet: FleetSpec, queue: str) -> Iterator[FlavorEntry]:
    entry = fleet.queue(queue)
    for name in dict.fromkeys(entry.flavor_names) if entry is not None else ():
        flavor = fleet.flavor(name)
        if flavor is not None:
            yield flavor


def _pools(fleet: FleetSpec, flavor: FlavorEntry) -> Iterator[ResolvedNodePool]:
    for cluster in fleet.clusters_of(flavor):
        yield from fleet.flavor_nodes(flavor, cluster)
