"""The components under the real Pulumi engine: what it creates, changes, replaces and destroys, and in which order."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pulumi
import pytest
from pulumi import automation as auto

from kueue_fleet import AdmissionCheck, ClusterQueue, Cohort, Fleet, LocalQueue, ResourceFlavor, Topology
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.kueue_components import webhook_retry
from kueue_fleet.objects import render_cluster
from small_fleets import MANAGER, SECOND_WORKER, WORKER, fleet, fleet_data, standalone_data
from tests.engines import program_of_0_2_0
from tests.engines.memory_provider import Operation
from tests.engines.memory_stack import Engine, pulumi_in_memory

STACK_OF_0_2_0 = Path(__file__).with_name("stack_of_0_2_0.json.gz")
WEBHOOK_NOT_READY = (
    'Internal error occurred: failed calling webhook "mresourceflavor.kb.io": failed to call webhook: Post '
    '"https://kueue-webhook-service.kueue-system.svc:443/mutate": no endpoints available for service'
)


def fleet_program(spec: FleetSpec) -> Callable[[], None]:
    def program() -> None:
        result = Fleet(spec.name, spec)
        pulumi.export("kubeconfig", result.kubeconfig)

    return program


def up_fleet(engine: Engine, spec: FleetSpec) -> list[Operation]:
    return engine.up(fleet_program(spec))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with pulumi_in_memory(tmp_path) as result:
        yield result


def test_a_stack_of_0_2_0_is_updated_without_a_change(engine: Engine) -> None:
    recorded = json.loads(gzip.decompress(STACK_OF_0_2_0.read_bytes()))
    engine.stack.import_stack(auto.Deployment(**recorded))
    # What the team may ask for is stricter than in 0.2.0; all else is as it was.
    quota = Operation(
        "update", "kubernetes:core/v1:ResourceQuota", "manager-eu/team-a/team-a/ResourceQuota/kueue-fleet"
    )
    policies = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
    policy = Operation("update", policies, "manager-eu/team-a/ValidatingAdmissionPolicy")
    assert engine.up(program_of_0_2_0.program) == [quota, policy]
    resources = json.loads(engine.state_file.read_text())["checkpoint"]["latest"]["resources"]
    assert {item["urn"] for item in resources} == {entry["urn"] for entry in recorded["deployment"]["resources"]}


def test_a_fleet_comes_up_stays_as_it_is_and_goes_without_waiting_for_its_objects(engine: Engine) -> None:
    spec = fleet(WORKER, deletionProtection=False)
    created = up_fleet(engine, spec)
    assert {operation.verb for operation in created} == {"create"}
    assert len(engine.world.objects) == len(created)
    assert up_fleet(engine, spec) == []
    destroyed = engine.destroy()
    assert {operation.type.split(":")[0] for operation in destroyed} == {"gcp"}
    assert {key[0] for key in engine.world.objects} == {MANAGER, WORKER}


def test_a_protected_fleet_is_not_destroyed(engine: Engine) -> None:
    spec = fleet(WORKER)
    up_fleet(engine, spec)
    with pytest.raises(auto.CommandError, match="protected"):
        engine.destroy()
    assert engine.world.taken_operations() == []


def test_names_of_an_earlier_release_become_longer_and_nothing_is_made_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fleet, alone and below a parent, which once gave its parts names that a second fleet could have, too."""
    spec = fleet(WORKER, deletionProtection=False)
    second = parse_fleet(standalone_data(name="tpus", deletionProtection=False))

    def program() -> None:
        Fleet(spec.name, spec)
        platform = pulumi.ComponentResource("company:index:Platform", "platform")
        Fleet("tpus", second, opts=pulumi.ResourceOptions(parent=platform))

    with monkeypatch.context() as earlier:
        earlier.setattr("kueue_fleet.fleet.below_parent", lambda *arguments: arguments)
        earlier.setattr("kueue_fleet.fleet._parts_begin", lambda name: "" if name == spec.name else f"{name}/")
        result = engine.up(program)
    assert f"create Cluster {WORKER}" in {operation.short for operation in result}
    assert engine.up(program) == []
    names = {
        resource["urn"].rsplit("::", 1)[-1]
        for resource in json.loads(engine.state_file.read_text())["checkpoint"]["latest"]["resources"]
    }
    assert {f"lab/{WORKER}/kueue", "platform/tpus", "platform/tpus/batch/kueue"} <= names
    assert not [name for name in names if name.startswith((WORKER, MANAGER, "tpus"))]


def test_one_more_worker_changes_the_managers_config_and_quota_only(engine: Engine) -> None:
    up_fleet(engine, fleet(WORKER))
    changed = up_fleet(engine, fleet(WORKER, SECOND_WORKER))
    assert {o.short for o in changed if o.verb != "create"} == {
        f"update MultiKueueConfig {MANAGER}/multikueue/multikueue",
        f"update ClusterQueue {MANAGER}/gpu",
    }
    for operation in changed:
        if operation.verb == "create":
            assert SECOND_WORKER in operation.name or "asia-southeast1" in operation.name, operation.short


