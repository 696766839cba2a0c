"""What the stand-in adds to `google.resource_kinds`: what it refuses, and what of an answer is secret."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any, Final

from kueue_fleet.google import resource_kinds
from kueue_fleet.google.resource_types import CLUSTER
from kueue_rehearsal.standins.plugin_errors import PluginError
from kueue_rehearsal.standins.property_values import Secret, Value

NAME_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
"""Characters of the end of a made-up name."""
RANDOM_CHARACTERS: Final = 8
"""Characters that a made-up name has at its end."""


def completed(token: str, inputs: Mapping[str, Value], where: Mapping[str, Any]) -> dict[str, Value]:
    """See `resource_kinds.completed`. Raises PluginError when project, region or zone of the id is given nowhere."""
    filled_in = resource_kinds.completed(token, inputs, where)
    for name in ("project", "region", "zone", "location"):
        if f"{{{name}}}" in resource_kinds.kind_of(token).id_template and name not in filled_in:
            where_else = "the provider's region" if name == "location" else "the provider"
            raise PluginError(f"{name}: required field is not set; set it on the resource, or {where_else}")
    return filled_in


def check_version(inputs: Mapping[str, Any], running: str) -> None:
    """Raises PluginError when the rehearsal's Kubernetes is older than `minMasterVersion`."""
    wanted_version = str(inputs.get("minMasterVersion") or "")
    numbers = re.match(r"(\d+)\.(\d+)", wanted_version)
    here = re.match(r"v?(\d+)\.(\d+)", running)
    if numbers and here and tuple(map(int, numbers.groups())) > tuple(map(int, here.groups())):
        raise PluginError(f"minMasterVersion: {wanted_version} wanted, a rehearsal has Kubernetes {running}; lower it")


def answered(
    token: str, properties: Mapping[str, Any], resource_id: str, control_plane: Mapping[str, Any]
) -> dict[str, Value]:
    """See `resource_kinds.answered`."""
    state = resource_kinds.answered(token, properties, resource_id, control_plane)
    if token == CLUSTER:
        state["masterAuth"] = {**state["masterAuth"], "clientKey": Secret(state["masterAuth"]["clientKey"])}
    return state


def generated_name(urn_name: str, random_seed: bytes) -> str:
    """The name for an object that was given none, as Pulumi's own providers make it: the resource's name and eight
    characters.

    The same seed gives the same name, so that a preview shows the name the update will use; an empty seed gives any.
    """
    # Names, not secrets: with a seed they must come out the same.
    chooser = random.Random(random_seed) if random_seed else random.SystemRandom()  # noqa: S311
    return f"{urn_name}-{''.join(chooser.choices(NAME_ALPHABET, k=RANDOM_CHARACTERS))}"
