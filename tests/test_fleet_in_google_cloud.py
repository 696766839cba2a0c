"""What a fleet declares in Google Cloud: APIs, pools, reservations, accounts, addresses and dashboards."""

from __future__ import annotations

import base64
import json
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest

import declared_fleets
import pulumi_mocks
from company_fleet import WORKERS, company_data, without_worker
from kueue_fleet import Fleet, Network, testing
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.prerequisites import required_apis
from mocked_fleets import run
from pulumi_mocks import Recording
from small_fleets import MANAGER, WORKER, fleet
from tests.fleet_file.builders import changed
from tests.fleet_file.pool_builders import pools_data

_, US, ASIA = WORKERS


@pytest.fixture(scope="module")
def one_worker() -> Recording:
    return run(fleet(WORKER))


def test_everything_of_google_cloud_comes_after_the_apis_and_they_stay(one_worker: Recording) -> None:
    services = one_worker.of_type("gcp:projects/service:Service")
    assert [r.inputs["service"] for r in services] == sorted(
        api.name for api in required_apis(fleet(WORKER), fleet(WORKER).project)
    )
    assert {(r.inputs["project"], r.inputs["disableOnDestroy"]) for r in services} == {("lab-project", False)}
    for resource in one_worker:
        if resource.type.startswith("gcp:") and resource not in services:
            assert all(one_worker.is_before(service, resource) for service in services), resource.short


def test_a_project_whose_apis_somebody_else_enables(one_worker: Recording) -> None:
    without = run(fleet(WORKER, enableApis=False))
    assert not without.of_type("Service")
    assert without.resources.keys() < one_worker.resources.keys()


def test_nodes_start_after_there_is_a_way_out_to_the_registries(one_worker: Recording) -> None:
    for cluster in one_worker.of_type("gcp:container/cluster:Cluster"):
        way_out = one_worker.one("RouterNat", f"lab/{cluster.inputs['location']}")
        assert one_worker.is_before(way_out, cluster)


@pytest.mark.parametrize(("start", "nodes"), [("2020-01-01T00:00:00Z", 2), ("2199-01-01T00:00:00Z", 0)])
def test_a_pool_of_a_calendar_reservation_is_open_while_it_runs(start: str, nodes: int) -> None:
    data = changed(pools_data(), {"nodePools/5/capacity/start": start, "nodePools/5/capacity/duration": "87600h"})
    data["futureReservations"] = []
    recording = run(parse_fleet(data))
    [pool] = [
        item for item in recording.of_type("gcp:container/nodePool:NodePool") if item.inputs["name"] == "calendar"
    ]
    assert pool.inputs["nodeCount"] == nodes


@pytest.fixture(scope="module")
def company() -> Recording:
    return declared_fleets.company()


def test_pools_of_the_file_are_on_their_clusters_and_nothing_waits_for_them(company: Recording) -> None:
    spec = parse_fleet(company_data())
    pools = {r.place: r for r in company.of_type("gcp:container/nodePool:NodePool")}
    expected = {f"{cluster}/{pool.name}" for cluster in spec.cluster_names for pool in spec.node_pools_on(cluster)}
    assert set(pools) == expected | {f"{cluster}/system" for cluster in spec.cluster_names}
    clusters = {r.place: r for r in company.of_type("gcp:container/cluster:Cluster")}
    for name, pool in pools.items():
        cluster = clusters[name.partition("/")[0]]
        assert pool.deleted_with == cluster.urn
        assert company.is_before(cluster, pool)
        assert pool.inputs["nodeConfig"]["bootDiskKmsKey"].startswith("projects/company-keys/")
        assert pool.inputs["nodeConfig"]["resourceLabels"] == {"kueue-fleet": "company", "cost-center": "ml"}
    for release in company.of_type("Release"):
        assert not company.waits_for(release) & {pools[name].urn for name in expected}


