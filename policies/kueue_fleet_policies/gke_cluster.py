"""Rules about a GKE cluster as a whole: what the CIS benchmark asks of it.

In: a `gcp:container/cluster:Cluster`. Out: problems. What Autopilot brings by itself is not asked of an Autopilot
cluster: https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-security. The control plane's address is in
`gke_endpoint`, nodes are in `gke_nodes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pulumi_policy import Severity

from kueue_fleet.spec import Problem
from kueue_fleet_policies.resource import CLUSTER, Resource
from kueue_fleet_policies.rule import ADVISORY, ResourceRule, Settings
from kueue_fleet_policies.values import UNKNOWN, at, entries, holds_unknown, items, truth

_GKE: Final = "https://cloud.google.com/kubernetes-engine/docs"
_AUTOPILOT: Final = "Autopilot has it built in"
_NOT_AUTOPILOT: Final = "Autopilot clusters, which have it built in"


def _autopilot_has_it(cluster: Resource) -> str | None:
    return _AUTOPILOT if cluster.autopilot else None


def _standard(cluster: Resource) -> bool:
    return cluster.is_off("enableAutopilot")


def _workload_identity(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if _standard(cluster) and cluster.lacks("workloadIdentityConfig.workloadPool"):
        yield Problem(
            "workloadIdentityConfig.workloadPool",
            "is missing, so pods act as the node's service account",
            "set it to PROJECT.svc.id.goog",
        )


def _release_channel(cluster: Resource, settings: Settings) -> Iterator[Problem]:
    channel = cluster.get("releaseChannel.channel")
    if channel is UNKNOWN:
        return
    allowed = settings.names("channels")
    if channel is None and not cluster.is_off("enableAutopilot"):
        return
    if channel not in allowed:
        said = "is missing" if channel is None else f"is {channel}"
        yield Problem("releaseChannel.channel", said, f"set it to one of {', '.join(allowed)}")


def _shielded(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if _standard(cluster) and cluster.flag("enableShieldedNodes") is False:
        yield Problem("enableShieldedNodes", "is false", "set it to true, or leave it out")


def _intranode(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if _standard(cluster) and cluster.is_off("enableIntranodeVisibility"):
        yield Problem(
            "enableIntranodeVisibility",
            "is not true, so VPC flow logs and firewalls do not see traffic between pods of one node",
            "set it to true",
        )


def _turn_on_intranode(props: dict[str, Any]) -> None:
    props["enableIntranodeVisibility"] = True


def _vpc_native(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if cluster.get("networkingMode") == "ROUTES":
        yield Problem("networkingMode", "is ROUTES", "set it to VPC_NATIVE, and ipAllocationPolicy")
    elif _standard(cluster) and cluster.get("ipAllocationPolicy") is None and cluster.lacks("networkingMode"):
        yield Problem("ipAllocationPolicy", "is missing", "set it, as an empty object if GKE may choose the ranges")


def _network_policy(cluster: Resource, _: Settings) -> Iterator[Problem]:
    known = cluster.get("datapathProvider") is not UNKNOWN and cluster.flag("networkPolicy.enabled") is not UNKNOWN
    enforced = cluster.get("datapathProvider") == "ADVANCED_DATAPATH" or cluster.is_on("networkPolicy.enabled")
    if _standard(cluster) and known and not enforced:
        yield Problem(
            "datapathProvider",
            "is not ADVANCED_DATAPATH and networkPolicy is off, so NetworkPolicy objects have no effect",
            "set datapathProvider to ADVANCED_DATAPATH",
        )


def _observed(cluster: Resource, config: str, service: str) -> Iterator[Problem]:
    components = cluster.get(f"{config}.enableComponents")
    if cluster.get(service) == "none":
        yield Problem(service, 'is "none"', "leave it out")
    elif isinstance(components, list) and UNKNOWN not in components and "SYSTEM_COMPONENTS" not in components:
        yield Problem(f"{config}.enableComponents", "does not hold SYSTEM_COMPONENTS", "add SYSTEM_COMPONENTS")


def _logging(cluster: Resource, _: Settings) -> Iterator[Problem]:
    yield from _observed(cluster, "loggingConfig", "loggingService")


def _monitoring(cluster: Resource, _: Settings) -> Iterator[Problem]:
    yield from _observed(cluster, "monitoringConfig", "monitoringService")


def _client_certificate(cluster: Resource, _: Settings) -> Iterator[Problem]:
    path = "masterAuth.clientCertificateConfig.issueClientCertificate"
    if cluster.is_on(path):
        yield Problem(path, "is true, and such a certificate cannot be revoked", "set it to false")


def _legacy_abac(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if cluster.is_on("enableLegacyAbac"):
        yield Problem("enableLegacyAbac", "is true", "remove it; RBAC decides alone then")


def _no_legacy_abac(props: dict[str, Any]) -> None:
    props["enableLegacyAbac"] = False


def _groups_rbac(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if cluster.lacks("authenticatorGroupsConfig.securityGroup"):
        yield Problem(
            "authenticatorGroupsConfig.securityGroup",
            "is missing, so RBAC can name single users only",
            "set it to gke-security-groups@YOUR-DOMAIN",
        )


def _secrets_cmek(cluster: Resource, _: Settings) -> Iterator[Problem]:
    state = cluster.get("databaseEncryption.state")
    if state is not UNKNOWN and (state != "ENCRYPTED" or cluster.lacks("databaseEncryption.keyName")):
        yield Problem(
            "databaseEncryption",
            "names no key of Cloud KMS",
            "set state to ENCRYPTED and keyName to projects/P/locations/REGION/keyRings/R/cryptoKeys/K",
        )


def _binary_authorization(cluster: Resource, _: Settings) -> Iterator[Problem]:
    mode = cluster.get("binaryAuthorization.evaluationMode")
    if mode is not UNKNOWN and mode in (None, "", "DISABLED") and not cluster.is_on("binaryAuthorization.enabled"):
        yield Problem(
            "binaryAuthorization.evaluationMode",
            "is not set, so any image may run",
            "set it to PROJECT_SINGLETON_POLICY_ENFORCE",
        )


def _alpha(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if cluster.is_on("enableKubernetesAlpha"):
        yield Problem("enableKubernetesAlpha", "is true; such a cluster is deleted after 30 days", "remove it")


def _default_pool(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if _standard(cluster) and cluster.is_off("removeDefaultNodePool") and cluster.get("nodePools") is None:
        yield Problem(
            "removeDefaultNodePool",
            "is not true, so a pool exists that cannot be changed without replacing the cluster",
            "set it to true, with initialNodeCount 1, and declare node pools",
        )


def _autopilot_nodes(cluster: Resource, _: Settings) -> Iterator[Problem]:
    for key in ("nodeConfig", "nodePools", "nodeVersion"):
        if cluster.autopilot and not cluster.lacks(key):
            yield Problem(key, "is set on an Autopilot cluster, which every update would then replace", "remove it")


def _labels(cluster: Resource, settings: Settings) -> Iterator[Problem]:
    labels = cluster.get("resourceLabels")
    missing = [label for label in settings.names("labels") if label not in (labels or {})] if labels != UNKNOWN else []
    if labels is not UNKNOWN and not labels:
        yield Problem("resourceLabels", "are missing, so no bill says whose cluster it is", "set at least one")
    elif missing:
        yield Problem("resourceLabels", f"do not hold {', '.join(missing)}", "add what is missing")


def _cost_allocation(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if cluster.is_off("costManagementConfig.enabled"):
        yield Problem("costManagementConfig.enabled", "is not true, so bills do not name namespaces", "set it to true")


def _allocate_cost(props: dict[str, Any]) -> None:
    props["costManagementConfig"] = {"enabled": True}


def _maintenance(cluster: Resource, _: Settings) -> Iterator[Problem]:
    policy = cluster.get("maintenancePolicy")
    windows = ("recurringWindow", "recurringMaintenanceWindow", "dailyMaintenanceWindow")
    if policy is not UNKNOWN and not any(at(policy, window) is not None for window in windows):
        yield Problem(
            "maintenancePolicy",
            "has no window, so nodes are upgraded at any hour, under running jobs",
            "set recurringWindow with startTime, endTime and recurrence",
        )


def _regional(cluster: Resource, _: Settings) -> Iterator[Problem]:
    location = cluster.get("location")
    if isinstance(location, str) and location.count("-") == 2:
        yield Problem(
            "location",
            f"is the zone {location}: one control plane, which is away during upgrades",
            f"set it to the region {location.rsplit('-', 1)[0]}",
        )


def _insecure_bindings(cluster: Resource, _: Settings) -> Iterator[Problem]:
    for who in ("Authenticated", "Unauthenticated"):
        path = f"rbacBindingConfig.enableInsecureBindingSystem{who}"
        if cluster.is_on(path):
            yield Problem(path, f"is true: roles may be given to system:{who.lower()}", "set it to false")


def _nap_integrity(cluster: Resource, _: Settings) -> Iterator[Problem]:
    defaults = cluster.get("clusterAutoscaling.autoProvisioningDefaults")
    if not _standard(cluster) or not cluster.is_on("clusterAutoscaling.enabled") or defaults is UNKNOWN:
        return
    for option in ("enableIntegrityMonitoring", "enableSecureBoot"):
        path = f"clusterAutoscaling.autoProvisioningDefaults.shieldedInstanceConfig.{option}"
        value = truth(at(defaults, f"shieldedInstanceConfig.{option}"))
        if value is False or (value is None and option == "enableSecureBoot"):
            yield Problem(path, "is not true for auto-provisioned nodes", "set it to true")


def _nap_management(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if not _standard(cluster) or not cluster.is_on("clusterAutoscaling.enabled"):
        return
    for option in ("autoRepair", "autoUpgrade"):
        path = f"clusterAutoscaling.autoProvisioningDefaults.management.{option}"
        if cluster.flag(path) is False:
            yield Problem(path, "is false for auto-provisioned nodes", "set it to true")


def _nap_limits(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if not _standard(cluster) or not cluster.is_on("clusterAutoscaling.enabled"):
        return
    limits = cluster.get("clusterAutoscaling.resourceLimits")
    if holds_unknown(limits):
        return
    known = {entries(limit).get("resourceType") for limit in items(limits)}
    for needed in ("cpu", "memory"):
        if needed not in known:
            yield Problem(
                "clusterAutoscaling.resourceLimits",
                f"has no maximum of {needed}, without which GKE refuses node auto-provisioning",
                f"add {{resourceType: {needed}, maximum: ...}}",
            )


_GROUP: Final = "GKE cluster"

RULES: Final = (
    ResourceRule(
        name="gke-workload-identity",
        asks="Workloads use Workload Identity.",
        cis="5.2.2",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/workload-identity",
        group=_GROUP,
        types=(CLUSTER,),
        check=_workload_identity,
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    ResourceRule(
        name="gke-release-channel",
        asks="A release channel keeps the cluster's version.",
        cis="5.5.4",
        source=f"{_GKE}/concepts/release-channels",
        group=_GROUP,
        types=(CLUSTER,),
        check=_release_channel,
        options={
            "channels": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Channels that are allowed.",
                "default": ["RAPID", "REGULAR", "STABLE", "EXTENDED"],
            }
        },
    ),
    ResourceRule(
        name="gke-shielded-nodes",
        asks="Nodes are Shielded GKE Nodes.",
        cis="5.5.5",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/shielded-gke-nodes",
        group=_GROUP,
        types=(CLUSTER,),
        check=_shielded,
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    ResourceRule(
        name="gke-intranode-visibility",
        asks="Traffic between pods of one node is visible to the VPC.",
        cis="5.6.1",
        source=f"{_GKE}/how-to/intranode-visibility",
        group=_GROUP,
        types=(CLUSTER,),
        check=_intranode,
        remedy=_turn_on_intranode,
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    ResourceRule(
        name="gke-vpc-native",
        asks="The cluster is VPC-native.",
        cis="5.6.2",
        source=f"{_GKE}/concepts/alias-ips",
        group=_GROUP,
        types=(CLUSTER,),
        check=_vpc_native,
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    ResourceRule(
        name="gke-network-policy",
        asks="The cluster enforces NetworkPolicy.",
        cis="5.6.7",
        source=f"{_GKE}/concepts/dataplane-v2",
        group=_GROUP,
        types=(CLUSTER,),
        check=_network_policy,
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    ResourceRule(
        name="gke-logging",
        asks="System logs go to Cloud Logging.",
        cis="5.7.1",
        source="https://cloud.google.com/kubernetes-engine/docs/how-to/config-logging-monitoring",
        group=_GROUP,
        types=(CLUSTER,),
        check=_logging,
    ),
    ResourceRule(
        name="gke-monitoring",
        asks="System metrics go to Cloud Monitoring.",
        cis="5.7.1",
        source="https://cloud.google.com/kubernetes-engine/docs/how-to/config-logging-monitoring",
        group=_GROUP,
        types=(CLUSTER,),
        check=_monitoring,
    ),
    ResourceRule(
        name="gke-no-client-certificate",
        asks="Nobody signs in with a client certificate.",
        cis="5.8.2",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/api-server-authentication",
        group=_GROUP,
        types=(CLUSTER,),
        check=_client_certificate,
    ),
    ResourceRule(
        name="gke-groups-rbac",
        asks="RBAC can name Google Groups.",
        cis="5.8.3",
        level=ADVISORY,
        source=f"{_GKE}/how-to/google-groups-rbac",
        group=_GROUP,
        types=(CLUSTER,),
        check=_groups_rbac,
    ),
    ResourceRule(
        name="gke-no-legacy-abac",
        asks="Legacy authorization is off.",
        cis="5.8.4",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/hardening-your-cluster",
        group=_GROUP,
        types=(CLUSTER,),
        check=_legacy_abac,
        remedy=_no_legacy_abac,
    ),
    ResourceRule(
        name="gke-no-insecure-bindings",
        asks="No role is given to everybody who can reach the cluster.",
        severity=Severity.HIGH,
        source="https://cloud.google.com/kubernetes-engine/docs/best-practices/rbac#default-roles-groups",
        group=_GROUP,
        types=(CLUSTER,),
        check=_insecure_bindings,
    ),
    ResourceRule(
        name="gke-secrets-cmek",
        asks="Secrets are encrypted with a key of Cloud KMS.",
        cis="5.3.1",
        level=ADVISORY,
        source=f"{_GKE}/how-to/encrypting-secrets",
        group=_GROUP,
        types=(CLUSTER,),
        check=_secrets_cmek,
    ),
    ResourceRule(
        name="gke-binary-authorization",
        asks="Only authorized images run.",
        cis="5.10.5",
        level=ADVISORY,
        source="https://cloud.google.com/binary-authorization/docs/overview",
        group=_GROUP,
        types=(CLUSTER,),
        check=_binary_authorization,
    ),
    ResourceRule(
        name="gke-no-alpha",
        asks="No cluster has alpha features of Kubernetes.",
        cis="5.10.2",
        severity=Severity.HIGH,
        source=f"{_GKE}/concepts/alpha-clusters",
        group=_GROUP,
        types=(CLUSTER,),
        check=_alpha,
    ),
    ResourceRule(
        name="gke-separate-node-pools",
        asks="Node pools are resources of their own.",
        source="https://www.pulumi.com/registry/packages/gcp/api-docs/container/cluster/",
        group=_GROUP,
        types=(CLUSTER,),
        check=_default_pool,
        exemption=_autopilot_has_it,
        exempts="Autopilot clusters, which have no node pools to declare",
    ),
    ResourceRule(
        name="gke-autopilot-without-nodes",
        asks="An Autopilot cluster says nothing about nodes.",
        source="https://github.com/pulumi/pulumi-gcp/issues/2247",
        group=_GROUP,
        types=(CLUSTER,),
        check=_autopilot_nodes,
    ),
    ResourceRule(
        name="gke-labels",
        asks="The cluster's labels say whose it is.",
        level=ADVISORY,
        severity=Severity.LOW,
        source=f"{_GKE}/how-to/creating-managing-labels",
        group=_GROUP,
        types=(CLUSTER,),
        check=_labels,
        options={
            "labels": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Labels that every cluster has to have.",
                "default": [],
            }
        },
    ),
    ResourceRule(
        name="gke-cost-allocation",
        asks="Bills name namespaces.",
        level=ADVISORY,
        severity=Severity.LOW,
        source=f"{_GKE}/how-to/cost-allocations",
        group=_GROUP,
        types=(CLUSTER,),
        check=_cost_allocation,
        remedy=_allocate_cost,
    ),
    ResourceRule(
        name="gke-maintenance-window",
        asks="Upgrades have their hours.",
        level=ADVISORY,
        severity=Severity.LOW,
        source=f"{_GKE}/concepts/maintenance-windows-and-exclusions",
        group=_GROUP,
        types=(CLUSTER,),
        check=_maintenance,
    ),
    ResourceRule(
        name="gke-regional",
        asks="The control plane is in more than one zone.",
        level=ADVISORY,
        source=f"{_GKE}/concepts/regional-clusters",
        group=_GROUP,
        types=(CLUSTER,),
        check=_regional,
    ),
    ResourceRule(
        name="gke-auto-provisioning-shielded",
        asks="Auto-provisioned nodes boot securely.",
        cis="5.5.7",
        source=f"{_GKE}/how-to/shielded-gke-nodes",
        group=_GROUP,
        types=(CLUSTER,),
        check=_nap_integrity,
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    ResourceRule(
        name="gke-auto-provisioning-management",
        asks="Auto-provisioned nodes are repaired and upgraded.",
        cis="5.5.3",
        source=f"{_GKE}/how-to/node-auto-provisioning",
        group=_GROUP,
        types=(CLUSTER,),
        check=_nap_management,
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    ResourceRule(
        name="gke-auto-provisioning-limits",
        asks="Node auto-provisioning has limits.",
        source=f"{_GKE}/how-to/node-auto-provisioning",
        group=_GROUP,
        types=(CLUSTER,),
        check=_nap_limits,
        exemption=_autopilot_has_it,
        exempts="Autopilot clusters, which the quotas of Kueue limit, see spend-quota",
    ),
)
