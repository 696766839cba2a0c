"""The files that others publish, and the same with one field changed: what a real API server takes is not refused here.

The API server has the real definitions, and the webhooks of Kueue and JobSet; nothing is created. Operators that are
not here would make pods of a job: they are tried as well, and so is the Workload that Kueue would make. Less may be
said here than there, never more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from files_of_others import JOBS, Published, changes, definitions, module_folders, published
from job_definitions import DEFINITIONS, ensure_job_kinds, place_of
from kueue_admission.api.job_kinds import KINDS
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import Snapshot
from kueue_admission.explain import explain
from kueue_admission.kernel.form_rules import JOB_UNKNOWN
from kueue_admission.kernel.job_rules import NO_WORKLOAD
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.read.readable import parse_readable
from kueue_admission.simulate.documents import Document
from kueue_fleet.adopt import AdoptedCluster, Identity, adopt_fleet
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.jobs.queued_job import pod_set_templates
from one_cluster import KUEUE, Json, OneCluster, Refused, kueue_object, wait_until

TABLE: Final = Path("build") / "files-of-others.md"
DRY: Final = "dryRun=All&fieldValidation=Strict"
OBJECTS: Final = {
    "ClusterQueue": "clusterqueues",
    "Cohort": "cohorts",
    "LocalQueue": "namespaces/default/localqueues",
    "ResourceFlavor": "resourceflavors",
    "Topology": "topologies",
    "WorkloadPriorityClass": "workloadpriorityclasses",
    "AdmissionCheck": "admissionchecks",
    "ProvisioningRequestConfig": "provisioningrequestconfigs",
}
MOST_OF_A_KIND: Final = 6
"""How many files of a kind are changed."""
QUOTAS: Final = [
    {"name": name, "nominalQuota": "1000000Gi" if name == "memory" else 1_000_000}
    for name in ("cpu", "memory", "pods", "nvidia.com/gpu", "google.com/tpu")
]
GROUP: Final = {
    "coveredResources": [each["name"] for each in QUOTAS],
    "flavors": [{"name": "any", "resources": QUOTAS}],
}
AROUND: Final = [
    kueue_object("ResourceFlavor", "any", {}),
    kueue_object("ClusterQueue", "cq", {"namespaceSelector": {}, "resourceGroups": [GROUP]}),
    kueue_object("LocalQueue", "lq", {"clusterQueue": "cq"}, "default"),
]
"""A queue in which nothing is missing."""
PASSED_OVER: Final = (NO_WORKLOAD, JOB_UNKNOWN)
"""Of jobs of which Kueue makes no Workload, or which claim devices by what the objects do not have."""
NOT_MODELLED: Final = ("dra/capacity/", "dra/counter/")
"""Parts of the names of files with what is refused by name, as docs/fidelity.md says."""


IDENTITY: Final = Identity("others", "my-project", date(2027, 1, 1), date(2026, 12, 1), default_kueue=True)


def fleet_of(classes: list[Json]) -> FleetSpec:
    """The same as a fleet."""
    queue = {"name": "cq", "namespaceSelector": {}, "resourceGroups": [GROUP]}
    settings = {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}, "integrations": {"frameworks": sorted(KINDS)}}
    cluster = {"name": "c", "role": "standalone", "region": "us-central1", "existing": True, "mode": "Standard"}
    return parse_fleet(
        {
            "name": "others",
            "project": "my-project",
            "clusters": [cluster],
            "kueue": {"configuration": settings},
            "flavors": [{"name": "any"}],
            "clusterQueues": [queue],
            "localQueues": [{"name": "lq", "namespace": "default", "clusterQueue": "cq"}],
            "workloadPriorityClasses": [{"name": item["metadata"]["name"], "value": item["value"]} for item in classes],
        }
    )


@pytest.fixture(scope="module")
def folders() -> Mapping[str, Path]:
    return module_folders()


@pytest.fixture(scope="module")
def files(folders: Mapping[str, Path]) -> list[Published]:
    return list(published(folders))


@pytest.fixture(scope="module")
def cluster(kueue_cluster: OneCluster, folders: Mapping[str, Path]) -> Iterator[OneCluster]:
    """The cluster with the definitions of the operators, which the other files of this folder do without."""
    ensure_job_kinds(kueue_cluster)
    before = {}
    for result in definitions(folders):
        path = f"{DEFINITIONS}/{result['metadata']['name']}"
        before[path] = kueue_cluster.get(path)["spec"]["versions"]
        replace_versions(kueue_cluster, path, result["spec"]["versions"])
    assert len(before) > 8
    wait_until(lambda: is_strict(kueue_cluster))
    yield kueue_cluster
    for path, versions in before.items():
        replace_versions(kueue_cluster, path, versions)


def replace_versions(cluster: OneCluster, path: str, versions: list[Json]) -> None:
    cluster.request("PATCH", path, {"spec": {"versions": versions}}, "application/merge-patch+json")


def is_strict(cluster: OneCluster) -> bool:
    """Whether the API server looks at the fields of each kind, which it does a moment after the definition."""
    kinds = [
        framework for framework, kind in KINDS.items() if kind.kind in ("RayCluster", "LeaderWorkerSet", "TrainJob")
    ]
    body = {"metadata": {"name": "x"}, "spec": {"nothing": 1}}
    answers = [
        refusal_of(cluster, place_of(item, "default"), {**body, **version_of(item), "kind": KINDS[item].kind})
        for item in kinds
    ]
    return all("nothing" in answer for answer in answers)


def version_of(framework: str) -> Json:
    kind = KINDS[framework]
    return {"apiVersion": f"{kind.group}/{kind.version}".removeprefix("/")}


def asked(cluster: OneCluster, path: str, body: Any) -> Json:
    """What the API server would store. Raises Refused."""
    return cluster.request("POST", f"{path}?{DRY}", body)


def refusal_of(cluster: OneCluster, path: str, body: Any) -> str:
    """Why the API server refuses it; empty where it does not."""
    try:
        asked(cluster, path, body)
    except Refused as refused:
        return str(refused)
    return ""


def refusal_of_pods(cluster: OneCluster, job: Json) -> str:
    """Why it refuses a pod that an operator would make."""
    for item in pod_set_templates(job):
        spec = {**(item.template.get("spec") or {}), "restartPolicy": "Never"}
        spec.pop("serviceAccountName", None)
        metadata = {**(item.template.get("metadata") or {}), "name": "p", "namespace": "default"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        if refused := refusal_of(cluster, "/api/v1/namespaces/default/pods", pod):
            return refused
    return ""


def refusal_of_workload(cluster: OneCluster, job: Json) -> str:
    """Why it refuses the Workload that Kueue would make."""
    pod_sets = [
        {"name": item.name, "count": item.count, "template": {"spec": (item.template.get("spec") or {})}}
        for item in pod_set_templates(job)
    ]
    body = kueue_object("Workload", "w", {"queueName": "lq", "podSets": pod_sets}, "default")
    return refusal_of(cluster, f"{KUEUE}/namespaces/default/workloads", body)


def as_submitted(each: Published) -> Json:
    """A job in the queue, without a controller of its own."""
    metadata = {**each.data["metadata"], "namespace": "default"}
    metadata["labels"] = {**(metadata.get("labels") or {}), "kueue.x-k8s.io/queue-name": "lq"}
    spec = {name: value for name, value in (each.data.get("spec") or {}).items() if name != "managedBy"}
    return {**each.data, "metadata": metadata, "spec": spec}


def is_job(each: Published) -> bool:
    """Whether it is a job with pods of its own, of a kind that this API server has."""
    data = each.data
    known = JOBS.get(data["kind"]) if data["kind"] not in ("Deployment", "StatefulSet") else None
    named = "name" in data.get("metadata", {}) or "generateName" in data.get("metadata", {})
    return bool(
        known is not None and named and data.get("spec") and data["apiVersion"] == version_of(known)["apiVersion"]
    )


def refused_here(fleet: FleetSpec, job: Json) -> list[Problem]:
    """What `check --jobs` refuses, which simulates the job; Kueue makes no Workload of some that are no errors."""
    result = check_manifests(fleet, [Document("f.yaml:1", job)]).problems
    return [problem for problem in result if problem.rule is not NO_WORKLOAD]


def misread(manifest: Json) -> list[str]:
    """What `explain` and `simulate objects` cannot read of a job that a cluster has."""
    parsed = parse_readable([*AROUND, manifest])
    for workload in parsed.workloads:
        assert explain(Snapshot(parsed.with_namespaces(), parsed.workloads, 0.0), workload.key).headline
    return [str(problem) for out in parsed.left_out for problem in out.problems if problem.rule not in PASSED_OVER]


def test_no_file_of_others_is_refused_here_that_is_taken_there(cluster: OneCluster, files: list[Published]) -> None:
    classes = [entry.data for entry in files if entry.data["kind"] == "WorkloadPriorityClass"]
    for result in classes:
        cluster.ensure(f"{KUEUE}/workloadpriorityclasses", {**result, "apiVersion": "kueue.x-k8s.io/v1beta2"})
    fleet, table, wrong, of_kind = fleet_of(classes), Counter[tuple[str, str, str]](), list[str](), Counter[str]()
    for item in filter(is_job, files):
        job, kind = as_submitted(item), item.data["kind"]
        path = place_of(JOBS[kind], "default")
        of_kind[kind] += 1
        some = changes(item, job) if of_kind[kind] <= MOST_OF_A_KIND else iter(())
        for what, data in (("file", job), *some):
            there = refusal_of(cluster, path, data)
            here = list(map(str, refused_here(fleet, data)))
            if here and not there:
                there = refusal_of_pods(cluster, data) or refusal_of_workload(cluster, data)
            verdict = "refused" if there else "taken"
            table[kind, what.partition(" ")[0], f"{verdict}, {'refused' if here else 'taken'} here"] += 1
            if here and not there:
                wrong.append(f"{item.where}: {what}: {here[0]}")
            elif not there:
                stored = asked(cluster, path, data)
                stored["metadata"].setdefault("name", "j")
                wrong += [f"{item.where}: {what}: misread: {text}" for text in misread(stored)]
    TABLE.parent.mkdir(exist_ok=True)
    rows = [f"| {' | '.join(row)} | {count} |" for row, count in sorted(table.items())]
    TABLE.write_text("\n".join(("| kind | change | API server | number |", "|---|---|---|---|", *rows)) + "\n")
    print(TABLE.read_text())
    assert sum(table.values()) > 300
    assert wrong == [], "\n".join(wrong)


def test_queues_of_others_are_read_and_imported(cluster: OneCluster, files: list[Published]) -> None:
    stored = []
    for entry in files:
        data = entry.data
        if data["kind"] in OBJECTS and data["apiVersion"].startswith("kueue.x-k8s.io/"):
            metadata = {**data["metadata"], **({"namespace": "default"} if data["kind"] == "LocalQueue" else {})}
            body = {**data, "apiVersion": KUEUE.removeprefix("/apis/"), "metadata": metadata}
            path = f"{KUEUE}/{OBJECTS[data['kind']]}"
            stored.append(cluster.find(f"{path}/{metadata['name']}") or asked(cluster, path, body))
    assert len(stored) > 15
    once = {(item["kind"], item["metadata"]["name"]): item for item in stored}
    parsed = parse_objects(once.values(), live=True)
    assert [str(problem) for out in parsed.left_out for problem in out.problems] == []
    result = adopt_fleet([AdoptedCluster("c", "us-central1", list(once.values()), mode="Standard")], IDENTITY)
    queues = {name for kind, name in once if kind == "ClusterQueue"}
    assert {each["name"] for each in result.data["clusterQueues"]} == queues


def test_configurations_of_others_are_read(files: list[Published]) -> None:
    given = [item for item in files if item.data.get("apiVersion", "").startswith("config.kueue.x-k8s.io/")]
    assert len(given) > 5
    unread = []
    for entry in given:
        try:
            parse_configuration(entry.data)
        except (NotModelledError, ObjectError) as refused:
            unread.append(f"{entry.where}: {refused}")
    assert [text for text in unread if not any(part in text for part in NOT_MODELLED)] == []
