"""What Kueue refuses of jobs, and Pod Security Standards of their pods, and why pods are never made.

Most of what Kubernetes refuses its API server says itself, in a dry run. Here is what it says only once a controller
makes the pods, of kinds whose templates it does not look into, and the restartPolicy of Jobs, which people forget.

Source: kubernetes@v1.36 pkg/apis/batch/validation (restartPolicy), pkg/apis/core/validation (names of containers,
devices that are not overcommitted, resources of pods);
kueue@v0.19.2 pkg/controller/jobs/job/job_webhook.go (validateCreate), pkg/controller/jobframework/validation.go
(ValidateElasticJobAnnotation), tas_validation.go (ValidateTASPodSetRequest), apis/kueue/v1beta2/workload_types.go
(podSets), pkg/controller/jobs/raycluster/raycluster_webhook.go (validateElasticJob).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kueue_admission.kernel import syntax
from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.manifest import Manifest, inside, maps_in
from kueue_admission.kernel.names import (
    ELASTIC_ANNOTATION,
    JOB_CONTROLLER,
    LEAST_PODS_ANNOTATION,
    MULTIKUEUE_CONTROLLER,
    POD_SET_ANNOTATION,
)
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.kernel.syntax import LABEL_1035, whole_number
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration
from kueue_fleet.fleet_file.model.job_forms import LONGEST_JOB_NAME
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.check.amounts import requests_of
from kueue_fleet.jobs.queued_job import (
    PodSetTemplate,
    QueuedJob,
    job_fault,
    of_job,
    of_pod_set,
)
from kueue_fleet.jobs.undispatched import respelt
from kueue_fleet.objects.pod_security import annotation_controls, controls

_ELASTIC_GATE: Final = "ElasticJobsViaWorkloadSlices"
_ELASTIC_KINDS: Final = ("Job", "RayCluster", "RayJob", "RayService")
_SYNC: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
_TOPOLOGY: Final = tuple(f"{POD_SET_ANNOTATION}{how}-topology" for how in ("required", "preferred", "unconstrained"))
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")


@job_check
def check_pod_rules(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Every job and pod set that is refused."""
    team = fleet.team_in(job.namespace)
    standard = team.pod_security if team else "privileged"
    pod_sets, elastic = job.pod_sets, _is_elastic(fleet, job.data)
    whole = (
        *_of_whole(job.data, elastic=elastic),
        *_autoscaled(fleet, job.queue, job.data),
        *_too_many(fleet, job.queue, pod_sets),
        *_managed_by(fleet, job.queue, job.data, team),
    )
    yield from (of_job(job.document, JOB, fault.wrong, fault.fix) for fault in whole)
    for pod_set in pod_sets:
        pod = inside(pod_set.template, "spec")
        faults = (
            *_of_job(job.data, pod, pod_set.count),
            *_of_topology(job.data, pod_set, elastic=elastic),
            *_containers(pod),
            *_devices(fleet, job.queue, pod),
            *_of_pod_resources(pod),
            *_security(pod_set.template, standard),
        )
        yield from (of_pod_set(job, pod_set, fault) for fault in faults)


def _of_whole(job: Manifest, *, elastic: bool) -> Iterator[Fault]:
    """What is refused of the job itself."""
    spec, annotations = inside(job, "spec"), inside(job, "metadata", "annotations")
    if elastic and job["kind"] not in _ELASTIC_KINDS:
        yield job_fault(
            f"has the annotation {ELASTIC_ANNOTATION}, and Kueue refuses a {job['kind']} with it", "remove it"
        )
    if job["kind"] == "JobSet":
        yield from _roles(job)
    if job["kind"] == "Job":
        yield from _completions(spec, annotations)
        if elastic and LEAST_PODS_ANNOTATION in annotations:
            both = f"{ELASTIC_ANNOTATION} and {LEAST_PODS_ANNOTATION}"
            yield job_fault(f"has the annotations {both}, and Kueue refuses both together", "keep one of the two")


