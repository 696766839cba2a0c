"""The roles of a job of any kind that Kueue manages: the name, count and pod template of each of its pod sets.

One table for whatever asks what a job consists of: quota, ProvisioningRequests, run times, rehearsals.

Source: kueue@v0.19.2 pkg/controller/jobs, the PodSets of each kind; raycluster/raycluster_webhook.go and
rayjob/rayjob_webhook.go there (validateCreate); kubeflow/trainer@v2.2.1 pkg/runtime/core/trainingruntime.go,
pkg/runtime/framework/plugins/jobset/builder.go. Not modelled: MPI and Flux runtimes of TrainJobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from kueue_admission.decide.errors import NotModelledError
from kueue_admission.kernel.form_rules import JOB_UNKNOWN
from kueue_admission.kernel.job_rules import NO_WORKLOAD
from kueue_admission.kernel.names import ELASTIC_ANNOTATION, LEAST_PODS_ANNOTATION
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.kernel.syntax import whole_number
from kueue_admission.read.fields import Fields

RUNTIME_FIELD: Final = "runtime"
"""In a TrainJob as it is read: its TrainingRuntime or ClusterTrainingRuntime, which is beside it in a file."""
PODS_FIELD: Final = "pods"
"""In a Pod as it is read: all pods of its group."""
MOST_GROUPS: Final = 10_000
"""The most groups of a LeaderWorkerSet, or pods of a Deployment; each is a Workload."""
SEVERAL: Final = ("LeaderWorkerSet", "Deployment")
"""Kinds of which each of `replicas` is a Workload of its own."""
_MOST_ROLES: Final = 18
_ANCESTOR: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
_SUBMITTER: Final = {
    "name": "ray-job-submitter",
    "resources": {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
}
"""What KubeRay gives the container that submits a RayJob."""
_AUTOSCALER: Final = {
    "requests": {"cpu": "500m", "memory": "512Mi"},
    "limits": {"cpu": "500m", "memory": "512Mi"},
}
"""What KubeRay gives the autoscaler, a container beside Ray's head, where `autoscalerOptions` says nothing else."""
_REDIS_CLEANUP: Final = {"cpu": "200m", "memory": "256Mi"}
"""What the Job asks for that cleans Redis up after a Ray cluster; Kueue counts it in the head's pod."""
_FAULT_TOLERANT: Final = "ray.io/ft-enabled"
_KUBEFLOW_ROLES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker")),
    "TFJob": ("tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator")),
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker")),
    "PaddleJob": ("paddleReplicaSpecs", ("Master", "Worker")),
    "JAXJob": ("jaxReplicaSpecs", ("Worker",)),
    "MPIJob": ("mpiReplicaSpecs", ("Launcher", "Worker")),
}
"""Field and roles of each kind of the training and MPI operators, in Kueue's order."""


@dataclass(frozen=True, slots=True)
class Role:
    """Pods of a job that are alike: one pod set of its Workload."""

    name: str
    count: int
    template: Fields
    """The pod template: `metadata` and `spec`."""
    least: int | None = None
    """Pods with which the job starts too; None: all."""


def roles_of(job: Fields) -> list[Role]:
    """The pod sets of a job, in Kueue's order; of a LeaderWorkerSet those of one group.

    Raises NotModelledError; KeyError for a kind that is not in `ROLES`.
    """
    return ROLES[str(job.data.get("kind"))](job)


