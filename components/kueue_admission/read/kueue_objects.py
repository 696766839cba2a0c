"""Kubernetes objects, as kubectl prints them, into the core's data.

All problems are found and raised together as `ObjectError`; a feature that is not modelled raises `NotModelledError`
with the object's name. Kinds that do not take part in admission are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kueue_admission.decide.amounts import request_amount
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import Configuration, Node, Objects, Workload
from kueue_admission.decide.pods import ResourceRules, Taint
from kueue_admission.kernel import SpecError
from kueue_admission.kernel.form_rules import OBJECT
from kueue_admission.kernel.manifest import Manifest, is_live, key_of
from kueue_admission.kernel.names import HOSTNAME_LABEL, NAMESPACE_NAME_LABEL, POD_SET_ANNOTATION
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.configured_objects import CONFIGURED, labels_of, name_of, not_modelled
from kueue_admission.read.device_claims import Devices, expressions_of
from kueue_admission.read.device_selectors import chosen_of
from kueue_admission.read.fields import Fields
from kueue_admission.read.job_workloads import parse_job
from kueue_admission.read.manifests import JOBS, NAMESPACED, QUEUED, WITH_QUEUE, is_job
from kueue_admission.read.pod_resources import parse_limit_ranges, parse_overhead
from kueue_admission.read.pods import parse_pod_set
from kueue_admission.read.printed import Printed, PrintedNode, PrintedWorkload
from kueue_admission.read.printed_pods import PrintedPod
from kueue_admission.read.workloads import Context, parse_workload


class LeftOut(NamedTuple):
    """An object of a live cluster, or a job, that cannot be read, and why."""

    manifest: Manifest
    problems: tuple[Problem, ...]


class Parsed(NamedTuple):
    """Objects and workloads of one cluster."""

    objects: Objects
    workloads: tuple[Workload, ...]
    left_out: tuple[LeftOut, ...] = ()

    def with_namespaces(self) -> Objects:
        """The objects, and every namespace in use with at least the label of its name, as in any cluster."""
        known_namespaces = dict(self.objects.namespaces)
        for workload in self.workloads:
            known_namespaces.setdefault(workload.namespace, ((NAMESPACE_NAME_LABEL, workload.namespace),))
        return replace(self.objects, namespaces=tuple(known_namespaces.items()))


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
    `live`: what is wrong with an object that a cluster has, or with a job, leaves that one out.
    Raises ObjectError, NotModelledError.
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
    configured: dict[str, Any] = {field: read.all(kind, parse) for kind, (field, parse) in CONFIGURED.items()}
    nodes = _with_pods(read.all("Node", parse_node), read.of("Pod"))
    objects = Objects(**configured, nodes=nodes, configuration=settings)
    context = Context(
        workload_priorities={name_of(f): f.integer("value") for f in read.of("WorkloadPriorityClass")},
        pod_priorities={name_of(f): f.integer("value") for f in read.of("PriorityClass")},
        default_priority=min(
            (f.integer("value") for f in read.of("PriorityClass") if f.flag("globalDefault")), default=0
        ),
        rules=settings.resource_rules,
        limits=parse_limit_ranges(read.of("LimitRange")),
        overheads={name_of(f): parse_overhead(f) for f in read.of("RuntimeClass")},
        devices=_devices(read),
        live=live,
    )
    workloads = (
        *read.all("Workload", lambda fields: parse_workload(PrintedWorkload(fields), context)),
        *read.all((*JOBS, *WITH_QUEUE), lambda fields: parse_job(Printed(fields), context), is_job),
        *more(context, problems),
    )
    if problems:
        raise ObjectError(problems)
    refusals = (
        *not_modelled(objects, workloads),
        *_later_placements(objects, workloads),
    )
    for refusal in refusals:
        read.leave_out(read.named(refusal.place), refusal)
    return Parsed(objects, workloads, tuple(read.left_out))


def _later_placements(objects: Objects, workloads: Iterable[Workload]) -> Iterator[NotModelledError]:
    """Where gates that are new and on by default in Kueue 0.20 place pods otherwise.

    Source: kueue#14191 (TAS adds a level of nodes), kueue#15640 (a last slice with fewer pods), kueue#15111.
    """
    gates = objects.configuration.gates
    if gates.tas_node_feasibility_for_all_levels:
        used_topologies = {flavor.topology for flavor in objects.flavors}
        for topology in objects.topologies:
            if topology.name in used_topologies and topology.levels[-1:] != (HOSTNAME_LABEL,):
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
            if len(fields.problems) > before and self._may_be_left_out(fields):
                self.left_out.append(LeftOut(fields.data, tuple(fields.problems[before:])))
                del fields.problems[before:]
                models_there.clear()
            all_models += models_there
        return tuple(all_models)

    def _may_be_left_out(self, fields: Fields) -> bool:
        return self._live and (is_live(fields.data) or is_job(fields.data))

    def named(self, place: str) -> Fields | None:
        """The object at such a place, of a Workload the job that it is made of; None: it is not among the objects."""
        kind, _, name = place.partition(" ")
        kinds = QUEUED if kind == QUEUED[0] else (kind,)
        return next((model for kind in kinds if (model := self._by_kind.get(kind, {}).get(name))), None)

    def leave_out(self, fields: Fields | None, refused: NotModelledError) -> None:
        """Leave an object out that is not modelled. Raises NotModelledError where that is not to be."""
        if fields is None or not self._may_be_left_out(fields):
            raise refused
        self.left_out.append(LeftOut(fields.data, (refused.problem,)))


def _devices(read: _Reader) -> Devices:
    """Of several DeviceClasses for one extended resource, the newest counts; of equal ones the first by name."""
    classes, slices = {name_of(item): item for item in read.of("DeviceClass")}, read.of("ResourceSlice")
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


def parse_taint(fields: Fields) -> Taint:
    """A taint of a node or flavor."""
    return Taint(fields.required_text("key"), fields.text("value"), fields.required_text("effect"))


def parse_node(fields: Fields) -> Node:
    """A Node, for topology-aware scheduling."""
    printed_node = PrintedNode(fields)
    allocatable = printed_node.allocatable
    return Node(
        name=printed_node.name,
        labels=labels_of(fields),
        taints=tuple(parse_taint(item) for item in printed_node.spec.children("taints")),
        allocatable=tuple((name, request_amount(name, allocatable[name])) for name in sorted(allocatable)),
        ready=printed_node.is_ready,
        unschedulable=printed_node.spec.flag("unschedulable"),
    )


def _with_pods(nodes: tuple[Node, ...], pods: Iterable[Fields]) -> tuple[Node, ...]:
    """Nodes with the namespaces of their running pods, and what those of them take that Kueue does not place."""
    used_amounts: dict[str, dict[str, int]] = {}
    running: dict[str, set[str]] = {}
    for pod in map(PrintedPod, pods):
        annotations = pod.annotations
        if pod.node and not pod.is_over and pod.deleted_at is None:
            running.setdefault(pod.node, set()).add(pod.namespace)
        has_placement = any(f"{POD_SET_ANNOTATION}{kind}-topology" in annotations for kind in _TOPOLOGY_KINDS)
        if not pod.node or has_placement or pod.is_over:
            continue
        amounts = used_amounts.setdefault(pod.node, {})
        requests = parse_pod_set(pod.spec, "pod", 1, None, None, ResourceRules()).node_requests
        for resource, amount in (*requests, ("pods", 1)):
            amounts[resource] = amounts.get(resource, 0) + amount
    return tuple(
        replace(
            node,
            used=tuple(sorted(used_amounts.get(node.name, {}).items())),
            running=tuple(sorted(running.get(node.name, ()))),
        )
        for node in nodes
    )
