"""A fleet of which some clusters, or node pools, are there already."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

import pulumi_mocks
from company_fleet import company_data
from kueue_admission.kernel import SpecError, errors_of
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import parse_fleet
from mocked_fleets import cluster_of, in_clusters, run
from pulumi_mocks import Recording
from small_fleets import MANAGER, WORKER, fleet, fleet_data, standalone_data


@pytest.fixture(scope="module")
def one_worker() -> Recording:
    return run(fleet(WORKER))


def existing_data(*names: str, **changes: Any) -> dict[str, Any]:
    """A fleet of which the named clusters are there already."""
    data = fleet_data(WORKER, **changes)
    for cluster in data["clusters"]:
        if cluster["name"] in names:
            cluster |= {"existing": True, "upsertExistingObjects": True}
    return data


def test_a_cluster_that_exists_is_read_and_only_filled(one_worker: Recording) -> None:
    recording = run(parse_fleet(existing_data(WORKER)))
    assert recording.read == (f"projects/lab-project/locations/us-east4/clusters/{WORKER}",)
    assert {r.place for r in recording.of_type("gcp:container/cluster:Cluster")} == {MANAGER}
    assert {r.place for r in recording.of_type("Subnetwork")} == {"lab/europe-west4"}
    assert not recording.of_type("gcp:serviceaccount/account:Account")[0].place.startswith(WORKER)
    inside = {r.place for r in in_clusters(recording)}
    assert inside == {r.place for r in in_clusters(one_worker)}, "what is inside is the same"
    for resource in in_clusters(recording):
        assert bool(resource.deleted_with) == (cluster_of(resource) == MANAGER), (
            "objects go one by one, the cluster stays"
        )
    upserts = {r.place: r.inputs.get("upsertExistingObjects") for r in recording.of_type("pulumi:providers:kubernetes")}
    assert upserts == {MANAGER: None, WORKER: "true"}
    assert recording.one("pulumi:providers:kubernetes", WORKER).inputs["enablePatchForce"] == "true"


EXISTING_ID = f"projects/lab-project/locations/us-east4/clusters/{WORKER}"


class Made(pulumi.CustomResource):
    """A cluster that the program makes in its own way."""

    link: pulumi.Output[str]

    def __init__(self) -> None:
        super().__init__("test:index:Made", "made", {"link": EXISTING_ID})


def test_a_cluster_that_exists_may_be_an_output_of_a_resource_which_it_waits_for() -> None:
    spec = parse_fleet(existing_data(WORKER))

    def program() -> None:
        Fleet(spec.name, spec, existing_clusters={WORKER: Made().link})

    recording = pulumi_mocks.run(program)
    assert recording.read == (EXISTING_ID,)
    result, provider = recording.one("test:index:Made"), recording.one("pulumi:providers:kubernetes", WORKER)
    assert recording.is_before(result, provider), "nothing is put into a cluster that is not there yet"


def test_an_id_of_another_stack_that_is_another_cluster_is_refused() -> None:
    spec = parse_fleet(existing_data(WORKER))

    def program() -> None:
        identifiers = pulumi.Output.from_input({WORKER: EXISTING_ID.replace("us-east4", "us-east1")})
        Fleet(spec.name, spec, existing_clusters={WORKER: identifiers.apply(lambda found: found[WORKER])})

    with pytest.raises(
        pulumi.RunError, match=r"worker-us-east4: is projects/lab-project/locations/us-east4/.*us-east1/"
    ):
        pulumi_mocks.run(program)


def test_ids_are_of_clusters_of_the_file_that_exist() -> None:
    spec = fleet(WORKER)
    with pytest.raises(SpecError) as refused:
        pulumi_mocks.run(lambda: Fleet(spec.name, spec, existing_clusters={WORKER: EXISTING_ID, "other": "x"}))
    assert [str(problem) for problem in errors_of(refused.value.problems)] == [
        f"clusters[{WORKER}].existing: not set, but the program gives the cluster's id; set it",
        "clusters: the program gives an id for other, which is not in the file; remove it",
    ]


def test_where_all_clusters_exist_there_is_no_network_and_the_api_servers_are_reached_as_their_owner_allows() -> None:
    recording = run(parse_fleet(existing_data(MANAGER, WORKER, network={"controlPlaneAccess": "DnsEndpoint"})))
    assert not [r.short for r in recording if r.type.startswith("gcp:") and r.type != "gcp:projects/service:Service"]
    provider = recording.one("pulumi:providers:kubernetes", WORKER)
    [cluster] = json.loads(provider.inputs["kubeconfig"])["clusters"]
    assert cluster["cluster"]["server"].startswith("https://192.0.2."), "its DNS name is not open to the outside"


def test_pools_of_the_file_join_a_cluster_that_exists_with_an_account_of_their_own() -> None:
    data = company_data()
    for cluster in data["clusters"]:
        if cluster["name"] == "worker-us-east4":
            for field in set(cluster) - {"name", "role", "region", "mode", "zones", "kueue", "diskEncryptionKey"}:
                del cluster[field]
            cluster["existing"] = True
    recording = run(parse_fleet(data))
    pools = [r for r in recording.of_type("gcp:container/nodePool:NodePool") if r.place.startswith("worker-us-east4/")]
    assert {r.inputs["cluster"] for r in pools} == {"worker-us-east4"}
    assert "worker-us-east4/system" not in {r.place for r in pools}
    assert {r.deleted_with for r in pools} == {""}
    accounts = {r.inputs["nodeConfig"]["serviceAccount"] for r in pools}
    assert accounts == {"gke-worker-us-east4@company-batch.iam.gserviceaccount.com"}


def test_pools_that_exist_are_not_made_and_their_flavors_and_quotas_stand() -> None:
    quotas = [{"name": "l4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4}]}]
    data = standalone_data(
        nodePools=[{"name": "gpus", "machineType": "g2-standard-24", "nodeCount": 2, "existing": True}],
        flavors=[{"name": "l4", "nodePool": "gpus"}],
        admissionChecks=[],
        topologies=[],
        clusterQueues=[
            {
                "name": "gpu",
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": quotas}],
            }
        ],
    )
    data["clusters"][0] |= {"existing": True, "upsertExistingObjects": True}
    recording = run(parse_fleet(data))
    assert not recording.of_type("gcp:container/nodePool:NodePool")
    flavor = recording.one("ResourceFlavor", "batch/l4", custom=True)
    assert flavor.inputs["spec"]["nodeLabels"]["cloud.google.com/gke-nodepool"] == "gpus"
    assert {r.inputs.get("takeOwnership") for r in recording.of_type("Release")} == {True}
