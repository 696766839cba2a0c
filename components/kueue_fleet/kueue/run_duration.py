"""The refusal of jobs that ask DWS for longer than it grants, on one cluster.

In: objects that `spec.run_duration_policy` rendered. Out: the same, in order.
"""

from collections.abc import Sequence

import pulumi

from kueue_fleet.kueue.component import declare_object
from kueue_fleet.kueue.objects import KubernetesObject
from kueue_fleet.spec import Manifest


class RunDurationPolicy(pulumi.ComponentResource):
    """A ValidatingAdmissionPolicy and its binding."""

    objects: list[KubernetesObject]
    """The objects, in the order in which they were given."""

    def __init__(self, name: str, objects: Sequence[Manifest], *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the objects, each after the one before it."""
        super().__init__("kueue-fleet:index:RunDurationPolicy", name, None, opts)
        self.objects = []
        for manifest in objects:
            self.objects.append(
                declare_object(
                    self,
                    f"{name}/{manifest['kind']}",
                    manifest,
                    deleted_with=opts.deleted_with if opts else None,
                    depends_on=self.objects[-1:],
                )
            )
        self.register_outputs({})
