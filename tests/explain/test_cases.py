"""Real-looking clusters, each with one thing wrong: the reason, and the text as a user reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from data_places import places, without
from drawn import some_of
from kueue_admission.cli.console import CommandError
from kueue_fleet.cli import app

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


def run(case: Path, tmp_path: Path, *options: str) -> tuple[dict[str, Any], str]:
    loaded = yaml.safe_load(case.read_text())
    dump = tmp_path / "dump.yaml"
    dump.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": loaded["objects"]}))
    arguments = ["explain", loaded["workload"], "--objects", str(dump), "--at", "2026-11-20T12:00:00", *options]
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None, result.output
    return loaded, result.stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_explanation(case: Path, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    _, text = run(case, tmp_path)
    assert text == snapshot
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_reason(case: Path, tmp_path: Path) -> None:
    loaded, text = run(case, tmp_path, "--output", "json")
    answer = json.loads(text)
    assert answer["version"] == 1
    [explanation] = answer["explanations"]
    assert explanation["reason"] == loaded["reason"]
    assert explanation["next_step"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_whatever_a_dump_lacks_there_is_an_answer_or_one_message(case: Path, tmp_path: Path) -> None:
    loaded = yaml.safe_load(case.read_text())
    dump = tmp_path / "dump.json"
    answered = 0
    for place in some_of(list(places(loaded["objects"])), case.stem):
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": without(loaded["objects"], place)}))
        result = CliRunner().invoke(app, ["explain", loaded["workload"], "--objects", str(dump)])
        assert isinstance(result.exception, CommandError | None), place
        answered += result.exception is None
    assert answered


# The causes that Kueue's own troubleshooting pages name, and that others test their assistants with
# (github.com/HolmesGPT/holmesgpt/pull/2375, its fixtures 290 to 295).
CAUSES = {
    "insufficient quota": ("waiting-for-quota", "exceeds-max-quota"),
    "stuck admission check": ("stuck-admission-check",),
    "LocalQueue or ClusterQueue that is not there": ("missing-local-queue", "missing-cluster-queue"),
    "a Job that Kueue never sees": ("job-without-queue-name",),
    "a pod group that is not complete": ("pod-group-shortfall",),
    "preemption": ("preempted",),
}


def test_the_known_causes_are_covered() -> None:
    names = {case.stem for case in CASES}
    assert {name for cases in CAUSES.values() for name in cases} <= names
    assert len(CAUSES) == 6
