"""No code reads a sentence of ours: problems have a rule and parts, and texts are for people. `make check` runs this.

One line for each call that takes a part out of such a text, looks for something in it, or changes it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "components", ROOT / "policies", ROOT / "offline")
TEXTS = {"wrong", "fix", "headline", "next_step"}
"""Attributes that are sentences of ours, of problems, faults and answers."""
READ_BY = {
    *("partition", "rpartition", "split", "rsplit", "replace", "removeprefix", "removesuffix"),
    *("startswith", "endswith", "find", "rfind", "index", "count", "translate"),
}
"""Methods that take a text apart."""
PATTERNS = {"match", "fullmatch", "search", "sub", "split", "findall", "finditer"}
"""Functions and methods of regular expressions."""
SEPARATORS = {"; "}
"""Between what is wrong and what to do: what is split there was one of our texts."""
KEPT = {
    ("components/kueue_fleet/dispatch/watchdog.py", "message.split('; ')"),
}
"""What the controller keeps in the message of a condition, which is all that a condition has room for."""


def found(path: str, tree: ast.Module, errors: Collection[str]) -> Iterator[tuple[int, str]]:
    """Line and text of each call; `errors` are the names of our classes of errors."""
    ours = _errors_of_ours(tree, errors)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            reads = any(_is_ours(item, ours) for item in _read(node)) or _splits_there(node)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            reads = isinstance(node.left, ast.Constant | ast.JoinedStr) and _is_ours(node.comparators[0], ours)
        else:
            continue
        if reads and (path, ast.unparse(node)) not in KEPT:
            yield node.lineno, ast.unparse(node)


def _read(call: ast.Call) -> Iterator[ast.expr]:
    """The expressions that a call reads as text."""
    if not isinstance(call.func, ast.Attribute):
        return
    if call.func.attr in READ_BY and not (call.args and ast.unparse(call.args[0]) == "'\\n'"):
        yield call.func.value  # Lines are layout.
    if call.func.attr in PATTERNS:
        yield from call.args


def _is_ours(node: ast.expr, errors: set[str]) -> bool:
    """Whether an expression is a sentence of ours: one of `TEXTS`, or the text of an error of ours or a problem."""
    if isinstance(node, ast.Attribute):
        return node.attr in TEXTS
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
        given = node.args[0]
        return isinstance(given, ast.Name) and (given.id in errors or given.id in ("problem", "fault"))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in READ_BY and _is_ours(node.func.value, errors)
    return False


def _splits_there(call: ast.Call) -> bool:
    split = isinstance(call.func, ast.Attribute) and call.func.attr in READ_BY - {"count"}
    return split and any(isinstance(item, ast.Constant) and item.value in SEPARATORS for item in call.args)


def _errors_of_ours(tree: ast.Module, classes: Collection[str]) -> set[str]:
    """Names to which a handler binds an error of one of these classes."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name and node.type is not None:
            types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if {ast.unparse(item).rpartition(".")[2] for item in types} & set(classes):
                names.add(node.name)
    return names


def main() -> int:
    """Print each place; 1 if there is one."""
    files = [file for folder in FOLDERS for file in sorted(folder.rglob("*.py"))]
    trees = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text()) for file in files}
    classes = {node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    places = [
        f"{path}:{line}: {text}: reads a sentence of ours; give it parts, or a rule"
        for path, tree in trees.items()
        for line, text in found(path, tree, {name for name in classes if name.endswith("Error")})
    ]
    print("\n".join(places) or f"Sentences that no code reads: all of {len(files)} files")
    return int(bool(places))


if __name__ == "__main__":
    sys.exit(main())
