"""Kubernetes objects, as kubectl prints them, into the core's data.

In: plain dicts of Kueue's v1beta2 objects, Namespaces, Nodes, PriorityClasses, and of Workloads, Jobs and JobSets. Out:
`model.Objects` and `model.Workload`s. All problems are found and raised together as `ObjectError`; a feature that is
not modelled raises `NotModelledError` with the object's name. Kinds that do not take part in admission are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kueue_fleet.admission.amounts import quota_amount, request_amount
from kueue_fleet.admission.errors import NotModelledError, ObjectError
from kueue_fleet.admission.model import (
    AdmissionCheck,
    BorrowWithinCohort,
    ClusterQueue,
    ClusterQueueCheck,
    Cohort,
    Configuration,
    FlavorFungibility,
    FlavorQuotas,
    FungibilityPolicy,
    FungibilityPreference,
    LocalQueue,
    Node,
    Objects,
    Preemption,
    PreemptionPolicy,
    QueueingStrategy,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    StopPolicy,
    Topology,
    Workload,
)
from kueue_fleet.admission.pods import ResourceRules, Taint
from kueue_fleet.admission.reading.fields import Fields
from kueue_fleet.admission.reading.pods import parse_pod_set, parse_requirements, parse_toleration
from kueue_fleet.admission.reading.workloads import Context, parse_job, parse_job_set, parse_workload
from kueue_fleet.admission.selectors import LabelSelector, Requirement
from kueue_fleet.kueue_api.quantity import Quantity

Manifest = object
"""A Kubernetes object as a dict; anything else is reported."""


class Parsed(NamedTuple):
    """Objects and workloads of one cluster."""

    objects: Objects
    workloads: tuple[Workload, ...]


def parse_objects(manifests: Iterable[Manifest], configuration: Configuration | None = None) -> Parsed:
    """Read objects of any kind, in any order; Lists are unpacked.

    `configuration` is Kueue's (see `from_configuration`); without it the defaults of 0.19.2.
    Raises ObjectError, NotModelledError.
    """
    problems: list[str] = []
    by_kind: dict[str, dict[str, Fields]] = {}
    for fields in _unpack(manifests, problems):
        kind = fields.text("kind")
        metadata = fields.child("metadata")
        name = metadata.required_text("name")
        namespace = metadata.text("namespace", "default" if kind in _NAMESPACED else "")
        key = f"{namespace}/{name}" if namespace else name
        fields = Fields(fields.data, f"{kind} {key}", problems)
        if key in by_kind.setdefault(kind, {}):
            fields.wrong("", "is there twice", "keep one of them")
        by_kind[kind][key] = fields
    settings = configuration or Configuration()
    read = _Reader(by_kind)
    objects = Objects(
        cluster_queues=read.all("ClusterQueue", parse_cluster_queue),
        local_queues=read.all("LocalQueue", parse_local_queue),
        cohorts=read.all("Cohort", parse_cohort),
        flavors=read.all("ResourceFlavor", parse_flavor),
        checks=read.all("AdmissionCheck", parse_check),
        topologies=read.all("Topology", parse_topology),
        nodes=_with_pods(read.all("Node", parse_node), read.of("Pod")),
        namespaces=read.all("Namespace", _parse_namespace),
        configuration=settings,
    )
    if by_kind.get("LimitRange"):
        raise NotModelledError("LimitRange", next(iter(by_kind["LimitRange"].values())).path)
    context = Context(
        workload_priorities={
            f.child("metadata").text("name"): f.integer("value") for f in read.of("WorkloadPriorityClass")
        },
        pod_priorities={f.child("metadata").text("name"): f.integer("value") for f in read.of("PriorityClass")},
        default_priority=min(
            (f.integer("value") for f in read.of("PriorityClass") if f.flag("globalDefault")), default=0
        ),
        rules=settings.resource_rules,
    )
    workloads = (
        *read.all("Workload", lambda fields: parse_workload(fields, context)),
        *read.all("Job", lambda fields: parse_job(fields, context)),
        *read.all("JobSet", lambda fields: parse_job_set(fields, context)),
    )
    if problems:
        raise ObjectError(list(dict.fromkeys(problems)))
    return Parsed(objects, workloads)


_NAMESPACED = frozenset(("LocalQueue", "Workload", "Job", "JobSet", "LimitRange", "Pod"))
_TOPOLOGY_KINDS = ("required", "preferred", "unconstrained", "slice-required")


class _Reader:
    def __init__(self, by_kind: Mapping[str, Mapping[str, Fields]]) -> None:
        self._by_kind = by_kind

    def of(self, kind: str) -> list[Fields]:
        return list(self._by_kind.get(kind, {}).values())

    def all(self, kind: str, parse: Callable[[Fields], Any]) -> tuple[Any, ...]:
        return tuple(parse(fields) for fields in self.of(kind))


def _unpack(manifests: Iterable[Manifest], problems: list[str]) -> Iterable[Fields]:
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, dict):
            problems.append(f"[{index}]: is no object; write a Kubernetes object with apiVersion and kind")
            continue
        fields = Fields(manifest, f"[{index}]", problems)
        kind = fields.text("kind")
        if not kind:
            fields.wrong("kind", "is missing", "write the kind of the object")
        elif kind.endswith("List") and "items" in fields:
            yield from fields.children("items")
        else:
            yield fields


def _name(fields: Fields) -> str:
    return fields.child("metadata").text("name")


def _labels(fields: Fields) -> tuple[tuple[str, str], ...]:
    return fields.child("metadata").pairs("labels")


def _parse_namespace(fields: Fields) -> tuple[str, tuple[tuple[str, str], ...]]:
    labels = dict(_labels(fields))
    labels.setdefault("kubernetes.io/metadata.name", _name(fields))
    return _name(fields), tuple(sorted(labels.items()))


def parse_resource_groups(spec: Fields) -> tuple[ResourceGroup, ...]:
    """`resourceGroups` of a ClusterQueue or Cohort."""
    return tuple(
        ResourceGroup(
            covered_resources=group.texts("coveredResources"),
            flavors=tuple(
                FlavorQuotas(
                    flavor.required_text("name"),
                    tuple(_parse_quota(resource) for resource in flavor.children("resources")),
                )
                for flavor in group.children("flavors")
            ),
        )
        for group in spec.children("resourceGroups")
    )


def _parse_quota(fields: Fields) -> tuple[str, ResourceQuota]:
    resource = fields.required_text("name")

    def amount(name: str) -> int | None:
        quantity = fields.quantity(name)
        if quantity is not None and quantity < Quantity(0):
            fields.wrong(name, f"is {quantity}", "write 0 or more")
        return None if quantity is None else quota_amount(resource, quantity)

    nominal = amount("nominalQuota")
    if nominal is None and "nominalQuota" not in fields:
        fields.wrong("nominalQuota", "is missing", "give the quota, 0 if there is none")
    return resource, ResourceQuota(nominal or 0, amount("borrowingLimit"), amount("lendingLimit"))


def _fair_weight(spec: Fields) -> float:
    weight = spec.child("fairSharing").quantity("weight")
    return 1.0 if weight is None else float(weight.decimal)


def parse_selector(spec: Fields, name: str) -> LabelSelector | None:
    """The label selector in `name`; None when it is not set, which selects nothing."""
    if spec.data.get(name) is None:
        return None
    selector = spec.child(name)
    equal = tuple(Requirement(key, "In", (value,)) for key, value in selector.pairs("matchLabels"))
    return LabelSelector(equal + parse_requirements(selector))


def parse_cluster_queue(fields: Fields) -> ClusterQueue:
    """A ClusterQueue of v1beta2. Raises NotModelledError for concurrent admission."""
    spec = fields.child("spec")
    if "concurrentAdmissionPolicy" in spec:
        raise NotModelledError("concurrentAdmissionPolicy", fields.path)
    for old in ("cohort", "admissionChecks"):
        if old in spec:
            new = {"cohort": "cohortName", "admissionChecks": "admissionChecksStrategy.admissionChecks"}[old]
            spec.wrong(old, "is a field of v1beta1", f"write it as {new}")
    preemption, fungibility = spec.child("preemption"), spec.child("flavorFungibility")
    borrow = preemption.child("borrowWithinCohort")
    return ClusterQueue(
        name=_name(fields),
        cohort=spec.text("cohortName") or None,
        groups=parse_resource_groups(spec),
        queueing_strategy=spec.choice("queueingStrategy", QueueingStrategy, QueueingStrategy.BEST_EFFORT_FIFO),
        namespace_selector=parse_selector(spec, "namespaceSelector"),
        preemption=Preemption(
            preemption.choice("withinClusterQueue", PreemptionPolicy, PreemptionPolicy.NEVER),
            preemption.choice("reclaimWithinCohort", PreemptionPolicy, PreemptionPolicy.NEVER),
            BorrowWithinCohort(
                borrow.choice("policy", PreemptionPolicy, PreemptionPolicy.NEVER),
                borrow.integer("maxPriorityThreshold") if "maxPriorityThreshold" in borrow else None,
            ),
        ),
        fungibility=FlavorFungibility(
            fungibility.choice("whenCanBorrow", FungibilityPolicy, FungibilityPolicy.MAY_STOP_SEARCH),
            fungibility.choice("whenCanPreempt", FungibilityPolicy, FungibilityPolicy.TRY_NEXT_FLAVOR),
            fungibility.choice("preference", FungibilityPreference, FungibilityPreference.BORROWING_OVER_PREEMPTION)
            if "preference" in fungibility
            else None,
        ),
        checks=tuple(
            ClusterQueueCheck(check.required_text("name"), check.texts("onFlavors"))
            for check in spec.child("admissionChecksStrategy").children("admissionChecks")
        ),
        fair_weight=_fair_weight(spec),
        stop_policy=spec.choice("stopPolicy", StopPolicy, StopPolicy.NONE),
        terminating="deletionTimestamp" in fields.child("metadata"),
    )


def parse_local_queue(fields: Fields) -> LocalQueue:
    """A LocalQueue."""
    spec = fields.child("spec")
    namespace = fields.child("metadata").text("namespace", "default")
    stop_policy = spec.choice("stopPolicy", StopPolicy, StopPolicy.NONE)
    return LocalQueue(namespace, _name(fields), spec.required_text("clusterQueue"), stop_policy)


def parse_cohort(fields: Fields) -> Cohort:
    """A Cohort."""
    spec = fields.child("spec")
    return Cohort(_name(fields), spec.text("parentName") or None, parse_resource_groups(spec), _fair_weight(spec))


def parse_taint(fields: Fields) -> Taint:
    """A taint of a node or flavor."""
    return Taint(fields.required_text("key"), fields.text("value"), fields.required_text("effect"))


def parse_flavor(fields: Fields) -> ResourceFlavor:
    """A ResourceFlavor."""
    spec = fields.child("spec")
    return ResourceFlavor(
        name=_name(fields),
        node_labels=spec.pairs("nodeLabels"),
        node_taints=tuple(parse_taint(item) for item in spec.children("nodeTaints")),
        tolerations=tuple(parse_toleration(item) for item in spec.children("tolerations")),
        topology=spec.text("topologyName") or None,
    )


def parse_check(fields: Fields) -> AdmissionCheck:
    """An AdmissionCheck; without a status it counts as active, as no controller has looked at it yet."""
    conditions = {item.text("type"): item.text("status") for item in fields.child("status").children("conditions")}
    controller = fields.child("spec").required_text("controllerName")
    return AdmissionCheck(_name(fields), controller, conditions.get("Active", "True") == "True")


def parse_topology(fields: Fields) -> Topology:
    """A Topology."""
    levels = tuple(level.required_text("nodeLabel") for level in fields.child("spec").children("levels"))
    return Topology(_name(fields), levels)


def parse_node(fields: Fields) -> Node:
    """A Node, for topology-aware scheduling."""
    spec, status = fields.child("spec"), fields.child("status")
    conditions = {item.text("type"): item.text("status") for item in status.children("conditions")}
    allocatable = status.quantities("allocatable")
    return Node(
        name=_name(fields),
        labels=_labels(fields),
        taints=tuple(parse_taint(item) for item in spec.children("taints")),
        allocatable=tuple((name, request_amount(name, allocatable[name])) for name in sorted(allocatable)),
        ready=conditions.get("Ready", "True") == "True",
        unschedulable=spec.flag("unschedulable"),
    )


def _with_pods(nodes: tuple[Node, ...], pods: Iterable[Fields]) -> tuple[Node, ...]:
    """Nodes with what running pods that Kueue does not place take of them."""
    used: dict[str, dict[str, int]] = {}
    for pod in pods:
        spec, annotations = pod.child("spec"), pod.child("metadata").child("annotations")
        name = spec.text("nodeName")
        placed = any(f"kueue.x-k8s.io/podset-{kind}-topology" in annotations for kind in _TOPOLOGY_KINDS)
        if not name or placed or pod.child("status").text("phase") in ("Succeeded", "Failed"):
            continue
        amounts = used.setdefault(name, {})
        requests = parse_pod_set(spec, "pod", 1, None, None, ResourceRules()).node_requests
        for resource, amount in (*requests, ("pods", 1)):
            amounts[resource] = amounts.get(resource, 0) + amount
    return tuple(replace(node, used=tuple(sorted(used.get(node.name, {}).items()))) for node in nodes)
