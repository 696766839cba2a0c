"""The settings of a GKE cluster, and those that all nodes share, as plain data.

The settings are those that the CIS GKE Benchmark asks for (1.9, the numbers stand beside them), unless the entry says
otherwise. What a cluster can only have with an input of its owner, such as a key, is left out without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file import ClusterEntry
from kueue_fleet.fleet_file.model.cluster_properties import ROWS
from kueue_fleet.fleet_file.model.property_rows import properties_of, set_at
from kueue_fleet.google.node_pools import (
    CLOUD_PLATFORM_SCOPE,
    IMAGE_TYPE,
    NO_READONLY_PORT,
    READONLY_PORT,
    node_security,
)
from kueue_fleet.google.resource import CloudResource, workload_pool
from kueue_fleet.google.resource_types import CLUSTER

_MONITORED = ["SYSTEM_COMPONENTS", "STORAGE", "POD", "JOBSET", "KUBELET", "CADVISOR", "DCGM"]
_LOGGED = ["SYSTEM_COMPONENTS", "WORKLOADS"]


@dataclass(frozen=True)
class Access:
    """How the API server of a cluster is reached; the fields are those of `ControlPlaneAccess`."""

    dns: bool = True
    networks: Mapping[str, Any] = field(default_factory=dict)
    kubernetes_tokens: bool = False

    def properties(self) -> dict[str, Any]:
        """The cluster's properties (5.6.3, 5.6.4, 5.6.5); nodes are private either way.

        Both kinds of endpoint are always said: what is left out stays as it was before.
        """
        endpoints = {
            "controlPlaneEndpointsConfig": {
                "dnsEndpointConfig": {
                    "allowExternalTraffic": self.dns,
                    "enableK8sTokensViaDns": self.dns and self.kubernetes_tokens,
                    "enableK8sCertsViaDns": False,
                },
                "ipEndpointsConfig": {"enabled": not self.dns},
            }
        }
        if self.dns:
            return {"privateClusterConfig": {"enablePrivateNodes": True}, **endpoints}
        return {
            **endpoints,
            # The manager reaches its workers in other regions by their private addresses.
            "privateClusterConfig": {
                "enablePrivateNodes": True,
                "enablePrivateEndpoint": False,
                "masterGlobalAccessConfig": {"enabled": True},
            },
            "masterAuthorizedNetworksConfig": {
                "cidrBlocks": [{"displayName": name, "cidrBlock": range_} for name, range_ in self.networks.items()],
                "gcpPublicCidrsAccessEnabled": False,
                "privateEndpointEnforcementEnabled": True,
            },
        }


def cluster(
    name: str,
    spec: ClusterEntry,
    *,
    project: Any,
    network: Any,
    subnetwork: Any,
    access: Access,
    pod_range_name: Any | None,
    service_range_name: Any | None,
    node_service_account: Any,
    managed_prometheus: bool,
    deletion_protection: bool,
    labels: Mapping[str, Any],
    needs: tuple[str, ...] = (),
) -> CloudResource:
    """The cluster; for the arguments see `GkeCluster`."""
    # VPC-native (5.6.2); a range without a name is GKE's choice.
    ranges = {"clusterSecondaryRangeName": pod_range_name, "servicesSecondaryRangeName": service_range_name}
    properties: dict[str, Any] = {
        "name": spec.name,
        "location": spec.region,
        "project": project,
        "network": network,
        "subnetwork": subnetwork,
        "ipAllocationPolicy": {key: range_name for key, range_name in ranges.items() if range_name is not None},
        **access.properties(),
        "resourceLabels": {
            "managed-by": PRODUCT,
            "kueue-fleet-role": spec.role,
            **labels,
            # The policies let a cluster go unprotected only where it says that it may go.
            **({} if deletion_protection else {"disposable": "true"}),
        },
        "deletionProtection": deletion_protection,
        "loggingConfig": {"enableComponents": _LOGGED},
        "monitoringConfig": {
            "enableComponents": _MONITORED,
            "managedPrometheus": {"enabled": managed_prometheus or spec.mode == "Autopilot"},
        },
        "masterAuth": {"clientCertificateConfig": {"issueClientCertificate": False}},
        "enableLegacyAbac": False,
        "securityPostureConfig": {"mode": "BASIC", "vulnerabilityMode": "VULNERABILITY_DISABLED"},
        **properties_of(ROWS, spec),
    }
    if spec.mode == "Autopilot" or spec.node_auto_provisioning:
        properties["nodePoolAutoConfig"] = {"nodeKubeletConfig": {READONLY_PORT: NO_READONLY_PORT}}
    if spec.fleet_membership:
        properties["fleet"] = {"project": project}
    if spec.mode == "Autopilot":
        properties |= _autopilot(spec, node_service_account)
    else:
        properties |= _standard(spec, node_service_account, workload_pool(project))
        set_at(properties, f"nodePoolDefaults.nodeConfigDefaults.{READONLY_PORT}", NO_READONLY_PORT)
    # The pool that two of these described is gone once the cluster stands. Where its owner chose Cloud DNS, that stays:
    # to turn it off, the provider would ask Google for nothing (terraform-provider-google, expandDnsConfig).
    ignored_fields = () if spec.mode == "Autopilot" else ("dnsConfig", "initialNodeCount", "nodeConfig")
    return CloudResource(CLUSTER, name, properties, needs, protect=deletion_protection, ignore_changes=ignored_fields)


def _autopilot(spec: ClusterEntry, node_service_account: Any) -> dict[str, Any]:
    """What only an Autopilot cluster takes.

    No nodeConfig: the provider would replace the cluster on every update. No workloadIdentityConfig and no
    enableShieldedNodes: Autopilot has both, and the provider refuses them beside enableAutopilot.
    """
    defaults: dict[str, Any] = {"serviceAccount": node_service_account, "oauthScopes": [CLOUD_PLATFORM_SCOPE]}
    if spec.disk_encryption_key:
        defaults["bootDiskKmsKey"] = spec.disk_encryption_key
    return {"enableAutopilot": True, "clusterAutoscaling": {"autoProvisioningDefaults": defaults}}


def _standard(spec: ClusterEntry, node_service_account: Any, workload_pool: Any) -> dict[str, Any]:
    """What only a Standard cluster takes; its default pool lives for minutes and still needs an account."""
    return {
        "removeDefaultNodePool": True,
        "initialNodeCount": 1,
        "nodeConfig": node_security(node_service_account, spec.disk_encryption_key),
        "workloadIdentityConfig": {"workloadPool": workload_pool},
        "enableShieldedNodes": True,
        "datapathProvider": "ADVANCED_DATAPATH",
        "enableIntranodeVisibility": True,
        "clusterAutoscaling": _auto_provisioning(spec, node_service_account),
    }


def _auto_provisioning(spec: ClusterEntry, node_service_account: Any) -> dict[str, Any]:
    """Node auto-provisioning: off, or on within its limits, with nodes that are set up like those of the pools."""
    provisioning = spec.node_auto_provisioning
    if provisioning is None:
        return {"enabled": False, "autoscalingProfile": "OPTIMIZE_UTILIZATION"}
    defaults = {
        "serviceAccount": node_service_account,
        "oauthScopes": [CLOUD_PLATFORM_SCOPE],
        "imageType": IMAGE_TYPE,
        "diskType": "pd-balanced",
        "diskSize": 100,
        "management": {"autoRepair": True, "autoUpgrade": True},
        "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0},
        "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
    }
    if spec.disk_encryption_key:
        defaults["bootDiskKmsKey"] = spec.disk_encryption_key
    zones: Sequence[str] = provisioning.zones or spec.node_locations
    return {
        "enabled": True,
        "autoscalingProfile": provisioning.autoscaling_profile,
        "resourceLimits": [
            {"resourceType": limit.resource_type, "minimum": limit.minimum, "maximum": limit.maximum}
            for limit in provisioning.resource_limits
        ],
        "autoProvisioningDefaults": defaults,
        **({"autoProvisioningLocations": list(zones)} if zones else {}),
    }
