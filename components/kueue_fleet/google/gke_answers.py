"""What GKE answers for clusters and node pools, where that is not what it was asked for.

Which zones a region has is a fact of `gke.zones`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

from kueue_fleet.gke.labels import GPU_TAINT, QUEUED_TAINT, NodeTaint
from kueue_fleet.gke.machines import MachineType, machine_type
from kueue_fleet.gke.zones import default_zones
from kueue_fleet.google.answers import ANSWERS, Properties, filled, google_defaults, number_of
from kueue_fleet.google.provider_facts import Fact, load_facts
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL

ALL_OBJECTS_SINCE: Final = (1, 35)
"""Kubernetes version from which GKE encrypts every object where secrets were to be encrypted, and says so."""
DNS_CACHE_SINCE: Final = (1, 34, 8)
"""Version from which NodeLocal DNSCache is on by default; recorded, and not below."""
DEFAULTS_SINCE: Final = (1, 33, 5)
"""Version from which GKE answers the defaults of pools that it makes also where it makes none; recorded."""
_EFFECTS: Final = {"NoSchedule": "NO_SCHEDULE"}


def cluster_answer(properties: Properties, control_plane: Mapping[str, Any]) -> Properties:
    """A cluster as GKE reports it; `control_plane` is what the rehearsal's supervisor started, or what a mock says."""
    project, location, name = (str(properties[key]) for key in ("project", "location", "name"))
    autopilot = properties.get("enableAutopilot") is True
    version = str(control_plane["version"])
    own = google_defaults("autopilotCluster" if autopilot else "standardCluster")
    dns_cache = {"addonsConfig": {"dnsCacheConfig": {"enabled": _is_since(version, DNS_CACHE_SINCE)}}}
    answered = filled(filled(filled(properties, own), dns_cache), google_defaults("cluster"))
    zones = list(properties.get("nodeLocations") or default_zones(location))
    answered |= {
        "addonsConfig": _addons(answered["addonsConfig"], autopilot=autopilot),
        "clusterIpv4Cidr": answered["ipAllocationPolicy"]["clusterIpv4CidrBlock"],
        "clusterAutoscaling": _autoscaling(answered["clusterAutoscaling"], zones, version, autopilot=autopilot),
        "controlPlaneEndpointsConfig": _endpoints(answered["controlPlaneEndpointsConfig"], control_plane),
        "databaseEncryption": _encryption(answered["databaseEncryption"], version),
        "endpoint": control_plane["endpoint"],
        "ipAllocationPolicy": _ranges(answered["ipAllocationPolicy"], name),
        "labelFingerprint": number_of(str(sorted((properties.get("resourceLabels") or {}).items()))),
        "masterAuth": _credentials(control_plane),
        "masterVersion": version,
        "network": _relative(properties.get("network") or "default", project, "global/networks"),
        "nodeLocations": zones,
        "nodeVersion": properties.get("nodeVersion") or version,
        "operation": "",
        "selfLink": control_plane["selfLink"],
        "servicesIpv4Cidr": answered["ipAllocationPolicy"]["servicesIpv4CidrBlock"],
        "subnetwork": _relative(properties.get("subnetwork") or "default", project, f"regions/{location}/subnetworks"),
        "workloadIdentityConfig": answered.get("workloadIdentityConfig")
        or ({"workloadPool": f"{project}.svc.id.goog"} if autopilot else None),
        **_labels(properties.get("resourceLabels") or {}),
    }
    answered["privateClusterConfig"] = _private(answered, control_plane.get("privateEndpoint", answered["endpoint"]))
    if "fleet" in answered:
        answered["fleet"] = {**answered["fleet"], **_membership(answered["fleet"], location, name)}
    if "maintenancePolicy" in answered:
        answered["maintenancePolicy"] = _maintenance(answered["maintenancePolicy"])
    if autopilot or properties.get("removeDefaultNodePool") is True:
        # The settings of the default node pool, which is not there.
        answered.pop("nodeConfig", None)
    return {key: value for key, value in answered.items() if value is not None}


def _relative(link: Any, project: str, kind: str) -> str:
    """A link as GKE reports it: without the API, with the project."""
    text = str(link)
    short = text.partition("/compute/v1/")[2] or text
    return short if short.startswith("projects/") else f"projects/{project}/{kind}/{short.rpartition('/')[2]}"


def _addons(addons: Properties, *, autopilot: bool) -> Properties:
    if autopilot:
        return {name: value for name, value in addons.items() if name not in ("dnsCacheConfig", "networkPolicyConfig")}
    return addons


