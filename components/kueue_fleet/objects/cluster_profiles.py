"""How Kueue and the fleet's own controller reach the workers as Google accounts: ClusterProfiles, and the plugin.

Where a worker is, is known to the components only: they add `status` to its ClusterProfile.
"""

from __future__ import annotations

from typing import Any, Final

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import PLUGIN, PLUGIN_FOLDER
from kueue_fleet.fleet_file.worker_tokens import (
    ACCOUNT_NAME,
    KUEUE_SERVICE_ACCOUNT,
    manager_account,
    profile_credentials,
)
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION

PROFILE_GROUP: Final = "multicluster.x-k8s.io"
"""API group of ClusterProfiles."""
PROFILE_API: Final = f"{PROFILE_GROUP}/v1alpha1"
"""`apiVersion` of ClusterProfiles."""
PLUGIN_VOLUME: Final = "plugins"
"""The volume with the plugin, of Kueue's pods and of the controller's."""
PLUGIN_CONTAINER: Final = "add-plugins"
"""The init container that puts the plugin there."""
NONROOT_USER: Final = 65532
"""User of the pods, as distroless images have it."""
_CHART_VOLUMES: Final = ("cert", "manager-config", "visibility")
_CHART_MOUNTS: Final = (
    ("/tmp/k8s-webhook-server/serving-certs", "cert"),  # noqa: S108 - a path in the container
    ("/visibility", "visibility"),
    ("/controller_manager_config.yaml", "manager-config"),
)
"""What the chart has of both, in its order. Source: kueue@v0.19.2 charts/kueue/templates/manager/manager.yaml."""


def render_profile_definition(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The CRD of ClusterProfiles on the manager, which has to be there before Kueue starts; none elsewhere.

    As upstream, but without the subresource `status`: what declares the objects also knows their status, and Pulumi
    writes no subresources. Source: cluster-inventory-api@v0.1.3 config/crd/bases.
    """
    if profile_credentials(fleet) is None or fleet.cluster(cluster).role != "manager":
        return []
    manager = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    properties = {"displayName": {"type": "string"}, "clusterManager": manager}
    spec = {"type": "object", "required": ["clusterManager"], "properties": properties}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}}
    names = {
        "kind": "ClusterProfile",
        "listKind": "ClusterProfileList",
        "plural": "clusterprofiles",
        "singular": "clusterprofile",
    }
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    body = {"group": PROFILE_GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    name = f"{names['plural']}.{PROFILE_GROUP}"
    return [manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, spec=body)]


def render_cluster_profile(fleet: FleetSpec, worker: str) -> list[Manifest]:
    """The manager's ClusterProfile of a worker; none where the credentials are tokens."""
    return [] if profile_credentials(fleet) is None else [cluster_profile(worker, fleet.kueue.namespace)]


def cluster_profile(worker: str, namespace: str) -> Manifest:
    """The ClusterProfile of a worker in Kueue's namespace on the manager."""
    spec = {"displayName": worker, "clusterManager": {"name": PRODUCT}}
    labels = {"x-k8s.io/cluster-manager": PRODUCT}
    return manifest(PROFILE_API, "ClusterProfile", worker, namespace, labels=labels, spec=spec)


def profile_status(cluster: dict[str, Any]) -> dict[str, Any]:
    """The status of a ClusterProfile; `cluster` is the worker as a kubeconfig has it."""
    return {"accessProviders": [{"name": PRODUCT, "cluster": cluster}]}


def kueue_patches(fleet: FleetSpec) -> list[Manifest]:
    """What is added to Kueue's own objects on the manager, which its chart has no values for.

    The plugin in its pods, and the Google account that they act as. Helm leaves fields alone that are not its own.
    The API server puts the plugin's entries behind the chart's. Pulumi's provider compares lists by place, and would
    see a change in every run if the chart's entries were not named before them, by their keys alone.
    """
    account = manager_account(fleet, ACCOUNT_NAME)
    if account is None:
        return []
    acts_as = {WORKLOAD_IDENTITY_ANNOTATION: account.address}
    mounts = [{"mountPath": path, "name": name} for path, name in _CHART_MOUNTS]
    volumes = [{"name": name} for name in _CHART_VOLUMES]
    manager = {"name": "manager", "volumeMounts": [*mounts, plugin_mount(PLUGIN_FOLDER)]}
    pod = {
        "initContainers": plugin_containers(fleet),
        "containers": [manager],
        "volumes": [*volumes, *plugin_volumes(fleet)],
    }
    spec = {"template": {"spec": pod}}
    return [
        manifest("v1", "ServiceAccount", KUEUE_SERVICE_ACCOUNT, account.namespace, annotations=acts_as),
        manifest("apps/v1", "Deployment", KUEUE_SERVICE_ACCOUNT, account.namespace, spec=spec),
    ]


def plugin_containers(fleet: FleetSpec) -> list[dict[str, Any]]:
    """The init container that puts the plugin into a volume; none where the credentials are tokens."""
    credentials = profile_credentials(fleet)
    if credentials is None:
        return []
    resources = {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "32Mi"}
    return [
        {
            "name": PLUGIN_CONTAINER,
            "image": credentials.plugin_image,
            "command": ["cp", f"/{PLUGIN}"],
            "args": [f"{PLUGIN_FOLDER}/{PLUGIN}"],
            "resources": {"requests": resources, "limits": {"memory": "32Mi"}},
            "securityContext": {"runAsNonRoot": True, "runAsUser": NONROOT_USER, **unprivileged()},
            "volumeMounts": [{"name": PLUGIN_VOLUME, "mountPath": PLUGIN_FOLDER}],
        }
    ]


def unprivileged() -> dict[str, Any]:
    """The security context of a container that needs no right on its node, and writes nothing but into volumes."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def plugin_volumes(fleet: FleetSpec) -> list[dict[str, Any]]:
    """The volume with the plugin; none where the credentials are tokens."""
    return [{"name": PLUGIN_VOLUME, "emptyDir": {}}] if profile_credentials(fleet) is not None else []


def plugin_mount(path: str) -> dict[str, Any]:
    """That volume in a container."""
    return {"name": PLUGIN_VOLUME, "mountPath": path, "readOnly": True}
