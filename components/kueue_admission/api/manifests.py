"""Kubernetes objects from the models of Kueue's API.

The object as plain data, with Kueue's server-side defaults written out, so that what was sent and what the server holds
are the same. Which objects a cluster of a fleet gets is decided above; components that stand alone use these
functions directly, so YAML and Pulumi cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kueue_admission.api import (
    AdmissionCheckSpec,
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    MultiKueueClusterSpec,
    MultiKueueConfigSpec,
    PriorityClassFields,
    ProvisioningRequestConfigSpec,
    ResourceFlavorSpec,
    TopologySpec,
    WorkloadPriorityClassFields,
)
from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import KUEUE_API

TEAM_LABEL: Final = "kueue-fleet.dev/team"
"""Label on the namespaces of a team, with the team's name."""
POD_SECURITY_LABEL: Final = "pod-security.kubernetes.io/enforce"
"""On a namespace: the Pod Security Standard that the API server enforces there.

Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/
"""
POD_SECURITY_WARNING_LABEL: Final = "pod-security.kubernetes.io/warn"
"""On a namespace: the Pod Security Standard that the API server warns of when a job or a pod does not meet it."""
TOKEN_SECRET_TYPE: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type, not a token
"""Kubernetes fills a Secret of this type with a token of the account it names."""


def manifest(
    api_version: str,
    kind: str,
    name: str,
    namespace: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **body: Any,
) -> Manifest:
    """An object of any kind; `body` holds its top-level fields beside apiVersion, kind and metadata."""
    metadata: dict[str, Any] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def namespace_labels(team: str | None = None, pod_security: str = "baseline") -> dict[str, str]:
    """Labels of a namespace that say its team and the Pod Security Standard that the API server enforces.

    In one of a team, the API server also warns of what the standard `restricted` would refuse.
    """
    if team is None:
        return {POD_SECURITY_LABEL: pod_security}
    return {TEAM_LABEL: team, POD_SECURITY_LABEL: pod_security, POD_SECURITY_WARNING_LABEL: "restricted"}


def namespace_manifest(name: str, labels: Mapping[str, str] | None = None) -> Manifest:
    """A Namespace; by default with the labels of one that belongs to no team."""
    return manifest("v1", "Namespace", name, labels=namespace_labels() if labels is None else labels)


def token_secret_manifest(name: str, namespace: str, account: str, **annotations: str) -> Manifest:
    """A Secret that Kubernetes fills with a token of `account`, which never expires."""
    annotations = {"kubernetes.io/service-account.name": account, **annotations}
    return manifest("v1", "Secret", name, namespace, annotations=annotations, type=TOKEN_SECRET_TYPE)


def priority_class_manifest(name: str, fields: PriorityClassFields) -> Manifest:
    """A PriorityClass; its fields stand at the top of the object."""
    body: dict[str, Any] = {"value": fields.value, "preemptionPolicy": fields.preemption_policy}
    # The API server does not keep a false, so one written out would be a change at every `pulumi up`.
    if fields.global_default:
        body["globalDefault"] = True
    if fields.description:
        body["description"] = fields.description
    return manifest("scheduling.k8s.io/v1", "PriorityClass", name, **body)


def workload_priority_class_manifest(name: str, fields: WorkloadPriorityClassFields) -> Manifest:
    """A WorkloadPriorityClass; its fields stand at the top of the object."""
    body: dict[str, Any] = {"value": fields.value}
    if fields.description:
        body["description"] = fields.description
    return manifest(KUEUE_API, "WorkloadPriorityClass", name, **body)


def topology_manifest(name: str, spec: TopologySpec) -> Manifest:
    """A Topology."""
    return manifest(KUEUE_API, "Topology", name, spec=_fields(TopologySpec, spec))


def resource_flavor_manifest(name: str, spec: ResourceFlavorSpec) -> Manifest:
    """A ResourceFlavor; parts that are empty are left out."""
    body = _fields(ResourceFlavorSpec, spec)
    if spec.node_taints:
        body["nodeTaints"] = [
            {key: value for key, value in taint.items() if value != ""} for taint in body["nodeTaints"]
        ]
    return manifest(KUEUE_API, "ResourceFlavor", name, spec=body)


def provisioning_request_config_manifest(name: str, spec: ProvisioningRequestConfigSpec) -> Manifest:
    """A ProvisioningRequestConfig, with the retry strategy written out."""
    body = _fields(ProvisioningRequestConfigSpec, spec)
    if spec.pod_set_updates is not None and not spec.pod_set_updates.node_selector:
        del body["podSetUpdates"]
    return manifest(KUEUE_API, "ProvisioningRequestConfig", name, spec=body)


def admission_check_manifest(name: str, spec: AdmissionCheckSpec) -> Manifest:
    """An AdmissionCheck."""
    return manifest(KUEUE_API, "AdmissionCheck", name, spec=spec.wire())


def multikueue_cluster_manifest(name: str, spec: MultiKueueClusterSpec) -> Manifest:
    """A MultiKueueCluster."""
    return manifest(KUEUE_API, "MultiKueueCluster", name, spec=spec.wire())


def multikueue_config_manifest(name: str, spec: MultiKueueConfigSpec) -> Manifest:
    """A MultiKueueConfig; the order of its clusters is kept."""
    return manifest(KUEUE_API, "MultiKueueConfig", name, spec=spec.wire())


def cohort_manifest(name: str, spec: CohortSpec) -> Manifest:
    """A Cohort, with the weight written out."""
    return manifest(KUEUE_API, "Cohort", name, spec=_fields(CohortSpec, spec))


def cluster_queue_manifest(name: str, spec: ClusterQueueSpec, annotations: Mapping[str, str] | None = None) -> Manifest:
    """A ClusterQueue, with every default of the server written out."""
    first = ("cohortName", "queueingStrategy", "namespaceSelector", "resourceGroups")
    body = {"resourceGroups": [], **_fields(ClusterQueueSpec, spec)}
    body = {**{key: body[key] for key in first if key in body}, **body}
    for rule in body.get("admissionChecksStrategy", {}).get("admissionChecks", ()):
        if not rule["onFlavors"]:
            del rule["onFlavors"]
    return manifest(KUEUE_API, "ClusterQueue", name, annotations=annotations, spec=body)


def local_queue_manifest(namespace: str, name: str, spec: LocalQueueSpec) -> Manifest:
    """A LocalQueue."""
    return manifest(KUEUE_API, "LocalQueue", name, namespace, spec=_fields(LocalQueueSpec, spec))


def _fields(model: type[SpecModel], spec: SpecModel) -> dict[str, Any]:
    """The fields of the object, without what is empty. The entry of a file has more than the object."""
    values = spec.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(model.model_fields))
    # An empty selector selects every namespace.
    return {key: value for key, value in values.items() if value not in ("", [], {}) or key == "namespaceSelector"}
