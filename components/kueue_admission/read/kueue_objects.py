"""Kubernetes objects, as kubectl prints them, into the core's data.

All problems are found and raised together as `ObjectError`; a feature that is not modelled raises `NotModelledError`
with the object's name. Kinds that do not take part in admission are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Final, NamedTuple, TypeVar

from kueue_admission import api
from kueue_admission.api import (
    AdmissionCheckSpec,
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    ResourceFlavorSpec,
    TopologySpec,
)
from kueue_admission.decide.amounts import quota_amount, request_amount
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    Configuration,
    FlavorQuotas,
    LocalQueue,
    Node,
    Objects,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Topology,
    Workload,
)
from kueue_admission.decide.pods import ResourceRules, Taint, Toleration
from kueue_admission.decide.queue.usage_ledger import NANO
from kueue_admission.forms import SpecError
from kueue_admission.forms.base import SpecModel
from kueue_admission.forms.form_rules import OBJECT
from kueue_admission.forms.manifest import Manifest, is_live, key_of
from kueue_admission.forms.messages import unknown_field
from kueue_admission.forms.names import HOSTNAME_LABEL, NAMESPACE_NAME_LABEL, POD_SET_ANNOTATION
from kueue_admission.forms.problem import Problem
from kueue_admission.forms.quantity import ZERO, Quantity
from kueue_admission.forms.read_model import read_stored
from kueue_admission.read.device_claims import Devices, expressions_of
from kueue_admission.read.device_selectors import chosen_of
from kueue_admission.read.fields import Fields
from kueue_admission.read.job_workloads import parse_job
from kueue_admission.read.manifests import JOBS, NAMESPACED, QUEUED, WITH_QUEUE, is_job
from kueue_admission.read.pod_resources import parse_limit_ranges, parse_overhead
from kueue_admission.read.pods import parse_pod_set
from kueue_admission.read.printed import Printed, PrintedNode, PrintedPod, PrintedWorkload
from kueue_admission.read.workloads import Context, parse_workload

_USAGE_BASED: Final = "UsageBasedAdmissionFairSharing"
_Spec = TypeVar("_Spec", bound=SpecModel)


class LeftOut(NamedTuple):
    """An object of a live cluster that cannot be read, and why."""

    manifest: Manifest
    problems: tuple[Problem, ...]


class Parsed(NamedTuple):
    """Objects and workloads of one cluster."""

    objects: Objects
    workloads: tuple[Workload, ...]
    left_out: tuple[LeftOut, ...] = ()

    def with_namespaces(self) -> Objects:
        """The objects, and every namespace in use with at least the label of its name, as in any cluster."""
        known = dict(self.objects.namespaces)
        for workload in self.workloads:
            known.setdefault(workload.namespace, ((NAMESPACE_NAME_LABEL, workload.namespace),))
        return replace(self.objects, namespaces=tuple(known.items()))


def parse_objects(
    manifests: Iterable[object],
    configuration: Configuration | None = None,
    more: Callable[[Context, list[Problem]], Iterable[Workload]] = lambda context, problems: (),
    *,
    live: bool = False,
) -> Parsed:
    """Read objects of any kind, in any order; Lists are unpacked. What is not an object is reported.

    `configuration` is Kueue's (see `parse_configuration`); without it the defaults of 0.19.2. `more` gives
    workloads that are not among the objects, and adds what is wrong with them to its problems; they come last.
    `live`: what is wrong with an object that a cluster has leaves that one out. Raises ObjectError, NotModelledError.
    """
    problems: list[Problem] = []
    by_kind: dict[str, dict[str, Fields]] = {}
    for fields in _unpack(manifests, problems):
        kind = fields.text("kind")
        metadata = fields.child("metadata")
        name = metadata.required_text("name")
        namespace = metadata.text("namespace", "default" if kind in NAMESPACED else "")
        key = f"{namespace}/{name}" if namespace else name
        fields = Fields(fields.data, f"{kind} {key}", problems)
        if (before := by_kind.setdefault(kind, {}).get(key)) is not None and before.data != fields.data:
            fields.wrong(
                "", "is listed twice, and not the same", "keep one of them; of several clusters, give each by itself"
            )
        by_kind[kind][key] = fields
    settings = configuration or Configuration()
    read = _Reader(by_kind, live=live)
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
    context = Context(
        workload_priorities={_name(f): f.integer("value") for f in read.of("WorkloadPriorityClass")},
        pod_priorities={_name(f): f.integer("value") for f in read.of("PriorityClass")},
        default_priority=min(
            (f.integer("value") for f in read.of("PriorityClass") if f.flag("globalDefault")), default=0
        ),
        rules=settings.resource_rules,
        limits=parse_limit_ranges(read.of("LimitRange")),
        overheads={_name(f): parse_overhead(f) for f in read.of("RuntimeClass")},
        devices=_devices(read),
    )
    workloads = (
        *read.all("Workload", lambda fields: parse_workload(PrintedWorkload(fields), context)),
        *read.all((*JOBS, *WITH_QUEUE), lambda fields: parse_job(Printed(fields), context), is_job),
        *more(context, problems),
    )
    if problems:
        raise ObjectError(problems)
    refusals = (
        *_overlapping(objects),
        *_later_placements(objects, workloads),
        *_rests_of_penalties(objects, workloads),
    )
    for refused in refusals:
        read.leave_out(read.named(refused.place), refused)
    return Parsed(objects, workloads, tuple(read.left_out))


def _overlapping(objects: Objects) -> Iterator[NotModelledError]:
    """Where flavors of topologies share nodes, and Kueue counts each of them alone."""
    if objects.configuration.gates.tas_handle_overlapping_flavors:
        return
    for one, other in combinations((flavor for flavor in objects.flavors if flavor.topology is not None), 2):
        labels = dict(one.node_labels)
        if all(labels.get(key, value) == value for key, value in other.node_labels):
            feature = f"topologies on the nodes of {other.name} too without TASHandleOverlappingFlavors (Kueue 0.18)"
            yield NotModelledError(feature, f"ResourceFlavor {one.name}")


def _later_placements(objects: Objects, workloads: Iterable[Workload]) -> Iterator[NotModelledError]:
    """Where gates that are new and on by default in Kueue 0.20 place pods otherwise.

    Source: kueue#14191 (TAS adds a level of nodes), kueue#15640 (a last slice with fewer pods), kueue#15111.
    """
    gates = objects.configuration.gates
    if gates.tas_node_feasibility_for_all_levels:
        used = {flavor.topology for flavor in objects.flavors}
        for topology in objects.topologies:
            if topology.name in used and topology.levels[-1:] != (HOSTNAME_LABEL,):
                feature = f"a lowest level above {HOSTNAME_LABEL} with TASNodeFeasibilityForAllLevels (Kueue 0.20)"
                yield NotModelledError(feature, f"Topology {topology.name}")
    for workload in workloads:
        for pods in workload.pod_sets:
            slices = () if pods.topology is None else pods.topology.slices
            if gates.tas_partial_slices and len(slices) == 1 and slices[0].size > 0 and pods.count % slices[0].size:
                feature = f"{pods.count} pods in slices of {slices[0].size} with TASPartialSlices (Kueue 0.20)"
                yield NotModelledError(feature, f"Workload {workload.key}")
            if gates.tas_grouped_pod_set_slicing and slices and pods.topology and pods.topology.group is not None:
                feature = "slices in a podSetGroupName with TASGroupedPodSetSlicing (Kueue 0.20)"
                yield NotModelledError(feature, f"Workload {workload.key}")


def _rests_of_penalties(objects: Objects, workloads: Iterable[Workload]) -> Iterator[NotModelledError]:
    """Where the penalty of a job may not be taken back whole, which no object says."""
    settings = objects.configuration
    if settings.admission_fair_sharing is None or settings.gates.behaviours.counts_each_admission_once:
        return
    late = "with admission fair sharing before Kueue 0.19.1 (kueue#12539)"
    by_usage = {queue.name: queue for queue in objects.cluster_queues if queue.usage_based}
    for name, queue in by_usage.items():
        if queue.checks:
            yield NotModelledError(f"admission checks {late}", f"ClusterQueue {name}")
    used = {queue.key: queue.cluster_queue for queue in objects.local_queues if queue.cluster_queue in by_usage}
    for workload in workloads:
        if workload.local_queue in used and any(pods.min_count is not None for pods in workload.pod_sets):
            feature = f"partial admission (minCount) of {workload.key} {late}"
            yield NotModelledError(feature, f"ClusterQueue {used[workload.local_queue]}")


_TOPOLOGY_KINDS = ("required", "preferred", "unconstrained", "slice-required")


class _Reader:
    """The objects by kind; `left_out` are those that were, which `live` allows."""

    def __init__(self, by_kind: Mapping[str, Mapping[str, Fields]], *, live: bool) -> None:
        self._by_kind = by_kind
        self._live = live
        self.left_out: list[LeftOut] = []

    def of(self, kind: str) -> list[Fields]:
        return list(self._by_kind.get(kind, {}).values())

    def all(
        self,
        kinds: str | Sequence[str],
        parse: Callable[[Fields], Any],
        wanted: Callable[[Manifest], bool] = bool,
    ) -> tuple[Any, ...]:
        all_models = []
        each_kind = [kinds] if isinstance(kinds, str) else kinds
        for fields in (one for kind in each_kind for one in self.of(kind) if wanted(one.data)):
            before, models_there = len(fields.problems), []
            try:
                models_there.append(parse(fields))
            except SpecError as error:
                fields.problems += error.problems
            except NotModelledError as refused:
                self.leave_out(fields, refused)
            if len(fields.problems) > before and self._live and is_live(fields.data):
                self.left_out.append(LeftOut(fields.data, tuple(fields.problems[before:])))
                del fields.problems[before:]
                models_there.clear()
            all_models += models_there
        return tuple(all_models)

    def named(self, place: str) -> Fields | None:
        """The object at such a place, of a Workload the job that it is made of; None: it is not among the objects."""
        kind, _, name = place.partition(" ")
        kinds = QUEUED if kind == QUEUED[0] else (kind,)
        return next((model for kind in kinds if (model := self._by_kind.get(kind, {}).get(name))), None)

    def leave_out(self, fields: Fields | None, refused: NotModelledError) -> None:
        """Leave an object out that is not modelled. Raises NotModelledError where that is not to be."""
        if fields is None or not (self._live and is_live(fields.data)):
            raise refused
        self.left_out.append(LeftOut(fields.data, (refused.problem,)))


def _devices(read: _Reader) -> Devices:
    """Of several DeviceClasses for one extended resource, the newest counts; of equal ones the first by name."""
    classes, slices = {_name(item): item for item in read.of("DeviceClass")}, read.of("ResourceSlice")
    extended: dict[str, str] = {}
    ordered = sorted(classes, reverse=True)
    for name in sorted(
        ordered, key=lambda each: classes[each].child("metadata").seconds("creationTimestamp", 0.0) or 0.0
    ):
        if resource := classes[name].child("spec").text("extendedResourceName"):
            extended[resource] = name
    return Devices(
        {key_of(item.data): item for item in read.of("ResourceClaimTemplate")},
        extended,
        {name: expressions_of(item.child("spec")) for name, item in classes.items()},
        chosen_of(slices) if slices else None,
    )


def _unpack(manifests: Iterable[object], problems: list[Problem]) -> Iterable[Fields]:
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, dict):
            wrong = OBJECT.at(f"[{index}]", "is not an object", "write a Kubernetes object with apiVersion and kind")
            problems.append(wrong)
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
    labels.setdefault(NAMESPACE_NAME_LABEL, _name(fields))
    return _name(fields), tuple(sorted(labels.items()))


def _read_spec(fields: Fields, model: type[_Spec]) -> _Spec:
    """The object's spec. Raises SpecError where it has another form than expected."""
    spec = fields.child("spec")
    for old in (*model.replaced, *model.removed):
        if old in spec:
            fields.problems.append(unknown_field(f"{spec.path}.{old}", old, model))
    return read_stored(model, spec.data, spec.path)


