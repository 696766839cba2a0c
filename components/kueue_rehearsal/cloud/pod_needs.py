"""What the scheduler looks at in a pod, and whether a node would do, from objects as the API server shows
them.

Not modelled: node affinity, pod affinity and spread constraints; a pod that requires them says so in `not_modelled`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kueue_admission.api.taints import tolerates
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.fields import Fields
from kueue_admission.read.pod_requests import pod_requests
from kueue_admission.read.printed_pods import PrintedPod, PrintedTaint, PrintedToleration

# Both names are in use: Kueue writes the first, older releases of the cluster autoscaler read the second.
CONSUME_ANNOTATIONS = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""On a pod: the ProvisioningRequest whose nodes it takes."""


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """What the scheduler looks at in a pod."""

    key: str
    """namespace/name"""
    uid: str
    requests: Mapping[str, int]
    node_selector: Mapping[str, str]
    tolerations: tuple[Manifest, ...] = ()
    not_modelled: tuple[str, ...] = ()
    created: str = ""


def amounts(resources: Mapping[str, Any]) -> dict[str, int]:
    """Quantities as whole numbers: CPU in thousandths, all else in units."""
    return _amounts({name: Quantity(value) for name, value in resources.items()})


def requests_of(spec: Manifest) -> dict[str, int]:
    """What a pod asks of its node, a place among its pods too."""
    return {"pods": 1, **_amounts(pod_requests(Fields(spec, "", [])))}


def _amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: quantity.counted(name) for name, quantity in quantities.items()}


def pod_needs(key: str, uid: str, spec: Manifest, created: str = "") -> PodNeeds:
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
        requests=requests_of(spec),
        node_selector=spec.get("nodeSelector") or {},
        tolerations=tuple(spec.get("tolerations") or ()),
        not_modelled=tuple(not_modelled),
        created=created,
    )


def consumed_request(pod: Manifest) -> str | None:
    """The ProvisioningRequest (namespace/name) whose capacity the pod uses."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    for annotation in CONSUME_ANNOTATIONS:
        if annotation in annotations:
            return f"{metadata['namespace']}/{annotations[annotation]}"
    return None


def is_daemon(pod: Manifest) -> bool:
    """Whether the pod is a DaemonSet's: it comes and goes with its node, and neither brings nor keeps one."""
    return any(owner.kind == "DaemonSet" for owner in PrintedPod.of(pod).owners)


def used_node(pod: Manifest) -> str | None:
    """The node that the pod keeps; None for one that has none, that has ended, or that goes with its node."""
    printed_pod = PrintedPod.of(pod)
    return None if printed_pod.is_over or is_daemon(pod) else printed_pod.node or None


def is_unschedulable(pod: Manifest) -> bool:
    """Whether the scheduler has tried the pod and found no node for it."""
    printed_pod = PrintedPod.of(pod)
    if printed_pod.node or "deletionTimestamp" in printed_pod.metadata or pod["spec"].get("schedulingGates"):
        return False
    return not printed_pod.is_true("PodScheduled") and printed_pod.reason("PodScheduled") == "Unschedulable"


def is_tolerated(tolerations: Iterable[Manifest], taint: Manifest) -> bool:
    """Whether the scheduler puts a pod with these tolerations on a node with this taint."""
    printed_taint = PrintedTaint.of(taint)
    return printed_taint.effect == "PreferNoSchedule" or any(
        tolerates(PrintedToleration.of(one), printed_taint, compares=False) for one in tolerations
    )


def fits_node(needs: PodNeeds, labels: Mapping[str, str], taints: Iterable[Manifest], free: Mapping[str, int]) -> bool:
    """Whether the scheduler could put the pod on such a node."""
    return (
        all(labels.get(key) == value for key, value in needs.node_selector.items())
        and all(is_tolerated(needs.tolerations, taint) for taint in taints)
        and all(free.get(name, 0) >= amount for name, amount in needs.requests.items() if amount)
    )


def free_resources(nodes: Mapping[str, Manifest], pods: Iterable[Manifest]) -> dict[str, dict[str, int]]:
    """What is left on each node."""
    free = {name: amounts(node.get("status", {}).get("allocatable") or {}) for name, node in nodes.items()}
    for pod in pods:
        printed_pod = PrintedPod.of(pod)
        if printed_pod.node in free and not printed_pod.is_over:
            for name, amount in requests_of(pod["spec"]).items():
                free[printed_pod.node][name] = free[printed_pod.node].get(name, 0) - amount
    return free


def tolerated(needs: PodNeeds, *taint_keys: str) -> PodNeeds:
    """The same needs with a toleration for each key, as GKE's admission adds them."""
    more = tuple({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in taint_keys)
    return replace(needs, tolerations=(*needs.tolerations, *more))
