"""RuntimeClasses of the pods of jobs: the API server refuses pods of one that is not there, Kueue admits their job.

Source: https://kubernetes.io/docs/concepts/containers/runtime-class/;
https://cloud.google.com/kubernetes-engine/docs/how-to/sandbox-pods (Autopilot has gvisor).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.form_rules import JOB_UNKNOWN, Fault
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.jobs.check import right_job_check
from kueue_fleet.jobs.queued_job import QueuedJob, of_pod_set

_OF_AUTOPILOT: Final = "gvisor"


@right_job_check
def warn_of_runtime_classes(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Pods of a RuntimeClass that a cluster of their queue may not have."""
    entry = fleet.queue(job.queue)
    if entry is None:
        return
    for template in job.pod_sets:
        name = str(inside(template.template, "spec").get("runtimeClassName") or "")
        unsure = [
            cluster
            for cluster in fleet.clusters_of(entry)
            if name != _OF_AUTOPILOT or fleet.cluster(cluster).mode != "Autopilot"
        ]
        if name and unsure:
            wrong = (
                f"has runtimeClassName {name}, and whether {', '.join(unsure)} has it is not known: without it no pod "
                "is made, and the job keeps its quota"
            )
            yield of_pod_set(job, template, Fault(wrong, "compare with `kubectl get runtimeclasses`", JOB_UNKNOWN))
