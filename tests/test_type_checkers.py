"""Programs of users under pyright in its strict mode, and the examples under mypy --strict too.

mypy sees the others in `make check`; of programs called `__main__` it takes one at a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
EXAMPLES = TESTS.parent / "examples"
PROGRAMS = {
    **{path.name: path for path in (*(TESTS / "typed_programs").glob("*.py"), TESTS / "support" / "typed_program.py")},
    **{f"{path.parent.name}.py": path for path in (EXAMPLES / "typed-python").glob("*/fleet.py")},
    "single_components.py": EXAMPLES / "single-components" / "__main__.py",
}
WRONG = TESTS / "typed_programs" / "wrong.txt"
"""One mistake in each line; no program, so that mypy leaves it alone."""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The lines with errors, by the name of the file."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "wrong.py").write_text(WRONG.read_text())
    for name, program in PROGRAMS.items():
        (folder / name).write_text(program.read_text())
    components = str(TESTS.parent / "components")
    config = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [components]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    basedpyright = str(Path(sys.executable).parent / "basedpyright")
    command = [basedpyright, "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len(PROGRAMS) + 1
    lines: dict[str, list[int]] = {}
    for each in found["generalDiagnostics"]:
        if each["severity"] == "error":
            lines.setdefault(Path(each["file"]).name, []).append(each["range"]["start"]["line"])
    return lines


def test_programs_have_no_errors(errors: dict[str, list[int]]) -> None:
    assert errors.keys() == {"wrong.py"}


def test_every_mistake_is_found(errors: dict[str, list[int]]) -> None:
    mistakes = [number for number, line in enumerate(WRONG.read_text().splitlines()) if line.startswith("kf.")]
    assert sorted({*errors["wrong.py"]}) == mistakes


@pytest.mark.parametrize("example", ["single-components", "platform-repo"])
def test_mypy_finds_none_in_the_example(example: str) -> None:
    folder = EXAMPLES / example
    files = [path for path in folder.rglob("*.py") if path.parent.name != "policies"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, files)],
        cwd=TESTS.parent,
        env={**os.environ, "MYPYPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
