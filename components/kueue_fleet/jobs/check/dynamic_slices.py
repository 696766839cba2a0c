"""Jobs on slices that GKE's slice controller makes of TPU7x: it joins cubes of 4x4x4 chips, or divides one.

A webhook of the controller makes the topology that a job asks for a place in Kueue's topology: all pods in one block,
and those of a cube, or of a part of one, together. Kueue gives the job its place; then the controller makes the slice,
and answers the admission check. What is here adds what the webhook adds, and refuses what it refuses.

Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/use-gke-dynamic-slicing; the webhook's own code, as
its mirrors on GitHub have it (tpu-slice-controller, internal/webhooks and internal/topology).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, Final

from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.names import POD_SET_ANNOTATION
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.labels import (
    SLICE_CONTROLLER,
    TOPOLOGY_BLOCK,
    TPU_ACCELERATOR,
    TPU_PARTITION,
    TPU_RESOURCE,
    TPU_SLICE_TOPOLOGY,
    TPU_TOPOLOGY,
)
from kueue_fleet.gke.tpu_slices import CUBE, PARTS_OF_CUBE, slice_nodes
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.check.tpus import chips_of, tpu_pools
from kueue_fleet.jobs.queued_job import PodSetTemplate, QueuedJob, job_fault, of_pod_set

_MACHINE: Final = "tpu7x-standard-4t"
_KINDS: Final = ("Job", "JobSet")
"""Kinds whose place is known. The webhook knows LeaderWorkerSets too."""


def as_placed(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job as the webhook leaves it; the same where it asks for no slice, or is refused."""
    spec = inside(job, "spec")
    if job.get("kind") == "Job":
        return {**job, "spec": _placed(spec)}
    if job.get("kind") != "JobSet":
        return dict(job)
    roles = [
        {**role, "template": {**inside(role, "template"), "spec": _placed(inside(role, "template", "spec"))}}
        for role in map(inside, spec.get("replicatedJobs") or ())
    ]
    return {**job, "spec": {**spec, "replicatedJobs": roles}}


def _placed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a Job."""
    template = inside(spec, "template")
    metadata = inside(template, "metadata")
    annotations = inside(metadata, "annotations")
    topology = annotations.get(TPU_SLICE_TOPOLOGY)
    nodes = _nodes(topology)
    if nodes is None:
        return dict(spec)
    pods = _pods(spec)
    part, size = (topology, pods) if topology in PARTS_OF_CUBE else (CUBE, pods * PARTS_OF_CUBE[CUBE] // nodes)
    place = {
        f"{POD_SET_ANNOTATION}required-topology": TOPOLOGY_BLOCK,
        f"{POD_SET_ANNOTATION}slice-required-topology": TPU_PARTITION.format(part),
        f"{POD_SET_ANNOTATION}slice-size": str(size),
    }
    return {**spec, "template": {**template, "metadata": {**metadata, "annotations": {**annotations, **place}}}}


def _pods(spec: Mapping[str, Any]) -> int:
    pods = spec.get("parallelism", 1)
    return pods if isinstance(pods, int) else 1


def _nodes(topology: object) -> int | None:
    """The nodes of a slice that the controller makes; None: it makes none such."""
    if not isinstance(topology, str):
        return None
    if topology in PARTS_OF_CUBE:
        return PARTS_OF_CUBE[topology]
    whole = all(side.isdecimal() and int(side) % 4 == 0 for side in topology.split("x"))
    return slice_nodes(_MACHINE, topology) if whole else None


@job_check
def check_slice_jobs(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """What keeps jobs from the slices that they ask for, or from cubes that they ask for no slice of."""
    cubes = any(pool.entry.accelerator_topology_mode for pool in tpu_pools(fleet, job.queue))
    for pod_set, pods in zip(job.pod_sets, _parallelism(job.data), strict=False):
        chips = chips_of(inside(pod_set.template, "spec")) * pods
        topology = inside(pod_set.template, "metadata", "annotations").get(TPU_SLICE_TOPOLOGY)
        if topology is None and cubes and chips:
            wrong = "requests TPUs of cubes, which run no pods until GKE's slice controller makes a slice of them"
            yield of_pod_set(job, pod_set, job_fault(wrong, f"annotate the pods with {TPU_SLICE_TOPOLOGY}"))
        elif topology is not None and (fault := _fault(fleet, job.queue, job.kind, pod_set, topology, chips)):
            yield of_pod_set(job, pod_set, fault)


def _parallelism(job: Mapping[str, Any]) -> Iterator[int]:
    """Pods of one slice, by pod set; for kinds that are not modelled any number."""
    spec = inside(job, "spec")
    for role in map(inside, spec.get("replicatedJobs") or ()):
        yield _pods(inside(role, "template", "spec"))
    while True:
        yield _pods(spec)


def _fault(
    fleet: FleetSpec, queue: str, kind: str, pod_set: PodSetTemplate, topology: object, chips: int
) -> Fault | None:
    if kind not in _KINDS:
        return job_fault(f"has {TPU_SLICE_TOPOLOGY}, which is modelled of {' and '.join(_KINDS)} alone", "use one")
    nodes = _nodes(topology)
    if nodes is None:
        parts = ", ".join(PARTS_OF_CUBE)
        return job_fault(
            f"asks for a slice of {topology}, which GKE's slice controller does not make of TPU7x",
            f"write {parts}, or larger sides in ascending order that 4 divides",
        )
    selector = inside(pod_set.template, "spec", "nodeSelector")
    if selector.get(TPU_ACCELERATOR) != "tpu7x" or TPU_TOPOLOGY in selector:
        wrong = f"asks for a slice of {topology}, but does not select nodes as GKE's slice controller needs it"
        return job_fault(wrong, f"select {TPU_ACCELERATOR}: tpu7x, and not {TPU_TOPOLOGY}")
    entry = fleet.queue(queue)
    checks = [fleet.check(name) for name in (entry.check_names if entry is not None else ())]
    if SLICE_CONTROLLER not in [check.controller_name for check in checks if check is not None]:
        wrong = f"asks for a slice of {topology}, but its queue has no check of {SLICE_CONTROLLER}"
        return job_fault(wrong, "add such an AdmissionCheck to the ClusterQueue")
    if chips != prod(map(int, str(topology).split("x"))):
        wrong = f"requests {chips} {TPU_RESOURCE} in the pods of a slice of {topology}"
        return job_fault(wrong, f"make it {nodes} pods of 4 each")
    return None
