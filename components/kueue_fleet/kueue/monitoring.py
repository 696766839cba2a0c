"""How managed Prometheus reads Kueue's metrics on one cluster.

In: objects that `spec.monitoring` rendered. Out: the same, in order. GKE brings the definition of PodMonitoring to
every cluster with managed Prometheus. Prometheus and Grafana inside the cluster are in `kueue.install`.
"""

from collections.abc import Sequence

import pulumi

from kueue_fleet.kueue.component import declare_object
from kueue_fleet.kueue.objects import KubernetesObject
from kueue_fleet.spec import Manifest


class ManagedMonitoring(pulumi.ComponentResource):
    """An account that may read Kueue's metrics, and a PodMonitoring that uses it."""

    objects: list[KubernetesObject]
    """The objects, in the order in which they were given."""

    def __init__(self, name: str, objects: Sequence[Manifest], *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the objects, each after the one before it."""
        super().__init__("kueue-fleet:index:ManagedMonitoring", name, None, opts)
        self.objects = []
        for manifest in objects:
            self.objects.append(
                declare_object(
                    self,
                    f"{name}/{manifest['kind']}",
                    manifest,
                    deleted_with=opts.deleted_with if opts else None,
                    depends_on=self.objects[-1:],
                    replace_on_changes=["roleRef"] if "roleRef" in manifest else [],
                )
            )
        self.register_outputs({})
