"""What only a whole program tells of single components is a warning once its body has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_gcp
import pulumi_kubernetes
import pytest

import kueue_fleet as kf
import pulumi_mocks

CREDENTIALS = kf.ServiceAccountToken("2027-02", rotate_by="2099-02-01")


def queue(name: str, flavor: str) -> None:
    quotas = [
        kf.ResourceGroup(covered_resources=["cpu"], flavors=[kf.FlavorQuotas(flavor, [kf.ResourceQuota("cpu", 4)])])
    ]
    kf.ClusterQueue(name, kf.ClusterQueueSpec(namespace_selector=kf.LabelSelector(), resource_groups=quotas))


def flavor(name: str = "l4", **labels: str) -> None:
    kf.ResourceFlavor(name, kf.ResourceFlavorSpec(node_labels=labels))


def named_flavor(name: str) -> None:
    """A queue names a flavor that may be the other one of the program."""
    queue("q", name)
    flavor()


def cohorts(**parents: str) -> None:
    for name, parent in parents.items():
        kf.Cohort(name, {"parentName": parent})


def worker(name: str, cluster: str) -> None:
    access = kf.WorkerAccess(
        "access",
        cluster_name=cluster,
        endpoint="10.0.0.2",
        ca_certificate=None,
        credentials=CREDENTIALS,
        namespaces=["a"],
    )
    kf.MultiKueue("mk", workers={name: access})


def in_namespace_of(team: str) -> None:
    """A queue for the namespaces of one team, and an entrance in one of TEAM's."""
    labels = {"team": team}
    kf.Namespaces("n", [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision", "labels": labels}}])
    kf.ClusterQueue("q", {"namespaceSelector": {"matchLabels": {"team": "vision"}}})
    kf.LocalQueue("gpu", namespace="vision", cluster_queue="q")


def flavor_of_pool(name: str) -> None:
    pool("lab")
    flavor(**{"cloud.google.com/gke-nodepool": name})


def multi_kueue_of_two_clusters(worker: str) -> None:
    """Its manager is on the cluster `manager`, and its worker on another, or on the same."""
    providers = {name: pulumi_kubernetes.Provider(name, kubeconfig=name) for name in ("manager", "worker")}
    access = kf.WorkerAccess(
        "access",
        cluster_name="std",
        endpoint="10.0.0.2",
        ca_certificate=None,
        credentials=CREDENTIALS,
        namespaces=["a"],
        opts=pulumi.ResourceOptions(provider=providers[worker]),
    )
    kf.MultiKueue("mk", workers={"std": access}, opts=pulumi.ResourceOptions(provider=providers["manager"]))


def of_providers(package: str) -> None:
    result = pulumi_gcp.Provider("g") if package == "gcp" else pulumi_kubernetes.Provider("k", kubeconfig="{}")
    kf.Cohort("c", {}, opts=pulumi.ResourceOptions(providers=[result]))


def pool(cluster: pulumi.Input[str], account_of: str = "acme-lab-1") -> None:
    kf.NodePool(
        "p",
        kf.Pool("p", "g2-standard-12", nodes=2),
        cluster_spec=kf.Standalone("lab", "us-central1", mode="Standard"),
        project="acme-lab-1",
        cluster=cluster,
        service_account=f"nodes-1@{account_of}.iam.gserviceaccount.com",
    )


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    output: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: output.append(text))
    return output


@pytest.mark.parametrize(
    ("program", "warning"),
    [
        (
            lambda: named_flavor("l-4"),
            "ClusterQueue q.resourceGroups[0].flavors[l-4].name: this program declares no ResourceFlavor l-4; did you "
            "mean l4? [KF920]",
        ),
        (
            lambda: (
                kf.LocalQueue("gpu", namespace="vsion", cluster_queue="q"),
                kf.Namespaces("n", ["vision"]),
            ),
            "LocalQueue gpu.namespace: this program declares no Namespace vsion; did you mean vision? [KF920]",
        ),
        (
            lambda: cohorts(b="a", a="b", below="a"),
            "Cohort a.parentName: the cohorts form a cycle, a -> b -> a, and Kueue admits nothing in that tree; remove "
            "one of these parents [KF920]",
        ),
        (
            lambda: kf.ClusterQueue("q", {"resourceGroups": []}),
            "ClusterQueue q.namespaceSelector: is missing, which matches no namespace, so no job is ever admitted; "
            "write {} to take jobs of every namespace [KF801]",
        ),
        (
            lambda: flavor(**{"cloud.google.com/gke-accelerator": "nvidia-l40"}),
            "ResourceFlavor l4.nodeLabels[cloud.google.com/gke-accelerator]: nvidia-l40 is not a known accelerator of "
            "GKE; did you mean nvidia-l4? [KF612]",
        ),
        (
            lambda: worker("worker", "std"),
            "MultiKueue mk.workers[worker]: has the access to the cluster std; call it std, or give the access to "
            "worker [KF913]",
        ),
        (
            lambda: pool("other"),
            "NodePool p.cluster: is other, and cluster_spec is lab; give the entry of that cluster [KF913]",
        ),
        (
            lambda: pool(pulumi.Output.from_input("other")),
            "NodePool p.cluster: is other, and cluster_spec is lab; give the entry of that cluster [KF913]",
        ),
        (
            lambda: pool("lab", "acme-other-2"),
            "NodePool p.service_account: is an account of acme-other-2, and the nodes are in acme-lab-1; name one of "
            "that project, or allow it to be used there [KF677]",
        ),
        (
            lambda: kf.LocalQueue("gpu", namespace=kf.Cohort("c", {}).name, cluster_queue="q"),
            "LocalQueue gpu.namespace: is the name of Cohort c; give that of a namespace [KF913]",
        ),
        (
            lambda: (kf.Cohort("c", {}), kf.KueueInstall("kueue")),
            "Cohort c: KueueInstall is declared after it, so that Pulumi may make this one first; declare it "
            "before [KF920]",
        ),
        (
            lambda: (
                kf.LocalQueue("gpu", namespace="vision", cluster_queue="q"),
                kf.Namespaces("n", ["vision"]),
            ),
            "LocalQueue gpu: Namespace vision is declared after it, so that Pulumi may make this one first; declare it "
            "before [KF920]",
        ),
        (
            lambda: in_namespace_of("speech"),
            "LocalQueue gpu: the namespaceSelector of ClusterQueue q does not match the labels of vision, so no job is "
            "ever admitted; change one of them [KF920]",
        ),
        (
            lambda: flavor_of_pool("pp"),
            "ResourceFlavor l4.nodeLabels[cloud.google.com/gke-nodepool]: this program declares no pool pp; did you "
            "mean p? [KF920]",
        ),
        (
            lambda: multi_kueue_of_two_clusters("manager"),
            "MultiKueue mk.workers[std]: its access has the manager's provider, and a manager is no worker of its own; "
            "give the access the provider of its cluster [KF913]",
        ),
        (
            lambda: of_providers("gcp"),
            "Cohort c.opts.providers: are of gcp, which has no effect on it; give a provider of kubernetes [KF913]",
        ),
        (
            lambda: kf.Cohort("c", {}, opts=pulumi.ResourceOptions(ignore_changes=["spec"])),
            "Cohort c.opts.ignore_changes: has no effect on a component; set it by a transform, on the resources in it "
            "[KF913]",
        ),
    ],
)
def test_a_mistake_is_a_warning(program: Callable[[], object], warning: str, warnings: list[str]) -> None:
    pulumi_mocks.run(program)
    assert warning in warnings


@pytest.mark.parametrize(
    "program",
    [
        lambda: queue("q", "elsewhere"),
        lambda: named_flavor("l4"),
        lambda: kf.LocalQueue("gpu", namespace="elsewhere", cluster_queue="q"),
        lambda: cohorts(team="company", company="world"),
        lambda: flavor(**{"example.com/rack": "r1"}),
        lambda: worker("std", "std"),
        lambda: pool("lab"),
        lambda: in_namespace_of("vision"),
        lambda: flavor_of_pool("p"),
        lambda: multi_kueue_of_two_clusters("worker"),
        lambda: of_providers("kubernetes"),
        lambda: kf.LocalQueue("gpu", namespace=kf.Namespaces("n", ["a"]).names["a"], cluster_queue="q"),
        lambda: (kf.KueueInstall("kueue"), kf.Namespaces("n", ["a"]), kf.Cohort("c", {})),
    ],
)
def test_what_may_be_meant_is_none(program: Callable[[], object], warnings: list[str]) -> None:
    pulumi_mocks.run(program)
    assert [text for text in warnings if "KF920" in text or "KF913" in text or "KF612" in text] == []


def test_the_same_name_on_another_cluster_is_not_that_of_this(warnings: list[str]) -> None:
    def program() -> None:
        there = pulumi.ResourceOptions(provider=pulumi_kubernetes.Provider("there", kubeconfig="{}"))
        kf.ResourceFlavor("far", kf.ResourceFlavorSpec(), opts=there)
        flavor()
        queue("q", "far")

    pulumi_mocks.run(program)
    assert [text for text in warnings if "declares no ResourceFlavor far" in text]


def test_kueue_and_the_namespace_are_there_before_what_needs_them() -> None:
    def program() -> None:
        kf.KueueInstall("kueue")
        kf.Namespaces("n", ["vision"])
        kf.LocalQueue("gpu", namespace="vision", cluster_queue="q")

    result = pulumi_mocks.run(program)
    queue = result.one("LocalQueue", custom=True)
    assert result.is_before(result.one("Release"), queue)
    assert result.is_before(result.one("Namespace", "n/vision"), queue)


def test_kueue_of_another_cluster_is_not_waited_for() -> None:
    def program() -> None:
        kf.KueueInstall("kueue")
        there = pulumi_kubernetes.Provider("there", kubeconfig="{}")
        kf.Cohort("c", {}, opts=pulumi.ResourceOptions(provider=there))

    assert pulumi_mocks.run(program).one("Cohort", custom=True).dependencies == ()


def two_providers(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Cohorts by the providers a and b."""
    for name, arguments in (("a", first), ("b", second)):
        provider = pulumi_kubernetes.Provider(name, **arguments)
        kf.Cohort(name, {}, opts=pulumi.ResourceOptions(provider=provider))


@pytest.mark.parametrize("preview", [True, False])
def test_two_providers_of_one_cluster_are_warned_of(preview: bool, warnings: list[str]) -> None:
    std = {"kubeconfig": "~/.kube/config", "context": "std"}
    pulumi_mocks.run(lambda: two_providers(std, {**std, "namespace": "vision"}), preview=preview)
    assert warnings == [
        "Provider b: is of the same cluster as Provider a, and names and order are not checked between the two; give "
        "all components of a cluster one [KF920]"
    ]


@pytest.mark.parametrize(
    "second",
    [
        lambda: {"kubeconfig": "{}", "context": "other"},
        lambda: {"kubeconfig": "other", "context": "std"},
        lambda: {"kubeconfig": "{}", "context": "std", "cluster": "other"},
        lambda: {"kubeconfig": pulumi_kubernetes.core.v1.Secret("s").id},
    ],
)
def test_providers_of_other_clusters_are_not(second: Callable[[], dict[str, Any]], warnings: list[str]) -> None:
    pulumi_mocks.run(lambda: two_providers({"kubeconfig": "{}", "context": "std"}, second()), preview=True)
    assert warnings == []
