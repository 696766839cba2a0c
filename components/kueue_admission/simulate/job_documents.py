"""One document for each job: a Pod with the others of its group, a TrainJob with its runtime, nothing of what they use.

Source: https://kueue.sigs.k8s.io/docs/tasks/run/plain_pods/ (groups), kueue@v0.19.2 pkg/controller/jobs/pod
(constructGroupPodSets), pkg/controller/jobs/trainjob (getRuntimeSpec).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kueue_admission.kernel.form_rules import OBJECT
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.manifest import inside, key_of
from kueue_admission.kernel.names import POD_GROUP_LABEL, POD_GROUP_TOTAL_ANNOTATION
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.job_pod_sets import PODS_FIELD, RUNTIME_FIELD
from kueue_admission.read.manifests import is_job
from kueue_admission.simulate.documents import Document

RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
"""Kinds that TrainJobs refer to; they stand beside them in a file."""
_USED: Final = frozenset(
    {
        *("Service", "ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim", "NetworkPolicy"),
        *("HorizontalPodAutoscaler", "PodDisruptionBudget", "PodMonitoring", "Ingress", "Gateway", "HTTPRoute"),
        *("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "PersistentVolume", "StorageClass"),
    }
)
"""What jobs and services use and people write beside them; Kueue does not look at it."""
_FAST: Final = "kueue.x-k8s.io/pod-group-fast-admission"


def with_names(documents: Iterable[Document], problems: list[Problem]) -> Iterator[Document]:
    """Documents that have names: those with a generateName by number, as `train-1`."""
    document_list, generated_names = list(documents), dict[str, int]()
    given_names = {str(inside(data, "metadata").get("name")) for _, data in document_list}
    for where, data in document_list:
        metadata = data.get("metadata")
        if not isinstance(metadata, Mapping):
            problems.append(OBJECT.at("", f"{data['kind']} has no metadata", "give it a name there").behind(where))
            continue
        texts = {"kind": data["kind"], "metadata.namespace": metadata.get("namespace") or ""}
        if odd := [path for path, value in texts.items() if not isinstance(value, str)]:
            problems.append(OBJECT.at(odd[0], "is not text", "print the object again").behind(where))
            continue
        kind, name = data["kind"], metadata.get("name")
        prefix = metadata.get("generateName")
        if name is None and isinstance(prefix, str) and prefix:
            number = generated_names.get(f"{kind} {prefix}", 0) + 1
            while f"{prefix}{number}" in given_names:
                number += 1
            generated_names[f"{kind} {prefix}"] = number
            name = f"{prefix}{number}"
            data = {**data, "metadata": {**metadata, "name": name}}
        if not isinstance(name, str) or not name:
            wrong = "is missing or empty" if name in (None, "") else f"is {str(name).lower()[:40]}, not text"
            fix = "put it in quotes" if isinstance(name, (bool, int, float)) else "give it a name"
            problems.append(OBJECT.at(f"{kind}.metadata.name", wrong, fix).behind(where))
            continue
        yield Document(where, data)


def one_for_each_job(named_documents: Iterable[Document], problems: list[Problem]) -> list[Document]:
    """Documents of `with_names`, without those that are part of another one now.

    A group of pods that has a problem is left out.
    """
    document_list = list(named_documents)
    runtimes = {
        _runtime_key(document.data): document.data for document in document_list if document.data["kind"] in RUNTIMES
    }
    groups: dict[tuple[str, str], list[Document]] = {}
    documents: list[Document] = []
    for document in document_list:
        kind, group = document.data["kind"], _group(document.data)
        if group:
            members = groups.setdefault((key_of(document.data).partition("/")[0], group), [])
            members.append(document)
            if len(members) == 1:
                documents.append(document)
        elif kind == "TrainJob":
            documents.append(_with_runtime(document, runtimes))
        elif kind not in RUNTIMES and kind not in _USED:
            documents.append(document)
    whole = (_with_group(document, groups, problems) if _group(document.data) else document for document in documents)
    return [document for document in whole if document is not None]


def _group(data: Mapping[str, Any]) -> str:
    if data["kind"] != "Pod" or PODS_FIELD in data or not is_job(data):
        return ""
    return str(inside(data, "metadata", "labels").get(POD_GROUP_LABEL) or "")


def _with_group(
    first: Document, groups: Mapping[tuple[str, str], list[Document]], problems: list[Problem]
) -> Document | None:
    namespace, group = key_of(first.data).partition("/")[0], _group(first.data)
    pods = [document.data for document in groups[namespace, group]]
    annotations = inside(first.data, "metadata", "annotations")
    total = str(annotations.get(POD_GROUP_TOTAL_ANNOTATION, ""))
    if not total.isdecimal() or len(total) > 6:
        at = f"{key_of(first.data)}.metadata.annotations[{POD_GROUP_TOTAL_ANNOTATION}]"
        fix = f"write how many pods the group {group} has, in quotes"
        problems.append(JOB.at(at, f"is {total or 'missing'}", fix).behind(first.where))
        return None
    if annotations.get(_FAST) == "true":
        pods = [first.data] * int(total)
    elif int(total) != len(pods):
        there = f"the group {group} has {len(pods)} of its {total} pods, and Kueue waits for all"
        fix = f"add the others, or correct {POD_GROUP_TOTAL_ANNOTATION}"
        problems.append(JOB.at("", there, fix).behind(first.where))
        return None
    data = {**first.data, "metadata": {**first.data["metadata"], "name": group}, PODS_FIELD: pods}
    return Document(first.where, data)


def _runtime_key(data: Mapping[str, Any]) -> tuple[str, str]:
    """Kind, and the name with the namespace where the kind has one."""
    name = key_of(data)
    return data["kind"], name if data["kind"] == "TrainingRuntime" else name.partition("/")[2]


def _with_runtime(job: Document, runtimes: Mapping[tuple[str, str], Mapping[str, Any]]) -> Document:
    reference = inside(job.data, "spec", "runtimeRef")
    kind, name = str(reference.get("kind") or RUNTIMES[0]), str(reference.get("name"))
    if kind == "TrainingRuntime":
        name = f"{key_of(job.data).partition('/')[0]}/{name}"
    runtime = runtimes.get((kind, name))
    return job if runtime is None else Document(job.where, {**job.data, RUNTIME_FIELD: runtime})
