"""The argument types of pulumi-gcp, pulumi-docker-build and pulumi-kubernetes: which properties they have."""

from __future__ import annotations

import importlib
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi
from pulumi import _types

import kueue_fleet.gcp_components
import kueue_fleet.google
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL


def component_types() -> set[str]:
    """Types of the resources that the components on Google Cloud declare, by what their source and `google` name."""
    result = {CLUSTER, NODE_POOL}
    for path in Path(kueue_fleet.google.__path__[0]).glob("*.py"):
        if "CloudResource(" in (text := path.read_text(encoding="utf-8")):
            named = vars(importlib.import_module(f"kueue_fleet.google.{path.stem}")).values()
            values = [item for value in named for item in (value if isinstance(value, tuple) else [value])]
            tokens = {*re.findall(r'"([^"\s]*)"', text), *(value for value in values if isinstance(value, str))}
            result |= {token for token in tokens if re.fullmatch(r"gcp:\w+/\w+:\w+", token)}
    for path in Path(kueue_fleet.gcp_components.__path__[0]).glob("*.py"):
        for module, name in re.findall(r"\b(gcp\.\w+|docker_build)\.([A-Z]\w+)[(.]", path.read_text(encoding="utf-8")):
            entry = getattr(importlib.import_module(f"pulumi_{module}"), name)
            if issubclass(entry, pulumi.CustomResource):
                result.add(entry.pulumi_type)
    return result


def sdk_arguments(type_token: str) -> type:
    """The SDK's argument class for a type: `gcp:container/nodePool:NodePool` -> `container.NodePoolArgs`.

    From the package and not from the module in it: what is imported before its package is missing there ever after.
    """
    package, place, name = type_token.split(":")
    path = {
        "gcp": f"pulumi_gcp.{place.partition('/')[0].lower()}",
        "docker-build": "pulumi_docker_build",
        "kubernetes": "pulumi_kubernetes.helm.v3",
    }[package]
    result = getattr(importlib.import_module(path), f"{name}Args")
    assert isinstance(result, type)
    return result


def nested_arguments(annotation: Any) -> type | None:
    """The SDK's argument class somewhere inside a type annotation, if there is one."""
    if isinstance(annotation, type) and _types.is_input_type(annotation):
        return annotation
    for part in typing.get_args(annotation):
        result = nested_arguments(part)
        if result is not None:
            return result
    return None


def unknown_properties(value: Any, arguments: type, path: str) -> Iterator[str]:
    """Paths in `value` that `arguments` does not have."""
    known = _types.input_type_types(arguments)
    for key, part in value.items():
        here = f"{path}.{key}"
        if key not in known:
            yield here
            continue
        nested = nested_arguments(known[key])
        for item in part if isinstance(part, list) else [part]:
            if isinstance(item, Mapping) and nested is not None:
                yield from unknown_properties(item, nested, here)
