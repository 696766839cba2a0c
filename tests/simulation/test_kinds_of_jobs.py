"""Jobs of every kind that Kueue manages, read from their own manifests: pod sets, run times, and what is wrong."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_admission.api.job_kinds import KINDS
from kueue_admission.read.fields import Fields
from kueue_admission.read.job_pod_sets import ROLES
from kueue_admission.read.manifests import JOBS, WITH_QUEUE
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document, read_documents
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.raw import read_raw
from kueue_admission.simulate.records import State
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.fleet_simulation.fleet import fleet_run, prepare_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.jobs.workload_file import WorkloadFile

EXAMPLES = Path(__file__).parents[2] / "examples/kinds-of-jobs"
FLEET = parse_fleet_text((EXAMPLES / "fleet.yaml").read_text(), "fleet.yaml")


def documents(name: str) -> list[Document]:
    return read_documents((EXAMPLES / f"{name}.yaml").read_text(), f"{name}.yaml")


def changed(document: Document, path: str, value: Any) -> Document:
    """The document with another value at `path`; None removes the field."""
    data = deepcopy(dict(document.data))
    *way, last = path.split("/")
    place: Any = data
    for part in way:
        place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return Document(document.where, data)


def pod_sets(*given: Document) -> dict[str, list[tuple[str, int, int]]]:
    """By workload: name, count and GPUs of a pod of each pod set."""
    jobs = fleet_run(FLEET, WorkloadFile(), Delays(), manifests=given).jobs
    return {
        key.partition("/")[2]: [
            (item.name, item.count, dict(item.requests).get("nvidia.com/gpu", 0)) for item in job.workload.pod_sets
        ]
        for key, job in jobs.items()
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rayjob", {"ray-train": [("head", 1, 0), ("gpu", 2, 2), ("submitter", 1, 0)]}),
        ("raycluster", {"notebook": [("head", 1, 0), ("gpu", 1, 1)]}),
        ("trainjob", {"torch-train": [("node", 4, 1)]}),
        ("pytorchjob", {"pytorch-train": [("master", 1, 1), ("worker", 3, 1)]}),
        ("mpijob", {"pi": [("launcher", 1, 0), ("worker", 2, 0)]}),
        ("leaderworkerset", {f"serve-{n}": [("leader", 1, 2), ("worker", 1, 2)] for n in (0, 1)}),
        ("pods", {"one": [("main", 1, 1)], "shards": [("pods-0", 3, 1)]}),
    ],
)
def test_an_example_has_the_pod_sets_that_kueue_makes(name: str, expected: object) -> None:
    assert check_manifests(FLEET, documents(name)).problems == []
    assert pod_sets(*documents(name)) == expected
    result = prepare_fleet(FLEET, WorkloadFile(), Delays(), manifests=documents(name)).run(None)
    assert {one.state for one in result.records} == {State.FINISHED}


def test_each_kind_that_is_read_is_one_of_kueues() -> None:
    assert set(ROLES) == {*JOBS, *WITH_QUEUE} <= {kind.kind for kind in KINDS.values()}


def test_submission_modes_of_a_ray_job() -> None:
    (job,) = documents("rayjob")
    roles = {
        mode: ROLES["RayJob"](Fields(changed(job, "spec/submissionMode", mode).data, "", []))
        for mode in ("HTTPMode", "SidecarMode", "InteractiveMode", "K8sJobMode")
    }
    assert [len(entry) for entry in roles.values()] == [2, 2, 2, 3]
    beside = [item["name"] for item in roles["SidecarMode"][0].template.child("spec").data["containers"]]
    assert beside == ["ray-head", "ray-job-submitter"]


ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}


def head_of(job: Document) -> dict[str, int]:
    """What the head of a RayCluster asks for."""
    (result,) = fleet_run(FLEET, WorkloadFile(), Delays(), manifests=[job]).jobs.values()
    return dict(result.workload.pod_sets[0].requests)


@pytest.mark.parametrize(
    ("name", "place"),
    [("raycluster", "spec"), ("rayjob", "spec/rayClusterSpec"), ("rayservice", "spec/rayClusterConfig")],
)
def test_an_elastic_job_of_ray_may_have_its_autoscaler(name: str, place: str) -> None:
    (job,) = documents("raycluster" if name == "rayservice" else name)
    if name == "rayservice":
        job = Document(job.where, {**job.data, "kind": "RayService", "spec": {"rayClusterConfig": job.data["spec"]}})
    scaled = changed(job, f"{place}/enableInTreeAutoscaling", True)
    assert "annotation kueue.x-k8s.io/elastic-job" in str(check_manifests(FLEET, [scaled]).problems[0])
    assert check_manifests(FLEET, [changed(scaled, "metadata/annotations", ELASTIC)]).problems == []


def test_rays_autoscaler_counts_beside_the_head() -> None:
    (job,) = documents("raycluster")
    elastic = changed(changed(job, "metadata/annotations", ELASTIC), "spec/enableInTreeAutoscaling", True)
    own = changed(elastic, "spec/autoscalerOptions", {"resources": {"requests": {"cpu": "2"}}})
    before = head_of(job)["cpu"]
    assert [head_of(item)["cpu"] - before for item in (elastic, own)] == [500, 2000]


@pytest.mark.parametrize(
    ("path", "value"),
    [("spec/gcsFaultToleranceOptions", {"redisAddress": "redis:6379"}), ("metadata/annotations/ray.io~1ft", "True")],
)
def test_the_head_of_a_fault_tolerant_cluster_asks_for_what_cleans_redis_up(path: str, value: object) -> None:
    """kueue@v0.19.2 pkg/controller/jobs/raycluster/common_test.go has the same amounts."""
    (job,) = documents("raycluster")
    bare = changed(job, "spec/headGroupSpec/template/spec/containers/0/resources", {"requests": {"cpu": "1"}})
    if "~1" in path:
        path, value = "metadata/annotations", {"ray.io/ft-enabled": value}
    assert head_of(changed(bare, path, value)) == {"cpu": 1000, "memory": 256 * 2**20}


@pytest.mark.parametrize(
    ("name", "path", "value", "says"),
    [
        ("rayjob", "spec/shutdownAfterJobFinishes", False, "RayJob research/ray-train.spec.shutdownAfterJobFinishes"),
        (
            "rayjob",
            "spec/clusterSelector",
            {"a": "b"},
            "spec.clusterSelector: is set, and Kueue does not manage jobs on existing Ray",
        ),
        ("rayjob", "spec/rayClusterSpec", None, "spec.rayClusterSpec: is missing; add it"),
        ("rayjob", "spec/rayClusterSpec/enableInTreeAutoscaling", True, "which Kueue accepts for elastic jobs only"),
        ("rayjob", "spec/rayClusterSpec/workerGroupSpecs/0/groupName", "head", "groupName: is head, the name of"),
        (
            "rayjob",
            "spec/rayClusterSpec/workerGroupSpecs/0/replicas",
            "2",
            "replicas: is the text '2', not a whole number",
        ),
        ("raycluster", "metadata/labels", {}, "has no kueue.x-k8s.io/queue-name; name a LocalQueue there"),
        ("pytorchjob", "spec/pytorchReplicaSpecs/Workers", {}, "Workers: is not a role of a PyTorchJob; use Master or"),
        ("mpijob", "spec/mpiReplicaSpecs/Worker/replicas", -1, "Worker.replicas: is -1; write 0 or more"),
        ("mpijob", "spec/runPolicy/schedulingPolicy", {"priorityClass": "x"}, "there is no PriorityClass 'x'"),
        ("leaderworkerset", "spec/replicas", 10**9, "replicas: is 1000000000; write at most 10000"),
        ("leaderworkerset", "spec/leaderWorkerTemplate/size", 0, "size: is 0; write 1 or more"),
        ("leaderworkerset", "spec/leaderWorkerTemplate/workerTemplate", None, "workerTemplate: is missing; add it"),
        ("leaderworkerset", "metadata/annotations/kueue-fleet.dev~1run-seconds", "soon", "not a number of seconds"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(name: str, path: str, value: object, says: str) -> None:
    (job,) = documents(name)
    if "~1" in path:
        value, path = {path.rpartition("/")[2].replace("~1", "/"): value}, path.rpartition("/")[0]
    with pytest.raises(SimulationError) as refused:
        prepare_fleet(FLEET, WorkloadFile(), Delays(), manifests=[changed(job, path, value)])
    assert all(str(problem).startswith(f"{name}.yaml:") for problem in refused.value.problems)
    assert says in str(refused.value.problems[0])


def test_a_train_job_needs_its_runtime() -> None:
    runtime, job = documents("trainjob")
    (missing,) = map(str, check_manifests(FLEET, [job]).warnings)
    assert (
        "runtimeRef.name: whether it starts is not known: the TrainingRuntime torch is not there; add it to the file"
        in missing
    )
    several = changed(runtime, "spec/mlPolicy", {"mpi": {}})
    assert "mpi runtimes of TrainJobs" in str(check_manifests(FLEET, [several, job]).problems[0])
    data = deepcopy(dict(runtime.data))
    data["spec"]["mlPolicy"]["numNodes"] = 7
    fewer = deepcopy(dict(job.data))
    del fewer["spec"]["trainer"]
    result = pod_sets(Document("a", data), Document("b", fewer))
    assert result == {"torch-train": [("node", 7, 0)]}


def test_a_group_of_pods_is_whole_or_is_not_submitted() -> None:
    pods = documents("pods")
    (missing,) = map(str, check_manifests(FLEET, pods[:3]).problems)
    assert "the group shards has 2 of its 3 pods, and Kueue waits for all; add the others" in missing
    fast = changed(pods[1], "metadata/name", "fast")
    annotations = fast.data["metadata"]["annotations"]
    annotations["kueue.x-k8s.io/pod-group-fast-admission"] = "true"
    assert pod_sets(fast) == {"shards": [("pods-0", 3, 1)]}
    annotations["kueue.x-k8s.io/pod-group-total-count"] = "many"
    assert "is many; write how many pods the group shards has, in quotes" in str(
        check_manifests(FLEET, [fast]).problems[0]
    )
    other = changed(pods[3], "spec/nodeSelector", {"disk": "fast"})
    assert pod_sets(*pods[1:3], other) == {"shards": [("pods-0", 2, 1), ("pods-1", 1, 1)]}


def test_a_kind_that_kueue_does_not_manage_here_is_refused() -> None:
    first, *_ = map(
        str, check_manifests(FLEET, [Document("a.yaml:1", {"kind": "TFJob", "metadata": {"name": "t"}})]).problems
    )
    assert first == (
        "a.yaml:1: is a TFJob, which the fleet's Kueue does not manage; "
        "add kubeflow.org/tfjob to kueue.configuration.integrations.frameworks"
    )
    (result,) = map(
        str, check_manifests(FLEET, [Document("a.yaml:1", {"kind": "Pod", "metadata": {"name": "p"}})]).problems
    )
    assert "is a Pod; as a job it needs the label kueue.x-k8s.io/queue-name, and no uid" in result


def test_requests_that_kueue_never_admits_are_a_problem() -> None:
    (job,) = documents("pytorchjob")
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    above = changed(job, "spec/pytorchReplicaSpecs/Master/template/spec/containers/0/resources", resources)
    (result,) = map(str, check_manifests(FLEET, [above]).problems)
    assert result.startswith(f"{job.where}: PyTorchJob research/pytorch-train: never starts: Misconfigured: ")
    assert 'containers[0]: Invalid value: ["cpu"]: requests must not exceed its limits' in result


def test_the_first_priority_class_of_the_roles_counts() -> None:
    (job,) = documents("pytorchjob")
    data = deepcopy(dict(job.data))
    data["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["priorityClassName"] = "low"
    classes = [
        {"kind": "PriorityClass", "metadata": {"name": "low"}, "value": 3},
        {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9},
    ]
    queues = list(yaml.safe_load_all(QUEUES))

    def priority() -> int | None:
        given = [Document("x", item) for item in (*queues, *classes, data)]
        return read_raw(given).arrivals[0].workload.priority

    assert priority() == 3
    data["spec"]["runPolicy"]["schedulingPolicy"] = {"priorityClass": "high"}
    assert priority() == 9


def test_a_dump_counts_a_job_once() -> None:
    """The RayCluster of a RayJob, and pods that are there, are no workloads of their own."""
    (job,), (cluster,) = documents("rayjob"), documents("raycluster")
    owned = changed(cluster, "metadata/ownerReferences", [{"kind": "RayJob", "name": "ray-train"}])
    pod = changed(documents("pods")[0], "metadata/uid", "1")
    queues = [Document("x", item) for item in yaml.safe_load_all(QUEUES)]
    arrivals = read_raw([*queues, job, owned, pod, *documents("leaderworkerset")]).arrivals
    assert [(one.name, one.run_seconds) for one in arrivals] == [
        ("ray-train", 1800.0),
        ("serve-0", 7200.0),
        ("serve-1", 7200.0),
    ]


QUEUES = """
{kind: ResourceFlavor, metadata: {name: l4}}
---
kind: ClusterQueue
metadata: {name: training}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: l4
          resources:
            - {name: cpu, nominalQuota: 100}
            - {name: memory, nominalQuota: 900Gi}
            - {name: nvidia.com/gpu, nominalQuota: 8}
