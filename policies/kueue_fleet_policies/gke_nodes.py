"""Rules about the nodes of a cluster: their identity, image, boot, metadata and care.

Where the nodes come from (reserved, spot, DWS) is in `node_pools`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kueue_admission.kernel.unknown import UNKNOWN, is_known
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import at, items

_DEFAULT_ACCOUNT: Final = re.compile(r"^(default|\d+-compute@developer\.gserviceaccount\.com)$")
_NAP: Final = "clusterAutoscaling.autoProvisioningDefaults"
_DRIVER_VERSION: Final = "gpuDriverInstallationConfig.gpuDriverVersion"


def is_default_account(account: Any) -> bool:
    """Whether a service account is known to be Compute Engine's default, which is an Editor of the project."""
    return account is not UNKNOWN and (account in (None, "") or _DEFAULT_ACCOUNT.match(str(account)) is not None)


def _account_problem(path: str, account: Any) -> Iterator[Breach]:
    if is_default_account(account):
        fault = f"is {account}" if account else "is missing, which means the default account"
        yield Breach(
            path,
            f"{fault}: an Editor of the project",
            "name an account with roles/container.defaultNodeServiceAccount",
        )


def _pool_account(resource: Resource, _: Settings) -> Iterator[Breach]:
    path = "nodeConfig.serviceAccount"
    if resource.type == NODE_POOL or (resource.standard and not resource.lacks("nodeConfig")):
        yield from _account_problem(path, resource.get(path))


def _auto_provisioned_account(cluster: Resource, _: Settings) -> Iterator[Breach]:
    path = f"{_NAP}.serviceAccount"
    if cluster.autopilot or cluster.is_on("clusterAutoscaling.enabled"):
        yield from _account_problem(path, cluster.get(path))


def _container_optimized(resource: Resource, _: Settings) -> Iterator[Breach]:
    path = "nodeConfig.imageType" if resource.type == NODE_POOL else f"{_NAP}.imageType"
    image = resource.get(path)
    if is_known(image) and image and not str(image).upper().startswith("COS"):
        yield Breach(path, f"is {image}", "set it to COS_CONTAINERD, or leave it out")


def _own_driver(pool: Resource) -> bool:
    accelerators = items(pool.get("nodeConfig.guestAccelerators"))
    return any(at(accelerator, _DRIVER_VERSION) == "INSTALLATION_DISABLED" for accelerator in accelerators)


def _disk_key(resource: Resource, _: Settings) -> Iterator[Breach]:
    if resource.type == NODE_POOL:
        path = "nodeConfig.bootDiskKmsKey"
    elif resource.autopilot or resource.is_on("clusterAutoscaling.enabled"):
        path = f"{_NAP}.bootDiskKmsKey"
    else:
        return
    if resource.lacks(path):
        yield Breach(
            path,
            "is missing, so Google's own key encrypts the nodes' disks",
            "set it to projects/P/locations/REGION/keyRings/R/cryptoKeys/K",
        )


def _driver(pool: Resource, _: Settings) -> Iterator[Breach]:
    for index, accelerator in enumerate(items(pool.get("nodeConfig.guestAccelerators"))):
        kind = at(accelerator, "type")
        if isinstance(kind, str) and "nvidia" in kind and at(accelerator, _DRIVER_VERSION) in (None, ""):
            yield Breach(
                f"nodeConfig.guestAccelerators[{index}].{_DRIVER_VERSION}",
                "is missing, so it depends on GKE's version whether the nodes have a driver",
                "set it to DEFAULT, or to INSTALLATION_DISABLED if a DaemonSet installs it",
            )


def on_autopilot(resource: Resource) -> bool:
    """Whether it is an Autopilot cluster, which has what rules about nodes ask for, or none."""
    return resource.type == CLUSTER and resource.autopilot


RULES: Final = rules_of(
    "GKE nodes",
    {
        "gke-node-service-account": _pool_account,
        "gke-auto-provisioning-service-account": _auto_provisioned_account,
        "gke-container-optimized-os": _container_optimized,
        "gke-boot-disk-cmek": _disk_key,
        "gke-gpu-driver": _driver,
    },
    exemptions={
        "gke-node-service-account": on_autopilot,
        "gke-auto-repair": lambda pool: pool.is_on("nodeConfig.flexStart"),
        "gke-secure-boot": _own_driver,
    },
)
"""The rules of this module."""