def _roles(job: Manifest) -> Iterator[Fault]:
    """Names of a JobSet's roles, and of the Jobs and pods that it makes of them.

    Source: jobset@v0.11.0 pkg/webhooks/jobset_webhook.go (ValidateCreate).
    """
    metadata, roles = inside(job, "metadata"), maps_in(inside(job, "spec").get("replicatedJobs"))
    name = metadata.get("name") or f"{metadata.get('generateName')}xxxxx"
    names = [role.get("name") for role in roles]
    if twice := [role for role in dict.fromkeys(names) if names.count(role) > 1]:
        yield job_fault(f"has {twice[0]} twice in replicatedJobs, and Kubernetes refuses it", "give each its own name")
    for role in roles:
        spec, last = inside(role, "template", "spec"), (whole_number(str(role.get("replicas", 1))) or 1) - 1
        longest = f"{name}-{role.get('name')}-{last}"
        completions = whole_number(str(spec.get("completions")))
        if completions and spec.get("completionMode") != "NonIndexed":
            longest += f"-{completions - 1}-abcde"
        if not LABEL_1035.fullmatch(longest) or len(longest) > LONGEST_JOB_NAME:
            wrong = (
                f"makes Jobs and pods with names such as {longest}, and JobSet refuses those of more than 63 characters"
            )
            yield job_fault(f"{wrong}, with a dot, or without a letter at the start", "write shorter or other names")


def _autoscaled(fleet: FleetSpec, queue: str, job: Manifest) -> Iterator[Fault]:
    """An elastic RayCluster with Ray's autoscaler; of what is not elastic, the reader of the kind says so."""
    if job["kind"] != "RayCluster" or not (_is_marked(job) and inside(job, "spec").get("enableInTreeAutoscaling")):
        return
    if fleet.is_dispatched(queue):
        wrong = "has enableInTreeAutoscaling, and MultiKueue does not dispatch such a RayCluster"
        yield job_fault(wrong, "remove it, or submit to a queue that is not dispatched")
    elif not _is_elastic(fleet, job):
        wrong = f"has enableInTreeAutoscaling, and without the feature gate {_ELASTIC_GATE} Kueue refuses it"
        yield job_fault(wrong, "remove it, or set the gate in kueue.configuration.featureGates")


def _completions(spec: Manifest, annotations: Manifest) -> Iterator[Fault]:
    if str(annotations.get(_SYNC)) in _TRUE:
        if spec.get("completionMode") != "Indexed":
            yield job_fault(f"has the annotation {_SYNC} and is not Indexed, and Kueue refuses it", "remove it")
        elif spec.get("parallelism", 1) != spec.get("completions", 1):
            wrong = f"has the annotation {_SYNC} and completions other than parallelism, and Kueue refuses it"
            yield job_fault(wrong, "write the same number in both, or remove it")


def _too_many(fleet: FleetSpec, queue: str, pod_sets: Sequence[PodSetTemplate]) -> Iterator[Fault]:
    """The least of the releases where the job's Workload is."""
    entry = fleet.queue(queue)
    names = {fleet.home, *(fleet.clusters_of(entry) if entry is not None else ())}
    kueue = min((fleet.kueue_on(name).release for name in sorted(names)), key=lambda each: each.most_pod_sets)
    if len(pod_sets) > kueue.most_pod_sets:
        wrong = (
            f"has {len(pod_sets)} pod sets, and Kueue {kueue.version} makes no Workload of more than "
            f"{kueue.most_pod_sets}, so that it never starts"
        )
        yield job_fault(wrong, "put roles together, or submit several jobs")


def _managed_by(fleet: FleetSpec, queue: str, job: Manifest, team: TeamEntry | None) -> Iterator[Fault]:
    """Kueue names itself in jobs that it dispatches; elsewhere Kubernetes leaves such jobs to it."""
    manager_name = inside(job, "spec").get("managedBy")
    if job["kind"] == "Job" and manager_name not in (None, JOB_CONTROLLER) and fleet.queue(queue) is not None:
        if fleet.is_dispatched(queue):
            # What jobs of teams may name is a policy of the fleet; `team_rules` has it.
            if manager_name != MULTIKUEUE_CONTROLLER and team is None:
                yield job_fault(
                    f"has managedBy {manager_name}, and MultiKueue rejects it", "remove it: Kueue sets its own"
                )
        elif manager_name == MULTIKUEUE_CONTROLLER:
            wrong = f"has managedBy {manager_name}, and its queue is not dispatched, so that nothing makes its pods"
            yield job_fault(wrong, "remove it")


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


