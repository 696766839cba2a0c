"""Rules about the nodes of a cluster: their identity, image, boot, metadata and care.

Where the nodes come from (reserved, spot, DWS) is in `node_pools`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pulumi_policy import Severity

from kueue_admission.forms.unknown import UNKNOWN, is_known
from kueue_fleet_policies.properties import is_false, prohibit, put
from kueue_fleet_policies.resource import CLUSTER, NODE_POOL, Resource
from kueue_fleet_policies.rule import ADVISORY, Breach, ResourceRule, Settings
from kueue_fleet_policies.values import at, items

_GKE: Final = "https://cloud.google.com/kubernetes-engine/docs"
_DEFAULT_ACCOUNT: Final = re.compile(r"^(default|\d+-compute@developer\.gserviceaccount\.com)$")
_NAP: Final = "clusterAutoscaling.autoProvisioningDefaults"
_DRIVER_VERSION: Final = "gpuDriverInstallationConfig.gpuDriverVersion"
FLEX_START_REPAIR: Final = "flex-start nodes cannot be repaired, GKE refuses autoRepair on them"
"""Why flex-start nodes are left alone by the rule about repair."""
OWN_DRIVER: Final = "the pool installs a GPU driver of its own, whose kernel modules may be unsigned"
"""Why pools with a driver of their own are left alone by the rule about secure boot."""


def is_default_account(account: Any) -> bool:
    """Whether a service account is known to be Compute Engine's default, which is an Editor of the project."""
    return account is not UNKNOWN and (account in (None, "") or _DEFAULT_ACCOUNT.match(str(account)) is not None)


def _account_problem(path: str, account: Any) -> Iterator[Breach]:
    if is_default_account(account):
        said = f"is {account}" if account else "is missing, which means the default account"
        yield Breach(
            path, f"{said}: an Editor of the project", "name an account with roles/container.defaultNodeServiceAccount"
        )


def _pool_account(resource: Resource, _: Settings) -> Iterator[Breach]:
    path = "nodeConfig.serviceAccount"
    if resource.type == NODE_POOL or (resource.standard and not resource.lacks("nodeConfig")):
        yield from _account_problem(path, resource.get(path))


def _auto_provisioned_account(cluster: Resource, _: Settings) -> Iterator[Breach]:
    path = f"{_NAP}.serviceAccount"
    if cluster.autopilot or cluster.is_on("clusterAutoscaling.enabled"):
        yield from _account_problem(path, cluster.get(path))


def _metadata_server(pool: Resource, _: Settings) -> Iterator[Breach]:
    path = "nodeConfig.workloadMetadataConfig.mode"
    mode = pool.get(path)
    if mode is not UNKNOWN and mode != "GKE_METADATA":
        said = "is missing" if mode is None else f"is {mode}"
        yield Breach(path, f"{said}, so pods may act as the node", "set it to GKE_METADATA")


def _container_optimized(resource: Resource, _: Settings) -> Iterator[Breach]:
    path = "nodeConfig.imageType" if resource.type == NODE_POOL else f"{_NAP}.imageType"
    image = resource.get(path)
    if is_known(image) and image and not str(image).upper().startswith("COS"):
        yield Breach(path, f"is {image}", "set it to COS_CONTAINERD, or leave it out")


def _repair_exemption(pool: Resource) -> str | None:
    return FLEX_START_REPAIR if pool.is_on("nodeConfig.flexStart") else None


def _auto_repair(pool: Resource, _: Settings) -> Iterator[Breach]:
    if pool.flag("management.autoRepair") is False and is_known(pool.flag("nodeConfig.flexStart")):
        yield Breach("management.autoRepair", "is false", "set it to true, or remove it")


def _own_driver(pool: Resource) -> str | None:
    for accelerator in items(pool.get("nodeConfig.guestAccelerators")):
        if at(accelerator, _DRIVER_VERSION) == "INSTALLATION_DISABLED":
            return OWN_DRIVER
    return None


def _secure_boot(pool: Resource, _: Settings) -> Iterator[Breach]:
    path = "nodeConfig.shieldedInstanceConfig.enableSecureBoot"
    if pool.is_off(path) and is_known(pool.get("nodeConfig.guestAccelerators")):
        yield Breach(path, "is not true", "set it to true")


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


def _read_only_port(resource: Resource, _: Settings) -> Iterator[Breach]:
    for path in (
        "nodeConfig.kubeletConfig.insecureKubeletReadonlyPortEnabled",
        "nodePoolDefaults.nodeConfigDefaults.insecureKubeletReadonlyPortEnabled",
    ):
        if resource.flag(path) is True:
            yield Breach(path, "is true: the kubelet answers on port 10255 without authentication", "set it to FALSE")


def _driver(pool: Resource, _: Settings) -> Iterator[Breach]:
    for index, accelerator in enumerate(items(pool.get("nodeConfig.guestAccelerators"))):
        kind = at(accelerator, "type")
        if isinstance(kind, str) and "nvidia" in kind and at(accelerator, _DRIVER_VERSION) in (None, ""):
            yield Breach(
                f"nodeConfig.guestAccelerators[{index}].{_DRIVER_VERSION}",
                "is missing, so it depends on GKE's version whether the nodes have a driver",
                "set it to DEFAULT, or to INSTALLATION_DISABLED if a DaemonSet installs it",
            )


