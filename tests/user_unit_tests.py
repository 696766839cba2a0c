"""`kueue_fleet.testing`, as unit tests of a user have it; run by test_testing.py, in a process of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes
import pytest
from pulumi.output import UNKNOWN
from pulumi.runtime.settings import SETTINGS, reset_options

import kueue_fleet as kf
from kueue_fleet.testing import Mocks
from small_fleets import WORKER, fleet


class Echo(pulumi.runtime.Mocks):
    """As Pulumi's own page has it."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> Any:
        return [f"{args.name}_id", args.inputs]

    def call(self, args: pulumi.runtime.MockCallArgs) -> Any:
        return {}


@pytest.fixture(autouse=True)
def own_pulumi() -> Iterator[None]:
    yield
    reset_options()
    SETTINGS.outputs.clear()


def test_of(mocks: pulumi.runtime.Mocks, test: Callable[[], Any]) -> None:
    """Run TEST as `@pulumi.runtime.test` does."""
    pulumi.runtime.set_mocks(mocks, preview=False)
    pulumi.runtime.test(test)()  # type: ignore[no-untyped-call]


test_of.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize("mocks", [Mocks(), Mocks(Echo())], ids=["alone", "with mocks of their own"])
def test_a_fleet_has_the_outputs_that_google_gives(mocks: Mocks) -> None:
    def test() -> pulumi.Output[None]:
        result = kf.Fleet("lab", fleet())
        cluster = result.clusters[WORKER].cluster
        return pulumi.Output.all(result.kubeconfig, cluster.name, cluster.self_link).apply(check)

    def check(outputs: list[Any]) -> None:
        kubeconfig, name, link = outputs
        assert WORKER in [item["name"] for item in json.loads(kubeconfig)["contexts"]]
        assert name == WORKER
        assert link.endswith(f"/projects/lab-project/locations/us-east4/clusters/{WORKER}")
        checked.append(name)

    checked: list[str] = []
    test_of(mocks, test)
    assert checked
    queues = mocks.of_type("ClusterQueue").values()
    assert {queue["spec"]["cohortName"] for queue in queues} == {"vision"}


def test_mocks_that_answer_nothing_are_told_which_line_does() -> None:
    line = r"in a unit test: pulumi.runtime.set_mocks\(kueue_fleet.testing.Mocks\(\)\)"
    with pytest.raises(RuntimeError, match=line):
        test_of(Echo(), lambda: kf.Fleet("lab", fleet()).kubeconfig)


def test_secrets_are_what_they_hold() -> None:
    mocks = Mocks()
    data: dict[str, pulumi.Input[str]] = {"key": pulumi.Output.secret("mine"), "other": "plain"}
    test_of(mocks, lambda: kubernetes.core.v1.Secret("mine", string_data=data).id)
    assert mocks.of_type("Secret")["mine"]["stringData"] == {"key": "mine", "other": "plain"}


def test_what_mocks_of_the_user_answer_counts() -> None:
    class Own(Echo):
        def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> Any:
            return "vpc-7", {**args.inputs, "selfLink": "https://vpc"}

    id_, state = Mocks(Own()).new_resource(pulumi.runtime.MockResourceArgs("gcp:compute/network:Network", "vpc", {}))
    assert (id_, state["selfLink"], state["gatewayIpv4"]) == ("vpc-7", "https://vpc", "")


@pytest.mark.parametrize(
    ("token", "inputs", "id_", "answered"),
    [
        ("gcp:storage/bucket:Bucket", {"location": "EU"}, "it", {"location": "EU", "name": "it"}),
        (
            "gcp:container/cluster:Cluster",
            {},
            "projects/mock-project/locations/us-central1/clusters/it",
            {"name": "it", "project": "mock-project"},
        ),
        ("gcp:serviceaccount/account:Account", {}, "it-id", {"project": "mock-project"}),
        ("random:index/randomId:RandomId", {"byteLength": 4}, "it-id", {"byteLength": 4}),
        (
            "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue",
            {"metadata": {"name": "gpu"}},
            "gpu",
            {"status": {"conditions": [{"type": "Active", "status": "True", "reason": "Ready"}]}},
        ),
        ("kubernetes:core/v1:ConfigMap", {"metadata": {"name": "c", "namespace": "n"}}, "n/c", {}),
        ("kubernetes:core/v1:ConfigMap", {"metadata": {"namespace": UNKNOWN}}, "it-id", {}),
    ],
)
def test_answers(token: str, inputs: dict[str, Any], id_: str, answered: dict[str, Any]) -> None:
    result, state = Mocks().new_resource(pulumi.runtime.MockResourceArgs(token, "it", inputs))
    assert result == id_
    assert answered.items() <= state.items()


def test_one_name_below_two_components_of_one_type_is_refused() -> None:
    class Team(pulumi.ComponentResource):
        def __init__(self, name: str) -> None:
            super().__init__("acme:index:Team", name)
            kf.PriorityClass("batch", kf.PriorityClassFields(value=1), object_name=name, opts=below(self))

    def below(parent: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=parent)

    with pytest.raises(pulumi.RunError, match=r"PriorityClass batch: has the URN of another component"):
        test_of(Mocks(), lambda: {name: Team(name).urn for name in ("vision", "language")})


def test_tests_with_mocks_of_their_own_may_declare_the_same() -> None:
    for _ in range(2):
        mocks = Mocks()
        test_of(mocks, lambda: kf.PriorityClass("batch", kf.PriorityClassFields(value=1)) and None)
        assert len(mocks.of_type("kueue-fleet:index:PriorityClass")) == 1


def test_tests_with_the_same_mocks_may_declare_the_same() -> None:
    """As Pulumi's page on unit tests has it: mocks are set once in a file."""
    mocks = Mocks()
    pulumi.runtime.set_mocks(mocks, preview=False)
    for _ in range(2):
        declares = pulumi.runtime.test(lambda: kf.PriorityClass("batch", kf.PriorityClassFields(value=1)).name)  # type: ignore[no-untyped-call]
        declares()
    assert [item.typ for item in mocks.made].count("kueue-fleet:index:PriorityClass") == 2


def test_functions() -> None:
    call = pulumi.runtime.MockCallArgs("gcp:organizations/getProject:getProject", {"projectId": "p-1"}, "")
    answer, failures = Mocks().call(call)
    assert (answer["projectId"], failures) == ("p-1", [])
    assert Mocks().call(pulumi.runtime.MockCallArgs("gcp:other/f:f", {}, "")) == ({}, [])


def test_a_secret_of_secret_manager_is_text() -> None:
    def test() -> Any:
        token = gcp.secretmanager.get_secret_version_output(secret="token").secret_data
        team = kf.TeamEntry("vision", local_queues=[], secrets=["hf"])
        return kf.Team("vision", team, secrets={"hf": {"token": token}}).secrets["vision", "hf"].urn

    mocks = Mocks()
    test_of(mocks, test)
    assert mocks.of_type("Secret")
