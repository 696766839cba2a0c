"""Workloads, with their status. Source: kueue@v0.19.2 apis/kueue/v1beta2/workload_types.go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from kueue_admission.decide.amounts import request_amount
from kueue_admission.decide.errors import NotModelledError
from kueue_admission.decide.model import (
    Admission,
    CheckState,
    DomainAssignment,
    PodSetAssignment,
    Workload,
    WorkloadCheck,
    WorkloadStatus,
)
from kueue_admission.decide.pods import PodSet, ResourceRules
from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.kernel.names import (
    ALLOWED_FLAVORS_ANNOTATION,
    ELASTIC_ANNOTATION,
    KUEUE_GROUP,
    ORIGIN_LABEL,
)
from kueue_admission.read.device_claims import Devices, with_devices
from kueue_admission.read.fields import Fields
from kueue_admission.read.pod_resources import NO_LIMITS, Limits, find_problem, with_defaults
from kueue_admission.read.pods import parse_pod_set, parse_topology_request
from kueue_admission.read.printed import Printed, PrintedWorkload

_NOT_BY_A_CYCLE: Final = frozenset(
    {
        QuotaReservedReason.MISCONFIGURED,
        QuotaReservedReason.SUSPENDED,
        QuotaReservedReason.ADMISSION_GATED,
        "Deactivated",
        "Inadmissible",
    }
)
"""Reasons of QuotaReserved=False that Kueue's workload controller writes, with and without granular reasons."""
_QUEUED_AGAIN: Final = frozenset(
    {
        "Workload is pending evaluation in the scheduling queue",
        "AdmissionGatedBy cleared, waiting for quota reservation",
    }
)
"""What Kueue's workload controller writes of one that waits for a cycle, with the same reasons as cycles do.

Source: kueue@v0.19.2 pkg/controller/core/workload_controller.go.
"""
MOST_KEPT: Final = 1000
"""Different texts that a `Context` remembers; each is as long as the pod templates of a workload."""
T = TypeVar("T")


class _PodSets(NamedTuple):
    """Pod sets, and why their resources are invalid, or the devices that they claim cannot be counted."""

    pod_sets: tuple[PodSet, ...]
    problem: str
    claims_problem: str


@dataclass(frozen=True, slots=True)
class Context:
    """What other objects say about workloads: values of priority classes, and how requests count.

    `limits` are the LimitRanges by namespace, `overheads` those of RuntimeClasses by name,
    `devices` what there is for pods that ask for devices. `live`: the objects are those that a cluster has.
    `pod_sets` and `assignments` have what was read before, by the text of what it was read from: workloads of one
    cluster are mostly alike, and pods are the most of them. Where they are not, each is emptied when it is full.
    """

    workload_priorities: Mapping[str, int] = field(default_factory=dict)
    pod_priorities: Mapping[str, int] = field(default_factory=dict)
    default_priority: int = 0
    rules: ResourceRules = field(default_factory=ResourceRules)
    limits: Mapping[str, Limits] = field(default_factory=dict)
    overheads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    devices: Devices = field(default_factory=Devices)
    live: bool = False
    pod_sets: dict[str, _PodSets] = field(default_factory=dict)
    assignments: dict[str, tuple[PodSetAssignment, ...]] = field(default_factory=dict)


def _keep(known: dict[str, T], text: str, found: T) -> None:
    if len(known) >= MOST_KEPT:
        known.clear()
    known[text] = found


def parse_workload(printed: PrintedWorkload, context: Context) -> Workload:
    """A Workload with its status."""
    spec, labels, annotations = printed.spec, printed.labels, printed.annotations
    refuse_late_placement(printed)
    pod_sets, problem, claims_problem = _parse_pod_sets(printed, context)
    limit = spec.integer("maximumExecutionTimeSeconds", least=1)
    return Workload(
        namespace=printed.namespace,
        name=printed.name,
        uid=printed.uid or printed.key,
        queue=printed.queue,
        pod_sets=pod_sets,
        created=printed.created or 0.0,
        priority=spec.integer("priority"),
        priority_boost=_boost(annotations),
        active=printed.is_active,
        reclaimable=tuple(
            (item.text("name"), item.integer("count", least=0)) for item in printed.status.children("reclaimablePods")
        ),
        max_execution_seconds=float(limit) if limit else None,
        gated_by=annotations.text(f"{KUEUE_GROUP}/admission-gated-by"),
        allowed_flavors=_allowed(annotations),
        preemption_gates=tuple(item.text("name") for item in spec.children("preemptionGates")),
        job_uid=labels.text(f"{KUEUE_GROUP}/job-uid"),
        replaces=annotations.text(f"{KUEUE_GROUP}/workload-slice-replacement-for"),
        elastic=annotations.text(ELASTIC_ANNOTATION) == "true",
        parent=printed.parent,
        owned_by_pod=_is_of_pod(printed, annotations),
        origin=labels.text(ORIGIN_LABEL),
        problem=problem,
        claims_problem=claims_problem,
        status=parse_status(printed, pod_sets, context),
    )


