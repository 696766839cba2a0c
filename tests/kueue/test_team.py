from __future__ import annotations

import pytest

import pulumi_mocks
from company_fleet import MANAGER, WORKERS, company_data
from kueue_admission.api import ClusterQueueSpec
from kueue_admission.api.manifests import namespace_manifest
from kueue_fleet import ClusterQueue, Namespaces, Team
from kueue_fleet.fleet_file import TeamEntry, TeamQueue, parse_fleet
from kueue_fleet.objects.teams import render_team_objects

TEAM = TeamEntry(
    name="vision",
    namespaces=("vision-dev", "vision-prod"),
    local_queues=(TeamQueue(name="gpu", cluster_queue="gpu"), TeamQueue(name="tpu", cluster_queue="tpu")),
)


def test_a_team_has_its_queues_in_each_of_its_namespaces() -> None:
    recording = pulumi_mocks.run(lambda: Team("vision", TEAM))
    namespaces = {n.inputs["metadata"]["name"]: n for n in recording.of_type("Namespace")}
    assert {n.inputs["metadata"]["labels"]["kueue-fleet.dev/team"] for n in namespaces.values()} == {"vision"}
    queues = [r for r in recording.of_type("LocalQueue") if r.custom]
    assert {(q.inputs["metadata"]["namespace"], q.inputs["metadata"]["name"]) for q in queues} == {
        (namespace, name) for namespace in ("vision-dev", "vision-prod") for name in ("gpu", "tpu")
    }
    for queue in queues:
        assert recording.is_before(namespaces[queue.inputs["metadata"]["namespace"]], queue)


def test_on_a_cluster_it_has_only_queues_that_lead_somewhere() -> None:
    recording = pulumi_mocks.run(
        lambda: Team("vision", TEAM, cluster_queues={"gpu": ClusterQueue("gpu", ClusterQueueSpec())})
    )
    queues = [r for r in recording.of_type("LocalQueue") if r.custom]
    assert {q.inputs["spec"]["clusterQueue"] for q in queues} == {"gpu"}
    cluster_queue = recording.one("ClusterQueue", custom=True)
    assert all(recording.is_before(cluster_queue, queue) for queue in queues)


def test_namespaces_by_name() -> None:
    recording = pulumi_mocks.run(lambda: Namespaces("shared", ["a", "b"]))
    assert [n.inputs["metadata"]["name"] for n in recording.of_type("Namespace")] == ["a", "b"]


def test_the_namespace_that_is_there_already_gets_labels_only() -> None:
    recording = pulumi_mocks.run(lambda: Namespaces("shared", [namespace_manifest("default", {"a": "b"})]))
    assert recording.one("NamespacePatch").inputs["metadata"]["labels"] == {"a": "b"}


def test_a_namespace_of_a_team_is_as_it_is_rendered() -> None:
    result = namespace_manifest("vision", {"a": "b"})
    team = TeamEntry(name="vision")
    recording = pulumi_mocks.run(lambda: Team("vision", team, objects=[result]))
    assert recording.one("Namespace").inputs["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize("key", ["data", "stringData"])
def test_what_is_in_a_secret_is_secret_though_it_is_given_in_plain(key: str) -> None:
    given = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "vision"}, key: {"a": "aGk="}}
    recorded = pulumi_mocks.run(lambda: Team("vision", TeamEntry(name="vision"), objects=[given])).one("Secret")
    assert recorded.inputs[key] == given[key]
    assert recorded.secrets == {key}


def test_a_team_has_what_the_spec_renders_in_its_namespaces() -> None:
    spec = parse_fleet(company_data())
    team = spec.teams[0]
    for cluster in (MANAGER, WORKERS[0]):
        objects = render_team_objects(spec, team, cluster)
        recording = pulumi_mocks.run(lambda objects=objects: Team("vision", team, objects=objects))  # type: ignore[misc]
        result = [r for r in recording if r.custom and not r.type.endswith((":Namespace", ":LocalQueue"))]
        assert sorted((r.inputs["kind"], r.inputs["metadata"]["name"]) for r in result) == sorted(
            (manifest["kind"], manifest["metadata"]["name"]) for manifest in objects
        )
        namespace = recording.one("Namespace")
        kinds = {r.type.rsplit(":", 1)[-1] for r in result if recording.is_before(namespace, r)}
        assert kinds >= {"ServiceAccount", "Role", "RoleBinding", "ResourceQuota", "NetworkPolicy"}
        policy = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
        assert kinds & policy == (policy if cluster == MANAGER else set())
        assert len(kinds) == len(result)
        # Kubernetes does not let another role be bound under the same name.
        assert recording.one("RoleBinding").replace_on_changes == ("roleRef",)
