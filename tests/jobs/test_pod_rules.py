"""Jobs that the API server or Kueue's webhook refuses, and pods that a Pod Security Standard does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import fleet_data

from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.parse import read_fleet_text
from kueue_fleet.fleet_simulation.job_findings import check_manifests

GPU = "nvidia.com/gpu"
Json = dict[str, Any]


def found(standard: str = "baseline", **given: Any) -> str:
    """What is wrong with a job of a team with this standard; what is given is of its pods."""
    data = fleet_data()
    data["teams"][0]["podSecurity"] = standard
    container, annotations = (given.pop(name, {}) for name in ("container", "annotations"))
    resources = {"requests": {"cpu": 1, GPU: 1}, "limits": {GPU: 1}}
    containers = [{"name": "main", "image": "busybox", "resources": resources, **container}]
    labels = {"kueue.x-k8s.io/queue-name": "main"}
    metadata = {"name": "j", "namespace": "team-vision", "labels": labels, "annotations": annotations}
    selector = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    pod = {"restartPolicy": "Never", "containers": containers, "nodeSelector": selector, **given}
    template = {"spec": pod}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    return "\n".join(map(str, check_manifests(parse_fleet(data), [Document("j.yaml:1", job)]).problems))


REFUSED: list[tuple[Json, str]] = [
    ({"hostNetwork": True}, "baseline of its team by hostNetwork, hostPID or hostIPC of its pods"),
    ({"volumes": [{"name": "dev", "hostPath": {"path": "/dev"}}]}, "by volumes of its pods"),
    ({"container": {"securityContext": {"privileged": True}}}, "by securityContext.privileged of its containers"),
    ({"container": {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}}, "capabilities.add of its containers"),
    ({"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}, "by ports of its containers"),
    ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "by securityContext.seccompProfile of its pods"),
    ({"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}}, "by securityContext.sysctls"),
    ({"restartPolicy": "Always"}, "has restartPolicy Always, and Kubernetes refuses the Job; write Never or OnFailure"),
    ({"container": {"resources": {"requests": {GPU: 1}, "limits": {GPU: 2}}}}, "asks for 1 nvidia.com/gpu in "),
    ({"container": {"resources": {"requests": {GPU: 1}}}}, "with a limit of nothing, and Kubernetes refuses the pod"),
    ({"container": {"resources": {"requests": {f"{GPU}s": 1}}}}, f"; did you mean {GPU} for {GPU}s? write the same "),
    ({"annotations": {"kueue.x-k8s.io/job-min-parallelism": "3"}}, "job-min-parallelism is 3"),
    ({"resources": {"requests": {"cpu": "500m"}}}, "requests 500m cpu as a pod, and its containers 1, and Kubernetes"),
    ({"resources": {"limits": {GPU: 1}}}, "has nvidia.com/gpu in the limits of the pod"),
    ({"container": {"name": "Main"}}, 'has a container "Main", a name that has characters or a form that are not'),
    ({"initContainers": [{"image": "init"}]}, "has a container without a name, and Kubernetes refuses the pod"),
    (
        {"initContainers": [{"name": "main", "image": "busybox"}]},
        "has two containers of the name main, and Kubernetes refuses the pod",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("job", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_is_refused(job: Json, said: str) -> None:
    assert said in found(**job)


ELASTIC = "kueue.x-k8s.io/elastic-job"
TOPOLOGY = "kueue.x-k8s.io/podset-{}-topology"
WHOLE: list[tuple[str, Json, str]] = [
    ("Job", {"apiVersion": "batch/v1beta1"}, "Job team-vision/j.apiVersion: is of batch/v1beta1, and Kueue manages"),
    ("Job", {"annotations": {ELASTIC: "true", "kueue.x-k8s.io/job-min-parallelism": "1"}, "parallelism": 2}, "both"),
    ("Job", {"annotations": {"kueue.x-k8s.io/job-completions-equal-parallelism": "true"}}, "is not Indexed, and Kueue"),
    (
        "Job",
        {
            "annotations": {"kueue.x-k8s.io/job-completions-equal-parallelism": "true"},
            "completionMode": "Indexed",
            "completions": 2,
        },
        "completions other than parallelism",
    ),
    ("Job", {"managedBy": "example.com/own"}, "managedBy: example.com/own, and a manager takes only jobs"),
    ("Job", {"topologies": ("required", "preferred")}, "has the annotations kueue.x-k8s.io/podset-required-topology"),
    ("Job", {"topologies": ("required",), "annotations": {ELASTIC: "true"}}, "and Kueue refuses it in an elastic job"),
    ("Job", {"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "0"}}, "max-exec-time-seconds: is '0'; write 1 or"),
    ("JobSet", {"apiVersion": "jobset.x-k8s.io/v1alpha1"}, "manages those of jobset.x-k8s.io/v1alpha2 alone; write"),
    ("JobSet", {"annotations": {ELASTIC: "true"}}, "and Kueue refuses a JobSet with it; remove it"),
    ("JobSet", {"names": [f"w{number}" for number in range(19)]}, "has 19 pod sets, and Kueue 0.19.2 makes no"),
    ("JobSet", {"names": ["w" * 60]}, "makes Jobs and pods with names such as j-wwwwww"),
    ("JobSet", {"names": ["w", "w"]}, "has w twice in replicatedJobs, and Kubernetes refuses it"),
]  # fmt: skip


def whole(kind: str, version: str = "0.19.2", **given: Any) -> str:
    """What is wrong with a job of a kind whose pods are well; what is given is of the job."""
    data = fleet_data()
    data["kueue"] = {"version": version}
    selector = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    resources = {"requests": {"cpu": "10m", GPU: 1}, "limits": {GPU: 1}}
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "busybox", "resources": resources}],
        "nodeSelector": selector,
    }
    annotations = {TOPOLOGY.format(item): "rack" for item in given.pop("topologies", ())}
    template: Json = {"metadata": {"annotations": annotations}, "spec": pod}
    labels = {"kueue.x-k8s.io/queue-name": "main", **given.pop("labels", {})}
    metadata = {"name": "j", "namespace": "team-vision", "labels": labels, "annotations": given.pop("annotations", {})}
    names = given.pop("names", ["w"])
    apis = {"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}
    job: Json = {"apiVersion": given.pop("apiVersion", apis[kind]), "kind": kind, "metadata": metadata}
    replicated = [{"name": name, "template": {"spec": {"template": template}}} for name in names]
    job["spec"] = {"template": template, **given} if kind == "Job" else {"replicatedJobs": replicated, **given}
    return "\n".join(map(str, check_manifests(parse_fleet(data), [Document("j.yaml:1", job)]).problems))


@pytest.mark.parametrize(("kind", "change", "said"), WHOLE, ids=[said for _, _, said in WHOLE])
def test_what_is_refused_of_a_job_as_a_whole(kind: str, change: Json, said: str) -> None:
    assert said in whole(kind, **change)


def test_what_is_null_is_as_if_it_were_left_out() -> None:
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"requests": {"cpu": None, GPU: 1}, "limits": {GPU: 1}},
    }
    pod = {"restartPolicy": "Never", "containers": [container], "resources": {"requests": {"cpu": 1}}}
    replicated = {"name": "w", "replicas": None, "template": {"spec": {"template": {"spec": pod}}}}
    assert "Kubernetes refuses" not in whole("JobSet", replicatedJobs=[replicated])


def test_jobs_that_are_taken_as_a_whole() -> None:
    assert whole("Job", completionMode="Indexed", completions=1, parallelism=1) == ""
    assert whole("Job", annotations={ELASTIC: "true"}) == ""
    assert whole("Job", managedBy="kubernetes.io/job-controller") == ""
    assert whole("JobSet") == ""


def test_where_nothing_is_dispatched_no_job_is_left_to_kueue() -> None:
    fleet = read_fleet_text(Path("examples/lab/fleet.yaml").read_text(), "lab").whole()
    labels = {"kueue.x-k8s.io/queue-name": "gpu"}
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "busybox", "resources": {"limits": {GPU: 1}}}],
    }
    job: Json = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod}}}
    job["metadata"] = {"name": "j", "namespace": "vision", "labels": labels}
    job["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    *_, problem = map(str, check_manifests(fleet, [Document("j.yaml:1", job)]).problems)
    assert "and its queue is not dispatched, so that nothing makes its pods; remove it" in problem


def autoscaled(**changed: Any) -> str:
    """What is wrong with an elastic RayCluster that has Ray's autoscaler; `changed` is of the fleet."""
    fleet = parse_fleet({**yaml.safe_load(Path("examples/kinds-of-jobs/fleet.yaml").read_text()), **changed})
    (job,) = yaml.safe_load_all(Path("examples/kinds-of-jobs/raycluster.yaml").read_text())
    job["metadata"]["annotations"] = {ELASTIC: "true"}
    job["spec"]["enableInTreeAutoscaling"] = True
    return "\n".join(map(str, check_manifests(fleet, [Document("r.yaml:1", job)]).problems))


