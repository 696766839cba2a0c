"""Node pools of Standard clusters, as the file has them: every field, and how it differs on one cluster."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from kueue_admission.api.resource_flavor import Taint
from kueue_admission.kernel.base import AtLeastOne, Count, Flag, LabelKey, LabelValue, RuledModel, SpecModel, Text
from kueue_admission.kernel.described import AlsoCalled
from kueue_admission.kernel.given import ListOf, ListOfText
from kueue_fleet.fleet_file.model.capacity import Calendar, Capacity, FlexStart, OnDemand, Reserved
from kueue_fleet.fleet_file.model.entries import ClusterNames
from kueue_fleet.fleet_file.model.gcp_names import GkeClusterName, ResourceName, Zone
from kueue_fleet.gke.machines import BOOT_DISK_GB, MOST_DISK_GB

DriverVersion = Literal["DEFAULT", "LATEST", "INSTALLATION_DISABLED"]
"""Which GPU driver GKE installs, if any."""


class GpuSharing(SpecModel):
    """Containers of several pods on one GPU, or on one partition of it. Each requests one `nvidia.com/gpu`, a share.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus.
    """

    strategy: Literal["TIME_SHARING", "MPS"]
    """TIME_SHARING: by turns, without limits of memory; MPS: at the same time, each with a part of threads and memory
    (GKE 1.27.7-gke.1088000 or newer; pods need `hostIPC`)."""
    max_shared_clients_per_gpu: Count
    """Containers on each GPU, or on each partition: 2 to 48. A node has this number of `nvidia.com/gpu` for each."""


class Accelerator(SpecModel):
    """The GPUs of a node."""

    type: Text | None = None
    """Such as nvidia-tesla-t4; default: the machine type's own. N1 machines need it."""
    count: AtLeastOne | None = None
    """GPUs on each node; default: the machine type's own. N1 machines need it."""
    driver_version: DriverVersion = "DEFAULT"
    """Driver that GKE installs; INSTALLATION_DISABLED: this fleet installs it, by a DaemonSet."""
    partition_size: Text | None = None
    """Size of the parts into which each GPU is divided (MIG), such as 1g.10gb: of A100 and newer GPUs. Each part is one
    `nvidia.com/gpu`. Default: whole GPUs. A change replaces the pool.
    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/gpus-multi."""
    sharing: GpuSharing | None = None
    """Several containers on each GPU, or on each part of it; default: one. A change replaces the pool."""


class SecondaryBootDisk(SpecModel):
    """A disk that each new node gets from an image, with data that jobs would otherwise load first.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/data-container-image-preloading.
    """

    disk_image: Text = Field(kw_only=False)
    """global/images/NAME, or projects/PROJECT/global/images/NAME: of another project, the nodes' account and GKE's need
    roles/compute.imageUser there."""
    mode: Literal["CONTAINER_IMAGE_CACHE"] | None = None
    """CONTAINER_IMAGE_CACHE: container images that are pulled from the disk; default: data, below
    /mnt/disks/gke-secondary-disks on the node."""


SecondaryBootDisks = Annotated[ListOf[SecondaryBootDisk], Field(max_length=127)]
"""As many as a node takes."""


class NodeNetwork(SpecModel):
    """A network that exists, for one network card of each node."""

    network: ResourceName = Field(kw_only=False)
    """Name of the VPC network."""
    subnetwork: ResourceName = Field(kw_only=False)
    """Name of its subnet in the cluster's region."""


class PoolNetworks(SpecModel):
    """Networks for the network cards of GPU machines: four of A3 High, eight of A3 Mega, one and eight for RDMA of A3
    Ultra and A4, one and four of A4X.

    The cluster needs multiNetworking. Sources:
    https://cloud.google.com/kubernetes-engine/docs/how-to/gpu-bandwidth-gpudirect-tcpx,
    https://cloud.google.com/ai-hypercomputer/docs/create/gke-ai-hypercompute-custom.
    """

    existing: ListOf[NodeNetwork] = ()
    """Existing networks, one for each card; for RDMA machines, first that of the additional gVNIC. Default: the fleet
    creates them, within 192.168.0.0/16, for all pools of the cluster."""