def workload_count(job: Mapping[str, Any]) -> int:
    """Workloads that Kueue makes of a job that was read without problems: one, or one for each group of pods."""
    if job.get("kind") not in SEVERAL:
        return 1
    replicas = job["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def own_priority_class(job: Fields) -> str:
    """The PriorityClass that the job itself names for its pods; empty: that of the first pod template with one."""
    if str(job.data.get("kind")) not in _KUBEFLOW_ROLES:
        return ""
    return job.child("spec").child("runPolicy").child("schedulingPolicy").text("priorityClass")


def _job(job: Fields) -> list[Role]:
    annotations = job.child("metadata").child("annotations")
    least = annotations.text(LEAST_PODS_ANNOTATION)
    if least and whole_number(least) is None:
        annotations.wrong(LEAST_PODS_ANNOTATION, f"is {least!r}", "write a whole number in quotes")
    spec = job.child("spec")
    return [Role("main", _parallel(spec), spec.child("template"), whole_number(least))]


def _job_set(job: Fields) -> list[Role]:
    roles = []
    for replicated_job in job.child("spec").children("replicatedJobs"):
        spec = replicated_job.child("template").child("spec")
        count = _parallel(spec) * _replicas(replicated_job)
        roles.append(Role(replicated_job.required_text("name"), count, spec.child("template")))
    return roles


def _replicas(of: Fields) -> int:
    replica_count = of.integer("replicas", 1)
    if replica_count < 0:
        of.wrong("replicas", f"is {replica_count}", "write 0 or more", NO_WORKLOAD)
    return max(replica_count, 0)


def _parallel(spec: Fields) -> int:
    count = spec.integer("parallelism", 1, least=0)
    return min(count, spec.integer("completions", 1, least=0)) if "completions" in spec else count


def _ray_cluster(job: Fields) -> list[Role]:
    return _ray(job, job.child("spec"))


def _ray_service(job: Fields) -> list[Role]:
    return _ray(job, _required(job.child("spec"), "rayClusterConfig"))


def _ray_job(job: Fields) -> list[Role]:
    spec = job.child("spec")
    if spec.data.get("clusterSelector"):
        wrong, fix = "is set, and Kueue does not manage jobs on existing Ray clusters", "write rayClusterSpec instead"
        spec.wrong("clusterSelector", wrong, fix, NO_WORKLOAD)
        return []
    if not spec.flag("shutdownAfterJobFinishes"):
        spec.wrong("shutdownAfterJobFinishes", "is not true, and Kueue refuses the job", "set it to true")
    cluster = _required(spec, "rayClusterSpec")
    roles = _ray(job, cluster)
    mode = spec.text("submissionMode", "K8sJobMode")
    if mode == "SidecarMode":
        roles[0] = Role("head", 1, _with_container(roles[0].template, _SUBMITTER))
    elif mode == "K8sJobMode":
        template = spec.child("submitterPodTemplate")
        if "submitterPodTemplate" not in spec:
            template = Fields({"spec": {"containers": [_SUBMITTER]}}, template.path, template.problems)
        roles.append(Role("submitter", 1, template))
    return roles


def _ray(job: Fields, cluster: Fields) -> list[Role]:
    """Head and worker groups of a Ray cluster; `cluster` is its spec, inside `job`."""
    annotations = job.child("metadata").child("annotations")
    head = _required(_required(cluster, "headGroupSpec"), "template")
    if "gcsFaultToleranceOptions" in cluster or annotations.text(_FAULT_TOLERANT).lower() == "true":
        head = _with_redis_cleanup(head)
    if cluster.flag("enableInTreeAutoscaling"):
        if annotations.text(ELASTIC_ANNOTATION) != "true":
            wrong = "is true, which Kueue accepts for elastic jobs only"
            fix = f'remove it, or write the annotation {ELASTIC_ANNOTATION}: "true"'
            cluster.wrong("enableInTreeAutoscaling", wrong, fix)
        options = cluster.child("autoscalerOptions")
        resources = options.child("resources").data if "resources" in options else _AUTOSCALER
        head = _with_container(head, {"name": "autoscaler", "resources": resources})
    roles = [Role("head", 1, head)]
    for group in cluster.children("workerGroupSpecs"):
        name = group.text("groupName").lower() or "main"  # as a Workload calls a pod set without a name
        if name == "head":
            group.wrong("groupName", "is head, the name of the head's pod set", "name the group differently")
        count = _replicas(group) * max(1, group.integer("numOfHosts", 1))
        roles.append(Role(name, count, _required(group, "template")))
    if len(roles) > _MOST_ROLES:
        cluster.wrong("workerGroupSpecs", f"has {len(roles) - 1} groups", f"write at most {_MOST_ROLES - 1}")
    return roles


def _kubeflow(job: Fields) -> list[Role]:
    field, names = _KUBEFLOW_ROLES[str(job.data["kind"])]
    replicas = _required(job.child("spec"), field)
    for name in replicas.data:
        if name not in names:
            replicas.wrong(str(name), f"is not a role of a {job.data['kind']}", f"use {' or '.join(names)}")
    roles = [(name, replicas.child(name)) for name in names if name in replicas]
    return [Role(name.lower(), _replicas(role_fields), _required(role_fields, "template"))
            for name, role_fields in roles]  # fmt: skip


def _leader_worker_set(job: Fields) -> list[Role]:
    group = _required(_with_few_replicas(job.child("spec")), "leaderWorkerTemplate")
    size = group.integer("size", 1, least=1)
    workers = _required(group, "workerTemplate")
    if "leaderTemplate" not in group:
        return [Role("main", size, workers)]
    return [Role("leader", 1, group.child("leaderTemplate")), Role("worker", size - 1, workers)]


def _deployment(job: Fields) -> list[Role]:
    """Each pod is a Workload of its own."""
    return [Role("main", 1, _required(_with_few_replicas(job.child("spec")), "template"))]


def _stateful_set(job: Fields) -> list[Role]:
    """All pods are one group."""
    spec = job.child("spec")
    return [Role("main", spec.integer("replicas", 1, least=0), _required(spec, "template"))]


def _with_few_replicas(spec: Fields) -> Fields:
    """The spec, of which not more than `MOST_GROUPS` Workloads are made."""
    if spec.integer("replicas", 1, least=0) > MOST_GROUPS:
        spec.wrong("replicas", f"is {spec.data['replicas']}", f"write at most {MOST_GROUPS}")
    return spec


def _pod(job: Fields) -> list[Role]:
    """A pod, or the pods of a group, of which those with equal specs are one pod set."""
    if PODS_FIELD not in job:
        return [Role("main", 1, job)]
    alike: dict[str, list[Fields]] = {}
    for pod in job.children(PODS_FIELD):
        alike.setdefault(repr(pod.data.get("spec")), []).append(pod)
    return [Role(f"pods-{number}", len(pods), pods[0]) for number, pods in enumerate(alike.values())]


def _train_job(job: Fields) -> list[Role]:
    """The jobs of the runtime's template, with what the TrainJob says of its trainer."""
    spec, runtime = job.child("spec"), job.child(RUNTIME_FIELD)
    reference = spec.child("runtimeRef")
    if RUNTIME_FIELD not in job:
        name = reference.required_text("name")
        kind = reference.text("kind", "ClusterTrainingRuntime")
        fix = f"add it to the file (kubectl get {kind.lower()} {name} -o yaml)"
        reference.wrong("name", f"the {kind} {name} is not there", fix, JOB_UNKNOWN)
        return []
    policy = runtime.child("spec").child("mlPolicy")
    for name in ("mpi", "flux"):
        if name in policy:
            raise NotModelledError(f"{name} runtimes of TrainJobs", job.path)
    if any("template" in patch.child("trainingRuntimeSpec") for patch in spec.children("runtimePatches")):
        raise NotModelledError("runtimePatches of TrainJobs", job.path)
    trainer = spec.child("trainer")
    nodes = trainer.integer("numNodes", policy.integer("numNodes", 1, least=1), least=1)
    roles = []
    for replicated_job in runtime.child("spec").child("template").child("spec").children("replicatedJobs"):
        template = replicated_job.child("template")
        pods = template.child("spec").child("template")
        count = template.child("spec").integer("parallelism", 1, least=0) * _replicas(replicated_job)
        if template.child("metadata").child("labels").text(_ANCESTOR) == "trainer":
            count = nodes
            pods = _with_resources(pods, trainer.child("resourcesPerNode"))
        roles.append(Role(replicated_job.required_text("name"), count, pods))
    return roles


def _required(fields: Fields, name: str) -> Fields:
    if name not in fields:
        fields.wrong(name, "is missing", "add it")
    return fields.child(name)


def _with_containers(template: Fields, containers: list[Any]) -> Fields:
    spec = {**template.child("spec").data, "containers": containers}
    return Fields({**template.data, "spec": spec}, template.path, template.problems)


def _with_container(template: Fields, container: Mapping[str, Any]) -> Fields:
    known_containers = template.child("spec").children("containers")
    return _with_containers(template, [*(container.data for container in known_containers), container])


def _with_redis_cleanup(template: Fields) -> Fields:
    """The template whose first container, Ray's, asks for at least what the clean-up does.

    Source: kueue@v0.19.2 pkg/controller/jobs/raycluster/common.go (accountForRedisCleanupInHeadPodSet).
    """
    containers = list(template.child("spec").children("containers"))
    if not containers:
        return template
    first, *others = containers
    resources = first.child("resources")
    known_requests = resources.quantities("requests")
    least = {
        name: text for name, text in _REDIS_CLEANUP.items() if known_requests.get(name, Quantity(0)) < Quantity(text)
    }
    requests = {**resources.child("requests").data, **least}
    ray = {**first.data, "resources": {**resources.data, "requests": requests}}
    return _with_containers(template, [ray, *(other.data for other in others)])


def _with_resources(template: Fields, resources: Fields) -> Fields:
    """The template with these resources in its container `node`, where there are any."""
    if not resources.data:
        return template
    known_containers = [container.data for container in template.child("spec").children("containers")]
    changed_containers = [
        {**container, "resources": resources.data} if container.get("name") == "node" else container
        for container in known_containers
    ]
    return _with_containers(template, changed_containers)


ROLES: Final[Mapping[str, Callable[[Fields], list[Role]]]] = MappingProxyType(
    {
        "Job": _job,
        "JobSet": _job_set,
        "RayJob": _ray_job,
        "RayCluster": _ray_cluster,
        "RayService": _ray_service,
        **dict.fromkeys(_KUBEFLOW_ROLES, _kubeflow),
        "TrainJob": _train_job,
        "LeaderWorkerSet": _leader_worker_set,
        "Deployment": _deployment,
        "StatefulSet": _stateful_set,
        "Pod": _pod,
    }
)
"""The reader of each kind. The core gives workloads in the order of the kinds."""
