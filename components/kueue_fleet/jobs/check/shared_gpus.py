"""Whether jobs ask for shares of GPUs as GKE gives them: where GPUs are shared, a container has one.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kueue_admission.decide.pods import PodSet
from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.gke.gpu_sharing import GpuSharing
from kueue_fleet.gke.labels import GPU_RESOURCE, accelerator_of
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.check.nodes import pod_set_of, possible_flavors
from kueue_fleet.jobs.queued_job import QueuedJob, job_fault, of_pod_set


class _Nodes(NamedTuple):
    """Nodes that the pods may come to."""

    flavor: str
    most: int | None
    """How many GPUs a container may request there; None: any number, or it is not known."""


class ShareRefusal(NamedTuple):
    """What is wrong with the requests of a pod set, and whether nodes of every flavor that it may get refuse it."""

    wrong: str
    fix: str
    everywhere: bool


@job_check
def check_shared_gpus(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Requests that no node takes, though Kueue admits them and GKE makes nodes for them; and, as warnings, those that
    some of the nodes do not take to which the pods may come."""
    for template in job.pod_sets:
        refusal = share_refusal(fleet, job.queue, pod_set_of(template))
        if refusal is not None:
            fault = job_fault(refusal.wrong, refusal.fix)
            yield of_pod_set(job, template, fault, "error" if refusal.everywhere else "warning")


def share_refusal(fleet: FleetSpec, queue_name: str, pod_set: PodSet) -> ShareRefusal | None:
    """Why nodes refuse the pods when they come from this ClusterQueue; None where none does."""
    queue, gpus = fleet.queue(queue_name), dict(pod_set.in_container).get(GPU_RESOURCE, 0)
    if queue is None or gpus < 2 or not pod_set.count:
        return None
    nodes = list(dict.fromkeys(_nodes(fleet, queue, pod_set)))
    fits = [node for node in nodes if node.most is None or gpus <= node.most]
    short = [node for node in nodes if node not in fits]
    if not short:
        return None
    flavors = ", ".join(dict.fromkeys(shortage.flavor for shortage in short))
    wrong = (
        f"has a container that requests {gpus} {GPU_RESOURCE}, but the GPUs of flavor {flavors} are shared, "
        f"and a node there refuses a container of more than {short[0].most} (UnexpectedAdmissionError)"
    )
    fix = "request 1, in more pods if it needs more"
    if fits:
        fix = f"select the nodes of {', '.join(dict.fromkeys(fit.flavor for fit in fits))} in its pods"
    return ShareRefusal(wrong, fix, not fits)


def _nodes(fleet: FleetSpec, queue: ClusterQueueEntry, pod_set: PodSet) -> Iterator[_Nodes]:
    for cluster in fleet.clusters_of(queue):
        for flavor, pods in possible_flavors(fleet, queue, pod_set, cluster):
            pools = fleet.flavor_nodes(flavor, cluster)
            for pool in pools:
                yield _Nodes(flavor.name, _most(pool.sharing, pool.accelerator, pool.gpus_per_node))
            if not pools:
                # Of nodes that GKE makes, the smallest have one GPU.
                sharing = GpuSharing.of_labels(pods.labels)
                yield _Nodes(flavor.name, _most(sharing, accelerator_of(pods.labels), 1))


def _most(sharing: GpuSharing, accelerator: str | None, gpus: int) -> int | None:
    return if_known(lambda: sharing.most_in_container(accelerator, gpus))
