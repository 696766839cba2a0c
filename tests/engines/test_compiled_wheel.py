"""The compiled modules of kueue-admission's wheel decide and simulate as its sources do."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import FrameType

import pytest

import compiled_admission
from compiled_wheel import installed_wheel
from tests.differential import test_releases
from tests.engines import compiled_sample
from tests.simulation import test_fleet, test_generator

ROOT = Path(__file__).parents[2]
NOT_MODELLED = test_releases.test_penalties_that_stay_are_refused_by_name_before_0_19_1
TESTS = (
    "tests/engines/compiled_sample.py",
    f"tests/differential/test_releases.py::{NOT_MODELLED.__name__}",
    "tests/simulation/test_fleet.py",
    "tests/simulation/test_generator.py",
)
"""On the sources, their folders run all scenarios, explanations and simulations."""


_HEADER = Path(sysconfig.get_path("include")) / "Python.h"


@pytest.mark.skipif(
    not _HEADER.exists() or shutil.which("cc") is None,
    reason=f"no C compiler, or no {_HEADER}: apt-get install gcc python3-dev",
)
def test_what_is_compiled_decides_as_kueue_does(tmp_path: Path) -> None:
    """None of them changes private names of modules: what is compiled does not look them up again."""
    places = [".", str(installed_wheel()), "components", "policies", "offline", "tests/support"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "compiled_wheel", "-p", "no:cacheprovider", "-n", "0"]
    command += ["-o", f"pythonpath={' '.join(places)}", f"--basetemp={tmp_path}", *TESTS]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support")}
    for name in [name for name in environ if name.startswith("PYTEST_")]:
        del environ[name]
    result = subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, timeout=1200)
    assert result.returncode == pytest.ExitCode.OK, result.stdout[-5000:]


def test_these_tests_run_every_module_that_is_compiled() -> None:
    """Fewer of their scenarios do already, on the sources; what is compiled does not say what it calls."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            called.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        for file in compiled_sample.FILES:
            compiled_sample.check_answers(file, least=2)
        compiled_sample.check_moves(least=2)
        NOT_MODELLED({}, "ClusterQueue q: partial admission (minCount) of default/w")
        test_fleet.test_the_first_region_with_capacity_gets_the_job()
        test_generator.test_workloads_come_at_the_interval_and_all_finish()
    finally:
        sys.setprofile(None)
    package = ROOT / "components" / "kueue_admission"
    sources = [path for path in compiled_admission.sources(package) if has_functions(path)]
    assert len(sources) > 40
    assert [path.name for path in sources if str(path) not in called] == []


def has_functions(path: Path) -> bool:
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(path.read_text())))
