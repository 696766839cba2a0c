from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest
from syrupy.assertion import SnapshotAssertion

import declared_fleets
import kueue_fleet
import pulumi_mocks
from company_fleet import WORKERS, company_data, without_worker
from kueue_admission.api.multi_kueue import MOST_CLUSTERS
from kueue_admission.forms import SpecError
from kueue_admission.forms.manifest import Manifest
from kueue_fleet import Fleet, Network, testing
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.prerequisites import required_apis
from kueue_fleet.fleet_file.worker_tokens import worker_tokens
from kueue_fleet.objects import render_fleet
from mocked_fleets import cluster_of, in_clusters, run
from pulumi_mocks import Recorded, Recording
from small_fleets import MANAGER, SECOND_WORKER, WORKER, fleet, fleet_data, standalone_data
from tests.bench.large_fleet import large_fleet
from tests.fleet_file.builders import changed
from tests.fleet_file.pool_builders import pools_data

STACK = Path(__file__).parent.parent / "stacks" / "Pulumi.dws-multikueue.yaml"
WAIT_FOR = "pulumi.com/waitFor"
_, US, ASIA = WORKERS


@pytest.fixture(scope="module")
def one_worker() -> Recording:
    return run(fleet(WORKER))


@pytest.fixture(scope="module")
def two_workers() -> Recording:
    return run(fleet(WORKER, SECOND_WORKER))


@pytest.fixture(scope="module")
def standalone() -> Recording:
    return run(parse_fleet(standalone_data()))


