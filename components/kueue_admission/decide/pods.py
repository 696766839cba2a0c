"""Pod sets: what a group of equal pods asks for and where they may run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kueue_admission.api.selector import is_met
from kueue_admission.api.taints import tolerates
from kueue_admission.kernel.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Requirement:
    """`key operator values`, with the operators In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` meet the requirement."""
        return is_met(self.operator, self.values, labels.get(self.key))


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """One alternative of a node affinity: requirements on labels. A term without any matches nothing."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` meet the term."""
        return bool(self.requirements) and all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class Taint:
    """A node taint; only NoSchedule and NoExecute keep pods away."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        """As Kueue's messages print it: the fields of the Go struct."""
        return f"{{{self.key} {self.value} {self.effect} <nil>}}"

    @property
    def text(self) -> str:
        """As kubectl writes it: `key=value:effect`, or `key:effect`."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's or flavor's toleration; an empty effect tolerates every effect, an empty key every key."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether Kueue lets a pod with it onto nodes with the taint."""
        return tolerates(self, taint, compares=True)


@dataclass(frozen=True, slots=True)
class SliceConstraint:
    """Every `size` pods of the pod set must be together in one domain at `level`."""

    level: str
    size: int


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """Placement wishes of a pod set. At most one of `required`, `preferred` and `unconstrained` is set."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool = False
    group: str | None = None
    slices: tuple[SliceConstraint, ...] = ()

    @property
    def is_explicit(self) -> bool:
        """Whether it asks for topology-aware scheduling at all; a group name alone does not."""
        return self.unconstrained or bool(self.required or self.preferred or self.slices)


@dataclass(frozen=True, slots=True)
class PodSet:
    """`count` equal pods.

    `requests` is per pod, after limits, overhead and resource transformations: what counts against quota.
    `node_requests` is per pod what it takes from a node (without transformations). `min_count` allows to start with
    fewer pods. `preferred` are the nodes that it prefers, with their weights. `shape` stands for the rest of the pod
    that Kueue compares when it asks whether two workloads are the same to the scheduler. `in_container` is the most of
    each device that one container requests.
    """

    name: str = "main"
    count: int = 1
    min_count: int | None = None
    requests: tuple[tuple[str, int], ...] = ()
    node_requests: tuple[tuple[str, int], ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[NodeSelectorTerm, ...] | None = None
    preferred: tuple[tuple[int, NodeSelectorTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: TopologyRequest | None = None
    shape: str = ""
    in_container: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Transformation:
    """One entry of Kueue's `resources.transformations`: `input` counts as `outputs`, replaced or besides."""

    input: str
    outputs: tuple[tuple[str, Quantity], ...] = ()
    retain: bool = True
    multiply_by: str = ""


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """Which requests count against quota: prefixes left out, and transformations."""

    exclude_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    device_classes: tuple[tuple[str, str], ...] = ()
    """Of DeviceClasses, the resources as which their devices count; the first counts."""
    counts_devices: bool = True
    """Whether devices that pods claim count at all."""
    counts_extended_devices: bool = True
    """Whether an extended resource counts as devices, if a DeviceClass stands for it."""
    selects_devices: bool = True
    """Whether claims may have selectors."""
    refuses_devices: bool = True
    """Whether, if not, workloads that claim some are kept out of the queues."""
