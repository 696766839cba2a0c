"""The example of serving beside batch: what is checked, and what a morning of it is like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kueue_fleet.cli import app

FOLDER = Path(__file__).parents[2] / "examples" / "serving"
FLEET = FOLDER / "fleet.yaml"


@pytest.mark.parametrize("jobs", ["vllm", "batch"])
def test_its_services_and_jobs_are_valid(jobs: str) -> None:
    result = CliRunner().invoke(app, ["check", str(FLEET), "--jobs", str(FOLDER / f"{jobs}.yaml")])
    assert (result.exit_code, "warning" in result.output) == (0, False), result.output


@pytest.fixture(scope="module")
def morning() -> Mapping[str, Mapping[str, Any]]:
    files = ["--jobs", str(FOLDER / "vllm.yaml"), "--workload", str(FOLDER / "day.yaml")]
    result = CliRunner().invoke(app, ["simulate", "fleet", str(FLEET), *files, "-o", "json"])
    return {item["name"]: item for item in json.loads(result.stdout)["workloads"]}


def test_services_hold_their_quota_without_end(morning: Mapping[str, Mapping[str, Any]]) -> None:
    assert {morning[name]["state"] for name in ("chat-0", "chat-1", "large-0")} == {"Admitted"}


def test_replicas_that_are_added_do_not_wait_for_batch_to_end(morning: Mapping[str, Mapping[str, Any]]) -> None:
    assert {morning[f"more-chat-{number}"]["admittedAt"] for number in range(1, 5)} == {600.0}


def test_batch_gives_way_and_runs_to_its_end(morning: Mapping[str, Mapping[str, Any]]) -> None:
    batch = [each for name, each in morning.items() if name.startswith("evaluate")]
    assert {item["state"] for item in batch} == {"Finished"}
    assert sum(bool(entry["evictions"]) for entry in batch) == 3


def test_a_notebook_starts_when_the_working_hours_begin(morning: Mapping[str, Mapping[str, Any]]) -> None:
    assert morning["notebook"]["admittedAt"] == 1800.0
