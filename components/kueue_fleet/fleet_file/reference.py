"""The reference of the fleet file, in Markdown, from the JSON schema: every section, field, type, default and limit.

A model that one field has is written below that field, by its path; one that several fields have is a section.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from kueue_fleet.fleet_file.schema import json_schema

Schema = Mapping[str, Any]
"""A JSON schema, or a part of one."""

_PREFIX: Final = "#/$defs/"
_ROOTS: Final = ("FleetSpec", "RehearsalSection")
_OF_OTHERS: Final[Mapping[str, str]] = {
    "KueueConfiguration": "https://kueue.sigs.k8s.io/docs/reference/kueue-config.v1beta2/",
    "ComputeClass": "https://cloud.google.com/kubernetes-engine/docs/reference/crds/computeclass",
    "LabelSelector": "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/",
    "Taint": "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
    "Toleration": "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
}
"""Models of what others document: their page says what a field means, and this one what is particular here."""
_PARTICULAR: Final = re.compile(r"\b(default|absent|fleet|feature gate|gates of)\b|\bKueue 0\.|\A0s:", re.I)
"""A part of such a text that has a default, a release, or what the fleet does with the field."""
_INTRODUCTION: Final = """\
# The fleet file

Find a field by its path: what it means, its type and its default.

`kueue-fleet schema --markdown` prints this page. In a Pulumi stack file the fleet is the value of `kueue-fleet:fleet`
below `config`; a file may also hold only the fleet. Unknown fields are errors; `kueue-fleet check` has the rules across
fields.

