"""`simulate --objects` at the moment of a dump, and `explain`, give the same reason for what waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kueue_fleet.cli import app

CASES = Path(__file__).parent / "cases"


def called(*arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(CliRunner().invoke(app, [*arguments, "-o", "json"]).stdout)
    return result


@pytest.mark.parametrize(
    ("dump", "waiting"),
    [
        (
            "held-back-by-another-queue",
            {"job-guaranteed2-abcde": "WaitingForQuota", "job-besteffort1-abcde": "WaitingForQuota"},
        ),
        ("inactive-queue", {"job-sample-abcde": "Suspended"}),
    ],
)
def test_both_say_the_same(dump: str, waiting: dict[str, str]) -> None:
    objects = str(CASES / f"{dump}.yaml")
    simulated = called("simulate", "objects", objects, "--until", "0")["workloads"]
    names = {entry["metadata"]["name"]: owner(entry) for entry in workloads(objects)}
    result = {item["name"]: item["reason"] for item in simulated}
    assert {name: result[names[name]] for name in waiting} == waiting
    explained = {name: called("explain", name, "--objects", objects)["explanations"][0]["reason"] for name in waiting}
    assert explained == waiting


def workloads(objects: str) -> list[dict[str, Any]]:
    documents = [each for each in yaml.safe_load_all(Path(objects).read_text()) if each]
    items = [item for each in documents for item in (each["items"] if each["kind"].endswith("List") else [each])]
    return [entry for entry in items if entry["kind"] == "Workload"]


def owner(workload: dict[str, Any]) -> str:
    owners = workload["metadata"].get("ownerReferences") or [workload["metadata"]]
    return str(owners[0]["name"])
