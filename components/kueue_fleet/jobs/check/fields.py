"""What the API server refuses of the fields of Jobs and JobSets: fields that there are not, and values of another type.

`fields.json` has each type that their specs lead to, by field: its type, `[]` before that of the items of a list,
`{}` before that of the values of a map, and `!` behind the name of a field that has to be there. What values may be is
in `values`. Of the rules between fields only those are here that people break.

Source: kubernetes@v1.36.3 api/openapi-spec/v3/apis__batch__v1_openapi.json (JobSpec), pkg/apis/core/validation and
pkg/apis/batch/validation (values, volumes, mounts, variables, policies), plugin/pkg/admission/priority/admission.go
(admitPod), pkg/apis/scheduling/types.go (values of the system's classes);
jobset@v0.11.1 config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml, pkg/webhooks/jobset_webhook.go
(ValidateCreate).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pkgutil import get_data
from typing import Any, Final

from kueue_admission.api.priority_classes import PriorityClassFields
from kueue_admission.forms.form_rules import Fault
from kueue_admission.forms.manifest import inside, maps_in
from kueue_admission.forms.problem import Problem
from kueue_admission.forms.suggest import nearest
from kueue_admission.read.manifests import label_of
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.job_forms import IMAGE
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.check.values import field_faults, metadata_faults, object_faults
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
_SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has, above those that users may make."""
_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


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
    none = next((each for each in fleet.priority_classes if each.global_default), PriorityClassFields(value=0))
    classes = {"": none} | {each.name: each for each in fleet.priority_classes}
    classes |= {name: PriorityClassFields.model_construct(value=value) for name, value in _SYSTEM_CLASSES.items()}
    for pod_set in job.pod_sets:
        pod = inside(pod_set.template, "spec")
        named = str(pod.get("priorityClassName") or "")
        found = classes.get(named)
        wanted = {} if found is None else {"priority": found.value, "preemptionPolicy": found.preemption_policy}
        for field, value in wanted.items():
            if pod.get(field) not in (None, value):
                of = f"of priority class {named}" if named else "of pods without a priority class"
                wrong = f"has {field} {pod[field]}, and Kubernetes makes no pod with another than the {value} {of}"
                fix = "remove it, and name a priority class if it needs one"
                yield of_pod_set(job, pod_set, job_fault(wrong, fix))


def _faults(job: Mapping[str, Any]) -> Iterator[tuple[str, Fault]]:
    spec = inside(job, "spec")
    if job["kind"] not in ("Job", "JobSet"):
        return
    yield from _metadata(job["metadata"], "metadata")
    yield from _fields(f"{job['kind']}Spec", spec, "spec")
    if job["kind"] == "Job":
        yield from _rules(spec, "spec")
        return
    yield from _of_jobset(str(job["metadata"].get("name") or "xxxxx"), spec)
    for index, each in enumerate(maps_in(spec.get("replicatedJobs"))):
        yield from _metadata(inside(each, "template", "metadata"), f"spec.replicatedJobs[{index}].template.metadata")
        yield from _rules(inside(each, "template", "spec"), f"spec.replicatedJobs[{index}].template.spec")


def _metadata(metadata: Mapping[str, Any], path: str) -> Iterator[tuple[str, Fault]]:
    """Labels and annotations; the rest of the metadata of a job is looked at where jobs are read."""
    for field in ("labels", "annotations"):
        yield from _fields("{}string", metadata.get(field), f"{path}.{field}")
    yield from ((f"{path}{below}", fault) for below, fault in metadata_faults(metadata))


def _of_jobset(name: str, spec: Mapping[str, Any]) -> Iterator[tuple[str, Fault]]:
    """Names that its Jobs and their Service cannot have, and names of jobs that it has not."""
    jobs = [str(each.get("name")) for each in maps_in(spec.get("replicatedJobs"))]
    for index, job in enumerate(jobs):
        if _LABEL.fullmatch(f"{name}-{job}") is None:
            wrong = f"{job} makes Jobs {name}-{job}-0, a name that JobSet refuses"
            fix = "write lower-case letters, digits and hyphens in both names, with a letter first"
            yield f"spec.replicatedJobs[{index}].name", job_fault(wrong, fix)
    subdomain = inside(spec, "network").get("subdomain")
    if subdomain and _LABEL.fullmatch(str(subdomain)) is None:
        fix = "write lower-case letters, digits and hyphens, with a letter first"
        yield "spec.network.subdomain", job_fault(f"{subdomain} is not the name of a Service", fix)
    of_success, of_coordinator = inside(spec, "successPolicy"), inside(spec, "coordinator")
    named = [("successPolicy", job) for job in of_success.get("targetReplicatedJobs") or ()]
    for field, job in (*named, *(("coordinator", job) for job in (of_coordinator.get("replicatedJob"),) if job)):
        if job not in jobs:
            fix = f"did you mean {near}?" if (near := nearest(str(job), jobs)) else f"use one of {', '.join(jobs)}"
            yield f"spec.{field}", job_fault(f"there is no replicatedJob {job}", fix)
    for index, each in enumerate(maps_in(spec.get("replicatedJobs"))):
        for other in maps_in(each.get("dependsOn")):
            if other.get("name") not in jobs[:index]:
                wrong = f"there is no replicatedJob {other.get('name')} before this one, and JobSet refuses it"
                yield f"spec.replicatedJobs[{index}].dependsOn", job_fault(wrong, "name one that is before it")


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
    known = {name.removesuffix("!"): type_ for name, type_ in _types()[kind].items()}
    for name, item in value.items():
        at = f"{path}.{name}"
        if name not in known:
            near = nearest(str(name), known)
            fix = f"did you mean {near}?" if near else f"remove it, or write one of {', '.join(sorted(known)[:12])}"
            yield at, job_fault("is not a field that Kubernetes has here, and kubectl refuses it", fix)
            continue
        found = list(_fields(known[name], item, at))
        yield from found
        if not found and item is not None:
            yield from ((at, fault) for fault in field_faults(f"{kind}.{name}", item))
    for name in _types()[kind]:
        if name.endswith("!") and value.get(name[:-1]) in (None, "") and kind != "PodSpec":
            yield f"{path}.{name[:-1]}", job_fault("is missing", "write it")
    if value.keys() <= known.keys():
        yield from ((f"{path}{below}", fault) for below, fault in object_faults(kind, value))


