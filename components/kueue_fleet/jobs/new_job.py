"""A Job or JobSet as a LocalQueue of the fleet needs it, from the few things that people say of what they run.

What a flavor adds, labels and tolerations, Kueue adds when it admits the job; it is not written here. What has to be in
the manifest before that is: the queue, requests of every resource that the queue counts, the team's service account,
how long DWS has to keep the machines, and, where Autopilot makes the pods, the kind of GPU.

Sources: https://kubernetes.io/docs/concepts/workloads/controllers/job; https://jobset.sigs.k8s.io (names of pods);
kueue@v0.19.2 pkg/controller/jobs/job (job-min-parallelism), pkg/controller/admissionchecks/provisioning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kueue_admission.api.job_kinds import KINDS
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.names import (
    LEAST_PODS_ANNOTATION,
    POD_SET_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    RUN_DURATION_ANNOTATION,
)
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.suggest import instead
from kueue_admission.simulate.errors import SimulationError
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, FlavorEntry
from kueue_fleet.fleet_file.model.job_forms import BUCKET, form_problems
from kueue_fleet.fleet_file.model.kueue_installation import JOBSET_FRAMEWORK
from kueue_fleet.fleet_file.model.per_cluster import local_queues
from kueue_fleet.fleet_file.model.storage import GcsFuse
from kueue_fleet.fleet_file.model.teams import JobTemplate
from kueue_fleet.gke.labels import ACCELERATOR, GCS_FUSE_VOLUMES, GPU_RESOURCE, TPU_RESOURCE
from kueue_fleet.jobs.check.gpu_networks import add_networks
from kueue_fleet.jobs.check.provisioning_request import requests_of
from kueue_fleet.jobs.check.storage import claims_in

_JOB: Final = "batch/job"
_CONTAINER: Final = "main"
_SHARED_MEMORY: Final = "shared-memory"
_SHARE: Final = (9, 10)
"""The part of a machine that pods get of CPUs and memory; the rest is for the pods of DaemonSets."""
_GIB: Final = 1024**3
_MIB: Final = 1024**2
_TOPOLOGY: Final = f"{POD_SET_ANNOTATION}preferred-topology"
_PORT: Final = "29500"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What somebody wants to run."""

    name: str
    """Of the job; also what its pods' names begin with."""
    queue: str
    """LocalQueue: `NAME`, or `NAMESPACE/NAME` where several namespaces have one of this name."""
    image: str
    """Container image."""
    command: Sequence[str] = ()
    """Program and arguments; default: those of the image."""
    nodes: int = 1
    """Pods that run at the same time and find each other, each on a node of its own where it takes a whole one."""
    gpus: int = 0
    """GPUs of each pod."""
    cpu: str = ""
    """CPUs of each pod, as a quantity; default: what goes with its GPUs in the queue's quotas, and at most 90 % of that
    on its machines; 1 without GPUs."""
    memory: str = ""
    """Memory of each pod, as a quantity; default: as for `cpu`, and 4Gi without GPUs."""
    priority: str = ""
    """WorkloadPriorityClass; default: none."""
    seconds: int | None = None
    """Longest run time, after which the job ends, and for which DWS keeps machines; default: no limit, of DWS seven
    days."""
    tasks: int | None = None
    """An array job: the same program this often, told apart by JOB_COMPLETION_INDEX from 0; as many at once as get
    quota. Default: not an array."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """By absolute path: the name of a PersistentVolumeClaim of the namespace, or `gs://BUCKET`."""


_OF_TEMPLATES: Final = JobTemplate.model_fields.keys() - {"name", "time"}
"""The fields that are those of a template; `seconds` is its `time`."""


def from_template(fleet: FleetSpec, template: str, **given: Any) -> JobRequest:
    """A job as a team's template has it; `given` are fields of `JobRequest` that take precedence, unless None.

    Args:
        fleet: that the template is in.
        template: NAME, or TEAM/NAME where several teams have one of that name.
        given: `name` at least; `command`, `env` and `mounts` are added to those of the template.

    Raises:
        SimulationError: there is no such template, or several.
    """
    team, _, name = template.rpartition("/")
    team_templates = [(team, one) for team in fleet.teams for one in team.job_templates]
    templates = [
        (team_entry, one) for team_entry, one in team_templates if one.name == name and team in ("", team_entry.name)
    ]
    if len(templates) != 1:
        names = [f"{team_entry.name}/{one.name}" for team_entry, one in team_templates]
        fix = instead(template, names, "templates") if names else "add it to jobTemplates of the team"
        several = f"may be {', '.join(f'{team_entry.name}/{name}' for team_entry, _ in templates)}"
        raise SimulationError([JOB.at("template", f"{template} {several if templates else 'is not in the file'}", fix)])
    [(owner, new_job)] = templates
    says = {
        **{field_name: getattr(new_job, field_name) for field_name in _OF_TEMPLATES},
        "queue": f"{owner.namespace_names[0]}/{new_job.queue}" if new_job.queue else None,
        "seconds": None if new_job.time is None else int(new_job.time.seconds),
    }
    both = {
        "command": (*new_job.command, *(given.get("command") or ())),
        "env": {**new_job.env, **(given.get("env") or {})},
        "mounts": {**new_job.mounts, **(given.get("mounts") or {})},
    }
    return JobRequest(**_without_none(says) | _without_none(given) | both)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def job_for(fleet: FleetSpec, job_request: JobRequest, namespace: str = "") -> dict[str, Any]:
    """The manifest of a Job, or of a JobSet where several pods have to find each other.

    Of LocalQueues of one name that is meant which is in `namespace`.

    Raises:
        SimulationError: with every field that is wrong; what `check_manifests` finds in the manifest is not among them.
    """
    problems: list[Problem] = list(_wrong(job_request))
    queue_there = _queue(fleet, job_request.queue, namespace, problems)
    if queue_there is None:
        raise SimulationError(problems)
    namespace, name, queue = queue_there
    places = _Places(fleet, queue)
    requests = dict(_requests(places, job_request, problems))
    kind = KINDS[JOBSET_FRAMEWORK if job_request.nodes > 1 else _JOB]
    if job_request.nodes > 1 and JOBSET_FRAMEWORK not in (
        kueue_configuration(fleet, fleet.home)["integrations"].get("frameworks") or ()
    ):
        wrong = f"is {job_request.nodes}, and the fleet's Kueue does not manage JobSets, by which pods find each other"
        problems.append(
            JOB.at("nodes", wrong, f"add {JOBSET_FRAMEWORK} to kueue.configuration.integrations.frameworks")
        )
    if problems:
        raise SimulationError(problems)
    labels = {QUEUE_LABEL: name} | ({PRIORITY_LABEL: job_request.priority} if job_request.priority else {})
    annotations = {}
    if job_request.seconds is not None and places.asks_dws:
        annotations[RUN_DURATION_ANNOTATION] = str(job_request.seconds)
    job = _job_spec(job_request, _template(fleet, places, job_request, requests, namespace))
    if (job_request.tasks or 1) > 1 and not fleet.is_dispatched(queue.name):
        annotations[LEAST_PODS_ANNOTATION] = "1"
    metadata = {"name": job_request.name, "namespace": namespace, "labels": labels}
    return {
        "apiVersion": f"{kind.group}/{kind.version}",
        "kind": kind.kind,
        "metadata": metadata | ({"annotations": annotations} if annotations else {}),
        "spec": {"suspend": True, **(_together(job) if job_request.nodes > 1 else job)},
    }


class _Places:
    """The nodes that jobs of a queue get."""

    def __init__(self, fleet: FleetSpec, queue: ClusterQueueEntry) -> None:
        self._fleet, self._queue = fleet, queue
        names = [quotas.name for group in queue.resource_groups for quotas in group.flavors]
        self.flavors: list[FlavorEntry] = [
            flavor_there for name in names if (flavor_there := fleet.flavor(name)) is not None
        ]
        self.resources = {name for group in queue.resource_groups for name in group.covered_resources}
        clusters = fleet.clusters_of(queue)
        self.of_flavors = [
            (flavor, cluster) for flavor in self.flavors for cluster in clusters if cluster in fleet.clusters_of(flavor)
        ]
        self.pools = [pool for flavor, cluster in self.of_flavors for pool in fleet.flavor_nodes(flavor, cluster)]
        self.asks_dws = any(requests_of(fleet, queue.name))
        made_on = {*clusters, *([fleet.home] if fleet.is_dispatched(queue.name) else [])}
        self.on_autopilot = any(fleet.cluster(name).platform == "Autopilot" for name in made_on)

    @property
    def topology_level(self) -> str:
        """The widest level of the topology that all flavors have; empty: they have none, or different ones."""
        topology_names = {flavor.topology_name for flavor in self.flavors}
        levels = [topology.levels for topology in self._fleet.topologies if topology_names == {topology.name}]
        return levels[0][0].node_label if levels else ""

    def accelerator(self) -> str:
        """The kind of GPU that all flavors have; empty: several, or none."""
        kinds = {self._fleet.flavor_on(*flavor).node_labels.get(ACCELERATOR, "") for flavor in self.of_flavors}
        return kinds.pop() if len(kinds) == 1 else ""

    def share(self, gpus: int) -> Mapping[str, int]:
        """Milli-CPUs and bytes that go with so many GPUs, by the machines and by the quotas, whichever is less; without
        those of which nothing is known."""
        part, whole = _SHARE
        amounts: dict[str, int] = {}
        for pool in self.pools:
            if pool.machine is not None and pool.gpus_per_node >= gpus:
                for name in ("cpu", "memory"):
                    _lower(amounts, name, pool.allocatable[name] * gpus * part // (pool.gpus_per_node * whole))
        for quotas in self._quotas:
            if devices := quotas.pop(GPU_RESOURCE, 0):
                for name, amount in quotas.items():
                    _lower(amounts, name, amount * gpus // devices)
        return {name: amount for name, amount in amounts.items() if amount}

    @property
    def _quotas(self) -> Iterator[dict[str, int]]:
        """What the queue has itself, by resource: of each flavor on each cluster."""
        resource_names = ("cpu", "memory", GPU_RESOURCE)
        for group in self._queue.resource_groups:
            for flavor in group.flavors:
                for cluster in self._fleet.clusters_of(self._queue):
                    quotas = [resource.on(cluster) for resource in flavor.resources if resource.name in resource_names]
                    yield {quota.name: quota.nominal_quota.counted(quota.name) for quota in quotas}


def _lower(amounts: dict[str, int], name: str, amount: int) -> None:
    amounts[name] = min(amount, amounts.get(name, amount))


def _wrong(job_request: JobRequest) -> Iterator[Problem]:
    """What no fleet can run."""
    counts = {
        "nodes": (job_request.nodes, 1),
        "gpus": (job_request.gpus, 0),
        "seconds": (job_request.seconds, 1),
        "tasks": (job_request.tasks, 1),
    }
    for name, (number, least) in counts.items():
        if number is not None and number < least:
            yield JOB.at(name, f"is {number}", f"write at least {least}")
    if job_request.tasks is not None and job_request.nodes > 1:
        yield JOB.at("tasks", "is set, with several nodes", "use one node for each task, or submit several jobs")
    yield from form_problems(None, {}, job_request.env, job_request.mounts)


def _queue(
    fleet: FleetSpec, text: str, usual: str, problems: list[Problem]
) -> tuple[str, str, ClusterQueueEntry] | None:
    """Namespace and name of the LocalQueue, with its ClusterQueue; of several that which is in the usual namespace."""
    space, _, name = text.rpartition("/")
    known_queues = local_queues(fleet)
    queues = [queue_key for queue_key in known_queues if queue_key[1] == name and space in ("", queue_key[0])]
    queues = [queue_key for queue_key in queues if queue_key[0] == usual] or queues
    if len(queues) > 1:
        queue_names = ", ".join(f"{namespace}/{name}" for namespace, name, _ in queues)
        problems.append(JOB.at("queue", f"{text} may be {queue_names}", "name one with its namespace"))
    elif not queues:
        names = [f"{namespace}/{name}" if space else name for namespace, name, _ in known_queues]
        problems.append(JOB.at("queue", f"there is no LocalQueue {text}", instead(text, names, "LocalQueues")))
    elif queue := fleet.queue(queues[0][2].cluster_queue):
        return queues[0][0], name, queue
    return None


def _requests(places: _Places, job_request: JobRequest, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    """What each pod asks for: quantities by resource, CPUs first."""
    usual: Mapping[str, int] = {"cpu": 1000, "memory": 4 * _GIB}
    if job_request.gpus > 0:
        if GPU_RESOURCE not in places.resources:
            has = "TPUs" if TPU_RESOURCE in places.resources else "no GPUs"
            fix = "write the job yourself" if has == "TPUs" else "name another queue"
            problems.append(JOB.at("gpus", f"is {job_request.gpus}, and queue {job_request.queue} has {has}", fix))
            return
        usual = places.share(job_request.gpus)
    amounts = {
        "cpu": job_request.cpu or _cpus(usual.get("cpu", 0)),
        "memory": job_request.memory or _bytes(usual.get("memory", 0)),
    }
    for name, amount in amounts.items():
        if amount:
            yield name, amount
        else:
            wrong = (
                f"is not given, and what goes with {job_request.gpus} GPUs in queue {job_request.queue} is not known"
            )
            problems.append(JOB.at(name, wrong, "give that of each pod"))
    if job_request.gpus > 0:
        yield GPU_RESOURCE, str(job_request.gpus)


def _cpus(milli: int) -> str:
    """As a quantity, rounded down; empty for 0."""
    if milli >= 1000:
        return str(milli // 1000)
    return f"{milli}m" if milli else ""


def _bytes(amount: int) -> str:
    """As a quantity, rounded down; empty for less than 1Mi."""
    if amount >= _GIB:
        return f"{amount // _GIB}Gi"
    return f"{amount // _MIB}Mi" if amount >= _MIB else ""


def _template(
    fleet: FleetSpec, places: _Places, job_request: JobRequest, requests: Mapping[str, str], namespace: str
) -> dict[str, Any]:
    """The pods."""
    sources = {path: f"mount-{number}" for number, path in enumerate(job_request.mounts)}
    mounts = [{"name": name, "mountPath": path} for path, name in sources.items()]
    volumes = [{"name": name, **_volume(job_request.mounts[path])} for path, name in sources.items()]
    if job_request.gpus > 0:
        # NCCL and PyTorch's loaders need more than the 64 MiB that a container has.
        mounts.append({"name": _SHARED_MEMORY, "mountPath": "/dev/shm"})  # noqa: S108
        volumes.append({"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory"}})
    variables = {**_own_variables(job_request), **job_request.env}
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    container: dict[str, Any] = {
        "name": _CONTAINER,
        "image": job_request.image,
        **({"command": list(job_request.command)} if job_request.command else {}),
        **({"env": [{"name": name, "value": value} for name, value in variables.items()]} if variables else {}),
        "resources": {"requests": dict(requests), **({"limits": limits} if limits else {})},
        **({"volumeMounts": mounts} if mounts else {}),
    }
    kind = places.accelerator() if job_request.gpus and places.on_autopilot else ""
    team = fleet.team_in(namespace)
    spec = {
        "restartPolicy": "Never",
        **({"serviceAccountName": team.service_account_name} if team and team.service_account_name else {}),
        **({"nodeSelector": {ACCELERATOR: kind}} if kind else {}),
        "containers": [container],
        **({"volumes": volumes} if volumes else {}),
    }
    claims = claims_in(fleet, namespace)
    buckets = {name for name, entry in claims.items() if isinstance(entry.volume, GcsFuse)}
    has_mount = any(_is_bucket(mount) or mount in buckets for mount in job_request.mounts.values())
    annotations = {GCS_FUSE_VOLUMES: "true"} if has_mount else {}
    if job_request.nodes > 1 and places.topology_level:
        annotations[_TOPOLOGY] = places.topology_level
    pods = ({"metadata": {"annotations": annotations}} if annotations else {}) | {"spec": spec}
    if job_request.nodes > 1 and job_request.gpus > 0:
        add_networks(places.pools, pods)
    return pods


def _own_variables(job_request: JobRequest) -> dict[str, str]:
    """What a program needs to find the others, in the names that torchrun's own options have."""
    if job_request.nodes == 1:
        return {}
    return {
        "NNODES": str(job_request.nodes),
        "MASTER_ADDR": f"{job_request.name}-{_CONTAINER}-0-0.{job_request.name}",
        "MASTER_PORT": _PORT,
    }


