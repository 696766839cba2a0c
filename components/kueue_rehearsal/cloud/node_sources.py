"""Where new nodes come from: the autoscaled pools of a Standard cluster, and auto-provisioning, which makes pools for
the pods that wait (in Autopilot clusters without limits, in Standard clusters within the cluster's resource limits).

Not modelled: auto-provisioned TPU slices of several nodes; pods that ask for them are refused by name.

Sources: https://cloud.google.com/kubernetes-engine/docs/concepts/node-auto-provisioning (limits count all pools, Spot
and workload separation), https://cloud.google.com/kubernetes-engine/docs/how-to/compact-placement (placement groups)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_fleet.gke.gpu_sharing import WHOLE, GpuSharing, accelerators_of_node
from kueue_fleet.gke.labels import (
    ACCELERATOR,
    ACCELERATOR_COUNT,
    COMPUTE_CLASS,
    DRIVER_VERSION,
    FLEX_START,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    MACHINE_FAMILY,
    PROVISIONING,
    REGION,
    SHARING_LABELS,
    SPOT,
    SYSTEM_LABEL,
    TPU_ACCELERATOR,
    TPU_RESOURCE,
    TPU_TOPOLOGY,
    ZONE,
    accelerator_of,
)
from kueue_fleet.gke.machines import MachineType, gpus, machine_catalogue, tpus
from kueue_fleet.gke.pool import Gpus, Pool
from kueue_fleet.gke.pool_nodes import known_labels, node_taints
from kueue_fleet.gke.tpu_slices import topology_of_nodes
from kueue_rehearsal.cloud.node_planning import misfit, scarce, untolerated
from kueue_rehearsal.cloud.node_pools import NodePool, pool_nodes
from kueue_rehearsal.cloud.node_templates import (
    AUTOSCALED,
    PLACEMENT_GROUP,
    SIMULATED_LABELS,
    NodeTemplate,
    Place,
    numbered_name,
)
from kueue_rehearsal.cloud.pod_needs import PodNeeds, amounts, fits_node, is_tolerated

_COMPUTE_CLASSES = {"Accelerator", "Balanced", "General-Purpose", "general-purpose", "Performance", "Scale-Out"}
# What a pod may select and this catalogue decides by the machine or the place.
_FREE_CHOICE = {DRIVER_VERSION, "cloud.google.com/gke-boot-disk", "cloud.google.com/gke-max-pods-per-node"}
_COMPACT_FAMILIES = {"n2", "a2", "a3", "g2"}
_GB = 1000**3


@dataclass(slots=True)
class ResourceLimits:
    """What all nodes of a Standard cluster may have together; a GPU that is not listed is not auto-provisioned.

    Amounts in cores, GB and GPUs, as GKE counts them; `used` is what the nodes have.
    """

    most: Mapping[str, float]
    used: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, limits: Sequence[Manifest], nodes: Iterable[Manifest]) -> ResourceLimits:
        """From `clusterAutoscaling.resourceLimits` and the nodes of all pools."""
        resource_limits = cls({str(one["resourceType"]): float(one.get("maximum") or 0) for one in limits})
        for node in nodes:
            labels = node["metadata"].get("labels") or {}
            resource_limits.add(amounts(node["status"].get("capacity") or {}), labels)
        return resource_limits

    def add(self, capacity: Mapping[str, int], labels: Mapping[str, str]) -> None:
        """Counts a node; GPUs whole, shared or not."""
        for name, amount in _counted(capacity, labels).items():
            self.used[name] = self.used.get(name, 0) + amount

    def problem(self, template: NodeTemplate, *, listed_only: bool) -> str | None:
        """Why such a node would be too much; None when it would not.

        `listed_only`: what has no limit is not limited, as for node pools that are there already.
        """
        for name, amount in _counted(template.capacity, template.labels).items():
            if name not in self.most:
                if listed_only or name in ("cpu", "memory"):
                    continue
                return f"node auto-provisioning has no resource limit for {name}, so it makes no nodes with it"
            used_count = self.used.get(name, 0)
            if used_count + amount > self.most[name]:
                unit = " GB" if name == "memory" else ""
                return (
                    f"the cluster's resource limit of {self.most[name]:g}{unit} {name} would be exceeded: "
                    f"{used_count:g}{unit} in use, {template.machine.name} has {amount:g}{unit}"
                )
        return None


def _counted(capacity: Mapping[str, int], labels: Mapping[str, str]) -> dict[str, float]:
    counted_amounts = {"cpu": capacity.get("cpu", 0) / 1000, "memory": capacity.get("memory", 0) / _GB}
    accelerator = accelerator_of(labels)
    return counted_amounts | ({accelerator: accelerators_of_node(capacity, labels)} if accelerator else {})


@dataclass(slots=True)
class PoolSource:
    """An autoscaled node pool, up to its limit, the cluster's, and what there is of its capacity."""

    pool: NodePool
    place: Place
    nodes: Mapping[str, Manifest]
    """All nodes of the cluster."""
    limits: ResourceLimits | None = None
    stock: dict[str, int] | None = None
    """GPUs of each accelerator that DWS can give out now; None for other pools."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    """Whether to plan as if the pool were empty, for what has to fit into it at once."""
    _taken: list[NodeTemplate] = field(default_factory=list)

    def offer(self, needs: PodNeeds) -> NodeTemplate | str:
        """A node of the pool that the pod fits on."""
        present = {} if self.whole else pool_nodes(self.nodes, self.pool.name)
        zone = needs.node_selector.get(ZONE, "")
        if zone not in self.pool.view.zones:
            zone = self.pool.zone_for_next(
                [*present.values(), *(node_template.manifest() for node_template in self._taken)]
            )
        node_template = self.pool.template(
            self.place, zone, needs.uid, labels=self.labels, annotations=self.annotations
        )
        reason = misfit(needs, node_template)
        if reason is None and len(present) + len(self._taken) >= self.pool.view.max_nodes:
            reason = f"it has its maximum of {self.pool.view.max_nodes} nodes"
        if reason is None and self.limits is not None:
            reason = self.limits.problem(node_template, listed_only=True)
        if reason is None:
            reason = _shortage(self.stock, node_template.machine)
        return f"node pool {self.pool.name}: {reason}" if reason else node_template

    def take(self, template: NodeTemplate) -> None:
        """Counts the node."""
        self._taken.append(template)
        if self.limits is not None:
            self.limits.add(template.capacity, template.labels)
        if self.stock is not None and template.machine.accelerator is not None:
            self.stock[template.machine.accelerator] -= template.machine.accelerators


@dataclass(slots=True)
class AutoProvisioning:
    """Pools made for the pods that wait."""

    place: Place
    limits: ResourceLimits | None = None
    """None on Autopilot: Google's own quota is the limit there."""
    autopilot: bool = True
    stock: dict[str, int] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """More labels for every node, for capacity that is bound to a request."""
    taints: Sequence[Mapping[str, str]] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)

    def offer(self, needs: PodNeeds) -> NodeTemplate | str:
        """A node on the smallest machine that holds the pod."""
        problem = _selector_problem(needs, self.labels)
        if problem is not None:
            return problem
        sharing = GpuSharing.of_labels(needs.node_selector)
        shares = if_known(lambda: sharing.shares(needs.node_selector.get(ACCELERATOR))) or 1
        reason = "no machine type is large enough"
        for machine in machine_catalogue():
            if not _suits(machine, needs):
                continue
            template = self._template(replace(machine, shares=shares) if machine.gpus else machine, needs)
            if isinstance(template, str):
                reason = template
                continue
            if not fits_node(needs, template.labels, template.taints, template.allocatable):
                reason = _misfit(needs, template)
                continue
            over = self.limits.problem(template, listed_only=False) if self.limits else None
            if over is None and template.labels.get(FLEX_START) == "true":
                over = _shortage(self.stock, machine)
            return over or template
        return reason

    def take(self, template: NodeTemplate) -> None:
        """Counts the node against the limits."""
        if self.limits is not None:
            self.limits.add(template.capacity, template.labels)
        if self.stock is not None and template.labels.get(FLEX_START) == "true" and template.machine.accelerator:
            self.stock[template.machine.accelerator] -= template.machine.accelerators

    def _template(self, machine: MachineType, needs: PodNeeds) -> NodeTemplate | str:
        selector, place = needs.node_selector, self.place
        group = selector.get(PLACEMENT_GROUP)
        zone = selector.get(ZONE, _zone_of_group(group, place.zones) if group else place.zones[0])
        if selector.get(REGION, place.region) != place.region or zone not in place.zones:
            place_name = selector.get(ZONE) or selector[REGION]
            return f"the cluster has no nodes in {place_name}; it is in {', '.join(place.zones)}"
        if group and machine.family not in _COMPACT_FAMILIES:
            return f"{PLACEMENT_GROUP}={group}: compact placement is not offered on {machine.name}"
        provisioning = selector.get(PROVISIONING, "spot" if selector.get(SPOT) == "true" else "standard")
        sharing = GpuSharing.of_labels(selector)
        gpus = (Gpus(machine.accelerator, machine.gpus, sharing),) if machine.attached or sharing != WHOLE else ()
        pool = Pool(
            name=group or f"nap-{machine.name}{'-spot' if provisioning == 'spot' else ''}",
            machine_type=machine.name,
            gpus=gpus,
            region=place.region,
            zones=(zone,),
            spot=provisioning == "spot",
            disk_type="pd-balanced",
        )
        labels = {**known_labels(pool), **SIMULATED_LABELS, PROVISIONING: provisioning, AUTOSCALED: "true"}
        taints: list[Mapping[str, str]] = [taint._asdict() for taint in node_taints(pool)]
        if pool.spot:
            taints.append({"key": SPOT, "value": "true", "effect": "NoSchedule"})
        for key, value in selector.items():
            if key in _FREE_CHOICE or key in (COMPUTE_CLASS, PLACEMENT_GROUP, FLEX_START):
                labels[key] = value
            elif not SYSTEM_LABEL.search(key):
                labels[key] = value
                taints.append({"key": key, "value": value, "effect": "NoSchedule"})
        labels |= self.labels
        taints += self.taints
        name = self._node_name(machine, needs.uid, group)
        labels[HOSTNAME_LABEL] = name
        return NodeTemplate(name, machine, labels, tuple(taints), self.annotations, local_ssds=machine.local_ssds)

    def _node_name(self, machine: MachineType, uid: str, group: str | None) -> str:
        """The same pod always gets the same name, so that a plan carried out twice makes one node."""
        digest = hashlib.sha256(f"{self.place.cluster}/{uid}".encode()).hexdigest()
        kind = "gk3" if self.autopilot else "gke"
        return numbered_name(f"{kind}-{self.place.cluster}-{group or f'nap-{machine.name}'}", digest)