def on_autopilot(cluster: Resource) -> str | None:
    """Why an Autopilot cluster is left alone by rules about nodes."""
    return "Autopilot runs its nodes itself" if cluster.autopilot else None


_GROUP: Final = "GKE nodes"

RULES: Final = (
    ResourceRule(
        name="gke-node-service-account",
        asks="Nodes must not run as the project's default service account.",
        cis="5.2.1",
        severity=Severity.CRITICAL,
        source=f"{_GKE}/how-to/service-accounts",
        group=_GROUP,
        types=(NODE_POOL, CLUSTER),
        check=_pool_account,
        exemption=lambda resource: on_autopilot(resource) if resource.type == CLUSTER else None,
        exempts="Autopilot clusters: see gke-auto-provisioning-service-account",
    ),
    ResourceRule(
        name="gke-auto-provisioning-service-account",
        asks="Auto-provisioned nodes must not run as the project's default service account.",
        cis="5.2.1",
        severity=Severity.CRITICAL,
        source=f"{_GKE}/how-to/service-accounts",
        group=_GROUP,
        types=(CLUSTER,),
        check=_auto_provisioned_account,
    ),
    ResourceRule(
        name="gke-metadata-server",
        asks="Pods must see GKE's metadata server, not the node's.",
        cis="5.4.1",
        severity=Severity.HIGH,
        source=f"{_GKE}/concepts/workload-identity#metadata_server",
        group=_GROUP,
        types=(NODE_POOL,),
        check=_metadata_server,
    ),
    ResourceRule(
        name="gke-no-legacy-metadata",
        asks="Legacy metadata endpoints must be off.",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/protecting-cluster-metadata",
        group=_GROUP,
        types=(NODE_POOL,),
        check=prohibit(
            is_false,
            "nodeConfig.metadata.disable-legacy-endpoints",
            "is false: metadata is served without the header that proves intent",
            "remove it",
        ),
    ),
    ResourceRule(
        name="gke-container-optimized-os",
        asks="Nodes must run Container-Optimized OS.",
        cis="5.5.1",
        source=f"{_GKE}/concepts/node-images",
        group=_GROUP,
        types=(NODE_POOL, CLUSTER),
        check=_container_optimized,
    ),
    ResourceRule(
        name="gke-auto-repair",
        asks="Broken nodes must be replaced.",
        cis="5.5.2",
        source=f"{_GKE}/how-to/node-auto-repair",
        group=_GROUP,
        types=(NODE_POOL,),
        check=_auto_repair,
        remedy=put("management.autoRepair", True),
        exemption=_repair_exemption,
        exempts=f"pools with nodeConfig.flexStart: {FLEX_START_REPAIR}",
    ),
    ResourceRule(
        name="gke-auto-upgrade",
        asks="Nodes must be upgraded along with the cluster.",
        cis="5.5.3",
        source=f"{_GKE}/how-to/node-auto-upgrades",
        group=_GROUP,
        types=(NODE_POOL,),
        check=prohibit(is_false, "management.autoUpgrade", "is false", "set it to true, or remove it"),
        remedy=put("management.autoUpgrade", True),
    ),
    ResourceRule(
        name="gke-integrity-monitoring",
        asks="The boot of nodes must be measured.",
        cis="5.5.6",
        source=f"{_GKE}/how-to/shielded-gke-nodes",
        group=_GROUP,
        types=(NODE_POOL,),
        check=prohibit(
            is_false,
            "nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring",
            "is false",
            "set it to true, or leave it out",
        ),
    ),
    ResourceRule(
        name="gke-secure-boot",
        asks="Nodes must boot signed software only.",
        cis="5.5.7",
        source=f"{_GKE}/how-to/shielded-gke-nodes#secure_boot",
        group=_GROUP,
        types=(NODE_POOL,),
        check=_secure_boot,
        exemption=_own_driver,
        exempts=f"pools with gpuDriverVersion INSTALLATION_DISABLED: {OWN_DRIVER}",
    ),
    ResourceRule(
        name="gke-boot-disk-cmek",
        asks="Boot disks must be encrypted with a key of Cloud KMS.",
        cis="5.9.2",
        level=ADVISORY,
        source=f"{_GKE}/how-to/using-cmek",
        group=_GROUP,
        types=(NODE_POOL, CLUSTER),
        check=_disk_key,
    ),
    ResourceRule(
        name="gke-no-kubelet-read-only-port",
        asks="The kubelet's read-only port must be closed.",
        cis="3.2.4",
        severity=Severity.HIGH,
        source=f"{_GKE}/how-to/disable-kubelet-readonly-port",
        group=_GROUP,
        types=(NODE_POOL, CLUSTER),
        check=_read_only_port,
    ),
    ResourceRule(
        name="gke-gpu-driver",
        asks="Pools with GPUs must say who installs the driver.",
        level=ADVISORY,
        source=f"{_GKE}/how-to/gpus#installing_drivers",
        group=_GROUP,
        types=(NODE_POOL,),
        check=_driver,
    ),
)
"""The rules of this module."""
