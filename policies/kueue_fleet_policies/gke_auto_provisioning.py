"""Rules about the nodes that node auto-provisioning makes.

Who these nodes run as is in `gke_nodes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from kueue_admission.forms.unknown import holds_unknown
from kueue_fleet_policies.gke_nodes import on_autopilot
from kueue_fleet_policies.resource import CLUSTER, Resource
from kueue_fleet_policies.rule import Breach, ResourceRule, Settings
from kueue_fleet_policies.values import entries, items

_GKE: Final = "https://cloud.google.com/kubernetes-engine/docs"


def _nap_integrity(cluster: Resource, _: Settings) -> Iterator[Breach]:
    if not cluster.standard or not cluster.is_on("clusterAutoscaling.enabled"):
        return
    for option in ("enableIntegrityMonitoring", "enableSecureBoot"):
        path = f"clusterAutoscaling.autoProvisioningDefaults.shieldedInstanceConfig.{option}"
        value = cluster.flag(path)
        if value is False or (value is None and option == "enableSecureBoot"):
            yield Breach(path, "is not true for auto-provisioned nodes", "set it to true")


def _nap_management(cluster: Resource, _: Settings) -> Iterator[Breach]:
    if not cluster.standard or not cluster.is_on("clusterAutoscaling.enabled"):
        return
    for option in ("autoRepair", "autoUpgrade"):
        path = f"clusterAutoscaling.autoProvisioningDefaults.management.{option}"
        if cluster.flag(path) is False:
            yield Breach(path, "is false for auto-provisioned nodes", "set it to true")


def _nap_limits(cluster: Resource, _: Settings) -> Iterator[Breach]:
    if not cluster.standard or not cluster.is_on("clusterAutoscaling.enabled"):
        return
    limits = cluster.get("clusterAutoscaling.resourceLimits")
    if holds_unknown(limits):
        return
    known = {entries(limit).get("resourceType") for limit in items(limits)}
    for needed in ("cpu", "memory"):
        if needed not in known:
            yield Breach(
                "clusterAutoscaling.resourceLimits",
                f"has no maximum of {needed}, without which GKE refuses node auto-provisioning",
                f"add {{resourceType: {needed}, maximum: ...}}",
            )


_rule: Final = partial(ResourceRule, group="GKE auto-provisioning", types=(CLUSTER,))

RULES: Final = (
    _rule(
        name="gke-auto-provisioning-shielded",
        asks="Auto-provisioned nodes must boot signed software only.",
        cis="5.5.7",
        source=f"{_GKE}/how-to/shielded-gke-nodes",
        check=_nap_integrity,
        exemption=on_autopilot,
        exempts="Autopilot clusters, whose nodes Google manages",
    ),
    _rule(
        name="gke-auto-provisioning-management",
        asks="Auto-provisioned nodes must be repaired and upgraded.",
        cis="5.5.3",
        source=f"{_GKE}/how-to/node-auto-provisioning",
        check=_nap_management,
        exemption=on_autopilot,
        exempts="Autopilot clusters, whose nodes Google manages",
    ),
    _rule(
        name="gke-auto-provisioning-limits",
        asks="Node auto-provisioning must have limits.",
        source=f"{_GKE}/how-to/node-auto-provisioning",
        check=_nap_limits,
        exemption=on_autopilot,
        exempts="Autopilot clusters, which the quotas of Kueue limit, see spend-quota",
    ),
)
"""The rules of this module."""