def _zone_of_group(group: str, zones: Sequence[str]) -> str:
    """A placement group is in one zone."""
    return zones[int(hashlib.sha256(group.encode()).hexdigest(), 16) % len(zones)]


def _selector_problem(needs: PodNeeds, extra_labels: Mapping[str, str]) -> str | None:
    selector = needs.node_selector
    for key, resource, kinds in ((ACCELERATOR, GPU_RESOURCE, gpus()), (TPU_ACCELERATOR, TPU_RESOURCE, tpus())):
        accelerator = selector.get(key)
        if accelerator is not None and accelerator not in kinds:
            return f"{key}={accelerator}: no such accelerator; known are {', '.join(sorted(kinds))}"
        if needs.requests.get(resource) and accelerator is None:
            return f"the pod asks for {resource} and does not select {key}; GKE needs to know which kind"
    if TPU_ACCELERATOR in selector and TPU_TOPOLOGY not in selector:
        return f"the pod asks for {TPU_RESOURCE} and does not select {TPU_TOPOLOGY}; GKE needs to know which slice"
    for fault in GpuSharing.of_labels(selector).faults(selector.get(ACCELERATOR), auto_provisioned=True):
        return f"{fault.label} {fault.wrong}; {fault.fix}"
    compute_class = selector.get(COMPUTE_CLASS)
    if compute_class is not None and compute_class not in _COMPUTE_CLASSES:
        return f"{COMPUTE_CLASS}={compute_class}: it has no such compute class of its own"
    decided_labels = {
        ACCELERATOR,
        TPU_ACCELERATOR,
        TPU_TOPOLOGY,
        ACCELERATOR_COUNT,
        *SHARING_LABELS,
        SPOT,
        PROVISIONING,
        FLEX_START,
        PLACEMENT_GROUP,
        COMPUTE_CLASS,
        INSTANCE_TYPE,
        MACHINE_FAMILY,
        REGION,
        ZONE,
        "kubernetes.io/os",
        "kubernetes.io/arch",
        *_FREE_CHOICE,
        *extra_labels,
    }
    for key, value in selector.items():
        if key in decided_labels:
            continue
        if SYSTEM_LABEL.search(key):
            return f"nodeSelector {key}={value}: no node has this label, and the provisioner does not set it"
        if not is_tolerated(needs.tolerations, {"key": key, "value": value, "effect": "NoSchedule"}):
            return (
                f"nodeSelector {key}={value}: GKE creates nodes with a custom label only for pods that also "
                "tolerate the taint of the same key and value (workload separation)"
            )
    return None