def _resource_groups(fields: Fields, spec: ClusterQueueSpec | CohortSpec) -> tuple[ResourceGroup, ...]:
    return tuple(
        ResourceGroup(
            tuple(group.covered_resources),
            tuple(
                FlavorQuotas(flavor.name, tuple((q.name, _quota(fields, flavor.name, q)) for q in flavor.resources))
                for flavor in group.flavors
            ),
        )
        for group in spec.resource_groups
    )


def _quota(fields: Fields, flavor: str, given: api.ResourceQuota) -> ResourceQuota:
    def counted(amount: Quantity | None, name: str) -> int | None:
        if amount is not None and amount < ZERO:
            place = f"spec.resourceGroups.flavors[{flavor}].resources[{given.name}].{name}"
            fields.wrong(place, f"is {amount}", "write 0 or more")
        return None if amount is None else quota_amount(given.name, amount)

    return ResourceQuota(
        counted(given.nominal_quota, "nominalQuota") or 0,
        counted(given.borrowing_limit, "borrowingLimit"),
        counted(given.lending_limit, "lendingLimit"),
    )


def parse_cluster_queue(fields: Fields) -> ClusterQueue:
    """A ClusterQueue of v1beta2."""
    spec = _read_spec(fields, ClusterQueueSpec)
    return ClusterQueue(
        name=_name(fields),
        cohort=spec.cohort_name or None,
        groups=_resource_groups(fields, spec),
        queueing_strategy=spec.queueing_strategy,
        namespace_selector=spec.namespace_selector,
        preemption=spec.preemption,
        fungibility=spec.flavor_fungibility,
        checks=tuple(spec.check_rules),
        fair_weight=float(spec.fair_sharing.weight.decimal),
        stop_policy=spec.stop_policy,
        terminating="deletionTimestamp" in fields.child("metadata"),
        usage_based=bool(spec.admission_scope and spec.admission_scope.admission_mode == _USAGE_BASED),
        migration=spec.concurrent_admission_policy.migration if spec.concurrent_admission_policy else None,
    )


