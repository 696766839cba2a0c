"""A fleet as `import` finds it once it is applied: objects, Kueue's Configuration and node pools of each cluster."""

from __future__ import annotations

from typing import Any

import yaml

from kueue_fleet.adopt import AdoptedCluster
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, resolve_pool, system_pool_entry
from kueue_fleet.gcp.node_pool import node_pool_properties
from kueue_fleet.objects import render_cluster

Object = dict[str, Any]


def existing_platform(fleet: FleetSpec, *, pools: bool = True) -> list[AdoptedCluster]:
    """All clusters of the fleet; without `pools`, those of job clusters are not given."""
    return [existing_cluster(fleet, name, pools=pools) for name in fleet.cluster_names]


def existing_cluster(fleet: FleetSpec, name: str, *, pools: bool = True) -> AdoptedCluster:
    """One cluster of the fleet."""
    entry = fleet.cluster(name)
    found: list[Object] = []
    if entry.mode == "Standard":
        declared = [resolve_pool(system_pool_entry(entry), entry), *(fleet.node_pools_on(name) if pools else ())]
        found = [printed_pool(pool) for pool in declared]
    objects = [*render_cluster(fleet, name), configuration_map(fleet, name)]
    return AdoptedCluster(name, entry.region, objects, found, entry.mode)


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
        pool, service_account="nodes@p.example", disk_encryption_key=None, image_streaming=False, labels={}
    )
    config = declared.pop("nodeConfig")
    gpus = [
        {"acceleratorType": each["type"], "acceleratorCount": str(each["count"]), **_driver(each)}
        for each in config.pop("guestAccelerators", ())
        if each["count"]
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
        "upgradeSettings": _without_zeros(declared.get("upgradeSettings", {"strategy": "SHORT_LIVED"})),
        "status": "RUNNING",
        "version": "1.34.1-gke.1829001",
    }
    if scaling is not None:
        printed["autoscaling"] = {"enabled": True, **_without_zeros(scaling)}
    return printed | {name: declared[name] for name in ("placementPolicy", "queuedProvisioning") if name in declared}


def _driver(accelerator: Object) -> Object:
    return {"gpuDriverInstallationConfig": dict(accelerator["gpuDriverInstallationConfig"])}


def _without_zeros(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value != 0}
