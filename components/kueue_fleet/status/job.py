"""One job of a live fleet: its Workload, the cluster that runs it, and its pods there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kueue_admission.api.job_kinds import KINDS
from kueue_admission.kernel import syntax
from kueue_admission.read.dispatch_report import WAITING_CONDITION
from kueue_admission.read.printed import PrintedWorkload, WorkloadState
from kueue_admission.read.printed_pods import PrintedPod
from kueue_fleet.status.conditions import dominant_reasons

WORKLOAD_ANNOTATION: Final = "kueue.x-k8s.io/workload"
"""Annotation of a pod with the name of its Workload (kueue@v0.19.2 pkg/controller/jobframework/reconciler.go)."""
PODS_SELECTOR: Final = "kueue.x-k8s.io/podset"
"""Label of every pod that Kueue has started."""
SCHEMA_VERSION: Final = 1
"""Of the JSON document; larger where a reader of the former would misread it."""


class JobName(NamedTuple):
    """What a user calls a job; an empty kind or namespace is not said."""

    name: str
    kind: str = ""
    """As manifests have it, such as JobSet."""
    namespace: str = ""


def parse_job_name(text: str) -> JobName:
    """`NAME`, `NAMESPACE/NAME` or `kind/NAME`, where `kind` is one that Kueue manages, as kubectl takes kinds.

    Raises ValueError with what is wrong and what to do.
    """
    first, slash, name = text.rpartition("/")
    if not name or "/" in first or (slash and not first):
        raise ValueError("is not a name of a job; write NAME, NAMESPACE/NAME or kind/NAME")
    kind = _kinds().get(first.lower())
    for kind_or_name in (name, *([first] if slash and not kind else [])):
        if wrong := syntax.dns_subdomain(kind_or_name):
            raise ValueError(str(wrong))
    return JobName(name, kind, "") if kind else JobName(name, "", first)


def _kinds() -> dict[str, str]:
    """Kind by each of its names, in lower case: kind, plural, and the plural with its group."""
    kinds: dict[str, str] = {}
    for job_kind in KINDS.values():
        for name in (job_kind.kind.lower(), job_kind.plural, f"{job_kind.plural}.{job_kind.group}"):
            kinds.setdefault(name, job_kind.kind)
    return kinds


def jobs_called(job_name: JobName, workloads: Iterable[PrintedWorkload]) -> list[PrintedWorkload]:
    """The Workloads of the job, or those that have this name themselves; the latest of a job's is the first."""
    printed_workloads = []
    for workload in workloads:
        kind, name = owner_of(workload)
        own = workload.name == job_name.name and not job_name.kind
        if own or (name == job_name.name and job_name.kind in ("", kind)):
            printed_workloads.append(workload)
    return sorted(printed_workloads, key=lambda each: each.created or 0.0, reverse=True)


def owner_of(workload: PrintedWorkload) -> tuple[str, str]:
    """Kind and name of the job that a Workload is for; of a group of pods the name of the Workload is the group's."""
    owners = workload.owners
    return (owners[0].kind, owners[0].name) if len(owners) == 1 else ("Pod" if owners else "", workload.name)


def pods_of(workload: PrintedWorkload, pods: Iterable[PrintedPod]) -> list[PrintedPod]:
    """Those of its pods, by name: Kueue says which, where topology-aware scheduling is on; else their owner does."""
    owner = owner_of(workload)
    printed_pods = []
    for pod in pods:
        workload_name = pod.annotations.text(WORKLOAD_ANNOTATION)
        owners = [(owner.kind, owner.name) for owner in pod.owners]
        if workload_name == workload.name or (not workload_name and owner in [*owners, ("Pod", pod.name)]):
            printed_pods.append(pod)
    return sorted(printed_pods, key=lambda each: each.name)


