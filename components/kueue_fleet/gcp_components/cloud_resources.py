"""A part of a fleet in Google Cloud that has no component of its own."""

from typing import Any

import pulumi

from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.component import Component
from kueue_fleet.gcp_components.declare import declare
from kueue_fleet.google.parts import CloudPart


class _CloudResources(Component):
    """The resources of a part, in their order."""

    pulumi_type = f"{PRODUCT}:index:CloudResources"


def declare_part(
    part: CloudPart,
    name: str,
    *,
    project: pulumi.Input[str],
    opts: pulumi.ResourceOptions | None = None,
    **arguments: Any,
) -> Component:
    """The component of a part, which has these arguments."""
    component = _CloudResources(name, opts)
    declare(component, part.resources(name, project=project, **arguments))
    component._give_out()
    return component