def test_pools_come_after_reservations_of_the_file(company: Recording) -> None:
    for pool, kind, reservation in (
        ("worker-us-east4/l4-reserved", "Reservation", "company/l4-us-east4"),
        ("worker-us-east4/h100-calendar", "FutureReservation", "company/h100-december"),
    ):
        result = company.one("gcp:container/nodePool:NodePool", pool)
        assert company.is_before(company.one(kind, reservation), result)
    shared = company.one("gcp:container/nodePool:NodePool", "worker-asia-southeast1/h100-shared")
    reserved = {r.urn for r in company if r.custom and r.type.endswith("eservation")}
    assert not company.waits_for(shared) & reserved


def test_jobs_of_a_team_act_as_its_google_account_on_every_cluster(company: Recording) -> None:
    email = "company-vision@company-batch.iam.gserviceaccount.com"
    assert company.one("Account", "company/vision").outputs == {}
    accounts = [r for r in company.of_type("ServiceAccount") if "/vision/" in r.name]
    assert len(accounts) == 4
    assert {a.inputs["metadata"]["annotations"]["iam.gke.io/gcp-service-account"] for a in accounts} == {email}
    binding = company.one("gcp:serviceaccount/iAMMember:IAMMember", "company/vision/vision/vision")
    assert binding.inputs["member"] == "serviceAccount:company-batch.svc.id.goog[vision/vision]"
    # The project's Workload Identity pool comes with its first cluster; the manager is never removed.
    manager = company.one("gcp:container/cluster:Cluster", "manager-europe-west4")
    assert company.is_before(manager, binding)


