"""A fleet as `import` finds it once it is applied: objects, Kueue's Configuration and node pools of each cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import yaml

from kueue_fleet.adopt import AdoptedCluster
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, resolve_pool, system_pool_entry
from kueue_fleet.gke.zones import default_zones
from kueue_fleet.google.node_pools import CLOUD_PLATFORM_SCOPE, node_pool_properties
from kueue_fleet.objects import render_cluster
from kueue_fleet.objects.cluster_profiles import kueue_patches

Object = dict[str, Any]
NODES = "gpu-nodes@lab-project.iam.gserviceaccount.com"
"""The Google service account of nodes."""


def existing_platform(fleet: FleetSpec, *, pools: bool = True) -> list[AdoptedCluster]:
    """All clusters of the fleet; without `pools`, those of job clusters are not given."""
    return [existing_cluster(fleet, name, pools=pools) for name in fleet.cluster_names]


def existing_cluster(fleet: FleetSpec, name: str, *, pools: bool = True) -> AdoptedCluster:
    """One cluster of the fleet."""
    entry = fleet.cluster(name)
    result: list[Object] = []
    if entry.mode == "Standard":
        declared = [resolve_pool(system_pool_entry(entry), entry), *(fleet.node_pools_on(name) if pools else ())]
        result = [printed_pool(pool) for pool in declared]
    objects = [*render_cluster(fleet, name), *kueue_objects(fleet, name)]
    return AdoptedCluster(name, entry.region, objects, result, entry.mode)


def described_cluster(fleet: FleetSpec, name: str) -> AdoptedCluster:
    """The same with the cluster as `gcloud container clusters describe --format yaml` prints it."""
    result = existing_cluster(fleet, name)
    for pool in result.node_pools:
        pool["config"]["gcfsConfig"] = {"enabled": True}
    printed = printed_cluster(result, fleet.project)
    place = f"projects/{fleet.project_of(name)}/locations/{result.region}"
    printed["selfLink"] = f"https://container.googleapis.com/v1/{place}/clusters/{name}"
    if fleet.cluster(name).role == "worker":
        printed["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["enableK8sTokensViaDns"] = True
    return replace(result, description=printed)


def printed_cluster(cluster: AdoptedCluster, project: str) -> Object:
    """A cluster that is set up as a fleet's are, in a network of its owner: GKE's names, what is false left out.

    Source: https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.
    """
    standard = cluster.mode == "Standard"
    region, nodes = cluster.region, {"serviceAccount": NODES, "oauthScopes": [CLOUD_PLATFORM_SCOPE]}
    components = ["SYSTEM_COMPONENTS", "STORAGE", "POD", "JOBSET", "KUBELET", "CADVISOR", "DCGM"]
    drivers = ("gcePersistentDiskCsiDriverConfig", "gcpFilestoreCsiDriverConfig", "gcsFuseCsiDriverConfig")
    own: Object = {
        "addonsConfig": {driver: {"enabled": True} for driver in drivers},
        "autoscaling": {"autoscalingProfile": "OPTIMIZE_UTILIZATION"},
        "nodePoolDefaults": {
            "nodeConfigDefaults": {"gcfsConfig": {"enabled": True}, "nodeKubeletConfig": {_READONLY_PORT: False}}
        },
        "nodePools": list(cluster.node_pools),
        "workloadIdentityConfig": {"workloadPool": f"{project}.svc.id.goog"},
    }
    of_autopilot: Object = {
        "autopilot": {"enabled": True},
        "autoscaling": {"enableNodeAutoprovisioning": True, "autoprovisioningNodePoolDefaults": nodes},
        "nodePoolAutoConfig": {"nodeKubeletConfig": {_READONLY_PORT: False}},
        "nodePools": [{"name": "default-pool", "config": {**nodes, "machineType": "e2-small"}}],
    }
    return {
        "name": cluster.name,
        "location": region,
        "locations": list(default_zones(region)),
        "initialNodeCount": 3,
        "network": "theirs",
        "networkConfig": {
            "network": f"projects/{project}/global/networks/theirs",
            "subnetwork": f"projects/{project}/regions/{region}/subnetworks/gpus",
            "datapathProvider": "ADVANCED_DATAPATH",
            "enableIntraNodeVisibility": True,
            "defaultSnatStatus": {},
        },
        "ipAllocationPolicy": {"useIpAliases": True, "clusterSecondaryRangeName": "pods", "stackType": "IPV4"},
        "binaryAuthorization": {"evaluationMode": "DISABLED"},
        "controlPlaneEndpointsConfig": {
            "dnsEndpointConfig": {"allowExternalTraffic": True, "endpoint": f"gke-1.{region}.gke.goog"},
            "ipEndpointsConfig": {},
        },
        "costManagementConfig": {"enabled": True},
        "databaseEncryption": {"state": "DECRYPTED", "currentState": "CURRENT_STATE_DECRYPTED"},
        "fleet": {"project": project, "membership": f"//gkehub.googleapis.com/projects/{project}/memberships/m"},
        "legacyAbac": {},
        "loggingConfig": {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}},
        "maintenancePolicy": {
            "resourceVersion": "1",
            "window": {
                "recurringWindow": {
                    "window": {"startTime": "2026-01-03T00:00:00Z", "endTime": "2026-01-03T12:00:00Z"},
                    "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
                }
            },
        },
        "masterAuth": {"clientCertificateConfig": {}, "clusterCaCertificate": "Q0E="},
        "monitoringConfig": {
            "componentConfig": {"enableComponents": components},
            "managedPrometheusConfig": {"enabled": True},
        },
        "privateClusterConfig": {"enablePrivateNodes": True, "privateEndpoint": "10.0.0.2"},
        "releaseChannel": {"channel": "RAPID"},
        "resourceLabels": {"owner": "ml"},
        "securityPostureConfig": {"mode": "BASIC", "vulnerabilityMode": "VULNERABILITY_DISABLED"},
        "shieldedNodes": {"enabled": True},
        "status": "RUNNING",
        **(own if standard else of_autopilot),
    }


_READONLY_PORT = "insecureKubeletReadonlyPortEnabled"


def kueue_objects(fleet: FleetSpec, cluster: str) -> list[Object]:
    """What `import` reads of Kueue's installation on the cluster."""
    patches = kueue_patches(fleet) if cluster == fleet.home else []
    deployments: list[Object] = [dict(entry) for entry in patches if entry["kind"] == "Deployment"]
    for item in deployments:
        item["metadata"]["labels"] = {"app.kubernetes.io/name": "kueue"}
        item["spec"]["replicas"] = fleet.kueue.replicas
    return [configuration_map(fleet, cluster), *deployments]


