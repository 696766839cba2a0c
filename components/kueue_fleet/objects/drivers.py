"""GPU drivers for node pools whose drivers GKE does not install.

Google's driver installer as a DaemonSet, where some pool there has `driverVersion: INSTALLATION_DISABLED`; else
nothing. The images are on the nodes: GKE puts the installer that fits the node's image there.

Source: https://github.com/GoogleCloudPlatform/container-engine-accelerators at 068b15a9,
nvidia-driver-installer/cos/daemonset-preloaded.yaml;
https://cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers
"""

from __future__ import annotations

from typing import Any, Final

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.gke.labels import ACCELERATOR, DRIVER_VERSION

NAME: Final = "nvidia-driver-installer"
"""Of the DaemonSet that installs drivers."""
INSTALLER_IMAGE: Final = "cos-nvidia-installer:fixed"
"""Comes with the node's image."""
PARTITIONER_IMAGE: Final = (
    "gcr.io/gke-release/nvidia-partition-gpu@sha256:c54fd003948fac687c2a93a55ea6e4d47ffbd641278a9191e75e822fe72471c2"
)
"""Divides GPUs, where a pool asks for that; by digest."""
PAUSE_IMAGE: Final = "gke.gcr.io/pause:3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
"""Does nothing, once the node is changed; by digest, as in Google's own installers."""
_VOLUMES: Final = {
    "dev": "/dev",
    "vulkan-icd-mount": "/home/kubernetes/bin/nvidia/vulkan/icd.d",
    "nvidia-install-dir-host": "/home/kubernetes/bin/nvidia",
    "root-mount": "/",
    "cos-tools": "/var/lib/cos-tools",
    "nvidia-config": "/etc/nvidia",
}
_INSTALLER_ENV: Final = {
    "NVIDIA_INSTALL_DIR_HOST": "/home/kubernetes/bin/nvidia",
    "NVIDIA_INSTALL_DIR_CONTAINER": "/usr/local/nvidia",
    "VULKAN_ICD_DIR_HOST": "/home/kubernetes/bin/nvidia/vulkan/icd.d",
    "VULKAN_ICD_DIR_CONTAINER": "/etc/vulkan/icd.d",
    "ROOT_MOUNT_DIR": "/root",
    "COS_TOOLS_DIR_HOST": "/var/lib/cos-tools",
    "COS_TOOLS_DIR_CONTAINER": "/build/cos-tools",
}


def render_driver_installer(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The DaemonSet, if some pool on `cluster` needs it."""
    is_needed = any(
        pool.gpus_per_node and pool.driver_version == "INSTALLATION_DISABLED" for pool in fleet.node_pools_on(cluster)
    )
    if not is_needed:
        return []
    # GKE labels the nodes whose drivers it installs with the driver's version.
    expressions = [{"key": ACCELERATOR, "operator": "Exists"}, {"key": DRIVER_VERSION, "operator": "DoesNotExist"}]
    pod = {
        "volumes": [{"name": name, "hostPath": {"path": path}} for name, path in _VOLUMES.items()],
        "initContainers": [_installer(), _partitioner()],
    }
    return [node_daemon(NAME, expressions, pod)]


def node_daemon(name: str, nodes: list[dict[str, Any]], pod: dict[str, Any]) -> Manifest:
    """A DaemonSet that changes the nodes with these labels, and then does nothing, unless `pod` has containers."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": nodes}]}
    whole: dict[str, Any] = {
        "priorityClassName": "system-node-critical",
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "tolerations": [{"operator": "Exists"}],
        "hostNetwork": True,
        "hostPID": True,
        "containers": [{"name": "pause", "image": PAUSE_IMAGE}],
        **pod,
    }
    labels = {"k8s-app": name}
    spec = {
        "selector": {"matchLabels": dict(labels)},
        "updateStrategy": {"type": "RollingUpdate"},
        "template": {"metadata": {"labels": {"name": name, **labels}}, "spec": whole},
    }
    return manifest("apps/v1", "DaemonSet", name, "kube-system", labels=labels, spec=spec)


def _installer() -> dict[str, Any]:
    mounts = {
        "nvidia-install-dir-host": "/usr/local/nvidia",
        "vulkan-icd-mount": "/etc/vulkan/icd.d",
        "dev": "/dev",
        "root-mount": "/root",
        "cos-tools": "/build/cos-tools",
    }
    return {**privileged_container(NAME, INSTALLER_IMAGE, _INSTALLER_ENV, mounts), "imagePullPolicy": "Never"}


def _partitioner() -> dict[str, Any]:
    mounts = {"nvidia-install-dir-host": "/usr/local/nvidia", "dev": "/dev", "nvidia-config": "/etc/nvidia"}
    return privileged_container(
        "partition-gpus", PARTITIONER_IMAGE, {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}, mounts
    )


def privileged_container(name: str, image: str, env: dict[str, str], mounts: dict[str, str]) -> dict[str, Any]:
    """A container that may do everything on its node, with these mounts by the volumes' names."""
    return {
        "name": name,
        "image": image,
        "resources": {"requests": {"cpu": "0.15"}},
        "securityContext": {"privileged": True},
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "volumeMounts": [{"name": key, "mountPath": path} for key, path in mounts.items()],
    }
