"""The example with TPUs: its pools on Google Cloud, their nodes in a rehearsal, its jobs, and jobs that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kueue_fleet.cli import app
from kueue_fleet.fleet_file import FleetSpec, check_fleet, parse_fleet, parse_fleet_text
from kueue_fleet.google.node_pools import node_pool_properties
from kueue_fleet.preflight.quotas import quota_needs
from kueue_rehearsal.cloud.dws_decisions import Request, Supply, demand, plan_request
from kueue_rehearsal.cloud.node_pools import parse_node_pool
from kueue_rehearsal.cloud.node_templates import SIMULATED, Place

FOLDER = Path(__file__).parents[2] / "examples" / "tpu"
FLEET = FOLDER / "fleet.yaml"
ACCELERATOR, TOPOLOGY = "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"
TAINT = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
MEANT = {
    "single.yaml": ("fine-tune", {"flex-single"}),
    "slice.yaml": ("pretrain", {"reserved-0"}),
    "flex-slice.yaml": ("pretrain-flex", {"flex-slice"}),
    "pathways.yaml": ("pathways", {"heads", "reserved-0"}),
}
"""Name of the job in each file, and its flavors."""


def data() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FLEET.read_text())
    return loaded


def fleet(changes: dict[str, Any] | None = None, pool: int = 0) -> FleetSpec:
    result = data()
    result["nodePools"][pool] |= changes or {}
    return parse_fleet(result)


def properties(spec: FleetSpec, name: str) -> dict[str, Any]:
    pool = spec.node_pool_on(name, "tpu")
    assert pool is not None
    return node_pool_properties(
        pool, service_account="nodes@p", disk_encryption_key=None, image_streaming=True, labels={}
    )


def test_every_file_is_there_and_no_other() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*MEANT, FLEET.name}


@pytest.mark.parametrize("name", MEANT)
def test_each_job_fits_and_is_admitted_to_the_flavor_it_is_meant_for(name: str) -> None:
    result = CliRunner().invoke(app, ["check", str(FLEET), "--jobs", str(FOLDER / name)])
    assert (result.exit_code, "warning" in result.output) == (0, False), result.output
    result = CliRunner().invoke(app, ["simulate", "fleet", str(FLEET), "--jobs", str(FOLDER / name), "-o", "json"])
    assert result.exit_code == 0, result.output
    (workload,) = json.loads(result.stdout)["workloads"]
    job, meant = MEANT[name]
    assert (workload["name"], workload["state"]) == (job, "Finished")
    assert {chosen for flavors in workload["flavors"].values() for chosen in flavors.values()} == meant


def test_a_second_job_gets_the_second_slice_and_a_third_one_waits(tmp_path: Path) -> None:
    job = yaml.safe_load((FOLDER / "slice.yaml").read_text())
    jobs = [job | {"metadata": job["metadata"] | {"name": f"pretrain-{number}"}} for number in range(3)]
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(jobs))
    result = CliRunner().invoke(
        app, ["simulate", "fleet", str(FLEET), "--jobs", str(tmp_path / "jobs.yaml"), "-o", "json"]
    )
    results = {one["name"]: one for one in json.loads(result.stdout)["workloads"]}
    assert {results[f"pretrain-{number}"]["flavors"]["slice"]["google.com/tpu"] for number in (0, 1)} == {
        "reserved-0",
        "reserved-1",
    }
    assert [results[f"pretrain-{number}"]["admittedAt"] for number in range(3)] == [0.0, 0.0, 3601.0]


def test_a_slice_of_several_nodes_is_asked_for_with_its_topology() -> None:
    spec = fleet()
    result = properties(spec, "flex-slice")
    assert result["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "4x4"}
    assert result["nodeConfig"]["diskType"] == "hyperdisk-balanced"
    assert [item["count"] for item in result["nodeConfig"]["guestAccelerators"]] == [0]
    assert "placementPolicy" not in properties(spec, "flex-single")


@pytest.mark.parametrize("name", ["reserved-0", "flex-slice", "flex-single"])
def test_nodes_of_a_rehearsal_have_the_labels_taints_and_chips_that_flavors_count_on(name: str) -> None:
    spec = fleet()
    pool = spec.node_pool_on(name, "tpu")
    assert pool is not None
    result = parse_node_pool(name, properties(spec, name), pool.zones)
    node = result.template(Place.of("tpu", "us-east5"), "us-east5-a", "x")
    assert node.labels.items() >= pool.labels.items()
    assert SIMULATED in node.labels
    assert (node.labels[ACCELERATOR], node.labels[TOPOLOGY]) == (
        "tpu-v6e-slice",
        "2x2" if name == "flex-single" else "4x4",
    )
    assert node.labels["cloud.google.com/gke-accelerator-count"] == "4"
    assert "cloud.google.com/gke-accelerator" not in node.labels
    assert TAINT in node.taints
    assert node.allocatable["google.com/tpu"] == 4


def test_dws_gives_a_slice_to_a_job_of_as_many_pods() -> None:
    spec = fleet()
    pool = parse_node_pool("flex-slice", properties(spec, "flex-slice"), ("us-east5-a",))
    flavor = spec.flavor_on(spec.flavors[2], "tpu")
    pods = {
        "containers": [{"resources": {"limits": {"google.com/tpu": 4}}}],
        "nodeSelector": dict(flavor.node_labels),
    }
    request = Request("research/r", "u", "", {}, (("slice", 4),), {})
    place = Place.of("tpu", "us-east5")
    plan = plan_request(request, {"slice": {"template": {"spec": pods}}}, Supply(place, pools=(pool,)), 0.0)
    assert demand(plan.add) == {"tpu-v6e-slice": 16, "nodes of pool flex-slice": 4}
    with pytest.raises(ValueError, match="it has its maximum of 4 nodes"):
        plan_request(
            Request("research/r", "u", "", {}, (("slice", 5),), {}),
            {"slice": {"template": {"spec": pods}}},
            Supply(place, pools=(pool,)),
            0.0,
        )


def test_quotas_of_google_are_counted_in_chips() -> None:
    needs = {f"{need.metric} {need.metric.region}".strip(): need for need in quota_needs(fleet(), fleet().project)}
    chips = needs["PREEMPTIBLE_TPU_V6E us-east5"]
    assert (chips.amount, str(chips.standard)) == (48, "TPUS_PER_TPU_FAMILY CT6E")
    assert not [name for name in needs if "GPU" in name]


def test_chips_have_a_price_on_spot_and_none_with_flex_start() -> None:
    result = CliRunner().invoke(app, ["cost", str(FLEET), "-o", "json"])
    assert "the price of tpu-v6e-slice in us-east5, flexStart" in result.stdout
    text = FLEET.read_text().replace("capacity: { type: reserved, reservation: trillium }", "capacity: { type: spot }")
    result = CliRunner().invoke(app, ["cost", "-", "-o", "json"], input=text)
    (line,) = [line for line in json.loads(result.stdout)["lines"] if line["name"] == "reserved-0"]
    assert line["each"] == pytest.approx(4 * 1.35)
    assert line["missingPrices"] == ["hyperdisk-balanced in us-east5, onDemand"]


JOBS = {
    "half a machine": (
        "single.yaml",
        'google.com/tpu: "4"',
        'google.com/tpu: "2"',
        "pod set main requests 2 google.com/tpu a pod, but GKE runs a pod only if it takes all chips of its node; "
        "request 4",
    ),
    "three of four nodes": (
        "slice.yaml",
        "parallelism: 4\n          completions: 4",
        "parallelism: 3\n          completions: 3",
        "pod set slice has 3 pods, but a slice of 4x4 is 4 nodes, and a job runs on whole slices; make it 4 pods",
    ),
    "another topology": (
        "slice.yaml",
        "restartPolicy: Never\n",
        f"restartPolicy: Never\n              nodeSelector: {{ {TOPOLOGY}: 4x8 }}\n",
        f"pod set slice selects {TOPOLOGY}=4x8, but its queue leads to tpu-v6e-slice 4x4; select one of these, or "
        "leave it to the queue",
    ),
}


@pytest.mark.parametrize("case", JOBS)
def test_jobs_that_do_not_fit_slices_are_named(case: str, tmp_path: Path) -> None:
    name, before, after, problem = JOBS[case]
    text = (FOLDER / name).read_text()
    assert before in text
    (tmp_path / "job.yaml").write_text(text.replace(before, after))
    result = CliRunner().invoke(
        app, ["check", str(FLEET), "--jobs", str(tmp_path / "job.yaml")], env={"COLUMNS": "400"}
    )
    assert result.exit_code == 1
    assert problem in result.output


FLEETS: dict[str, tuple[dict[str, Any], str]] = {
    "a topology of other machines": (
        {"tpuTopology": "2x2x4"},
        "tpuTopology: is 2x2x4, which ct6e-standard-4t does not have; use one of 2x2, 2x4, 4x4",
    ),
    "half a slice": (
        {"nodeCount": 2},
        "nodeCount: is 2, but a slice of 4x4 is 4 ct6e-standard-4t nodes, and a pool is one slice; set it to 4",
    ),
    "no such machine": (
        {"machineType": "ct6e-standard-16t"},
        "machineType: ct6e-standard-16t is not in the catalogue, so its size is not checked; did you mean "
        "ct6e-standard-1t?",
    ),
    "GPUs": (
        {"accelerator": {"type": "nvidia-l4", "count": 1}},
        "accelerator: is set, but ct6e-standard-4t takes no GPUs; remove it, or use a machine type with GPUs",
    ),
    "a zone without them": ({"zones": ["us-east5-c"]}, "ct6e-standard-4t is not known to be offered in us-east5-c"),
}


@pytest.mark.parametrize("case", FLEETS)
def test_pools_that_gke_would_refuse_are_named(case: str) -> None:
    changes, problem = FLEETS[case]
    text = data()
    text["nodePools"][0] |= changes
    (text["clusters"][0]).pop("zones")
    result = CliRunner().invoke(app, ["check", "-"], input=yaml.safe_dump(text), env={"COLUMNS": "400"})
    assert problem in result.output


def test_quota_for_a_part_of_a_slice_is_refused_unless_the_cohort_lends_the_rest() -> None:
    text = FLEET.read_text().replace("google.com/tpu, nominalQuota: 16", "google.com/tpu, nominalQuota: 12")
    result = CliRunner().invoke(app, ["check", "-"], input=text, env={"COLUMNS": "400"})
    expected = (
        "flavors[flex-slice]: flex-slice may use 12 google.com/tpu of it on tpu, but a slice is 16 chips, and jobs run "
        "on whole slices; write 16"
    )
    assert expected in result.output
    lent = parse_fleet_text(
        text.replace("    namespaceSelector: {}", "    namespaceSelector: {}\n    cohortName: all"), "f"
    )
    assert not [one for one in check_fleet(lent) if "whole slices" in one.wrong]


def test_more_chips_than_nodes_hold_are_refused() -> None:
    text = FLEET.read_text().replace("google.com/tpu, nominalQuota: 32", "google.com/tpu, nominalQuota: 400")
    result = CliRunner().invoke(app, ["check", "-"], input=text, env={"COLUMNS": "400"})
    assert "queues may use 400 google.com/tpu of it on tpu (flex-single 400), but its nodes hold 32" in result.output


@pytest.mark.parametrize(
    ("section", "fields"),
    [("reservations", {}), ("futureReservations", {"start": "2026-12-01T08:00:00Z", "duration": "168h"})],
)
def test_tpus_are_not_reserved_by_machines(section: str, fields: dict[str, str]) -> None:
    entry = {"name": "trillium", "zone": "us-east5-a", "machineType": "ct6e-standard-4t", "count": 8, **fields}
    result = CliRunner().invoke(
        app, ["check", "-"], input=yaml.safe_dump(data() | {section: [entry]}), env={"COLUMNS": "400"}
    )
    assert result.exit_code == 1
    assert (
        f"{section}[trillium].machineType: ct6e-standard-4t has TPUs, which Google reserves by chips and not by "
        "machines; ask for the reservation with gcloud or your account team, remove it here, and name it in the pool's "
        "capacity"
    ) in result.output
