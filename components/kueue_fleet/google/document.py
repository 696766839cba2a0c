"""Resources of Google Cloud as a program in Pulumi YAML declares them, for people and for checks without Pulumi."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pydantic.alias_generators import to_camel

from kueue_fleet.google.resource import CloudResource, filled, rooted

_NO_OPTIONS = {"type", "name", "properties", "needs", "read"}
_KEYS = {"deleted_with", "replace_with"}


def document(resource: CloudResource) -> dict[str, Any]:
    """Type, name, properties and options of a resource; of one that exists, its id."""
    data = {"type": resource.type, "name": resource.name}
    if resource.read is not None:
        return {**data, "get": {"id": resource.read}}
    options: dict[str, Any] = {"dependsOn": _references(resource.needs)}
    for field in fields(resource):
        if field.name not in _NO_OPTIONS:
            value = getattr(resource, field.name)
            options[to_camel(field.name)] = _references(value) if field.name in _KEYS else _escape(value)
    options_there = {option: value for option, value in options.items() if value not in (None, [])}
    return {
        **data,
        "properties": _escape(resource.properties),
        **({"options": options_there} if options_there else {}),
    }


def _references(keys: Any) -> Any:
    return [_references(key) for key in keys] if isinstance(keys, tuple) else keys and f"${{{rooted(keys)}}}"


def _escape(value: Any) -> Any:
    """Plain JSON, in which a text that looks like an expression is none."""
    return filled(value, str, leaf=lambda each: each.replace("${", "$${") if isinstance(each, str) else each)
