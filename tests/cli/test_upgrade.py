"""`upgrade` as people, programs and code scanners read what it says of jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.simulation.fleets import fleet_data
from tests.simulation.test_other_release import SHARES, candidates, small

from command_line import call


def fleet_file(folder: Path, **kueue: Any) -> Path:
    file = folder / "fleet.yaml"
    file.write_text(yaml.safe_dump(fleet_data(kueue=kueue)))
    return file


def objects_file(folder: Path, name: str, *objects: dict[str, Any]) -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump_all(objects))
    return file


@pytest.fixture
def arguments(tmp_path: Path) -> list[str | Path]:
    dump = objects_file(tmp_path, "dump.yaml", *candidates())
    jobs = objects_file(tmp_path, "jobs.yaml", small("one"), small("two"))
    fleet = fleet_file(tmp_path, version="0.19.0")
    return ["upgrade", fleet, "--to", "0.19.2", "--objects", dump, "--jobs", jobs]


def test_jobs_that_are_decided_differently_are_warnings(arguments: list[str | Path]) -> None:
    result = call(*arguments)
    dump = arguments[arguments.index("--objects") + 1]
    _, _, rest = result.stdout.partition("Which jobs are decided differently\n")
    assert rest.partition("\n\n")[0].splitlines() == [
        "  0 of 2 jobs of --jobs",
        f"  warning: {dump}:114: default/second: is decided differently: with Kueue 0.19.0 Pending; with Kueue 0.19.2 "
        "Admitted with b; see docs/releases.md, and change the job or its queue first where it must not be so "
        "[KF825]",
        "  1 of 2 jobs of --objects",
    ]
    assert result.returncode == 0, result.stderr


def test_the_document_has_both_decisions(arguments: list[str | Path]) -> None:
    result = json.loads(call(*arguments, "-o", "json").stdout)["decisions"]
    assert result["jobs"] == {"jobs": 2, "differences": [], "problems": []}
    [difference] = result["objects"]["differences"]
    assert (difference["before"]["state"], difference["after"]["state"]) == ("Pending", "Admitted")


def test_code_scanners_get_jobs_too(arguments: list[str | Path]) -> None:
    [run] = json.loads(call(*arguments, "-o", "sarif").stdout)["runs"]
    assert [(item["ruleId"], item["level"]) for item in run["results"]] == [("KF825", "warning")]


def test_what_breaks_has_its_file_and_line(tmp_path: Path) -> None:
    """A code scanner refuses a result without a file."""
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "a"}}
    dump = objects_file(tmp_path, "dump.yaml", {"apiVersion": "v1", "kind": "List", "items": [queue]})
    fleet = fleet_file(tmp_path, version="0.19.2")
    at = fleet.read_text().splitlines().index("  version: 0.19.2") + 1
    result = call("upgrade", fleet, "--to", "0.20.0", "--objects", dump, "-o", "sarif")
    places = [item["locations"][0]["physicalLocation"] for item in json.loads(result.stdout)["runs"][0]["results"]]
    assert [(entry["artifactLocation"]["uri"], entry["region"]["startLine"]) for entry in places] == [
        (str(fleet), at),
        (str(dump), 3),
    ]


def test_a_feature_that_is_not_modelled_for_a_release_ends_with_1(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, version="0.19.2", configuration=SHARES)
    result = call("upgrade", fleet, "--to", "0.20.0", "--jobs", objects_file(tmp_path, "jobs.yaml", small("one")))
    assert "error: admissionFairSharing: admission fair sharing that counts from the quota reservation" in result.stdout
    assert result.returncode == 1


def test_jobs_that_are_wrong_are_an_error(tmp_path: Path) -> None:
    stray = small("one")
    stray["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "none"
    file = objects_file(tmp_path, "jobs.yaml", stray)
    result = call("upgrade", fleet_file(tmp_path), "--to", "0.19.2", "--jobs", file)
    assert result.stderr.startswith(f"error: {file}:1: workload team-a/one: there is no LocalQueue team-a/none; ")
    assert result.returncode == 1
