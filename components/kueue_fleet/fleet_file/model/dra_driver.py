"""NVIDIA's DRA driver: pods claim GPUs, or a domain of GPUs that NVLink joins across the machines of a rack.

Sources: kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.1 docs/install.md and deployments/helm/dra-driver-nvidia-gpu (the
driver's folder on GKE; GPUs only where no device plugin hands out the same ones);
https://gke-ai-labs.dev/docs/tutorials/dynamic-resource-allocation (tolerations; no critical priority, which GKE leaves
to its own namespaces); https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra (pools, versions).
"""

from collections.abc import Iterable
from typing import Any, Final

from kueue_admission.kernel.base import DnsLabel, SpecModel
from kueue_fleet.fleet_file.model.addresses import Chart, ImageRepository
from kueue_fleet.fleet_file.model.installations import Version
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.accelerator_networks import has_compute_domains
from kueue_fleet.gke.gpu_direct import NVIDIA_FOLDER
from kueue_fleet.gke.labels import NO_DEVICE_PLUGIN, NODE_POOL

DRA_SINCE: Final = "1.34"
"""The least version of GKE whose DRA the driver's page on GKE has."""
CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
"""Class of what the pods of a ComputeDomain claim, one each."""


class NvidiaDraDriver(SpecModel):
    """How NVIDIA's DRA driver is installed, on each cluster with node pools for it: of A4X, for ComputeDomains, and
    with the label `gke-no-default-nvidia-gpu-device-plugin: "true"`, for GPUs that pods claim."""

    version: Version = "0.4.1"
    """Version of chart and driver."""
    chart: Chart = "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu"
    """Helm chart, also of a mirror, or a path."""
    image: ImageRepository = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu"
    """Repository of the image; the tag is `v` and the version."""
    namespace: DnsLabel = "dra-driver-nvidia-gpu"
    """Where the driver runs."""

    def helm_values(self, pools: Iterable[ResolvedNodePool]) -> dict[str, Any]:
        """Values of the chart, where the driver runs on the nodes of `pools`, which are some of `dra_pools`."""
        nodes = list(pools)
        has_claims = any(map(has_claimed_gpus, nodes))
        term = {"key": NODE_POOL, "operator": "In", "values": [pool.name for pool in nodes]}
        node_affinity = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        return {
            "nvidiaDriverRoot": NVIDIA_FOLDER,
            "image": {"repository": self.image, "tag": f"v{self.version}"},
            "resources": {
                "gpus": {"enabled": has_claims},
                "computeDomains": {"enabled": any(has_compute_domains(pool.machine_type) for pool in nodes)},
            },
            "gpuResourcesEnabledOverride": has_claims,
            "controller": {"priorityClassName": ""},
            "kubeletPlugin": {
                "priorityClassName": "",
                "tolerations": [{"operator": "Exists"}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": node_affinity}},
            },
        }


def has_claimed_gpus(pool: ResolvedNodePool) -> bool:
    """Whether pods claim the GPUs of the pool, as GKE's device plugin is not there."""
    return bool(pool.gpus_per_node) and pool.labels.get(NO_DEVICE_PLUGIN) == "true"


def dra_pools(pools: Iterable[ResolvedNodePool]) -> list[ResolvedNodePool]:
    """The pools that NVIDIA's DRA driver is of use on."""
    return [pool for pool in pools if has_claimed_gpus(pool) or has_compute_domains(pool.machine_type)]
