"""Requests that Autopilot raises to its least when a job is made, so that Kueue counts more than the job says, and
those of which no machine has as much beside so many GPUs.

Sources: https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-resource-requests (they are raised, and
bounded by the number of GPUs); https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/pull/405 (the least of
T4). The least of other GPUs is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kueue_admission.decide.amounts import format_request
from kueue_admission.decide.pods import PodSet
from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.labels import ACCELERATOR, GPU_RESOURCE, SHARING_LABELS
from kueue_fleet.gke.machines import machine_catalogue, n1_accelerators
from kueue_fleet.jobs.check import right_job_check
from kueue_fleet.jobs.check.nodes import pod_set_of
from kueue_fleet.jobs.queued_job import QueuedJob, job_fault, of_pod_set

_LEAST: Final[Mapping[str, Mapping[str, int]]] = {"nvidia-tesla-t4": {"cpu": 500, "memory": 512 << 20}}
"""Of one pod, by its kind of GPU; CPUs in thousandths."""


@right_job_check
def warn_of_least_requests(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Jobs with pods below Autopilot's least, where they are submitted or dispatched to."""
    queue = fleet.queue(job.queue)
    if queue is None:
        return
    places = [name for name in (fleet.home, *fleet.clusters_of(queue)) if fleet.cluster(name).platform == "Autopilot"]
    for template in job.pod_sets if places else ():
        pods = pod_set_of(template)
        requests = dict(pods.requests)
        least = _LEAST.get(dict(pods.node_selector).get(ACCELERATOR, ""), {}) if requests.get(GPU_RESOURCE) else {}
        low = {name: amount for name, amount in least.items() if 0 < requests.get(name, 0) < amount}
        if low:
            asked = ", ".join(f"{format_request(name, requests[name])} {name}" for name in low)
            raised = ", ".join(f"{format_request(name, amount)} {name}" for name, amount in low.items())
            wrong = f"requests {asked} for each pod, and Autopilot on {places[0]} makes it {raised}, which Kueue counts"
            fault = job_fault(wrong, "write that much, and have the quota for it")
            yield of_pod_set(job, template, fault, "warning")
        elif beyond := _beyond_machines(pods, places[0]):
            yield of_pod_set(job, template, beyond, "warning")


def _beyond_machines(pods: PodSet, place: str) -> Fault | None:
    """Pods with GPUs in a number that no machine has, or with more CPUs than machines with as many allocate."""
    selector, requests = dict(pods.node_selector), dict(pods.requests)
    kind, gpus = selector.get(ACCELERATOR, ""), requests.get(GPU_RESOURCE, 0)
    # N1 machines with GPUs attached come in sizes of one's own.
    most = {count: cpus * 1000 for count, cpus in n1_accelerators().get(kind, {}).items()}
    for machine in machine_catalogue():
        if machine.accelerator == kind and not machine.attached:
            most[machine.gpus] = max(most.get(machine.gpus, 0), machine.allocatable["cpu"])
    if not gpus or not most or any(key in selector for key in SHARING_LABELS):
        return None
    if gpus not in most:
        wrong = f"requests {gpus} {GPU_RESOURCE} for each pod, and no machine with {kind} has that many on {place}"
        return job_fault(wrong, f"request {' or '.join(map(str, sorted(most)))}")
    if requests.get("cpu", 0) > most[gpus]:
        asked, least = (format_request("cpu", amount) for amount in (requests["cpu"], most[gpus]))
        wrong = f"requests {asked} cpu with {gpus} {kind} for each pod, and Autopilot on {place} has {least} at most"
        return job_fault(wrong, "request less, or more GPUs")
    return None