def _autoscaling(scaling: Properties, zones: list[str], version: str, *, autopilot: bool) -> Properties:
    """Without auto-provisioning GKE reports the profile, and defaults of its own; on Autopilot always limits too."""
    profile = scaling.get("autoscalingProfile") or "BALANCED"
    answered = {"autoscalingProfile": profile, "defaultComputeClassEnabled": False, **scaling}
    if not autopilot and scaling.get("enabled") is not True:
        names = ("enabled", "autoscalingProfile", "defaultComputeClassEnabled")
        own = google_defaults("withoutAutoProvisioning") if _is_since(version, DEFAULTS_SINCE) else {}
        return {name: answered[name] for name in names if name in answered} | own
    answered = filled(answered, google_defaults("autoProvisioning"))
    if not autopilot and "autoProvisioningLocations" not in answered:
        answered["autoProvisioningLocations"] = zones
    if autopilot:
        own = google_defaults("autopilotCluster")["clusterAutoscaling"]
        defaults = {**answered["autoProvisioningDefaults"], **{k: own["autoProvisioningDefaults"][k] for k in _OWN}}
        answered |= {"autoscalingProfile": own["autoscalingProfile"], "autoProvisioningDefaults": defaults}
    return answered


_OWN: Final = ("diskSize", "diskType", "imageType")
"""What Autopilot decides of its nodes, whatever is said."""


def _endpoints(config: Properties, control_plane: Mapping[str, Any]) -> Properties:
    return {
        **config,
        "dnsEndpointConfig": {**config["dnsEndpointConfig"], "endpoint": control_plane.get("dnsEndpoint") or ""},
    }


def _encryption(config: Properties, version: str) -> Properties:
    is_encrypted = config["state"] == "ENCRYPTED" and _is_since(version, ALL_OBJECTS_SINCE)
    return {**config, "state": "ALL_OBJECTS_ENCRYPTION_ENABLED" if is_encrypted else config["state"]}


def _is_since(version: str, first: tuple[int, ...]) -> bool:
    """Whether a version such as v1.36.3-gke.1 is `first` or a newer one."""
    return tuple(map(int, re.findall(r"\d+", version)[: len(first)])) >= first


def _ranges(policy: Properties, cluster: str) -> Properties:
    """Secondary ranges that are not named are made by GKE, for pods always, for Services in its own range not."""
    return {"clusterSecondaryRangeName": _pod_range(cluster), "servicesSecondaryRangeName": "", **policy}


def _pod_range(cluster: str) -> str:
    """The name that GKE gives to a range of pods."""
    return f"gke-{cluster}-pods-{zlib.crc32(cluster.encode()):08x}"


def _credentials(control_plane: Mapping[str, Any]) -> Properties:
    return {
        "clientCertificate": "",
        "clientCertificateConfig": {"issueClientCertificate": False},
        "clientKey": "",
        "clusterCaCertificate": control_plane["caCertificate"],
    }


def _labels(labels: Mapping[str, str]) -> Properties:
    everything = {**labels, "goog-pulumi-provisioned": "true"}
    return {"effectiveLabels": everything, "pulumiLabels": everything}


def _private(cluster: Properties, endpoint: str) -> Properties:
    """The addresses; the endpoint is private where there is no public one, which is also so without IP endpoints."""
    private_config = cluster.get("privateClusterConfig") or {}
    addresses = cluster["controlPlaneEndpointsConfig"]["ipEndpointsConfig"].get("enabled") is not False
    answered = {
        "enablePrivateNodes": False,
        "masterGlobalAccessConfig": {"enabled": False},
        **private_config,
        "peeringName": "",
        "privateEndpoint": endpoint,
        "publicEndpoint": cluster["endpoint"],
    }
    private = private_config.get("enablePrivateEndpoint") is True or not addresses
    return {**answered, "enablePrivateEndpoint": private}


def _membership(fleet: Mapping[str, Any], location: str, name: str) -> Properties:
    path = f"//gkehub.googleapis.com/projects/{fleet.get('project')}/locations/{location}/memberships/{name}"
    return {"membership": path, "membershipId": name, "membershipLocation": location, "preRegistered": False}


def _maintenance(policy: Properties) -> Properties:
    """An exclusion without a scope excludes all upgrades."""
    exclusions = [
        {"exclusionOptions": {"scope": "NO_UPGRADES"}, **exclusion}
        for exclusion in policy.get("maintenanceExclusions", ())
    ]
    return {**policy, **({"maintenanceExclusions": exclusions} if exclusions else {})}


def without_no_accelerators(properties: Properties) -> Properties:
    """A node pool as the provider sends it to GKE: kinds of GPUs of which there are 0 are left out."""
    config = properties.get("nodeConfig") or {}
    if "guestAccelerators" not in config:
        return properties
    some = [accelerator for accelerator in config["guestAccelerators"] if accelerator.get("count") != 0]
    rest = {name: value for name, value in config.items() if name != "guestAccelerators"}
    return {**properties, "nodeConfig": rest | ({"guestAccelerators": some} if some else {})}


