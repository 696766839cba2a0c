"""The reference of the fleet file, in Markdown, from the JSON schema: every section, field, type, default and limit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kueue_fleet.fleet_file.schema import json_schema

Schema = Mapping[str, Any]
"""A JSON schema, or a part of one."""

_PREFIX: Final = "#/$defs/"
_INTRODUCTION: Final = """\
# The fleet file

Every field, from the models themselves; `kueue-fleet schema --markdown` prints this page. In a Pulumi stack file the
fleet is the value of `kueue-fleet:fleet` below `config`; a file may also hold nothing but the fleet. Fields marked
**required** have no default. An unknown field is an error. What a schema cannot say, `kueue-fleet check` does.

`kueue-fleet:rehearsal`, below `config` too, is read by `kueue-fleet rehearse` alone: see RehearsalSection at the end.
"""


def reference_markdown() -> str:
    """The page, beginning with the fleet itself, each model once, in the order in which the fleet leads to it."""
    definitions: Mapping[str, Schema] = json_schema()["$defs"]
    parts = [_INTRODUCTION]
    parts += [_section(name, definitions[name]) for name in _order(definitions)]
    return "\n".join(parts)


def _order(definitions: Mapping[str, Schema]) -> list[str]:
    names_in_order: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in names_in_order or "properties" not in definitions[name]:
            return
        names_in_order[name] = None
        for field in definitions[name]["properties"].values():
            for reference in _references(field):
                visit(reference)

    visit("FleetSpec")
    visit("RehearsalSection")
    return list(names_in_order)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref":
                yield str(value).removeprefix(_PREFIX)
            elif key != "mapping":
                yield from _references(value)
    elif isinstance(schema, list):
        for entry in schema:
            yield from _references(entry)


def _section(name: str, definition: Schema) -> str:
    required = set(definition.get("required", ()))
    rows = [
        f"| `{field}` | {_type(schema)} | {_default(schema, required=field in required)} | {_text(schema)} |"
        for field, schema in definition["properties"].items()
    ]
    head = [
        f"## {name}",
        "",
        definition.get("description", ""),
        "",
        "| field | type | default | |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def _type(schema: Schema) -> str:
    for key in ("anyOf", "oneOf"):
        if key in schema:
            kinds = [_type(choice) for choice in schema[key] if choice.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(_PREFIX)
        return f"[{name}](#{name.lower()})"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}{_limits(schema, 'minItems', 'maxItems')}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"map to {_type(values)}" if isinstance(values, Mapping) and values else "map"
    if kind in ("integer", "number"):
        return f"{'whole number' if kind == 'integer' else 'number'}{_limits(schema, 'minimum', 'maximum')}"
    return {"string": "text", "boolean": "true or false"}.get(str(kind), "text or number")


def _limits(schema: Schema, least: str, most: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if high is not None and high >= 2**31 - 1:
        high = None
    if low is not None and high is not None:
        return f", {low} to {high}"
    if low is not None:
        return f", at least {low}"
    return f", at most {high}" if high is not None else ""


def _default(schema: Schema, *, required: bool) -> str:
    if required:
        return "**required**"
    if isinstance(schema.get("default", {}), dict | list):
        return ""
    return f"`{json.dumps(schema['default'])}`"


def _text(schema: Schema) -> str:
    return str(schema.get("description", "")).replace("\n", " ").replace("|", "\\|")
