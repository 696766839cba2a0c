"""The rehearsal that the files of this folder share; it ends with the last of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fleet_in_rehearsal import ROOT, FleetInRehearsal, copied
from kueue_rehearsal.session import take_down
from one_cluster import condition, wait_until

STACK = "dws-multikueue"
JOBS = ROOT / "examples" / STACK / "jobs.yaml"
MANAGER = "manager-europe-west4"
WORKERS = ["worker-europe-west4", "worker-us-east4", "worker-asia-southeast1"]
RUN_SECONDS = 900
DATA = re.compile('<script type="application/json" id="data">(.*?)</script>')


def active(thing: dict[str, Any]) -> bool:
    return condition(thing, "Active") == "True"


@dataclass(frozen=True)
class Kept:
    """A rehearsal that a command has left running, what the command printed, and the data of its report."""

    lab: FleetInRehearsal
    printed: str
    report: dict[str, Any]


@pytest.fixture(scope="package")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """A command takes it down after the last test."""
    with copied(STACK, tmp_path_factory) as fleet:
        jobs = fleet.session.project_dir / "examples" / STACK
        jobs.mkdir(parents=True)
        shutil.copy(JOBS, jobs)
        report = fleet.session.project_dir / "report.html"
        project = f"--project {fleet.session.project_dir}"
        try:
            printed = make_rehearse("up", f"--html {report} {project}")
            with fleet.session.exclusive(), fleet.session.running(keep=True):
                yield Kept(fleet, printed, json.loads(DATA.findall(report.read_text())[0]))
            removed = f"The rehearsal of {STACK} was removed: its processes, clusters and state.\n"
            assert removed in make_rehearse("down", "")
            assert not fleet.session.paths.root.exists()
        finally:
            take_down(STACK)


def make_rehearse(how: str, options: str) -> str:
    """What it prints."""
    result = subprocess.run(
        ["make", "rehearse", f"DO={how}", f"VENV={Path(sys.executable).parents[1]}", f"OPTIONS={options}"],
        cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, timeout=RUN_SECONDS,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="package")
def lab(kept: Kept) -> FleetInRehearsal:
    return kept.lab


def wait_until_nothing_is_held(lab: FleetInRehearsal, workers: list[str]) -> None:
    def nothing_is_held() -> bool:
        assert {worker: held for worker in workers if (held := lab.holds(worker))} == {}
        return True

    wait_until(nothing_is_held)