def _suits(machine: MachineType, needs: PodNeeds) -> bool:
    selector = needs.node_selector
    wanted_labels = {
        ACCELERATOR: machine.accelerator if machine.gpus else None,
        TPU_ACCELERATOR: machine.accelerator if machine.chips else None,
        TPU_TOPOLOGY: topology_of_nodes(machine.name, 1),
        INSTANCE_TYPE: machine.name,
        MACHINE_FAMILY: machine.family,
    }
    if any(key in selector and selector[key] != value for key, value in wanted_labels.items()):
        return False
    if machine.accelerator is not None and machine.accelerator_label not in selector:
        return False
    if ACCELERATOR_COUNT in selector and selector[ACCELERATOR_COUNT] != str(machine.accelerators):
        return False
    # GKE never picks Arm for a pod that does not ask for it.
    return machine.arch == selector.get("kubernetes.io/arch", "arm64" if machine.family == "a4x" else "amd64")


def _misfit(needs: PodNeeds, template: NodeTemplate) -> str:
    if (refusal := untolerated(needs, template)) is not None:
        return refusal
    short = scarce(needs, template)
    return f"no machine type has enough {', '.join(short)}" if short else "no machine type suits the node selector"


def _shortage(stock: Mapping[str, int] | None, machine: MachineType) -> str | None:
    """What DWS cannot give out now of what the machine has; None where it can, or where it is not asked."""
    if stock is None or machine.accelerator is None or stock.get(machine.accelerator, 0) >= machine.accelerators:
        return None
    return f"{machine.accelerators} {machine.accelerator} are not available now, it waits for them"
