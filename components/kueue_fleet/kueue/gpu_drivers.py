"""GPU drivers on nodes on which GKE installs none.

In: nothing. Out: a DaemonSet in kube-system that installs the driver which comes with the node's image. GKE installs
drivers by itself on every pool that does not say INSTALLATION_DISABLED, and on Autopilot.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers, and the installer's own
description in GoogleCloudPlatform/container-engine-accelerators, nvidia-driver-installer/cos/daemonset-preloaded.yaml.
"""

from typing import Any

import pulumi

from kueue_fleet.kueue.component import declare_object
from kueue_fleet.kueue.objects import KubernetesObject
from kueue_fleet.spec import Manifest

NAME = "nvidia-driver-installer"
INSTALLER_IMAGE = "cos-nvidia-installer:fixed"
"""Part of every node image, so it is never pulled."""
PAUSE_IMAGE = "registry.k8s.io/pause:3.10"

_HOST = "/home/kubernetes/bin/nvidia"
_MOUNTS = {
    # name: path on the node, path in the container, variable for the one, variable for the other
    "dev": ("/dev", "/dev", None, None),
    "nvidia": (_HOST, "/usr/local/nvidia", "NVIDIA_INSTALL_DIR_HOST", "NVIDIA_INSTALL_DIR_CONTAINER"),
    "vulkan": (f"{_HOST}/vulkan/icd.d", "/etc/vulkan/icd.d", "VULKAN_ICD_DIR_HOST", "VULKAN_ICD_DIR_CONTAINER"),
    "root": ("/", "/root", None, "ROOT_MOUNT_DIR"),
    "cos-tools": ("/var/lib/cos-tools", "/build/cos-tools", "COS_TOOLS_DIR_HOST", "COS_TOOLS_DIR_CONTAINER"),
}


class GpuDrivers(pulumi.ComponentResource):
    """The driver installer, on every node with GPUs that has no driver from GKE."""

    daemon_set: KubernetesObject
    """The DaemonSet."""

    def __init__(self, name: str, *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the DaemonSet."""
        super().__init__("kueue-fleet:index:GpuDrivers", name, None, opts)
        self.daemon_set = declare_object(
            self, name, driver_installer(), deleted_with=opts.deleted_with if opts else None
        )
        self.register_outputs({})


def driver_installer() -> Manifest:
    """The DaemonSet: an init container installs the driver, then a container that does nothing keeps the pod."""
    environment = [
        {"name": variable, "value": path}
        for host, container, host_variable, container_variable in _MOUNTS.values()
        for variable, path in ((host_variable, host), (container_variable, container))
        if variable is not None
    ]
    labels = {"k8s-app": NAME}
    pod: dict[str, Any] = {
        "priorityClassName": "system-node-critical",
        "hostNetwork": True,
        "hostPID": True,
        "tolerations": [{"operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
                                {
                                    "key": "cloud.google.com/gke-gpu-driver-version",
                                    "operator": "NotIn",
                                    "values": ["default", "latest"],
                                },
                            ]
                        }
                    ]
                }
            }
        },
        "initContainers": [
            {
                "name": NAME,
                "image": INSTALLER_IMAGE,
                "imagePullPolicy": "Never",
                "securityContext": {"privileged": True},
                "resources": {"requests": {"cpu": "150m"}},
                "env": environment,
                "volumeMounts": [{"name": name, "mountPath": mount[1]} for name, mount in _MOUNTS.items()],
            }
        ],
        "containers": [{"name": "pause", "image": PAUSE_IMAGE, "resources": {"requests": {"cpu": "1m"}}}],
        "volumes": [{"name": name, "hostPath": {"path": mount[0]}} for name, mount in _MOUNTS.items()],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
