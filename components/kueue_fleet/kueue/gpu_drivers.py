"""GPU drivers on nodes on which GKE installs none.

GKE installs drivers by itself on every pool that does not say INSTALLATION_DISABLED, and on Autopilot.
"""

import pulumi

from kueue_fleet.kueue.applied_objects import KubernetesObject
from kueue_fleet.kueue.component import declare_object
from kueue_fleet.kueue_api import Manifest


class GpuDrivers(pulumi.ComponentResource):
    """The driver installer, on every node with GPUs that has no driver from GKE."""

    daemon_set: KubernetesObject
    """The DaemonSet."""

    def __init__(self, name: str, spec: Manifest, *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the DaemonSet `spec`."""
        super().__init__("kueue-fleet:index:GpuDrivers", name, None, opts)
        self.daemon_set = declare_object(self, name, spec, deleted_with=opts.deleted_with if opts else None)
        self.register_outputs({})
