"""Whether jobs fit the TPU slices of their queue: pods take whole nodes, and jobs whole slices.

Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/tpus (a pod requests all chips of its node),
https://cloud.google.com/kubernetes-engine/docs/concepts/tpus (atomicity).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.labels import TPU_ACCELERATOR, TPU_RESOURCE, TPU_TOPOLOGY
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.check.amounts import requests_of
from kueue_fleet.jobs.queued_job import PodSetTemplate, QueuedJob, job_fault, of_pod_set

_SELECTORS: Final = (TPU_ACCELERATOR, TPU_TOPOLOGY)


@job_check
def check_tpu_jobs(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """What keeps the Jobs and JobSets from the TPU pools of their queues.

    Queues whose TPU nodes GKE makes are left out, and pools of which it makes slices: see `dynamic_slices`.
    """
    pools = [pool for pool in tpu_pools(fleet, job.queue) if pool.entry.accelerator_topology_mode is None]
    for pod_set in job.pod_sets if pools else ():
        if fault := _fault(pod_set, pools):
            yield of_pod_set(job, pod_set, fault)


def tpu_pools(fleet: FleetSpec, queue: str) -> Iterator[ResolvedNodePool]:
    """The pools with TPUs to which the queue's flavors lead."""
    entry = fleet.queue(queue)
    groups = entry.resource_groups if entry is not None else ()
    names = [flavor.name for group in groups for flavor in group.flavors if TPU_RESOURCE in group.covered_resources]
    for cluster in fleet.job_clusters:
        for flavor in (fleet.flavor(name) for name in names):
            if flavor is not None and cluster in fleet.clusters_of(flavor):
                yield from (pool for pool in fleet.flavor_nodes(flavor, cluster) if pool.tpu_topology)


def _fault(pod_set: PodSetTemplate, pools: Iterable[ResolvedNodePool]) -> Fault | None:
    spec = pod_set.template.get("spec") or {}
    asked = chips_of(spec)
    if not asked or pod_set.count < 1:
        return None
    selector = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if key in _SELECTORS}
    pools_there = [pool for pool in pools if all(pool.labels.get(key) == value for key, value in selector.items())]
    if not pools_there:
        selector_text = ", ".join(f"{key}={value}" for key, value in selector.items())
        offers = " or ".join(dict.fromkeys(f"{pool.accelerator} {pool.tpu_topology}" for pool in pools))
        return job_fault(
            f"selects {selector_text}, but its queue leads to {offers}",
            "select one of these, or leave it to the queue",
        )
    whole = [pool for pool in pools_there if pool.accelerators_per_node == asked]
    if not whole:
        chips = " or ".join(str(one) for one in sorted({pool.accelerators_per_node for pool in pools_there}))
        return job_fault(
            f"requests {asked} {TPU_RESOURCE} a pod, but GKE runs a pod only if it takes all chips of its node",
            f"request {chips}",
        )
    if all(pod_set.count % pool.slice_nodes for pool in whole):
        pool = min(whole, key=lambda one: one.slice_nodes)
        return job_fault(
            f"has {pod_set.count} pods, but a slice of {pool.tpu_topology} is {pool.slice_nodes} nodes, and a job "
            "runs on whole slices",
            f"make it {-(-pod_set.count // pool.slice_nodes) * pool.slice_nodes} pods",
        )
    return None


def chips_of(spec: Mapping[str, Any]) -> int:
    """What the containers of a pod request of TPU chips; limits count where there are no requests."""
    total = 0
    for container in spec.get("containers") or ():
        total += Quantity(requests_of(container).get(TPU_RESOURCE, "0")).value
    return total
