"""Where jobs of the company's fleet go when reserved nodes are full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kueue_fleet.cli import app

ROOT = Path(__file__).parents[2]


WITHOUT_STOCK = """
jobs:
  - { name: tiler, namespace: maps, queue: main, runSeconds: 7200, pods: 4, count: 4,
      requests: { cpu: "8", memory: 32Gi, ephemeral-storage: 10Gi, nvidia.com/gpu: "1" } }
waits: [{ flavor: l4-flex, seconds: 1000000 }]
stockOuts: [{ flavor: l4-spot, seconds: 1000000 }]
"""


def flavors(stack: str, workload: str = "examples/dev/workload.yaml", **given: Any) -> dict[str, list[str]]:
    """The flavors each job ran on, in order."""
    arguments = [f"stacks/Pulumi.{stack}.yaml", "--workload", workload, "--output", "json"]
    result = CliRunner().invoke(app, ["simulate", "fleet", *arguments], **given)
    assert result.exit_code == 0, result.output
    results = json.loads(result.stdout)["workloads"]
    assert {job["state"] for job in results} == {"Finished"}
    return {job["name"]: [flavor for run in job["runs"] for flavor in run["flavors"]] for job in results}


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_jobs_overflow_from_the_reserved_nodes_of_each_region_to_flex_start_to_spot() -> None:
    result = flavors("dev")
    tilers = [result[f"tiler-{number}"] for number in (1, 2, 3, 4)]
    assert tilers == [["l4-reserved"], ["l4-reserved"], ["l4-flex"], ["l4-spot"]]
    assert result["foundation"] == ["h100-flex"]


def test_in_production_the_same_jobs_fit_the_reserved_nodes() -> None:
    result = flavors("prod")
    assert result.pop("foundation") == ["h100-flex"]
    assert set(map(tuple, result.values())) == {("l4-reserved",)}


def test_without_machines_by_dws_and_on_spot_a_job_goes_on_to_on_demand() -> None:
    result = flavors("dev", "-", input=WITHOUT_STOCK)
    assert [result[f"tiler-{number}"] for number in (1, 2, 3)] == [["l4-reserved"]] * 3
    assert result["tiler-4"] == ["l4-spot", "l4-on-demand"]
