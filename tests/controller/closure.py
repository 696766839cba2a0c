"""What the programs of the controller's image import, all of it: for `make check`, that it does not grow unnoticed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGES = Path(__file__).parents[2] / "components"
PROGRAMS = ("kueue_fleet.controller.__main__", "kueue_fleet.page.__main__")
"""The programs that run in the image: the controller, and the page for teams."""
_LOCK = "kueue_fleet/controller/image/requirements.lock"
_DATA = (".css", ".csv", ".html", ".js", ".pyi", ".toml", ".typed", ".yaml")
MOST_MODULES = 150
"""Modules that the controller may import, in all. Lower it with them."""
MOST_LINES = 22_000
"""Their lines."""


def closure(*programs: str) -> frozenset[str]:
    """Every module that these programs import, with the packages that the modules are in."""
    result: set[str] = set()
    waiting = list(programs)
    while waiting:
        module = waiting.pop()
        if module not in result:
            result.add(module)
            package = module.rpartition(".")[0]
            waiting += [*_imported(module), *([package] if package else [])]
    return frozenset(result)


def _imported(module: str) -> Iterator[str]:
    """What a module imports of the library, in functions too, but not for types alone.

    A name of a package that loads it when it is first used comes from the module that `__init__.pyi` says.
    """
    tree = ast.parse(source(module).read_text(encoding="utf-8"))
    for_types = (
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )
    left_out = {id(node) for block in for_types for node in ast.walk(block)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in left_out:
            for name in (alias.name for alias in node.names):
                inner = f"{node.module}.{name}"
                yield from filter(
                    _is_ours, (inner if _is_module(inner) else _homes(node.module).get(name, node.module),)
                )


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("kueue_admission", "kueue_fleet")


def _is_module(name: str) -> bool:
    path = PACKAGES / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@cache
def _homes(package: str) -> Mapping[str, str]:
    """The module of each name that a package loads late."""
    stub = PACKAGES / package.replace(".", "/") / "__init__.pyi"
    lines = ast.parse(stub.read_text(encoding="utf-8")).body if stub.is_file() else []
    imports = [node for node in lines if isinstance(node, ast.ImportFrom)]
    return {
        alias.name: (f"{package}." if node.level else "") + str(node.module) for node in imports for alias in node.names
    }


def source(module: str) -> Path:
    """The file of a module."""
    path = PACKAGES / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def image_files() -> Iterator[str]:
    """The files of a build, below `components`: the programs' modules, the data beside them, and what is installed."""
    yield _LOCK
    modules = {source(module).relative_to(PACKAGES) for module in closure(*PROGRAMS)}
    packages = {module.parent for module in modules}
    tracked = subprocess.run(["git", "ls-files"], cwd=PACKAGES, capture_output=True, text=True, check=True).stdout
    for name in map(Path, tracked.splitlines()):
        home = next(
            folder for folder in name.parents if (PACKAGES / folder / "__init__.py").is_file() or not folder.name
        )
        is_data = name.suffix in _DATA and name.name != "pyproject.toml"
        if name in modules or (is_data and home in packages):
            yield name.as_posix()


def _lines(modules: Iterable[str]) -> int:
    return sum(len(source(module).read_text(encoding="utf-8").splitlines()) for module in modules)


def main() -> int:
    """Exit code 1 where the controller imports more than it may."""
    modules = closure(PROGRAMS[0])
    lines = _lines(modules)
    if len(modules) <= MOST_MODULES and lines <= MOST_LINES:
        return 0
    most = f"at most {MOST_MODULES} modules with {MOST_LINES} lines"
    print(f"the controller imports {len(modules)} modules with {lines} lines: {most} are meant")
    return 1


if __name__ == "__main__":
    sys.exit(main())
