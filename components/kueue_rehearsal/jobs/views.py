"""What became of each submitted job, read from Kueue's own objects.

No I/O: `follow_jobs` in `submission` does the listing, and keeps what a worker's copy said before Kueue removed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from kueue_fleet.status import condition, dominant_reasons, is_true
from kueue_rehearsal.jobs.kinds import SERVICES

Manifest = Mapping[str, Any]
"""An object of Kubernetes as plain data."""

# A Workload with one of these reasons waits until a user changes a quota or the job; more time does not help it
# (apis/kueue/v1beta2/workload_types.go).
HOPELESS_REASONS = frozenset({"ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured", "Deactivated"})
"""Reasons that no waiting changes."""
_WAITING_FOR_OTHERS = frozenset({"WaitingForQuota", "Suspended"})
"""Reasons that change when other jobs release quota, or a user resumes a queue."""

Beyond = Callable[[str, Manifest], str | None]
"""Of a cluster and a Workload that holds quota there: why the simulated cloud never has what it asks for."""


class JobState(StrEnum):
    """Where a job stands, in Kueue's own words."""

    PENDING = "Pending"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    FINISHED = "Finished"
    FAILED = "Failed"


_ORDER: Final = tuple(JobState)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a worker admitted its copy of a Workload: the cluster, and the flavor of each resource."""

    cluster: str
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobView:
    """One job as a user wants to see it.

    `waited_seconds` runs from creation to admission, or until now while the job waits. `reasons` says, for a job that
    waits, what each cluster answered: `cluster: Reason: message`.
    """

    kind: str
    namespace: str
    name: str
    state: JobState
    cluster: str
    flavors: tuple[str, ...]
    waited_seconds: float
    reasons: tuple[str, ...] = ()
    hopeless: bool = False

    @property
    def settled(self) -> bool:
        """Whether the job will not change any more unless a user acts."""
        serves = self.state is JobState.ADMITTED and self.kind in SERVICES
        return serves or self.hopeless or self.state in (JobState.FINISHED, JobState.FAILED)


def view_jobs(
    jobs: Sequence[Manifest],
    home: str,
    workloads: Mapping[str, Sequence[Manifest]],
    placements: Mapping[tuple[str, str], Placement],
    now: datetime,
    beyond: Beyond = lambda cluster, workload: None,
) -> list[JobView]:
    """A view of each of JOBS, in their order.

    `home` is the cluster they were submitted to, `workloads` every cluster's Workloads now, and `placements` what
    `admitted_placements` said so far, by the Workload's namespace and name.
    """
    by_owner = _by_owner(workloads[home])
    views = []
    for job in jobs:
        # A LeaderWorkerSet has a Workload for each of its groups: what it waits for is shown.
        workload = min(
            by_owner.get(job["metadata"]["uid"], ()), key=lambda one: _ORDER.index(_state(one)), default=None
        )
        placement = placements.get(_key(workload)) if workload else None
        views.append(_view(job, workload, _reasons(workload, home, workloads, beyond), placement, now))
    return views


def only_wait_for_each_other(
    workloads: Mapping[str, Sequence[Manifest]], home: str, beyond: Beyond = lambda cluster, workload: None
) -> bool:
    """Whether no Workload of `home` can change on its own: none runs, and those with quota will never run."""
    for workload in workloads[home]:
        if is_true(workload, "Finished"):
            continue
        reasons = _reasons(workload, home, workloads, beyond).values()
        if not reasons or not all(each.hopeless or each.reason in _WAITING_FOR_OTHERS for each in reasons):
            return False
    return True


def all_have_workloads(jobs: Iterable[Manifest], workloads: Iterable[Manifest]) -> bool:
    """Whether each of JOBS owns one of WORKLOADS."""
    return _by_owner(workloads).keys() >= {job["metadata"]["uid"] for job in jobs}


def _by_owner(workloads: Iterable[Manifest]) -> dict[str, list[Manifest]]:
    """The Workloads of each job, by its uid."""
    found: dict[str, list[Manifest]] = {}
    for each in workloads:
        for owner in each["metadata"].get("ownerReferences", ()):
            found.setdefault(owner["uid"], []).append(each)
    return found


def in_vain(view: JobView) -> JobView:
    """The view of a job that waits for others which `only_wait_for_each_other`."""
    if view.settled:
        return view
    why = "no running workload will release quota"
    return replace(view, hopeless=True, reasons=tuple(f"{reason}; {why}" for reason in view.reasons))


class _Reason(NamedTuple):
    """Why a job waits on one cluster."""

    reason: str
    """Kueue's own."""
    message: str
    hopeless: bool


