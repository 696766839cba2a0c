"""A GKE cluster as gcloud describes it: its fields in a fleet file, and its properties as Pulumi names them.

The description is the output of `gcloud container clusters describe`, with node pools. Whether a property means the
same under both names is decided by `_MOVED` and `_POOL_MOVED`; others have the same name, also in `networkConfig`.
Values are as GKE's API has them: what is false, zero or empty is not there. So is what has another form than GKE gives
it.

Source: https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kueue_admission.kernel.problem import Problem
from kueue_fleet.adopt.live_objects import Data, Object
from kueue_fleet.fleet_file.model.cluster_properties import cluster_fields as read_back
from kueue_fleet.fleet_file.model.property_rows import number_of, property_at
from kueue_fleet.fleet_file.rules.commands import IMPORT_FORM
from kueue_fleet.gke.zones import region_at
from kueue_fleet.google.node_pools import READONLY_PORT
from kueue_fleet.google.provider_facts import load_facts
from kueue_fleet.google.resource_types import CLUSTER

FIX: Final = "give the output of `gcloud container clusters describe CLUSTER --region REGION --format yaml`"
"""What to do about a file that is not such a description."""
_MOVED: Final = {
    "enableAutopilot": "autopilot.enabled",
    "enableLegacyAbac": "legacyAbac.enabled",
    "enableShieldedNodes": "shieldedNodes.enabled",
    "defaultMaxPodsPerNode": "defaultMaxPodsConstraint.maxPodsPerNode",
    "network": "networkConfig.network",
    "nodeLocations": "locations",
    "subnetwork": "networkConfig.subnetwork",
    "dataplaneOptimizationMode": "networkConfig.dataplaneV2Config.scalabilityMode",
    "allowNetAdmin": "autopilot.workloadPolicyConfig.allowNetAdmin",
    "autopilotPrivilegedAdmissions": "autopilot.privilegedAdmissionConfig.allowlistPaths",
    "clusterAutoscaling": "autoscaling",
    "clusterAutoscaling.defaultComputeClassEnabled": "autoscaling.defaultComputeClassConfig.enabled",
    "clusterAutoscaling.enabled": "autoscaling.enableNodeAutoprovisioning",
    "clusterAutoscaling.autoProvisioningDefaults": "autoscaling.autoprovisioningNodePoolDefaults",
    "clusterAutoscaling.autoProvisioningDefaults.diskSize": "autoscaling.autoprovisioningNodePoolDefaults.diskSizeGb",
    "clusterAutoscaling.autoProvisioningLocations": "autoscaling.autoprovisioningLocations",
    "loggingConfig.enableComponents": "loggingConfig.componentConfig.enableComponents",
    "maintenancePolicy": "maintenancePolicy.window",
    "maintenancePolicy.recurringWindow.startTime": "maintenancePolicy.window.recurringWindow.window.startTime",
    "maintenancePolicy.recurringWindow.endTime": "maintenancePolicy.window.recurringWindow.window.endTime",
    "monitoringConfig.enableComponents": "monitoringConfig.componentConfig.enableComponents",
    "monitoringConfig.managedPrometheus": "monitoringConfig.managedPrometheusConfig",
    "nodePoolDefaults.nodeConfigDefaults.insecureKubeletReadonlyPortEnabled": (
        "nodePoolDefaults.nodeConfigDefaults.nodeKubeletConfig.insecureKubeletReadonlyPortEnabled"
    ),
    "privateClusterConfig.enablePrivateNodes": "networkConfig.defaultEnablePrivateNodes",
    "privateClusterConfig.masterGlobalAccessConfig.enabled": (
        "controlPlaneEndpointsConfig.ipEndpointsConfig.globalAccess"
    ),
    "privateClusterConfig.privateEndpointSubnetwork": (
        "controlPlaneEndpointsConfig.ipEndpointsConfig.privateEndpointSubnetwork"
    ),
}
"""Properties of pulumi-gcp's Cluster that GKE's API has under another name; a parent comes before its children.

Those that are in `networkConfig` under their own name are not here: the provider's facts have all names.
"""
_SCALE_OPTIMIZED: Final = "SCALE_OPTIMIZED"
"""The one value of `dataplaneOptimizationMode`; GKE's API has others for none."""
_POOL_MOVED: Final = {
    "maxPodsPerNode": "maxPodsConstraint.maxPodsPerNode",
    "nodeConfig": "config",
    "nodeLocations": "locations",
}
"""The same of NodePool."""