def _parse_pod_sets(printed: PrintedWorkload, context: Context) -> _PodSets:
    """The pod sets of a Workload, and what is wrong with them."""
    spec, namespace = printed.spec, printed.namespace
    limits = context.limits.get(namespace, NO_LIMITS)
    text = repr(spec.data.get("podSets")) + (namespace if limits or context.devices.templates else "")
    known_pod_sets = context.pod_sets.get(text)
    if known_pod_sets is not None:
        return known_pod_sets
    before = len(spec.problems)
    pod_sets, pods = [], []
    pod_specs = [item.child("template").child("spec") for item in printed.pod_sets]
    for item, spec in zip(printed.pod_sets, pod_specs, strict=True):
        pod = with_defaults(spec, limits, context.overheads)
        pod_set = parse_pod_set(
            pod,
            item.text("name") or "main",
            item.integer("count", 1, least=0),
            item.integer("minCount", least=0) if "minCount" in item else None,
            parse_topology_request(item.child("topologyRequest")),
            context.rules,
        )
        pod_sets.append(pod_set)
        pods.append(pod)
    counted_pod_sets, claims_problem = with_devices(
        pod_sets, pod_specs, pods, namespace, context.rules, context.devices
    )
    parsed_pod_sets = _PodSets(counted_pod_sets, find_problem(pods, limits), claims_problem)
    if len(spec.problems) == before:
        _keep(context.pod_sets, text, parsed_pod_sets)
    return parsed_pod_sets


def refuse_late_placement(printed: Printed) -> None:
    """Raises NotModelledError where a check changes where pods may go while their placement waits for it."""
    status = printed.status
    assignments = status.child("admission").children("podSetAssignments")
    if any(assignment.text("delayedTopologyRequest") == "Pending" for assignment in assignments) and any(
        "nodeSelector" in update or "tolerations" in update
        for check in status.children("admissionChecks")
        for update in check.children("podSetUpdates")
    ):
        raise NotModelledError("placement by an admission check's podSetUpdates", printed.fields.path)


def _is_of_pod(printed: Printed, annotations: Fields) -> bool:
    """Source: kueue@v0.19.2 pkg/workload (OwnedBySinglePod)."""
    owners = printed.metadata.children("ownerReferences")
    alone = [owner.text("kind") == "Pod" and owner.text("apiVersion") == "v1" for owner in owners] == [True]
    return alone and annotations.text(f"{KUEUE_GROUP}/is-group-workload") != "true"


def _allowed(annotations: Fields) -> tuple[str, ...] | None:
    if ALLOWED_FLAVORS_ANNOTATION not in annotations:
        return None
    text = annotations.text(ALLOWED_FLAVORS_ANNOTATION)
    return tuple(name.strip() for name in text.split(",")) if text.strip() else ()


def _boost(annotations: Fields) -> int:
    text = annotations.text(f"{KUEUE_GROUP}/priority-boost")
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        annotations.wrong(f"{KUEUE_GROUP}/priority-boost", f"is {text!r}", "write a whole number in quotes")
        return 0


def parse_status(printed: PrintedWorkload, pod_sets: tuple[PodSet, ...], context: Context) -> WorkloadStatus:
    """Where a Workload with these pod sets stands."""
    status, since = printed.status, printed.since
    evicted_at, is_requeued = since("Evicted"), "Requeued" in printed.conditions
    requeue = status.child("requeueState")
    gates = (
        (gate.text("name"), gate.seconds("lastTransitionTime", 0.0) or 0.0)
        for gate in status.children("preemptionGates")
        if gate.text("position") == "Open"
    )
    return WorkloadStatus(
        admission=_parse_admission(printed.admission, pod_sets, context) if "admission" in status else None,
        reserved_at=since("QuotaReserved"),
        admitted_at=since("Admitted"),
        evicted_at=evicted_at,
        evicted_reason=printed.reason("Evicted") if evicted_at is not None else None,
        evicted_message=printed.message("Evicted") if evicted_at is not None else "",
        preempted_reason=printed.reason("Preempted") if printed.is_true("Preempted") else None,
        checks=tuple(map(parse_check_state, printed.checks)),
        requeued=printed.is_true("Requeued") if is_requeued else None,
        requeued_reason=printed.reason("Requeued") if is_requeued else None,
        requeue_at=requeue.seconds("requeueAt"),
        requeue_count=requeue.integer("count", least=0),
        pods_ready=printed.is_true("PodsReady"),
        pods_ready_since=printed.changed_at("PodsReady"),
        waits_for_recovery=printed.reason("PodsReady") == "WaitForRecovery",
        finished=printed.is_true("Finished"),
        past_execution=float(status.integer("accumulatedPastExecutionTimeSeconds", least=0)),
        open_gates=tuple(sorted(gates)),
        gated=printed.is_true("BlockedOnPreemptionGates"),
        unhealthy_nodes=tuple(node.text("name") for node in status.children("unhealthyNodes")),
        evaluated=_evaluated(printed),
    )


