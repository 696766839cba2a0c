"""Constants and small functions that the library has twice: each fact has one home. `make check` runs this."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("components", "offline", "policies")
SMALLEST = 25
"""Nodes of the syntax tree of a function's body; smaller ones are alike by chance."""
APART = {
    "client.authentication.k8s.io/v1": "the stand-in for Google's plugin starts in a moment, without a client",
}
"""Texts that are in two places, with the reason."""
_TERM = re.compile(r"(?=.{12})(\S*[/:]\S*|[A-Z][a-z]+([A-Z][a-z]+){3,})")
"""A name of Kubernetes, Google Cloud or Pulumi: with a slash or a colon, or of several words without spaces."""
_TOKEN = re.compile(r"(gcp|kubernetes|pulumi):[\w./]+:\w+")
"""A type of Pulumi, which has one home wherever it is written."""


class _Shape(ast.NodeTransformer):
    """Gives the arguments and variables of a function the names of their places."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"name{len(self._names)}")

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._name(node.arg))

    def visit_Name(self, node: ast.Name) -> ast.Name:
        known = node.id in self._names or isinstance(node.ctx, ast.Store)
        return ast.Name(self._name(node.id) if known else node.id, node.ctx)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _shape(function: ast.FunctionDef) -> str | None:
    """The function without names, types and docstring; None for one that is too small."""
    names = _Shape()
    arguments = ast.dump(names.visit(function.args))
    body = [names.visit(item) for item in function.body if not _is_text(item)]
    size = sum(1 for entry in body for _ in ast.walk(entry))
    return arguments + "".join(map(ast.dump, body)) if size >= SMALLEST else None


def _terms(value: object) -> list[str]:
    given = value if isinstance(value, tuple) else (value,)
    return [item for item in given if isinstance(item, str) and _TERM.fullmatch(item)]


def _facts(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """What may be said once: its text or shape, its name and line."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                continue
            if (terms := _terms(value)) and APART.keys().isdisjoint(terms):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                yield repr(value), ast.unparse(target), node.lineno
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    for token, line in {str(text.value): text.lineno for text in texts}.items():
        if _TOKEN.fullmatch(token):
            yield token, token, line
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        if not function.name.startswith("__") and (shape := _shape(function)) is not None:
            yield shape, function.name, function.lineno


def twins(sources: Mapping[str, str]) -> Iterator[str]:
    """A line for each fact that stands in two places of these files."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, text in sources.items():
        for fact, name, line in _facts(ast.parse(text)):
            places[fact].append(f"{path}:{line}: {name}")
    yield from (" and ".join(result) for result in places.values() if len(result) > 1)


def main() -> int:
    """Prints every pair; the exit code is 1 if there is one."""
    command = ["git", "ls-files", "--", *FOLDERS]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    paths = [path for path in listed if path.endswith(".py") and (ROOT / path).is_file()]
    result = list(twins({path: (ROOT / path).read_text(encoding="utf-8") for path in paths}))
    for item in result:
        print(f"{item}; give it one home")
    if not result:
        print(f"One home for each fact: all of {len(paths)} files")
    return int(bool(result))


if __name__ == "__main__":
    sys.exit(main())
