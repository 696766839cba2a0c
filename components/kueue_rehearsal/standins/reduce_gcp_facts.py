"""Writes `google/provider_facts.json`: what the Google provider's schema says, one line for each property; and, from
the Pulumi schema of the provider docker-build, `docker_build_facts.json`.

Left out, because nothing here decides by them: Terraform's own names, timeouts, whether a property is deprecated or
sensitive, and `forceNewFrom`. That one says that a block around the property replaces the resource. It does so when
it comes or goes, which is in the line of the block; a property of it that only changes its value updates.

    python -m kueue_rehearsal.standins.reduce_gcp_facts facts.json "terraform-provider-google-beta 8.0, 2026-08"
    python -m kueue_rehearsal.standins.reduce_gcp_facts schema.json "pulumi-docker-build 0.0.22, its schema.json"
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kueue_fleet import google
from kueue_rehearsal.standins.docker_build_provider import IMAGE

DATA = Path(*google.__path__, "provider_facts.json")
"""The facts of Google's provider."""
IMAGE_DATA = Path(__file__).with_name("docker_build_facts.json")
"""The facts of the provider docker-build, in the same notation."""

_SCALARS = ("string", "bool", "int", "float")
_PULUMI_SCALARS = {"string": "string", "boolean": "bool", "integer": "int", "number": "float"}


def reduced(facts: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The content of the data file. Raises ValueError for a fact that the notation cannot express."""
    groups: dict[tuple[str, ...], str] = {}
    resources = {
        token: {path: " ".join(_words(path, fact, groups)) for path, fact in sorted(facts[token]["properties"].items())}
        for token in sorted(facts)
    }
    group_names = {name: list(paths) for paths, name in groups.items()}
    return {"source": source, "groups": group_names, "resources": resources}


def _words(path: str, fact: Mapping[str, Any], groups: dict[tuple[str, ...], str]) -> Iterator[str]:
    yield _type(path, fact)
    yield from (word for word in ("required", "optional", "computed") if fact.get(word))
    if fact.get("forceNew"):
        yield "replaces"
    if fact.get("diffSuppress"):
        yield "suppressed"
    if fact.get("validated"):
        yield "validated"
    limits = {"min": "min", "max": "max", "minItems": "least"}
    if not fact.get("maxItemsOneFlattened"):
        limits["maxItems"] = "most"
    yield from (f"{word}={fact[key]}" for key, word in limits.items() if key in fact)
    if "default" in fact:
        yield f"default={json.dumps(fact['default'])}"
    if "allowed" in fact:
        yield f"in={'|'.join(fact['allowed'])}"
    for key, word in (("conflictsWith", "conflicts"), ("requiredWith", "with")):
        if key in fact:
            yield f"{word}={'|'.join(fact[key])}"
    for key, word in (("exactlyOneOf", "one-of"), ("atLeastOneOf", "some-of")):
        if key in fact:
            group = tuple(sorted(fact[key]))
            yield f"{word}={groups.setdefault(group, f'{_parent(path)}#{len(groups) + 1}')}"


def _type(path: str, fact: Mapping[str, Any]) -> str:
    kind, element = fact["type"], fact.get("elem", "string")
    if kind in _SCALARS:
        return str(kind)
    if element == "object":
        return "block" if fact.get("maxItemsOneFlattened") else f"{kind}(block)"
    if element != "string":
        raise ValueError(f"{path}: a {kind} of {element} cannot be expressed in this notation")
    return "string" if fact.get("maxItemsOneFlattened") else f"{kind}(string)"


def _parent(path: str) -> str:
    return path.rpartition(".")[0] or path


def reduced_schema(schema: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The content of the data file of docker-build. Raises ValueError for what the notation cannot express."""
    image = schema["resources"][IMAGE]
    lines = dict(_inputs(image["inputProperties"], image["requiredInputs"], schema["types"], ""))
    outputs = {name: "string computed" for name in image["properties"] if name not in image["inputProperties"]}
    return {"source": source, "groups": {}, "resources": {IMAGE: dict(sorted((lines | outputs).items()))}}


def _inputs(
    properties: Mapping[str, Any], required_names: Sequence[str], types: Mapping[str, Any], path: str
) -> Iterator[tuple[str, str]]:
    for name, property_facts in properties.items():
        kind = property_facts.get("type", "")
        item = property_facts.get("items") or property_facts.get("additionalProperties") or property_facts
        target = types[item["$ref"].removeprefix("#/types/")] if "$ref" in item else {}
        is_block = "properties" in target or target.get("type") == "object"
        scalar = _PULUMI_SCALARS.get(target.get("type") or item.get("type", ""))
        if not (is_block or scalar):
            raise ValueError(f"{path}{name}: {item} cannot be expressed in this notation")
        element = "block" if is_block else scalar
        words = [f"{'list' if kind == 'array' else 'map'}({element})" if item is not property_facts else str(element)]
        words.append("required" if name in required_names else "optional")
        if "default" in property_facts:
            words.append(f"default={json.dumps(property_facts['default'])}")
        if "enum" in target:
            words.append(f"in={'|'.join(choice['value'] for choice in target['enum'])}")
        yield f"{path}{name}", " ".join(words)
        inside = f"{path}{name}." if item is property_facts else f"{path}{name}[]."
        yield from _inputs(target.get("properties", {}), target.get("required", ()), types, inside)


def main(arguments: list[str]) -> int:
    """Writes the data file from the file and the source that are named."""
    path, source = arguments
    raw = json.loads(Path(path).read_text(encoding="utf-8"))
    content, data = (reduced_schema(raw, source), IMAGE_DATA) if "types" in raw else (reduced(raw, source), DATA)
    data.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{sum(map(len, content['resources'].values()))} properties of {len(content['resources'])} types")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
