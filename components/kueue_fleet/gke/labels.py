"""Labels and taints that GKE puts on nodes, and the resource names of their GPUs and TPUs.

Sources: https://cloud.google.com/kubernetes-engine/docs/concepts/gpus (accelerators and their taint),
https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest (taint cloud.google.com/gke-queued; GKE does
not set the label of the same name),
https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms (label cloud.google.com/gke-spot; no taint on pools),
https://cloud.google.com/kubernetes-engine/docs/concepts/dws (label cloud.google.com/gke-flex-start),
https://cloud.google.com/kubernetes-engine/docs/how-to/prepare-arm-workloads-for-deployment (the taint of Arm nodes),
https://cloud.google.com/kubernetes-engine/docs/concepts/tpus (labels and taint of TPU nodes),
https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus (labels of shared GPUs),
https://cloud.google.com/kubernetes-engine/docs/how-to/config-auto-net-for-accelerators (the label of the profile).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kueue_admission.kernel.names import ACCELERATOR_RESOURCES as ACCELERATOR_RESOURCES
from kueue_admission.kernel.names import GPU_RESOURCE as GPU_RESOURCE
from kueue_admission.kernel.names import NODE_POOL as NODE_POOL
from kueue_admission.kernel.names import SPOT as SPOT
from kueue_admission.kernel.names import TO_BE_DELETED as TO_BE_DELETED
from kueue_admission.kernel.names import TPU_RESOURCE as TPU_RESOURCE

SYSTEM_LABEL: Final = re.compile(r"(^|\.)(cloud\.google\.com|kubernetes\.io|k8s\.io|gke\.io)/")
"""Finds keys of labels that Kubernetes or GKE sets; pods cannot invent them."""
ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
"""Node label with the kind of GPU."""
ACCELERATOR_COUNT: Final = "cloud.google.com/gke-accelerator-count"
"""Node label with the number of GPUs, or of TPU chips."""
TPU_ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
"""Node label with the kind of TPU."""
TPU_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
"""Node label with the topology of the TPU slice."""
DRIVER_VERSION: Final = "cloud.google.com/gke-gpu-driver-version"
"""Node label with the driver that GKE installs."""
GPU_PARTITION_SIZE: Final = "cloud.google.com/gke-gpu-partition-size"
"""Node label with the size of the partitions of the GPUs."""
GPU_SHARING_STRATEGY: Final = "cloud.google.com/gke-gpu-sharing-strategy"
"""Node label with how containers share a GPU."""
MAX_SHARED_CLIENTS: Final = "cloud.google.com/gke-max-shared-clients-per-gpu"
"""Node label with how many containers share a GPU."""
SHARING_LABELS: Final = (GPU_PARTITION_SIZE, GPU_SHARING_STRATEGY, MAX_SHARED_CLIENTS)
"""Node labels of GPUs that are shared or divided."""
NO_DEVICE_PLUGIN: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""Label of a pool: `true` keeps GKE's device plugin for GPUs away, as NVIDIA's DRA driver needs."""
PROVISIONING: Final = "cloud.google.com/gke-provisioning"
"""Node label: standard, spot or preemptible."""
QUEUED: Final = "cloud.google.com/gke-queued"
"""Node label and taint of nodes that come for a ProvisioningRequest."""
RESIZE_REQUEST: Final = "autoscaling.gke.io/provisioning-request"
"""Node label with the ProvisioningRequest that the node came for; Kueue has the pods of its job select it."""
QUEUED_PROVISIONING_CLASS: Final = "queued-provisioning.gke.io"
"""Provisioning class of DWS, which ProvisioningRequests name."""
FLEX_START: Final = "cloud.google.com/gke-flex-start"
"""Node label of flex-start nodes."""
GCS_FUSE_VOLUMES: Final = "gke-gcsfuse/volumes"
"""Annotation of a pod: `true` has GKE add the container that mounts buckets."""
COMPUTE_CLASS: Final = "cloud.google.com/compute-class"
"""Node label with the compute class."""
MACHINE_FAMILY: Final = "cloud.google.com/machine-family"
"""Node label with the machine family, such as g2."""
BOOT_DISK: Final = "cloud.google.com/gke-boot-disk"
"""Node label with the kind of boot disk."""
TOPOLOGY_BLOCK: Final = "cloud.google.com/gce-topology-block"
"""Node label with the block of machines that the node is in."""
TOPOLOGY_SUBBLOCK: Final = "cloud.google.com/gce-topology-subblock"
"""Node label with the sub-block of the block."""
TPU_PARTITION: Final = "cloud.google.com/gke-tpu-partition-{}-id"
"""Node label with the part of a cube of TPU7x, of a topology such as 4x4x4, that the node is in."""
TPU_SLICE_TOPOLOGY: Final = "cloud.google.com/gke-tpu-slice-topology"
"""Annotation of pods: the topology of the slice that GKE's slice controller makes for them."""
SLICE_CONTROLLER: Final = "accelerator.gke.io/slice"
"""Controller of the admission check by which GKE's slice controller makes slices."""
TOPOLOGY_HOST: Final = "cloud.google.com/gce-topology-host"
"""Node label with the host that the machine runs on."""
NETWORK_PROFILE: Final = "gke.networks.io/accelerator-network-profile"
"""Node label with the accelerator network profile of the pool."""
DRANET: Final = "cloud.google.com/gke-networking-dra-driver"
"""Label of a pool: `true` starts GKE managed DRANET on its nodes; GKE does not set it."""
WORKLOAD_IDENTITY_ANNOTATION: Final = "iam.gke.io/gcp-service-account"
"""Annotation of a Kubernetes service account: the Google service account that its pods act as."""
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""Node label with the machine type."""
ARCHITECTURE: Final = "kubernetes.io/arch"
"""Node label with the architecture, and key of the taint of Arm nodes."""
REGION: Final = "topology.kubernetes.io/region"
"""Node label with the region."""
ZONE: Final = "topology.kubernetes.io/zone"
"""Node label with the zone."""
RESERVATION_NAME: Final = "cloud.google.com/reservation-name"
"""Node label with the reservation that the node is from. A pod that selects it gets such a node where GKE makes nodes.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations."""

NODE_LABELS: Final = (
    NODE_POOL,
    ACCELERATOR,
    ACCELERATOR_COUNT,
    TPU_ACCELERATOR,
    TPU_TOPOLOGY,
    DRIVER_VERSION,
    *SHARING_LABELS,
    SPOT,
    PROVISIONING,
    FLEX_START,
    MACHINE_FAMILY,
    BOOT_DISK,
    INSTANCE_TYPE,
    ARCHITECTURE,
    REGION,
    ZONE,
)
"""Labels that pods select nodes by; GKE has others."""


WORKLOAD_IDENTITY_ROLE: Final = "roles/iam.workloadIdentityUser"
"""To act as a Google service account from a pod."""


class NodeTaint(NamedTuple):
    """A taint, in the words of Kubernetes."""

    key: str
    value: str
    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute; of a pool, whatever it says."""