def _of_topology(job: Manifest, pod_set: PodSetTemplate, *, elastic: bool) -> Iterator[Fault]:
    annotations = inside(pod_set.template, "metadata", "annotations")
    annotations_there = [name for name in _TOPOLOGY if name in annotations]
    if len(annotations_there) > 1:
        yield job_fault(
            f"has the annotations {' and '.join(annotations_there)}, and Kueue refuses the job", "keep one of them"
        )
    elif set(annotations_there) & set(_TOPOLOGY[:2]) and job["kind"] == "Job" and elastic:
        wrong = f"has the annotation {annotations_there[0]}, and Kueue refuses it in an elastic job"
        yield job_fault(wrong, f"write {_TOPOLOGY[2]}")


def _is_elastic(fleet: FleetSpec, job: Manifest) -> bool:
    """Without the feature gate, Kueue takes no notice of the annotation."""
    if not _is_marked(job):
        return False
    gates = kueue_configuration(fleet, fleet.home).get("featureGates")
    return fleet.kueue_on(fleet.home).release.gate_is_on(_ELASTIC_GATE, gates)


def _is_marked(job: Manifest) -> bool:
    return bool(inside(job, "metadata", "annotations").get(ELASTIC_ANNOTATION) == "true")


def _containers(pod: Manifest) -> Iterator[Fault]:
    seen_names: set[str] = set()
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        name = str(container.get("name") or "")
        if not name:
            yield job_fault("has a container without a name, and Kubernetes refuses the pod", "name it")
        elif name in seen_names:
            yield job_fault(f"has two containers of the name {name}, and Kubernetes refuses the pod", "rename one")
        elif fault := syntax.dns_label(name):
            yield job_fault(f'has a container "{name}", a name that {fault.wrong}', fault.fix)
        seen_names.add(name)


def _of_pod_resources(pod: Manifest) -> Iterator[Fault]:
    """Resources of the pod as a whole are CPU and memory, at least as much as its containers request."""
    for field in ("requests", "limits"):
        for name in inside(pod, "resources", field):
            if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
                wrong = f"has {name} in the {field} of the pod, and Kubernetes takes cpu and memory alone there"
                yield job_fault(wrong, "write it in a container")
    requests_there = inside(pod, "resources", "requests")
    for name in ("cpu", "memory"):
        if name in requests_there:
            requests = (requests_of(container).get(name, "0") for container in pod.get("containers") or ())
            total = sum(map(Quantity, requests), Quantity(0))
            if total > Quantity(requests_there[name]):
                wrong = f"requests {requests_there[name]} {name} as a pod, and its containers {total.plain}"
                yield job_fault(f"{wrong}, and Kubernetes refuses the pod", f"write {total.plain} or more")


def _devices(fleet: FleetSpec, queue: str, pod: Manifest) -> Iterator[Fault]:
    for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
        limits, requests = (inside(container, "resources", field) for field in ("limits", "requests"))
        for name in dict.fromkeys((*limits, *requests)):
            if "/" in name and str(requests.get(name, limits.get(name))) != str(limits.get(name)):
                wrong = (
                    f"asks for {requests[name]} {name} in container {container.get('name')} with a limit of "
                    f"{limits.get(name, 'nothing')}, and Kubernetes refuses the pod"
                )
                near = respelt(fleet, queue, {name})
                yield job_fault(wrong, f"{near}{near and ' '}write the same number as limit and request")


def _security(template: Manifest, standard: str) -> Iterator[Fault]:
    spec, annotations = inside(template, "spec"), inside(template, "metadata", "annotations")
    broken = (
        *(control for control in controls(standard) if control.breaks(spec)),
        *(control for control in annotation_controls(standard) if control.breaks(annotations)),
    )
    for control in broken:
        wrong = f"breaks the Pod Security Standard {standard} of its team by {control.path}, and its pods are refused"
        yield job_fault(wrong, f"{control.fix}, or write podSecurity of the team")
