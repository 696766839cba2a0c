"""Policies for GKE and Kueue, for this project's pack and for packs of your own.

    from kueue_fleet_policies import policies
    PolicyPack(name="ours", policies=[*policies(), *our_policies])

`policies()` makes all of them, or those named; `RULES` describes them. A rule looks at the resources of pulumi-gcp and
pulumi-kubernetes, whatever program declares them. It never depends on a value that a preview does not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pulumi_policy import Policy

from kueue_admission.kernel.names import PRODUCT
from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet_policies import (
    gcp_iam,
    gcp_network,
    gke_auto_provisioning,
    gke_cluster,
    gke_endpoint,
    gke_nodes,
    gke_operations,
    kubernetes_access,
    kubernetes_objects,
    kubernetes_pods,
    kueue_flavors,
    kueue_queues,
    node_pools,
    protection,
    secrets,
    spend,
)
from kueue_fleet_policies.inputs import SeenInputs, remember_inputs
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rule import Breach, ResourceRule, Rule, Settings, StackRule

PACK_NAME: Final = PRODUCT
"""Name of the policy pack."""

RULES: Final[tuple[ResourceRule | StackRule, ...]] = (
    *gke_cluster.RULES,
    *gke_endpoint.RULES,
    *gke_nodes.RULES,
    *gke_auto_provisioning.RULES,
    *gke_operations.RULES,
    *node_pools.RULES,
    *gcp_network.RULES,
    *gcp_iam.RULES,
    *protection.RULES,
    *secrets.RULES,
    *kubernetes_access.RULES,
    *kubernetes_pods.RULES,
    *kubernetes_objects.RULES,
    *kueue_queues.RULES,
    *kueue_flavors.RULES,
    *spend.RULES,
)
"""Every rule of the pack, in the order of the table in its README."""


def policies(names: Iterable[str] | None = None) -> list[Policy]:
    """The rules as policies: all of them, or those with these names or of these groups.

    Rules about several resources need what the policy `remember-inputs` sees, which is then among them.

    Raises:
        ValueError: there is no rule and no group of such a name.
    """
    enabled = None if names is None else set(names)
    unknown = (enabled or set()) - {rule.name for rule in RULES} - {rule.group for rule in RULES}
    if unknown:
        raise ValueError(f"no rule and no group is called {', '.join(sorted(unknown))}")
    chosen = [rule for rule in RULES if enabled is None or rule.name in enabled or rule.group in enabled]
    seen_inputs: SeenInputs = {}
    remembering = [remember_inputs(seen_inputs)] if any(isinstance(rule, StackRule) for rule in chosen) else []
    return [
        *remembering,
        *(rule.policy(seen_inputs) if isinstance(rule, StackRule) else rule.policy() for rule in chosen),
    ]


__all__ = [
    "PACK_NAME",
    "RULES",
    "UNKNOWN",
    "Breach",
    "Resource",
    "ResourceRule",
    "Rule",
    "Settings",
    "StackRule",
    "policies",
]
