"""What components take from other languages: read off the constructors, checked in the library's words."""

from __future__ import annotations

import inspect
from typing import Any

import pulumi
import pytest
from pulumi.runtime import rpc

import kueue_fleet
from kueue_admission.api import ClusterQueueSpec
from kueue_admission.kernel import SpecError
from kueue_fleet import ClusterQueue, Fleet, MultiKueue, NodePool, TeamIdentity, WorkerAccess, WorkerCluster
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gcp_components.cluster import ControlPlaneAccess
from kueue_fleet.kueue_components.credentials import WorkerGrant
from kueue_fleet.plugin.arguments import arguments_of, inputs_of, read_arguments
from kueue_fleet.plugin.package import components
from small_fleets import WORKER, fleet, fleet_data

RESOURCES = {
    "GrafanaIdentity": {"after"},
    "MultiKueue": {"workers_ready"},
    "Team": {"cluster_queues"},
    "TeamIdentity": {"after"},
}
"""Arguments that are resources, which other languages give by `dependsOn`."""
CLUSTER = {"name": "eu", "role": "worker", "region": "europe-west4"}


@pytest.mark.parametrize("name", components())
def test_every_argument_of_a_component_is_one_in_other_languages(name: str) -> None:
    component = getattr(kueue_fleet, name)
    parameters = set(inspect.signature(component.__init__).parameters) - {"self", "name", "opts"}
    added = {"cluster_spec"} if name == "NodePool" else set()
    unpacked = inputs_of(component)
    if unpacked is not None:
        parameters = (parameters - {"inputs"}) | set(unpacked.__annotations__)
    assert set(arguments_of(component).model_fields) == parameters - RESOURCES.get(name, set()) | added


def test_a_fleet_is_the_one_that_a_file_gives() -> None:
    floats = {"spec": as_sent(fleet_data(WORKER))}
    assert read_arguments(Fleet, floats) == {"spec": fleet()}


def as_sent(value: Any) -> Any:
    """Numbers as the engine sends them."""
    if isinstance(value, dict):
        return {key: as_sent(part) for key, part in value.items()}
    if isinstance(value, list):
        return [as_sent(part) for part in value]
    return float(value) if type(value) is int else value


def test_all_problems_at_once_each_at_its_path() -> None:
    data = fleet_data(WORKER)
    data["clusters"][1]["region"] = "moon-west1"
    data["clusterQueues"][0]["cohort"] = "vision"
    with pytest.raises(SpecError) as raised:
        read_arguments(Fleet, {"spec": data})
    output = str(raised.value)
    assert f"spec.clusters[{WORKER}].region: moon-west1 is not a known region" in output
    assert "spec.clusterQueues[gpu].cohort: was removed in Kueue's v1beta2; write cohortName" in output


def test_what_is_missing_and_what_is_not_known() -> None:
    with pytest.raises(SpecError) as raised:
        read_arguments(WorkerCluster, {"spec": CLUSTER, "network": "n", "subnetwerk": "s"})
    assert {problem.path for problem in raised.value.problems} == {"project", "subnetwerk"}
    assert "did you mean subnetwork?" in str(raised.value)


def test_a_number_is_not_made_whole_if_it_is_not() -> None:
    group = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "l4", "resources": [{"name": "cpu", "nominalQuota": 1.5}]}],
    }
    read = read_arguments(ClusterQueue, {"spec": {"resourceGroups": [group]}})["spec"]
    assert isinstance(read, ClusterQueueSpec)
    assert read.wire()["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] == "1500m"


@pytest.mark.parametrize("known", [True, False])
async def test_what_decides_is_a_value_and_not_an_output(known: bool) -> None:
    data = fleet_data(WORKER)
    data["clusters"][1]["name"] = pulumi.Output.from_input("x") if known else rpc.UNKNOWN
    with pytest.raises(SpecError, match=r"spec.clusters\[1\].name: is a secret or comes from another resource"):
        read_arguments(Fleet, {"spec": data})


async def test_outputs_go_where_the_constructor_takes_them() -> None:
    link = pulumi.Output.from_input("link")
    given = {"spec": CLUSTER, "project": "p", "network": link, "subnetwork": link}
    assert read_arguments(WorkerCluster, given)["network"] is link
    kubeconfigs = {WORKER: link}
    assert read_arguments(MultiKueue, {"spec": fleet_data(WORKER), "kubeconfigs": kubeconfigs})["kubeconfigs"] == {
        WORKER: link
    }


def test_the_constructors_own_types() -> None:
    access = {"dns": False, "networks": {"office": "203.0.113.0/24"}}
    given = {"spec": CLUSTER, "project": "p", "network": "n", "subnetwork": "s", "access": access}
    read = read_arguments(WorkerCluster, given)
    assert read["access"] == ControlPlaneAccess(dns=False, networks={"office": "203.0.113.0/24"})
    assert "labels" not in read, "the constructor's own default is used"
    identity = {"project": "p", "fleet": "f", "team": "t", "roles": [], "kubernetesAccounts": [["ns", "job"]]}
    assert read_arguments(TeamIdentity, identity)["kubernetes_accounts"] == [("ns", "job")]
    grant = {"kubeconfig": "{}", "rotation": "2026-11"}
    assert read_arguments(MultiKueue, {"workers": {"eu": grant}}) == {"workers": {"eu": WorkerGrant(**grant)}}
    worker = read_arguments(WorkerAccess, {"objects": [], "clusterName": "eu", "endpoint": "e"})
    assert worker["ca_certificate"] is None


def test_a_node_pool_is_given_with_its_clusters_entry() -> None:
    pool = {"name": "l4", "machineType": "g2-standard-24", "nodeCount": 2.0, "capacity": {"type": "onDemand"}}
    cluster = {**CLUSTER, "mode": "Standard", "zones": ["europe-west4-a"]}
    given = {"spec": pool, "clusterSpec": cluster, "project": "p", "cluster": "eu", "serviceAccount": "a"}
    read = read_arguments(NodePool, given)
    assert (read["spec"].name, read["spec"].node_count) == ("l4", 2)
    assert read["cluster_spec"].zones == ("europe-west4-a",)


def test_the_fleet_keeps_its_type() -> None:
    assert arguments_of(Fleet).model_fields["spec"].annotation is FleetSpec
