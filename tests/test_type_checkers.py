"""Programs of users, and those on the pages for them, under pyright and mypy in their strict modes.

mypy sees those of the tests in `make check`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.console import blocks

TESTS = Path(__file__).parent
EXAMPLES = TESTS.parent / "examples"
THREE_STACKS = EXAMPLES / "three-stacks"
DOCS = TESTS.parent / "docs"
_FROM_CONFIG, _SINGLE, *_ = blocks(DOCS / "programs.md", "python")
OF_USERS = {
    **dict(zip(("fleet.py", "program.py"), blocks(DOCS / "programs.md", "python")[-2:], strict=True)),
    "from_config.py": _FROM_CONFIG,
    "single.py": _SINGLE,
    "batch_platform.py": (EXAMPLES / "typed-python" / "batch-platform" / "fleet.py").read_text(),
    "single_components.py": (EXAMPLES / "single-components" / "__main__.py").read_text(),
    "cluster_of_another_stack.py": (EXAMPLES / "plain-cluster" / "program" / "__main__.py").read_text(),
    "three_stacks.py": (THREE_STACKS / "__main__.py").read_text(),
    "team.py": (THREE_STACKS / "team" / "__main__.py").read_text(),
    **{f"company/{path.name}": path.read_text() for path in (THREE_STACKS / "company").glob("*.py")},
}
"""What new users read or begin with, by the name of a module."""
OF_TESTS = [*(TESTS / "typed_programs").glob("*.py"), TESTS / "support" / "typed_program.py"]
PROGRAMS = {**OF_USERS, **{path.name: path.read_text() for path in OF_TESTS}}
WRONG = TESTS / "typed_programs" / "wrong.txt"
"""One mistake in each line; no program, so that mypy leaves it alone."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all of them are."""
    result = tmp_path_factory.mktemp("typed")
    for name, program in {**PROGRAMS, "wrong.py": WRONG.read_text()}.items():
        (result / name).parent.mkdir(exist_ok=True)
        (result / name).write_text(program)
    return result


@pytest.fixture(scope="module")
def errors(folder: Path) -> dict[str, list[int]]:
    """The lines with errors, by the name of the file."""
    components = str(TESTS.parent / "components")
    config = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [components]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    basedpyright = str(Path(sys.executable).parent / "basedpyright")
    command = [basedpyright, "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    results: dict[str, Any] = json.loads(result.stdout)
    assert results["summary"]["filesAnalyzed"] == len(PROGRAMS) + 1
    lines: dict[str, list[int]] = {}
    for item in results["generalDiagnostics"]:
        if item["severity"] == "error":
            lines.setdefault(Path(item["file"]).name, []).append(item["range"]["start"]["line"])
    return lines


def test_programs_have_no_errors(errors: dict[str, list[int]]) -> None:
    assert errors.keys() == {"wrong.py"}


def test_every_mistake_is_found(errors: dict[str, list[int]]) -> None:
    mistakes = [number for number, line in enumerate(WRONG.read_text().splitlines()) if line.startswith("kf.")]
    assert sorted({*errors["wrong.py"]}) == mistakes


def mypy(folder: Path, files: Iterable[Path]) -> str:
    """What it finds in files that import each other from their folder; empty if nothing."""
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, files)],
        cwd=TESTS.parent,
        env={**os.environ, "MYPYPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stdout if result.returncode else ""


def test_mypy_finds_none_in_programs_of_users(folder: Path) -> None:
    assert mypy(folder, (folder / name for name in OF_USERS)) == ""


def test_mypy_finds_none_in_the_repository_of_a_platform_team() -> None:
    repository = EXAMPLES / "platform-repo"
    assert mypy(repository, (path for path in repository.rglob("*.py") if path.parent.name != "policies")) == ""


def test_the_dws_fleet_of_the_page_has_forty_lines_at_most() -> None:
    assert len([line for line in OF_USERS["fleet.py"].splitlines() if line.strip()]) <= 40