def configuration_map(fleet: FleetSpec, cluster: str) -> Object:
    """Kueue's Configuration as its chart installs it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "kueue-manager-config",
            "namespace": fleet.kueue.namespace,
            "labels": {"app.kubernetes.io/version": f"v{fleet.kueue.version}"},
        },
        "data": {"controller_manager_config.yaml": yaml.safe_dump(kueue_configuration(fleet, cluster))},
    }


def printed_pool(pool: ResolvedNodePool) -> Object:
    """The pool as `gcloud container node-pools list --format yaml` prints it: GKE's names and defaults.

    Source: https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools.
    """
    declared = node_pool_properties(
        pool, service_account=NODES, disk_encryption_key=None, image_streaming=False, labels={}
    )
    config = declared.pop("nodeConfig")
    gpus = [
        {"acceleratorType": item["type"], "acceleratorCount": str(item["count"]), **_of_gpus(item)}
        for item in config.pop("guestAccelerators", ())
        if item["count"]
    ]
    if gpus:
        config["accelerators"] = gpus
    for field, value in list(config.items()):
        if value in ({}, []):
            del config[field]
    scaling = declared.pop("autoscaling", None)
    printed: Object = {
        "name": declared["name"],
        "config": config,
        "initialNodeCount": declared.get("nodeCount", declared.get("initialNodeCount", 0)),
        "locations": list(pool.node_locations),
        "management": {name: True for name, on in declared["management"].items() if on},
        "maxPodsConstraint": {"maxPodsPerNode": str(declared["maxPodsPerNode"])},
        "networkConfig": declared["networkConfig"],
        "upgradeSettings": _without_zeros(declared.get("upgradeSettings", {"strategy": "SHORT_LIVED"})),
        "status": "RUNNING",
        "version": "1.34.1-gke.1829001",
    }
    if scaling is not None:
        printed["autoscaling"] = {"enabled": True, **_without_zeros(scaling)}
    return printed | {name: declared[name] for name in ("placementPolicy", "queuedProvisioning") if name in declared}


def _of_gpus(accelerator: Object) -> Object:
    """All but type and count. GKE's API has whole numbers as text."""
    result = {name: value for name, value in accelerator.items() if name not in ("type", "count")}
    if sharing := result.get("gpuSharingConfig"):
        result["gpuSharingConfig"] = {**sharing, "maxSharedClientsPerGpu": str(sharing["maxSharedClientsPerGpu"])}
    return result


def _without_zeros(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value != 0}