`text!` is a required text, `text[]` a list, `text{}` a map by name; `= 3` is the default, and of listed values the
**bold** one. A *quantity* is written as in Kubernetes (`500m`, `64Gi`), a *duration* as in Go (`90s`, `48h`), a *time*
with its zone (`2026-12-01T00:00:00Z`). The text beside a boolean says what true means.
"""


_LONG: Final = 8
"""Words of a text that is written once."""


def reference_markdown() -> str:
    """The page, beginning with the fleet itself, each model once, in the order in which the fleet leads to it."""
    return _Page(json_schema()["$defs"]).text()


@dataclass(frozen=True)
class _Row:
    """A field, with the sections that it mentions."""

    path: str
    kind: str
    text: str
    mentioned_models: list[str]

    @property
    def head(self) -> str:
        return f"`{self.path}` | {self.kind}"


class _Page:
    """What is a section of its own, and what is written where it is used."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self.models: Final = {
            name: {**definition, "properties": _present(definition["properties"])}
            for name, definition in definitions.items()
            if "properties" in definition
        }
        self.fleet: Final[Mapping[str, Schema]] = self.models["FleetSpec"]["properties"]
        fields = [field for model in self.models.values() for field in model["properties"].values()]
        uses = Counter(name for field in fields for name in self._models_of(field))
        kinds = [self._models_of(field) for field in fields]
        self.sections: Final = {
            *_ROOTS,
            *chain.from_iterable(self._models_of(field) for field in self.fleet.values()),
            *(name for name, count in uses.items() if count > 1),
            *chain.from_iterable(names for names in kinds if len(names) > 1),
        }

    def text(self) -> str:
        parts: dict[str, str] = {}
        places: dict[tuple[str, str], tuple[str, str]] = {}

        def add(name: str) -> None:
            if name not in parts:
                parts[name] = ""
                rows = list(self._rows(name, "", is_of_others=name in _OF_OTHERS))
                parts[name] = self._section(name, [f"| {row.head} | {_once(row, name, places)} |" for row in rows])
                for mentioned_model in dict.fromkeys(chain.from_iterable(row.mentioned_models for row in rows)):
                    add(mentioned_model)

        for root in _ROOTS:
            add(root)
        return "\n".join([_INTRODUCTION, *parts.values()])

    def _section(self, name: str, rows: list[str]) -> str:
        return "\n".join([f"## {name}", "", self._introduction(name), "", *((*_HEAD, *rows, "") if rows else ())])

    def _introduction(self, name: str) -> str:
        description = _linked(self.models[name]["description"])
        if name in _OF_OTHERS:
            description += f" {_meaning(name)}"
        paths = (f"`{field}{_step(schema)}`" for field, schema in self.fleet.items() if name in self._models_of(schema))
        path = next(paths, "")
        kind = self._kind_of(name)
        description = f"`type: {kind}`. {description}" if kind else description
        return f"{path}: {_further(description)}".removesuffix(": ") if path else description

    def _rows(self, model: str, path: str, *, is_of_others: bool) -> Iterator[_Row]:
        """Rows of the fields of `model` below `path`."""
        definition = self.models[model]
        for name, field in definition["properties"].items():
            if name == "type" and self._kind_of(model):
                continue
            inner = self._models_of(field)
            same = [model_name for model_name in inner if self._is_part_of(model_name, model)]
            text = _text(field)
            if same:
                fields = ", ".join(f"`{property_name}`" for property_name in self.models[same[0]]["properties"])
                text += f" Fields, as beside it: {fields}."
            twin = next((name for name in self.sections if inner and self._is_like(inner[0], name)), None)
            if twin:
                text += f" As {_link(twin)}{self._without(inner[0], twin)}."
            below = not same and not twin and len(inner) == 1 and inner[0] not in self.sections
            if below:
                further = _linked(_further(self.models[inner[0]]["description"]))
                text = text if further in text else f"{text} {further}"
            if is_of_others:
                text = _particular(text)
            is_theirs_below = is_of_others
            if below and inner[0] in _OF_OTHERS:
                text, is_theirs_below = f"{text} {_meaning(inner[0])}", True
            mentioned_models = [] if below or same or twin else inner
            kind = _type(field, frozenset(mentioned_models), required=name in definition.get("required", ()))
            yield _Row(f"{path}{name}", kind, text, mentioned_models)
            if below:
                yield from self._rows(inner[0], f"{path}{name}{_step(field)}.", is_of_others=is_theirs_below)

    def _kind_of(self, model: str) -> str:
        """The only value of `type` in one of several kinds, by which a reader of the file tells which it is."""
        return str(self.models[model]["properties"].get("type", {}).get("const", ""))

    def _is_part_of(self, model: str, of: str) -> bool:
        fields = set(self.models[model]["properties"])
        return len(fields) > 1 and fields <= set(self.models[of]["properties"])

    def _is_like(self, model: str, section: str) -> bool:
        """Whether a model that has no section of its own has the fields of one that has, or all of them but one."""
        fields, others = self.models[model]["properties"], self.models[section]["properties"]
        if model in self.sections:
            return False
        return [*fields] == [*others] or (len(fields) == len(others) - 1 and fields.items() <= others.items())

    def _without(self, model: str, section: str) -> str:
        """What the models below the section have and those below the model do not."""
        missing = [f"`{name}`" for name in self._names(section) if name not in self._names(model)]
        return f", without {' and '.join(missing)}" if missing else ""

    def _names(self, model: str) -> list[str]:
        """The fields of a model and of all below it that have no section."""
        below = (name for field in self.models[model]["properties"].values() for name in self._models_of(field))
        inner = chain.from_iterable(self._names(name) for name in below if name not in self.sections)
        return [*dict.fromkeys([*self.models[model]["properties"], *inner])]

    def _models_of(self, schema: Any) -> list[str]:
        return [name for name in dict.fromkeys(_references(schema)) if name in self.models]


def _present(fields: Mapping[str, Schema]) -> dict[str, Schema]:
    """The fields without those under their former names."""
    return {name: schema for name, schema in fields.items() if not schema.get("deprecated")}


_HEAD: Final = ("| field | type | |", "|---|---|---|")


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


def _step(schema: Schema) -> str:
    kind = _not_null(schema).get("type")
    return {"array": "[]", "object": ".*"}.get(str(kind), "")


def _not_null(schema: Schema) -> Schema:
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return choices[0] if len(choices) == 1 else schema


def _link(section: str) -> str:
    return f"[{section}](#{section.lower()})"


