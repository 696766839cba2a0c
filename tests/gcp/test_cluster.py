from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

import pulumi_mocks
from kueue_fleet import ManagerCluster, WorkerCluster
from kueue_fleet.fleet_file import ClusterEntry
from pulumi_mocks import Recording

AUTOPILOT = ClusterEntry(name="worker", role="worker", region="us-east4")
STANDARD = ClusterEntry(
    name="worker", role="worker", region="us-east4", mode="Standard", zones=("us-east4-a",), release_channel="STABLE"
)


def declare(spec: ClusterEntry, **arguments: Any) -> WorkerCluster:
    return WorkerCluster("worker", spec, project="lab-project", network="net", subnetwork="sub", **arguments)


def run(spec: ClusterEntry, **arguments: Any) -> Recording:
    return pulumi_mocks.run(lambda: declare(spec, **arguments))


def test_an_autopilot_cluster_has_nothing_that_the_provider_refuses_or_replaces_it_for() -> None:
    inputs = run(AUTOPILOT).one("gcp:container/cluster:Cluster").inputs
    assert inputs["enableAutopilot"] is True
    assert not inputs.keys() & {
        "nodeConfig",
        "nodeVersion",
        "dnsConfig",
        "initialNodeCount",
        "removeDefaultNodePool",
        "workloadIdentityConfig",
        "enableShieldedNodes",
    }
    defaults = inputs["clusterAutoscaling"]["autoProvisioningDefaults"]
    assert defaults["serviceAccount"] == "gke-worker@lab-project.iam.gserviceaccount.com"


