"""Dotted names of ours, such as `quantity.ZERO`, in backquotes in docstrings and on pages, that are not there.

A name is ours if it begins with a package, a module, a class, or an instance of a class of ours. It is
there if something of that name has what follows. The library is read, not imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MENTIONED = re.compile(r"(?<![`\w])`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(\))?`(?!`)")
_FILE = re.compile(r"\.(csv|html|json|lock|md|py|pyi|toml|txt|yaml)$")
_OF_KUBERNETES = ("metadata", "resource", "spec", "state", "status")
"""What begins a path in an object, or in a log of Google, whose fields are not ours."""
_OF_OTHERS = re.compile(r"gcp\.(compute|container)\.|container\.(clusters|developer|viewer)|config\.get_")
"""Names of pulumi-gcp and Pulumi, and of Google's permissions and roles, that begin as ours do."""


@dataclass
class Named:
    """A package, a module or a class, with what it has by name; None for what has nothing of its own."""

    members: dict[str, Named | None] = field(default_factory=dict)
    bases: list[str] = field(default_factory=list)


class Names:
    """What the library has, by name, of Python files by their path from the folder where packages are."""

    def __init__(self, sources: Mapping[Path, str]) -> None:
        self.by_name: dict[str, list[Named]] = {}
        self.fields: set[str] = set()
        root = Named()
        for path, text in sources.items():
            parts = path.with_suffix("").parts
            place = root
            for part in parts[:-1] if parts[-1] == "__init__" else parts:
                place = self._within(place, part)
            for node in ast.parse(text).body:
                self._fill(place, node)

    def _within(self, place: Named, name: str) -> Named:
        there = place.members.get(name)
        if there is None:
            there = place.members[name] = Named()
            self.by_name.setdefault(name, []).append(there)
        return there

    def _fill(self, place: Named, node: ast.stmt) -> None:
        if isinstance(node, ast.ClassDef):
            result = self._within(place, node.name)
            self.by_name.setdefault(node.name[:1].lower() + node.name[1:], []).append(result)
            result.bases += [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]
            for inner in node.body:
                self._fill(result, inner)
                if isinstance(inner, ast.AnnAssign):
                    self.fields.add(re.sub(r"_(\w)", lambda letter: letter[1].upper(), ast.unparse(inner.target)))
        for name in _given(node):
            place.members.setdefault(name, None)

    def missing(self, name: str) -> bool:
        """Whether it is ours, and not there."""
        first, *rest = name.split(".")
        if first not in self.by_name or first in _OF_KUBERNETES or _FILE.search(name) or _OF_OTHERS.match(name):
            return False
        is_path = all(part in self.fields for part in rest)  # In a fleet file, or in an object.
        return not is_path and not any(self._has(place, rest) for place in self.by_name[first])

    def _has(self, place: Named, rest: list[str], derived: tuple[Named, ...] = ()) -> bool:
        """`derived`: the classes below, of which one may have the name of its base."""
        if not rest:
            return True
        if rest[0] not in place.members:
            derived = (*derived, place)
            bases = (base for name in place.bases for base in self.by_name.get(name, []))
            return any(self._has(base, rest, derived) for base in bases if all(base is not item for item in derived))
        result = place.members[rest[0]]
        places = (
            [result] if result is not None else self.by_name.get(rest[0], [])
        )  # Those of that name: it is imported.
        return len(rest) == 1 or any(self._has(entry, rest[1:]) for entry in places)


def _given(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module or a class gives it, those of `self` among them."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
            for item in ast.walk(node):
                if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store):
                    yield item.attr
        case ast.Import() | ast.ImportFrom():
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        case ast.Assign() | ast.AnnAssign() | ast.If() | ast.Try():
            yield from (
                entry.id for entry in ast.walk(node) if isinstance(entry, ast.Name) and isinstance(entry.ctx, ast.Store)
            )
