"""Scheduling gates of others on the pods of jobs: Kueue takes away its own alone, and counts what they hold back.

Source: https://github.com/kubernetes-sigs/kueue/issues/9482;
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel.manifest import inside, maps_in
from kueue_admission.kernel.names import KUEUE_GROUP
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.jobs.check import right_job_check
from kueue_fleet.jobs.queued_job import QueuedJob, job_fault, of_pod_set


@right_job_check
def warn_of_gates(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Pods that stay behind a gate when their job is admitted."""
    for template in job.pod_sets if job.queue else ():
        gates = [str(gate.get("name")) for gate in maps_in(inside(template.template, "spec").get("schedulingGates"))]
        if others := [gate for gate in gates if not gate.startswith(f"{KUEUE_GROUP}/")]:
            wrong = (
                f"has the scheduling gate {', '.join(others)}, which Kueue does not take away: once admitted, the "
                "job keeps its quota while its pods wait for another controller"
            )
            fault = job_fault(wrong, "see that a controller takes it away, or remove it")
            yield of_pod_set(job, template, fault, "warning")