def _plain(kind: str, value: Any, path: str) -> Iterator[tuple[str, Fault]]:
    wanted = _PLAIN[kind]
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        yield path, _another(value, wanted[0])


def _another(value: Any, wanted: type) -> Fault:
    given = next((words for type_, words in _WORDS.items() if type(value) is type_), "of another form")
    quotes = wanted is str and isinstance(value, bool | int | float)
    fix = "put it in quotes" if quotes else f"write {_WORDS[wanted]}"
    return job_fault(f"is {given}, and Kubernetes takes {_WORDS[wanted]}", fix)


def _rules(spec: Mapping[str, Any], path: str) -> Iterator[tuple[str, Fault]]:
    """Rules between fields, of a Job whose fields may be anything."""
    indexed = spec.get("completionMode") == "Indexed"
    for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
        if spec.get(name) is not None and not indexed:
            wrong = "is for Jobs that are Indexed, and Kubernetes refuses it"
            yield f"{path}.{name}", job_fault(wrong, "write completionMode: Indexed, or remove it")
    if spec.get("selector") is not None and not spec.get("manualSelector"):
        yield f"{path}.selector", job_fault("is set, and Kubernetes makes it itself", "remove it")
    pod = inside(spec, "template", "spec")
    if spec.get("podFailurePolicy") is not None and pod.get("restartPolicy") != "Never":
        wrong = "is for pods that are not restarted, and Kubernetes refuses it"
        yield f"{path}.podFailurePolicy", job_fault(wrong, "write restartPolicy: Never")
    at = f"{path}.template.spec"
    for index, each in enumerate(maps_in(pod.get("tolerations"))):
        if each.get("operator") == "Exists" and each.get("value"):
            wrong = "has a value, and with operator Exists Kubernetes refuses it"
            yield f"{at}.tolerations[{index}]", job_fault(wrong, "remove the value, or the operator")
    volumes = [str(each.get("name")) for each in maps_in(pod.get("volumes"))]
    for index, volume in enumerate(maps_in(pod.get("volumes"))):
        yield from _volume(volume, volumes[:index], f"{at}.volumes[{index}]")
    for field in ("initContainers", "containers"):
        for index, container in enumerate(maps_in(pod.get(field))):
            yield from _container(container, volumes, f"{at}.{field}[{index}]")


def _volume(volume: Mapping[str, Any], before: list[str], at: str) -> Iterator[tuple[str, Fault]]:
    sources = [name for name, value in volume.items() if name != "name" and value is not None]
    if volume.get("name") in before:
        yield f"{at}.name", job_fault(f"{volume['name']} is the name of another volume", "use another name")
    if len(sources) != 1:
        said = f"has {', '.join(sources)}" if sources else "does not say what it is"
        yield at, job_fault(f"{said}, and Kubernetes refuses it", "write one kind, such as emptyDir: {}")


def _container(container: Mapping[str, Any], volumes: list[str], at: str) -> Iterator[tuple[str, Fault]]:
    image = container.get("image")
    if isinstance(image, str) and IMAGE.fullmatch(image) is None:
        yield f"{at}.image", job_fault(f"{image!r} is not the name of an image, and no node can pull it", "correct it")
    paths: dict[str, int] = {}
    for index, mount in enumerate(maps_in(container.get("volumeMounts"))):
        where, name = str(mount.get("mountPath") or ""), str(mount.get("name"))
        here = f"{at}.volumeMounts[{index}]"
        if name not in volumes:
            fix = f"did you mean {near}?" if (near := nearest(name, volumes)) else "add it to volumes"
            yield f"{here}.name", job_fault(f"there is no volume {name}", fix)
        if paths.setdefault(where, index) != index:
            yield f"{here}.mountPath", job_fault(f"{where} is that of another mount", "mount it elsewhere")
        if ":" in where:
            yield f"{here}.mountPath", job_fault(f"{where} has a colon, and Kubernetes refuses it", "use another path")
        below = str(mount.get("subPath") or "")
        if below.startswith("/") or ".." in below.split("/"):
            yield f"{here}.subPath", job_fault(f"{below} leads out of the volume", "write a path below it")
    for index, each in enumerate(maps_in(container.get("env"))):
        place, variable = f"{at}.env[{index}]", each.get("name")
        if isinstance(variable, str) and "=" in variable:
            yield (
                f"{place}.name",
                job_fault(f"{variable!r} has an equals sign, and Kubernetes refuses it", "use another name"),
            )
        if each.get("value") and each.get("valueFrom") is not None:
            yield place, job_fault("has a value and valueFrom, and Kubernetes refuses both", "keep one of the two")
