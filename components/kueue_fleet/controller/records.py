"""What the controller keeps of a Workload of the manager: a small record instead of the whole object.

What cannot be read makes the record `unreadable`, with the reason; it never stops the controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kueue_admission.decide.errors import AdmissionError
from kueue_admission.decide.model import Workload
from kueue_admission.decide.pods import PodSet
from kueue_admission.forms.names import RUN_DURATION_ANNOTATION
from kueue_admission.read.dispatch_report import DISPATCH_CONDITION
from kueue_admission.read.fields import Fields
from kueue_admission.read.manifests import conditions_of, inside, since
from kueue_admission.read.workloads import Context, parse_workload
from kueue_fleet.dispatch import REGIONS_LABEL, GivenUp, Reason
from kueue_fleet.dispatch.assignment import ASSIGNED_CONDITION, parse_assignment
from kueue_fleet.dispatch.rescue import OWNER_NOT_FOUND
from kueue_fleet.dispatch.watchdog import GIVEN_UP_CONDITION, RETRIES_USED, parse_given_up
from kueue_fleet.kube.answers import Json, version_number

_JOB_OWNER: Final = "kueue.x-k8s.io/job-owner-gvk"
"""Annotation on the Workloads of a job that has several."""


@dataclass(frozen=True, slots=True)
class Check:
    """One admission check of a Workload; `since` and `requeue_after` (seconds) as they are written, if they are."""

    state: str
    message: str = ""
    since: str = ""
    requeue_after: int | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """The job of a Workload."""

    kind: str = ""
    name: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Our condition on a Workload."""

    status: bool
    reason: str
    message: str
    since: float


@dataclass(frozen=True, slots=True)
class Record:
    """A Workload of the manager. Times are seconds of the epoch; None where a condition is not True."""

    key: str
    namespace: str
    name: str
    uid: str
    version: int
    workload: Workload
    unreadable: str = ""
    regions: str | None = None
    run_seconds: str | float | None = None
    cluster_queue: str = ""
    reserved_at: float | None = None
    admitted_at: float | None = None
    evicted_at: float | None = None
    finished: bool = False
    deleted_at: float | None = None
    lost_at: float | None = None
    """When it was finished because its job is gone on its worker, though it is there on the manager."""
    cluster_name: str = ""
    nominated: tuple[str, ...] = ()
    owner: Owner = Owner()
    checks: Mapping[str, Check] = field(default_factory=dict)
    report: Report | None = None
    given_up: Mapping[str, GivenUp] = field(default_factory=dict)
    retries_used: bool = False
    assigned: str = ""
    """The only worker that may admit it; empty: none may yet."""
    component_of: str = ""
    """Uid of the job that several Workloads are parts of, such as a LeaderWorkerSet; empty for any other job."""

    @property
    def holds_quota(self) -> bool:
        """Whether anything may be decided about it: it has quota, and is neither evicted nor done."""
        return self.reserved_at is not None and not self.finished and self.left_at is None

    @property
    def left_at(self) -> float | None:
        """When it was evicted or deleted; from then on Kueue is to give its quota back."""
        return self.deleted_at if self.evicted_at is None else self.evicted_at

    @property
    def leaves(self) -> bool:
        """Whether it is evicted or deleted, and still has its quota."""
        return self.reserved_at is not None and not self.finished and self.left_at is not None

    @property
    def current_report(self) -> Report | None:
        """Our condition, if it is about the present reservation."""
        if self.report is None or self.reserved_at is None or self.report.since < self.reserved_at:
            return None
        # Kueue clears the nominations at an eviction, and leaves our condition.
        return None if self.report.status and not self.nominated else self.report

    @property
    def gave_up(self) -> bool:
        """Whether dispatch gave up since it has its quota."""
        report = self.current_report
        return report is not None and report.reason == Reason.DEADLINE_EXCEEDED


class PodSets:
    """Keeps equal pod sets as one object: thousands of workloads have a few, and are then quickly compared."""

    def __init__(self, most: int = 10000) -> None:
        self._most = most
        self._known: dict[tuple[PodSet, ...], tuple[PodSet, ...]] = {}

    def one(self, workload: Workload) -> Workload:
        """The workload with the pod sets of an earlier one, if there was one with equal ones."""
        if len(self._known) >= self._most:
            self._known.clear()
        known = self._known.setdefault(workload.pod_sets, workload.pod_sets)
        return workload if known is workload.pod_sets else replace(workload, pod_sets=known)


