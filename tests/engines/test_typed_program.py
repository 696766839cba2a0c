"""pyright on the typed program; mypy sees it in `make check`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines.node import npm_package

PYRIGHT = "1.1.411"
PROGRAM = Path(__file__).parents[1] / "support" / "typed_program.py"
WRONG = """
from kueue_fleet import ClusterQueue, KueueInstall
from kueue_admission.api import ResourceQuota

ResourceQuota(name="cpu", nominal_quota=None)
ClusterQueue("gpu", ["cpu"])
KueueInstall()
"""


@pytest.fixture(scope="module")
def pyright() -> list[str]:
    """The command, without files; installed once from npm."""
    node, package = npm_package("pyright", PYRIGHT)
    return [str(node), str(package / "index.js"), "--outputjson", "--pythonpath", sys.executable]


def test_pyright_finds_nothing_in_the_typed_program_and_all_that_is_wrong(pyright: list[str], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    done = subprocess.run([*pyright, str(PROGRAM), str(wrong)], capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 2
    errors = [(each["file"], each["rule"]) for each in found["generalDiagnostics"] if each["severity"] == "error"]
    assert [file for file, _ in errors] == [str(wrong)] * 3
    assert [rule for _, rule in errors] == ["reportArgumentType", "reportArgumentType", "reportCallIssue"]
