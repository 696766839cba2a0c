"""Which simulated nodes a cluster needs: what GKE's node auto-provisioning and Autopilot decide, as pure functions.

In: pods and nodes as the API server shows them, the machine catalogue, the cluster's place. Out: nodes to create, the
pods that no node can be made for and why, and nodes to remove. `nodes` carries it out. Not modelled: node affinity,
pod affinity and spread constraints, custom ComputeClasses, TPUs, shared or split GPUs, reservations; pods that ask
for them are refused by name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kueue_fleet.rehearsal.machines import GPU_RESOURCE, Machine, machine_catalogue
from kueue_fleet.spec.quantity import Quantity

Json = Mapping[str, Any]

ACCELERATOR = "cloud.google.com/gke-accelerator"
ACCELERATOR_COUNT = "cloud.google.com/gke-accelerator-count"
SPOT = "cloud.google.com/gke-spot"
PROVISIONING = "cloud.google.com/gke-provisioning"
COMPUTE_CLASS = "cloud.google.com/compute-class"
QUEUED = "cloud.google.com/gke-queued"
FLEX_START = "cloud.google.com/gke-flex-start"
MAX_RUN_DURATION = "cloud.google.com/gke-max-run-duration-seconds"
RESIZE_REQUEST = "autoscaling.gke.io/provisioning-request"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
MACHINE_FAMILY = "cloud.google.com/machine-family"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
SIMULATED = "kueue-fleet.dev/simulated"
"""The label of every simulated node; kwok manages the nodes that have it."""
AUTOSCALED = "kueue-fleet.dev/autoscaled"
"""The label of the nodes that this module may remove when they are empty."""

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
"""The taint of a node that is about to be deleted; its value is the time in seconds since the epoch."""
RETIREMENT_SECONDS = 1.0

# Both names are in use: Kueue writes the first, older releases of the cluster autoscaler read the second.
CONSUME_ANNOTATIONS = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)

_COMPUTE_CLASSES = {"Accelerator", "Balanced", "General-Purpose", "general-purpose", "Performance", "Scale-Out"}
# k8s.io label namespaces and GKE's own: such labels cannot be invented by a pod.
_SYSTEM_LABEL = re.compile(r"(^|\.)(cloud\.google\.com|kubernetes\.io|k8s\.io|gke\.io)/")
# Of a node that is not ready yet: it will be, so its room counts.
_PASSING_TAINTS = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
# What a pod may select and this catalogue decides by the machine or the place.
_FREE_CHOICE = {
    "cloud.google.com/gke-gpu-driver-version",
    "cloud.google.com/gke-boot-disk",
    "cloud.google.com/gke-max-pods-per-node",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cluster is."""

    cluster: str
    region: str
    zones: tuple[str, ...]

    @classmethod
    def of(cls, cluster: str, location: str) -> Place:
        """From a GKE location. A region gets three zones; which letters it really has does not matter here."""
        if re.fullmatch(r"[a-z]+-[a-z]+[0-9]+-[a-z]", location):
            return cls(cluster, location.rpartition("-")[0], (location,))
        return cls(cluster, location, tuple(f"{location}-{letter}" for letter in "abc"))


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """What the scheduler looks at in a pod."""

    key: str
    """namespace/name"""
    uid: str
    requests: Mapping[str, int]
    node_selector: Mapping[str, str]
    tolerations: tuple[Json, ...] = ()
    not_modelled: tuple[str, ...] = ()
    created: str = ""


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A node to create."""

    name: str
    machine: Machine
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    annotations: Mapping[str, str] = field(default_factory=dict)

    def manifest(self) -> dict[str, Any]:
        """The Node, with its capacity already in the status, as a kubelet registers itself."""
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": dict(self.labels), "annotations": dict(self.annotations)},
            "spec": {"taints": [dict(taint) for taint in self.taints]},
            "status": {
                "capacity": _render(self.machine.capacity),
                "allocatable": _render(self.machine.allocatable),
            },
        }


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What to do about the pods that wait."""

    add: tuple[NodeTemplate, ...]
    refused: Mapping[str, str]
    """namespace/name of a pod → why no node can be made for it."""
    placed: Mapping[str, str]
    """uid of a pod → name of the new or existing node that has room for it."""


