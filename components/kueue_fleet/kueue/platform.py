"""What is on one cluster beside Kueue and its queues. Prometheus and Grafana in the cluster are in `kueue.install`."""

from collections.abc import Sequence

import pulumi

from kueue_admission.forms.manifest import Manifest, WholeManifest
from kueue_fleet.kueue.applied_objects import KubernetesObject
from kueue_fleet.kueue.component import Component, OrderedObjects, declare_object, full_label


class ManagedMonitoring(OrderedObjects):
    """How managed Prometheus reads Kueue's metrics: an account that may, and a PodMonitoring that uses it.

    GKE brings the definition of PodMonitoring to every cluster with managed Prometheus.
    """

    pulumi_type = "kueue-fleet:index:ManagedMonitoring"


class RunDurationPolicy(OrderedObjects):
    """The refusal of jobs that ask DWS for longer than it grants: a ValidatingAdmissionPolicy and its binding."""

    pulumi_type = "kueue-fleet:index:RunDurationPolicy"


class ComputeClasses(OrderedObjects):
    """Custom compute classes, by which GKE makes nodes; it brings their definition to every cluster.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes.
    """

    pulumi_type = "kueue-fleet:index:ComputeClasses"


class NodeNetworks(OrderedObjects):
    """The networks of nodes' further network cards, by the names that pods ask for them; GKE brings their definitions
    to clusters with several networks."""

    pulumi_type = "kueue-fleet:index:NodeNetworks"


class GpuDirect(OrderedObjects):
    """DaemonSets that put Google's NCCL plugins on nodes, and what hands devices to pods."""

    pulumi_type = "kueue-fleet:index:GpuDirect"


class TeamVolumes(OrderedObjects):
    """The claims of teams with the volumes that they are bound to, and where checkpoints are kept."""

    pulumi_type = "kueue-fleet:index:TeamVolumes"

    def _labels(self, objects: Sequence[Manifest]) -> list[str]:
        return [full_label(each) for each in objects]


class GpuDrivers(Component):
    """The driver installer, on every node with GPUs that has no driver from GKE.

    GKE installs drivers on every pool that does not say INSTALLATION_DISABLED, and on Autopilot.
    """

    pulumi_type = "kueue-fleet:index:GpuDrivers"

    daemon_set: KubernetesObject
    """The DaemonSet."""

    def __init__(self, name: str, spec: WholeManifest, *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the DaemonSet `spec`."""
        super().__init__(name, opts)
        self.daemon_set = declare_object(self, name, spec)
        self._give_out()
