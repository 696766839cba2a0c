"""What became of each submitted job, read from Kueue's own objects.

No I/O: `follow_jobs` in `submission` does the listing, and keeps what a worker's copy said before Kueue removed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kueue_admission.read.printed import Printed, PrintedWorkload, WorkloadState
from kueue_fleet.status import dominant_reasons
from kueue_rehearsal.jobs.kinds import SERVICES

# A Workload with one of these reasons waits until a user changes a quota or the job; more time does not help it
# (apis/kueue/v1beta2/workload_types.go).
HOPELESS_REASONS = frozenset({"ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured", "Deactivated"})
"""Reasons that no waiting changes."""
_WAITING_FOR_OTHERS = frozenset({"WaitingForQuota", "Suspended"})
"""Reasons that change when other jobs release quota, or a user resumes a queue."""

Beyond = Callable[[str, PrintedWorkload], str | None]
"""Of a cluster and a Workload that holds quota there: why the simulated cloud never has what it asks for."""


class JobState(StrEnum):
    """Where a job stands, in Kueue's own words."""

    PENDING = "Pending"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    FINISHED = "Finished"
    FAILED = "Failed"


_ORDER: Final = tuple(JobState)
_NOT_DONE: Final = ("Failed", "OutOfSync", "OwnerNotFound")
"""Reasons of Finished where the job failed, or Kueue gave the Workload up without it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a worker admitted its copy of a Workload: the cluster, and the flavor of each resource."""

    cluster: str
    flavors: tuple[str, ...]


class Answer(NamedTuple):
    """What a cluster answered: `Reason: message`."""

    cluster: str
    said: str


@dataclass(frozen=True, slots=True)
class JobView:
    """One job as a user wants to see it.

    `waited_seconds` runs from creation to admission, or until now while the job waits. `reasons` says, for a job that
    waits, what each cluster answered.
    """

    kind: str
    namespace: str
    name: str
    state: JobState
    cluster: str
    flavors: tuple[str, ...]
    waited_seconds: float
    reasons: tuple[Answer, ...] = ()
    hopeless: bool = False

    @property
    def settled(self) -> bool:
        """Whether the job will not change any more unless a user acts."""
        serves = self.state is JobState.ADMITTED and self.kind in SERVICES
        return serves or self.hopeless or self.state in (JobState.FINISHED, JobState.FAILED)


def view_jobs(
    jobs: Iterable[Printed],
    home: str,
    workloads: Mapping[str, Sequence[PrintedWorkload]],
    placements: Mapping[str, Placement],
    now: datetime,
    beyond: Beyond = lambda cluster, workload: None,
    owners: Mapping[str, str] = MappingProxyType({}),
) -> list[JobView]:
    """A view of each of JOBS, in their order.

    `home` is the cluster they were submitted to, `workloads` every cluster's Workloads now, `placements` what
    `admitted_placements` said so far, by the key of the Workload, and `owners` the uid of what owns a pod or ReplicaSet
    of `home`, by its own.
    """
    by_owner, by_key = _by_owner(workloads[home], owners), _by_key(workloads)
    views = []
    for job in jobs:
        # A LeaderWorkerSet has a Workload for each of its groups, a Deployment for each pod: what waits is shown.
        workload = min(by_owner.get(job.uid, ()), key=lambda one: _ORDER.index(_state(one)), default=None)
        placement = placements.get(workload.key) if workload else None
        views.append(_view(job, workload, _reasons(workload, home, by_key, beyond), placement, now))
    return views


def only_wait_for_each_other(
    workloads: Mapping[str, Sequence[PrintedWorkload]], home: str, beyond: Beyond = lambda cluster, workload: None
) -> bool:
    """Whether no Workload of `home` can change on its own: none runs, and those with quota will never run."""
    by_key = _by_key(workloads)
    for workload in workloads[home]:
        if workload.is_true("Finished"):
            continue
        reasons = _reasons(workload, home, by_key, beyond).values()
        if not reasons or not all(reason.hopeless or reason.reason in _WAITING_FOR_OTHERS for reason in reasons):
            return False
    return True


def all_have_workloads(
    jobs: Iterable[Printed], workloads: Iterable[PrintedWorkload], owners: Mapping[str, str]
) -> bool:
    """Whether each of JOBS owns one of WORKLOADS, itself or through its pods."""
    return _by_owner(workloads, owners).keys() >= {job.uid for job in jobs}


def _by_key(workloads: Mapping[str, Sequence[PrintedWorkload]]) -> dict[str, dict[str, PrintedWorkload]]:
    """The Workloads of each cluster, by their key."""
    return {
        cluster: {workload.key: workload for workload in workload_list} for cluster, workload_list in workloads.items()
    }


