"""Jobs that the fleet's own policies refuse when a member of the team submits them: `check --jobs` says so before."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.fleets import GPU, fleet_data

from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests

CLASSES = {
    "workloadPriorityClasses": [{"name": "urgent", "value": 1000}, {"name": "normal", "value": 100}],
    "priorityClasses": [{"name": "top", "value": 9}, {"name": "low", "value": 1}],
}


def found(
    data: dict[str, Any], labels: dict[str, str] | None = None, spec: dict[str, str] | None = None, **pod: Any
) -> list[str]:
    resources = {"requests": {"cpu": 1, GPU: 1}, "limits": {GPU: 1}}
    template = {
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "busybox", "resources": resources}],
            **pod,
        }
    }
    metadata = {"name": "j", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu", **(labels or {})}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template, **(spec or {})},
    }
    return list(map(str, check_manifests(parse_fleet(data), [Document("j.yaml:1", job)]).problems))


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (
            {"labels": {"kueue.x-k8s.io/priority-class": "urgent"}},
            "metadata.labels[kueue.x-k8s.io/priority-class]: urgent is not a priority class for team team-a; "
            "use normal",
        ),
        (
            {"priorityClassName": "top"},
            "priorityClassName of pod set main: top is not a priority class for team team-a; use low",
        ),
        (
            {"spec": {"managedBy": "example.com/other"}},
            "spec.managedBy: example.com/other, and a manager takes only jobs that MultiKueue manages; remove it",
        ),
        (
            {"serviceAccountName": "builder"},
            "serviceAccountName of pod set main: builder is not an account that the fleet makes for team team-a on "
            "workers; remove it",
        ),
        (
            {"nodeName": "node-1"},
            "nodeName of pod set main: takes a node past the flavors of its queue; use nodeSelector",
        ),
        (
            {"nodeSelector": {"cloud.google.com/gke-queued": "true"}},
            "nodeSelector or tolerations of pod set main: are for nodes of DWS, and ClusterQueue gpu asks for none; "
            "remove them, or use a queue with DWS",
        ),
    ],
)
def test_what_a_policy_of_the_team_refuses(job: dict[str, Any], said: str) -> None:
    assert found(fleet_data(**CLASSES), **job) == [f"j.yaml:1: Job team-a/j.{said}"]


@pytest.mark.parametrize(
    "job",
    [
        {"labels": {"kueue.x-k8s.io/priority-class": "normal"}},
        {"spec": {"managedBy": "kubernetes.io/job-controller"}},
        {"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}},
        {"serviceAccountName": "default"},
    ],
)
def test_what_it_takes(job: dict[str, Any]) -> None:
    assert found(fleet_data(**CLASSES), **job) == []


@pytest.mark.parametrize("annotation", ["provreq.kueue.x-k8s.io/maxRunDurationSeconds", "kueue-fleet.dev/run-seconds"])
@pytest.mark.parametrize(("seconds", "warned"), [("345601", True), ("345600", False)])
def test_nodes_that_live_shorter_than_a_job_declares(seconds: str, warned: bool, annotation: str) -> None:
    data = fleet_data()
    pool = data["nodePools"][0]
    pool["capacity"] = {"type": "flexStart", "maxRunDuration": "96h", "queuedProvisioning": False}
    metadata = {
        "name": "j",
        "namespace": "team-a",
        "labels": {"kueue.x-k8s.io/queue-name": "gpu"},
        "annotations": {annotation: seconds},
    }
    containers = [{"name": "c", "image": "m:1", "resources": {"requests": {"cpu": 1, GPU: 1}, "limits": {GPU: 1}}}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    output = check_manifests(parse_fleet(data), [Document("j.yaml:1", job)]).warnings
    says = f"{seconds}, but nodes of pool l4-spot live 96h, and the job ends with them; write less, or make the pool's "
    assert any(says in str(item) for item in output) == warned


OF_A_JOB = {"activeDeadlineSeconds": 345601}
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "m:1", "resources": {"limits": {GPU: 1}}}]}


@pytest.mark.parametrize(
    ("kind", "annotations", "said"),
    [
        ({"kind": "Job", "spec": OF_A_JOB | {"template": {"spec": POD}}}, {}, True),
        ({"kind": "Job", "spec": {"activeDeadlineSeconds": 345600, "template": {"spec": POD}}}, {}, False),
        ({"kind": "Job", "spec": {"template": {"spec": POD | OF_A_JOB}}}, {}, True),
        ({"kind": "Job", "spec": OF_A_JOB | {"template": {"spec": POD | {"activeDeadlineSeconds": 60}}}}, {}, False),
        ({"kind": "Job", "spec": OF_A_JOB | {"template": {"spec": POD}}}, {"kueue-fleet.dev/run-seconds": "60"}, False),
        (
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "spec": {
                    "replicatedJobs": [
                        {"name": "w", "template": {"spec": OF_A_JOB | {"template": {"spec": POD}}}},
                    ]
                },
            },
            {},
            True,
        ),
        (
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "spec": {
                    "runPolicy": OF_A_JOB,
                    "pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": {"spec": POD}}},
                },
            },
            {},
            True,
        ),
    ],
    ids=["Job", "as long", "pod", "pod within a job", "says how long it runs", "JobSet", "PyTorchJob"],
)
def test_a_job_that_may_run_longer_than_its_nodes_live(
    kind: dict[str, Any], annotations: dict[str, str], said: bool
) -> None:
    data = fleet_data()
    capacity = {"type": "flexStart", "maxRunDuration": "96h", "queuedProvisioning": False}
    data["nodePools"][0]["capacity"] = capacity
    frameworks = ["batch/job", "jobset.x-k8s.io/jobset", "kubeflow.org/pytorchjob"]
    data["kueue"] = {"configuration": {"integrations": {"frameworks": frameworks}}}
    labels = {"kueue.x-k8s.io/queue-name": "gpu"}
    metadata = {"name": "j", "namespace": "team-a", "labels": labels, "annotations": annotations}
    job = {"apiVersion": "batch/v1", "metadata": metadata, **kind}
    output = check_manifests(parse_fleet(data), [Document("j.yaml:1", job)])
    assert not output.problems
    says = "345601, so that it may run longer than its nodes live: those of pool l4-spot live 96h; write less, or "
    assert any(says in str(item) for item in output.warnings) == said


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain", "None"])
@pytest.mark.parametrize("kind", ["ClusterQueue gpu", "LocalQueue team-a/gpu"])
def test_a_queue_that_is_stopped(kind: str, policy: str) -> None:
    data = fleet_data()
    stopped = data["clusterQueues"][0] if kind.startswith("Cluster") else data["teams"][0]["localQueues"][0]
    stopped["stopPolicy"] = policy
    containers = [{"name": "c", "image": "m:1", "resources": {"requests": {"cpu": 1}}}]
    metadata = {"name": "j", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}}
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    output = check_manifests(parse_fleet(data), [Document("j.yaml:1", job)]).warnings
    assert any(f"waits: {kind} is stopped; set its stopPolicy to None" in str(item) for item in output) == (
        policy != "None"
    )