def parse_local_queue(fields: Fields) -> LocalQueue:
    """A LocalQueue."""
    spec = _read_spec(fields, LocalQueueSpec)
    namespace = fields.child("metadata").text("namespace", "default")
    status = fields.child("status").child("fairSharing").child("admissionFairSharingStatus")
    return LocalQueue(
        namespace,
        _name(fields),
        spec.cluster_queue,
        spec.stop_policy,
        float(spec.fair_sharing.weight.decimal) if spec.fair_sharing else 1.0,
        tuple(
            sorted(
                (name, int(quantity.decimal * NANO))
                for name, quantity in status.quantities("consumedResources").items()
            )
        ),
        status.seconds("lastUpdate"),
    )


def parse_cohort(fields: Fields) -> Cohort:
    """A Cohort."""
    spec = _read_spec(fields, CohortSpec)
    return Cohort(
        _name(fields), spec.parent_name or None, _resource_groups(fields, spec), float(spec.fair_sharing.weight.decimal)
    )


def parse_taint(fields: Fields) -> Taint:
    """A taint of a node or flavor."""
    return Taint(fields.required_text("key"), fields.text("value"), fields.required_text("effect"))


def parse_flavor(fields: Fields) -> ResourceFlavor:
    """A ResourceFlavor."""
    spec = _read_spec(fields, ResourceFlavorSpec)
    return ResourceFlavor(
        name=_name(fields),
        node_labels=tuple(sorted(spec.node_labels.items())),
        node_taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in spec.node_taints),
        tolerations=tuple(
            Toleration(item.key or "", item.operator or "Equal", item.value or "", item.effect or "")
            for item in spec.tolerations
        ),
        topology=spec.topology_name or None,
    )