def _render(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


def amounts(resources: Mapping[str, Any]) -> dict[str, int]:
    """Quantities as whole numbers: CPU in thousandths, all else in units."""
    return {
        name: Quantity(value).milli if name == "cpu" else Quantity(value).value for name, value in resources.items()
    }


def pod_requests(spec: Json) -> dict[str, int]:
    """What a pod asks for: the sum of its containers, or the largest init container where that is more; and its
    overhead."""
    total: dict[str, int] = {"pods": 1}
    for container in spec.get("containers", ()):
        for name, amount in _container_requests(container).items():
            total[name] = total.get(name, 0) + amount
    for container in spec.get("initContainers", ()):
        for name, amount in _container_requests(container).items():
            total[name] = max(total.get(name, 0), amount)
    for name, amount in amounts(spec.get("overhead") or {}).items():
        total[name] = total.get(name, 0) + amount
    return total


def _container_requests(container: Json) -> dict[str, int]:
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def pod_needs(key: str, uid: str, spec: Json, created: str = "") -> PodNeeds:
    """What the scheduler looks at in a pod's, or a PodTemplate's, spec."""
    not_modelled = []
    affinity = spec.get("affinity") or {}
    if (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
        not_modelled.append("required node affinity")
    if (affinity.get("podAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
        not_modelled.append("required pod affinity")
    if (affinity.get("podAntiAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
        not_modelled.append("required pod anti-affinity")
    if any(one.get("whenUnsatisfiable") == "DoNotSchedule" for one in spec.get("topologySpreadConstraints", ())):
        not_modelled.append("topology spread constraints")
    return PodNeeds(
        key=key,
        uid=uid,
        requests=pod_requests(spec),
        node_selector=spec.get("nodeSelector") or {},
        tolerations=tuple(spec.get("tolerations") or ()),
        not_modelled=tuple(not_modelled),
        created=created,
    )


def consumed_request(pod: Json) -> str | None:
    """The ProvisioningRequest (namespace/name) whose capacity the pod uses."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    for annotation in CONSUME_ANNOTATIONS:
        if annotation in annotations:
            return f"{metadata['namespace']}/{annotations[annotation]}"
    return None


def is_unschedulable(pod: Json) -> bool:
    """Whether the scheduler has tried the pod and found no node for it."""
    if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"] or pod["spec"].get("schedulingGates"):
        return False
    return any(
        condition["type"] == "PodScheduled"
        and condition["status"] == "False"
        and condition.get("reason") == "Unschedulable"
        for condition in pod.get("status", {}).get("conditions", ())
    )


def tolerates(tolerations: Iterable[Json], taint: Json) -> bool:
    """Whether a pod with these tolerations may run on a node with this taint (k8s.io/api core/v1 toleration.go)."""
    if taint["effect"] == "PreferNoSchedule":
        return True
    for toleration in tolerations:
        if toleration.get("effect") and toleration["effect"] != taint["effect"]:
            continue
        if toleration.get("key") and toleration["key"] != taint["key"]:
            continue
        if toleration.get("operator") == "Exists":
            return True
        if toleration.get("key") and toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def fits_node(needs: PodNeeds, labels: Mapping[str, str], taints: Iterable[Json], free: Mapping[str, int]) -> bool:
    """Whether the scheduler could put the pod on such a node."""
    return (
        all(labels.get(key) == value for key, value in needs.node_selector.items())
        and all(tolerates(needs.tolerations, taint) for taint in taints)
        and all(free.get(name, 0) >= amount for name, amount in needs.requests.items() if amount)
    )


def free_resources(nodes: Mapping[str, Json], pods: Iterable[Json]) -> dict[str, dict[str, int]]:
    """What is left on each node."""
    free = {name: amounts(node.get("status", {}).get("allocatable") or {}) for name, node in nodes.items()}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node in free and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            for name, amount in pod_requests(pod["spec"]).items():
                free[node][name] = free[node].get(name, 0) - amount
    return free


@dataclass(slots=True)
class _Room:
    """A node that exists or is planned, and what is left of it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Json, ...]
    free: dict[str, int]


def plan_nodes(
    waiting: Sequence[PodNeeds],
    nodes: Mapping[str, Json],
    free: Mapping[str, Mapping[str, int]],
    place: Place,
    *,
    extra_labels: Mapping[str, str] | None = None,
    extra_taints: Sequence[Mapping[str, str]] = (),
    annotations: Mapping[str, str] | None = None,
) -> NodePlan:
    """The nodes to create for the waiting pods, oldest first, each on the smallest machine that holds it.

    Room on existing nodes counts first: the scheduler will use it. A new node's room counts for the pods that follow.
    `extra_*` go on every new node, for capacity that is bound to a request.
    """
    rooms = [
        _Room(
            name,
            node["metadata"].get("labels") or {},
            tuple(taint for taint in node["spec"].get("taints") or () if taint["key"] not in _PASSING_TAINTS),
            dict(free.get(name, {})),
        )
        for name, node in sorted(nodes.items())
        if not node["spec"].get("unschedulable") and "deletionTimestamp" not in node["metadata"]
    ]
    add: list[NodeTemplate] = []
    refused: dict[str, str] = {}
    placed: dict[str, str] = {}
    for needs in sorted(waiting, key=lambda one: (one.created, one.key)):
        room = next((one for one in rooms if fits_node(needs, one.labels, one.taints, one.free)), None)
        if room is None:
            made = _new_node(needs, place, extra_labels or {}, extra_taints, annotations or {})
            if isinstance(made, str):
                refused[needs.key] = made
                continue
            add.append(made)
            room = _Room(made.name, made.labels, made.taints, dict(made.machine.allocatable))
            rooms.append(room)
        placed[needs.uid] = room.name
        for name, amount in needs.requests.items():
            room.free[name] = room.free.get(name, 0) - amount
    return NodePlan(tuple(add), refused, placed)


def _new_node(
    needs: PodNeeds,
    place: Place,
    extra_labels: Mapping[str, str],
    extra_taints: Sequence[Mapping[str, str]],
    annotations: Mapping[str, str],
) -> NodeTemplate | str:
    """A node for the pod, or why there can be none."""
    if needs.not_modelled:
        return f"{' and '.join(needs.not_modelled)}: the simulated provisioner does not model this"
    reason = "no machine type is large enough"
    problem = _selector_problem(needs, extra_labels)
    if problem is not None:
        return problem
    for machine in machine_catalogue():
        if not _suits(machine, needs):
            continue
        template = _template(machine, needs, place, extra_labels, extra_taints, annotations)
        if isinstance(template, str):
            reason = template
            continue
        if fits_node(needs, template.labels, template.taints, machine.allocatable):
            return template
        reason = _misfit(needs, template)
    return reason


def _selector_problem(needs: PodNeeds, extra_labels: Mapping[str, str]) -> str | None:
    selector = needs.node_selector
    accelerator = selector.get(ACCELERATOR)
    known = {machine.accelerator for machine in machine_catalogue() if machine.accelerator}
    if accelerator is not None and accelerator not in known:
        return f"{ACCELERATOR}={accelerator}: no such accelerator; known are {', '.join(sorted(known))}"
    if needs.requests.get(GPU_RESOURCE) and accelerator is None:
        return f"the pod asks for {GPU_RESOURCE} and does not select {ACCELERATOR}; GKE needs to know which GPU"
    compute_class = selector.get(COMPUTE_CLASS)
    if compute_class is not None and compute_class not in _COMPUTE_CLASSES:
        return f"{COMPUTE_CLASS}={compute_class}: custom compute classes are not modelled"
    decided = {
        ACCELERATOR,
        ACCELERATOR_COUNT,
        SPOT,
        PROVISIONING,
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
        if key in decided:
            continue
        if _SYSTEM_LABEL.search(key):
            return f"nodeSelector {key}={value}: no node has this label, and the provisioner does not set it"
        if not tolerates(needs.tolerations, {"key": key, "value": value, "effect": "NoSchedule"}):
            return (
                f"nodeSelector {key}={value}: GKE makes nodes with a label of one's own only for pods that also "
                "tolerate the taint of the same key and value (workload separation)"
            )
    return None


def _suits(machine: Machine, needs: PodNeeds) -> bool:
    selector = needs.node_selector
    wanted = {
        ACCELERATOR: machine.accelerator,
        INSTANCE_TYPE: machine.name,
        MACHINE_FAMILY: machine.family,
    }
    if any(key in selector and selector[key] != value for key, value in wanted.items()):
        return False
    if machine.accelerator is not None and ACCELERATOR not in selector:
        return False
    if ACCELERATOR_COUNT in selector and selector[ACCELERATOR_COUNT] != str(machine.gpus):
        return False
    # GKE never picks Arm for a pod that does not ask for it.
    return machine.arch == selector.get("kubernetes.io/arch", "arm64" if machine.family == "a4x" else "amd64")


def _template(
    machine: Machine,
    needs: PodNeeds,
    place: Place,
    extra_labels: Mapping[str, str],
    extra_taints: Sequence[Mapping[str, str]],
    annotations: Mapping[str, str],
) -> NodeTemplate | str:
    selector = needs.node_selector
    zone = selector.get(ZONE, place.zones[0])
    if selector.get(REGION, place.region) != place.region or zone not in place.zones:
        asked = selector.get(ZONE) or selector[REGION]
        return f"the cluster has no nodes in {asked}; it is in {', '.join(place.zones)}"
    taints: list[Mapping[str, str]] = []
    provisioning = selector.get(PROVISIONING, "spot" if selector.get(SPOT) == "true" else "standard")
    labels = {
        SIMULATED: "true",
        AUTOSCALED: "true",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine.arch,
        INSTANCE_TYPE: machine.name,
        MACHINE_FAMILY: machine.family,
        REGION: place.region,
        ZONE: zone,
        PROVISIONING: provisioning,
        "cloud.google.com/gke-os-distribution": "cos",
    }
    if machine.accelerator is not None:
        labels |= {
            ACCELERATOR: machine.accelerator,
            ACCELERATOR_COUNT: str(machine.gpus),
            "cloud.google.com/gke-gpu-driver-version": "default",
        }
        taints.append({"key": GPU_RESOURCE, "value": "present", "effect": "NoSchedule"})
    if provisioning == "spot":
        labels[SPOT] = "true"
        taints.append({"key": SPOT, "value": "true", "effect": "NoSchedule"})
    for key, value in selector.items():
        if key in _FREE_CHOICE or key == COMPUTE_CLASS:
            labels[key] = value
        elif not _SYSTEM_LABEL.search(key):
            labels[key] = value
            taints.append({"key": key, "value": value, "effect": "NoSchedule"})
    labels |= extra_labels
    taints += extra_taints
    name = node_name(place.cluster, machine, needs.uid)
    labels["kubernetes.io/hostname"] = name
    labels["cloud.google.com/gke-nodepool"] = f"nap-{machine.name}"
    return NodeTemplate(name, machine, labels, tuple(taints), annotations)


def _misfit(needs: PodNeeds, template: NodeTemplate) -> str:
    for taint in template.taints:
        if not tolerates(needs.tolerations, taint):
            return f"the pod does not tolerate the taint {taint['key']}={taint.get('value', '')}:{taint['effect']}"
    short = [
        name for name, amount in needs.requests.items() if amount and template.machine.allocatable.get(name, 0) < amount
    ]
    return f"no machine type has enough {', '.join(short)}" if short else "no machine type suits the node selector"


def node_name(cluster: str, machine: Machine, uid: str) -> str:
    """A name like GKE's. The same pod always gets the same name, so that a plan carried out twice makes one node."""
    digest = hashlib.sha256(f"{cluster}/{uid}".encode()).hexdigest()
    head = f"gk3-{cluster}-nap-{machine.name}"[:50].rstrip("-")
    return f"{head}-{digest[:4]}-{digest[4:8]}"


def plan_removals(
    nodes: Mapping[str, Json],
    pods: Iterable[Json],
    empty_since: Mapping[str, float],
    now: float,
    idle_seconds: float,
) -> tuple[list[str], dict[str, float]]:
    """(nodes to remove, since when each autoscaled node has been empty).

    Nodes that are bound to a ProvisioningRequest are left to `dws`. Pods that have ended do not keep a node.
    """
    used = {
        pod["spec"]["nodeName"]
        for pod in pods
        if pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    }
    since: dict[str, float] = {}
    for name, node in nodes.items():
        labels = node["metadata"].get("labels") or {}
        if labels.get(AUTOSCALED) != "true" or RESIZE_REQUEST in labels or name in used:
            continue
        since[name] = min(empty_since.get(name, now), now)
    return sorted(name for name, start in since.items() if now - start >= idle_seconds), since


def plan_retirement(
    unneeded: Iterable[str], nodes: Mapping[str, Json], now: float
) -> tuple[list[str], list[str], list[str]]:
    """(nodes to close, nodes to delete, nodes to open again).

    As the cluster autoscaler does, a node is closed to new pods by a taint that says when, and deleted a moment later:
    the scheduler may be placing a pod there just now. A closed node that has become needed is opened again.
    """
    wanted = set(unneeded)
    close, delete, reopen = [], [], []
    for name, node in sorted(nodes.items()):
        closed = next((one for one in node["spec"].get("taints") or () if one["key"] == TO_BE_DELETED), None)
        if name in wanted and closed is None:
            close.append(name)
        elif name in wanted and closed is not None and now - float(closed["value"]) >= RETIREMENT_SECONDS:
            delete.append(name)
        elif name not in wanted and closed is not None:
            reopen.append(name)
    return close, delete, reopen


def tolerated(needs: PodNeeds, *taint_keys: str) -> PodNeeds:
    """The same needs with a toleration for each key, as GKE's admission adds them."""
    more = tuple({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in taint_keys)
    return replace(needs, tolerations=(*needs.tolerations, *more))
