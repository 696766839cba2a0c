"""A part of a fleet in Google Cloud that has no component of its own."""

from typing import Any

import pulumi

from kueue_fleet.component import Component
from kueue_fleet.gcp.declare import declare
from kueue_fleet.google.parts import CloudPart


class CloudResources(Component):
    """The resources of a part of a fleet, in their order."""

    resources: "dict[str, Any]"
    """What is made, by kind and Pulumi name."""

    def __init__(
        self,
        part: CloudPart,
        name: str,
        *,
        project: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
        **arguments: Any,
    ) -> None:
        """Declare what the part has with these arguments of it."""
        super().__init__(name, opts)
        self.resources = declare(self, part.resources(name, project=project, **arguments))
        self._give_out()
