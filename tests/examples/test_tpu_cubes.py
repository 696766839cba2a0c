"""The example with cubes of TPU7x: what Google Cloud is asked for, where jobs are placed, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_admission.kernel import SpecError
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec, check_fleet, parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.google.resources import resources_on
from kueue_fleet.jobs.check.dynamic_slices import as_placed
from kueue_fleet.jobs.topology_nodes import topology_nodes
from kueue_rehearsal.fleet_engines import check_runs_here

FOLDER = Path(__file__).parents[2] / "examples" / "tpu-cubes"
SLICE = "cloud.google.com/gke-tpu-slice-topology"
Change = Callable[[dict[str, Any]], object]


def data(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return loaded


def fleet(change: Change = lambda _: None) -> FleetSpec:
    result = data("fleet")
    change(result)
    return parse_fleet(result)


def said(job: dict[str, Any], spec: FleetSpec | None = None) -> list[str]:
    return [str(item) for item in check_manifests(spec or fleet(), [Document("job", job)]).problems]


def pod(job: dict[str, Any]) -> dict[str, Any]:
    spec = job["spec"]["replicatedJobs"][0]["template"]["spec"] if job["kind"] == "JobSet" else job["spec"]
    template: dict[str, Any] = spec["template"]
    return template


def placed(job: dict[str, Any]) -> dict[str, str]:
    annotations = pod(as_placed(job))["metadata"]["annotations"]
    return {key.rpartition("/podset-")[2]: value for key, value in annotations.items() if "/podset-" in key}


@pytest.mark.parametrize("name", ["two-cubes", "part"])
def test_jobs_of_the_example_start(name: str) -> None:
    assert said(data(name)) == []


def test_the_addon_is_on() -> None:
    cluster = next(item for item in resources_on(fleet()) if item.type.endswith(":Cluster"))
    assert cluster.properties["addonsConfig"]["sliceControllerConfig"] == {"enabled": True}


def test_without_the_controller_the_addon_is_left_as_it_is() -> None:
    other = parse_fleet(yaml.safe_load((FOLDER.parent / "tpu" / "fleet.yaml").read_text()))
    cluster = next(item for item in resources_on(other) if item.type.endswith(":Cluster"))
    assert "sliceControllerConfig" not in cluster.properties["addonsConfig"]


def test_the_policy_of_a_cube_only_provides_its_nodes() -> None:
    policies = [item.properties for item in resources_on(fleet()) if item.type.endswith(":ResourcePolicy")]
    assert [policy["workloadPolicy"] for policy in policies] == 3 * [
        {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "4x4x4", "acceleratorTopologyMode": "PROVISION_ONLY"}
    ]


def test_nodes_are_in_one_block_and_three_cubes() -> None:
    labels = [node["metadata"]["labels"] for node in topology_nodes(fleet(), "tpu")]
    assert len(labels) == 48
    assert {each["cloud.google.com/gce-topology-block"] for each in labels} == {"ironwood-block-0"}
    assert len({entry["cloud.google.com/gke-tpu-partition-4x4x4-id"] for entry in labels}) == 3
    assert len({item["cloud.google.com/gke-tpu-partition-2x2x2-id"] for item in labels}) == 24


@pytest.mark.parametrize(
    ("topology", "pods", "level", "size"),
    [
        ("4x4x8", 32, "4x4x4", "16"),
        ("4x4x4", 16, "4x4x4", "16"),
        ("2x4x4", 8, "2x4x4", "8"),
        ("2x2x1", 1, "2x2x1", "1"),
    ],
)
def test_pods_are_placed_by_cubes_or_by_parts_of_one(topology: str, pods: int, level: str, size: str) -> None:
    job = data("part")
    job["spec"] |= {"parallelism": pods, "completions": pods}
    pod(job)["metadata"]["annotations"][SLICE] = topology
    assert placed(job) == {
        "required-topology": "cloud.google.com/gce-topology-block",
        "slice-required-topology": f"cloud.google.com/gke-tpu-partition-{level}-id",
        "slice-size": size,
    }
    assert said(job) == []


def test_a_slice_of_four_cubes_never_starts_on_three() -> None:
    job = data("two-cubes")
    job["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": 64, "completions": 64}
    pod(job)["metadata"]["annotations"][SLICE] = "4x4x16"
    (problem,) = said(job)
    assert "never starts" in problem


@pytest.mark.parametrize("topology", ["4x4x6", "8x4x4", "4x4", "1x1x1", "0x4x4", "4x4x4x4", "", "four", 444])
def test_a_topology_that_the_controller_does_not_make_is_refused(topology: object) -> None:
    job = data("two-cubes")
    pod(job)["metadata"]["annotations"][SLICE] = topology
    assert said(job)


def test_fewer_chips_than_the_slice_has_are_refused() -> None:
    job = data("two-cubes")
    job["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": 16, "completions": 16}
    (problem,) = said(job)
    assert "requests 64 google.com/tpu in the pods of a slice of 4x4x8; make it 32 pods of 4 each" in problem


def test_a_job_that_selects_a_topology_of_nodes_is_refused() -> None:
    job = data("part")
    pod(job)["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "2x2x2"
    assert any("does not select nodes as GKE's slice controller needs it" in item for item in said(job))


def test_a_job_without_a_slice_is_refused_on_cubes() -> None:
    job = data("part")
    del pod(job)["metadata"]
    (problem,) = said(job)
    assert "requests TPUs of cubes" in problem


def test_a_queue_without_the_check_makes_no_slice() -> None:
    def unchecked(made: dict[str, Any]) -> None:
        del made["clusterQueues"][0]["admissionChecksStrategy"]

    (problem,) = said(data("part"), fleet(unchecked))
    assert "its queue has no check of accelerator.gke.io/slice" in problem


def _no_controller(made: dict[str, Any]) -> None:
    del made["clusters"][0]["sliceController"]


def _regular(made: dict[str, Any]) -> None:
    made["clusters"][0]["releaseChannel"] = "REGULAR"


def _no_sub_block(made: dict[str, Any]) -> None:
    made["nodePools"][1]["capacity"].pop("subBlock")


def _on_demand(made: dict[str, Any]) -> None:
    made["nodePools"][1]["capacity"] = {"type": "onDemand"}


def _other_topology(made: dict[str, Any]) -> None:
    made["nodePools"][1] |= {"tpuTopology": "2x2x4", "nodeCount": 4}


def _no_cubes(made: dict[str, Any]) -> None:
    for pool in made["nodePools"]:
        del pool["acceleratorTopologyMode"]


def _old(made: dict[str, Any]) -> None:
    made["clusters"][0]["minMasterVersion"] = "1.34"


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        (_no_controller, "nodePools[cube-0].acceleratorTopologyMode", "KF845"),
        (_regular, "clusters[tpu].releaseChannel", "KF845"),
        (_no_sub_block, "nodePools[cube-1].capacity", "KF845"),
        (_on_demand, "nodePools[cube-1].capacity", "KF845"),
        (_other_topology, "nodePools[cube-1].acceleratorTopologyMode", "KF845"),
    ],
)
def test_what_the_controller_needs(change: Change, path: str, code: str) -> None:
    with pytest.raises(SpecError) as refused:
        fleet(change)
    assert (path, code) in {(item.path, item.rule.code) for item in refused.value.problems}


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        (_no_cubes, "clusters[tpu].sliceController", "KF525"),
        (_old, "clusters[tpu].minMasterVersion", "KF617"),
    ],
)
def test_what_is_warned_of(change: Change, path: str, code: str) -> None:
    assert [(item.path, item.rule.code) for item in check_fleet(fleet(change))] == [(path, code)]


def test_a_rehearsal_refuses_the_controller() -> None:
    assert [item.path for item in check_runs_here(fleet())] == ["clusters[tpu].sliceController"]