def description_problems(cluster: str, description: object) -> list[Problem]:
    """What is wrong with the description of a cluster."""
    path = f"clusters[{cluster}]"
    if not isinstance(description, Mapping) or not {"name", "location", "networkConfig"} <= set(description):
        return [IMPORT_FORM.at(path, "is not described by a map with name, location and networkConfig", FIX)]
    if not isinstance(description.get("nodePools") or [], list):
        return [IMPORT_FORM.at(f"{path}.nodePools", "is not a list of node pools", FIX)]
    if not isinstance(description["location"], str):
        return [IMPORT_FORM.at(f"{path}.location", "is not a region or zone", FIX)]
    if description["name"] != cluster:
        return [
            IMPORT_FORM.at(
                path, f"is described as {description['name']}", "write the name of the cluster that it describes"
            )
        ]
    return []


def zone_of(description: Object | None) -> str:
    """The zone of a zonal cluster; "" for a regional one."""
    location = str((description or {}).get("location", ""))
    return "" if region_at(location) == location else location


def mode_of(description: Object) -> str:
    """Who manages the nodes."""
    return "Autopilot" if property_at(description, "autopilot.enabled") else "Standard"


def project_of(description: Object) -> str:
    """The project that a cluster is in; "" where the description does not say it."""
    return str(description.get("selfLink", "")).partition("/projects/")[2].partition("/")[0]


def cluster_fields(description: Object) -> Data:
    """The fields of a cluster's entry, mode and name aside, as far as the description has them."""
    mode = mode_of(description)
    fields: Data = {
        **read_back(cluster_state(description), mode),
        "diskEncryptionKey": _of_nodes(description, "bootDiskKmsKey"),
        "nodeServiceAccount": _of_nodes(description, "serviceAccount"),
        "fleetMembership": bool(description.get("fleet")),
    }
    if not str(fields["nodeServiceAccount"]).endswith(".iam.gserviceaccount.com"):
        # The project's default account, which is an Editor.
        del fields["nodeServiceAccount"]
    if mode == "Standard":
        fields["nodeAutoProvisioning"] = _auto_provisioning(_block(description, "autoscaling"))
    return {name: value for name, value in fields.items() if value is not None}


def _of_nodes(description: Object, name: str) -> Any:
    """What all node pools have, or what nodes of an Autopilot cluster get; None if they differ."""
    if mode_of(description) == "Autopilot":
        return property_at(description, f"autoscaling.autoprovisioningNodePoolDefaults.{name}")
    values = {str(property_at(pool, f"config.{name}") or "") for pool in description.get("nodePools") or ()}
    return values.pop() or None if len(values) == 1 else None


def _auto_provisioning(scaling: Object) -> Data | None:
    if not scaling.get("enableNodeAutoprovisioning"):
        return None
    zones = scaling.get("autoprovisioningLocations")
    return {
        "resourceLimits": [
            {name: value if name == "resourceType" else number_of(value) for name, value in limit.items()}
            for limit in _blocks(scaling, "resourceLimits")
        ],
        **({"zones": zones} if zones else {}),
        "autoscalingProfile": scaling.get("autoscalingProfile", "BALANCED"),
    }


def streams_images(description: Object) -> bool:
    """Whether a node pool of its owner has image streaming, which a fleet file has for all pools of a cluster."""
    return any(property_at(pool, "config.gcfsConfig.enabled") for pool in description.get("nodePools") or ())


def collects_metrics(description: Object) -> bool:
    """Whether Google's collectors run, which Autopilot always has."""
    return bool(property_at(description, "monitoringConfig.managedPrometheusConfig.enabled"))


def network_fields(descriptions: Mapping[str, Object], project: str) -> tuple[Data, dict[str, str]]:
    """The section `network`: the network of the first cluster, and the subnet of the first of each region.

    Also: clusters that the section does not describe, with the reason.
    """
    elsewhere: dict[str, str] = {}
    subnets: Data = {}
    network = ""
    for cluster, description in descriptions.items():
        own, subnet = (str(property_at(description, f"networkConfig.{name}")) for name in ("network", "subnetwork"))
        network = network or own
        ranges = _block(description, "ipAllocationPolicy")
        entry = {
            "name": subnet.rpartition("/")[2],
            "podRangeName": ranges.get("clusterSecondaryRangeName"),
            "serviceRangeName": ranges.get("servicesSecondaryRangeName"),
        }
        if own != network:
            elsewhere[cluster] = f"it is in the network {own.rpartition('/')[2]}, others are in another one"
        elif subnets.setdefault(region_at(description["location"]), entry) != entry:
            elsewhere[cluster] = f"it is in the subnet {entry['name']} with ranges of its own, another cluster is not"
    host = network.removeprefix("projects/").partition("/")[0]
    existing: Data = {"project": host} if host != project else {}
    existing |= {
        "name": network.rpartition("/")[2],
        "subnets": {region: {key: name for key, name in subnet.items() if name} for region, subnet in subnets.items()},
    }
    return {"existing": existing, **_access(descriptions.values())}, elsewhere