def _by_owner(workloads: Iterable[PrintedWorkload], owners: Mapping[str, str]) -> dict[str, list[PrintedWorkload]]:
    """The Workloads of each job, by its uid: those that it owns, and those of its pods."""
    printed_workloads: dict[str, list[PrintedWorkload]] = {}
    for workload in workloads:
        for owner in workload.owners:
            uid: str | None = owner.uid
            while uid is not None:
                printed_workloads.setdefault(uid, []).append(workload)
                uid = owners.get(uid)
    return printed_workloads


def in_vain(view: JobView) -> JobView:
    """The view of a job that waits for others which `only_wait_for_each_other`."""
    if view.settled:
        return view
    why = "no running workload will release quota"
    return replace(
        view, hopeless=True, reasons=tuple(Answer(cluster, f"{reason}; {why}") for cluster, reason in view.reasons)
    )


class _Reason(NamedTuple):
    """Why a job waits on one cluster."""

    reason: str
    """Kueue's own."""
    message: str
    hopeless: bool


def _reasons(
    workload: PrintedWorkload | None,
    home: str,
    workloads: Mapping[str, Mapping[str, PrintedWorkload]],
    beyond: Beyond,
) -> dict[str, _Reason]:
    """By cluster, why a job waits; nothing if it does not."""
    if workload is None:
        return {home: _Reason(*dominant_reasons(home, None, {})[home], hopeless=False)}
    if workload.state in (WorkloadState.ADMITTED, WorkloadState.FINISHED):
        return {}
    copies = {
        cluster: _or_equal(of_cluster[workload.key], of_cluster.values())
        for cluster, of_cluster in workloads.items()
        if cluster != home and workload.key in of_cluster
    }
    own = _or_equal(workload, workloads[home].values())
    reasons = {}
    for cluster, (reason, message) in dominant_reasons(home, own, copies).items():
        never = beyond(cluster, copies.get(cluster, own)) if reason == "UnsatisfiedAdmissionChecks" else None
        reasons[cluster] = _Reason(reason, never or message, never is not None or reason in HOPELESS_REASONS)
    return reasons


def _or_equal(workload: PrintedWorkload, others: Iterable[PrintedWorkload]) -> PrintedWorkload:
    """The Workload, or an equal one in its place, where Kueue has parked it unlooked at because of that one.

    Source: kueue@v0.19.2 pkg/cache/queue/cluster_queue.go (hashToBulkMoveReason).
    """
    if "QuotaReserved" in workload.conditions:
        return workload
    wanted_amounts = _asks(workload)
    hopeless = (other for other in others if other.reason("QuotaReserved") in HOPELESS_REASONS)
    return next((other for other in hopeless if _asks(other) == wanted_amounts), workload)


def _asks(workload: PrintedWorkload) -> tuple[Any, ...]:
    """What decides whether a Workload fits."""
    sets = [
        (*map(pods.data.get, ("count", "topologyRequest")), pods.child("template").child("spec").data)
        for pods in workload.pod_sets
    ]
    return workload.namespace, workload.queue, workload.spec.data.get("priority"), sets


def _view(
    job: Printed,
    workload: PrintedWorkload | None,
    reasons: Mapping[str, _Reason],
    placement: Placement | None,
    now: datetime,
) -> JobView:
    until = None if workload is None else workload.since("Admitted")
    if workload is not None and "Admitted" not in workload.conditions:
        until = workload.changed_at("Finished")
    return JobView(
        kind=job.kind,
        namespace=job.namespace,
        name=job.name,
        state=_state(workload),
        cluster=placement.cluster if placement else workload.cluster_name if workload else "",
        flavors=placement.flavors if placement else (),
        waited_seconds=max(0.0, (now.timestamp() if until is None else until) - (job.created or 0.0)),
        reasons=tuple(Answer(cluster, f"{why.reason}: {why.message}") for cluster, why in reasons.items()),
        hopeless=bool(reasons) and all(why.hopeless for why in reasons.values()),
    )


def _state(workload: PrintedWorkload | None) -> JobState:
    if workload is None:
        return JobState.PENDING
    has_failed = workload.state is WorkloadState.FINISHED and workload.reason(workload.state) in _NOT_DONE
    return JobState.FAILED if has_failed else JobState(workload.state)


def admitted_placements(workloads: Mapping[str, Iterable[PrintedWorkload]], home: str) -> dict[str, Placement]:
    """Where each Workload is admitted now, by its key: on a worker, or on `home` where it is alone."""
    return {
        workload.key: Placement(cluster, _flavors(workload))
        for cluster in [name for name in workloads if name != home] or [home]
        for workload in workloads[cluster]
        if workload.is_true("Admitted")
    }


def _flavors(workload: PrintedWorkload) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(flavor for assignment in workload.assignments for _, flavor in assignment.pairs("flavors"))
    )