def _key(workload: Manifest) -> tuple[str, str]:
    return workload["metadata"]["namespace"], workload["metadata"]["name"]


def _reasons(
    workload: Manifest | None, home: str, workloads: Mapping[str, Sequence[Manifest]], beyond: Beyond
) -> dict[str, _Reason]:
    """By cluster, why a job waits; nothing if it does not."""
    if _state(workload) not in (JobState.PENDING, JobState.QUOTA_RESERVED):
        return {}
    if workload is None:
        return {home: _Reason(*dominant_reasons(home, None, {})[home], hopeless=False)}
    copies = {
        cluster: _or_equal(copy, of_cluster)
        for cluster, of_cluster in workloads.items()
        if cluster != home
        for copy in of_cluster
        if _key(copy) == _key(workload)
    }
    own = _or_equal(workload, workloads[home])
    found = {}
    for cluster, (reason, message) in dominant_reasons(home, own, copies).items():
        never = beyond(cluster, copies.get(cluster, own)) if reason == "UnsatisfiedAdmissionChecks" else None
        found[cluster] = _Reason(reason, never or message, never is not None or reason in HOPELESS_REASONS)
    return found


def _or_equal(workload: Manifest, others: Iterable[Manifest]) -> Manifest:
    """The Workload, or an equal one in its place, where Kueue has parked it unlooked at because of that one.

    Source: kueue@v0.19.2 pkg/cache/queue/cluster_queue.go (hashToBulkMoveReason).
    """
    if condition(workload, "QuotaReserved") is not None:
        return workload
    wanted = _asks(workload)
    for other in others:
        found = condition(other, "QuotaReserved")
        if found is not None and found.get("reason") in HOPELESS_REASONS and _asks(other) == wanted:
            return other
    return workload


def _asks(workload: Manifest) -> tuple[Any, ...]:
    """What decides whether a Workload fits."""
    spec = workload.get("spec") or {}
    sets = [
        (pods.get("count"), pods.get("topologyRequest"), (pods.get("template") or {}).get("spec"))
        for pods in spec.get("podSets") or ()
    ]
    return workload["metadata"]["namespace"], spec.get("queueName"), spec.get("priority"), sets


def _view(
    job: Manifest, workload: Manifest | None, reasons: Mapping[str, _Reason], placement: Placement | None, now: datetime
) -> JobView:
    metadata = job["metadata"]
    admitted = condition(workload, "Admitted")
    until = _time(admitted["lastTransitionTime"]) if admitted and admitted["status"] == "True" else now
    finished = condition(workload, "Finished")
    if finished and admitted is None:
        until = _time(finished["lastTransitionTime"])
    return JobView(
        kind=str(job["kind"]),
        namespace=metadata["namespace"],
        name=metadata["name"],
        state=_state(workload),
        cluster=placement.cluster if placement else "",
        flavors=placement.flavors if placement else (),
        waited_seconds=max(0.0, (until - _time(metadata["creationTimestamp"])).total_seconds()),
        reasons=tuple(f"{cluster}: {why.reason}: {why.message}" for cluster, why in reasons.items()),
        hopeless=bool(reasons) and all(why.hopeless for why in reasons.values()),
    )


def _state(workload: Manifest | None) -> JobState:
    finished = condition(workload, "Finished")
    if finished and finished["status"] == "True":
        return JobState.FAILED if finished.get("reason") == "Failed" else JobState.FINISHED
    if is_true(workload, "Admitted"):
        return JobState.ADMITTED
    return JobState.QUOTA_RESERVED if is_true(workload, "QuotaReserved") else JobState.PENDING


def admitted_placements(workloads: Mapping[str, Iterable[Manifest]], home: str) -> dict[tuple[str, str], Placement]:
    """Where each Workload is admitted now, by its namespace and name: on a worker, or on `home` where it is alone."""
    found: dict[tuple[str, str], Placement] = {}
    for cluster in [name for name in workloads if name != home] or [home]:
        for workload in workloads[cluster]:
            if is_true(workload, "Admitted"):
                metadata = workload["metadata"]
                found[metadata["namespace"], metadata["name"]] = Placement(cluster, _flavors(workload))
    return found


def _flavors(workload: Manifest) -> tuple[str, ...]:
    assignments = ((workload.get("status") or {}).get("admission") or {}).get("podSetAssignments") or ()
    return tuple(
        dict.fromkeys(flavor for each in assignments for _, flavor in sorted((each.get("flavors") or {}).items()))
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
