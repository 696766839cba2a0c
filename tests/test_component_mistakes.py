"""Single components run the rules of the fleet file on their arguments: a mistake is refused, or said, with a code."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest

import kueue_fleet as kf
import pulumi_mocks
from small_fleets import WORKER, fleet_data

PROJECT: dict[str, Any] = {"project": "lab-project-1"}
STD = kf.ClusterEntry("std", role="worker", region="us-central1", mode="Standard")
THERE = kf.ClusterEntry("std", role="worker", region="us-central1", existing=True)
MAP: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "elsewhere"}}
PEM = "-----BEGIN CERTIFICATE-----\nMII"
PAST = kf.FutureReservationEntry(
    "r", zone="us-central1-a", machine_type="a3-highgpu-8g", count=1, start="2020-01-01T00:00:00Z", duration="24h"
)
QUEUE: dict[str, Any] = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "spec": {"clusterQueue": "q"}}


def network(**arguments: Any) -> object:
    return kf.Network("n", **{**PROJECT, "regions": ["us-central1"], **arguments})


def cluster(**arguments: Any) -> object:
    return kf.WorkerCluster("std", STD, **{**PROJECT, "network": "n", "subnetwork": "s", **arguments})


def pool(**arguments: Any) -> object:
    there = {
        "cluster_spec": STD,
        "cluster": "std",
        "service_account": "gke-nodes@lab-project-1.iam.gserviceaccount.com",
    }
    return kf.NodePool("p", kf.Pool("p", "g2-standard-24", nodes=1), **{**PROJECT, **there, **arguments})


def dashboards(**arguments: Any) -> object:
    whole: dict[str, Any] = {**PROJECT, "fleet": "lab", "manager": None, "job_clusters": ["std"], **arguments}
    return kf.Dashboards("d", kf.Observability(), **whole)


def kueue(**fields: Any) -> object:
    return kf.KueueInstall("k", kf.KueueInstallation(**fields))


def installed(values: dict[str, Any], **fields: Any) -> object:
    return kf.KueueInstall("k", kf.KueueInstallation(**fields), values=values)


def two_defaults() -> None:
    for name in ("low", "lower"):
        kf.PriorityClass(name, kf.PriorityClassFields(value=1, global_default=True))


def identity(**arguments: Any) -> object:
    whole = {"fleet": "lab", "team": "vision", "roles": [], "kubernetes_accounts": [("vision", "jobs")], **arguments}
    return kf.TeamIdentity("t", **PROJECT, **whole)


def access(**arguments: Any) -> object:
    account = "lab-manager@lab-project-1.iam.gserviceaccount.com"
    whole = {"cluster_name": "std", "endpoint": "10.0.0.2", "ca_certificate": None, "google_account": account}
    return kf.WorkerAccess("w", **{**whole, **arguments})


def multi_kueue(worker: str = "std", rotation: str | None = "1", **arguments: Any) -> object:
    return kf.MultiKueue("m", workers={worker: kf.WorkerGrant('{"clusters": [{}]}', rotation)}, **arguments)


def team(**arguments: Any) -> object:
    return kf.Team("t", kf.TeamEntry("vision", local_queues=[]), **arguments)


def secrets(contents: dict[str, Any]) -> object:
    return kf.Team("t", kf.TeamEntry("t", local_queues=[], secrets=["token"]), secrets=contents)


def elsewhere() -> kf.NetworkIds:
    return kf.NetworkIds("link", {"us-east4": "projects/host-1/regions/us-west1/subnetworks/s", "europe-west4": "s"})


def without_manager() -> kf.FleetSpec:
    spec = kf.parse_fleet(fleet_data(WORKER))
    return spec.model_copy(update={"clusters": [item for item in spec.clusters if item.role == "worker"]})


def without_cohort() -> kf.ClusterQueueSpec:
    borrows = kf.FlavorQuotas("l4", [kf.ResourceQuota("cpu", 8, borrowing_limit=3)])
    group = kf.ResourceGroup(covered_resources=["cpu"], flavors=[borrows])
    return kf.ClusterQueueSpec(cohort_name="a", resource_groups=[group]).model_copy(update={"cohort_name": None})


def any_of(value: Any) -> Any:
    return value


def of_manifest(there: str, **arguments: Any) -> object:
    return kf.LocalQueue("gpu", {**QUEUE, "metadata": {"name": "gpu", "namespace": there}}, **arguments)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: network(ranges={"us-central1": "10.0.0.0/33"}), 'Network n.ranges[us-central1]: "10.0.0.0/33" is not'),
        (lambda: network(ranges={"us-central1": "10.0.0.1/20"}), "has host bits set"),
        (lambda: network(ranges={"us-central1": "fd00::/64"}), "is not an IPv4 range"),
        (
            lambda: network(ranges={"us-centre": "10.0.0.0/20"}),
            'Network n.ranges[us-centre]: "us-centre" is not a region',
        ),
        (lambda: network(pod_ranges={"us-central1": "10.4.0.0/30"}), "Network n.pod_ranges[us-central1]: "),
        (lambda: network(regions=["us-centrl1"]), "Network n.regions: us-centrl1 is not a known region; did you mean"),
        (lambda: network(regions=["us-central1-a"]), 'regions[0]: "us-central1-a" is a zone, not a region; write us-'),
        (
            lambda: network(regions=["us-central1", "us-east4"], ranges={"us-east4": "10.128.0.0/20"}),
            "network.ranges[us-east4]: 10.128.0.0/20 overlaps",
        ),
        (lambda: network(network_name="My Net"), 'Network n.network_name: "My Net" has characters'),
        (lambda: kf.Network("My_Net", **PROJECT, regions=[]), 'Network My_Net.name: "My_Net" has characters'),
        (
            lambda: network(project="12345678"),
            'Network n.project: "12345678" is a project number; write the project id',
        ),
        (lambda: kueue(version="0.19"), 'KueueInstallation.version: "0.19" is not a valid version'),
        (
            lambda: kueue(configuration={"featureGates": {"TopologyAwareScheduing": True}}),
            "kueue.configuration.featureGates[TopologyAwareScheduing]: Kueue 0.19.2 has no feature gate",
        ),
        (
            lambda: kueue(configuration={"integrations": {"frameworks": ["batch/jobs"]}}),
            "kueue.configuration.integrations.frameworks[0]: batch/jobs is not a framework of Kueue; did you mean",
        ),
        (lambda: kueue(namespace="Kueue System"), "KueueInstallation.namespace: "),
        (
            lambda: installed({"replicas": 2}),
            "k.values.replicas: the chart of Kueue 0.19.2 has no such value, and Helm passes over it; did you "
            "mean controllerManager.replicas?",
        ),
        (lambda: installed({"controllerManger": {"replicas": 2}}), "did you mean controllerManager?"),
        (
            lambda: installed({"enableMutatingAdmissionPolicy": True}, version="0.17.1"),
            "the chart of Kueue 0.17.1 has no such value, and Helm passes over it; remove it, or use 0.19",
        ),
        (
            lambda: installed({"enableKueueViz": "false"}),
            "values.enableKueueViz: 'false' is text, which the chart takes for true; give True or False",
        ),
        (
            lambda: installed({"controllerManager": "big"}),
            "values.controllerManager: is not a map, so Helm passes over it",
        ),
        (
            lambda: installed({"managerConfig": {"controllerManagerConfigYaml": {"featureGates": {}}}}),
            "controllerManagerConfigYaml: is not the text of a Configuration; give its YAML, as text",
        ),
        (
            lambda: installed(
                {"managerConfig": {"controllerManagerConfigYaml": "featureGates: {TopologyAware: true}"}}
            ),
            "controllerManagerConfigYaml.featureGates[TopologyAware]: Kueue 0.19.2 has no feature gate",
        ),
        (
            lambda: installed({"managerConfig": {"controllerManagerConfigYaml": "manageJobsWithoutQueue: true"}}),
            "controllerManagerConfigYaml.manageJobsWithoutQueue: is not a known field; did you mean",
        ),
        (lambda: dashboards(project="My Project"), "Dashboards d.project: "),
        (lambda: dashboards(job_clusters=[]), "Dashboards d.job_clusters: there are none"),
        (lambda: dashboards(manager="my_manager"), "Dashboards d.manager: "),
        (lambda: dashboards(job_clusters=["std", "Std 2"]), "Dashboards d.job_clusters[1]: "),
        (lambda: dashboards(kueue_namespace="Kueue"), "Dashboards d.kueue_namespace: "),
        (lambda: dashboards(labels={"Team": "a"}), 'Dashboards d.labels[Team]: "Team" is not a valid label key'),
        (lambda: dashboards(labels={"team": "A B"}), 'Dashboards d.labels[team]: "A B" is not a valid label value'),
        (lambda: kf.NodeIdentity("n", **PROJECT, cluster_name="Std 1"), "NodeIdentity n.cluster_name: "),
        (
            lambda: kf.NodeIdentity("n", **PROJECT, cluster_name="std", roles=["storage.admin"]),
            'NodeIdentity n.roles[0]: "storage.admin" is not an IAM role',
        ),
        (lambda: identity(team="Team Vision"), "TeamIdentity t.team: "),
        (
            lambda: identity(kubernetes_accounts=["vision/jobs"]),
            "kubernetes_accounts[0]: 'vision/jobs' is given; give a",
        ),
        (lambda: identity(kubernetes_accounts=[("a", "b", "c")]), "a list is given; give a list of 2: text, text"),
        (lambda: identity(kubernetes_accounts=[("vision", "My Jobs")]), "TeamIdentity t.kubernetes_accounts[0][1]: "),
        (
            lambda: kf.MemberAccess("m", **PROJECT, fleet="lab", members=["me@example.com"]),
            'MemberAccess m.members[0]: "me@example.com" is not a member; write group:, user: or',
        ),
        (lambda: kf.ProjectServices("s", **PROJECT, apis=["container"]), "ProjectServices s.apis[0]: "),
        (lambda: cluster(labels={"team": ""}), "labels[team]: empty, which the Google provider never sets"),
        (lambda: cluster(node_service_account="nodes"), "WorkerCluster std.node_service_account: "),
        (lambda: cluster(images_of="My Images"), "WorkerCluster std.images_of: "),
        (lambda: cluster(pod_range_name="My Pods"), "WorkerCluster std.pod_range_name: "),
        (lambda: cluster(access=kf.ControlPlaneAccess(dns=False)), "cluster std.access.authorizedNetworks: none, but"),
        (
            lambda: cluster(access=kf.ControlPlaneAccess(dns=False, networks={"office": "10.0.0.0/33"})),
            "WorkerCluster std.access.networks[office]: ",
        ),
        (
            lambda: kf.WorkerCluster("std", THERE, **PROJECT, existing_id="std"),
            "cluster std.existing_id: 'std' is not an id; write projects/P/locations/L/clusters/N",
        ),
        (
            lambda: kf.WorkerCluster(
                "std", THERE, **PROJECT, existing_id="projects/lab-project-1/locations/us-east4/clusters/std"
            ),
            "cluster std: is projects/lab-project-1/locations/us-central1/clusters/std by its entry, but the program",
        ),
        (
            lambda: kf.WorkerCluster.get("std", "projects/lab-project-1/locations/mars/clusters/std"),
            "mars is not a region of Google Cloud",
        ),
        (
            lambda: cluster(subnetwork="projects/host-1/regions/us-east4/subnetworks/s"),
            "cluster std.subnetwork: is in us-east4, and the cluster in us-central1; give a subnet of that region",
        ),
        (
            lambda: kf.Fleet("lab", fleet_data(WORKER), network=elsewhere()),
            "network: the program gives a subnet of us-west1 for us-east4; give one there",
        ),
        (lambda: kf.parse_fleet_text(any_of(Path("fleet.yaml"))), "a PosixPath is given; give text"),
        (lambda: pool(service_account="nodes"), "NodePool p.service_account: "),
        (lambda: pool(cluster="Std 1"), "NodePool p.cluster: "),
        (lambda: pool(location="us-central1"), 'NodePool p.location: "us-central1" is not a zone of Google'),
        (lambda: pool(location="us-east4-a"), "NodePool p.location: is us-east4-a, which is not in us-central1"),
        (lambda: pool(labels={"team": ""}), "labels[team]: empty"),
        (
            lambda: kf.NodePool.get("p", "projects/P/locations/us-central1/clusters/std/nodePools/p"),
            "P is not a valid project ID",
        ),
        (lambda: kf.ReservedCapacity("r", project="My Project"), "ReservedCapacity r.project: "),
        (lambda: kf.Namespaces("n", ["Team Vision"]), 'Namespaces n.spec[0]: "Team Vision" has characters'),
        (lambda: kf.Namespaces("n", ["vision", "vision"]), "Namespaces n: vision is listed twice"),
        (lambda: kf.Namespaces("n", [{"metadata": {}}]), "Namespaces n.spec[0]: a map without apiVersion is given"),
        (
            lambda: access(ca_certificate=PEM),
            'WorkerAccess w.ca_certificate: "-----BEGIN CERTIFICATE-----\\nMII" is PEM itself; give it in base64',
        ),
        (lambda: access(ca_certificate="Q0E="), 'ca_certificate: "Q0E=" is not a certificate; give PEM in base64'),
        (
            lambda: access(google_account=None, objects=[{**MAP, "kind": "Secret", "type": "Opaque"}]),
            "WorkerAccess w.objects: 1 Secrets were given; give one of type kubernetes.io/service-account-token",
        ),
        (lambda: access(google_account=None, objects=[MAP]), "w.objects[0]: a manifest of ConfigMap is given; give"),
        (lambda: access(endpoint="https://10.0.0.2"), 'endpoint: "https://10.0.0.2" is not a host; write the host'),
        (lambda: access(frameworks=["batch/jobs"]), "WorkerAccess w.frameworks[0]: batch/jobs is not a framework"),
        (lambda: access(namespaces=["Team Vision"]), "WorkerAccess w.namespaces[0]: "),
        (lambda: access(google_account="me@example.com"), "WorkerAccess w.google_account: "),
        (lambda: access(kueue_namespace="Kueue"), "WorkerAccess w.kueue_namespace: "),
        (lambda: access(cluster_name="Std 1"), "WorkerAccess w.cluster_name: "),
        (lambda: multi_kueue("Std 1"), 'MultiKueue m.workers[Std 1]: "Std 1" has characters'),
        (lambda: multi_kueue(rotation="Nov 2026"), "MultiKueue m.workers[std].rotation: "),
        (lambda: multi_kueue(workers_ready={"sdt": []}), "MultiKueue m.workers_ready: sdt is not among the workers"),
        (lambda: multi_kueue(checks={"mk": ["sdt"]}), "MultiKueue m.checks[mk]: sdt is not among the workers"),
        (lambda: multi_kueue(kueue_namespace="Kueue"), "MultiKueue m.kueue_namespace: "),
        (lambda: kf.AdmissionController("a", [], kubeconfigs={}), "AdmissionController a.objects: 0 Deployments in"),
        (lambda: kf.ComputeClasses("c", [{}]), "ComputeClasses c.objects[0]: a map without apiVersion is given"),
        (lambda: kf.ManagedMonitoring("m", [{"apiVersion": "v1"}]), "objects[0]: a map without kind is given"),
        (lambda: kf.GpuDrivers("g", {**MAP, "metadata": {}}), "GpuDrivers g.spec: a map without name is given"),
        (
            lambda: kf.ComputeClasses("c", [MAP]),
            "ComputeClasses c.objects[0]: a manifest of ConfigMap is given; give a manifest of cloud.google",
        ),
        (
            lambda: kf.ComputeClasses("c", [{**MAP, "kind": "ComputeClass"}]),
            "a manifest of ComputeClass is given; give",
        ),
        (lambda: kf.ManagedMonitoring("m", [MAP]), "give a manifest of monitoring.googleapis.com/PodMonitoring or "),
        (
            lambda: kf.GpuDrivers("g", MAP),
            "GpuDrivers g.spec[0]: a manifest of ConfigMap is given; give a manifest of apps",
        ),
        (lambda: kf.GpuDirect("g", [MAP]), "GpuDirect g.objects[0]: a manifest of ConfigMap is given"),
        (lambda: kf.NodeNetworks("n", [MAP]), "NodeNetworks n.objects[0]: a manifest of ConfigMap is given"),
        (lambda: kf.RunDurationPolicy("r", [MAP]), "RunDurationPolicy r.objects[0]: a manifest of ConfigMap is given"),
        (lambda: kf.TeamVolumes("t", [MAP]), "TeamVolumes t.objects[0]: a manifest of ConfigMap is given"),
        (lambda: kf.Namespaces("n", ["a", MAP]), "Namespaces n.spec[1]: a manifest of ConfigMap is given"),
        (
            two_defaults,
            "PriorityClass lower: is a default, and another one is declared before, on the same cluster; keep",
        ),
        (
            lambda: secrets({"token": {"my key": "a"}}),
            'Team t.secrets[token][my key]: "my key" has characters or a form',
        ),
        (lambda: team(objects=[{}]), "Team t.objects[0]: a map without apiVersion is given"),
        (lambda: team(objects=[MAP]), "Team t.objects: one is in elsewhere"),
        (lambda: kf.LocalQueue("gpu", namespace="Team Vision", cluster_queue="q"), "LocalQueue gpu.namespace: "),
        (lambda: of_manifest("vision", namespace="language"), "namespace: is language, and the manifest is in vision"),
        (lambda: of_manifest("vision", object_name="cpu"), "object_name: is cpu, and the manifest's name is gpu"),
        (
            lambda: kf.LocalQueue("gpu", {**QUEUE, "metadata": {"name": "gpu"}}),
            "metadata.namespace: is missing; add it",
        ),
        (
            lambda: kf.AdmissionController(
                "a", [{**MAP, "kind": "Deployment", "metadata": {"name": "a"}}], kubeconfigs={}
            ),
            "AdmissionController a.objects: 0 Deployments in a namespace are given",
        ),
        (
            lambda: multi_kueue(checks={}),
            "MultiKueue m.checks: there are none, so no queue can dispatch to the workers",
        ),
        (lambda: access(endpoint="10.0.0.2:https"), 'WorkerAccess w.endpoint: "10.0.0.2:https" is not a host'),
        (lambda: cluster(network=""), "WorkerCluster std.network: is empty; give a text, or leave it out"),
        (lambda: kf.ClusterQueue.get("q", ""), "ClusterQueue.get.object_name: is empty"),
        (
            lambda: kf.AdmissionCheck("a", {"controllerName": "kueue.x-k8s.io/multikueue"}),
            "AdmissionCheck a.parameters: is missing, and kueue.x-k8s.io/multikueue reads there what to do; name",
        ),
        (lambda: kf.ClusterQueue("q", {"kind": "ClusterQueue", "metadata": {"name": "q"}}), "with an apiVersion and a"),
        (lambda: kf.ClusterQueue("q", {"kind": "ClusterQueue", "metadata": None}), "with the name None is given"),
        (
            lambda: [kf.KueueInstall(item) for item in "ab"],
            "is declared before, on the same cluster; give each its own",
        ),
        (lambda: [kf.Namespaces(item, ["a"]) for item in "ab"], "Namespace a: is declared before, on the same cluster"),
        (lambda: [kf.Namespaces("n", ["vision"]), team()], "Namespace vision: is declared before, on the same cluster"),
        (
            lambda: [kf.Network(item, **PROJECT, regions=[], network_name="net") for item in "ab"],
            "projects/lab-project-1/global/networks/net: is declared before; give each its own name",
        ),
        (
            lambda: [kf.NodeIdentity(item, **PROJECT, cluster_name="std") for item in "ab"],
            "gke-std@lab-project-1.iam.gserviceaccount.com: is declared before",
        ),
        (lambda: kf.ClusterQueue.get("Prod Queue"), 'ClusterQueue Prod Queue: "Prod Queue" has characters'),
        (lambda: kf.PriorityClass("system-batch", {"value": 1}), "system-batch begins with system-, which is reserved"),
        (lambda: kf.Cohort("a", {"parentName": "a"}), "Cohort a.parentName: the cohorts form a cycle"),
        (
            lambda: kf.Fleet("lab", without_manager()),
            "clusters: there is a worker but no manager; give it role standalone, or add a cluster of role manager",
        ),
        (
            lambda: kf.ClusterQueue("q", without_cohort()),
            "ClusterQueue q.resourceGroups[0].flavors[l4].resources[cpu].borrowingLimit: 3 is set, but cohortName is",
        ),
        (
            lambda: kf.Fleet("lab", {}, network=kf.NetworkIds("link", {"us-centre": "subnet"})),
            'Fleet lab.network.subnetworks[us-centre]: "us-centre" is not a region',
        ),
    ],
)
def test_an_argument_is_refused(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(kf.SpecError) as raised:
        pulumi_mocks.run(mistake)
    assert said in str(raised.value)
    assert all(problem.endswith("]") and " [KF" in problem for problem in str(raised.value).splitlines())


@pytest.fixture
def futures_end_here() -> Iterator[None]:
    """Python 3.11 fails to parse where the traceback of an exception that none awaits is printed meanwhile."""
    yield
    gc.collect()


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (
            lambda: kf.MultiKueue("m", workers={"std": kf.WorkerGrant("kubeconfig.yaml")}),
            "MultiKueue m.workers[std]: is not a kubeconfig of one cluster",
        ),
        (
            lambda: kf.Team("t", kf.TeamEntry("t", local_queues=[], secrets=["token"]), secrets={"other": {"a": "b"}}),
            "teams[t].secrets: nothing is given for token",
        ),
        (
            lambda: secrets({"token": {"key": pulumi.Output.from_input(None)}}),
            "Team t.secrets[token][key]: is not text",
        ),
        (lambda: access(ca_certificate=pulumi.Output.from_input(PEM)), "WorkerAccess w.ca_certificate: is PEM itself"),
        (
            lambda: installed(any_of(pulumi.Output.from_input({"replicas": 2}))),
            "KueueInstall k.values.replicas: the chart",
        ),
    ],
)
@pytest.mark.usefixtures("futures_end_here")
def test_what_is_known_later_ends_the_program_when_it_is_known(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(pulumi.RunError) as raised:
        pulumi_mocks.run(mistake)
    assert said in str(raised.value)
    assert " [KF" in str(raised.value)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda: kueue(version="0.16.0"), "kueue.version: 0.16.0, but the rules checked here are those of 0.17.1"),
        (lambda: network(pod_ranges={"us-east4": "10.4.0.0/14"}), "network.podRanges[us-east4]: no cluster is in us-"),
        (
            lambda: kf.MultiKueue("m", workers={"std": kf.WorkerGrant("kubeconfig.yaml", rotation="2026-11")}),
            "MultiKueue m.workers[std]: is not a kubeconfig of one cluster",
        ),
        (
            lambda: installed({"replicas": 2}, chart="./charts/ours"),
            "KueueInstall k.values.replicas: the chart of Kueue 0.19.2 has no such value",
        ),
        (
            lambda: installed({"enableKueueViz": True}, replicas=2),
            "KueueInstall k.values: replicas of the installation has no effect, since values are given",
        ),
        (
            lambda: secrets({"token": {"key": "dG9rZW4tb2YtdmlzaW9u"}}),
            "Team t.secrets[token][key]: is text in base64, which the Secret gets encoded once more",
        ),
        (
            lambda: secrets({"token": {"key": pulumi.Output.from_input("")}}),
            "Team t.secrets[token][key]: is empty; give what belongs there",
        ),
        (
            lambda: secrets({"token": {"key": "a"}, "toekn": {"key": "a"}}),
            "Team t.secrets[toekn]: has no effect, since no team has a Secret of that name; did you mean token?",
        ),
        (
            lambda: access(google_account=None, credentials=kf.ServiceAccountToken("1", rotate_by="2020-02-01")),
            "WorkerAccess w.credentials.rotateBy: 2020-02-01 was ",
        ),
        (
            lambda: kf.ReservedCapacity("r", **PROJECT, future_reservations=[PAST]),
            "futureReservations[r].start: 2020-01-01 is not in the future, and nothing was asked of Google yet",
        ),
        (
            lambda: kf.Team("t", kf.TeamEntry("t", local_queues=[], secrets=["token"])),
            "Team t.secrets: is missing, so token of the entry is not made; give what is in it, or remove it",
        ),
        (lambda: access(), "WorkerAccess w: has no effect on jobs, since the manager may make them in no namespace"),
        (
            lambda: kf.AdmissionCheck("a", {"controllerName": "provisioning-request"}),
            "AdmissionCheck a.controllerName: provisioning-request is not a controller of Kueue; did you mean kueue",
        ),
        (
            lambda: kf.JobSetInstall("j", kf.JobSetInstallation(enabled=False)),
            "JobSetInstallation.enabled: is false, which has no effect on a component of its own",
        ),
        (
            lambda: kf.Team(
                "t", kf.TeamEntry("t", local_queues=[kf.TeamQueue("gpu", cluster_queue="gpu")]), cluster_queues={}
            ),
            "teams[t].localQueues[gpu]: is not made, since gpu is not in cluster_queues; give the queue, or no",
        ),
        (
            lambda: kf.Fleet("lab", fleet_data(WORKER), controller_image="example.com/own@sha256:1"),
            "controller: not set, so that the image that the program gives has no effect; add the section, or",
        ),
        (lambda: kf.ClusterQueue("q", {}), "ClusterQueue q.resourceGroups: empty, so no job can ever be admitted"),
    ],
)
def test_an_argument_that_may_be_meant_is_warned_of(
    program: Callable[[], object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: logged.append(text))
    pulumi_mocks.run(program)
    assert any(said in text for text in logged), logged
