"""Jobs as the Workloads that Kueue makes of them.

Source: kueue@v0.19.2 pkg/controller/jobframework, pkg/util/priority.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kueue_admission.decide.errors import NotModelledError
from kueue_admission.decide.model import Workload
from kueue_admission.decide.pods import SliceConstraint, TopologyRequest
from kueue_admission.kernel.form_rules import JOB_UNKNOWN, Fault
from kueue_admission.kernel.job_rules import NO_WORKLOAD
from kueue_admission.kernel.manifest import is_live
from kueue_admission.kernel.names import (
    ELASTIC_ANNOTATION,
    KUEUE_GROUP,
    POD_SET_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
)
from kueue_admission.kernel.suggest import instead
from kueue_admission.kernel.syntax import whole_number
from kueue_admission.read.device_claims import with_devices
from kueue_admission.read.fields import Fields
from kueue_admission.read.job_pod_sets import Role, own_priority_class, roles_of
from kueue_admission.read.pod_resources import NO_LIMITS, find_problem, with_defaults
from kueue_admission.read.pods import parse_pod_set
from kueue_admission.read.printed import Printed
from kueue_admission.read.workloads import Context, refuse_late_placement

SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""PriorityClasses that every cluster has, above those that users may make.

Source: kubernetes@v1.36.3 pkg/apis/scheduling/types.go.
"""

_OTHER_CLASSES: Final = {
    "WorkloadPriorityClass": "a PriorityClass, which pods name in priorityClassName",
    "PriorityClass": f"a WorkloadPriorityClass, which the label {PRIORITY_LABEL} of the job names",
}
"""What a class may be instead, by the kind that it is taken for."""


def parse_job(printed: Printed, context: Context) -> Workload:
    """A job of a kind that `job_pod_sets` reads, as the Workload that Kueue makes of it; of several, the first."""
    roles = roles_of(printed.fields)
    if not roles and is_live(printed.fields.data):
        printed.fields.wrong("spec", "has no pods", "give it some", NO_WORKLOAD)
    limits = context.limits.get(printed.namespace, NO_LIMITS)
    pod_sets, pods = [], []
    written = [role.template.child("spec") for role in roles]
    for role, spec in zip(roles, written, strict=True):
        pod = with_defaults(spec, limits, context.overheads)
        topology = _topology_request(role.template.child("metadata"))
        pod_set = parse_pod_set(pod, role.name, role.count, role.least, topology, context.rules)
        pod_sets.append(pod_set)
        pods.append(pod)
    namespace = printed.namespace
    counted, claims_problem = with_devices(pod_sets, written, pods, namespace, context.rules, context.devices)
    labels, annotations = printed.labels, printed.annotations
    refuse_late_placement(printed)
    queue = labels.text(QUEUE_LABEL)
    if not queue:
        printed.metadata.wrong("labels", f"has no {QUEUE_LABEL}", "name a LocalQueue there")
    uid = printed.uid or printed.key
    return Workload(
        namespace=printed.namespace,
        name=printed.name,
        uid=uid,
        queue=queue,
        pod_sets=counted,
        created=printed.created or 0.0,
        priority=_priority(printed, roles, context),
        max_execution_seconds=execution_limit(labels),
        gated_by=annotations.text(f"{KUEUE_GROUP}/admission-gated-by"),
        job_uid=uid,
        elastic=annotations.text(ELASTIC_ANNOTATION) == "true",
        problem=find_problem(pods, limits),
        claims_problem=claims_problem,
    )


def execution_limit(labels: Fields) -> int | None:
    """Seconds after which Kueue ends a job with these labels; None: never."""
    seconds = labels.text(f"{KUEUE_GROUP}/max-exec-time-seconds")
    limit = whole_number(seconds)
    if seconds and (limit is None or limit <= 0):
        fix = "write a whole number in quotes" if limit is None else "write 1 or more"
        labels.wrong(f"{KUEUE_GROUP}/max-exec-time-seconds", f"is {seconds!r}", fix)
    return limit


def class_priority(labels: Fields, context: Context) -> int | None:
    """The value of the WorkloadPriorityClass that the labels name; None: they name none."""
    name = labels.text(PRIORITY_LABEL)
    if name and name not in context.workload_priorities:
        classes, others = context.workload_priorities, context.pod_priorities
        labels.wrong(PRIORITY_LABEL, *_missing_class("WorkloadPriorityClass", name, classes, others, context))
    return context.workload_priorities.get(name, 0) if name else None


def _priority(job: Printed, roles: Sequence[Role], context: Context) -> int:
    """The workload priority class if the job names one, else the first PriorityClass of its pods, else the default.

    Source: pkg/controller/jobframework/reconciler.go (ExtractPriority).
    """
    own = class_priority(job.labels, context)
    if own is not None:
        return own
    places = [(own_priority_class(job.fields), job.fields)]
    for role in roles:
        pod = role.template.child("spec")
        places.append((pod.text("priorityClassName"), pod))
    for name, place in places:
        value = context.pod_priorities.get(name, SYSTEM_CLASSES.get(name))
        if name and value is None:
            classes, others = context.pod_priorities, context.workload_priorities
            place.wrong("priorityClassName", *_missing_class("PriorityClass", name, classes, others, context))
        if name:
            return value or 0
    return context.default_priority


def _missing_class(
    kind: str, name: str, classes: Mapping[str, int], others: Mapping[str, int], context: Context
) -> Fault:
    """What is wrong with a job that names a class which is not among the objects, though others may have made it."""
    fix = instead(name, sorted(classes), f"{kind}es")
    if context.live and not classes:
        fix = f"add what `kubectl get {kind.lower()}es -o yaml` prints"
    if name in others:
        fix = f"{name} is {_OTHER_CLASSES[kind]}; {fix}"
    return Fault(f"there is no {kind} {name!r}", fix, NO_WORKLOAD if context.live and classes else JOB_UNKNOWN)


def _topology_request(fields: Fields) -> TopologyRequest | None:
    """What the annotations of a pod template ask for; `fields` is its metadata.

    Raises NotModelledError for slices with constraints of their own.
    """
    found = fields.child("annotations")
    prefix = POD_SET_ANNOTATION
    constraints = []
    if f"{prefix}slice-required-topology-constraints" in found:
        raise NotModelledError("podset-slice-required-topology-constraints", found.path)
    if f"{prefix}slice-required-topology" in found and f"{prefix}slice-size" in found:
        slice_size = found.text(f"{prefix}slice-size")
        size = whole_number(slice_size)
        if not size:
            found.wrong(f"{prefix}slice-size", f"is {slice_size!r}", "write a whole number in quotes, 1 or more")
        constraints.append(SliceConstraint(found.text(f"{prefix}slice-required-topology"), size or 1))
    required_level = found.text(f"{prefix}required-topology") or None
    preferred_level = None if required_level else found.text(f"{prefix}preferred-topology") or None
    request = TopologyRequest(
        required=required_level,
        preferred=preferred_level,
        unconstrained=not (required_level or preferred_level)
        and found.text(f"{prefix}unconstrained-topology") == "true",
        group=(found.text(f"{prefix}group-name") or None) if required_level or preferred_level else None,
        slices=tuple(constraints),
    )
    return request if request.is_explicit else None
