"""What the program asked for, remembered for the rules about several resources together.

`SeenInputs`, by URN. A stack policy gets outputs, and in the first preview of a cluster its Kubernetes objects have
none: their provider cannot be configured before there is a cluster, so Pulumi does not ask it. Inputs are there in a
preview, in an update and in a state alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pulumi_policy import EnforcementLevel, ReportViolation, ResourceValidationArgs, ResourceValidationPolicy

from kueue_fleet_policies.values import plain

SeenInputs = dict[str, Mapping[str, Any]]
"""Inputs as plain data, by URN."""

REMEMBERING: Final = "remember-inputs"
"""Name of the policy that takes note of inputs."""


def remember_inputs(seen: SeenInputs) -> ResourceValidationPolicy:
    """A policy that judges nothing: it writes the inputs of each resource into `seen`."""

    def validate(args: ResourceValidationArgs, _: ReportViolation) -> None:
        seen[args.urn] = plain(args.props)

    return ResourceValidationPolicy(
        name=REMEMBERING,
        description="Remembers inputs for the rules about several resources together; reports nothing.",
        validate=validate,
        enforcement_level=EnforcementLevel.ADVISORY,
    )
