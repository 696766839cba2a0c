"""The page on capacity: each cell is a fleet that is checked here, with jobs that run in it to their end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import yaml

from job_files import jobs_in
from kueue_admission.api.job_kinds import KINDS
from kueue_admission.kernel import SpecError
from kueue_admission.kernel.names import QUEUE_LABEL, SINGLE_POD_SET_REFUSAL
from kueue_admission.kernel.problem import errors_of
from kueue_admission.read.job_pod_sets import ROLES
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.records import State
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.gke.consumption import options_of, zones_with
from kueue_fleet.gke.csv_tables import read_table
from kueue_fleet.gke.machines import MachineType, machine_names, machine_type
from kueue_fleet.jobs.problems import managed_version
from kueue_fleet.jobs.workload_file import WorkloadFile

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "capacity.md"
EXAMPLES = ROOT / "examples" / "kinds-of-jobs"
NODES = 4
FIXED, SCALED = {"nodeCount": NODES}, {"autoscaling": {"totalMaxNodeCount": NODES}}
CALENDAR = {
    "type": "calendar",
    "reservation": "r",
    "start": "2026-11-01T00:00:00Z",
    "duration": "2000h",
    "active": True,
}
QUEUED = "flexStart queued"
CLASSES: dict[str, dict[str, Any]] = {
    "onDemand": {**SCALED},
    "spot": {**SCALED, "capacity": {"type": "spot"}},
    "reserved": {**FIXED, "capacity": {"type": "reserved", "reservation": "r"}},
    "flexStart": {**SCALED, "capacity": {"type": "flexStart", "queuedProvisioning": False}},
    QUEUED: {**SCALED, "capacity": {"type": "flexStart"}},
    "calendar": {**FIXED, "capacity": CALENDAR},
}
NOT_MODELLED = "not modelled"
GPU = "nvidia.com/gpu"
MODELLED = {name: kind for name, kind in KINDS.items() if kind.kind in ROLES}

Key = TypeVar("Key")
Value = TypeVar("Value")


def families() -> dict[str, MachineType]:
    """Each row of the table of what Google offers, with the first machine type that it is about."""
    begins = [row["machineTypes"] for row in read_table("consumption")]
    result: dict[str, MachineType] = {}
    for name in machine_names():
        # The T4 of the first one is attached to it.
        machine = machine_type("n1-standard-8" if name.startswith("n1-") else name)
        begin = max((item for item in begins if name.startswith(item)), key=len, default=None)
        assert machine is not None
        assert begin or not machine.accelerators, f"{name} is not in the table"
        if begin:
            result.setdefault(begin, machine)
    return {begin: result[begin] for begin in begins}


def jobs() -> list[Document]:
    """Jobs of each kind, with the page's name for them in the place of their file."""
    asks = {"name": "c", "image": "i", "resources": {"limits": {GPU: "1"}}}
    none = {**asks, "resources": {"limits": {}}}
    [cluster], [mpi], [torch] = (example(name) for name in ("raycluster", "mpijob", "pytorchjob"))
    mpi["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = [asks]
    head = {"rayStartParams": {}, "template": {"spec": {"containers": [asks]}}}
    replicas = torch["spec"]["pytorchReplicaSpecs"]
    kubeflow = {"TFJob": "tf", "XGBoostJob": "xgb", "PaddleJob": "paddle"}
    result: dict[str, Iterable[Mapping[str, Any]]] = {
        "Job": [named("single", "Job", template=template(asks, restartPolicy="Never"))],
        "JobSet of one role, or of workers and a driver without accelerators": [
            named("one-role", "JobSet", replicatedJobs=[role("a", asks)]),
            named("driver", "JobSet", replicatedJobs=[role("a", none), role("b", asks)]),
        ],
        "RayJob, RayCluster, RayService, with a head without accelerators": [
            *example("rayjob"),
            cluster,
            named("service", "RayService", rayClusterConfig=cluster["spec"]),
        ],
        "TrainJob of one role": example("trainjob"),
        "JAXJob": [named("jax", "JAXJob", jaxReplicaSpecs={"Worker": replicas["Worker"]})],
        "MPIJob, with a launcher without accelerators": [mpi],
        "Pod, group of Pods": example("pods"),
        "Deployment, StatefulSet": [
            named("serve", "Deployment", **labelled(asks)),
            named("store", "StatefulSet", **labelled(asks)),
        ],
        "JobSet of two roles with accelerators": [
            named("two-roles", "JobSet", replicatedJobs=[role("a", asks), role("b", asks)])
        ],
        "RayJob, RayCluster, RayService, with accelerators in the head": [
            named("large-head", "RayCluster", **{**cluster["spec"], "headGroupSpec": head})
        ],
        "PyTorchJob, TFJob, XGBoostJob, PaddleJob, of a master and workers": [
            torch,
            *(named(name, kind, **{f"{name}ReplicaSpecs": replicas}) for kind, name in kubeflow.items()),
        ],
        "LeaderWorkerSet of leaders and workers": example("leaderworkerset"),
    }
    results = [Document(called, job) for called, item in result.items() for job in item]
    assert {kind.kind for kind in MODELLED.values()} <= {job.data["kind"] for job in results}
    return results


def example(name: str) -> list[dict[str, Any]]:
    return jobs_in(EXAMPLES / f"{name}.yaml")


def named(name: str, kind: str, **spec: Any) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "research",
        "labels": {QUEUE_LABEL: "training"},
        "annotations": {"kueue-fleet.dev/run-seconds": "60"},
    }
    framework = next(framework for framework, of in MODELLED.items() if of.kind == kind)
    return {"apiVersion": managed_version(framework), "kind": kind, "metadata": metadata, "spec": spec}


