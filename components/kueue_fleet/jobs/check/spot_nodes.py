"""Jobs that end with the first Spot node that Google takes back.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms, and that of `pods_that_may_fail`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.capacity import Spot
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.gke.labels import SPOT
from kueue_fleet.jobs.check import right_job_check
from kueue_fleet.jobs.check.nodes import pod_set_of, possible_flavors
from kueue_fleet.jobs.fleet_job import pods_that_may_fail
from kueue_fleet.jobs.queued_job import QueuedJob, job_fault, of_job


@right_job_check
def warn_of_lost_nodes(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Jobs no pod of which may fail, on a flavor of Spot nodes."""
    queue = fleet.queue(job.queue)
    name = _on_spot_nodes(fleet, queue, job) if queue is not None and pods_that_may_fail(job.data) == 0 else None
    if name is not None:
        wrong = f"has backoffLimit 0, and nodes of flavor {name} are Spot VMs: it fails when Google takes one back"
        fault = job_fault(wrong, "ignore DisruptionTarget in podFailurePolicy, or write a higher limit")
        yield of_job(job.document, fault.rule, fault.wrong, fault.fix, "warning")


def _on_spot_nodes(fleet: FleetSpec, queue: ClusterQueueEntry, job: QueuedJob) -> str | None:
    """A flavor of Spot nodes that pods of the job may get."""
    clusters = [name for name in fleet.clusters_of(queue) if name in fleet.job_clusters]
    for template, cluster in product(job.pod_sets, clusters):
        for flavor, pods in possible_flavors(fleet, queue, pod_set_of(template), cluster):
            pools = fleet.flavor_nodes(flavor, cluster)
            if pods.labels.get(SPOT) == "true" or any(isinstance(pool.capacity, Spot) for pool in pools):
                return flavor.name
    return None
