"""The example of N1 machines with attached GPUs: what is declared, reserved, checked and simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.google.node_pools import node_pool_properties
from kueue_rehearsal.cloud.node_pools import parse_node_pool
from kueue_rehearsal.cloud.node_templates import Place

FOLDER = Path(__file__).parents[2] / "examples" / "attached-gpus"
FLEET, JOB = FOLDER / "fleet.yaml", FOLDER / "job.yaml"


def check(data: dict[str, Any]) -> str:
    return CliRunner().invoke(app, ["check", "-"], input=yaml.safe_dump(data), env={"COLUMNS": "400"}).output


def test_reserved_machines_come_first_then_spot(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(FLEET), "--jobs", str(JOB)])
    assert (result.exit_code, "warning" in result.output) == (0, False), result.output
    job = yaml.safe_load(JOB.read_text())
    jobs = [job | {"metadata": job["metadata"] | {"name": f"infer-{number}"}} for number in range(4)]
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(jobs))
    result = CliRunner().invoke(
        app, ["simulate", "fleet", str(FLEET), "--jobs", str(tmp_path / "jobs.yaml"), "-o", "json"]
    )
    results = {one["name"]: one["flavors"]["main"]["nvidia.com/gpu"] for one in json.loads(result.stdout)["workloads"]}
    assert [results[f"infer-{number}"] for number in range(3)] == ["t4-reserved", "t4-spot", "t4-spot"]


@pytest.mark.parametrize(
    ("limit_range", "counted"), [(True, {"nvidia.com/gpu", "cpu", "memory"}), (False, {"nvidia.com/gpu"})]
)
def test_what_a_job_does_not_ask_for_is_what_its_team_says(
    tmp_path: Path, limit_range: bool, counted: set[str]
) -> None:
    data = yaml.safe_load(FLEET.read_text())
    if not limit_range:
        del data["teams"][0]["limitRange"]
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(data))
    result = CliRunner().invoke(
        app, ["simulate", "fleet", str(tmp_path / "fleet.yaml"), "--jobs", str(JOB), "-o", "json"]
    )
    [results] = json.loads(result.stdout)["workloads"]
    assert results["flavors"]["main"] == dict.fromkeys(counted, "t4-reserved")


def test_pools_ask_for_the_gpus_and_their_nodes_have_them() -> None:
    pool = parse_fleet_text(FLEET.read_text(), "fleet").node_pool_on("t4-reserved", "t4")
    assert pool is not None
    result = node_pool_properties(
        pool, service_account="nodes@p", disk_encryption_key=None, image_streaming=True, labels={}
    )
    (asked,) = result["nodeConfig"]["guestAccelerators"]
    assert (asked["type"], asked["count"]) == ("nvidia-tesla-t4", 1)
    node = parse_node_pool("t4-reserved", result, pool.zones).template(
        Place.of("t4", "us-central1"), pool.zones[0], "x"
    )
    assert node.labels.items() >= pool.labels.items()
    assert node.allocatable["nvidia.com/gpu"] == 1


@pytest.mark.parametrize(
    ("section", "changes", "problem"),
    [
        ("nodePools", {"zones": ["us-central1-d"]}, "zones[0]: is us-central1-d, which does not exist"),
        ("nodePools", {"accelerator": {"type": "nvidia-tesla-t4", "count": 3}}, "count: is 3, a number of"),
        ("reservations", {"accelerator": None}, "reservations[t4-kept].accelerator: not set, but pool t4-reserved"),
        (
            "nodePools",
            {"accelerator": {"type": "nvidia-tesla-p100", "count": 1}},
            "nodePools[t4-reserved].zones: nvidia-tesla-p100 is not known to be offered in "
            "us-central1-a; use us-central1-c, us-central1-f, or make sure that it is",
        ),
        (
            "reservations",
            {"accelerator": {"type": "nvidia-tesla-p4", "count": 1}, "zone": "us-central1-f"},
            "zone: nvidia-tesla-p4 is not known to be offered in us-central1-f; use us-central1-a, us-central1-c",
        ),
    ],
)
def test_what_does_not_fit_is_named(section: str, changes: dict[str, Any], problem: str) -> None:
    data = yaml.safe_load(FLEET.read_text())
    data[section][0] = {key: value for key, value in {**data[section][0], **changes}.items() if value is not None}
    assert problem in check(data)


def test_a_region_without_them_is_named() -> None:
    data = yaml.safe_load(FLEET.read_text())
    data |= {"reservations": [], "nodePools": data["nodePools"][1:], "flavors": data["flavors"][1:]}
    data["clusters"][0] |= {"region": "us-east5", "zones": ["us-east5-a"]}
    data["clusterQueues"][0]["resourceGroups"][0]["flavors"].pop(0)
    assert "nodePools[t4-spot].accelerator.type: nvidia-tesla-t4 is not known to be offered in us-east5" in check(data)
