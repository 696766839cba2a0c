"""What the Google provider's own schema says of every property of the resource types that are known here.

What an update would do is in `plan`; what the provider refuses is in the rehearsal's stand-in for it.

A line is words: the type (`string`, `bool`, `int`, `float`, `block`, or a `list`, `set` or `map` of strings or blocks;
a `block` is there at most once), then `required`, `optional` and `computed`, then what holds of it: `replaces`
(changing it makes the resource again), `suppressed` (the provider ignores some differences), `validated` (the
provider has a further rule for it, which is not in the schema), `in=` (the values that are allowed), `min=` and `max=`,
`least=` and `most=` (items), `default=`, `conflicts=`, `with=` (set together), `one-of=` and `some-of=` (groups, listed
at the top).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import get_data
from typing import Any


@dataclass(frozen=True, slots=True)
class Fact:
    """What holds of one property."""

    kind: str
    """`string`, `bool`, `int`, `float`, `block`, `list`, `set`, `map`."""
    of_blocks: bool = False
    """Whether the items of a list, set or map are blocks, not texts."""
    required: bool = False
    optional: bool = False
    computed: bool = False
    """Google has a value of its own; with `optional`: where the program gives none."""
    replaces: bool = False
    suppressed: bool = False
    validated: bool = False
    allowed: tuple[str, ...] = ()
    """Empty: anything. The empty text stands for none where it is among them."""
    minimum: float | None = None
    maximum: float | None = None
    least: int = 0
    most: int | None = None
    default: Any = None
    conflicts: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    """What has to be set where this is."""
    one_of: tuple[str, ...] = ()
    """Of these exactly one is set."""
    some_of: tuple[str, ...] = ()
    """Of these at least one is set."""
    children: Mapping[str, Fact] = field(default_factory=dict)
    """Properties of a block, or of each block of a list, set or map."""

    @property
    def is_input(self) -> bool:
        """Whether a program can set it."""
        return self.required or self.optional


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of every resource."""

    source: str
    """Where they are from: provider, version, day."""
    resources: Mapping[str, Mapping[str, Fact]]
    """Top-level properties by type token."""

    def properties(self, token: str) -> Mapping[str, Fact]:
        """The properties of a type; none of a type that is not known here."""
        return self.resources.get(token, {})

    def of(self, token: str, path: str) -> Fact:
        """The fact of a property, such as `nodeConfig.taints[].key`. Raises KeyError."""
        *parents, last = path.replace("[]", "").split(".")
        facts = self.resources[token]
        for part in parents:
            facts = facts[part].children
        return facts[last]


@functools.cache
def load_facts() -> Facts:
    """The facts of Google's provider, from `provider_facts.json`."""
    return parse_facts(get_data(__package__, "provider_facts.json") or b"")


def parse_facts(data: bytes) -> Facts:
    """The facts of a data file."""
    content = json.loads(data)
    groups = {name: tuple(paths) for name, paths in content["groups"].items()}
    return Facts(content["source"], {token: _tree(lines, groups) for token, lines in content["resources"].items()})


def _tree(lines: Mapping[str, str], groups: Mapping[str, tuple[str, ...]]) -> dict[str, Fact]:
    """The properties of a resource, each with those inside it."""
    inside: dict[str, dict[str, Fact]] = {}
    # A parent sorts before its children, so that from the end on these are complete when it is read.
    for path in sorted(lines, reverse=True):
        parent, _, name = path.replace("[]", "").rpartition(".")
        children = inside.pop(f"{parent}.{name}" if parent else name, {})
        inside.setdefault(parent, {})[name] = parse_fact(lines[path], groups, children)
    return dict(sorted(inside[""].items()))


def parse_fact(line: str, groups: Mapping[str, tuple[str, ...]], children: Mapping[str, Fact]) -> Fact:
    """One line of the data file."""
    kind, *words = line.split(" ")
    kind, _, items = kind.removesuffix(")").partition("(")
    fields = dict(word.split("=", 1) for word in words if "=" in word)
    lists = {key: tuple(fields[key].split("|")) if key in fields else () for key in ("in", "conflicts", "with")}
    return Fact(
        kind=kind,
        of_blocks=items == "block",
        required="required" in words,
        optional="optional" in words,
        computed="computed" in words,
        replaces="replaces" in words,
        suppressed="suppressed" in words,
        validated="validated" in words,
        allowed=lists["in"],
        minimum=float(fields["min"]) if "min" in fields else None,
        maximum=float(fields["max"]) if "max" in fields else None,
        least=int(fields.get("least", 0)),
        most=int(fields["most"]) if "most" in fields else None,
        default=json.loads(fields["default"]) if "default" in fields else None,
        conflicts=lists["conflicts"],
        together=lists["with"],
        one_of=groups[fields["one-of"]] if "one-of" in fields else (),
        some_of=groups[fields["some-of"]] if "some-of" in fields else (),
        children=dict(sorted(children.items())),
    )
