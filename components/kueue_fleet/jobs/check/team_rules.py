"""What the fleet's own policies refuse of a job when a member of a team submits it.

The API server decides by what `objects.team_policy` and `objects.run_duration_policy` render, the same rules in CEL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.manifest import Manifest, inside, maps_in
from kueue_admission.kernel.names import (
    JOB_CONTROLLER,
    MULTIKUEUE_CONTROLLER,
    PRIORITY_LABEL,
    RUN_DURATION_ANNOTATION,
    RUN_SECONDS_ANNOTATION,
)
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.suggest import either
from kueue_admission.kernel.syntax import whole_number
from kueue_admission.read.manifests import label_of
from kueue_admission.simulate.raw import run_seconds_of
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.capacity import FlexStart
from kueue_fleet.fleet_file.model.per_cluster import local_queues
from kueue_fleet.fleet_file.model.queued_nodes import QUEUED_LABELS, leads_to_queued_nodes
from kueue_fleet.fleet_file.model.team_priorities import allowed_priority_classes
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.gke.labels import QUEUED, QUEUED_PROVISIONING_CLASS
from kueue_fleet.gke.pool_rules import FLEX_START_MAX_SECONDS
from kueue_fleet.jobs.check import job_check, right_job_check
from kueue_fleet.jobs.check.provisioning_request import requests_of
from kueue_fleet.jobs.queued_job import QueuedJob, job_fault, of_job, pod_set_templates, queue_key

_STOPPED: Final = ("Hold", "HoldAndDrain")
"""What `stopPolicy` says of a queue that admits no job."""
_OWN_CONTROLLERS: Final = frozenset(
    (
        JOB_CONTROLLER,
        "jobset.sigs.k8s.io/jobset-controller",
        "kubeflow.org/mpi-operator",
        "kubeflow.org/training-operator",
        "ray.io/kuberay-operator",
        "trainer.kubeflow.org/trainjob-controller",
        "workload.codeflare.dev/appwrapper-controller",
    )
)
"""What a job names as its controller by default: Kueue's webhook puts MultiKueue in its place.

Source: kueue@v0.19.2 pkg/controller/jobs (CanDefaultManagedBy).
"""


@job_check
def check_team_rules(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Everything that a policy of the fleet refuses."""
    is_dispatched = fleet.cluster(fleet.home).role == "manager"
    faults = list(_run_duration(fleet, job.data, job.queue))
    if (team := fleet.team_in(job.namespace)) is not None:
        faults += [*_priorities(fleet, team, job.data), *_places(fleet, job.data, job.queue)]
        if is_dispatched:
            faults += [*_managed_by(job.data), *_accounts(team, job.data)]
    for path, fault in faults:
        yield fault.rule.at(f"{label_of(job.data)}.{path}", fault.wrong, fault.fix).behind(job.document.where)


def _priorities(fleet: FleetSpec, team: TeamEntry, job: Manifest) -> Iterator[tuple[str, Fault]]:
    allowed_classes = allowed_priority_classes(fleet, team)
    label = inside(job, "metadata", "labels").get(PRIORITY_LABEL)
    of_jobs, of_pods = (
        [item.name for item in kind] for kind in (fleet.workload_priority_classes, fleet.priority_classes)
    )
    uses = [(f"metadata.labels[{PRIORITY_LABEL}]", label, of_jobs)]
    for pod_set in pod_set_templates(job):
        name = inside(pod_set.template, "spec").get("priorityClassName")
        uses.append((f"priorityClassName of pod set {pod_set.name}", name, of_pods))
    for path, name, class_names in uses:
        if name and name not in allowed_classes:
            usable = [class_name for class_name in class_names if class_name in allowed_classes]
            fix = f"use {either(usable)}" if usable else "remove it"
            yield path, Fault(f"{name} is not a priority class for team {team.name}", fix, JOB)


def _places(fleet: FleetSpec, job: Manifest, name: str) -> Iterator[tuple[str, Fault]]:
    """What takes nodes that are not those of the queue, or keeps them."""
    queue = fleet.queue(name)
    if inside(job, "metadata").get("finalizers"):
        yield "metadata.finalizers", Fault("Kueue could not stop the job once it is deleted", "remove it", JOB)
    for pod_set in pod_set_templates(job):
        pod = inside(pod_set.template, "spec")
        if pod.get("nodeName"):
            wrong = "takes a node past the flavors of its queue"
            yield f"nodeName of pod set {pod_set.name}", Fault(wrong, "use nodeSelector", JOB)
        tolerated_keys = {toleration.get("key") for toleration in maps_in(pod.get("tolerations"))}
        asks = QUEUED in tolerated_keys or not inside(pod, "nodeSelector").keys().isdisjoint(QUEUED_LABELS)
        if asks and queue is not None and not leads_to_queued_nodes(fleet, queue):
            wrong = f"are for nodes of DWS, and ClusterQueue {name} asks for none"
            path = f"nodeSelector or tolerations of pod set {pod_set.name}"
            yield path, Fault(wrong, "remove them, or use a queue with DWS", JOB)


def _managed_by(job: Manifest) -> Iterator[tuple[str, Fault]]:
    for steps in (("spec",), ("spec", "runPolicy")):
        name = inside(job, *steps).get("managedBy")
        if name and name != MULTIKUEUE_CONTROLLER and name not in _OWN_CONTROLLERS:
            wrong = f"{name}, and a manager takes only jobs that MultiKueue manages"
            yield ".".join((*steps, "managedBy")), Fault(wrong, "remove it", JOB)