def _access(descriptions: Iterable[Object]) -> Data:
    """By DNS name where one cluster has it open, else by address."""
    authorized_networks: dict[str, str] = {}
    for description in descriptions:
        if property_at(description, "controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic"):
            return {}
        for block in _blocks(description, "masterAuthorizedNetworksConfig.cidrBlocks"):
            cidr = str(block.get("cidrBlock"))
            authorized_networks.setdefault(cidr, block.get("displayName") or cidr)
    networks = [{"name": name, "cidr": cidr} for cidr, name in authorized_networks.items()]
    return {"controlPlaneAccess": "AuthorizedNetworks", "authorizedNetworks": networks}


def cluster_state(description: Object) -> Data:
    """Properties of pulumi-gcp's Cluster, as far as the description has them."""
    state = {**_of_network(description), **_renamed(description, _MOVED)}
    window = _block(state, "maintenancePolicy")
    if "maintenanceExclusions" in window:
        window["maintenanceExclusions"] = [
            {
                "exclusionName": name,
                **{key: end for key in ("startTime", "endTime") if (end := property_at(value, key)) is not None},
                "exclusionOptions": _block(value, "maintenanceExclusionOptions"),
            }
            for name, value in _block(window, "maintenanceExclusions").items()
        ]
    # The provider has this block for every cluster.
    state["privateClusterConfig"] = _block(state, "privateClusterConfig")
    addresses = property_at(description, "controlPlaneEndpointsConfig.ipEndpointsConfig")
    if isinstance(addresses, Mapping):
        state["privateClusterConfig"]["enablePrivateEndpoint"] = not addresses.get("enablePublicEndpoint")
    if not property_at(description, "masterAuthorizedNetworksConfig.enabled"):
        state.pop("masterAuthorizedNetworksConfig", None)
    if state.get("dataplaneOptimizationMode") != _SCALE_OPTIMIZED:
        state.pop("dataplaneOptimizationMode", None)
    return state


def _of_network(description: Object) -> Data:
    """The provider's properties of a cluster that GKE's API has in `networkConfig`, where capitals may differ."""
    names = {name.lower(): name for name, fact in load_facts().properties(CLUSTER).items() if fact.is_input}
    given = _block(description, "networkConfig").items()
    properties: Data = _copied({names[key.lower()]: value for key, value in given if key.lower() in names})
    return properties


def pool_state(pool: Object) -> Data:
    """Properties of pulumi-gcp's NodePool, as far as the description has them."""
    state = _renamed(pool, _POOL_MOVED)
    config = _block(state, "nodeConfig")
    if "accelerators" in config:
        names = {"acceleratorType": "type", "acceleratorCount": "count"}
        config["guestAccelerators"] = [
            {names.get(key, key): number_of(value) if key in names else value for key, value in block.items()}
            for block in _blocks(config, "accelerators")
        ]
        del config["accelerators"]
    if not property_at(pool, "autoscaling.enabled"):
        state.pop("autoscaling", None)
    return state


def _renamed(data: Object, new_names: Mapping[str, str]) -> Data:
    state: Data = _copied(data)
    for target, source in new_names.items():
        value = property_at(data, source)
        if value is None:
            continue
        *parents, last = target.split(".")
        block = state
        for parent in parents:
            inner = _block(block, parent)
            block[parent] = inner
            block = inner
        block[last] = _copied({last: value})[last]
    return state


def _copied(value: Any) -> Any:
    """A copy, in which a port that the provider has as text is text, without what GKE says is not specified."""
    if isinstance(value, Mapping):
        return {
            key: str(item).upper() if key == READONLY_PORT and isinstance(item, bool) else _copied(item)
            for key, item in value.items()
            if not (isinstance(item, str) and item.endswith("_UNSPECIFIED"))
        }
    return [_copied(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def _block(value: Any, path: str) -> Data:
    """The map at a path; empty where there is none."""
    block = property_at(value, path)
    return block if isinstance(block, dict) else {}


def _blocks(value: Any, path: str) -> list[Data]:
    """The maps in a list."""
    blocks = property_at(value, path)
    return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
