"""What the controller keeps of a Workload of the manager: a small record instead of the whole object.

What cannot be read makes the record `unreadable`, with the reason; it never stops the controller.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kueue_admission.decide.errors import AdmissionError
from kueue_admission.decide.model import Workload, WorkloadCheck, WorkloadStatus
from kueue_admission.decide.pods import PodSet
from kueue_admission.kernel.manifest import key_of
from kueue_admission.kernel.names import OVER_BUDGET_BY_LABEL, OVER_BUDGET_UNTIL_LABEL, RUN_DURATION_ANNOTATION
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.dispatch_report import DISPATCH_CONDITION, WAITING_CONDITION, GivenUp, ParsedReport, read_data
from kueue_admission.read.fields import Fields
from kueue_admission.read.printed import PrintedWorkload
from kueue_admission.read.workloads import Context, parse_status, parse_workload
from kueue_fleet.dispatch import REGIONS_LABEL, Reason
from kueue_fleet.dispatch.assignment import ASSIGNED_CONDITION, End, assigned_worker
from kueue_fleet.dispatch.budgets import OVER_BUDGET_CONDITION, Exemption
from kueue_fleet.dispatch.rescue import OWNER_NOT_FOUND
from kueue_fleet.dispatch.watchdog import GIVEN_UP_CONDITION, RETRIES_USED
from kueue_fleet.kube.answers import Json, version_number

_JOB_OWNER: Final = "kueue.x-k8s.io/job-owner-gvk"
"""Annotation on the Workloads of a job that has several."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The job of a Workload."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Our condition on a Workload."""

    status: bool
    reason: str
    said: ParsedReport
    """What was decided; empty where the condition is of release 0.2.0 or before."""
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
    """As far as it can be read; without a status if it is unreadable."""
    status: WorkloadStatus
    unreadable: str = ""
    regions: str | None = None
    run_seconds: str | float | None = None
    cluster_queue: str = ""
    deleted_at: float | None = None
    end: End | None = None
    """None: it is not finished."""
    cluster_name: str = ""
    nominated: tuple[str, ...] = ()
    owner: Owner = Owner()
    report: Report | None = None
    given_up: Mapping[str, GivenUp] = field(default_factory=dict)
    retries_used: bool = False
    assigned: str = ""
    """The only worker that may admit it; empty: none may yet."""
    waiting: str = ""
    """The reason in our condition about why it waits; empty without that condition."""
    kueue_says: str = ""
    """What Kueue wrote last about a Workload without quota."""
    exemption: Exemption = field(default_factory=Exemption)
    """Who allowed it to go over its team's budget, until when."""
    over_budget: str = ""
    """Why it waits for its team's budget; empty: it does not."""
    component_of: str = ""
    """Uid of the job that several Workloads are parts of, such as a LeaderWorkerSet; empty for any other job."""

    @property
    def reserved_at(self) -> float | None:
        """When it got its quota."""
        return self.status.reserved_at

    @property
    def admitted_at(self) -> float | None:
        """When it was admitted."""
        return self.status.admitted_at

    @property
    def evicted_at(self) -> float | None:
        """When it was evicted."""
        return self.status.evicted_at

    @property
    def finished(self) -> bool:
        """Whether it is done."""
        return self.status.finished

    @property
    def lost_at(self) -> float | None:
        """When it was finished because its job is gone on its worker, though it is there on the manager."""
        lost = self.end is not None and self.end.reason == OWNER_NOT_FOUND and self.cluster_name and self.owner.uid
        return self.end.at if self.end is not None and lost else None

    @property
    def checks(self) -> Mapping[str, WorkloadCheck]:
        """Its admission checks by name."""
        return {check.name: check for check in self.status.checks}

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
        known_pod_sets = self._known.setdefault(workload.pod_sets, workload.pod_sets)
        return workload if known_pod_sets is workload.pod_sets else replace(workload, pod_sets=known_pod_sets)


