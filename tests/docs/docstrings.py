"""What a public name has to say about itself, beyond what ruff asks for (D1: modules, classes, functions).

One line for each name that does not say it. `make check` runs this on library and policies:

- a constant of a module, and a field of a pydantic model, have a docstring below them;
- a number in a model has its unit, in its name or in that docstring;
- a function names the errors that it raises itself;
- a module of rules names its source: a page, or a file of a version of a repository; so does each policy.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    ROOT / "components",
    ROOT / "policies" / "kueue_fleet_policies",
    ROOT / "offline" / "kueue_fleet_offline",
)
RULES = re.compile(r"/fleet_file/check/(?!__init__|scope)|/gke/\w+_rules\.py$")
"""Modules of rules that name their source in their docstring."""

MODELS = {"BaseModel", "SpecModel", "RuledModel"}
"""Models that others are made from; a model made from one of the same library counts too."""
NUMBERS = re.compile(r"\b(int|float|Count|Whole|Int32|Number|AtLeastOne|_Seconds)\b")
UNITS = re.compile(
    r"""second|minute|hour|day|percent|share|\b[kmgt]i?b\b|bytes?|_gb\b|_ms\b|\bms\b|\bqps\b|_?count\b|number|port
    |nodes?\b|pods?\b|gpus?\b|cpus?\b|ssds?\b|machines?\b|devices?\b|workers?\b|jobs?\b|workloads?\b|queues?\b
    |cohorts?\b|domains?\b|clusters?\b|replicas?\b|requests?\b|tries\b|times\b|labels?\b|priority|price|weight|resource
    |larger|higher|reconciles|unit\b|one\ leads""",
    re.IGNORECASE | re.VERBOSE,
)
CITED = re.compile(r"https://|\b[\w/-]+@[\w.]+\s")
OWN_FAULTS = {"AssertionError", "InvariantError", "NotImplementedError"}
"""Raised where the program itself is wrong, which nobody handles."""
OF_THE_COMMAND_LINE = {"CommandError", "Exit"}
"""How a command ends; its help says what it does."""
UNNAMED = {"log", "app"}
"""Names that say the same in every module."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def missing(path: Path, text: str) -> Iterator[str]:
    """`file:line: name: what it does not say`, for one file."""
    tree = ast.parse(text)
    for line, name, what in _found(tree, path):
        yield f"{path}:{line}: {name}: {what}"


def _found(tree: ast.Module, path: Path) -> Iterator[tuple[int, str, str]]:
    if RULES.search(path.as_posix()) and not CITED.search(ast.get_docstring(tree) or ""):
        yield 1, path.stem, "names no source; write where its rules come from, as https://... or kueue@v0.19.2 FILE"
    for name, statement, output in _declared(tree.body):
        if output is None and name not in UNNAMED and not _says_itself(statement):
            yield statement.lineno, name, "has no docstring; write below it what it is"
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _of_class(node)
        elif isinstance(node, Function):
            yield from _of_function(node, path)


def _of_class(node: ast.ClassDef) -> Iterator[tuple[int, str, str]]:
    if is_model(node):
        for name, statement, output in _declared(node.body):
            if not isinstance(statement, ast.AnnAssign) or "ClassVar" in ast.unparse(statement.annotation):
                continue
            full = f"{node.name}.{name}"
            if output is None:
                yield statement.lineno, full, "has no docstring; write below it what it is"
            elif NUMBERS.search(ast.unparse(statement.annotation)) and not UNITS.search(f"{name} {output}"):
                yield statement.lineno, full, "names no unit; write it in its name or its docstring"
    for inner in node.body:
        if isinstance(inner, Function):
            yield from _of_function(inner, Path(node.name))


def is_model(node: ast.ClassDef) -> bool:
    """Whether a class is a pydantic model, as far as its own file shows."""
    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    endings = ("Spec", "Fields", "Quota", "Quotas", "Group")
    return bool(bases & MODELS) or any(base.endswith(endings) for base in bases)


def _of_function(node: Function, path: Path) -> Iterator[tuple[int, str, str]]:
    if node.name.startswith("_"):
        return
    text = ast.get_docstring(node) or ""
    excused = OWN_FAULTS | (OF_THE_COMMAND_LINE if "/cli/" in path.as_posix() and _is_command(node) else set())
    for error in sorted(_raised(node.body, frozenset()) - excused):
        if error not in text:
            yield node.lineno, node.name, f"raises {error}; name it in the docstring, and say when"


def _raised(body: list[ast.stmt], caught: frozenset[str]) -> set[str]:
    """Errors that leave a function by its own `raise`; those of functions inside it are theirs."""
    result: set[str] = set()
    for node in body:
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = ast.unparse(error).rpartition(".")[2]
            if name[:1].isupper() and not caught & {name, "Exception"}:
                result.add(name)
        elif isinstance(node, ast.Try):
            names = {part for handler in node.handlers for part in _names(handler.type)}
            result |= _raised(node.body, caught | names)
            for block in (node.orelse, node.finalbody, *(handler.body for handler in node.handlers)):
                result |= _raised(block, caught)
        elif not isinstance(node, ast.ClassDef | Function):
            for inner in (getattr(node, "body", None), getattr(node, "orelse", None)):
                result |= _raised(inner or [], caught)
            for case in getattr(node, "cases", []):
                result |= _raised(case.body, caught)
    return result


def _names(node: ast.expr | None) -> list[str]:
    parts = node.elts if isinstance(node, ast.Tuple) else [node] if node is not None else []
    return [ast.unparse(part).rpartition(".")[2] for part in parts]


def _is_command(node: Function) -> bool:
    return any("typer." in ast.unparse(argument.annotation) for argument in node.args.args if argument.annotation)


def _says_itself(node: ast.stmt) -> bool:
    """Whether it is a type variable, or a rule, whose texts are arguments."""
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec", "Rule")


def _declared(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt, str | None]]:
    """Public names that a body assigns to, each with the text below it."""
    for node, after in zip(body, [*body[1:], None], strict=True):
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        output = None
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            output = after.value.value
        for target in targets if isinstance(node, ast.Assign | ast.AnnAssign) else ():
            if isinstance(target, ast.Name) and not target.id.startswith(("_", "model_config")):
                yield target.id, node, output


def main() -> int:
    """Print what is missing in the library and the policies; 1 if there is any."""
    files = [file for package in PACKAGES for file in sorted(package.rglob("*.py"))]
    result = [line for file in files for line in missing(file.relative_to(ROOT), file.read_text())]
    print("\n".join(result) if result else f"Docstrings of public names: all of {len(files)} files")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
