"""The README's first command, typed as it stands there, prints what stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.console import ROOT, blocks
from docs.rehearsal_output import lacks

RUN_SECONDS = 900


def test_make_rehearse_prints_what_the_readme_shows(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("r")  # short: a socket's path may have 107 characters
    environment = {**os.environ, "KUEUE_FLEET_STATE_DIR": str(folder), "NO_COLOR": "1", "COLUMNS": "100"}
    virtual_environment = Path(sys.executable).parents[1]
    done = subprocess.run(
        ["make", "rehearse", f"VENV={virtual_environment}"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    [shown] = blocks(ROOT / "README.md", "text")
    assert lacks(shown, done.stdout) == [], done.stdout
