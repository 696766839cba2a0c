"""What jobs ask of topologies: slices that pods come in.

Sources: kueue@v0.19.2 pkg/controller/jobframework/tas_validation.go (which sizes the webhooks refuse),
pkg/cache/scheduler/tas_flavor_snapshot.go (only whole slices are placed).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.names import POD_SET_ANNOTATION
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.syntax import whole_number
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.queued_job import PodSetTemplate, QueuedJob, job_fault, of_pod_set

_SIZE: Final = f"{POD_SET_ANNOTATION}slice-size"
_LEVEL: Final = f"{POD_SET_ANNOTATION}slice-required-topology"


@job_check
def check_slices(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Slices that Kueue refuses, or that leave pods over."""
    for pod_set in job.pod_sets:
        if fault := _slices(pod_set):
            yield of_pod_set(job, pod_set, fault)


def _slices(pod_set: PodSetTemplate) -> Fault | None:
    annotations_there = inside(pod_set.template, "metadata", "annotations")
    if (_SIZE in annotations_there) != (_LEVEL in annotations_there):
        there, missing_key = (_SIZE, _LEVEL) if _SIZE in annotations_there else (_LEVEL, _SIZE)
        return job_fault(f"has the annotation {there} without {missing_key}, and Kueue refuses the job", "give both")
    if _SIZE not in annotations_there:
        return None
    size = whole_number(str(annotations_there[_SIZE])) or 1
    if size > pod_set.count:
        return job_fault(
            f"has {pod_set.count} pods, but slices of {size} ({_SIZE}), and Kueue refuses the job",
            f"write at most {pod_set.count}",
        )
    if pod_set.count % size:
        whole = pod_set.count // size * size
        return job_fault(
            f"has {pod_set.count} pods, which slices of {size} ({_SIZE}) do not divide: Kueue places {whole}, and "
            "the others get no node",
            f"make it {whole} or {whole + size} pods, or choose another size",
        )
    return None
