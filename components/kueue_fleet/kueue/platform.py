"""What is on one cluster beside Kueue and its queues. Grafana itself is in `kueue.install`."""

from collections.abc import Sequence

import pulumi

from kueue_admission.forms.manifest import Manifest, WholeManifest
from kueue_fleet.component import judge
from kueue_fleet.kueue.applied_objects import KubernetesObject
from kueue_fleet.kueue.component import ACCOUNT_KINDS, Component, OrderedObjects, declare_object, full_label


class ManagedMonitoring(OrderedObjects):
    """How managed Prometheus reads Kueue's metrics: an account that may, and a PodMonitoring that uses it.

    GKE brings the definition of PodMonitoring to every cluster with managed Prometheus.
    """

    pulumi_type = "kueue-fleet:index:ManagedMonitoring"
    takes = (
        *("monitoring.googleapis.com/PodMonitoring", "monitoring.googleapis.com/ClusterPodMonitoring"),
        *ACCOUNT_KINDS,
    )


class GrafanaDashboard(OrderedObjects):
    """The fleet's dashboard for a Grafana in the cluster, the fleet's own or another one, as a ConfigMap."""

    pulumi_type = "kueue-fleet:index:GrafanaDashboard"
    takes = ("ConfigMap",)


class RunDurationPolicy(OrderedObjects):
    """The refusal of jobs that ask DWS for longer than it grants: a ValidatingAdmissionPolicy and its binding."""

    pulumi_type = "kueue-fleet:index:RunDurationPolicy"
    takes = (
        "admissionregistration.k8s.io/ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding",
    )


class ComputeClasses(OrderedObjects):
    """Custom compute classes, by which GKE makes nodes; it brings their definition to every cluster.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes.
    """

    pulumi_type = "kueue-fleet:index:ComputeClasses"
    takes = ("cloud.google.com/ComputeClass",)


class NodeNetworks(OrderedObjects):
    """The networks of nodes' further network cards, by the names that pods ask for them; GKE brings their definitions
    to clusters with several networks."""

    pulumi_type = "kueue-fleet:index:NodeNetworks"
    takes = ("networking.gke.io/Network", "networking.gke.io/GKENetworkParamSet")


class GpuDirect(OrderedObjects):
    """DaemonSets that put Google's NCCL plugins on nodes, and what hands devices to pods."""

    pulumi_type = "kueue-fleet:index:GpuDirect"
    takes = ("apps/DaemonSet",)


class TeamVolumes(OrderedObjects):
    """The claims of teams with the volumes that they are bound to, and where checkpoints are kept."""

    pulumi_type = "kueue-fleet:index:TeamVolumes"
    takes = (
        "PersistentVolume",
        "PersistentVolumeClaim",
        "checkpointing.gke.io/CheckpointConfiguration",
    )

    def _labels(self, objects: Sequence[Manifest]) -> list[str]:
        return [full_label(each) for each in objects]


class GpuDrivers(Component):
    """The driver installer, on every node with GPUs that has no driver from GKE.

    GKE installs drivers on every pool that does not say INSTALLATION_DISABLED, and on Autopilot.
    """

    pulumi_type = "kueue-fleet:index:GpuDrivers"
    takes = ("apps/DaemonSet",)

    daemon_set: KubernetesObject
    """The DaemonSet."""

    def __init__(self, name: str, spec: WholeManifest, *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the DaemonSet `spec`. Raises SpecError if it is something else."""
        judge(self._others(f"{name}.spec", [spec]), opts)
        super().__init__(name, opts)
        self.daemon_set = declare_object(self, name, spec)
        self._give_out()