def _type(schema: Schema, linked_models: frozenset[str], *, required: bool) -> str:
    kind, default = _kind(schema, linked_models, schema.get("default")), schema.get("default")
    if required:
        return f"{kind}!" if "`" not in kind else f"{kind} !"
    is_shown = isinstance(default, bool | int | float | str) and default != "" and "**" not in kind
    return f"{kind} = {_value(default)}" if is_shown else kind


def _value(value: Any) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _kind(schema: Schema, linked_models: frozenset[str], default: Any = None) -> str:
    for key in ("anyOf", "oneOf"):
        if key in schema:
            choices = [choice for choice in schema[key] if choice.get("type") != "null"]
            kinds = dict.fromkeys(_kind(choice, linked_models, default) for choice in choices)
            return "quantity" if "quantity" in kinds else " or ".join(kinds)
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(_PREFIX)
        return _link(name) if name in linked_models else name
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"**{_value(value)}**" if value == default else _value(value) for value in values)
    kind = schema.get("type")
    if kind == "array":
        return f"{_kind(schema.get('items', {}), linked_models)}[]{_limits(schema, 'minItems', 'maxItems')}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"{_kind(values, linked_models)}{{}}" if isinstance(values, Mapping) and values else "map"
    if kind in ("integer", "number"):
        return f"{kind}{_limits(schema, 'minimum', 'maximum')}"
    return _text_kind(schema) if kind == "string" else str(kind or "any")


def _text_kind(schema: Schema) -> str:
    pattern = schema.get("pattern", "")
    if schema.get("format") == "date-time":
        return "time"
    return "quantity" if "Ki|" in pattern else "duration" if "(ns|" in pattern else "text"


def _limits(schema: Schema, least: str, most: str) -> str:
    low, high = schema.get(least), schema.get(most)
    low = None if low is None or low <= -(2**31) else low
    high = None if high is None or high >= 2**31 - 1 else high
    if low is None and high is None:
        return ""
    return f" ≥{low}" if high is None else f" ≤{high}" if low is None else f" {low}..{high}"


def _text(schema: Schema) -> str:
    """The description without what the field's name and the column of types say."""
    text = _linked(str(schema.get("description", "")))
    default = schema.get("default")
    if isinstance(default, bool | int | float | str):
        value = re.escape(_value(default).strip("`").removesuffix(".0"))
        text = re.sub(rf"[;,.]? ?\b[Dd]efault:? `?{value}`?(?=[.;:]|$)", "", text).replace(" (default)", "")
    text = re.sub(r"\A(Name of (the|its) \w+|Always `\w+`)\.\Z", "", text)
    rest = re.sub(r"\A[;:. ]*(Whether )?", "", text)
    return (text if rest == text else rest[:1].upper() + rest[1:]).replace("|", "\\|")


def _once(row: _Row, section: str, places: dict[tuple[str, str], tuple[str, str]]) -> str:
    """The text of a field; or, of a long one that another field of its name has above, where that is."""
    if len(row.text.split()) < _LONG:
        return row.text
    place = (section, row.path)
    first = places.setdefault((row.path.rpartition(".")[2], row.text), place)
    if first == place:
        return row.text
    return f"As `{first[1]}`." if first[0] == section else f"As of {_link(first[0])}."


def _meaning(model: str) -> str:
    return f"[What each field means]({_OF_OTHERS[model]})."


def _particular(text: str) -> str:
    """What of a text on a field of others is about its default, a release of theirs, or the fleet."""
    parts = [part.rstrip(";.") for part in re.split(r"(?<=[;.]) ", text) if _PARTICULAR.search(part)]
    return "".join(f"{part[:1].upper()}{part[1:]}. " for part in parts).rstrip()


def _further(description: str) -> str:
    """A model's description without its first sentence, which the field has said."""
    return re.sub(r"\A.*?\.(\s|\Z)", "", description.replace("\n", " "), count=1).strip()


def _linked(text: str) -> str:
    """The text on one line, its sources as links."""
    text = re.sub(r"(https://\S+?)[;,] (?=https://)", r"\1 Source: ", " ".join(text.split()))
    return re.sub(r"Sources?: (https://\S+?)\.?(?=\s|$)", r"([source](\1))", text)