def test_managers_tokens_are_taken_by_workers_alone(company: Recording) -> None:
    taken = {
        r.place: r.inputs["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["enableK8sTokensViaDns"]
        for r in company.of_type("gcp:container/cluster:Cluster")
    }
    assert taken == {name: name != "manager-europe-west4" for name in taken}
    by_profile = run(
        fleet(WORKER, multiKueue={"credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}})
    )
    worker = by_profile.one("gcp:container/cluster:Cluster", WORKER).inputs["controlPlaneEndpointsConfig"]
    assert worker["dnsEndpointConfig"]["enableK8sTokensViaDns"] is False
    # The manager's pods may connect to clusters, and no more; what they may do there is a matter of RBAC.
    role = by_profile.one("gcp:projects/iAMCustomRole:IAMCustomRole")
    assert role.inputs["permissions"] == ["container.clusters.connect"]
    [account] = [r for r in by_profile.of_type("gcp:serviceaccount/account:Account") if "multikueue" in r.place]
    [pods] = [r for r in by_profile.of_type("gcp:serviceaccount/iAMMember:IAMMember") if "multikueue" in r.place]
    assert pods.inputs["member"].endswith(".svc.id.goog[kueue-system/kueue-controller-manager]")
    definition = by_profile.one("CustomResourceDefinition")
    patch = by_profile.one("DeploymentPatch")
    release = by_profile.one("kubernetes:helm.sh/v3:Release", f"{MANAGER}/kueue")
    cluster = by_profile.one("MultiKueueCluster")
    assert by_profile.is_before(definition, release)
    assert by_profile.is_before(release, patch)
    assert by_profile.is_before(account, patch)
    assert by_profile.is_before(patch, cluster)


def kubeconfig_for(recording: Recording, worker: str) -> dict[str, Any]:
    secret = recording.one("Secret", f"{MANAGER}/multikueue/{worker}")
    decoded: dict[str, Any] = json.loads(base64.b64decode(secret.inputs["data"]["kubeconfig"]))
    return decoded


def test_the_manager_goes_by_the_dns_name_which_needs_no_authority_of_the_cluster(one_worker: Recording) -> None:
    cluster = kubeconfig_for(one_worker, WORKER)["clusters"][0]["cluster"]
    assert cluster == {"server": f"https://gke-{WORKER}.us-east4.gke.goog"}


def test_with_addresses_the_manager_goes_by_the_private_one_and_is_let_in() -> None:
    office = {"name": "office", "cidr": "203.0.113.0/24"}
    recording = run(fleet(network={"controlPlaneAccess": "AuthorizedNetworks", "authorizedNetworks": [office]}))
    cluster = kubeconfig_for(recording, WORKER)["clusters"][0]["cluster"]
    assert cluster["server"].startswith("https://198.51.100."), "the private address of the mocks"
    assert cluster["certificate-authority-data"] == testing.CA_CERTIFICATE
    allowed = {
        r.place: {
            block["displayName"]: block["cidrBlock"]
            for block in r.inputs["masterAuthorizedNetworksConfig"]["cidrBlocks"]
        }
        for r in recording.of_type("gcp:container/cluster:Cluster")
    }
    assert allowed == {
        MANAGER: {"office": "203.0.113.0/24"},
        WORKER: {
            "office": "203.0.113.0/24",
            "nodes of the manager": "10.164.0.0/20",
            "pods of the manager": "10.36.0.0/15",
        },
    }
    # People come from outside.
    provider = recording.one("pulumi:providers:kubernetes", WORKER)
    [cluster] = json.loads(provider.inputs["kubeconfig"])["clusters"]
    assert cluster["cluster"]["server"].startswith("https://192.0.2."), "the public address of the mocks"


def test_the_dashboard_covers_the_whole_fleet_and_leaves_stopped_queues_alone() -> None:
    data = without_worker(US, ASIA)
    data["clusterQueues"][0]["stopPolicy"] = "Hold"
    recording = run(parse_fleet(data))
    condition = recording.one("AlertPolicy", "company/queue-inactive").inputs["conditions"][0]
    query = condition["conditionPrometheusQueryLanguage"]["query"]
    assert all(name in query for name in parse_fleet(data).cluster_names)
    assert 'cluster_queue!~"gpu"' in query
    assert recording.one("gcp:monitoring/dashboard:Dashboard").name == "company"


def test_a_fleet_that_asks_for_nothing_more_has_nothing_more(one_worker: Recording) -> None:
    for kind in ("Dashboards", "ManagedMonitoring", "GrafanaInstall", "GpuDrivers", "ReservedCapacity", "TeamIdentity"):
        assert not one_worker.of_type(kind)


def test_googles_resources_have_the_providers_own_timeouts(company: Recording) -> None:
    """Two hours for a pool, 90 minutes for a cluster: shorter ones give up while Google still works."""
    assert {r.short: r.timeouts for r in company if r.type.startswith("gcp:") and r.timeouts} == {}


def test_what_a_fleet_makes_has_the_types_of_the_sdk_and_their_outputs() -> None:
    def program() -> pulumi.Output[list[Any]]:
        result = Fleet("lab", fleet(WORKER))
        cluster = result.clusters[WORKER].cluster
        assert isinstance(cluster, gcp.container.Cluster)
        assert isinstance(result.network, Network)
        assert isinstance(result.network.network, gcp.compute.Network)
        addresses = cluster.control_plane_endpoints_config.apply(lambda config: config.dns_endpoint_config)
        name = addresses.apply(lambda dns: dns.endpoint if dns else None)
        return pulumi.Output.all(cluster.self_link, cluster.endpoint, result.network.network.self_link, name).apply(
            seen
        )

    def seen(found: list[Any]) -> list[Any]:
        outputs.extend(found)
        return found

    outputs: list[Any] = []
    pulumi_mocks.run(program)
    link, address, *rest = outputs
    assert link.endswith(f"/projects/lab-project/locations/us-east4/clusters/{WORKER}")
    assert address.startswith("192.0.2.")
    assert rest == [
        "https://www.googleapis.com/compute/v1/projects/lab-project/global/networks/lab",
        f"gke-{WORKER}.us-east4.gke.goog",
    ]
