"""The example of shared GPUs: what is declared, checked, simulated, and what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from kueue_fleet.cli import app
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import parse_fleet, parse_fleet_text
from kueue_fleet.google.node_pools import node_pool_properties
from kueue_rehearsal.cloud.node_pools import parse_node_pool
from kueue_rehearsal.cloud.node_templates import Place

FOLDER = Path(__file__).parents[2] / "examples" / "shared-gpus"
FLEET, JOBS = FOLDER / "fleet.yaml", FOLDER / "jobs.yaml"
GPU = "nvidia.com/gpu"


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), input=text, env={"COLUMNS": "400"})


def fleet_data() -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load(FLEET.read_text())
    return result


def check(data: dict[str, Any]) -> str:
    return run("check", "-", text=yaml.safe_dump(data)).output


def check_jobs(folder: Path, jobs: list[dict[str, Any]], data: dict[str, Any] | None = None) -> str:
    (folder / "fleet.yaml").write_text(yaml.safe_dump(data or fleet_data()))
    (folder / "jobs.yaml").write_text(yaml.safe_dump_all(jobs))
    return run("check", folder / "fleet.yaml", "--jobs", folder / "jobs.yaml").output


def asking(gpus: int, queue: str, **pod: Any) -> dict[str, Any]:
    """A job of one pod for so many GPUs."""
    job: dict[str, Any] = next(yaml.safe_load_all(JOBS.read_text()))
    job["metadata"] |= {"namespace": "research", "labels": {"kueue.x-k8s.io/queue-name": queue}}
    spec = job["spec"]["template"]["spec"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi", GPU: gpus}, "limits": {GPU: gpus}}
    spec |= pod
    return job


def test_the_example_is_valid_and_its_jobs_run_on_shares_parts_and_whole_gpus() -> None:
    result = run("check", FLEET, "--jobs", JOBS)
    assert (result.exit_code, "warning" in result.output) == (0, False), result.output
    result = run("simulate", "fleet", FLEET, "--jobs", JOBS, "-o", "json")
    results = {
        one["name"]: (one["flavors"]["main"][GPU], one["state"]) for one in json.loads(result.stdout)["workloads"]
    }
    assert results == {
        "notebook": ("l4-shared", "Finished"),
        "inference": ("a100-7th", "Finished"),
        "training": ("a100", "Finished"),
    }


@pytest.mark.parametrize(("pool", "devices"), [("notebooks", 8), ("inference", 7), ("training", 4)])
def test_nodes_of_a_rehearsal_have_the_shares_that_the_fleet_counts(pool: str, devices: int) -> None:
    resolved = parse_fleet_text(FLEET.read_text(), "fleet").node_pool_on(pool, "gpu")
    assert resolved is not None
    result = node_pool_properties(
        resolved, service_account="nodes@p", disk_encryption_key=None, image_streaming=True, labels={}
    )
    node = parse_node_pool(pool, result, resolved.zones).template(
        Place.of("gpu", "us-central1"), resolved.zones[0], "x"
    )
    assert node.labels.items() >= resolved.labels.items()
    assert node.allocatable[GPU] == resolved.allocatable[GPU] == resolved.devices_per_node == devices


def test_flavors_select_their_strategy() -> None:
    fleet = parse_fleet_text(FLEET.read_text(), "fleet")
    [shared, seventh, whole] = (fleet.flavor_on(flavor, "gpu").node_labels for flavor in fleet.flavors)
    prefix = "cloud.google.com/gke-"
    assert shared[f"{prefix}gpu-sharing-strategy"] == "time-sharing"
    assert shared[f"{prefix}max-shared-clients-per-gpu"] == "4"
    assert seventh[f"{prefix}gpu-partition-size"] == "1g.10gb"
    assert not any("shar" in key or "partition" in key for key in whole)


def test_quota_counts_shares_and_says_the_whole_gpus() -> None:
    data = fleet_data()
    data["clusterQueues"][2]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 15
    assert (
        "flavors[a100-7th]: queues may use 15 nvidia.com/gpu of it on gpu (inference 15), but its nodes hold 14 "
        "(nodes: inference 2 of 1 nvidia-a100-80gb in 7 shares each)"
    ) in check(data)


@pytest.mark.parametrize(
    ("pool", "accelerator", "problem"),
    [
        (
            1,
            {"partitionSize": "1g.5gb"},
            "nodePools[inference].accelerator.partitionSize: is 1g.5gb, of which GKE makes",
        ),
        (
            0,
            {"partitionSize": "1g.10gb"},
            "nodePools[notebooks].accelerator.partitionSize: is 1g.10gb, but GKE does not",
        ),
        (
            0,
            {"sharing": {"strategy": "MPS", "maxSharedClientsPerGpu": 49}},
            "nodePools[notebooks].accelerator.sharing.maxSharedClientsPerGpu: is 49, but between 2 and 48 containers",
        ),
        (0, {"sharing": {"strategy": "MIG", "maxSharedClientsPerGpu": 4}}, "accelerator.sharing.strategy: "),
    ],
)
def test_what_gke_cannot_is_named(pool: int, accelerator: dict[str, Any], problem: str) -> None:
    data = fleet_data()
    data["nodePools"][pool]["accelerator"] = accelerator
    assert problem in check(data)


def test_a_job_for_two_shares_is_refused(tmp_path: Path) -> None:
    assert (
        "Job research/notebook: pod set main has a container that requests 2 nvidia.com/gpu, but the GPUs of flavor "
        "l4-shared are shared, and a node there refuses a container of more than 1"
    ) in check_jobs(tmp_path, [asking(2, "notebooks")])


def test_a_job_for_two_shares_does_not_run_in_a_simulation_either(tmp_path: Path) -> None:
    jobs = [asking(gpus, "notebooks") for gpus in (1, 2)]
    for number, item in enumerate(jobs, 1):
        item["metadata"] |= {"name": f"of-{number}", "annotations": {"kueue-fleet.dev/run-seconds": "60"}}
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(jobs))
    result = run("simulate", "fleet", FLEET, "--jobs", str(tmp_path / "jobs.yaml"), "-o", "json")
    finished = {one["name"]: one["state"] == "Finished" for one in json.loads(result.stdout)["workloads"]}
    assert finished == {"of-1": True, "of-2": False}
    assert "are shared, and a node there refuses a container of more than 1" in result.stderr


def test_a_team_whose_pods_need_host_ipc_for_mps_may_have_it() -> None:
    data = fleet_data()
    data["nodePools"][0]["accelerator"]["sharing"]["strategy"] = "MPS"
    result = check(data)
    output = "podSecurity: baseline is what refuses hostIPC, which pods on l4-shared need to share GPUs by MPS"
    assert [f"teams[{team}].{output}" in result for team in ("research", "teaching")] == [True, True]
    for team in data["teams"]:
        team["podSecurity"] = "privileged"
    assert "hostIPC" not in check(data)


def test_containers_of_one_share_each_are_not(tmp_path: Path) -> None:
    job = asking(1, "notebooks")
    spec = job["spec"]["template"]["spec"]
    spec["containers"] += [{**spec["containers"][0], "name": "second"}]
    assert "is valid" in check_jobs(tmp_path, [job])


def test_parts_that_are_not_shared_may_be_several(tmp_path: Path) -> None:
    assert "refuses a container" not in check_jobs(tmp_path, [asking(2, "inference")])


def test_a_job_that_may_come_to_shares_or_to_whole_gpus_is_warned_of(tmp_path: Path) -> None:
    data = fleet_data()
    flavors = data["clusterQueues"][3]["resourceGroups"][0]["flavors"]
    flavors.append({**flavors[0], "name": "l4-shared"})
    data["clusterQueues"] = data["clusterQueues"][2:]
    data["teams"] = data["teams"][:1]
    data["teams"][0]["localQueues"].pop(0)
    result = check_jobs(tmp_path, [asking(2, "training")], data)
    assert "warning: " in result
    assert (
        "refuses a container of more than 1 (UnexpectedAdmissionError): Kueue may give it flavor l4-shared all the same"
    ) in result
    chosen = asking(2, "training", nodeSelector={"cloud.google.com/gke-nodepool": "training"})
    assert "refuses a container" not in check_jobs(tmp_path, [chosen], data)


def test_a_share_costs_its_part_of_the_node() -> None:
    lines = {line["name"]: line for line in json.loads(run("cost", FLEET, "-o", "json").stdout)["lines"]}
    assert lines["notebooks"]["share"] == pytest.approx(lines["notebooks"]["each"] / 8, abs=1e-4)
    assert lines["inference"]["share"] == pytest.approx(lines["inference"]["each"] / 7, abs=1e-4)
    assert lines["training"]["share"] is None


def test_a_change_is_said_in_words() -> None:
    data = fleet_data()
    before = parse_fleet(data)
    data["nodePools"][0]["accelerator"]["sharing"]["maxSharedClientsPerGpu"] = 6
    result = [item.text for item in compare_fleets(before, parse_fleet(data))]
    assert any("sharing TIME_SHARING by 4 -> TIME_SHARING by 6" in text for text in result), result
    assert any(
        "(4 nvidia-l4 in 16 shares) -> 0 to 2 g2-standard-24 (4 nvidia-l4 in 24 shares)" in entry for entry in result
    )


def test_a_budget_counts_shares_and_says_the_whole_gpus() -> None:
    result = run("simulate", "fleet", FLEET, "--jobs", JOBS)
    assert "research: 8 of 2,000 GPU hours per week, 0 % (4 of whole GPUs)" in result.output