def labelled(container: Mapping[str, Any]) -> dict[str, Any]:
    """A template whose labels the selector beside it matches."""
    labels = {"app": "a"}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, **template(container)}}


def template(container: Mapping[str, Any], **spec: str) -> dict[str, Any]:
    return {"spec": {"containers": [container], **spec}}


def role(name: str, container: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "template": {"spec": {"template": template(container)}}}


JOBS = jobs()


def on(machine: MachineType, part: Any, key: str = "") -> Any:
    """The job, with all accelerators of a node for each pod that asks for GPUs."""
    if isinstance(part, list):
        return [on(machine, entry) for entry in part]
    if not isinstance(part, Mapping):
        return part
    if key not in ("resources", "resourcesPerNode"):
        return {name: on(machine, item, name) for name, item in part.items()}
    asked = {"cpu": "1", "memory": "1Gi"}
    if GPU in (part.get("limits") or ()):
        asked[machine.accelerator_resource] = str(machine.accelerators or 1)
    return {"requests": asked, "limits": asked}


ONE_ONLY = f"refused: {SINGLE_POD_SET_REFUSAL.partition(' supports ')[2]}"


def option_of(kind: str) -> str:
    return kind.partition(" ")[0]


def fleet(machine: MachineType, kind: str) -> FleetSpec:
    """The fleet of the examples, with nodes of one machine type and class where they are offered."""
    data = yaml.safe_load((EXAMPLES / "fleet.yaml").read_text())
    resource, per_node = machine.accelerator_resource, machine.accelerators or 1
    [zone, *_] = zones_with(machine.name, option_of(kind)) or ("us-central1-a",)
    attached = {"accelerator": {"type": "nvidia-tesla-t4", "count": 1}} if machine.name.startswith("n1-") else {}
    [cluster], [queue] = data["clusters"], data["clusterQueues"]
    cluster |= {"region": zone.rpartition("-")[0], "zones": [zone]}
    data["nodePools"] = [{"name": "l4", "machineType": machine.name, **attached, **CLASSES[kind]}]
    quotas = {resource: NODES * per_node, "cpu": 32, "memory": "32Gi"}
    resources = [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]
    queue["resourceGroups"] = [{"coveredResources": [*quotas], "flavors": [{"name": "l4", "resources": resources}]}]
    data["kueue"]["configuration"]["integrations"]["frameworks"] = [*MODELLED]
    data["operators"]["installedElsewhere"] = [name for name in MODELLED if name.startswith("kubeflow.org/")]
    if kind == QUEUED:
        asked = {"provisioningClassName": "queued-provisioning.gke.io", "managedResources": [resource]}
        data["admissionChecks"] = [{"name": "dws", "provisioningRequest": asked}]
        queue["admissionChecksStrategy"] = {"admissionChecks": [{"name": "dws"}]}
    return parse_fleet(data)


