"""Rules about a GKE cluster as a whole: what the CIS benchmark asks of it.

What Autopilot has built in is not asked of an Autopilot cluster:
https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-security. The control plane's address is in
`gke_endpoint`, nodes are in `gke_nodes` and `gke_auto_provisioning`, versions and bills in `gke_operations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from pulumi_policy import Severity

from kueue_admission.forms.unknown import UNKNOWN
from kueue_fleet_policies.properties import is_false, is_off, is_on, lacks, prohibit, put, standard
from kueue_fleet_policies.resource import CLUSTER, Resource
from kueue_fleet_policies.rule import ADVISORY, Breach, ResourceRule, Settings

_GKE: Final = "https://cloud.google.com/kubernetes-engine/docs"
_AUTOPILOT: Final = "Autopilot has it built in"
_NOT_AUTOPILOT: Final = "Autopilot clusters, which have it built in"


def _autopilot_has_it(cluster: Resource) -> str | None:
    return _AUTOPILOT if cluster.autopilot else None


def _vpc_native(cluster: Resource, _: Settings) -> Iterator[Breach]:
    if cluster.get("networkingMode") == "ROUTES":
        yield Breach("networkingMode", "is ROUTES", "set it to VPC_NATIVE, and ipAllocationPolicy")
    elif cluster.standard and cluster.get("ipAllocationPolicy") is None and cluster.lacks("networkingMode"):
        yield Breach("ipAllocationPolicy", "is missing", "set it, as an empty object if GKE may choose the ranges")


def _network_policy(cluster: Resource, _: Settings) -> Iterator[Breach]:
    known = cluster.get("datapathProvider") is not UNKNOWN and cluster.flag("networkPolicy.enabled") is not UNKNOWN
    enforced = cluster.get("datapathProvider") == "ADVANCED_DATAPATH" or cluster.is_on("networkPolicy.enabled")
    if cluster.standard and known and not enforced:
        yield Breach(
            "datapathProvider",
            "is not ADVANCED_DATAPATH and networkPolicy is off, so NetworkPolicy objects have no effect",
            "set datapathProvider to ADVANCED_DATAPATH",
        )


def _secrets_cmek(cluster: Resource, _: Settings) -> Iterator[Breach]:
    state = cluster.get("databaseEncryption.state")
    if state is not UNKNOWN and (state != "ENCRYPTED" or cluster.lacks("databaseEncryption.keyName")):
        yield Breach(
            "databaseEncryption",
            "names no key of Cloud KMS",
            "set state to ENCRYPTED and keyName to projects/P/locations/REGION/keyRings/R/cryptoKeys/K",
        )


def _binary_authorization(cluster: Resource, _: Settings) -> Iterator[Breach]:
    mode = cluster.get("binaryAuthorization.evaluationMode")
    if mode is not UNKNOWN and mode in (None, "", "DISABLED") and not cluster.is_on("binaryAuthorization.enabled"):
        yield Breach(
            "binaryAuthorization.evaluationMode",
            "is not set, so any image may run",
            "set it to PROJECT_SINGLETON_POLICY_ENFORCE",
        )


def _default_pool(cluster: Resource, _: Settings) -> Iterator[Breach]:
    if cluster.standard and cluster.is_off("removeDefaultNodePool") and cluster.get("nodePools") is None:
        yield Breach(
            "removeDefaultNodePool",
            "is not true, so a pool exists that cannot be changed without replacing the cluster",
            "set it to true, with initialNodeCount 1, and declare node pools",
        )


def _autopilot_nodes(cluster: Resource, _: Settings) -> Iterator[Breach]:
    for key in ("nodeConfig", "nodePools", "nodeVersion"):
        if cluster.autopilot and not cluster.lacks(key):
            yield Breach(key, "is set on an Autopilot cluster, which every update would then replace", "remove it")


def _insecure_bindings(cluster: Resource, _: Settings) -> Iterator[Breach]:
    for who in ("Authenticated", "Unauthenticated"):
        path = f"rbacBindingConfig.enableInsecureBindingSystem{who}"
        if cluster.is_on(path):
            yield Breach(path, f"is true: roles may be given to system:{who.lower()}", "set it to false")


_rule: Final = partial(ResourceRule, group="GKE cluster", types=(CLUSTER,))

RULES: Final = (
    _rule(
        name="gke-workload-identity",
        asks="Workloads must use Workload Identity.",
        cis="5.2.2",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/workload-identity",
        check=prohibit(
            standard(lacks),
            "workloadIdentityConfig.workloadPool",
            "is missing, so pods act as the node's service account",
            "set it to PROJECT.svc.id.goog",
        ),
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    _rule(
        name="gke-shielded-nodes",
        asks="Nodes must be Shielded GKE Nodes.",
        cis="5.5.5",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/shielded-gke-nodes",
        check=prohibit(standard(is_false), "enableShieldedNodes", "is false", "set it to true, or leave it out"),
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    _rule(
        name="gke-intranode-visibility",
        asks="Traffic between pods of one node must be visible to the VPC.",
        cis="5.6.1",
        source=f"{_GKE}/how-to/intranode-visibility",
        check=prohibit(
            standard(is_off),
            "enableIntranodeVisibility",
            "is not true, so VPC flow logs and firewalls do not see traffic between pods of one node",
            "set it to true",
        ),
        remedy=put("enableIntranodeVisibility", True),
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    _rule(
        name="gke-vpc-native",
        asks="Clusters must be VPC-native.",
        cis="5.6.2",
        source=f"{_GKE}/concepts/alias-ips",
        check=_vpc_native,
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    _rule(
        name="gke-network-policy",
        asks="Clusters must enforce NetworkPolicy.",
        cis="4.3.1",
        source=f"{_GKE}/concepts/dataplane-v2",
        check=_network_policy,
        exemption=_autopilot_has_it,
        exempts=_NOT_AUTOPILOT,
    ),
    _rule(
        name="gke-no-client-certificate",
        asks="Client certificates must not be issued.",
        cis="5.8.1",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/api-server-authentication",
        check=prohibit(
            is_on,
            "masterAuth.clientCertificateConfig.issueClientCertificate",
            "is true, and such a certificate cannot be revoked",
            "set it to false",
        ),
    ),
    _rule(
        name="gke-groups-rbac",
        asks="RBAC must be able to name Google Groups.",
        cis="5.8.2",
        level=ADVISORY,
        source=f"{_GKE}/how-to/google-groups-rbac",
        check=prohibit(
            lacks,
            "authenticatorGroupsConfig.securityGroup",
            "is missing, so RBAC can name single users only",
            "set it to gke-security-groups@YOUR-DOMAIN",
        ),
    ),
    _rule(
        name="gke-no-legacy-abac",
        asks="Legacy authorization must be off.",
        cis="5.8.3",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/hardening-your-cluster",
        check=prohibit(is_on, "enableLegacyAbac", "is true", "remove it, so that RBAC alone decides"),
        remedy=put("enableLegacyAbac", False),
    ),
    _rule(
        name="gke-no-insecure-bindings",
        asks="Roles must not be given to all who can reach the cluster.",
        severity=Severity.HIGH,
        source="https://cloud.google.com/kubernetes-engine/docs/best-practices/rbac#default-roles-groups",
        check=_insecure_bindings,
    ),
    _rule(
        name="gke-secrets-cmek",
        asks="Secrets must be encrypted with a key of Cloud KMS.",
        cis="5.3.1",
        level=ADVISORY,
        source=f"{_GKE}/how-to/encrypting-secrets",
        check=_secrets_cmek,
    ),
    _rule(
        name="gke-binary-authorization",
        asks="Only authorized images must run.",
        cis="5.10.4",
        level=ADVISORY,
        source="https://cloud.google.com/binary-authorization/docs/overview",
        check=_binary_authorization,
    ),
    _rule(
        name="gke-no-alpha",
        asks="Clusters must not have alpha features of Kubernetes.",
        cis="5.10.2",
        severity=Severity.HIGH,
        source=f"{_GKE}/concepts/alpha-clusters",
        check=prohibit(is_on, "enableKubernetesAlpha", "is true; such a cluster is deleted after 30 days", "remove it"),
    ),
    _rule(
        name="gke-separate-node-pools",
        asks="Node pools must be resources of their own.",
        source="https://www.pulumi.com/registry/packages/gcp/api-docs/container/cluster/",
        check=_default_pool,
        exemption=_autopilot_has_it,
        exempts="Autopilot clusters, which have no node pools to declare",
    ),
    _rule(
        name="gke-autopilot-without-nodes",
        asks="Autopilot clusters must not describe nodes.",
        source="https://github.com/pulumi/pulumi-gcp/issues/2247",
        check=_autopilot_nodes,
    ),
)
"""The rules of this module."""
