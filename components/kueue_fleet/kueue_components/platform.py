"""What is on one cluster beside Kueue and its queues. Grafana itself is in `kueue.install`."""

import pulumi

from kueue_fleet.component import judge
from kueue_fleet.kueue_components.applied_objects import KubernetesObject
from kueue_fleet.kueue_components.component import Component, OrderedObjects, WholeManifest, declare_object
from kueue_fleet.objects.parts import PARTS


class ManagedMonitoring(OrderedObjects):
    """How managed Prometheus reads Kueue's metrics: an account that may, and a PodMonitoring that uses it.

    GKE brings the definition of PodMonitoring to every cluster with managed Prometheus.
    """

    part = PARTS["monitoring"]


class GrafanaDashboard(OrderedObjects):
    """The fleet's dashboard for a Grafana in the cluster, the fleet's own or another one, as a ConfigMap."""

    part = PARTS["grafana-dashboard"]


class RunDurationPolicy(OrderedObjects):
    """The refusal of jobs that ask DWS for longer than it grants: a ValidatingAdmissionPolicy and its binding."""

    part = PARTS["run-duration"]


class ComputeClasses(OrderedObjects):
    """Custom compute classes, by which GKE makes nodes; it brings their definition to every cluster.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes.
    """

    part = PARTS["compute-classes"]


class NodeNetworks(OrderedObjects):
    """The networks of nodes' further network cards, by the names that pods ask for them; GKE brings their definitions
    to clusters with several networks."""

    part = PARTS["node-networks"]


class GpuDirect(OrderedObjects):
    """DaemonSets that put Google's NCCL plugins on nodes, and what hands devices to pods."""

    part = PARTS["gpu-direct"]


class TeamVolumes(OrderedObjects):
    """The claims of teams with the volumes that they are bound to, and where checkpoints are kept."""

    part = PARTS["storage"]


class GpuDrivers(Component):
    """The driver installer, on every node with GPUs that has no driver from GKE.

    GKE installs drivers on every pool that does not say INSTALLATION_DISABLED, and on Autopilot.
    """

    takes = PARTS["gpu-drivers"].kinds

    daemon_set: KubernetesObject
    """The DaemonSet."""

    def __init__(self, name: str, spec: WholeManifest, *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the DaemonSet `spec`. Raises SpecError if it is something else."""
        judge(self._others(f"{name}.spec", [spec]), opts)
        super().__init__(name, opts)
        self.daemon_set = declare_object(self, name, spec)
        self._give_out()