def parse_check(fields: Fields) -> AdmissionCheck:
    """An AdmissionCheck; without a status it counts as active, as no controller has looked at it yet."""
    spec = _read_spec(fields, AdmissionCheckSpec)
    printed = Printed(fields)
    is_active = "Active" not in printed.conditions or printed.is_true("Active")
    return AdmissionCheck(_name(fields), spec.controller_name, is_active)


def parse_topology(fields: Fields) -> Topology:
    """A Topology."""
    spec = _read_spec(fields, TopologySpec)
    return Topology(_name(fields), tuple(level.node_label for level in spec.levels))


def parse_node(fields: Fields) -> Node:
    """A Node, for topology-aware scheduling."""
    printed = PrintedNode(fields)
    allocatable = printed.allocatable
    return Node(
        name=printed.name,
        labels=_labels(fields),
        taints=tuple(parse_taint(item) for item in printed.spec.children("taints")),
        allocatable=tuple((name, request_amount(name, allocatable[name])) for name in sorted(allocatable)),
        ready=printed.is_ready,
        unschedulable=printed.spec.flag("unschedulable"),
    )


def _with_pods(nodes: tuple[Node, ...], pods: Iterable[Fields]) -> tuple[Node, ...]:
    """Nodes with the namespaces of their running pods, and what those of them take that Kueue does not place."""
    used: dict[str, dict[str, int]] = {}
    running: dict[str, set[str]] = {}
    for pod in map(PrintedPod, pods):
        annotations = pod.annotations
        if pod.node and not pod.is_over and pod.deleted_at is None:
            running.setdefault(pod.node, set()).add(pod.namespace)
        placed = any(f"{POD_SET_ANNOTATION}{kind}-topology" in annotations for kind in _TOPOLOGY_KINDS)
        if not pod.node or placed or pod.is_over:
            continue
        amounts = used.setdefault(pod.node, {})
        requests = parse_pod_set(pod.spec, "pod", 1, None, None, ResourceRules()).node_requests
        for resource, amount in (*requests, ("pods", 1)):
            amounts[resource] = amounts.get(resource, 0) + amount
    return tuple(
        replace(
            node,
            used=tuple(sorted(used.get(node.name, {}).items())),
            running=tuple(sorted(running.get(node.name, ()))),
        )
        for node in nodes
    )
