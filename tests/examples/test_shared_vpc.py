"""The example in three projects: what is in which, who may do what there, what is asked of each, what is refused."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import httplib2
import pytest
import yaml
from tests.adopt.existing_platform import described_cluster
from tests.fleet_file.builders import REMOVED, changed, problems
from tests.preflight.google_api import Project, forbidden

from kueue_fleet.adopt import Identity
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.google.resource import CloudResource
from kueue_fleet.google.resources import resources_on
from kueue_fleet.preflight.findings import Finding, findings
from kueue_fleet.preflight.google_cloud import Google, read_facts
from kueue_fleet.preflight.needs import Needs, needs_of
from kueue_fleet.pulumi_import import take_over

EXAMPLE = Path(__file__).parents[2] / "examples" / "shared-vpc" / "fleet.yaml"
DATA: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
OWN, US, EU, HOST = "acme-batch", "acme-gpus-us", "acme-gpus-eu", "acme-network"
NUMBER = "123456789012"
GKE, GOOGLE_APIS = (
    f"serviceAccount:{each}"
    for each in (
        f"service-{NUMBER}@container-engine-robot.iam.gserviceaccount.com",
        f"{NUMBER}@cloudservices.gserviceaccount.com",
    )
)


def fleet(changes: dict[str, Any] | None = None) -> FleetSpec:
    return parse_fleet(changed(DATA, changes or {}))


def resource(name: str, kind: str = "") -> CloudResource:
    [result] = [item for item in resources_on(fleet()) if item.name == name and item.type.endswith(kind)]
    return result


def needs(project: str) -> Needs:
    return next(item for item in needs_of(fleet()) if item.project == project)


@pytest.mark.parametrize(
    ("name", "project"),
    [
        ("shared/manager", OWN),
        ("shared/worker-us", US),
        ("shared/worker-eu", EU),
        ("shared/worker-us/l4-kept", US),
        ("shared/worker-eu/system", EU),
        ("shared/worker-eu-nodes", EU),
        ("shared/vision", OWN),
        ("shared/l4", OWN),
    ],
)
def test_each_resource_is_in_its_project(name: str, project: str) -> None:
    assert resource(name).properties["project"] == project


def test_a_cluster_is_in_the_gke_fleet_of_its_project() -> None:
    assert resource("shared/worker-us").properties["fleet"] == {"project": US}


def test_apis_are_enabled_in_each_project() -> None:
    result = [item.properties for item in resources_on(fleet()) if item.type.endswith(":Service")]
    container = [entry["project"] for entry in result if entry["service"] == "container.googleapis.com"]
    assert container == [OWN, US, EU]


def test_nodes_read_images_of_the_fleets_project() -> None:
    grant = resource("shared/worker-eu-nodes/images").properties
    assert (grant["project"], grant["role"]) == (OWN, "roles/artifactregistry.reader")


@pytest.mark.parametrize(("infix", "project"), [("", OWN), (f"/{US}", US), (f"/{EU}", EU)])
def test_pods_of_each_project_act_as_the_teams_account(infix: str, project: str) -> None:
    member = resource(f"shared/vision{infix}/vision/vision").properties["member"]
    assert member == f"serviceAccount:{project}.svc.id.goog[vision/vision]"


def test_pods_act_once_each_project_has_its_pool() -> None:
    needed = resource(f"shared/vision/{EU}/vision/vision").needs
    assert needed == ("Cluster/shared/manager", "Cluster/shared/worker-us", "Cluster/shared/worker-eu")


@pytest.mark.parametrize(("infix", "project"), [("", OWN), (f"/{US}", US), (f"/{EU}", EU)])
def test_members_connect_by_a_role_of_each_project(infix: str, project: str) -> None:
    grant = resource(f"shared/members{infix}/user:ada@example.com").properties
    assert (grant["project"], grant["role"].resource) == (project, f"IAMCustomRole/shared/members{infix}")


def test_the_managers_accounts_connect_in_each_project() -> None:
    profile = {"multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}}
    result = [
        entry for entry in resources_on(fleet(profile)) if entry.name.startswith("shared/manager/multikueue-manager/c")
    ]
    assert [item.properties["project"] for item in result] == [OWN, US, EU]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a network of the fleet's own": (
        {"network": REMOVED},
        "clusters[worker-us].project: in acme-gpus-us, and the network is one that only clusters of acme-batch can "
        "use; name the network of the Shared VPC's host project in network.existing",
    ),
    "a manager elsewhere": (
        {"clusters/0/project": US},
        "clusters[manager].project: set, but a manager is in the fleet's project; remove it, or write the project at "
        "the top of the file",
    ),
    "no range for pods": (
        {"network/existing/project": OWN, "network/existing/subnets/europe-west4/podRangeName": REMOVED},
        "network.existing.subnets[europe-west4].podRangeName: not set, but GKE adds no range to a network of another "
        "project, acme-batch; name the subnet's secondary range for pods",
    ),
    "a reservation without its project": (
        {"nodePools/0/capacity/project": REMOVED},
        "nodePools[l4-kept].capacity.project: not set, but worker-us is of acme-gpus-us, and reservation l4 of this "
        "file is in acme-batch; write acme-batch",
    ),
    "a reservation that is not shared": (
        {"reservations/0/sharedWith": REMOVED},
        "reservations[l4].sharedWith: worker-us is of acme-gpus-us, and reservation l4 is not shared with it; add the "
        "number of acme-gpus-us",
    ),
    "a calendar of another project": (
        {
            "futureReservations": [
                {
                    "name": "december",
                    "zone": "us-central1-a",
                    "machineType": "a3-highgpu-8g",
                    "count": 2,
                    "start": "2026-12-01T00:00:00Z",
                    "duration": "168h",
                }
            ],
            "nodePools/+": {
                "name": "h100",
                "clusters": ["worker-us"],
                "machineType": "a3-highgpu-8g",
                "zones": ["us-central1-a"],
                "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 2},
                "capacity": {
                    "type": "calendar",
                    "reservation": "december",
                    "start": "2026-12-01T00:00:00Z",
                    "duration": "168h",
                },
            },
        },
        "nodePools[h100].capacity: worker-us is of acme-gpus-us, and reservation december of acme-batch; put the pool "
        "on a cluster of acme-batch, or have the reservation made in acme-gpus-us",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    changes, problem = REFUSED[name]
    assert problem in problems(changed(DATA, changes))


def test_a_cluster_that_exists_may_be_in_any_network() -> None:
    there = {
        "network": REMOVED,
        "nodePools/0/existing": True,
        "nodePools/1/existing": True,
        "clusters/1/existing": True,
        "clusters/2/existing": True,
    }
    assert not [item for item in problems(changed(DATA, there)) if "network" in item]


def test_another_project_makes_the_cluster_again() -> None:
    result = compare_fleets(fleet(), fleet({"clusters/2/project": US}))
    [output] = [item for item in result if item.area == "consequences"]
    assert "acme-gpus-eu -> acme-gpus-us: worker-eu is deleted and made again" in output.text


def test_another_project_of_a_cluster_that_exists_is_another_cluster() -> None:
    there = {"clusters/2/existing": True}
    result = compare_fleets(fleet(there), fleet({**there, "clusters/2/project": US}))
    output = {item.text for item in result if item.path == "clusters[worker-eu].project"}
    assert any(text.startswith("acme-gpus-eu -> acme-gpus-us: it is another cluster") for text in output)


def test_import_keeps_the_projects() -> None:
    spec = fleet()
    clusters = [described_cluster(spec, name) for name in spec.cluster_names]
    identity = Identity("shared", OWN, date(2999, 2, 1), date(2026, 11, 21), in_place=True, managed=True)
    adopted, plan = take_over(clusters, identity)
    assert [entry.get("project") for entry in adopted.data["clusters"]] == [None, US, EU]
    assert plan is not None
    assert {item.id for item in plan.adoptions} >= {f"projects/{EU}/locations/europe-west4/clusters/worker-eu"}


def test_quotas_are_asked_of_the_project_of_the_nodes() -> None:
    amounts = {
        need.metric.region: need.amount for need in needs(EU).quotas if need.metric.name == "PREEMPTIBLE_NVIDIA_L4_GPUS"
    }
    assert amounts == {"europe-west4": 16}


def test_a_reservation_of_the_file_is_asked_of_the_fleets_project() -> None:
    assert [[need.name for need in needs(project).reservations] for project in (OWN, US, EU)] == [["l4"], [], []]


def granted(policies: dict[str, dict[str, list[str]]], **fields: Any) -> list[Finding]:
    """What preflight finds of grants in the host project."""
    expected = needs(US)
    with Project(id=US, number=NUMBER, policies=policies, **fields).served() as endpoints:
        facts = read_facts(expected, Google(httplib2.Http(timeout=5), endpoints))
    return [item for item in findings(expected, facts) if item.part == "grants"]


def test_the_host_project_grants_on_the_project_or_the_subnet() -> None:
    policies = {
        HOST: {"roles/container.hostServiceAgentUser": [GKE], "roles/compute.networkUser": [GOOGLE_APIS]},
        "gpus-uc1": {"roles/compute.networkUser": [GKE]},
    }
    assert [item.verdict for item in granted(policies)] == ["fits"] * 3


def test_a_grant_that_is_not_there_is_named_with_its_command() -> None:
    missing = granted({HOST: {"roles/container.hostServiceAgentUser": [GKE]}})[-1]
    assert missing.fix == (
        "run: gcloud compute networks subnets add-iam-policy-binding gpus-uc1 --region us-central1 --project "
        f"acme-network --member {GOOGLE_APIS} --role roles/compute.networkUser"
    )


def test_a_policy_that_may_not_be_read_is_not_known() -> None:
    refused = {"cloudresourcemanager.projects.getIamPolicy": [forbidden("resourcemanager.projects.getIamPolicy", HOST)]}
    assert [item.verdict for item in granted({}, failures=refused)] == ["unknown"] * 3