---
{kind: LocalQueue, metadata: {name: training, namespace: research}, spec: {clusterQueue: training}}
"""


def job(part: str, name: str, value: Any) -> Document:
    """A Job with something that Kubernetes refuses, in its `spec`, `labels` or `annotations`."""
    containers = [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}]
    spec: dict[str, Any] = {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    metadata = deepcopy(dict(documents("pytorchjob")[0].data["metadata"])) | {"name": "job"}
    (spec if part == "spec" else metadata.setdefault(part, {}))[name] = value
    return Document("j.yaml:1", {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("spec", "podFailurePolicy", {"rules": ["Ignore"]}),
        ("spec", "podFailurePolicy", {"rules": [{"action": "Ignore", "onPodConditions": ["DisruptionTarget"]}]}),
        ("spec", "podFailurePolicy", {"rules": [{"onPodConditions": 5}]}),
        ("labels", "kueue-fleet.dev/step", ["first"]),
        ("annotations", "provreq.kueue.x-k8s.io/maxRunDurationSeconds", "²"),
        ("annotations", "provreq.kueue.x-k8s.io/maxRunDurationSeconds", "9" * 5000),
    ],
)
def test_what_the_core_does_not_read_may_have_any_form(part: str, name: str, value: Any) -> None:
    result = prepare_fleet(FLEET, WorkloadFile(), Delays(), manifests=[job(part, name, value)], until=10).run()
    assert [record.name for record in result.records] == ["job"]


@pytest.mark.parametrize("digits", ["²", "9" * 5000])
@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("labels", "kueue.x-k8s.io/max-exec-time-seconds"),
        ("annotations", "kueue.x-k8s.io/job-min-parallelism"),
        ("annotations", "kueue.x-k8s.io/podset-slice-size"),
    ],
)
def test_digits_that_int_refuses_are_no_number(part: str, name: str, digits: str) -> None:
    given = job(part, name, digits)
    if name.endswith("slice-size"):
        template = given.data["spec"]["template"]
        annotations = {name: digits, "kueue.x-k8s.io/podset-slice-required-topology": "rack"}
        template["metadata"] = {"annotations": annotations}
    (problem,) = map(str, check_manifests(FLEET, [given]).problems)
    assert f"is '{digits}'; write a whole number in quotes" in problem
