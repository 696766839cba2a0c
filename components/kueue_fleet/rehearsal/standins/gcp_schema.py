"""The property names of Google Cloud resources, as the installed pulumi-gcp SDK has them.

`load_schema` has a child process read them (`gcp_sdk_types`), once per SDK version, and keeps the result in the cache
folder: the SDK's types cost 0.7 s and 100 MiB to import, which the provider then does not carry. Out: `Schema`, and
`check_properties`, which names the nearest known property.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kueue_fleet.rehearsal.paths import cache_dir
from kueue_fleet.rehearsal.standins.property_values import UNKNOWN, Asset, Secret, Value

PROVIDER_TOKEN: Final = "pulumi:providers:gcp"  # noqa: S105  (a type token)
"""Type token of the provider itself."""
READER: Final = Path(__file__).with_name("gcp_sdk_types.py")
"""Script that reads the SDK's types in a process of its own."""
SCALARS: Final = {"str": "a string", "int": "a whole number", "float": "a number", "bool": "true or false"}
"""How a message calls the types."""
SCHEMA_SECONDS: Final = 120
"""Longest that the SDK takes to be read."""

Shape = Any
"""`str`, `int`, `float`, `bool`, `any`; `["list", shape]`, `["map", shape]`, `["object", type name]`."""


@dataclass(frozen=True, slots=True)
class Schema:
    """What resources and their nested objects are called."""

    resources: Mapping[str, Mapping[str, Mapping[str, Shape]]]
    """By token: `inputs`, and `outputs` (everything that can be read, inputs included)."""
    types: Mapping[str, Mapping[str, Shape]]
    """The nested objects, by their name in the SDK."""

    def inputs(self, token: str) -> Mapping[str, Shape]:
        """The inputs of a resource."""
        return self.resources[token]["inputs"]


def load_schema(tokens: Sequence[str], version: str) -> Schema:
    """The schema of `tokens` for this version of the SDK. Raises RuntimeError when it does not have one of them."""
    key = hashlib.sha256(json.dumps([version, sorted(tokens), SCALARS]).encode()).hexdigest()[:16]
    path = cache_dir() / "gcp-schema" / f"{version}-{key}.json"
    if not path.is_file():
        site_packages = next(entry for entry in sys.path if entry.endswith("site-packages"))
        command = [sys.executable, "-I", "-S", str(READER), site_packages, *tokens]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SCHEMA_SECONDS)
        if done.returncode:
            raise RuntimeError(f"the types of pulumi-gcp {version} cannot be read: {done.stderr.strip()[-1000:]}")
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_suffix(f".{os.getpid()}")
        written.write_text(done.stdout, encoding="utf-8")
        written.replace(path)
    loaded = json.loads(path.read_text(encoding="utf-8"))
    return Schema(loaded["resources"], loaded["types"])


def check_properties(schema: Schema, shapes: Mapping[str, Shape], given: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Path and reason of everything in `given` that the SDK's types do not have."""
    return list(_object_problems(schema, shapes, given, ""))


def _object_problems(
    schema: Schema, shapes: Mapping[str, Shape], given: Mapping[str, Value], path: str
) -> Iterator[tuple[str, str]]:
    for key, value in given.items():
        if key == "__defaults":
            continue
        here = f"{path}.{key}" if path else key
        if key in shapes:
            yield from _value_problems(schema, shapes[key], value, here)
            continue
        near = difflib.get_close_matches(key, shapes, n=1, cutoff=0.0)
        hint = f"; did you mean {near[0]}?" if near else ""
        yield here, f"{here}: pulumi-gcp has no such property{hint}"


def _value_problems(schema: Schema, shape: Shape, value: Value, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Secret):
        yield from _value_problems(schema, shape, value.value, path)
    elif value is UNKNOWN or value is None or shape == "any" or isinstance(value, Asset):
        return
    elif isinstance(shape, str):
        if not _is_scalar(shape, value):
            yield path, f"{path}: {type(value).__name__} given; it is {SCALARS[shape]}"
    elif shape[0] == "list":
        if not isinstance(value, list):
            yield path, f"{path}: {type(value).__name__} given; it is a list"
            return
        for index, item in enumerate(value):
            yield from _value_problems(schema, shape[1], item, f"{path}[{index}]")
    elif not isinstance(value, dict):
        yield path, f"{path}: {type(value).__name__} given; it is an object"
    elif shape[0] == "map":
        for key, item in value.items():
            yield from _value_problems(schema, shape[1], item, f"{path}.{key}")
    else:
        yield from _object_problems(schema, schema.types[shape[1]], value, path)


def _is_scalar(shape: str, value: Value) -> bool:
    if isinstance(value, dict | list):
        return False
    if shape in ("int", "float"):
        # The provider takes numbers as text, and text as numbers.
        return not isinstance(value, bool) and _is_number(value)
    if shape == "bool":
        return isinstance(value, bool) or value in ("true", "false")
    return True


def _is_number(value: Value) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