def _accounts(team: TeamEntry, job: Manifest) -> Iterator[tuple[str, Fault]]:
    own = team.service_account_name
    for pod_set in pod_set_templates(job):
        name = inside(pod_set.template, "spec").get("serviceAccountName")
        if name and name not in (own, "default"):
            wrong = f"{name} is not an account that the fleet makes for team {team.name} on workers"
            yield (
                f"serviceAccountName of pod set {pod_set.name}",
                Fault(wrong, f"use {own}" if own else "remove it", JOB),
            )


def _run_duration(fleet: FleetSpec, job: Manifest, queue: str) -> Iterator[tuple[str, Fault]]:
    duration = inside(job, "metadata", "annotations").get(RUN_DURATION_ANNOTATION)
    if (fault := run_duration_fault(fleet, queue, duration)) is not None:
        yield f"metadata.annotations[{RUN_DURATION_ANNOTATION}]", fault


@right_job_check
def warn_of_stopped_queues(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Jobs whose queue is on Hold: they wait until somebody lets it go on."""
    queue, key = fleet.queue(job.queue), queue_key(job.data)
    stopped = [f"ClusterQueue {job.queue}"] if queue is not None and queue.stop_policy in _STOPPED else []
    stopped += [
        f"LocalQueue {key}"
        for namespace, name, spec in local_queues(fleet)
        if f"{namespace}/{name}" == key and spec.stop_policy in _STOPPED
    ]
    for item in stopped:
        yield of_job(job.document, JOB, f"waits: {item} is stopped", "set its stopPolicy to None", "warning")


@right_job_check
def warn_of_short_nodes(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Jobs that run longer than any node lives that DWS makes for them, by what they declare to it or say otherwise.

    Of those that say nothing, the ones that may: that is when Kubernetes ends their pods.

    What GKE says of these is not known.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/dws (maxRunDuration of the node pool).
    """
    said: dict[str, float | None] = {
        RUN_DURATION_ANNOTATION: whole_number(
            str(inside(job.data, "metadata", "annotations").get(RUN_DURATION_ANNOTATION))
        ),
        RUN_SECONDS_ANNOTATION: run_seconds_of(job.document),
    }
    annotation, seconds = next(((name, item) for name, item in said.items() if item is not None), ("", None))
    path = f"metadata.annotations[{annotation}]"
    if may := seconds is None:
        seconds, path = max(_deadlines(job), default=(None, ""))
    if seconds is not None and (fault := run_time_fault(fleet, job.queue, seconds, may=may)) is not None:
        problem = fault.rule.at(f"{label_of(job.data)}.{path}", fault.wrong, fault.fix, severity="warning")
        yield problem.behind(job.document.where)


def run_time_fault(fleet: FleetSpec, name: str, seconds: float, *, may: bool = False) -> Fault | None:
    """What is wrong with a job of a ClusterQueue that runs so long, or `may`; None: it ends before its nodes, or that
    is not known."""
    queue = fleet.queue(name)
    flavors = [
        flavor
        for flavor_name in dict.fromkeys(queue.flavor_names if queue is not None else ())
        if (flavor := fleet.flavor(flavor_name)) is not None
    ]
    pools = [pool for flavor in flavors for on in fleet.clusters_of(flavor) for pool in fleet.flavor_nodes(flavor, on)]
    lives = {pool.name: pool.capacity.max_run_duration for pool in pools if isinstance(pool.capacity, FlexStart)}
    if len(lives) < len({pool.name for pool in pools}) or any(seconds <= live.seconds for live in lives.values()):
        return None
    for last, live in lives.items():
        wrong = (
            f"so that it may run longer than its nodes live: those of pool {last} live {live}"
            if may
            else f"but nodes of pool {last} live {live}, and the job ends with them"
        )
        return job_fault(f"{seconds:.10g}, {wrong}", "write less, or make the pool's maxRunDuration longer")
    return None


def _deadlines(job: QueuedJob) -> Iterator[tuple[int, str]]:
    """After how many seconds Kubernetes ends the pods of each pod set at the latest, with where that is written."""
    spec = inside(job.data, "spec")
    jobs = maps_in(spec.get("replicatedJobs")) or [{}] * len(job.pod_sets)
    for pod_set, replicated_job in zip(job.pod_sets, jobs, strict=False):
        places = (spec, inside(spec, "runPolicy"), inside(replicated_job, "template", "spec"))
        deadlines = (place.get("activeDeadlineSeconds") for place in (*places, inside(pod_set.template, "spec")))
        if seconds := [item for item in deadlines if isinstance(item, int)]:
            yield min(seconds), f"activeDeadlineSeconds of pod set {pod_set.name}"


def run_duration_fault(fleet: FleetSpec, queue: str, value: object) -> Fault | None:
    """What is wrong with a run time that jobs of a ClusterQueue declare to DWS; None: nothing, or they declare none."""
    asks_dws = any(
        request.provisioning_class_name == QUEUED_PROVISIONING_CLASS for request in requests_of(fleet, queue)
    )
    if value is None or not asks_dws or 0 < (whole_number(str(value)) or 0) <= FLEX_START_MAX_SECONDS:
        return None
    wrong = f"{value}, but DWS grants 1 to {FLEX_START_MAX_SECONDS} seconds, which is seven days"
    return Fault(wrong, "write less, or cut the job up", JOB)