GPU_TAINT: Final = NodeTaint(GPU_RESOURCE, "present", "NoSchedule")
"""What GKE puts on nodes with GPUs, so that only pods that ask for GPUs come there."""
TPU_TAINT: Final = NodeTaint(TPU_RESOURCE, "present", "NoSchedule")
"""What GKE puts on nodes with TPUs."""
QUEUED_TAINT: Final = NodeTaint(QUEUED, "true", "NoSchedule")
"""What GKE puts on nodes of queued provisioning."""
ARM_TAINT: Final = NodeTaint(ARCHITECTURE, "arm64", "NoSchedule")
"""What GKE puts on Arm nodes."""
TOLERATED_BY_GKE: Final = frozenset({GPU_RESOURCE, TPU_RESOURCE, QUEUED, ARCHITECTURE})
"""Keys of taints for which GKE itself adds the toleration to pods that ask for such nodes."""


def accelerator_of(labels: Mapping[str, Any]) -> Any:
    """The kind of GPU or TPU that node labels say; None where they say none."""
    return labels.get(ACCELERATOR, labels.get(TPU_ACCELERATOR))


def accelerator_resource(labels: Mapping[str, Any]) -> str | None:
    """The resource that pods request to get the GPUs or TPUs of nodes with these labels; None where they have none."""
    if ACCELERATOR in labels:
        return GPU_RESOURCE
    return TPU_RESOURCE if TPU_ACCELERATOR in labels else None
