"""Kubernetes objects from wire models.

The object as plain data, with Kueue's server-side defaults written out, so that what was sent and what the server holds
are the same. Which objects a cluster gets is decided in `placement` and `render`; components that stand alone use these
functions directly, so YAML and Pulumi cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kueue_fleet.kueue_api import (
    AdmissionCheckSpec,
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    MultiKueueClusterSpec,
    MultiKueueConfigSpec,
    PriorityClassFields,
    ProvisioningRequestConfigSpec,
    ResourceFlavorSpec,
    ResourceGroup,
    TopologySpec,
    WorkloadPriorityClassFields,
)
from kueue_fleet.kueue_api.names import KUEUE_API

Manifest = dict[str, Any]
"""A Kubernetes object as plain data."""

TEAM_LABEL: Final = "kueue-fleet.dev/team"
"""Label on the namespaces of a team, with the team's name."""
POD_SECURITY_LABEL: Final = "pod-security.kubernetes.io/enforce"
"""On a namespace: the Pod Security Standard that the API server enforces there.

Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/
"""
POD_SECURITY_WARNING_LABEL: Final = "pod-security.kubernetes.io/warn"
"""On a namespace: the Pod Security Standard that the API server warns of when a job or a pod does not meet it."""
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Label that Kubernetes puts on every namespace, with its name."""
TOKEN_SECRET_TYPE: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type, not a token
"""Kubernetes fills a Secret of this type with a token of the account it names."""


def manifest(api_version: str, kind: str, name: str, namespace: str | None = None, **body: Any) -> Manifest:
    """An object of any kind; `body` holds its top-level fields beside apiVersion, kind and metadata."""
    metadata: dict[str, Any] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def namespace_manifest(name: str, team: str | None = None, pod_security: str = "baseline") -> Manifest:
    """A Namespace; `team` and the Pod Security Standard that the API server enforces become its labels.

    In one of a team, the API server also warns of what the standard `restricted` would refuse.
    """
    made = manifest("v1", "Namespace", name)
    labels = {POD_SECURITY_LABEL: pod_security}
    if team is not None:
        labels = {TEAM_LABEL: team, **labels, POD_SECURITY_WARNING_LABEL: "restricted"}
    made["metadata"]["labels"] = labels
    return made


def token_secret_manifest(name: str, namespace: str, account: str, **annotations: str) -> Manifest:
    """A Secret that Kubernetes fills with a token of `account`, which never expires."""
    made = manifest("v1", "Secret", name, namespace, type=TOKEN_SECRET_TYPE)
    made["metadata"]["annotations"] = {"kubernetes.io/service-account.name": account, **annotations}
    return made


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
    levels = [{"nodeLabel": level.node_label} for level in spec.levels]
    return manifest(KUEUE_API, "Topology", name, spec={"levels": levels})


def resource_flavor_manifest(name: str, spec: ResourceFlavorSpec) -> Manifest:
    """A ResourceFlavor; parts that are empty are left out."""
    body: dict[str, Any] = {}
    if spec.node_labels:
        body["nodeLabels"] = dict(spec.node_labels)
    if spec.node_taints:
        body["nodeTaints"] = [
            {key: value for key, value in taint.wire().items() if value != ""} for taint in spec.node_taints
        ]
    if spec.tolerations:
        body["tolerations"] = [toleration.wire() for toleration in spec.tolerations]
    if spec.topology_name:
        body["topologyName"] = spec.topology_name
    return manifest(KUEUE_API, "ResourceFlavor", name, spec=body)


def provisioning_request_config_manifest(name: str, spec: ProvisioningRequestConfigSpec) -> Manifest:
    """A ProvisioningRequestConfig, with the retry strategy written out."""
    body: dict[str, Any] = {"provisioningClassName": spec.provisioning_class_name}
    if spec.parameters:
        body["parameters"] = dict(spec.parameters)
    if spec.managed_resources:
        body["managedResources"] = list(spec.managed_resources)
    body["retryStrategy"] = spec.retry_strategy.wire()
    if spec.pod_set_updates is not None and spec.pod_set_updates.node_selector:
        body["podSetUpdates"] = spec.pod_set_updates.wire()
    if spec.pod_set_merge_policy is not None:
        body["podSetMergePolicy"] = spec.pod_set_merge_policy
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
    body: dict[str, Any] = {}
    if spec.parent_name:
        body["parentName"] = spec.parent_name
    if spec.resource_groups:
        body["resourceGroups"] = _resource_groups(spec.resource_groups)
    body["fairSharing"] = {"weight": str(spec.fair_sharing.weight)}
    return manifest(KUEUE_API, "Cohort", name, spec=body)


def cluster_queue_manifest(name: str, spec: ClusterQueueSpec) -> Manifest:
    """A ClusterQueue, with every default of the server written out."""
    body: dict[str, Any] = {}
    if spec.cohort_name:
        body["cohortName"] = spec.cohort_name
    body["queueingStrategy"] = spec.queueing_strategy
    if spec.namespace_selector is not None:
        body["namespaceSelector"] = spec.namespace_selector.wire()
    body["resourceGroups"] = _resource_groups(spec.resource_groups)
    body["flavorFungibility"] = spec.flavor_fungibility.wire()
    body["preemption"] = spec.preemption.wire()
    if spec.admission_checks_strategy is not None:
        body["admissionChecksStrategy"] = {
            "admissionChecks": [
                {"name": rule.name, **({"onFlavors": list(rule.on_flavors)} if rule.on_flavors else {})}
                for rule in spec.admission_checks_strategy.admission_checks
            ]
        }
    body["stopPolicy"] = spec.stop_policy
    body["fairSharing"] = {"weight": str(spec.fair_sharing.weight)}
    if spec.admission_scope is not None:
        body["admissionScope"] = spec.admission_scope.wire()
    if spec.concurrent_admission_policy is not None:
        body["concurrentAdmissionPolicy"] = spec.concurrent_admission_policy.wire()
    return manifest(KUEUE_API, "ClusterQueue", name, spec=body)


def local_queue_manifest(namespace: str, name: str, spec: LocalQueueSpec) -> Manifest:
    """A LocalQueue."""
    body: dict[str, Any] = {"clusterQueue": spec.cluster_queue, "stopPolicy": spec.stop_policy}
    if spec.fair_sharing is not None:
        body["fairSharing"] = {"weight": str(spec.fair_sharing.weight)}
    return manifest(KUEUE_API, "LocalQueue", name, namespace, spec=body)


def _resource_groups(groups: Iterable[ResourceGroup]) -> list[dict[str, Any]]:
    return [
        {
            "coveredResources": list(group.covered_resources),
            "flavors": [
                {
                    "name": flavor.name,
                    "resources": [
                        _quota(
                            quota.name,
                            nominal=quota.nominal_quota,
                            borrow=quota.borrowing_limit,
                            lend=quota.lending_limit,
                        )
                        for quota in flavor.resources
                    ],
                }
                for flavor in group.flavors
            ],
        }
        for group in groups
    ]


def _quota(name: str, *, nominal: object, borrow: object, lend: object) -> Mapping[str, str]:
    quota = {"name": name, "nominalQuota": str(nominal)}
    if borrow is not None:
        quota["borrowingLimit"] = str(borrow)
    if lend is not None:
        quota["lendingLimit"] = str(lend)
    return quota
