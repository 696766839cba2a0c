"""A fleet with a worker outside GKE, and one without GKE."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from kueue_fleet.cli import app
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import FleetSpec, parse_fleet_text
from plain_fleets import mixed, mixed_data

EXAMPLE = Path(__file__).parents[2] / "examples" / "plain-cluster"


def test_the_jobs_are_on_both_platforms() -> None:
    files = [str(EXAMPLE / "fleet.yaml"), "--jobs", str(EXAMPLE / "jobs.yaml")]
    result = CliRunner().invoke(app, ["simulate", "fleet", *files, "--output", "json"])
    workloads = json.loads(result.stdout)["workloads"]
    assert {entry["state"] for entry in workloads} == {"Finished"}
    assert len(workloads) == 13
    assert {item["cluster"] for item in workloads} == {"paris", "gke-europe-west4"}


def test_its_nodes_cost_what_their_owner_says() -> None:
    result = CliRunner().invoke(app, ["cost", str(EXAMPLE / "fleet.yaml"), "--output", "json"])
    [line] = [item for item in json.loads(result.stdout)["lines"] if item["cluster"] == "paris"]
    assert (line["class"], line["each"], line["always"]["hour"]) == ("owned", 2.1, 2.1)


def test_a_fleet_without_gke_is_right() -> None:
    result = CliRunner().invoke(app, ["check", str(EXAMPLE / "standalone.yaml")])
    assert (result.exit_code, result.stderr) == (0, "")


def without_paris() -> FleetSpec:
    data = mixed_data()
    del data["clusters"][2], data["flavors"][0], data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]
    return parse_fleet_text(json.dumps(data))


def test_a_cluster_that_is_removed_stays() -> None:
    result = [str(item) for item in compare_fleets(mixed(), without_paris())]
    assert any("worker in europe stays, but Kueue is deleted from it" in entry for entry in result), result


def test_pod_monitors_that_come_or_go_are_named() -> None:
    data = mixed_data()
    data["clusters"][2]["podMonitors"] = {"labels": {"release": "prometheus"}}
    after = parse_fleet_text(json.dumps(data))
    came, gone = compare_fleets(mixed(), after), compare_fleets(after, mixed())
    assert [str(entry) for entry in came] == ["clusters[paris].podMonitors: new: labels release prometheus"]
    assert [str(item) for item in gone] == ["clusters[paris].podMonitors: removed: labels release prometheus"]