def without_waiting(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest as the spec renders it: annotations that speak to Pulumi taken off."""
    metadata = dict(manifest["metadata"])
    annotations = {key: value for key, value in metadata.pop("annotations", {}).items() if key != WAIT_FOR}
    return {**manifest, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}


def by_identity(manifests: Sequence[Manifest]) -> dict[tuple[str, str, str], Any]:
    return {(m["kind"], m["metadata"].get("namespace", ""), m["metadata"]["name"]): m for m in manifests}


def test_the_graph_of_a_small_fleet(one_worker: Recording, snapshot: SnapshotAssertion) -> None:
    assert one_worker.graph() == snapshot


@pytest.mark.parametrize(
    ("spec", "declared_as"),
    [
        (fleet(WORKER, SECOND_WORKER), "two_workers"),
        (parse_fleet(standalone_data()), "standalone"),
        (parse_fleet(company_data()), "company"),
    ],
    ids=["fleet", "alone", "company"],
)
def test_every_cluster_gets_exactly_the_objects_that_the_spec_renders(
    spec: FleetSpec, declared_as: str, request: pytest.FixtureRequest
) -> None:
    recording = request.getfixturevalue(declared_as)
    for cluster, manifests in render_fleet(spec).items():
        declared = by_identity(
            [
                without_waiting(r.inputs)
                for r in in_clusters(recording)
                if cluster_of(r) == cluster and not r.type.endswith(":Release")
            ]
        )
        rendered = by_identity(manifests)
        beyond = declared.keys() - rendered.keys()
        assert {kind for kind, _, _ in beyond} <= {"Namespace", "PriorityClass", "Secret"}
        assert {name for kind, _, name in beyond if kind == "PriorityClass"} == {"kueue-fleet-critical"}
        installed = {"kueue-system", "jobset-system", *(["monitoring"] if spec.observability.grafana.enabled else [])}
        assert {name for kind, _, name in beyond if kind == "Namespace"} == installed
        assert {name for kind, _, name in beyond if kind == "Secret"} <= {one.secret for one in worker_tokens(spec)}
        assert {key: declared[key] for key in rendered} == rendered


def test_everything_in_a_cluster_uses_that_clusters_own_provider(two_workers: Recording) -> None:
    providers = {r.urn: r.place for r in two_workers.of_type("pulumi:providers:kubernetes")}
    assert sorted(providers.values()) == sorted([MANAGER, WORKER, SECOND_WORKER])
    wrong = [r.short for r in in_clusters(two_workers) if providers.get(r.provider) != cluster_of(r)]
    assert not wrong


def test_everything_in_a_cluster_hangs_below_it_and_goes_with_it(two_workers: Recording) -> None:
    clusters = {r.urn: r.place for r in two_workers.of_type("gcp:container/cluster:Cluster")}
    wrong = [r.short for r in in_clusters(two_workers) if clusters.get(r.deleted_with) != cluster_of(r)]
    assert not wrong
    components = {r.urn: r.place for r in two_workers if r.type.endswith(("ManagerCluster", "WorkerCluster"))}
    for resource in in_clusters(two_workers):
        above = {components[urn] for urn in two_workers.waits_for(resource) & components.keys()}
        assert cluster_of(resource) in above


@pytest.mark.parametrize("cluster", [MANAGER, WORKER])
def test_a_queue_outlives_what_leads_to_it_and_goes_before_what_it_uses(one_worker: Recording, cluster: str) -> None:
    """Kueue holds on to whatever is in use: destroyed in any other order, a destroy would hang."""

    def the(kind: str, name: str) -> Recorded:
        return one_worker.one(kind, f"{cluster}/{name}", custom=True)

    queue = the("ClusterQueue", "gpu")
    flavors = ["multikueue"] if cluster == MANAGER else ["l4", "h100"]
    check = the("AdmissionCheck", "multikueue/multikueue" if cluster == MANAGER else "dws")
    release = the("Release", "kueue")
    assert one_worker.is_before(one_worker.one("gcp:container/cluster:Cluster", cluster), release)
    used = [*(the("ResourceFlavor", name) for name in flavors), the("Cohort", "vision"), check]
    assert all(one_worker.is_before(release, thing) for thing in used)
    assert all(one_worker.is_before(thing, queue) for thing in used)
    assert one_worker.is_before(the("Cohort", "research"), the("Cohort", "vision"))
    for local in ("team-a/team-a/gpu", "shared/gpu"):
        assert one_worker.is_before(queue, the("LocalQueue", local))
    if cluster == WORKER:
        assert one_worker.is_before(the("Topology", "racks"), the("ResourceFlavor", "h100"))
        assert not one_worker.is_before(the("Topology", "racks"), the("ResourceFlavor", "l4"))


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


def test_jobset_is_there_before_kueue_and_leaves_after_it(one_worker: Recording) -> None:
    for cluster in (MANAGER, WORKER):
        release = [one_worker.one("Release", f"{cluster}/{name}") for name in ("jobset", "kueue")]
        assert one_worker.is_before(*release)


def test_without_jobset_nothing_of_it_is_made() -> None:
    recording = run(fleet(WORKER, jobSet={"enabled": False}))
    assert {r.inputs["name"] for r in recording.of_type("Release")} == {"kueue"}


def test_nodes_start_after_there_is_a_way_out_to_the_registries(one_worker: Recording) -> None:
    for cluster in one_worker.of_type("gcp:container/cluster:Cluster"):
        way_out = one_worker.one("RouterNat", f"lab/{cluster.inputs['location']}")
        assert one_worker.is_before(way_out, cluster)


def test_the_manager_connects_to_a_worker_whose_queues_stand(one_worker: Recording) -> None:
    connection = one_worker.one("MultiKueueCluster")
    for kind, name in (
        ("Release", "kueue"),
        ("ClusterQueue", "gpu"),
        ("LocalQueue", "team-a/team-a/gpu"),
        ("ClusterRoleBinding", "multikueue/ClusterRoleBinding"),
    ):
        assert one_worker.is_before(one_worker.one(kind, f"{WORKER}/{name}", custom=True), connection)


def test_one_more_worker_touches_no_other_cluster(one_worker: Recording, two_workers: Recording) -> None:
    assert one_worker.resources.keys() <= two_workers.resources.keys()
    changed = {
        two_workers.resources[urn].short
        for urn, before in one_worker.resources.items()
        if before.custom and before != two_workers.resources[urn]
    }
    assert changed == {f"MultiKueueConfig {MANAGER}/multikueue/multikueue", f"ClusterQueue {MANAGER}/gpu"}
    added = two_workers.resources.keys() - one_worker.resources.keys()
    elsewhere = {
        two_workers.resources[urn].short
        for urn in added
        if SECOND_WORKER not in urn and "asia-southeast1" not in two_workers.resources[urn].name
    }
    assert not elsewhere


def test_another_quota_changes_two_queues_in_place(one_worker: Recording) -> None:
    data = fleet_data(WORKER)
    data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 9
    after = run(parse_fleet(data))
    changed = [r for r in after if r != one_worker.resources[r.urn]]
    assert {r.short for r in changed} == {f"ClusterQueue {MANAGER}/gpu", f"ClusterQueue {WORKER}/gpu"}
    assert not any(r.replace_on_changes for r in changed)


@pytest.mark.parametrize("protection", [True, False])
def test_clusters_and_releases_are_protected_as_the_fleet_says(protection: bool) -> None:
    recording = run(fleet(WORKER, deletionProtection=protection))
    guarded = [*recording.of_type("gcp:container/cluster:Cluster"), *recording.of_type("Release")]
    assert {r.protect for r in guarded} == {protection}
    assert not [r.short for r in recording if r.protect and r not in guarded]


def test_warnings_about_the_fleet_and_its_dates_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    expired = {"type": "ServiceAccountToken", "rotation": "2020-01", "rotateBy": "2020-04-01"}
    with caplog.at_level("WARNING"):
        run(fleet(WORKER, multiKueue={"credentials": expired}))
    assert "multiKueue.credentials.rotateBy" in caplog.text
    assert "clusterQueues[gpu].resourceGroups: no quota for cpu, memory" in caplog.text


@pytest.mark.parametrize(("start", "nodes"), [("2020-01-01T00:00:00Z", 2), ("2199-01-01T00:00:00Z", 0)])
def test_a_pool_of_a_calendar_reservation_is_open_while_it_runs(start: str, nodes: int) -> None:
    data = changed(pools_data(), {"nodePools/5/capacity/start": start, "nodePools/5/capacity/duration": "87600h"})
    data["futureReservations"] = []
    recording = run(parse_fleet(data))
    [pool] = [
        each for each in recording.of_type("gcp:container/nodePool:NodePool") if each.inputs["name"] == "calendar"
    ]
    assert pool.inputs["nodeCount"] == nodes


def test_a_fleet_that_nobody_has_checked_is_refused_with_every_problem() -> None:
    good = fleet(WORKER)
    broken = good.model_copy(
        update={"flavors": (), "workload_priority_classes": (*good.workload_priority_classes,) * 2}
    )
    with pytest.raises(SpecError) as refused:
        run(broken)
    text = str(refused.value)
    assert "workloadPriorityClasses[1].name: urgent is already the name of" in text
    assert "there is no flavor l4" in text


def test_the_kubeconfig_is_secret_and_has_a_context_for_each_cluster() -> None:
    spec = fleet(WORKER, SECOND_WORKER)

    async def inspect(made: Fleet) -> None:
        assert await made.kubeconfig.is_secret()
        kubeconfig = json.loads(await made.kubeconfig.future() or "")
        assert kubeconfig["current-context"] == MANAGER
        assert [context["name"] for context in kubeconfig["contexts"]] == [MANAGER, WORKER, SECOND_WORKER]

    pulumi_mocks.run(lambda: pulumi.Output.from_input(inspect(Fleet(spec.name, spec))))


def test_a_queue_whose_check_is_answered_by_others_is_not_waited_for() -> None:
    data = fleet_data(WORKER)
    data["admissionChecks"].append({"name": "residency", "controllerName": "lab.dev/residency"})
    data["clusterQueues"][0]["admissionChecksStrategy"]["admissionChecks"].append({"name": "residency"})
    recording = run(parse_fleet(data))
    waited = {
        r.place: WAIT_FOR in r.inputs["metadata"].get("annotations", {})
        for r in recording.of_type("ClusterQueue")
        if r.custom
    }
    assert waited == {f"{WORKER}/gpu": False, f"{MANAGER}/gpu": True}
    local = recording.one("LocalQueue", f"{WORKER}/shared/gpu", custom=True)
    assert WAIT_FOR not in local.inputs["metadata"].get("annotations", {})


def test_one_standalone_cluster_needs_no_multikueue(standalone: Recording) -> None:
    recording = standalone
    assert not [r for r in recording if "MultiKueue" in r.type or r.type.endswith("WorkerAccess")]
    assert recording.one("StandaloneCluster").place == "batch"
    pool = recording.one("gcp:container/nodePool:NodePool")
    assert recording.is_before(pool, recording.one("Release", "batch/kueue"))


def test_each_cluster_gets_its_own_configuration_of_kueue() -> None:
    data = fleet_data(WORKER)
    data["clusters"][1]["kueue"] = {"configuration": {"clientConnection": {"qps": 50}}}
    recording = run(parse_fleet(data))
    texts = {
        cluster: recording.one("Release", f"{cluster}/kueue").inputs["values"]["managerConfig"][
            "controllerManagerConfigYaml"
        ]
        for cluster in (MANAGER, WORKER)
    }
    assert "qps: 50" in texts[WORKER]
    assert "qps: 300" in texts[MANAGER]
    assert "dispatcherName" in texts[MANAGER]
    assert "dispatcherName" not in texts[WORKER]


def test_nothing_secret_is_in_plain_sight(two_workers: Recording) -> None:
    secrets = {r.place for r in two_workers if r.secrets}
    assert secrets == {f"{MANAGER}/multikueue/{name}" for name in (WORKER, SECOND_WORKER)}
    plain = json.dumps([[r.inputs, r.outputs] for r in two_workers if not r.secrets])
    assert "token-of-" not in plain.replace("kubeconfig", "")


def test_a_preview_before_any_cluster_exists_has_the_whole_graph(two_workers: Recording) -> None:
    spec = fleet(WORKER, SECOND_WORKER)
    preview = pulumi_mocks.run(lambda: Fleet(spec.name, spec), preview=True)
    assert preview.resources.keys() == two_workers.resources.keys()


def test_every_name_of_the_package_can_be_imported() -> None:
    for name in kueue_fleet.__all__:
        assert getattr(kueue_fleet, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Cluster'"):
        kueue_fleet.Cluster  # type: ignore[attr-defined]  # noqa: B018


def test_every_model_of_the_fleet_file_can_be_imported() -> None:
    reference = (Path(__file__).parents[1] / "docs/reference.md").read_text()
    headings = re.findall(r"^## (\w+)$", reference, re.MULTILINE)
    assert len(headings) > 100
    assert not set(headings) - set(kueue_fleet.__all__)


def test_nothing_that_programs_need_has_two_meanings() -> None:
    """A component and what it takes never share a name."""
    names = re.findall(r" as (\w+)$", Path(kueue_fleet.__file__).with_suffix(".pyi").read_text(), re.MULTILINE)
    assert sorted(names) == sorted(set(names)) == kueue_fleet.__all__


def python(program: str) -> str:
    """What a fresh interpreter prints."""
    root = Path(__file__).parents[1]
    paths = [str(root), str(root / "tests/support"), str(root / "components")]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{program}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_the_spec_does_without_pulumi() -> None:
    program = "import kueue_fleet.fleet_file; print([m for m in sys.modules if m.startswith('pulumi')])"
    assert python(program).strip() == "[]"


def test_the_largest_fleet_has_every_worker_connected() -> None:
    spec = parse_fleet(large_fleet())
    recording = run(spec)
    assert len(recording.of_type("gcp:container/cluster:Cluster")) == 1 + MOST_CLUSTERS
    assert len(recording.of_type("kubernetes:kueue.x-k8s.io/v1beta2:MultiKueueCluster")) == MOST_CLUSTERS


@pytest.fixture(scope="module")
def company() -> Recording:
    return declared_fleets.company()


def test_pools_of_the_file_are_on_their_clusters_and_nothing_waits_for_them(company: Recording) -> None:
    spec = parse_fleet(company_data())
    pools = {r.place: r for r in company.of_type("gcp:container/nodePool:NodePool")}
    wanted = {f"{cluster}/{pool.name}" for cluster in spec.cluster_names for pool in spec.node_pools_on(cluster)}
    assert set(pools) == wanted | {f"{cluster}/system" for cluster in spec.cluster_names}
    clusters = {r.place: r for r in company.of_type("gcp:container/cluster:Cluster")}
    for name, pool in pools.items():
        cluster = clusters[name.partition("/")[0]]
        assert pool.deleted_with == cluster.urn
        assert company.is_before(cluster, pool)
        assert pool.inputs["nodeConfig"]["bootDiskKmsKey"].startswith("projects/company-keys/")
        assert pool.inputs["nodeConfig"]["resourceLabels"] == {"kueue-fleet": "company", "cost-center": "ml"}
    for release in company.of_type("Release"):
        assert not company.waits_for(release) & {pools[name].urn for name in wanted}


def test_pools_come_after_reservations_of_the_file(company: Recording) -> None:
    for pool, kind, reservation in (
        ("worker-us-east4/l4-reserved", "Reservation", "company/l4-us-east4"),
        ("worker-us-east4/h100-calendar", "FutureReservation", "company/h100-december"),
    ):
        made = company.one("gcp:container/nodePool:NodePool", pool)
        assert company.is_before(company.one(kind, reservation), made)
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


class Platform(pulumi.ComponentResource):
    """A company's own component, with a fleet in it."""

    def __init__(self, name: str, spec: FleetSpec) -> None:
        super().__init__("company:index:Platform", name)
        Fleet(spec.name, spec, opts=pulumi.ResourceOptions(parent=self))


def test_fleets_in_one_program_share_no_name() -> None:
    """The same clusters in other projects: nothing of one fleet has the name of anything of another.

    One is named by its file, two by the program, and two are below parents of one type.
    """
    spec = parse_fleet(without_worker(US, ASIA))
    beside, below = (spec.name, "gpus", "research"), ("vision", "speech")

    def program() -> None:
        for name in (*beside, *below):
            there = spec.model_copy(update={"project": f"project-of-{name}"})
            Fleet(name, there) if name in beside else Platform(name, there)

    together = [resource for resource in pulumi_mocks.run(program) if resource.type != "company:index:Platform"]
    kinds = [(resource.type, resource.name) for resource in together]
    assert len(set(kinds)) == len(kinds)
    owners = Counter(name.split("/")[0] for _, name in kinds)
    assert len(owners) == len(beside) + len(below)
    assert len(set(owners.values())) == 1, owners
    projects: dict[str, str] = {}
    for resource in together:
        if resource.type.startswith("gcp:") and "project" in resource.inputs:
            owner = resource.name.split("/")[0]
            assert projects.setdefault(owner, resource.inputs["project"]) == resource.inputs["project"]
    assert sorted(projects.values()) == sorted(f"project-of-{name}" for name in (*beside, *below))


def test_what_an_earlier_release_gave_short_names_is_kept(one_worker: Recording) -> None:
    """That the engine finds everything below by these aliases is in tests/engines/test_fleet_on_pulumi.py."""
    named = {resource.place for resource in one_worker if resource.aliases}
    assert named >= {MANAGER, WORKER, fleet(WORKER).network_name}
    other = pulumi_mocks.run(lambda: Fleet("platform", fleet(WORKER)) and None)
    retyped = ("kubernetes:", "gcp:serviceaccount/")
    aliases = {resource.name for resource in other if resource.aliases and not resource.type.startswith(retyped)}
    assert not aliases, "a fleet of another name never had short names; those may be another fleet's"


def test_helm_takes_over_nothing_that_the_file_does_not_say(one_worker: Recording) -> None:
    assert {r.inputs.get("takeOwnership") for r in one_worker.of_type("Release")} == {None}


def with_secrets() -> FleetSpec:
    data = fleet_data(WORKER)
    data["teams"][0] |= {"namespaces": ["team-a", "team-a-dev"], "secrets": ["hugging-face"]}
    return parse_fleet(data)


def test_what_teams_keep_secret_is_in_their_namespaces_where_jobs_run_and_nowhere_in_clear() -> None:
    spec = with_secrets()
    secrets = {"hugging-face": {"token": "hf-1234"}, "another": {"key": "not-asked-for"}}
    recording = pulumi_mocks.run(lambda: Fleet(spec.name, spec, team_secrets=secrets))
    made = {r.place: r for r in recording.of_type("Secret") if "hugging-face" in r.place}
    assert set(made) == {f"{WORKER}/team-a/{space}/Secret/hugging-face" for space in ("team-a", "team-a-dev")}
    for secret in made.values():
        assert base64.b64decode(secret.inputs["data"]["token"]) == b"hf-1234"
        assert "data" in secret.secrets
        assert set(secret.secret_outputs) >= {"data", "stringData"}
        assert recording.is_before(recording.one("Namespace", secret.place.rpartition("/Secret/")[0]), secret)
    plain = json.dumps([[r.inputs, r.outputs] for r in recording if not r.secrets])
    for value in ("hf-1234", base64.b64encode(b"hf-1234").decode(), "not-asked-for"):
        assert value not in plain


def test_secrets_of_teams_that_nobody_gives() -> None:
    spec = with_secrets()
    with pytest.raises(SpecError, match=r"teams\[team-a\]\.secrets: set, but the program gives no contents"):
        run(spec)
    with pytest.raises(pulumi.RunError, match=r"kueue-fleet:teamSecrets\.hugging-face\.KEY"):
        run(spec, team_secrets={"hugging-fac": {"token": "hf-1234"}})


def test_what_a_fleet_makes_has_the_types_of_the_sdk_and_their_outputs() -> None:
    def program() -> pulumi.Output[list[Any]]:
        made = Fleet("lab", fleet(WORKER))
        cluster = made.clusters[WORKER].cluster
        assert isinstance(cluster, gcp.container.Cluster)
        assert isinstance(made.network, Network)
        assert isinstance(made.network.network, gcp.compute.Network)
        addresses = cluster.control_plane_endpoints_config.apply(lambda config: config.dns_endpoint_config)
        name = addresses.apply(lambda dns: dns.endpoint if dns else None)
        return pulumi.Output.all(cluster.self_link, cluster.endpoint, made.network.network.self_link, name).apply(seen)

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


def test_accounts_of_nodes_may_be_outputs_of_the_program() -> None:
    def program() -> None:
        account = gcp.serviceaccount.Account("gpu-nodes", project="p-1234", account_id="gpu-nodes")
        Fleet("lab", fleet(WORKER), node_service_accounts={WORKER: account.email})

    recording = pulumi_mocks.run(program)
    defaults = recording.one("gcp:container/cluster:Cluster", WORKER).inputs["clusterAutoscaling"]
    theirs = defaults["autoProvisioningDefaults"]["serviceAccount"]
    assert theirs == "gpu-nodes@p-1234.iam.gserviceaccount.com"
    assert recording.is_before(recording.one("Account", "gpu-nodes"), recording.one("Cluster", WORKER))
    assert [account.place for account in recording.of_type("Account")] == ["gpu-nodes", f"{MANAGER}-nodes"]


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("other", "clusters: the program gives an account for other, which is not in the file"),
        (WORKER, rf"clusters\[{WORKER}\]\.nodeServiceAccount: set, but the program gives the account"),
    ],
)
def test_an_account_of_nodes_that_is_not_wanted_is_refused(cluster: str, message: str) -> None:
    theirs = "gpu-nodes@p-1234.iam.gserviceaccount.com"
    data = fleet_data(WORKER)
    data["clusters"][1]["nodeServiceAccount"] = theirs
    spec = parse_fleet(data)
    with pytest.raises(SpecError, match=message):
        pulumi_mocks.run(
            lambda: Fleet("lab", spec, node_service_accounts={cluster: "a@p-1234.iam.gserviceaccount.com"})
        )