class TopologyManager(SpecModel):
    """How a node aligns CPUs, memory and GPUs of a pod."""

    policy: Literal["none", "best-effort", "restricted", "single-numa-node"] = Field(kw_only=False)
    """With restricted and single-numa-node a pod fails on a node where its resources are not close together."""
    scope: Literal["container", "pod"] = "container"
    """What is aligned: the resources of each container (default), or of the pod."""


class MemoryManager(SpecModel):
    """From which NUMA nodes a pod's memory is."""

    policy: Literal["None", "Static"] = Field(kw_only=False)
    """Static: for pods whose limits are their requests, from those that the topology manager picks."""


class KubeletConfig(SpecModel):
    """How the kubelet of a node assigns CPUs and memory.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/node-system-config.
    """

    cpu_manager_policy: Literal["none", "static"] | None = None
    """static: whole CPUs for a pod alone, if it requests whole CPUs and its limits are its requests; default none."""
    topology_manager: TopologyManager | None = None
    """NUMA nodes of a pod's CPUs and GPUs; default: ignored."""
    memory_manager: MemoryManager | None = None
    """NUMA nodes of a pod's memory; default: ignored."""
    pod_pids_limit: Annotated[Count, Field(ge=1024, le=4194304)] | None = None
    """Processes of one pod; default: GKE's, by the size of the node."""


class PoolAutoscaling(SpecModel):
    """Limits of the number of nodes, in all zones together."""

    total_min_node_count: Count = 0
    """Fewest nodes; default 0."""
    total_max_node_count: AtLeastOne
    """Most nodes."""
    location_policy: Literal["ANY", "BALANCED"] = "ANY"
    """ANY (default): where there is capacity; BALANCED: the same in each zone."""


class PoolManagement(SpecModel):
    """Automatic repair and upgrade by GKE."""

    auto_repair: Flag | None = None
    """Replace broken nodes; default true, but false with flex-start."""
    auto_upgrade: Flag = True
    """Upgrade nodes along with the cluster; default true."""


class PoolUpgrade(SpecModel):
    """How nodes are upgraded: a few at a time."""

    max_surge: Count = 1
    """Nodes that may exist beyond the pool's size."""
    max_unavailable: Count = 0
    """Nodes that may be missing."""


class PoolOverride(SpecModel):
    """How a pool differs on one cluster; a field that is left out is as for all clusters."""

    zones: ListOfText[Zone] | None = None
    """Zones of the nodes there."""
    accelerator: Accelerator | None = None
    """GPUs of each node there."""
    node_count: Count | None = None
    """Nodes in each zone there, fixed."""
    autoscaling: PoolAutoscaling | None = None
    """Limits of the number of nodes there."""
    initial_node_count: Count | None = None
    """Nodes in each zone at the start there."""
    disk_size_gb: Annotated[Count, Field(ge=10, le=MOST_DISK_GB)] | None = None
    """Boot disk there, in GB."""
    disk_type: Text | None = None
    """Kind of boot disk there."""
    local_ssd_count: Count | None = None
    """Local SSDs of 375 GB there."""
    secondary_boot_disks: SecondaryBootDisks | None = None
    """Disks from images there, instead of the pool's."""
    fast_socket: Flag | None = None
    """Whether NCCL Fast Socket is on the nodes there."""
    kubelet_config: KubeletConfig | None = None
    """The kubelet of the nodes there, instead of the pool's."""
    accelerator_networks: PoolNetworks | None = None
    """Networks of the nodes' other network cards there."""
    max_pods_per_node: Annotated[Count, Field(ge=8, le=256)] | None = None
    """Pods that a node takes there."""
    labels: Mapping[LabelKey, LabelValue] | None = None
    """Node labels there, instead of the pool's."""
    taints: ListOf[Taint] | None = None
    """Node taints there, instead of the pool's."""
    compact_placement: Flag | None = None
    """Whether the nodes stand close together there."""
    management: PoolManagement | None = None
    """Repair and upgrades there."""
    upgrade: PoolUpgrade | None = None
    """How nodes are upgraded there."""
    capacity: Capacity | None = None
    """Where the nodes come from there."""


