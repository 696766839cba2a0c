"""Rules about the nodes that node auto-provisioning makes.

Who these nodes run as is in `gke_nodes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.unknown import holds_unknown
from kueue_fleet_policies.gke_nodes import on_autopilot
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import entries, items


def _nap_integrity(cluster: Resource, _: Settings) -> Iterator[Breach]:
    if not cluster.standard or not cluster.is_on("clusterAutoscaling.enabled"):
        return
    for option in ("enableIntegrityMonitoring", "enableSecureBoot"):
        path = f"clusterAutoscaling.autoProvisioningDefaults.shieldedInstanceConfig.{option}"
        value = cluster.flag(path)
        if value is False or (value is None and option == "enableSecureBoot"):
            yield Breach(path, "is not true for auto-provisioned nodes", "set it to true")


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


RULES: Final = rules_of(
    "GKE auto-provisioning",
    {
        "gke-auto-provisioning-shielded": _nap_integrity,
        "gke-auto-provisioning-limits": _nap_limits,
    },
    exemptions=dict.fromkeys(
        (
            "gke-auto-provisioning-shielded",
            "gke-auto-provisioning-management",
            "gke-auto-provisioning-limits",
        ),
        on_autopilot,
    ),
)
"""The rules of this module."""
