"""The example of topology-aware scheduling: jobs that need one sub-block, on nodes with the labels of GKE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet, parse_fleet_text
from kueue_fleet.gke.block_topology import topology_labels
from kueue_fleet.gke.labels import TOPOLOGY_BLOCK, TOPOLOGY_HOST, TOPOLOGY_SUBBLOCK
from kueue_fleet.google.node_pools import node_pool_properties
from kueue_fleet.jobs.topology_nodes import topology_nodes
from kueue_rehearsal.cloud.node_pools import parse_node_pool
from kueue_rehearsal.cloud.node_templates import Place

FOLDER = Path(__file__).parents[2] / "examples" / "topology"
FLEET, JOB = FOLDER / "fleet.yaml", FOLDER / "job.yaml"
LEVELS = (TOPOLOGY_BLOCK, TOPOLOGY_SUBBLOCK, TOPOLOGY_HOST)


def simulate(tmp_path: Path, *jobs: dict[str, Any]) -> dict[str, Any]:
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(jobs))
    result = CliRunner().invoke(
        app, ["simulate", "fleet", str(FLEET), "--jobs", str(tmp_path / "jobs.yaml"), "-o", "json"]
    )
    assert result.exit_code == 0, result.output
    return {one["name"]: one for one in json.loads(result.stdout)["workloads"]}


def job(name: str, level: str = TOPOLOGY_SUBBLOCK, pods: int = 6) -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load(JOB.read_text())
    result["metadata"]["name"] = name
    result["spec"] |= {"parallelism": pods, "completions": pods}
    annotations = result["spec"]["template"]["metadata"]["annotations"]
    annotations["kueue.x-k8s.io/podset-required-topology"] = level
    return result


def test_the_fleet_and_its_job_are_valid() -> None:
    result = CliRunner().invoke(app, ["check", str(FLEET), "--jobs", str(JOB)])
    assert (result.exit_code, "warning" in result.output) == (0, False), result.output


def test_a_job_waits_for_one_sub_block_though_enough_machines_are_free(tmp_path: Path) -> None:
    result = simulate(tmp_path, *(job(f"j{number}") for number in range(3)))
    assert [result[f"j{number}"]["admittedAt"] for number in range(2)] == [0.0, 0.0]
    assert result["j2"]["admittedAt"] >= 3600, "of each of the two sub-blocks two machines are free"


def test_a_job_of_a_whole_block_fits_and_one_beyond_a_sub_block_does_not(tmp_path: Path) -> None:
    result = simulate(tmp_path, job("block", TOPOLOGY_BLOCK, 16), job("sub-block", TOPOLOGY_SUBBLOCK, 9))
    assert result["block"]["admittedAt"] == 0.0
    assert (result["sub-block"]["state"], result["sub-block"]["reason"]) == ("Pending", "TopologyPlacementFailed")


def test_nodes_of_simulation_and_rehearsal_stand_in_the_same_places() -> None:
    spec = parse_fleet_text(FLEET.read_text(), "fleet")
    pool = spec.node_pool_on("h200", "h200")
    assert pool is not None
    result = node_pool_properties(
        pool, service_account="nodes@p", disk_encryption_key=None, image_streaming=True, labels={}
    )
    rehearsed = parse_node_pool("h200", result, pool.zones).standing_nodes(Place.of("h200", "us-central1"))
    simulated = [node["metadata"]["labels"] for node in topology_nodes(spec, "h200")]
    assert len(rehearsed) == len(simulated) == 16
    for one, other in zip((node.labels for node in rehearsed), simulated, strict=True):
        assert [one[level] for level in LEVELS] == [other[level] for level in LEVELS]
        assert one.items() >= pool.labels.items() <= other.items()
    assert len({labels[TOPOLOGY_SUBBLOCK] for labels in simulated}) == 2
    assert len({labels[TOPOLOGY_HOST] for labels in simulated}) == 16


def test_nodes_that_come_as_they_are_needed_are_not_there_for_kueue() -> None:
    data = yaml.safe_load(FLEET.read_text())
    (pool,) = data["nodePools"]
    del pool["nodeCount"]
    pool["autoscaling"] = {"totalMinNodeCount": 2, "totalMaxNodeCount": 16}
    assert len(list(topology_nodes(parse_fleet(data), "h200"))) == 2
    data["flavors"][0].pop("topologyName")
    assert not list(topology_nodes(parse_fleet(data | {"topologies": []}), "h200"))


def test_only_machines_with_fast_networks_have_blocks() -> None:
    assert topology_labels("g2-standard-24", "p", 0) == {}
    a4x = [topology_labels("a4x-highgpu-4g", "p", number)[TOPOLOGY_SUBBLOCK] for number in (17, 18)]
    assert a4x == ["p-block-0-sub-0", "p-block-0-sub-1"]
