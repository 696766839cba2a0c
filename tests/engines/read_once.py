"""Asserts in tests on control planes that look once at what another process writes a moment later.

`make check` runs this. What a test reads from a cluster and asserts is read by `wait_until` or `until`, which look
until it is there. A function of the same file that reads, and does not say why, counts as a read. A read outside of a
wait is right where something that was waited for is written later than what is read; its line then ends in a comment
that says so: `# settled: the Job has ended, which is written last`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
READS = {"find", "get", "items", "objects", "workload"}
"""Methods of a cluster or a lab that ask an API server."""
WAITS = {"until", "wait_until"}
SETTLED = "# settled: "

Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_once(text: str) -> Iterator[tuple[int, str]]:
    """Line and source of each statement whose read is asserted, without a wait and without a reason."""
    tree, lines = ast.parse(text), text.splitlines()

    def said(node: ast.stmt) -> bool:
        return any(SETTLED in line for line in lines[node.lineno - 1 : node.end_lineno])

    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    reading = {function.name for function in functions if _Reads(set()).anywhere_in(function) and not said(function)}
    for function in functions:
        if function.name.startswith("test_"):
            for statement in _asserted_reads(function, _Reads(reading)):
                if not said(statement):
                    yield statement.lineno, ast.unparse(statement)


def _asserted_reads(function: Function, reads: _Reads) -> Iterator[ast.stmt]:
    """The asserts that read, and the assignments that read what a later assert names."""
    read: dict[str, ast.stmt] = {}
    result: dict[int, ast.stmt] = {}
    for statement in _statements(function.body):
        if isinstance(statement, ast.Assert):
            if reads.in_(statement.test):
                result[statement.lineno] = statement
            for name in _names(statement.test) & read.keys():
                result[read[name].lineno] = read[name]
        elif isinstance(statement, ast.Assign):
            origin: ast.stmt | None = statement if reads.in_(statement.value) else None
            if origin is None and not _waits(statement.value):
                origin = next((read[name] for name in sorted(_names(statement.value) & read.keys())), None)
            for name in {name for target in statement.targets for name in _names(target)}:
                read.pop(name, None)
                if origin is not None:
                    read[name] = origin
    yield from result.values()


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """In order, those in blocks too; functions inside are what a wait calls."""
    for statement in body:
        if not isinstance(statement, Function):
            yield statement
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, field, []))


@dataclass(frozen=True)
class _Reads:
    """Reads by methods of a cluster or a lab, and by `functions` of the file."""

    functions: set[str]

    def anywhere_in(self, function: Function) -> bool:
        """Whether it reads and does not wait."""
        return not _waits(function) and any(self._is_read(node) for node in _outside_lambdas(function))

    def in_(self, expression: ast.expr) -> bool:
        return not _waits(expression) and any(self._is_read(node) for node in _outside_lambdas(expression))

    def _is_read(self, node: ast.AST) -> bool:
        """With a path, a name in capitals or names of objects, unlike `get` and `items` of a dict."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id in self.functions
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS):
            return False
        if node.func.attr in {"objects", "workload"} or ast.unparse(node.func) == "os.environ.get":
            return node.func.attr != "get"
        match node.args:
            case [ast.Constant(value=str(path)), *_]:
                return path.startswith("/")
            case [ast.Name(id=name), *_]:
                return name.isupper()
            case [ast.JoinedStr() | ast.BinOp() | ast.Call(), *_]:
                return True
        return False


def _waits(node: ast.AST) -> bool:
    return any(isinstance(item, ast.Name) and item.id in WAITS for item in ast.walk(node))


def _outside_lambdas(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Lambda):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _outside_lambdas(child)


def _names(expression: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def main() -> int:
    """Prints a line for each place. The exit code is 1 where there is one."""
    files = sorted(HERE.rglob("test_*.py"))
    result = [f"{path}:{line}: {source}" for path in files for line, source in read_once(path.read_text())]
    for item in result:
        print(f"{item}\n    is read once; wait for what it asserts, or say why it is settled: {SETTLED}...")
    if not result:
        print(f"Reads that are asserted in tests on control planes: all of {len(files)} files wait")
    return bool(result)


if __name__ == "__main__":
    sys.exit(main())
