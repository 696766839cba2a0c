"""Components refer to each other: by what declares the other object, or by its name where it is elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes
import pytest

import kueue_fleet as kf
import pulumi_mocks
from pulumi_mocks import Recording
from small_fleets import WORKER, fleet_data


def quotas(flavor: Any) -> list[kf.ResourceGroup]:
    of_flavor = kf.FlavorQuotas(flavor, [kf.ResourceQuota("cpu", 1)])
    return [kf.ResourceGroup(covered_resources=["cpu"], flavors=[of_flavor])]


def queue(name: str, flavor: Any = "l4", **fields: Any) -> kf.ClusterQueue:
    return kf.ClusterQueue(name, kf.ClusterQueueSpec(resource_groups=quotas(flavor), **fields))


def flavor(name: str = "l4") -> kf.ResourceFlavor:
    return kf.ResourceFlavor(name, kf.ResourceFlavorSpec())


def of_dws(*flavors: kf.ResourceFlavor) -> kf.AdmissionChecksStrategy:
    entry = kf.AdmissionCheckEntry(
        name="dws",
        provisioning_request=kf.ProvisioningRequestCheckArgs(provisioning_class_name="queued-provisioning.gke.io"),
    )
    rule = kf.AdmissionCheckStrategyRule(kf.ProvisioningRequestCheck("dws", entry), on_flavors=flavors)
    return kf.AdmissionChecksStrategy(admission_checks=[rule])


def with_topology() -> None:
    racks = kf.Topology("racks", kf.TopologySpec(levels=[kf.TopologyLevel("rack")]))
    kf.ResourceFlavor("l4", kf.ResourceFlavorSpec(node_labels={"gpu": "l4"}, topology_name=racks))


def with_check() -> None:
    l4 = flavor()
    queue("q", l4, admission_checks_strategy=of_dws(l4))


@pytest.mark.parametrize(
    ("program", "first", "then"),
    [
        (lambda: queue("q", flavor()), "ResourceFlavor", "ClusterQueue"),
        (lambda: queue("q", cohort_name=kf.Cohort("company", kf.CohortSpec())), "Cohort", "ClusterQueue"),
        (with_check, "AdmissionCheck", "ClusterQueue"),
        (with_topology, "Topology", "ResourceFlavor"),
        (lambda: kf.LocalQueue("gpu", namespace="a", cluster_queue=queue("q")), "ClusterQueue", "LocalQueue"),
        (
            lambda: kf.LocalQueue("gpu", kf.LocalQueueSpec(cluster_queue=queue("q")), namespace="a"),
            "ClusterQueue",
            "LocalQueue",
        ),
        (lambda: kf.ClusterQueue("q", {"cohortName": kf.Cohort("company", {})}), "Cohort", "ClusterQueue"),
    ],
)
def test_an_object_is_made_after_what_its_spec_is_given(
    program: Callable[[], object], first: str, then: str, said: list[str]
) -> None:
    recording = pulumi_mocks.run(program)
    before, after = recording.one(first, custom=True), recording.one(then, custom=True)
    assert recording.is_before(before, after)
    assert not [text for text in said if f"there is a {first} " in text]


def test_a_cohort_below_another_is_made_after_it() -> None:
    def program() -> None:
        kf.Cohort("team", kf.CohortSpec(parent_name=kf.Cohort("company", kf.CohortSpec())))

    recording = pulumi_mocks.run(program)
    company, team = (recording.one("Cohort", name, custom=True) for name in ("company", "team"))
    assert recording.is_before(company, team)
    assert team.inputs["spec"]["parentName"] == "company"


def test_a_component_of_another_kind_is_refused() -> None:
    with pytest.raises(kf.SpecError, match="cohort_name: a ResourceFlavor is given where a Cohort"):
        pulumi_mocks.run(lambda: queue("q", cohort_name=flavor()))


@pytest.mark.parametrize(
    ("program", "path"),
    [
        (lambda: queue("q", "elsewhere"), "ClusterQueue q.resourceGroups[0].flavors[elsewhere].name"),
        (lambda: queue("q", cohort_name="elsewhere"), "ClusterQueue q.cohortName"),
        (lambda: kf.LocalQueue("gpu", namespace="a", cluster_queue="elsewhere"), "LocalQueue gpu.clusterQueue"),
        (lambda: kf.Cohort("team", {"parentName": "elsewhere"}), "Cohort team.parentName"),
    ],
)
def test_of_a_name_it_is_said_that_it_is_not_checked(program: Callable[[], object], path: str, said: list[str]) -> None:
    pulumi_mocks.run(program)
    assert [text for text in said if text.startswith(f"{path}: whether there is a ") and "[KF920]" in text], said


def test_a_name_of_what_is_waited_for_is_checked(said: list[str]) -> None:
    def program() -> None:
        spec = kf.ClusterQueueSpec(resource_groups=quotas("l4"))
        kf.ClusterQueue("q", spec, opts=pulumi.ResourceOptions(depends_on=[flavor()]))

    pulumi_mocks.run(program)
    assert not [text for text in said if "whether there is a" in text]


def test_a_fleet_says_nothing_of_its_own_references(said: list[str]) -> None:
    pulumi_mocks.run(lambda: kf.Fleet("lab", fleet_data(WORKER)))
    assert not [text for text in said if "KF920" in text]


def test_without_a_provider_it_is_said_once_where_objects_go(said: list[str]) -> None:
    pulumi_mocks.run(lambda: (queue("a", flavor()), queue("b", "l4")))
    [text] = [text for text in said if "has no provider, so which cluster it goes to is not checked" in text]
    assert text.startswith("ResourceFlavor l4: ")


@pytest.mark.parametrize("component", [kf.KueueInstall, kf.JobSetInstall, kf.Namespaces, kf.Team])
def test_without_a_provider_it_is_said_of_components_of_several_objects(component: Any, said: list[str]) -> None:
    spec = {kf.Namespaces: ["vision"], kf.Team: kf.TeamEntry("vision")}.get(component)
    pulumi_mocks.run(lambda: component("a", *filter(None, [spec])))
    [text] = [text for text in said if "has no provider, so which cluster it goes to is not checked" in text]
    assert text.startswith(f"{component.__name__} a: ")


def test_what_has_another_provider_may_be_on_another_cluster(said: list[str]) -> None:
    def program() -> None:
        other = pulumi_kubernetes.Provider("other", kubeconfig="{}")
        far = kf.ResourceFlavor("l4", kf.ResourceFlavorSpec(), opts=pulumi.ResourceOptions(provider=other))
        queue("q", far)

    pulumi_mocks.run(program)
    assert [text for text in said if "ResourceFlavor l4 has another provider than this ClusterQueue" in text]


def test_a_whole_manifest_is_judged_too() -> None:
    manifest = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}}
    with pytest.raises(kf.SpecError, match=r"ClusterQueue q\.cohort: "):
        pulumi_mocks.run(lambda: kf.ClusterQueue("q", {**manifest, "spec": {"cohort": "company"}}))


def test_a_namespace_may_come_from_another_resource() -> None:
    def program() -> None:
        team = kf.Namespaces("team", ["vision"])
        kf.LocalQueue("gpu", namespace=team.names["vision"], cluster_queue=queue("q"))

    recording = pulumi_mocks.run(program)
    result = recording.one("LocalQueue", custom=True)
    assert result.inputs["metadata"]["namespace"] == "vision"
    assert recording.is_before(recording.one("Namespace"), result)


def test_a_queue_waits_for_no_check_that_is_answered_later() -> None:
    def program() -> None:
        check = kf.AdmissionCheck("residency", kf.AdmissionCheckSpec(controller_name="lab.dev/residency"))
        rules = kf.AdmissionChecksStrategy(admission_checks=[kf.AdmissionCheckStrategyRule(check)])
        queue("q", flavor(), admission_checks_strategy=rules)

    result = pulumi_mocks.run(program).one("ClusterQueue", custom=True)
    assert "annotations" not in result.inputs["metadata"]


async def _known(values: dict[str, pulumi.Output[Any]], found: dict[str, Any]) -> None:
    found.update({name: await value.future() for name, value in values.items()})


def outputs(declare: Callable[[], dict[str, pulumi.Output[Any]]]) -> tuple[Recording, dict[str, Any]]:
    """What a program declares, and the values of its outputs."""
    result: dict[str, Any] = {}
    recording = pulumi_mocks.run(lambda: pulumi.Output.from_input(_known(declare(), result)))
    return recording, result


def test_the_name_of_an_object_is_an_output_that_waits_for_it() -> None:
    def declare() -> dict[str, pulumi.Output[Any]]:
        result = queue("q", flavor())
        return {"name": result.name, "status": result.status}

    _, results = outputs(declare)
    active = {"type": "Active", "status": "True", "reason": "Ready"}
    assert results == {"name": "q", "status": {"conditions": [active]}}


def test_an_object_that_exists_is_read_and_can_be_referred_to(said: list[str]) -> None:
    def declare() -> dict[str, pulumi.Output[Any]]:
        there = kf.ClusterQueue.get("prod")
        kf.LocalQueue("gpu", namespace="vision", cluster_queue=there)
        return {"name": there.name, "other": kf.LocalQueue.get("old", "gpu-old", namespace="vision").name}

    recording, results = outputs(declare)
    assert results == {"name": "prod", "other": "gpu-old"}
    assert not [result for result in recording.of_type("ClusterQueue") if result.custom], (
        "it is not registered, but read"
    )
    assert recording.one("LocalQueue", "gpu", custom=True).inputs["spec"]["clusterQueue"] == "prod"
    assert not [text for text in said if "whether there is a" in text]


def test_a_namespace_is_needed_where_there_is_one() -> None:
    with pytest.raises(kf.SpecError, match=r"LocalQueue gpu\.namespace: no namespace is given"):
        pulumi_mocks.run(lambda: kf.LocalQueue.get("gpu"))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is logged."""
    result: list[str] = []
    for severity in ("info", "warn"):
        monkeypatch.setattr(pulumi.log, severity, lambda text, *_: result.append(text))
    return result


def test_what_is_needed_may_be_an_output() -> None:
    def program() -> None:
        namespace = pulumi_kubernetes.core.v1.Namespace("vision")
        needs = [pulumi.Output.from_input(namespace)]
        kf.Cohort("first", {}, opts=pulumi.ResourceOptions(depends_on=needs))
        kf.Cohort("second", {}, opts=pulumi.ResourceOptions(depends_on=pulumi.Output.from_input([namespace])))

    result = pulumi_mocks.run(program)
    for name in ("first", "second"):
        assert result.is_before(result.one("Namespace"), result.one("Cohort", name, custom=True))
