from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pulumi
import pytest
from syrupy.assertion import SnapshotAssertion

import declared_fleets
import pulumi_mocks
from company_fleet import company_data
from kueue_admission.api.multi_kueue import MOST_CLUSTERS
from kueue_admission.kernel import SpecError
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.worker_tokens import worker_tokens
from kueue_fleet.objects import render_fleet
from kueue_fleet.objects.charts import charts_on
from mocked_fleets import cluster_of, in_clusters, run
from pulumi_mocks import Recorded, Recording
from small_fleets import MANAGER, SECOND_WORKER, WORKER, fleet, fleet_data, standalone_data
from tests.bench.large_fleet import large_fleet

WAIT_FOR = "pulumi.com/waitFor"


@pytest.fixture(scope="module")
def one_worker() -> Recording:
    return run(fleet(WORKER))


@pytest.fixture(scope="module")
def two_workers() -> Recording:
    return run(fleet(WORKER, SECOND_WORKER))


@pytest.fixture(scope="module")
def standalone() -> Recording:
    return run(parse_fleet(standalone_data()))


@pytest.fixture(scope="module")
def company() -> Recording:
    return declared_fleets.company()


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
        installed = {chart.namespace for chart in charts_on(spec, cluster)}
        assert {name for kind, _, name in beyond if kind == "Namespace"} == installed
        assert {name for kind, _, name in beyond if kind == "Secret"} <= {one.secret for one in worker_tokens(spec)}
        assert {key: declared[key] for key in rendered} == rendered


@pytest.mark.parametrize(
    ("spec", "declared_as"),
    [(fleet(WORKER, SECOND_WORKER), "two_workers"), (parse_fleet(company_data()), "company")],
    ids=["fleet", "company"],
)
def test_every_cluster_gets_exactly_the_charts_that_the_spec_renders(
    spec: FleetSpec, declared_as: str, request: pytest.FixtureRequest
) -> None:
    recording = request.getfixturevalue(declared_as)
    for cluster in spec.cluster_names:
        releases = {r.inputs["name"]: r.inputs for r in recording.of_type("Release") if cluster_of(r) == cluster}
        charts = {chart.release: chart for chart in charts_on(spec, cluster)}
        assert releases.keys() == charts.keys()
        for name, chart in charts.items():
            declared = releases[name]
            assert (declared["chart"], declared["version"], declared["namespace"], declared["values"]) == (
                chart.chart, chart.version, chart.namespace, chart.values,
            )  # fmt: skip


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


def test_jobset_is_there_before_kueue_and_leaves_after_it(one_worker: Recording) -> None:
    for cluster in (MANAGER, WORKER):
        release = [one_worker.one("Release", f"{cluster}/{name}") for name in ("jobset", "kueue")]
        assert one_worker.is_before(*release)


def test_without_jobset_nothing_of_it_is_made() -> None:
    recording = run(fleet(WORKER, jobSet={"enabled": False}))
    assert {r.inputs["name"] for r in recording.of_type("Release")} == {"kueue"}


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
    assert all(re.search(r" \[KF\d{3}\]$", record.getMessage()) for record in caplog.records)


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


def test_the_largest_fleet_has_every_worker_connected() -> None:
    spec = parse_fleet(large_fleet())
    recording = run(spec)
    assert len(recording.of_type("gcp:container/cluster:Cluster")) == 1 + MOST_CLUSTERS
    assert len(recording.of_type("kubernetes:kueue.x-k8s.io/v1beta2:MultiKueueCluster")) == MOST_CLUSTERS


def test_helm_takes_over_nothing_that_the_file_does_not_say(one_worker: Recording) -> None:
    assert {r.inputs.get("takeOwnership") for r in one_worker.of_type("Release")} == {None}
