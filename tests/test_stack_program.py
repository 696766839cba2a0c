"""The Pulumi program in stacks/, run as Pulumi runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from declared_fleets import STACKS, Ran, run_stack_program, stack, stack_config
from kueue_fleet.google.answers import COMPUTE_API
from small_fleets import MANAGER, WORKER, fleet_data

ROOT = Path(__file__).parent.parent


def run(**config: Any) -> Ran:
    return run_stack_program(config)


def test_the_program_makes_the_fleet_of_the_config_and_exports_how_to_reach_it() -> None:
    recording, outputs, secrets = run(fleet=fleet_data(WORKER))
    assert recording.one("kueue-fleet:index:Fleet").name == "lab"
    assert outputs["fleet"] == "lab"
    assert outputs["manager"] == MANAGER
    assert outputs["clusters"][WORKER] == {
        "identifier": f"projects/lab-project/locations/us-east4/clusters/{WORKER}",
        "role": "worker",
        "endpoint": f"gke-{WORKER}.us-east4.gke.goog",
    }
    kubeconfig = json.loads(outputs["kubeconfig"])
    assert [context["name"] for context in kubeconfig["contexts"]] == [MANAGER, WORKER]
    assert secrets == {"kubeconfig"}
    assert outputs["network"] == f"{COMPUTE_API}/projects/lab-project/global/networks/lab"
    assert outputs["subnetworks"]["us-east4"] == (
        f"{COMPUTE_API}/projects/lab-project/regions/us-east4/subnetworks/lab-us-east4"
    )
    assert outputs["nodeServiceAccounts"][WORKER] == f"gke-{WORKER}@lab-project.iam.gserviceaccount.com"
    assert outputs["queues"] == {"team-a": ["gpu"], "shared": ["gpu"]}
    assert not {"dashboardUrl", "grafanaDashboard"} & outputs.keys()


def test_secrets_of_teams_are_taken_from_the_config() -> None:
    data = fleet_data(WORKER)
    data["teams"][0]["secrets"] = ["hugging-face"]
    recording, outputs, _ = run(fleet=data, teamSecrets={"hugging-face": {"token": "hf-1234"}})
    assert recording.one("Secret", f"{WORKER}/team-a/team-a/Secret/hugging-face").secrets
    assert "hf-1234" not in json.dumps(outputs)


def test_the_dashboard_is_there_for_any_grafana() -> None:
    _, outputs, _ = run(fleet=fleet_data(WORKER, observability={}))
    assert json.loads(outputs["grafanaDashboard"])["title"] == "lab: GPU batch fleet"
    assert re.search(r"/\d+\?project=lab-project$", outputs["dashboardUrl"])


def test_charts_of_the_config_take_the_place_of_the_specs() -> None:
    recording, _, _ = run(fleet=fleet_data(WORKER), charts={"kueue": "/charts/kueue", "jobSet": "/charts/jobset"})
    assert {r.inputs["chart"] for r in recording.of_type("Release")} == {"/charts/kueue", "/charts/jobset"}


def test_a_broken_fleet_ends_in_the_list_of_its_problems() -> None:
    data = fleet_data(WORKER)
    data["clusterQueues"][0]["cohortNam"] = data["clusterQueues"][0].pop("cohortName")
    data["workloadPriorityClasses"][0]["value"] = "high"
    with pytest.raises(pulumi.RunError) as caught:
        run(fleet=data)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the fleet in kueue-fleet:fleet cannot be used:"
    assert any("cohortNam" in line and "cohortName" in line for line in lines[1:])
    assert any("workloadPriorityClasses" in line for line in lines[1:])
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_stack_without_a_fleet_says_which_config_is_missing() -> None:
    with pytest.raises(pulumi.RunError, match="kueue-fleet:fleet"):
        run()


@pytest.mark.parametrize("name", sorted(path.stem.removeprefix("Pulumi.") for path in STACKS.glob("Pulumi.*.yaml")))
def test_every_stack_of_the_repository_can_be_built(name: str) -> None:
    recording, outputs, _ = stack(name)
    assert {r.place for r in recording.of_type("gcp:container/cluster:Cluster")} == set(outputs["clusters"])
    assert outputs["clusters"].keys() == {cluster["name"] for cluster in stack_config(name)["fleet"]["clusters"]}


def test_the_project_file_points_at_the_program_and_its_stacks() -> None:
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    assert project["name"] == "kueue-fleet"
    assert (ROOT / project["main"] / "__main__.py").is_file()
    assert (ROOT / project["stackConfigDir"]).is_dir()


def test_the_platform_as_it_is_published_is_made_only_if_a_rehearsal_asks_for_it() -> None:
    fleet = yaml.safe_load((ROOT / "examples" / "batch-platform" / "with-defects.yaml").read_text())
    with pytest.raises(pulumi.RunError, match="but its nodes hold 8"):
        run(fleet=fleet)
    recording, outputs, _ = run(fleet=fleet, asPublished="true")
    assert recording.one("kueue-fleet:index:Fleet").name == outputs["fleet"] == "batch-platform"
