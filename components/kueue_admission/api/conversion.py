"""Objects of Kueue's v1beta1 as v1beta2, as Kueue's own conversions make them.

The conversion is the same in 0.17, 0.18 and 0.19, except for the slices in which the places of a pod set are written.

Source: kueue@v0.19.2 apis/kueue/v1beta1/*_conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kueue_admission.kernel.names import KUEUE_API, KUEUE_GROUP

_V1BETA1: Final = f"{KUEUE_GROUP}/v1beta1"
_V1ALPHA1: Final = f"{KUEUE_GROUP}/v1alpha1"
_FROM_ALPHA: Final = ("Cohort", "Topology")
"""Kinds whose v1alpha1 has the fields of v1beta1, but for `parent` of a Cohort. Kueue 0.14 serves v1beta1 of them.

Source: kueue@v0.13.0 apis/kueue/v1alpha1.
"""
_FUNGIBILITY: Final = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
_PRIORITY_CLASSES: Final = {
    f"{KUEUE_GROUP}/workloadpriorityclass": {"group": KUEUE_GROUP, "kind": "WorkloadPriorityClass"},
    "scheduling.k8s.io/priorityclass": {"group": "scheduling.k8s.io", "kind": "PriorityClass"},
}
"""What `priorityClassSource` of a Workload becomes."""
_RENAMED: Final = {
    "Workload": {"accumulatedPastExexcutionTimeSeconds": "accumulatedPastExecutionTimeSeconds"},  # Kueue's spelling.
    "LocalQueue": {"flavorUsage": "flavorsUsage"},
}
"""Fields of a status that have another name."""
_DROPPED: Final = {"ClusterQueue": ("pendingWorkloadsStatus",), "LocalQueue": ("flavors",)}
"""Fields of a status that v1beta2 does not have."""

Object = Mapping[str, Any]
"""An object of Kubernetes as plain data."""


def is_former(manifest: Object) -> bool:
    """Whether the object is of v1beta1, or of the v1alpha1 with which its kind began."""
    version = manifest.get("apiVersion")
    return version == _V1BETA1 or (version == _V1ALPHA1 and manifest.get("kind") in _FROM_ALPHA)


def as_v1beta2(manifest: Object) -> Object:
    """The object in v1beta2; itself where it is not `is_former`. What has another form than expected stays as it is."""
    if not is_former(manifest):
        return manifest
    current_manifest = {**manifest, "apiVersion": KUEUE_API}
    kind, spec, status = str(manifest.get("kind")), manifest.get("spec"), manifest.get("status")
    if isinstance(spec, Mapping):
        current_manifest["spec"] = spec_as_v1beta2(kind, spec)
    if isinstance(status, Mapping):
        current_manifest["status"] = _status(kind, status)
    return current_manifest


def spec_as_v1beta2(kind: str, spec: Object) -> dict[str, Any]:
    """The spec of an object of v1beta1, or of v1alpha1 before it, in v1beta2."""
    current_spec = dict(spec)
    if kind == "ClusterQueue":
        _convert_cluster_queue(current_spec)
    elif kind == "Cohort" and "parent" in current_spec:
        current_spec["parentName"] = current_spec.pop("parent")
    elif kind == "AdmissionCheck":
        current_spec.pop("retryDelayMinutes", None)
    elif kind == "MultiKueueCluster" and "clusterSource" not in current_spec:
        current_spec = {"clusterSource": {name: value for name, value in current_spec.items() if _is_source(value)}}
    elif kind == "Workload":
        name, source = current_spec.pop("priorityClassName", ""), current_spec.pop("priorityClassSource", None)
        if source in _PRIORITY_CLASSES:
            current_spec["priorityClassRef"] = {**_PRIORITY_CLASSES[source], "name": name}
    return current_spec


def _is_source(value: Any) -> bool:
    """Whether a cluster is reached by it: v1beta1 writes an empty kubeConfig beside a ClusterProfile."""
    return not isinstance(value, Mapping) or value.get("location") != ""


def _convert_cluster_queue(spec: dict[str, Any]) -> None:
    cohort = spec.pop("cohort", None)
    if cohort:
        spec["cohortName"] = cohort
    checks = spec.pop("admissionChecks", None)
    if isinstance(checks, list) and checks:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in checks]}
    fungibility = spec.get("flavorFungibility")
    if isinstance(fungibility, Mapping):
        spec["flavorFungibility"] = {
            key: _FUNGIBILITY.get(value, value) if isinstance(value, str) else value
            for key, value in fungibility.items()
        }
    elif fungibility is None:
        spec.pop("flavorFungibility", None)


def _status(kind: str, status: Object) -> dict[str, Any]:
    names = _RENAMED.get(kind, {})
    other_fields = {
        names.get(name, name): value for name, value in status.items() if name not in _DROPPED.get(kind, ())
    }
    sharing = other_fields.get("fairSharing")
    if kind in ("ClusterQueue", "Cohort") and isinstance(sharing, Mapping):
        other_fields["fairSharing"] = {
            name: value for name, value in sharing.items() if name != "admissionFairSharingStatus"
        }
    admission = other_fields.get("admission")
    pod_sets = admission.get("podSetAssignments") if isinstance(admission, Mapping) else None
    if isinstance(admission, Mapping) and isinstance(pod_sets, list):
        other_fields["admission"] = {**admission, "podSetAssignments": [_assignment(pod_set) for pod_set in pod_sets]}
    return other_fields


def _assignment(pod_set: Any) -> Any:
    """A pod set's assignment; each domain of its topology becomes a slice."""
    topology = pod_set.get("topologyAssignment") if isinstance(pod_set, Mapping) else None
    domains = topology.get("domains") if isinstance(topology, Mapping) else None
    if not isinstance(topology, Mapping) or not isinstance(domains, list):
        return pod_set
    slices = [
        {
            "domainCount": 1,
            "valuesPerLevel": [{"universal": value} for value in domain.get("values") or ()],
            "podCounts": {"universal": domain.get("count", 1)},
        }
        for domain in domains
        if isinstance(domain, Mapping)
    ]
    return {**pod_set, "topologyAssignment": {"levels": topology.get("levels"), "slices": slices}}