def answers(machine: MachineType, kind: str) -> Callable[[str], str]:
    """What is said of a kind of job on these nodes."""
    try:
        spec = fleet(machine, kind)
    except SpecError as refused:
        [error] = errors_of(refused.problems)
        reason = error.wrong.partition(", but ")[2]
        assert reason == f"Google does not offer {machine.name} so"
        return lambda _: f"refused: {reason.replace(machine.name, 'it')}"
    if option_of(kind) not in options_of(machine.name):
        return lambda _: NOT_MODELLED
    refused_jobs = run(spec, machine)
    assert kind == QUEUED or not refused_jobs
    zones = zones_with(machine.name, option_of(kind))
    supported = f"supported in {', '.join(zones)}" if zones else "supported"
    return lambda called: ONE_ONLY if called in refused_jobs else supported


def run(spec: FleetSpec, machine: MachineType) -> set[str]:
    """Simulate the jobs that the check takes to their end; the others."""
    documents = [Document(called, on(machine, job)) for called, job in JOBS]
    problems = list(map(str, check_manifests(spec, documents).problems))
    assert all(f": {SINGLE_POD_SET_REFUSAL}; " in problem for problem in problems), problems
    refused = Counter(problem.partition(": ")[0] for problem in problems)
    assert refused == Counter(document.where for document in documents if document.where in refused)
    taken = [document for document in documents if document.where not in refused]
    records = prepare_fleet(spec, WorkloadFile(), Delays(), manifests=taken).run().records
    assert {record.state for record in records} == {State.FINISHED}, [(one.name, one.message) for one in records]
    for _, job in taken:
        metadata = job["metadata"]
        name = metadata.get("labels", {}).get("kueue.x-k8s.io/pod-group-name") or metadata["name"]
        assert any(record.name.startswith(name) for record in records), name
    return {*refused}


def table(head: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, tuple("---" for _ in head), *body))


def same(answers: Mapping[Key, Value]) -> dict[Value, list[Key]]:
    """The keys of each value."""
    result: dict[Value, list[Key]] = {}
    for key, value in answers.items():
        result.setdefault(value, []).append(key)
    return result


def called(begin: str) -> str:
    return f"`{begin}*`" if begin.endswith("-") else f"`{begin}`"


def test_the_page_has_every_cell() -> None:
    result = {begin: {kind: answers(machine, kind) for kind in CLASSES} for begin, machine in families().items()}
    kinds = same({
        job.where: tuple(answer(job.where) for by_class in result.values() for answer in by_class.values())
        for job in JOBS
    })  # fmt: skip
    one, several = kinds.values()
    roles = {"one": one[0], "several": several[0]}
    not_read = sorted(kind.kind for kind in KINDS.values() if kind.kind not in ROLES)
    wanted_kinds = table(
        ("kind of job", "roles with accelerators"),
        [
            *((name, "one") for name in one),
            *((name, "several") for name in several),
            (", ".join(not_read), f"{NOT_MODELLED}: their pods are not read from their manifests"),
        ],
    )
    groups = same({
        begin: tuple((kind, tuple(answer(name) for name in roles.values())) for kind, answer in by_class.items())
        for begin, by_class in result.items()
    })  # fmt: skip
    expected = table(
        ("machine types", "class", "answer"),
        chain.from_iterable(rows(begins, dict(group)) for group, begins in groups.items()),
    )
    page = PAGE.read_text()
    assert wanted_kinds in page, f"write in {PAGE.name}:\n{wanted_kinds}"
    assert expected in page, f"write in {PAGE.name}:\n{expected}"


def rows(begins: list[str], group: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    machines = ", ".join(map(called, begins))
    answered = {}
    for name, (one, several) in group.items():
        assert several in (one, ONE_ONLY), name
        answered[name if one == several else f"{name} (one role)"] = one
    for answer, classes in same(answered).items():
        yield machines, ", ".join(classes), answer
