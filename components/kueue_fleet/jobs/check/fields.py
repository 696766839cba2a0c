"""Fields of Jobs and JobSets that Kubernetes does not have, and values of another type.

`fields.json` has each type that their specs lead to, by field: its type, `[]` before that of the items of a list,
`{}` before that of the values of a map, and `!` behind the name of a field that has to be there. What else the API
server refuses it says itself, in a dry run: `check --jobs --kubeconfig`, `submit`, a rehearsal.

Source: kubernetes@v1.36.3 api/openapi-spec/v3/apis__batch__v1_openapi.json (JobSpec), of which `tests/jobs` makes the
table, plugin/pkg/admission/priority/admission.go (admitPod), pkg/apis/scheduling/types.go (values of the system's
classes); jobset@v0.11.1 config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pkgutil import get_data
from typing import Any, Final

from kueue_admission.api.priority_classes import PriorityClassFields
from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.manifest import inside, maps_in
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.suggest import nearest
from kueue_admission.read.job_workloads import SYSTEM_CLASSES
from kueue_admission.read.manifests import label_of
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.job_forms import IMAGE
from kueue_fleet.jobs.check import job_check, right_job_check
from kueue_fleet.jobs.queued_job import QueuedJob, job_fault, of_pod_set

_PLAIN: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "quantity": (str, int, float),
    "intOrString": (str, int),
}
_WORDS: Final[Mapping[type, str]] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    dict: "a map",
    list: "a list",
}


@cache
def _types() -> Mapping[str, Mapping[str, str]]:
    return dict(json.loads(get_data(__package__, "fields.json") or b""))


@job_check
def check_job_fields(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """What is refused of Jobs and JobSets that could be read."""
    for at, fault in _faults(job.data):
        yield fault.rule.at(f"{label_of(job.data)}.{at}", fault.wrong, fault.fix).behind(job.document.where)


@job_check
def check_priorities(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """What a pod says beside its priority class, whose values Kubernetes writes into it; classes that there are not are
    found where jobs are read."""
    none = next(
        (priority_class for priority_class in fleet.priority_classes if priority_class.global_default),
        PriorityClassFields(value=0),
    )
    classes = {"": none} | {priority_class.name: priority_class for priority_class in fleet.priority_classes}
    classes |= {name: PriorityClassFields.model_construct(value=value) for name, value in SYSTEM_CLASSES.items()}
    for pod_set in job.pod_sets:
        pod = inside(pod_set.template, "spec")
        class_name = str(pod.get("priorityClassName") or "")
        priority = classes.get(class_name)
        priority_fields = (
            {} if priority is None else {"priority": priority.value, "preemptionPolicy": priority.preemption_policy}
        )
        for field, value in priority_fields.items():
            if pod.get(field) not in (None, value):
                of = f"of priority class {class_name}" if class_name else "of pods without a priority class"
                wrong = f"has {field} {pod[field]}, and Kubernetes makes no pod with another than the {value} {of}"
                fix = "remove it, and name a priority class if it needs one"
                yield of_pod_set(job, pod_set, job_fault(wrong, fix))


@right_job_check
def warn_of_images(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Images that no node can pull; the API server looks at no name of one."""
    for pod_set in job.pod_sets:
        spec = inside(pod_set.template, "spec")
        for container in (*maps_in(spec.get("initContainers")), *maps_in(spec.get("containers"))):
            image = container.get("image")
            if isinstance(image, str) and image and IMAGE.fullmatch(image) is None:
                wrong = f"has an image {image!r}, which is not the name of one, and no node can pull it"
                yield of_pod_set(job, pod_set, job_fault(wrong, "correct it"), "warning")


def _faults(job: Mapping[str, Any]) -> Iterator[tuple[str, Fault]]:
    if job["kind"] not in ("Job", "JobSet"):
        return
    for field in ("labels", "annotations"):
        yield from _fields("{}string", job["metadata"].get(field), f"metadata.{field}")
    yield from _fields(f"{job['kind']}Spec", inside(job, "spec"), "spec")


def _fields(kind: str, value: Any, path: str) -> Iterator[tuple[str, Fault]]:
    """Fields that Kubernetes does not have, and values of another type or none of those that it takes."""
    if value is None or kind == "any":
        return
    if kind in _PLAIN:
        yield from _plain(kind, value, path)
    elif kind.startswith("[]"):
        if not isinstance(value, list):
            yield path, _another(value, list)
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _fields(kind[2:], item, f"{path}[{index}]")
    elif not isinstance(value, Mapping):
        yield path, _another(value, dict)
    elif kind.startswith("{}"):
        for name, item in value.items():
            yield from _fields(kind[2:], item, f"{path}[{name}]")
    else:
        yield from _object(kind, value, path)


def _object(kind: str, value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Fault]]:
    known_fields = {name.removesuffix("!"): type_ for name, type_ in _types()[kind].items()}
    for name, item in value.items():
        at = f"{path}.{name}"
        if name not in known_fields:
            near = nearest(str(name), known_fields)
            fix = (
                f"did you mean {near}?"
                if near
                else f"remove it, or write one of {', '.join(sorted(known_fields)[:12])}"
            )
            yield at, job_fault("is not a field that Kubernetes has here, and kubectl refuses it", fix)
            continue
        yield from _fields(known_fields[name], item, at)
    for name in _types()[kind]:
        if name.endswith("!") and value.get(name[:-1]) in (None, "") and kind != "PodSpec":
            yield f"{path}.{name[:-1]}", job_fault("is missing", "write it")


def _plain(kind: str, value: Any, path: str) -> Iterator[tuple[str, Fault]]:
    type_words = _PLAIN[kind]
    if not isinstance(value, type_words) or (isinstance(value, bool) and bool not in type_words):
        yield path, _another(value, type_words[0])


def _another(value: Any, wanted_type: type) -> Fault:
    type_words = next((words for type_, words in _WORDS.items() if type(value) is type_), "of another form")
    quotes = wanted_type is str and isinstance(value, bool | int | float)
    fix = "put it in quotes" if quotes else f"write {_WORDS[wanted_type]}"
    return job_fault(f"is {type_words}, and Kubernetes takes {_WORDS[wanted_type]}", fix)