def read_record(item: Json, context: Context, pod_sets: PodSets) -> Record:
    """The record of a Workload."""
    metadata, status, spec = (inside(item, name) for name in ("metadata", "status", "spec"))
    namespace, name = str(metadata.get("namespace", "")), str(metadata.get("name", ""))
    workload, unreadable = _read_workload(item, context, namespace, name)
    workload = pod_sets.one(workload)
    conditions = {str(one.get("type")): one for one in conditions_of(item)}
    labels, annotations = inside(metadata, "labels"), inside(metadata, "annotations")
    reserved_at, given_up = since(item, "QuotaReserved"), conditions.get(GIVEN_UP_CONDITION)
    if (since(item, GIVEN_UP_CONDITION) or 0.0) < (reserved_at or 0.0):
        # Every reservation has the whole budget.
        given_up = None
    return Record(
        key=f"{namespace}/{name}",
        namespace=namespace,
        name=name,
        uid=str(metadata.get("uid", "")),
        version=version_number(metadata.get("resourceVersion")),
        workload=workload,
        unreadable=unreadable,
        regions=None if REGIONS_LABEL not in labels else str(labels[REGIONS_LABEL]),
        run_seconds=_run_seconds(annotations, spec),
        cluster_queue=str(inside(status, "admission").get("clusterQueue", "")),
        reserved_at=reserved_at,
        admitted_at=since(item, "Admitted"),
        evicted_at=since(item, "Evicted"),
        finished=since(item, "Finished") is not None,
        deleted_at=Fields(metadata, "", []).seconds("deletionTimestamp"),
        lost_at=_lost_at(item, conditions.get("Finished")),
        cluster_name=str(status.get("clusterName") or ""),
        nominated=tuple(str(one) for one in status.get("nominatedClusterNames") or ()),
        owner=_owner(metadata),
        checks={str(one.get("name")): _read_check(one) for one in _maps(status.get("admissionChecks"))},
        report=_read_report(conditions.get(DISPATCH_CONDITION)),
        given_up=parse_given_up(str(given_up.get("message", ""))) if given_up else {},
        retries_used=given_up is not None and given_up.get("reason") == RETRIES_USED,
        assigned=_assigned(conditions.get(ASSIGNED_CONDITION)),
        component_of=_component_of(metadata, annotations),
    )


def _read_check(entry: Mapping[str, Any]) -> Check:
    after = entry.get("requeueAfterSeconds")
    return Check(
        str(entry.get("state", "Pending")),
        str(entry.get("message", "")),
        str(entry.get("lastTransitionTime") or ""),
        after if isinstance(after, int) else None,
    )


def _owner(metadata: Mapping[str, Any]) -> Owner:
    references = _maps(metadata.get("ownerReferences"))
    first = next((one for one in references if one.get("controller")), references[0] if references else {})
    return Owner(*(str(first.get(name, "")) for name in ("kind", "name", "uid")))


def _lost_at(item: Json, finished: Mapping[str, Any] | None) -> float | None:
    lost = (
        finished is not None and finished.get("reason") == OWNER_NOT_FOUND and inside(item, "status").get("clusterName")
    )
    return since(item, "Finished") if lost and _owner(item["metadata"]).uid else None


def _assigned(condition: Mapping[str, Any] | None) -> str:
    if condition is None or condition.get("status") != "True":
        return ""
    return parse_assignment(str(condition.get("message", "")))


def _component_of(metadata: Mapping[str, Any], annotations: Mapping[str, Any]) -> str:
    """Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go (listComponentWorkloads)."""
    kind = annotations.get(_JOB_OWNER)
    if not isinstance(kind, str):
        return ""
    for one in _maps(metadata.get("ownerReferences")):
        group, _, version = str(one.get("apiVersion", "")).rpartition("/")
        if kind == f"{group}/{version}, Kind={one.get('kind')}":
            return str(one.get("uid", ""))
    return ""


def _read_workload(item: Json, context: Context, namespace: str, name: str) -> tuple[Workload, str]:
    problems: list[str] = []
    try:
        workload = parse_workload(Fields(item, f"Workload {namespace}/{name}", problems), context)
    except AdmissionError as error:
        problems = [str(error)]
    if not problems:
        return workload, ""
    queue = str(inside(item, "spec").get("queueName") or "")
    return Workload(namespace, name, f"{namespace}/{name}", queue, ()), "; ".join(problems)[:500]


def _read_report(condition: Mapping[str, Any] | None) -> Report | None:
    if condition is None:
        return None
    begun = Fields(condition, "", []).seconds("lastTransitionTime")
    if begun is None:
        return None
    reason, message = str(condition.get("reason", "")), str(condition.get("message", ""))
    return Report(condition.get("status") == "True", reason, message, begun)


def _run_seconds(annotations: Mapping[str, Any], spec: Mapping[str, Any]) -> str | float | None:
    if RUN_DURATION_ANNOTATION in annotations:
        return str(annotations[RUN_DURATION_ANNOTATION])
    limit = spec.get("maximumExecutionTimeSeconds")
    return float(limit) if isinstance(limit, int) and not isinstance(limit, bool) else None


def _maps(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
