"""How `simulate` ends: what it refuses before it runs, what it says of the end, progress and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_terminal import PROGRAM, ROOT, environment
from tests.simulation import contended
from tests.simulation.fleets import dispatched_data, fleet_data, job
from tests.simulation.objects import cluster
from tests.simulation.objects import job as raw_job
from typer.testing import CliRunner

from kueue_admission.simulate.contention import TURNS
from kueue_fleet.cli import app

SIMULATE = ["simulate", "fleet", "stacks/Pulumi.dws-multikueue.yaml", "-w", "examples/dws-multikueue/workload.yaml"]


@pytest.fixture
def endless(tmp_path: Path) -> list[str]:
    """A simulation that takes minutes: a job that is preempted, and two on Spot nodes that are taken away all day."""
    data = dispatched_data()
    jobs = {
        "jobs": [job("a", count=8, runSeconds=1e6), job("late", start=5e5)],
        "reclaims": [{"flavor": "l4-spot", "perHour": 60}],
    }
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(data))
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump(jobs))
    return ["simulate", "fleet", str(tmp_path / "fleet.yaml"), "-w", str(tmp_path / "jobs.yaml"), "--until", "1e8"]


def dump(folder: Path, objects: list[dict[str, Any]]) -> Path:
    result = [{"apiVersion": "kueue.x-k8s.io/v1beta2", **item} for item in objects]
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(result))
    return file


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-wait", "nope=3"], "--max-wait nope=3: no job comes to this ClusterQueue; "),
        (["--what-if", "clusterQueues[nope].stopPolicy=Hold"], "--what-if clusterQueues[nope].stopPolicy: there is no"),
        (["--what-if", "jobs[detector].priorityClass=nope"], "workload.yaml with --what-if: jobs[detector].priority"),
        (["--what-if", "jobs[detector].queue=nope"], "with --what-if: jobs[detector].queue: there is no LocalQueue"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_runs(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("kueue_admission.simulate.runner.drive", None)
    result = CliRunner().invoke(app, [*SIMULATE, *arguments])
    assert said in str(result.exception)
    assert result.stdout == ""


def test_warnings_of_a_fleet_are_not_what_is_wrong_with_a_change(tmp_path: Path) -> None:
    fleet, jobs = tmp_path / "fleet.yaml", tmp_path / "jobs.yaml"
    fleet.write_text(yaml.safe_dump(fleet_data()))
    jobs.write_text(yaml.safe_dump({"jobs": [job("a")]}))
    fewer = ["--what-if", "nodePools[l4-spot].autoscaling.totalMaxNodeCount=1"]
    result = CliRunner().invoke(app, ["simulate", "fleet", str(fleet), "-w", str(jobs), *fewer])
    assert "may use 2 nvidia.com/gpu" in str(result.exception)
    assert "may use 96 cpu" not in str(result.exception)


def test_contended_workloads_are_listed(tmp_path: Path) -> None:
    file = dump(tmp_path, contended.manifests(contended.TURNS, contended.TURNS_JOBS))
    command = ["simulate", "objects", str(file), "--fair-sharing"]
    display = CliRunner().invoke(app, command)
    assert display.exit_code == 0, display.output
    line = f"default/guest was preempted {TURNS} times for default/second"
    assert f"\ncontended: {line}\n" in display.stdout
    result = json.loads(CliRunner().invoke(app, [*command, "-o", "json"]).stdout)
    pair = {"cluster": None, "preemptor": "default/second", "preempted": "default/guest", "times": TURNS}
    assert result["contended"] == [pair]
    changed = CliRunner().invoke(app, [*command, "--what-if", "ClusterQueue[borrower].spec.stopPolicy=Hold"])
    assert f"\ncontended before: {line}\n" in changed.stdout
    assert "contended after" not in changed.stdout


def test_a_run_that_repeats_itself_says_so(tmp_path: Path) -> None:
    fleet, jobs = tmp_path / "fleet.yaml", tmp_path / "jobs.yaml"
    fleet.write_text(yaml.safe_dump(dispatched_data()))
    jobs.write_text(yaml.safe_dump({"jobs": [job("without-nodes", requests={"cpu": 40})]}))
    result = CliRunner().invoke(app, ["simulate", "fleet", str(fleet), "-w", str(jobs)])
    assert result.exit_code == 0, result.output
    assert "the same jobs start over again and again; give --until" in result.stderr
    until = CliRunner().invoke(app, ["simulate", "fleet", str(fleet), "-w", str(jobs), "--until", "5000"])
    assert until.stderr == ""


def test_a_run_that_never_settles_fails_with_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kueue_admission.simulate.clock._MOST_A_SECOND", 0)
    monkeypatch.setattr("kueue_admission.simulate.clock._MOST_A_SECOND_BY_JOB", 0)
    result = CliRunner().invoke(app, ["simulate", "objects", str(dump(tmp_path, [*cluster(), raw_job("a", 0, "5")]))])
    assert result.exit_code == 1
    assert "the simulation does not get past second 0" in str(result.exception)
    assert "default/a" in result.stdout


def interrupted(arguments: list[str], output: str) -> tuple[int, str, str]:
    """The exit code, stdout, and what a terminal shows of stderr, when Ctrl-C comes as soon as progress is shown."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        [PROGRAM, *arguments, "-o", output],
        cwd=ROOT,
        env=environment(COLUMNS="100", LINES="40"),
        stdin=its,
        stdout=subprocess.PIPE,
        stderr=its,
        text=True,
    ) as process:
        os.close(its)
        display = ""
        try:
            while not re.search(r"second [1-9][\d,]* of 100,000,000", display):
                assert select.select([ours], [], [], 60)[0], display
                display += os.read(ours, 65536).decode()
            process.send_signal(signal.SIGINT)
            stdout, _ = process.communicate(timeout=60)
        finally:
            process.kill()
        while select.select([ours], [], [], 0)[0]:
            try:
                display += os.read(ours, 65536).decode()
            except OSError:  # How Linux says that nobody writes any more.
                break
    os.close(ours)
    return process.returncode, stdout, display


def test_a_terminal_shows_progress_and_ctrl_c_shows_what_is_known(endless: list[str]) -> None:
    code, stdout, output = interrupted(endless, "text")
    assert code == 130
    assert "simulating" in output
    assert "Ctrl-C shows what is known" in output
    assert re.search(
        r"interrupted at second \d[\d,]* of the simulation; what is shown covers the time until then", output
    )
    assert "team-a/a-1" in stdout
    assert "mean wait" in stdout


def test_ctrl_c_leaves_a_whole_document(endless: list[str]) -> None:
    code, stdout, _ = interrupted(endless, "json")
    assert code == 130
    result = json.loads(stdout)
    assert result["end"]["reason"] == "Interrupted"
    assert 0 < result["end"]["at"] < 1e8
    assert ("late" in {workload["name"] for workload in result["workloads"]}) == (result["end"]["at"] >= 5e5)