def _evaluated(printed: PrintedWorkload) -> str | None:
    """What a cycle wrote about a workload without quota, which is not what keeps it out of its queue."""
    reason, message = printed.refusal or (None, None)
    return None if reason in _NOT_BY_A_CYCLE or message in _QUEUED_AGAIN else message


def parse_check_state(fields: Fields) -> WorkloadCheck:
    """How an admission check of a Workload stands."""
    return WorkloadCheck(
        name=fields.required_text("name"),
        state=fields.choice("state", CheckState, CheckState.PENDING),
        since=fields.seconds("lastTransitionTime", 0.0) or 0.0,
        requeue_after=float(fields.integer("requeueAfterSeconds")) if "requeueAfterSeconds" in fields else None,
        retry_count=fields.integer("retryCount"),
        message=fields.text("message"),
    )


def _parse_admission(fields: Fields, pod_sets: tuple[PodSet, ...], context: Context) -> Admission:
    """As `parse_admission`, with what was read before."""
    counts = [(pod_set.name, pod_set.count) for pod_set in pod_sets]
    text = repr((fields.data.get("podSetAssignments"), counts))
    known_assignment = context.assignments.get(text)
    if known_assignment is not None:
        return Admission(fields.required_text("clusterQueue"), known_assignment)
    before = len(fields.problems)
    admission = parse_admission(fields, {pod_set.name: pod_set for pod_set in pod_sets})
    if len(fields.problems) == before:
        _keep(context.assignments, text, admission.pod_sets)
    return admission


def parse_admission(fields: Fields, pod_sets: Mapping[str, PodSet]) -> Admission:
    """The admission in the status of a Workload with these pod sets."""
    assignments = []
    for item in fields.children("podSetAssignments"):
        name = item.text("name") or "main"
        usage = item.quantities("resourceUsage")
        levels, domains = parse_topology_assignment(item.child("topologyAssignment"))
        assignments.append(
            PodSetAssignment(
                name=name,
                count=item.integer("count", pod_sets[name].count if name in pod_sets else 1),
                flavors=item.pairs("flavors"),
                usage=tuple((resource, request_amount(resource, usage[resource])) for resource in sorted(usage)),
                topology=domains,
                topology_levels=levels,
                delayed_topology=item.text("delayedTopologyRequest") == "Pending",
            )
        )
    return Admission(fields.required_text("clusterQueue"), tuple(assignments))


def parse_topology_assignment(fields: Fields) -> tuple[tuple[str, ...], tuple[DomainAssignment, ...] | None]:
    """The levels and the domains; None for the domains when there is no assignment.

    In the compressed form of v1beta2 each slice has, per level, either one value for all its domains or one value each
    with a common prefix and suffix, and likewise pod counts. Source: kueue@v0.19.2 pkg/util/tas/tas_assignment.go.
    """
    levels = fields.texts("levels")
    if not levels:
        return (), None
    domains = []
    for part in fields.children("slices"):
        count = part.integer("domainCount", 1, least=1)
        columns = [_values(item, count) for item in part.children("valuesPerLevel")]
        pods = _counts(part.child("podCounts"), count)
        domains += [DomainAssignment(tuple(column[row] for column in columns), pods[row]) for row in range(count)]
    return levels, tuple(domains)


def _values(fields: Fields, count: int) -> list[str]:
    if "universal" in fields:
        return [fields.text("universal")] * count
    individual = fields.child("individual")
    roots = individual.texts("roots")
    if len(roots) != count:
        individual.wrong("roots", f"has {len(roots)} values", f"give one for each of the {count} domains")
        roots = (*roots, *([""] * count))[:count]
    prefix, suffix = individual.text("prefix"), individual.text("suffix")
    return [f"{prefix}{root}{suffix}" for root in roots]


def _counts(fields: Fields, count: int) -> list[int]:
    if "universal" in fields:
        return [fields.integer("universal", 1, least=1)] * count
    count_text = fields.data.get("individual")
    if (
        not isinstance(count_text, list)
        or len(count_text) != count
        or not all(isinstance(item, int) for item in count_text)
    ):
        fields.wrong("individual", "does not have one number for each domain", f"give {count} numbers")
        return [1] * count
    return list(count_text)