class NodePoolFields(RuledModel):
    """What the file says of a node pool; `NodePoolEntry` has the rules too."""

    name: GkeClusterName = Field(kw_only=False)
    """Name of the GKE node pool; flavors and node labels have it too."""
    existing: Flag = False
    """Whether the pool exists, on existing or imported clusters, and is not managed by the fleet: flavors, quotas and
    rules use it; default false."""
    clusters: ClusterNames | None = None
    """Default: every Standard cluster that runs jobs."""
    zones: Annotated[ListOfText[Zone], AlsoCalled("locations", "nodeLocations", "region")] = ()
    """Zones of the nodes; default: the cluster's."""
    machine_type: Annotated[Text, AlsoCalled("instanceType", "vmType")] = Field(kw_only=False)
    """Type of the machines, such as g2-standard-24."""
    accelerator: Annotated[
        Accelerator | None, AlsoCalled("gpu", "gpus", "gpuType", "gpuCount", "guestAccelerator", "guestAccelerators")
    ] = None
    """GPUs; default: the machine type's own, with GKE's default driver."""
    node_count: Annotated[Count | None, AlsoCalled("nodes", "nodesPerZone", "numNodes", "replicas", "size")] = None
    """Nodes in each zone, fixed; not together with autoscaling."""
    autoscaling: Annotated[
        PoolAutoscaling | None,
        AlsoCalled("max", "maxCount", "maxNodes", "maxNodesPerZone", "min", "minCount", "minNodes"),
    ] = None
    """Limits of the number of nodes; not together with nodeCount."""
    initial_node_count: Count | None = None
    """Nodes in each zone at the start, with autoscaling; default: as few as its limits allow."""
    disk_size_gb: Annotated[Count, Field(ge=10, le=MOST_DISK_GB), AlsoCalled("bootDisk", "bootDiskSizeGb")] = (
        BOOT_DISK_GB
    )
    """Boot disk; default 100."""
    disk_type: Text | None = None
    """Kind of boot disk; default pd-balanced, or hyperdisk-balanced for the machines that take nothing else."""
    local_ssd_count: Count = 0
    """Local SSDs of 375 GB for ephemeral storage, on machine types to which they are added."""
    secondary_boot_disks: SecondaryBootDisks = ()
    """Disks with container images or data, with image streaming: of the boot disk's type, as large as their image, and
    not counted by `cost`. A change replaces the pool.
    """
    fast_socket: Flag = False
    """Whether the nodes have NCCL Fast Socket, which speeds up traffic between GPUs of several nodes over the nodes'
    network; on pools with GPUs. Source: https://cloud.google.com/kubernetes-engine/docs/how-to/nccl-fast-socket."""
    kubelet_config: KubeletConfig | None = None
    """How nodes assign CPUs and memory, by NUMA node; default: as GKE does. A change recreates the nodes."""
    max_pods_per_node: Annotated[Count, Field(ge=8, le=256)] | None = None
    """Default: GKE's, 110."""
    labels: Mapping[LabelKey, LabelValue] = Field(default_factory=dict)
    """Node labels beyond GKE's own."""
    taints: ListOf[Taint] = ()
    """Node taints beyond those that GKE sets."""
    compact_placement: Annotated[Flag, AlsoCalled("placement", "placementPolicy")] = False
    """Whether the nodes stand close together; one zone only."""
    tpu_topology: Text | None = None
    """Shape of the TPU slice, such as 2x2x4; default: that of one node. A pool of several nodes is one slice of
    nodeCount, or totalMaxNodeCount, nodes. A change replaces the pool.
    """
    accelerator_topology_mode: Literal["PROVISION_ONLY"] | None = None
    """PROVISION_ONLY: the pool is a cube of TPU7x, 4x4x4, that GKE's slice controller joins with others to the slices
    that jobs request, or divides. Needs the sub-block of a reservation in All Capacity mode, and `sliceController` on
    the cluster. Default: the pool is one slice. A change replaces the pool. Source:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/use-gke-dynamic-slicing."""
    accelerator_network_profile: Literal["auto"] | None = None
    """auto: GKE creates the networks between nodes for GPUs of A3 Mega and newer machines, and for v6e and v7 TPUs; one
    zone only, and GKE 1.34.1-gke.1829001 or newer. Default: none, only the node's network. A change replaces the pool.
    """
    accelerator_networks: PoolNetworks | None = None
    """Networks of your own, or that the fleet creates, instead of those of a profile. Default: none. A change replaces
    the pool."""
    nccl_plugin: Flag | None = None
    """Whether the fleet installs Google's NCCL plugin for these networks on the nodes, with the device injector;
    default: with acceleratorNetworks, unless the pool exists."""
    management: Annotated[PoolManagement, AlsoCalled("autoRepair", "autoUpgrade")] = Field(
        default_factory=PoolManagement
    )
    """Repair and upgrades."""
    upgrade: Annotated[PoolUpgrade | None, AlsoCalled("maxSurge", "surge", "upgradeSettings")] = None
    """How nodes are upgraded, but not of flex-start; default: one additional node at a time, with a reservation one
    node less.
    """
    capacity: Annotated[
        Capacity,
        AlsoCalled(
            "flexStart",
            "maxRunDuration",
            "preemptible",
            "provisioningModel",
            "queuedProvisioning",
            "reservation",
            "reservationAffinity",
            "reservationName",
            "spot",
        ),
    ] = Field(default_factory=lambda: OnDemand(type="onDemand"))
    """Where the nodes come from; default: on demand."""
    deletion_protection: Flag | None = None
    """Whether Pulumi refuses to delete or replace the pool, with its nodes and their jobs; default: as its cluster. To
    change what GKE cannot change in place, set it to false, run `pulumi up`, then change it."""
    per_cluster: Mapping[Text, PoolOverride] = Field(default_factory=dict)
    """Differences on single clusters."""

    @property
    def upgrades(self) -> PoolUpgrade | None:
        """How nodes are upgraded, the default filled in; None with flex-start.

        A pool that fills its reservation has no machine for a node more: such an upgrade would never end.
        """
        if isinstance(self.capacity, FlexStart):
            return None
        if self.upgrade is not None:
            return self.upgrade
        if isinstance(self.capacity, Reserved | Calendar):
            return PoolUpgrade(max_surge=0, max_unavailable=1)
        return PoolUpgrade()

    @property
    def repairs(self) -> bool:
        """Whether GKE replaces broken nodes, the default filled in."""
        repair = self.management.auto_repair
        return not isinstance(self.capacity, FlexStart) if repair is None else repair

    @property
    def closed(self) -> bool:
        """Whether it waits for its calendar reservation, and has no nodes until then."""
        return isinstance(self.capacity, Calendar) and not self.capacity.active

    def on(self, cluster: str) -> Self:
        """The pool as it is on `cluster`; a fixed size there replaces autoscaling here, and the other way round."""
        other = self.per_cluster.get(cluster)
        if other is None:
            return self
        changes: dict[str, Any] = {name: value for name, value in other.__dict__.items() if value is not None}
        if "node_count" in changes and "autoscaling" not in changes:
            changes |= {"autoscaling": None, "initial_node_count": changes.get("initial_node_count")}
        elif "autoscaling" in changes and "node_count" not in changes:
            changes["node_count"] = None
        pool = self.model_copy(update={**changes, "per_cluster": {}})
        for unread in type(other).model_fields.keys() - other.__dict__.keys():
            pool.__dict__.pop(unread, None)
        return pool