def test_multikueue_does_not_dispatch_a_ray_cluster_with_an_autoscaler() -> None:
    clusters = [
        {"name": "manager", "role": "manager", "region": "us-central1"},
        {"name": "worker", "role": "worker", "region": "us-central1", "mode": "Standard"},
    ]
    credentials = {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-28"}
    output = "has enableInTreeAutoscaling, and MultiKueue does not dispatch such a RayCluster"
    assert output in autoscaled(clusters=clusters, multiKueue={"credentials": credentials})


def test_without_its_gate_no_ray_cluster_may_have_an_autoscaler() -> None:
    frameworks = ["batch/job", "jobset.x-k8s.io/jobset", "ray.io/raycluster"]
    gates = {"ElasticJobsViaWorkloadSlices": False}
    off = {"configuration": {"featureGates": gates, "integrations": {"frameworks": frameworks}}}
    assert "without the feature gate ElasticJobsViaWorkloadSlices Kueue refuses it" in autoscaled(kueue=off)


@pytest.mark.parametrize(("version", "most"), [("0.17.1", 8), ("0.18.3", 10), ("0.19.2", 18)])
def test_a_workload_has_as_many_pod_sets_as_its_release_takes(version: str, most: int) -> None:
    names = [f"w{number}" for number in range(most + 1)]
    assert "pod sets, and Kueue" not in whole("JobSet", version, names=names[:-1])
    output = (
        f"has {most + 1} pod sets, and Kueue {version} makes no Workload of more than {most}, so that it never starts"
    )
    assert output in whole("JobSet", version, names=names)


SAFE: Json = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "container": {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}},
}


def test_what_is_taken() -> None:
    assert found() == ""
    assert found("restricted", **SAFE) == ""
    assert found("privileged", hostNetwork=True) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"securityContext": {}}, "securityContext.runAsNonRoot of its pods"),
        ({"securityContext": {**SAFE["securityContext"], "runAsUser": 0}}, "securityContext.runAsUser of its pods"),
        ({"container": {}}, "securityContext.allowPrivilegeEscalation of its containers"),
        ({"volumes": [{"name": "nfs", "nfs": {"server": "a", "path": "/"}}]}, "volumes of its pods"),
    ],
)
def test_what_restricted_refuses_too(change: Json, said: str) -> None:
    assert said in found("restricted", **{**SAFE, **change})
