"""Kueue's own reconcilers make of each example the Workloads that its manifest is read as."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from job_definitions import ensure_job_kinds, place_of
from kueue_admission.api.job_kinds import KINDS
from kueue_admission.decide.model import Workload
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.simulate.documents import read_documents
from kueue_admission.simulate.raw import name_documents, named_workloads
from one_cluster import KUEUE, OneCluster, Refused, wait_until

EXAMPLES = Path(__file__).parents[3] / "examples/kinds-of-jobs"
QUEUE = "kueue.x-k8s.io/queue-name"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainingruntimes"
DEFAULTS = {"RayJob": {"submissionMode": "K8sJobMode"}}
"""What the definition of a kind, which is not here, adds to the spec."""


@pytest.fixture(scope="module")
def cluster(kueue_cluster: OneCluster) -> OneCluster:
    ensure_job_kinds(kueue_cluster)
    return kueue_cluster


def shapes(workloads: list[Workload]) -> list[list[tuple[Any, ...]]]:
    """Name, count, requests and node selector of each pod set."""
    return sorted(
        [(item.name, item.count, item.requests, item.node_selector) for item in workload.pod_sets]
        for workload in workloads
    )


def submitted(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest in `default`, in a queue that is not there: its Workload waits, and that is enough."""
    metadata = {**manifest["metadata"], "namespace": "default"}
    if "labels" in metadata:
        metadata["labels"] = {**metadata["labels"], QUEUE: "nowhere"}
    spec = {**DEFAULTS.get(manifest["kind"], {}), **manifest["spec"]}
    return {**manifest, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    "name", ["rayjob", "raycluster", "trainjob", "mpijob", "leaderworkerset", "pods"]
)  # PyTorchJobs are not among the frameworks of Kueue's chart.
def test_kueue_makes_the_pod_sets_that_are_read(cluster: OneCluster, name: str) -> None:
    documents = [
        each._replace(data=submitted(each.data))
        for each in read_documents((EXAMPLES / f"{name}.yaml").read_text(), name)
    ]
    jobs = name_documents(documents)
    read = parse_objects([job.data for job in jobs]).workloads
    expected = [each for job, one in zip(jobs, read, strict=True) for _, each in named_workloads(job.data, one, "")]
    places = {kind.kind: place_of(framework, "default") for framework, kind in KINDS.items()}
    places["TrainingRuntime"] = RUNTIMES
    uids = {
        wait_until(partial(created, cluster, places[item.data["kind"]], dict(item.data)))["metadata"]["uid"]
        for item in documents
    }
    result = wait_until(partial(found, cluster, uids, len(expected)))
    if name == "pods":
        for workload in result:
            for number, pods in enumerate(workload["spec"]["podSets"]):
                # Kueue names the pods of a group by a hash of their spec.
                pods["name"] = pods["name"] if pods["name"] == "main" else f"pods-{number}"
    assert shapes(list(parse_objects(result).workloads)) == shapes(expected)
    for entry in documents:
        cluster.delete(f"{places[entry.data['kind']]}/{entry.data['metadata']['name']}")


def created(cluster: OneCluster, place: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The object, once Kueue has begun with its kind."""
    try:
        return cluster.create(place, body)
    except Refused as refused:
        if "unsupported runtime" not in str(refused):
            raise
        return None


def found(cluster: OneCluster, uids: set[str], count: int) -> list[dict[str, Any]] | None:
    """The Workloads of the objects, once there are so many."""
    there = [
        {**item, "kind": "Workload"}
        for item in cluster.get(f"{KUEUE}/namespaces/default/workloads")["items"]
        if uids & {owner["uid"] for owner in item["metadata"].get("ownerReferences", ())}
    ]
    return there if len(there) == count else None
