"""What the API server and Kueue's webhook refuse of jobs, and what Pod Security Standards refuse of their pods.

Source: kubernetes@v1.36 pkg/apis/batch/validation (restartPolicy), pkg/apis/core/validation (devices are not
overcommitted); kueue@v0.19.2 pkg/controller/jobs/job/job_webhook.go (validatePartialAdmissionCreate).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kueue_admission.forms.form_rules import Fault
from kueue_admission.forms.manifest import Manifest, inside
from kueue_admission.forms.names import LEAST_PODS_ANNOTATION
from kueue_admission.forms.problem import Problem
from kueue_admission.forms.syntax import whole_number
from kueue_admission.read.manifests import key_of
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.objects.pod_security import controls
from kueue_fleet.simulation.provisioning_request import (
    job_fault,
    of_pod_set,
    pod_set_templates,
    queued_jobs,
)


def check_pod_rules(fleet: FleetSpec, manifests: Iterable[Document]) -> Iterator[Problem]:
    """Every pod set that is refused."""
    for job, _ in queued_jobs(fleet, manifests):
        team = fleet.team_in(key_of(job.data).partition("/")[0])
        standard = team.pod_security if team else "privileged"
        for pod_set in pod_set_templates(job.data):
            pod = inside(pod_set.template, "spec")
            faults = (*_of_job(job.data, pod, pod_set.count), *_devices(pod), *_security(pod, standard))
            yield from (of_pod_set(job, pod_set, fault) for fault in faults)


def _of_job(job: Manifest, pod: Manifest, count: int) -> Iterator[Fault]:
    if job["kind"] != "Job":
        return
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        wrong = f"has restartPolicy {pod.get('restartPolicy') or 'Always, the default'}, and Kubernetes refuses the Job"
        yield job_fault(wrong, "write Never or OnFailure")
    least = whole_number(str(inside(job, "metadata", "annotations").get(LEAST_PODS_ANNOTATION, "")))
    if least is not None and not 0 < least < count:
        wrong = f"has {count} pods, but {LEAST_PODS_ANNOTATION} is {least}, and Kueue refuses the Job"
        yield job_fault(wrong, f"write 1 to {count - 1}" if count > 1 else "remove it")


def _devices(pod: Manifest) -> Iterator[Fault]:
    for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
        limits, asked = (inside(container, "resources", field) for field in ("limits", "requests"))
        for name in dict.fromkeys((*limits, *asked)):
            if "/" in name and str(asked.get(name, limits.get(name))) != str(limits.get(name)):
                wrong = (
                    f"asks for {asked[name]} {name} in container {container.get('name')} with a limit of "
                    f"{limits.get(name, 'nothing')}, and Kubernetes refuses the pod"
                )
                yield job_fault(wrong, "write the same number as limit and request")


def _security(pod: Manifest, standard: str) -> Iterator[Fault]:
    for control in controls(standard):
        if control.breaks(pod):
            wrong = (
                f"breaks the Pod Security Standard {standard} of its team by {control.path}, and its pods are refused"
            )
            yield job_fault(wrong, f"{control.fix}, or write podSecurity of the team")