def read_record(item: Json, context: Context, pod_sets: PodSets) -> Record:
    """The record of a Workload."""
    problems: list[Problem] = []
    printed_workload = PrintedWorkload(Fields(item, f"Workload {key_of(item)}", problems))
    workload, unreadable = _read_workload(printed_workload, context)
    # Every reservation has the whole budget.
    gave_up = (printed_workload.since(GIVEN_UP_CONDITION) or 0.0) >= (printed_workload.since("QuotaReserved") or 0.0)
    data, job = read_data(printed_workload), printed_workload.owner
    owner = Owner() if job is None else Owner(job.kind, job.name, job.uid, job.api_version)
    return Record(
        key=printed_workload.key,
        namespace=printed_workload.namespace,
        name=printed_workload.name,
        uid=printed_workload.uid,
        version=version_number(printed_workload.metadata.data.get("resourceVersion")),
        workload=pod_sets.one(workload),
        status=parse_status(printed_workload, (), context) if unreadable else workload.status,
        unreadable=unreadable,
        regions=printed_workload.labels.text(REGIONS_LABEL) if REGIONS_LABEL in printed_workload.labels else None,
        run_seconds=_run_seconds(printed_workload),
        cluster_queue=printed_workload.cluster_queue,
        deleted_at=printed_workload.deleted_at,
        end=read_end(printed_workload),
        cluster_name=printed_workload.cluster_name,
        nominated=printed_workload.nominated,
        owner=owner,
        report=_read_report(printed_workload, data.report or ParsedReport()),
        given_up=data.given_up if gave_up else {},
        retries_used=gave_up and printed_workload.reason(GIVEN_UP_CONDITION) == RETRIES_USED,
        assigned=_assigned(printed_workload) if printed_workload.is_true(ASSIGNED_CONDITION) else "",
        waiting=sys.intern(printed_workload.reason(WAITING_CONDITION)),
        # Equal for thousands.
        kueue_says=""
        if printed_workload.is_true("QuotaReserved")
        else sys.intern(printed_workload.message("QuotaReserved")[:500]),
        over_budget=printed_workload.message(OVER_BUDGET_CONDITION)
        if printed_workload.is_true(OVER_BUDGET_CONDITION)
        else "",
        exemption=Exemption(
            printed_workload.labels.text(OVER_BUDGET_BY_LABEL), printed_workload.labels.text(OVER_BUDGET_UNTIL_LABEL)
        ),
        component_of=_component_of(printed_workload),
    )


def read_end(printed_workload: PrintedWorkload) -> End | None:
    """How a Workload was finished; None: it is not."""
    at = printed_workload.since("Finished")
    if at is None:
        return None
    return End(printed_workload.reason("Finished"), sys.intern(printed_workload.message("Finished")), at)


def _component_of(printed_workload: PrintedWorkload) -> str:
    """Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go (listComponentWorkloads)."""
    kind = printed_workload.annotations.text(_JOB_OWNER)
    if not kind:
        return ""
    for owner in printed_workload.owners:
        group, _, version = owner.api_version.rpartition("/")
        if kind == f"{group}/{version}, Kind={owner.kind}":
            return owner.uid
    return ""


def _read_workload(printed_workload: PrintedWorkload, context: Context) -> tuple[Workload, str]:
    problems, refusal = printed_workload.fields.problems, ""
    try:
        workload = parse_workload(printed_workload, context)
    except AdmissionError as error:
        refusal = str(error)
    if not problems and not refusal:
        return workload, ""
    wrong = refusal or "; ".join(map(str, problems))
    return Workload(
        printed_workload.namespace, printed_workload.name, printed_workload.key, printed_workload.queue, ()
    ), wrong[:500]


def _assigned(printed_workload: PrintedWorkload) -> str:
    return assigned_worker(printed_workload.reason(ASSIGNED_CONDITION), printed_workload.message(ASSIGNED_CONDITION))


def _read_report(printed_workload: PrintedWorkload, parsed_report: ParsedReport) -> Report | None:
    begun = printed_workload.changed_at(DISPATCH_CONDITION)
    if begun is None:
        return None
    return Report(
        printed_workload.is_true(DISPATCH_CONDITION), printed_workload.reason(DISPATCH_CONDITION), parsed_report, begun
    )


def _run_seconds(printed_workload: PrintedWorkload) -> str | float | None:
    if RUN_DURATION_ANNOTATION in printed_workload.annotations:
        return printed_workload.annotations.text(RUN_DURATION_ANNOTATION)
    limit = printed_workload.spec.integer("maximumExecutionTimeSeconds")
    return float(limit) if limit else None
