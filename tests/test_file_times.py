"""What a parallel run says of the time that each file took; see `file_times`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from file_times import LARGE, MOST_CPU, Times, keep, last_times, slower, too_large

ROOT = Path(__file__).parents[1]
BUSY = """
import time

def test_busy():
    began = time.process_time()
    while time.process_time() < began + 0.3:
        pass
"""


def run_in(folder: Path, *options: str) -> str:
    """What a parallel run prints of one busy file there, with this project's conftest."""
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_it.py").write_text(BUSY)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support")},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def test_a_parallel_run_compares_its_times_with_the_last_and_keeps_them(tmp_path: Path) -> None:
    kept = tmp_path / "build" / "test-times.json"
    keep(kept, {"test_it.py": Times(0, -10)})
    output = run_in(tmp_path)
    assert "| `test_it.py` | " in output
    assert "test_it.py: 0 s of CPU, -10 s in the last run" in output
    assert last_times(kept)["test_it.py"].cpu > 0.2


def test_some_tests_of_a_file_are_not_kept_for_all(tmp_path: Path) -> None:
    run_in(tmp_path, "-k", "busy")
    assert not (tmp_path / "build").exists()


def test_files_that_did_not_run_keep_their_times_while_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.py").touch()
    kept = Path("build", "times.json")
    keep(kept, {"there.py": Times(2, 1), "gone.py": Times(2, 1)})
    keep(kept, {"other.py": Times(3, 2.125)})
    assert last_times(kept) == {"other.py": (3, 2.12), "there.py": (2, 1)}


@pytest.mark.parametrize(("before", "now"), [(10.0, 15.0), (1.0, 5.9), (10.0, 2.0)])
def test_what_another_machine_would_explain_is_not_slower(before: float, now: float) -> None:
    assert slower({"a.py": Times(0, now)}, {"a.py": Times(0, before)}) == []


def test_what_is_clearly_slower_is_named_with_both() -> None:
    output = slower({"a.py": Times(0, 16), "new.py": Times(0, 50)}, {"a.py": Times(0, 10)})
    assert output == ["a.py: 16 s of CPU, 10 s in the last run"]


def test_a_file_above_the_limit_has_a_reason_or_is_named() -> None:
    known = next(iter(LARGE))
    [output] = too_large({known: Times(0, 99), "a.py": Times(0, MOST_CPU + 1), "b.py": Times(99, MOST_CPU)})
    assert output.startswith("a.py: 21 s of CPU, more than 20; ")
