"""Prints the shape of the given Google Cloud resources' properties, read from the installed pulumi-gcp, as JSON.

Run by path with a folder of site-packages and resource tokens; see `gcp_schema` for what the shapes mean. On its own,
so that it imports the SDK and nothing of this project.
"""

from __future__ import annotations

import collections.abc
import importlib
import json
import sys
import typing
from collections.abc import Sequence
from typing import Any, Final

PROVIDER_TOKEN: Final = "pulumi:providers:gcp"  # noqa: S105  (a type token)
"""Type token of the provider itself."""
SCALARS: Final = frozenset({"str", "int", "float", "bool"})
"""Types that are no further looked into."""


def read_sdk(tokens: Sequence[str]) -> dict[str, Any]:
    """Inputs and outputs of each token, and the nested types they use."""
    from pulumi import _types as sdk_types

    types: dict[str, dict[str, Any]] = {}

    def shape_of(hint: Any) -> Any:
        hint = sdk_types.unwrap_type(hint)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (list, collections.abc.Sequence):
            return ["list", shape_of(arguments[0])]
        if origin in (dict, collections.abc.Mapping):
            return ["map", shape_of(arguments[1])]
        if isinstance(hint, type) and sdk_types.is_input_type(hint):
            if hint.__name__ not in types:
                types[hint.__name__] = {}
                types[hint.__name__] = {key: shape_of(kind) for key, kind in sdk_types.input_type_types(hint).items()}
            return ["object", hint.__name__]
        return hint.__name__ if isinstance(hint, type) and hint.__name__ in SCALARS else "any"

    resources = {}
    for token in tokens:
        package, name = place_of(token)
        cls = getattr(importlib.import_module(package), name)
        arguments_class = getattr(sys.modules[cls.__module__], f"{name}Args")
        resources[token] = {
            "inputs": {key: shape_of(kind) for key, kind in sdk_types.input_type_types(arguments_class).items()},
            "outputs": dict.fromkeys(sorted(sdk_types.resource_py_to_pulumi_names(cls).values()), "any"),
        }
    return {"resources": resources, "types": types}


def place_of(token: str) -> tuple[str, str]:
    """Python package and class of a resource token."""
    if token == PROVIDER_TOKEN:
        return "pulumi_gcp", "Provider"
    _, module, name = token.split(":")
    return f"pulumi_gcp.{module.partition('/')[0]}", name


def main(arguments: list[str]) -> int:
    """Prints the schema; arguments are the folder of site-packages and the tokens."""
    sys.path.append(arguments[0])
    print(json.dumps(read_sdk(arguments[1:])))
    return 0


if __name__ == "__main__":
    # The folder of this file is no place for the SDK's imports to be found in.
    sys.path.pop(0)
    sys.exit(main(sys.argv[1:]))