def test_one_worker_less_takes_it_off_the_manager_first(engine: Engine) -> None:
    up_fleet(engine, fleet(WORKER, SECOND_WORKER, deletionProtection=False))
    shorts = [o.short for o in up_fleet(engine, fleet(WORKER, deletionProtection=False))]
    order = [
        f"update MultiKueueConfig {MANAGER}/multikueue/multikueue",
        f"delete MultiKueueCluster {MANAGER}/multikueue/{SECOND_WORKER}",
        f"delete Cluster {SECOND_WORKER}",
    ]
    assert [short for short in shorts if short in order] == order
    assert not [short for short in shorts if WORKER in short]


def test_another_quota_is_an_update_in_place(engine: Engine) -> None:
    up_fleet(engine, fleet(WORKER))
    data = fleet_data(WORKER)
    data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 9
    changed = up_fleet(engine, parse_fleet(data))
    assert {o.short for o in changed} == {f"update ClusterQueue {MANAGER}/gpu", f"update ClusterQueue {WORKER}/gpu"}


def test_a_new_rotation_reaches_the_manager_before_the_old_token_goes(engine: Engine) -> None:
    up_fleet(engine, fleet(WORKER))
    data = fleet_data(WORKER)
    data["multiKueue"]["credentials"]["rotation"] = "2027-05"
    changed = up_fleet(engine, parse_fleet(data))
    assert [o.short for o in changed] == [
        f"create Secret {WORKER}/multikueue/token",
        f"create Secret {MANAGER}/multikueue/{WORKER}",
        f"update MultiKueueCluster {MANAGER}/multikueue/{WORKER}",
        f"delete Secret {MANAGER}/multikueue/{WORKER}",
        f"delete Secret {WORKER}/multikueue/token",
    ]


def test_the_token_is_neither_in_the_state_nor_in_what_is_printed(engine: Engine) -> None:
    spec = fleet(WORKER)
    up_fleet(engine, spec)
    state = engine.state_file.read_text()
    assert WORKER in state
    for text in (state, "".join(engine.output)):
        assert "token-of-" not in text
        assert "dG9rZW4tb2Yt" not in text  # base64


def objects_alone(spec: FleetSpec) -> Callable[[], None]:
    """A cluster's queues as a platform repository declares them on a cluster that it did not make."""
    manifests = {(m["kind"], m["metadata"]["name"]): m for m in render_cluster(spec, WORKER)}

    def program() -> None:
        def after(*needed: pulumi.Resource) -> pulumi.ResourceOptions:
            return pulumi.ResourceOptions(depends_on=list(needed))

        topology = Topology("byo/racks", manifests["Topology", "racks"])
        flavors = [
            ResourceFlavor("byo/l4", manifests["ResourceFlavor", "l4"]),
            ResourceFlavor("byo/h100", manifests["ResourceFlavor", "h100"], opts=after(topology)),
        ]
        cohort = Cohort("byo/vision", manifests["Cohort", "vision"])
        check = AdmissionCheck("byo/dws", manifests["AdmissionCheck", "dws"])
        queue = ClusterQueue("byo/gpu", manifests["ClusterQueue", "gpu"], opts=after(*flavors, cohort, check))
        LocalQueue("byo/team-a", manifests["LocalQueue", "gpu"], cluster_queue=queue)

    return program


def test_queues_alone_are_destroyed_from_the_entrance_inwards(engine: Engine) -> None:
    program = objects_alone(fleet(WORKER))
    assert [o.short for o in engine.up(program)][-2:] == ["create ClusterQueue byo/gpu", "create LocalQueue byo/team-a"]
    destroyed = [o.short for o in engine.destroy()]
    assert destroyed[:2] == ["delete LocalQueue byo/team-a", "delete ClusterQueue byo/gpu"]
    assert destroyed.index("delete ResourceFlavor byo/h100") < destroyed.index("delete Topology byo/racks")
    assert engine.world.objects == {}


def local_queue(cluster_queue: str, version: str = "v1beta2") -> Callable[[], None]:
    manifest = {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "LocalQueue",
        "metadata": {"name": "gpu", "namespace": "team-a"},
        "spec": {"clusterQueue": cluster_queue, "stopPolicy": "None"},
    }

    def program() -> None:
        LocalQueue("byo/gpu", manifest)

    return program


def test_another_cluster_queue_replaces_the_local_queue_in_this_order(engine: Engine) -> None:
    engine.up(local_queue("gpu"))
    assert [o.short for o in engine.up(local_queue("tpu"))] == [
        "delete LocalQueue byo/gpu",
        "create LocalQueue byo/gpu",
    ]


def test_an_object_from_a_state_of_v1beta1_is_taken_over_in_place(engine: Engine) -> None:
    engine.up(local_queue("gpu", "v1beta1"))
    assert [o.short for o in engine.up(local_queue("gpu"))] == ["update LocalQueue byo/gpu"]


def test_a_webhook_that_is_not_there_yet_is_waited_for(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_retry, "RETRY_DELAYS_SECONDS", (0.01, 0.01, 0.01))
    engine.world.failures = [("LocalQueue", WEBHOOK_NOT_READY)] * 2
    assert [o.short for o in engine.up(local_queue("gpu"))] == ["create LocalQueue byo/gpu"]
    assert "Kueue's webhook is not reachable yet" in "".join(engine.output)


def test_a_refusal_of_the_webhook_is_final(engine: Engine) -> None:
    engine.world.failures = [("LocalQueue", 'admission webhook "x.kb.io" denied the request: spec is wrong')]
    with pytest.raises(auto.CommandError, match="denied the request"):
        engine.up(local_queue("gpu"))
    assert engine.world.objects == {}