def node_pool_answer(properties: Properties, control_plane: Mapping[str, Any]) -> Properties:
    """A node pool as GKE reports it; the control plane's `asked` is what its cluster was asked to be."""
    cluster, pool_inputs = str(properties["cluster"]).rpartition("/")[2], control_plane.get("asked") or {}
    pods = (pool_inputs.get("ipAllocationPolicy") or {}).get("clusterSecondaryRangeName") or _pod_range(cluster)
    own: Properties = {"networkConfig": {"podRange": pods}}
    if pool_inputs.get("workloadIdentityConfig"):
        own["nodeConfig"] = {"workloadMetadataConfig": {"mode": "GKE_METADATA"}}
    answered = filled(filled(without_no_accelerators(properties), own), google_defaults("nodePool"))
    config = answered["nodeConfig"]
    machine = machine_type(str(config["machineType"]))
    is_queued = (properties.get("queuedProvisioning") or {}).get("enabled") is True
    if config.get("flexStart") is True or is_queued:
        answered["upgradeSettings"] = {"maxSurge": 0, "maxUnavailable": 0, "strategy": "SHORT_LIVED"}
    if "nodeCount" in properties and "initialNodeCount" not in properties:
        answered["initialNodeCount"] = properties["nodeCount"]
    if "autoscaling" in properties:
        answered["autoscaling"] = {"locationPolicy": "ANY" if is_queued else "BALANCED", **properties["autoscaling"]}
    return {
        **answered,
        "instanceGroupUrls": [],
        "managedInstanceGroupUrls": [],
        "nodeConfig": _node_config(config, machine, queued=is_queued),
        "nodeLocations": list(properties.get("nodeLocations") or default_zones(str(properties["location"]))),
        "operation": "",
        "version": properties.get("version") or str(control_plane.get("version", "")),
    }


def _node_config(config: Properties, machine: MachineType | None, *, queued: bool) -> Properties:
    answered = dict(config)
    if machine is not None and machine.local_ssds and "localNvmeSsdBlockConfig" not in config:
        # Reported for machines that come with disks, asked for or not.
        count = (config.get("ephemeralStorageLocalSsdConfig") or {}).get("localSsdCount") or machine.local_ssds
        answered["ephemeralStorageLocalSsdConfig"] = {"dataCacheCount": 0, "localSsdCount": count}
    pulls = 3 if answered.get("ephemeralStorageLocalSsdConfig") else 2
    answered["kubeletConfig"] = {"maxParallelImagePulls": pulls, **config["kubeletConfig"]}
    if machine is not None and machine.gpus and "guestAccelerators" not in config:
        answered["guestAccelerators"] = [{"count": machine.gpus, "type": machine.accelerator}]
    model = "flex_start" if config.get("flexStart") else "spot" if config.get("spot") else "on_demand"
    labels = {**(config.get("resourceLabels") or {}), "goog-gke-node-pool-provisioning-model": model.replace("_", "-")}
    answered["resourceLabels"] = labels
    answered["bootDisk"] = {
        **(config.get("bootDisk") or {}),
        "diskType": config["diskType"],
        "sizeGb": config["diskSizeGb"],
    }
    gpus = bool(answered.get("guestAccelerators"))
    answered["effectiveTaints"] = [
        *(config.get("taints") or []),
        *([_taint(GPU_TAINT)] if gpus else []),
        *([_taint(QUEUED_TAINT)] if queued else []),
    ]
    return answered


def _taint(taint: NodeTaint) -> Properties:
    return {"effect": _EFFECTS[taint.effect], "key": taint.key, "value": taint.value}


def answer(token: str, properties: Mapping[str, Any], control_plane: Mapping[str, Any]) -> Properties:
    """The state of a resource of any type: `properties`, plain and complete, as Google answers it.

    `control_plane` is that of the cluster or of the node pool's cluster, and is not looked at for other types. What
    Google makes of a resource beyond its inputs, such as links and ids, is in the state of clusters alone; for others
    see `google.resource_kinds`.
    """
    if token == CLUSTER:
        state = cluster_answer(dict(properties), control_plane)
    elif token == NODE_POOL:
        state = node_pool_answer(dict(properties), control_plane)
    else:
        state = ANSWERS.get(token, dict)(dict(properties))
    return _with_defaults(load_facts().properties(token), state)


def _with_defaults(facts: Mapping[str, Fact], state: Mapping[str, Any]) -> dict[str, Any]:
    """Blocks that Google added have the schema's defaults, as the provider reads them."""
    whole = dict(state)
    for name, fact in facts.items():
        if name not in whole and fact.default is not None:
            whole[name] = fact.default
        elif fact.kind == "block" and isinstance(whole.get(name), dict):
            whole[name] = _with_defaults(fact.children, whole[name])
    return whole
