"""What of a dump is looked at, and what is said about the rest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.objects import cluster, job, queue
from tests.simulation.test_dump import workload

from kueue_admission.api.resources import RESOURCES
from kueue_admission.cli import explain
from kueue_admission.read.dumps import missing_kinds, take, without_queue

ROOT = Path(__file__).parents[2]
Json = dict[str, Any]


def thing(kind: str, name: str = "x", spec: Json | None = None, **metadata: Any) -> Json:
    labels = {"kueue.x-k8s.io/queue-name": "lq"}
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "labels": labels, **metadata},
        "spec": spec or {},
    }


def names(manifests: Any) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in manifests]


def unlabelled(name: str, **metadata: Any) -> Json:
    item = job(name, 0)
    return {**item, "metadata": {**item["metadata"], "labels": {}, **metadata}}


def test_a_job_without_a_queue_is_left_out_and_named() -> None:
    taken = take([unlabelled("backup"), job("train", 0)])
    assert names(taken.manifests) == ["train"]
    assert [output.endswith(": Job default/backup") for output in taken.left_out] == [True]


def test_a_new_job_gets_the_default_queue_of_its_namespace() -> None:
    default = {"kind": "LocalQueue", "metadata": {"name": "default", "namespace": "default"}}
    taken = take([default, unlabelled("new"), unlabelled("old", uid="1")])
    assert names(taken.manifests) == ["default", "new"]
    assert taken.manifests[1]["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "default"}


@pytest.mark.parametrize("kind", ["AppWrapper", "SparkApplication"])
def test_a_kind_that_is_not_read_is_named(kind: str) -> None:
    taken = take([thing(kind), thing(kind, "other", labels={})])
    assert [output.endswith(f": {kind} default/x") for output in taken.left_out] == [True]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_what_is_live_counts_by_the_workloads_of_its_pods(kind: str) -> None:
    live = thing(kind, "serve", uid="1")
    pods = workload("pod-serve-abc", 0)
    pods["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "serve-abc", "uid": "2"}]
    assert take([live, pods]).left_out == []
    (output,) = take([live, workload("other", 0)]).left_out
    assert output.endswith(f": {kind} default/serve")


@pytest.mark.parametrize(
    ("frameworks", "said"),
    [
        ("integrations: {frameworks: [kubeflow.org/mpijob]}", ["Job default/a"]),
        ("integrations: {frameworks: [batch/job]}", []),
        ("metrics: {}", []),
        ("{", []),
    ],
)
def test_kinds_that_the_configuration_of_kueue_does_not_name_are_left_out(frameworks: str, said: list[str]) -> None:
    """kueue#931; without any framework, batch/job is enabled."""
    data = {"controller_manager_config.yaml": frameworks}
    config = {"kind": "ConfigMap", "metadata": {"name": "kueue-manager-config"}, "data": data}
    left_out = take([*cluster(), job("a", 0), config]).left_out
    assert [text.rpartition(": ")[2] for text in left_out] == said


def test_a_workload_that_waits_for_a_missing_queue_is_left_out() -> None:
    lost, holds = workload("lost", 0), workload("holds", 0, since=1)
    for item in (lost, holds):
        item["spec"]["queueName"] = "gone"
    taken = without_queue([*cluster(), lost, holds, workload("fine", 0)])
    assert names(taken.manifests)[-2:] == ["holds", "fine"]
    assert [output.endswith(": Workload default/lost") for output in taken.left_out] == [True]


TOPOLOGY = {"kind": "ResourceFlavor", "metadata": {"name": "rf"}, "spec": {"topologyName": "t"}}


@pytest.mark.parametrize(
    ("manifests", "missing"),
    [
        ([workload("a", 0)], ["ClusterQueue", "LocalQueue"]),
        ([job("a", 0), queue()], ["LocalQueue", "ResourceFlavor"]),
        ([TOPOLOGY], ["Topology", "Node", "Pod"]),
        ([*cluster(namespaceSelector={"matchLabels": {"a": "b"}}), job("a", 0)], ["Namespace"]),
        ([*cluster(admissionChecksStrategy={"admissionChecks": [{"name": "c"}]})], ["AdmissionCheck"]),
        ([*cluster(), job("a", 0)], []),
        (
            [thing("Pod", "p"), thing("Job", "j", {"template": {"spec": {"runtimeClassName": "gvisor"}}})],
            ["ClusterQueue", "LocalQueue", "RuntimeClass"],
        ),
        (
            [thing("Job", "j", {"template": {"spec": {"runtimeClassName": "gvisor", "overhead": {"cpu": "1"}}}})],
            ["ClusterQueue", "LocalQueue"],
        ),
    ],
)
def test_a_kind_that_others_refer_to_is_missed(manifests: list[Json], missing: list[str]) -> None:
    assert list(missing_kinds(manifests)) == missing


@pytest.mark.parametrize("text", [(ROOT / "docs/explain.md").read_text(), explain.explain.__doc__])
def test_the_dump_command_prints_every_kind_that_is_read(text: str) -> None:
    command = text[text.index("kubectl get -A" if "kubectl get -A" in text else "for kind in") :]
    assert set(RESOURCES.values()) <= set(re.findall(r"[a-z]+", command[:500]))


SELECTORS = {
    "by a label that it lacks": "managedJobsNamespaceSelector: {matchLabels: {kueue: managed}}",
    "by its name": "managedJobsNamespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [default]}]}",  # noqa: E501
}


def configured(text: str, namespace: str = "kueue-system") -> Json:
    metadata = {"name": "kueue-manager-config", "namespace": namespace}
    return {"kind": "ConfigMap", "metadata": metadata, "data": {"controller_manager_config.yaml": text}}


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
def test_jobs_of_a_namespace_that_kueue_does_not_manage_are_left_out(selector: str) -> None:
    """kueue#13374: also those that name a queue, and the queue `default` is for no others."""
    default = {"kind": "LocalQueue", "metadata": {"name": "default", "namespace": "default"}}
    taken = take([configured(selector), default, job("train", 0), unlabelled("new")])
    assert "train" not in names(taken.manifests)
    assert [output.rpartition(": ")[2] for output in taken.left_out] == ["Job default/new", "Job default/train"]


@pytest.mark.parametrize(
    "config",
    [configured("managedJobsNamespaceSelector: {matchLabels: {team: a}}"), configured("{}"), configured("{}", "other")],
    ids=["by a label that it has", "by default", "of another installation"],
)
def test_jobs_of_other_namespaces_are_taken(config: Json) -> None:
    namespace = {"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}}
    assert "train" in names(take([config, namespace, job("train", 0)]).manifests)


def test_jobs_beside_kueue_itself_are_left_out() -> None:
    assert "train" not in names(take([configured("{}", "default"), job("train", 0)]).manifests)
