"""A test on control planes that fails is run once more, alone; see `tests.twice`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.twice import ENGINES, LOGS, MOST, worth_a_second_try

ROOT = Path(__file__).parents[1]
RACE = """
from pathlib import Path

def test_race():
    print("looked at 12:00:00")
    seen = Path(__file__).with_name("seen")
    again, _ = seen.exists(), seen.touch()
    assert again

def test_sound():
    pass
"""


def run_in(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    """`tests.twice` in a folder with this test on control planes."""
    file = folder / ENGINES / "test_it.py"
    file.parent.mkdir(parents=True)
    file.write_text(test)
    return subprocess.run(
        [sys.executable, "-m", "tests.twice", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_that_passes_the_second_time_is_named_and_its_log_kept(tmp_path: Path) -> None:
    ran = run_in(tmp_path, RACE)
    log = LOGS / "test_it.py_test_race.log"
    output = f"passed the second time: tests/engines/test_it.py::test_race; the first time: {log}"
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, output)
    assert "looked at 12:00:00" in (tmp_path / log).read_text()


def test_a_set_up_that_fails_is_one_failure_of_all_tests_of_its_file(tmp_path: Path) -> None:
    shared = RACE.replace("def test_race", "import pytest\n\n@pytest.fixture(scope='module')\ndef lab")
    ran = run_in(tmp_path, shared + "".join(f"def test_{number}(lab): pass\n" for number in range(MOST + 1)))
    assert ran.returncode == 0
    assert ran.stdout.count("passed the second time: ") == MOST + 1


def test_one_that_fails_twice_fails(tmp_path: Path) -> None:
    ran = run_in(tmp_path, "def test_wrong():\n    assert False\n")
    assert ran.returncode == 1
    assert ran.stdout.splitlines()[-1].startswith("failed twice: tests/engines/test_it.py::test_wrong; ")


@pytest.mark.parametrize(
    "failed",
    [
        [],
        ["tests/test_fleet.py::test_a"],
        [f"{ENGINES}test_b.py::test_b", "tests/c.py::test_c"],
        [ENGINES] * (MOST + 1),
    ],
)
def test_nothing_else_has_a_second_try(failed: list[str]) -> None:
    assert not worth_a_second_try(failed)


def test_without_a_program_the_last_lines_say_what_did_not_run(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/browser", "-q", "-k", "names_of_jobs"],
        cwd=ROOT,
        env={**{name: value for name, value in os.environ.items() if name != "CI"}, "KUEUE_FLEET_BROWSER": "nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        "tests/browser/test_report.py: 1 tests did not run: these tests look at the report in a browser" in ran.stdout
    )
