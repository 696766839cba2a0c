"""The example with a compute class: its object, its flavor, what is refused, imported, asked for, simulated."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.adopt.existing_platform import existing_platform
from tests.fleet_file.builders import REMOVED, changed, problems
from typer.testing import CliRunner

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.adopt import Identity, adopt_fleet
from kueue_fleet.cli import app
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.objects import render_cluster
from kueue_fleet.preflight.quotas import quota_needs

FOLDER = Path(__file__).parents[2] / "examples" / "compute-class"
FLEET, JOB = FOLDER / "fleet.yaml", FOLDER / "job.yaml"
DATA: dict[str, Any] = yaml.safe_load(FLEET.read_text(encoding="utf-8"))
AT = "flavors/0/computeClass"
FIRST = f"{AT}/priorities/0"
ON_DEMAND = {"machineType": "g2-standard-24"}


def fleet(changes: dict[str, Any] | None = None) -> FleetSpec:
    return parse_fleet(changed(DATA, changes or {}))


def rendered(kind: str, cluster: str, changes: dict[str, Any] | None = None) -> Manifest:
    [result] = [item for item in render_cluster(fleet(changes), cluster) if item["kind"] == kind]
    return result


def test_the_class_has_the_name_of_its_flavor() -> None:
    result = rendered("ComputeClass", "worker-us")
    assert (result["apiVersion"], result["metadata"]["name"]) == ("cloud.google.com/v1", "l4")


def test_the_class_is_written_as_gke_has_it() -> None:
    assert rendered("ComputeClass", "worker-us")["spec"] == {
        "priorities": DATA["flavors"][0]["computeClass"]["priorities"],
        "whenUnsatisfiable": "DoNotScaleUp",
        "nodePoolAutoCreation": {"enabled": True},
    }


def test_autopilot_makes_node_pools_by_itself() -> None:
    assert "nodePoolAutoCreation" not in rendered("ComputeClass", "worker-eu")["spec"]


def test_the_manager_has_no_class() -> None:
    assert "ComputeClass" not in {item["kind"] for item in render_cluster(fleet(), "manager")}


def test_the_flavor_selects_the_class_and_tolerates_spot() -> None:
    [flavor] = [item for item in render_cluster(fleet(), "worker-us") if item["kind"] == "ResourceFlavor"]
    assert flavor["spec"]["nodeLabels"] == {"cloud.google.com/compute-class": "l4"}
    spot = {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    assert flavor["spec"]["tolerations"] == [spot]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "labels beside the class": (
        {"flavors/0/nodeLabels": {"a.b/c": "d"}},
        "flavors[l4].nodeLabels: set, but computeClass gives it; remove it, or remove computeClass",
    ),
    "a pool beside the class": (
        {"flavors/0/nodePool": "l4"},
        "flavors[l4].nodePool: set, but computeClass says which nodes there are; keep one of the two",
    ),
    "Spot of a reservation": (
        {f"{FIRST}/spot": True},
        "flavors[l4].computeClass.priorities[0].spot: set, but reservations says where nodes come from; keep "
        "one of the "
        "two",
    ),
    "Spot and flex-start at once": (
        {f"{AT}/priorities/1/spot": True},
        "flavors[l4].computeClass.priorities[1].flexStart: set, but spot is too; write two priorities, one for each",
    ),
    "eight days of flex-start": (
        {f"{AT}/priorities/1/maxRunDurationSeconds": 691200},
        "flavors[l4].computeClass.priorities[1].maxRunDurationSeconds: 691200, but a flex-start node lives "
        "at most 604800, "
        "seven days; write 604800 or less",
    ),
    "no reservation named": (
        {f"{FIRST}/reservations": {"affinity": "Specific"}},
        "flavors[l4].computeClass.priorities[0].reservations.specific: none, but affinity is Specific; name "
        "a reservation",
    ),
    "a reservation named in vain": (
        {f"{FIRST}/reservations/affinity": "None"},
        "flavors[l4].computeClass.priorities[0].reservations.specific: set, but affinity is None; remove it, or set "
        "affinity to Specific",
    ),
    "zones beside a reservation": (
        {f"{FIRST}/location": {"zones": ["us-central1-a"]}},
        "flavors[l4].computeClass.priorities[0].location: set, but GKE refuses it beside a specific "
        "reservation; name the "
        "zones in reservations.specific",
    ),
    "a kind of GPU that is not there": (
        {f"{FIRST}/machineType": REMOVED, f"{FIRST}/gpu": {"type": "nvidia-l5", "count": 2}},
        "flavors[l4].computeClass.priorities[0].gpu.type: nvidia-l5 is not in the catalogue; did you mean nvidia-l4?",
    ),
    "two machines": (
        {f"{FIRST}/machineFamily": "g2"},
        "flavors[l4].computeClass.priorities[0].machineFamily: set, but machineType says it; keep one of the two",
    ),
    "no machine": (
        {f"{FIRST}/machineType": REMOVED},
        "flavors[l4].computeClass.priorities[0].machineType: not set; write machineType, machineFamily or gpu",
    ),
    "GPUs that the machine does not have": (
        {f"{FIRST}/gpu": {"type": "nvidia-l4", "count": 8}},
        "flavors[l4].computeClass.priorities[0].gpu: 8 nvidia-l4, but g2-standard-24 has 2 nvidia-l4; write "
        "what the machine "
        "type has, or remove gpu",
    ),
    "a name of GKE's": (
        {"flavors/0/name": "gke-l4", "clusterQueues/0/resourceGroups/0/flavors/0/name": "gke-l4"},
        "flavors[gke-l4].name: gke-l4 is also the name of its compute class, and those that begin so are "
        "GKE's own; write "
        "another name",
    ),
    "what is after AnyBestEffort": (
        {f"{FIRST}/reservations": {"affinity": "AnyBestEffort"}},
        "flavors[l4].computeClass.priorities[0].reservations.affinity: AnyBestEffort, with which GKE takes "
        "on-demand nodes "
        "where no reservation has any, and does not come to the priorities after it; put it last, or name "
        "reservations with "
        "Specific",
    ),
    "no node pools on Standard": (
        {f"{AT}/nodePoolAutoCreation": False},
        "flavors[l4].computeClass.nodePoolAutoCreation: false, so that no node of the class ever comes on worker-us, "
        "as on any Standard cluster; remove it, or leave worker-us out of the flavor's clusters",
    ),
    "a version without auto-creation by class": (
        {"clusters/1/minMasterVersion": "1.32"},
        "clusters[worker-us].minMasterVersion: 1.32, with which a new cluster begins, but the compute class "
        "of flavor l4 "
        "needs 1.33.3-gke.1136000; write that or a newer one",
    ),
    "a priority without GPUs": (
        {f"{AT}/priorities/3": {"machineType": "e2-standard-8"}},
        "flavors[l4].computeClass.priorities[3]: has no GPUs, but queue training counts nvidia.com/gpu on "
        "flavor l4; write "
        "gpu, or a machineType that has some",
    ),
    "two kinds of GPU": (
        {f"{AT}/priorities/3": {"machineType": "a2-highgpu-1g"}},
        "flavors[l4].computeClass.priorities: have nvidia-l4, nvidia-tesla-a100, which Kueue counts alike, "
        "and a job cannot "
        "choose; give each kind a flavor of its own, with fallback in the queue",
    ),
    "a way that Google does not offer": (
        {f"{AT}/priorities/3": {"machineType": "a3-ultragpu-8g"}},
        "flavors[l4].computeClass.priorities[3]: is onDemand, but Google does not offer a3-ultragpu-8g so; "
        "use one of spot, "
        "flexStart, calendar, reserved",
    ),
    "a machine that is not known": (
        {f"{AT}/priorities/3": {"machineType": "g2-standard-25"}},
        "flavors[l4].computeClass.priorities[3].machineType: g2-standard-25 is not in the catalogue; did you mean "
        "g2-standard-24?",
    ),
    "zones elsewhere": (
        {f"{AT}/priorities/3/location": {"zones": ["us-central1-a"]}},
        "flavors[l4].computeClass.priorities[3].location.zones[0]: is us-central1-a, which is not in europe-west4, the "
        "cluster's region; name zones of europe-west4, or change region",
    ),
    "queued provisioning of a class": (
        {
            "admissionChecks": [
                {"name": "dws", "provisioningRequest": {"provisioningClassName": "queued-provisioning.gke.io"}}
            ],
            "clusterQueues/0/admissionChecksStrategy": {"admissionChecks": [{"name": "dws"}]},
        },
        "clusterQueues[training].admissionChecksStrategy.admissionChecks[dws]: asks DWS for nodes of flavor "
        "l4, whose compute "
        "class has none of queued provisioning; limit the check to other flavors with onFlavors; flexStart "
        "of a priority "
        "needs no check",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    changes, problem = REFUSED[name]
    assert problem in {item.removeprefix("warning: ") for item in problems(changed(DATA, changes))}


def test_a_cluster_with_auto_provisioning_needs_an_older_version_only() -> None:
    limits = [{"resourceType": name, "maximum": 10000} for name in ("cpu", "memory", "nvidia-l4")]
    there = {"clusters/1/minMasterVersion": "1.32", "clusters/1/nodeAutoProvisioning": {"resourceLimits": limits}}
    assert not [item for item in problems(changed(DATA, there)) if "minMasterVersion" in item]


def test_quota_is_asked_for_the_gpus_of_the_class() -> None:
    amounts = {
        need.metric.region: need.amount for need in quota_needs(fleet(), "acme-batch") if "L4" in need.metric.name
    }
    assert amounts == {"us-central1": 16, "europe-west4": 16}


def test_preemptible_quota_is_asked_where_no_node_is_on_demand() -> None:
    spot = fleet({f"{AT}/priorities": [{**ON_DEMAND, "spot": True}]})
    assert {need.metric.name for need in quota_needs(spot, "acme-batch") if "L4" in need.metric.name} == {
        "PREEMPTIBLE_NVIDIA_L4_GPUS"
    }


def test_a_change_of_the_class_is_said() -> None:
    result = compare_fleets(fleet(), fleet({f"{AT}/whenUnsatisfiable": "ScaleUpAnyway"}))
    assert [item.path for item in result] == ["flavors[l4].computeClass.whenUnsatisfiable"]


def test_import_keeps_the_class() -> None:
    identity = Identity("classes", "acme-batch", date(2999, 2, 1), date(2026, 11, 21))
    adopted = adopt_fleet(existing_platform(fleet()), identity)
    [flavor] = adopted.data["flavors"]
    assert flavor["computeClass"]["priorities"] == DATA["flavors"][0]["computeClass"]["priorities"]


def test_the_job_is_valid() -> None:
    result = CliRunner().invoke(app, ["check", str(FLEET), "--jobs", str(JOB)])
    assert (result.exit_code, "warning" in result.output) == (0, False), result.output


def test_a_job_for_autopilot_selects_the_class_itself(tmp_path: Path) -> None:
    job = yaml.safe_load(JOB.read_text(encoding="utf-8"))
    del job["spec"]["template"]["spec"]["nodeSelector"]
    (tmp_path / "job.yaml").write_text(json.dumps(job), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(FLEET), "--jobs", str(tmp_path / "job.yaml")])
    assert "does not select cloud.google.com/gke-accelerator or cloud.google.com/compute-class itself" in result.output


def test_a_job_that_selects_another_class_is_not_admitted(tmp_path: Path) -> None:
    text = JOB.read_text(encoding="utf-8").replace("compute-class: l4", "compute-class: h100")
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    assert CliRunner().invoke(app, ["check", str(FLEET), "--jobs", str(tmp_path / "job.yaml")]).exit_code == 1


def test_kueue_sees_one_flavor() -> None:
    result = CliRunner().invoke(app, ["simulate", "fleet", str(FLEET), "--jobs", str(JOB), "-o", "json"])
    [row] = json.loads(result.output)["rows"]
    assert (row["cluster"], row["flavors"]) == ("worker-us", ["l4"]), result.output