def _is_bucket(source: str) -> bool:
    return source.startswith(BUCKET)


def _volume(source: str) -> dict[str, Any]:
    """Source of the bucket's form:
    https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral."""
    if _is_bucket(source):
        attributes = {"bucketName": source.removeprefix(BUCKET)}
        return {"csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": attributes}}
    return {"persistentVolumeClaim": {"claimName": source}}


def _job_spec(job_request: JobRequest, template: Mapping[str, Any]) -> dict[str, Any]:
    """Without `suspend`, which is on the outermost object."""
    pods = job_request.tasks or job_request.nodes
    retries = {"backoffLimitPerIndex": 3} if job_request.tasks else {"backoffLimit": 3 if job_request.nodes == 1 else 0}
    return {
        "completionMode": "Indexed",
        "parallelism": pods,
        "completions": pods,
        **retries,
        # A pod that a node or a more urgent job ended is not a failure of the job.
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        **({"activeDeadlineSeconds": job_request.seconds} if job_request.seconds is not None else {}),
        "template": dict(template),
    }


def _together(job: Mapping[str, Any]) -> dict[str, Any]:
    """One replicated job, whose pods have DNS names; all start again when one fails."""
    return {
        "network": {"enableDNSHostnames": True},
        "failurePolicy": {"maxRestarts": 3},
        "replicatedJobs": [{"name": _CONTAINER, "replicas": 1, "template": {"spec": dict(job)}}],
    }