@dataclass(frozen=True, slots=True)
class PodStatus:
    """A pod of a job."""

    name: str
    phase: str
    """Or why its container waits, such as ImagePullBackOff, or why its node ended it, such as
    UnexpectedAdmissionError."""
    ready: bool
    restarts: int
    node: str
    event: str = ""
    """The reason and message of its latest event, while it is Pending; empty: not known."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job at one moment."""

    namespace: str
    name: str
    kind: str
    workload: str
    queue: str
    """LocalQueue."""
    home: str
    """The cluster that it was submitted to."""
    state: str
    """Pending, QuotaReserved, Admitted or Finished."""
    since: str
    """When that began, as Kueue wrote it; empty: not known."""
    cluster: str
    """Where it runs, or ran; empty: nowhere yet."""
    nominated: tuple[str, ...]
    """The workers that may take it, while it waits for one."""
    reasons: Mapping[str, tuple[str, str]]
    """Why it is in this state: Kueue's reason and message by cluster."""
    pods: tuple[PodStatus, ...] = ()
    says: str = ""
    """What the fleet's controller says of why it waits, in lines; empty: nothing."""
    event: str = ""
    """The reason and message of the job's latest event, while it is admitted without any pod; empty: not known."""

    @property
    def waits(self) -> bool:
        """Whether it has yet to be admitted."""
        return self.state in ("Pending", "QuotaReserved")

    def as_json(self) -> dict[str, Any]:
        """As one document, names in camelCase."""
        return {
            "schemaVersion": SCHEMA_VERSION,
            "namespace": self.namespace,
            "name": self.name,
            "kind": self.kind,
            "workload": self.workload,
            "queue": self.queue,
            "submittedTo": self.home,
            "state": self.state,
            "since": self.since or None,
            "cluster": self.cluster or None,
            "nominatedClusters": list(self.nominated),
            "reasons": [
                {"cluster": cluster, "reason": reason, "message": message}
                for cluster, (reason, message) in self.reasons.items()
            ],
            "says": self.says or None,
            "event": self.event or None,
            "pods": [
                {
                    "name": pod.name,
                    "phase": pod.phase,
                    "ready": pod.ready,
                    "restarts": pod.restarts,
                    "node": pod.node or None,
                    "event": pod.event or None,
                }
                for pod in self.pods
            ],
        }


def job_status(
    home: str,
    workload: PrintedWorkload,
    copies: Mapping[str, PrintedWorkload],
    pods: Sequence[PrintedPod] = (),
    events: Mapping[str, str] | None = None,
) -> JobStatus:
    """How the job of `workload`, which is on the cluster `home`, is. `copies` are its Workloads on workers.

    `events` has the latest event of pods, and of a job without pods, by name.
    """
    known_events = events or {}
    state = workload.state
    kind, name = owner_of(workload)
    reasons = dominant_reasons(home, workload, copies)
    if state in (WorkloadState.FINISHED, WorkloadState.ADMITTED):
        reasons = {home: (workload.reason(state), workload.message(state))}
    pending = state is WorkloadState.PENDING
    return JobStatus(
        namespace=workload.namespace,
        name=name,
        kind=kind,
        workload=workload.name,
        queue=workload.queue,
        home=home,
        state=state,
        since=workload.metadata.text("creationTimestamp")
        if pending
        else str(workload.conditions[state].get("lastTransitionTime", "")),
        cluster=runs_on(home, workload),
        nominated=workload.nominated,
        reasons=reasons,
        pods=tuple(_pod(pod, known_events.get(pod.name, "")) for pod in pods),
        event="" if pods else known_events.get(name, ""),
        says=workload.message(WAITING_CONDITION),
    )


def timeline(workload: PrintedWorkload) -> list[str]:
    """What happened to a job, as far as its Workload says: a line for each of its conditions and admission checks, as
    they are now, the last at the end."""
    events = [(workload.metadata.text("creationTimestamp"), f"submitted to LocalQueue {workload.queue}")]
    for kind, condition in workload.conditions.items():
        if kind != WAITING_CONDITION:
            state = kind if workload.is_true(kind) else f"not {kind}"
            events.append((str(condition.get("lastTransitionTime", "")), _state_text(state, workload.message(kind))))
    for check in workload.checks:
        state = f"AdmissionCheck {check.text('name')}: {check.text('state')}"
        events.append((check.text("lastTransitionTime"), _state_text(state, check.text("message"))))
    return [f"{at or 'not known when'}  {what}" for at, what in sorted(events)]


def _state_text(state: str, message: str) -> str:
    return ": ".join(filter(None, (state, " ".join(message.split()))))


def runs_on(home: str, workload: PrintedWorkload) -> str:
    """The cluster with its pods: the worker that won it, or the one it was submitted to; empty: none yet."""
    is_admitted = workload.state in (WorkloadState.FINISHED, WorkloadState.ADMITTED)
    return workload.cluster_name or (home if is_admitted else "")


def latest_event(events: Sequence[Mapping[str, Any]]) -> str:
    """Reason and message of the latest of some events, in one line."""
    latest = max(events, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return _state_text(str(latest.get("reason", "")), str(latest.get("message", "")))


def _pod(pod: PrintedPod, event: str) -> PodStatus:
    containers = list(pod.status.children("containerStatuses"))
    waiting = [container.child("state").child("waiting").text("reason") for container in containers]
    phase = (pod.is_over and pod.status.text("reason")) or pod.phase
    if not pod.is_over and any(waiting):
        phase = next(filter(None, waiting))
    return PodStatus(
        name=pod.name,
        phase=phase,
        ready=bool(containers) and all(container.flag("ready") for container in containers),
        restarts=sum(container.integer("restartCount") for container in containers),
        node=pod.node,
        event=event,
    )
