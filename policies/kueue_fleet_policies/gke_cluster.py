"""Rules about a GKE cluster as a whole: what the CIS benchmark asks of it.

What Autopilot has built in is not asked of an Autopilot cluster:
https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-security. The control plane's address is in
`gke_endpoint`, nodes are in `gke_nodes` and `gke_auto_provisioning`, versions and bills in `gke_operations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet_policies.gke_nodes import on_autopilot
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings


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


def _insecure_bindings(cluster: Resource, _: Settings) -> Iterator[Breach]:
    for who in ("Authenticated", "Unauthenticated"):
        path = f"rbacBindingConfig.enableInsecureBindingSystem{who}"
        if cluster.is_on(path):
            yield Breach(path, f"is true: roles may be given to system:{who.lower()}", "set it to false")


RULES: Final = rules_of(
    "GKE cluster",
    {
        "gke-vpc-native": _vpc_native,
        "gke-network-policy": _network_policy,
        "gke-no-insecure-bindings": _insecure_bindings,
        "gke-secrets-cmek": _secrets_cmek,
        "gke-binary-authorization": _binary_authorization,
        "gke-separate-node-pools": _default_pool,
    },
    exemptions=dict.fromkeys(
        (
            "gke-workload-identity",
            "gke-shielded-nodes",
            "gke-intranode-visibility",
            "gke-vpc-native",
            "gke-network-policy",
            "gke-separate-node-pools",
        ),
        on_autopilot,
    ),
)
"""The rules of this module."""