def test_a_standard_cluster_has_workload_identity_and_a_system_pool_before_anything_runs_in_it() -> None:
    recording = run(STANDARD)
    cluster = recording.one("gcp:container/cluster:Cluster")
    assert "enableAutopilot" not in cluster.inputs
    assert cluster.inputs["removeDefaultNodePool"] is True
    assert cluster.ignore_changes == ("dnsConfig", "initialNodeCount", "nodeConfig")
    assert cluster.inputs["workloadIdentityConfig"] == {"workloadPool": "lab-project.svc.id.goog"}
    assert cluster.inputs["nodeLocations"] == ["us-east4-a"]
    pool = recording.one("gcp:container/nodePool:NodePool")
    assert pool.inputs["nodeConfig"]["serviceAccount"] == "gke-worker@lab-project.iam.gserviceaccount.com"
    assert pool.inputs["nodeConfig"]["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert recording.is_before(pool, recording.one("pulumi:providers:kubernetes"))


@pytest.mark.parametrize("spec", [AUTOPILOT, STANDARD])
def test_nodes_are_private_and_start_after_their_account_may_write_logs(spec: ClusterEntry) -> None:
    recording = run(spec)
    cluster = recording.one("gcp:container/cluster:Cluster")
    assert cluster.inputs["privateClusterConfig"]["enablePrivateNodes"] is True
    assert cluster.inputs["releaseChannel"] == {"channel": spec.release_channel}
    assert all(recording.is_before(grant, cluster) for grant in recording.of_type("IAMMember"))


@pytest.mark.parametrize("spec", [AUTOPILOT, STANDARD], ids=lambda spec: spec.mode)
@pytest.mark.parametrize("protection", [True, False])
def test_deletion_protection_is_always_said_and_pulumi_protects_alike(spec: ClusterEntry, protection: bool) -> None:
    recording = run(spec, deletion_protection=protection)
    cluster = recording.one("gcp:container/cluster:Cluster")
    assert cluster.inputs["deletionProtection"] is protection
    what_holds_jobs = {cluster.short, *(pool.short for pool in recording.of_type("gcp:container/nodePool:NodePool"))}
    assert {r.short for r in recording if r.protect} == (what_holds_jobs if protection else set())


def test_the_kubernetes_provider_is_pinned_to_the_cluster_by_a_plain_identifier() -> None:
    recording = pulumi_mocks.run(lambda: declare(AUTOPILOT), preview=True)
    provider = recording.one("pulumi:providers:kubernetes")
    assert provider.inputs["clusterIdentifier"] == "projects/lab-project/locations/us-east4/clusters/worker"
    kubeconfig = run(AUTOPILOT).one("pulumi:providers:kubernetes").inputs["kubeconfig"]
    assert json.loads(kubeconfig)["clusters"][0]["cluster"] == {"server": "https://gke-worker.us-east4.gke.goog"}


def test_a_replaced_endpoint_leaves_the_identifier_as_it_is() -> None:
    cluster = run(AUTOPILOT).one("pulumi:providers:kubernetes")
    assert (
        "clusterIdentifier" not in cluster.property_dependencies
        or not cluster.property_dependencies["clusterIdentifier"]
    )


def test_a_cluster_of_another_role_is_refused() -> None:
    with pytest.raises(ValueError, match="cluster worker: ManagerCluster needs role manager, but it has worker"):
        pulumi_mocks.run(lambda: ManagerCluster("m", AUTOPILOT, project="lab-project", network="n", subnetwork="s"))


def test_options_of_the_component_do_not_leak_into_its_parts() -> None:
    options = pulumi.ResourceOptions(aliases=[pulumi.Alias(name="old")], ignore_changes=["labels"])
    recording = run(AUTOPILOT, opts=options)
    parts = [r for r in recording if r.custom]
    # By these types pulumi-gcp knew accounts and their members once.
    former = {"gcp:serviceAccount/account:Account", "gcp:serviceAccount/iAMMember:IAMMember"}
    assert all(former.issuperset(r.aliases) and not r.ignore_changes for r in parts)


def test_labels_say_who_manages_the_cluster() -> None:
    labels = run(AUTOPILOT, labels={"team": "ml"}).one("gcp:container/cluster:Cluster").inputs["resourceLabels"]
    assert labels == {"managed-by": "kueue-fleet", "kueue-fleet-role": "worker", "team": "ml"}


def test_a_cluster_without_protection_says_that_it_may_go() -> None:
    cluster = run(AUTOPILOT, deletion_protection=False).one("gcp:container/cluster:Cluster")
    assert cluster.inputs["resourceLabels"]["disposable"] == "true"


@pytest.mark.parametrize("spec", [AUTOPILOT, STANDARD], ids=lambda spec: spec.mode)
def test_nodes_run_as_the_account_that_the_file_names(spec: ClusterEntry) -> None:
    theirs = "gpu-nodes@p-1234.iam.gserviceaccount.com"
    recording = run(spec.model_copy(update={"node_service_account": theirs}))
    assert recording.of_type("Account") == []
    assert recording.of_type("IAMMember") == []
    inputs = recording.one("gcp:container/cluster:Cluster").inputs
    nodes = inputs["nodeConfig"] if "nodeConfig" in inputs else inputs["clusterAutoscaling"]["autoProvisioningDefaults"]
    assert nodes["serviceAccount"] == theirs
    assert {
        pool.inputs["nodeConfig"]["serviceAccount"] for pool in recording.of_type("gcp:container/nodePool:NodePool")
    } <= {theirs}


@pytest.mark.parametrize("location", ["us-central1", "us-central1-a"])
def test_a_cluster_that_exists_is_read_and_nothing_is_made_for_it(location: str) -> None:
    there = f"projects/lab-project-1/locations/{location}/clusters/std"
    recording = pulumi_mocks.run(lambda: WorkerCluster.get("std", there) and None)
    assert recording.read == (there,)
    assert recording.one("kubernetes").inputs["clusterIdentifier"] == there
    assert not recording.of_type("gcp:container/cluster:Cluster")
    assert {result.type for result in recording if result.custom} == {"pulumi:providers:kubernetes"}


def test_the_kubeconfig_is_a_secret_without_a_credential() -> None:
    async def look(made: WorkerCluster) -> None:
        assert await made.kubeconfig.is_secret()
        [user] = json.loads(str(await made.kubeconfig.future()))["users"]
        assert user["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"

    entry = ClusterEntry(name="std", role="worker", region="us-central1")
    pulumi_mocks.run(
        lambda: pulumi.Output.from_input(
            look(WorkerCluster("std", entry, project="lab-project-1", network="n", subnetwork="s"))
        )
    )
