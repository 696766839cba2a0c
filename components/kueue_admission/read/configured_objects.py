"""What is configured for Kueue on a cluster: queues, cohorts, flavors, checks, topologies and namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, Final, TypeVar

from kueue_admission import api
from kueue_admission.api import (
    AdmissionCheckSpec,
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    ResourceFlavorSpec,
    TopologySpec,
)
from kueue_admission.decide.amounts import quota_amount
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    Configuration,
    FlavorQuotas,
    LocalQueue,
    Objects,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Topology,
    Workload,
)
from kueue_admission.decide.pods import Taint, Toleration
from kueue_admission.decide.queue.usage_ledger import NANO
from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.messages import unknown_field
from kueue_admission.kernel.names import NAMESPACE_NAME_LABEL
from kueue_admission.kernel.problem import Problem, SpecError
from kueue_admission.kernel.quantity import ZERO, Quantity
from kueue_admission.kernel.read_model import read_stored
from kueue_admission.read.fields import Fields
from kueue_admission.read.printed import Printed

_USAGE_BASED: Final = "UsageBasedAdmissionFairSharing"
_Spec = TypeVar("_Spec", bound=SpecModel)


def name_of(fields: Fields) -> str:
    """The name of an object."""
    return fields.child("metadata").text("name")


def labels_of(fields: Fields) -> tuple[tuple[str, str], ...]:
    """The labels of an object."""
    return fields.child("metadata").pairs("labels")


def _parse_namespace(fields: Fields) -> tuple[str, tuple[tuple[str, str], ...]]:
    labels = dict(labels_of(fields))
    labels.setdefault(NAMESPACE_NAME_LABEL, name_of(fields))
    return name_of(fields), tuple(sorted(labels.items()))


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
        name=name_of(fields),
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
        name_of(fields),
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
        name_of(fields),
        spec.parent_name or None,
        _resource_groups(fields, spec),
        float(spec.fair_sharing.weight.decimal),
    )


def parse_flavor(fields: Fields) -> ResourceFlavor:
    """A ResourceFlavor."""
    spec = _read_spec(fields, ResourceFlavorSpec)
    return ResourceFlavor(
        name=name_of(fields),
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
    return AdmissionCheck(name_of(fields), spec.controller_name, is_active)


def parse_topology(fields: Fields) -> Topology:
    """A Topology."""
    spec = _read_spec(fields, TopologySpec)
    return Topology(name_of(fields), tuple(level.node_label for level in spec.levels))


CONFIGURED: Final[Mapping[str, tuple[str, Callable[[Fields], Any]]]] = {
    "ClusterQueue": ("cluster_queues", parse_cluster_queue),
    "LocalQueue": ("local_queues", parse_local_queue),
    "Cohort": ("cohorts", parse_cohort),
    "ResourceFlavor": ("flavors", parse_flavor),
    "AdmissionCheck": ("checks", parse_check),
    "Topology": ("topologies", parse_topology),
    "Namespace": ("namespaces", _parse_namespace),
}
"""By kind, the field of `Objects` that has its objects, and what reads one; that raises SpecError."""


def parse_configured(manifests: Iterable[Manifest], configuration: Configuration) -> Objects:
    """What is configured on a cluster, of these kinds alone. Raises ObjectError, NotModelledError."""
    problems: list[Problem] = []
    configured: dict[str, Any] = {field: () for field, _ in CONFIGURED.values()}
    for manifest in manifests:
        field, parse = CONFIGURED[manifest["kind"]]
        fields = Fields(manifest, "", problems)
        place = "/".join(filter(None, (fields.child("metadata").text("namespace"), name_of(fields))))
        try:
            configured[field] += (parse(Fields(manifest, f"{manifest['kind']} {place}", problems)),)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise ObjectError(problems)
    objects = Objects(**configured, configuration=configuration)
    for refused in not_modelled(objects):
        raise refused
    return objects


def not_modelled(objects: Objects, workloads: Iterable[Workload] = ()) -> Iterator[NotModelledError]:
    """What of these objects, and of workloads in their queues, the core does not model."""
    yield from _overlapping(objects)
    yield from _rests_of_penalties(objects, workloads)


def _overlapping(objects: Objects) -> Iterator[NotModelledError]:
    """Where flavors of topologies share nodes, and Kueue counts each of them alone."""
    if objects.configuration.gates.tas_handle_overlapping_flavors:
        return
    for one, other in combinations((flavor for flavor in objects.flavors if flavor.topology is not None), 2):
        labels = dict(one.node_labels)
        if all(labels.get(key, value) == value for key, value in other.node_labels):
            feature = f"topologies on the nodes of {other.name} too without TASHandleOverlappingFlavors (Kueue 0.18)"
            yield NotModelledError(feature, f"ResourceFlavor {one.name}")


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
