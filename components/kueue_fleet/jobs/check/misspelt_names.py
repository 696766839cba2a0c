"""Names in jobs that are near the one that is meant, and so have no effect: labels, annotations, resources.

Kueue ignores labels and annotations that it does not know, or looks for in the other of the two.

Source: kueue@v0.19.2 pkg/controller/constants/constants.go, apis/kueue/v1beta2/topology_types.go,
pkg/controller/jobs/job/job_controller.go, pkg/controller/jobs/pod/constants/constants.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel import suggest, syntax
from kueue_admission.kernel.form_rules import MISSPELT, UNKNOWN_NAME, Fault
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.manifest import inside, is_object, maps_in
from kueue_admission.kernel.names import (
    ELASTIC_ANNOTATION,
    KUEUE_GROUP,
    LEAST_PODS_ANNOTATION,
    POD_SET_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    REGIONS_LABEL,
    RUN_DURATION_ANNOTATION,
    RUN_SECONDS_ANNOTATION,
)
from kueue_admission.kernel.problem import Problem
from kueue_fleet.dispatch.residency import SEPARATOR
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.check.flavor_pools import unknown_accelerator
from kueue_fleet.fleet_file.model.teams import CONTAINER_RESOURCES
from kueue_fleet.gke.labels import ACCELERATOR, TPU_ACCELERATOR
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.check.amounts import requests_of
from kueue_fleet.jobs.queued_job import QueuedJob, of_job, of_pod_set

_LABELS: Final = (
    QUEUE_LABEL,
    PRIORITY_LABEL,
    REGIONS_LABEL,
    *(f"{KUEUE_GROUP}/{name}" for name in ("max-exec-time-seconds", "prebuilt-workload-name", "pod-group-name")),
)
_ANNOTATIONS: Final = (
    ELASTIC_ANNOTATION,
    LEAST_PODS_ANNOTATION,
    RUN_DURATION_ANNOTATION,
    RUN_SECONDS_ANNOTATION,
    f"{KUEUE_GROUP}/job-completions-equal-parallelism",
    f"{KUEUE_GROUP}/pod-group-total-count",
    f"{KUEUE_GROUP}/retriable-in-group",
    *(f"{POD_SET_ANNOTATION}{how}-topology" for how in ("required", "preferred", "unconstrained", "slice-required")),
    f"{POD_SET_ANNOTATION}slice-size",
    f"{POD_SET_ANNOTATION}group-name",
)
_OF_PODS: Final = (RUN_SECONDS_ANNOTATION, *(f"{KUEUE_GROUP}/pod-group-{name}" for name in ("name", "total-count")))
_MADE_OF_PODS: Final = ("Pod", "Deployment", "StatefulSet", "LeaderWorkerSet")
"""Kinds whose pods Kueue manages one by one, or in groups."""
_OURS: Final = (f"{KUEUE_GROUP}/", f"provreq.{KUEUE_GROUP}/", "kueue-fleet.dev/")
_ALIKE: Final = 0.92
"""Likeness of a key to the one that is meant: all of them have the domain."""
_RESOURCE_ALIKE: Final = 0.85


@job_check
def check_resource_names(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Resources whose names Kubernetes refuses.

    Source: kubernetes@v1.36 pkg/apis/core/validation (ValidateContainerResourceName).
    """
    queue = fleet.queue(job.queue)
    groups = queue.resource_groups if queue is not None else ()
    covered = [name for group in groups for name in group.covered_resources]
    for pod_set in job.pod_sets:
        containers = maps_in(inside(pod_set.template, "spec").get("containers"))
        for name in dict.fromkeys(name for container in containers for name in requests_of(container)):
            whole = "/" in name or name in CONTAINER_RESOURCES or name.startswith("hugepages-")
            near = "" if name in covered else suggest.nearest(name, covered, _RESOURCE_ALIKE)
            instead = f"did you mean {near}?" if near else "write its whole name, such as nvidia.com/gpu"
            if fault := syntax.label_key(name):
                wrong = f'requests "{name}", which {fault.wrong}'
                yield of_pod_set(job, pod_set, Fault(wrong, instead if near else fault.fix, JOB))
            elif not whole:
                wrong = f"requests {name}, which is no resource of Kubernetes and has no domain"
                yield of_pod_set(job, pod_set, Fault(wrong, instead, JOB))


@job_check
def check_misspelt_keys(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Warns of each of them, on the job and on its pods."""
    del fleet
    for place, data in (("", job.data), *((f"pod set {item.name} ", item.template) for item in job.pod_sets)):
        for field, known, others in (("labels", _LABELS, _ANNOTATIONS), ("annotations", _ANNOTATIONS, _LABELS)):
            for key in inside(data, "metadata", field):
                if wrong := _wrong(str(key), field, known, others) or (
                    _of_whole(job, str(key), field) if place else None
                ):
                    yield of_job(job.document, MISSPELT, place + wrong[0], wrong[1], "warning")
    for keys in _beside_pods(job.data):
        for key in keys:
            wrong_place = f"has the annotation {key} on what makes pods, and Kueue reads it on the pods' own template"
            yield of_job(
                job.document, MISSPELT, wrong_place, "move it to metadata.annotations of the pod template", "warning"
            )
    if (value := inside(job.data, "metadata", "annotations").get(ELASTIC_ANNOTATION)) not in (None, "true", "false"):
        wrong_value = f"has the annotation {ELASTIC_ANNOTATION} with the value {value}, which Kueue takes for false"
        yield of_job(job.document, JOB, wrong_value, 'write "true"', "warning")


@job_check
def check_region_words(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Words of the label of regions that are neither a region of the fleet nor a group: they allow no worker."""
    label = inside(job.data, "metadata", "labels").get(REGIONS_LABEL)
    if not isinstance(label, str) or fleet.controller is None:
        return
    places = sorted({fleet.cluster(name).place for name in fleet.job_clusters})
    known = [*fleet.controller.region_groups, *places]
    for word in filter(None, label.split(SEPARATOR)):
        if word not in known:
            wrong = f"has the label {REGIONS_LABEL} with {word}, which is no region of the fleet and no group of them"
            fix = f"{suggest.instead(word, known, 'regions and groups')} ({SEPARATOR} joins several)"
            yield of_job(job.document, UNKNOWN_NAME, wrong, fix, "warning")


@job_check
def check_accelerators(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Kinds of GPU and TPU that pods select, and that GKE is not known to have."""
    queue = fleet.queue(job.queue)
    if queue is None:
        return
    flavors = [flavor for flavor in fleet.flavors if flavor.name in queue.flavor_names]
    labels = [fleet.flavor_on(flavor, name).node_labels for flavor in flavors for name in fleet.clusters_of(queue)]
    for pod_set in job.pod_sets:
        selector = inside(pod_set.template, "spec", "nodeSelector")
        for key in (ACCELERATOR, TPU_ACCELERATOR):
            if unknown := unknown_accelerator("", key, str(selector.get(key))) if key in selector else None:
                there = sorted({own[key] for own in labels if key in own})
                wrong = f"selects {key}: {unknown.wrong}"
                fix = f"nodes of the queue have {', '.join(there)}" if there else unknown.fix
                yield of_pod_set(job, pod_set, Fault(wrong, fix, unknown.rule), "warning")


def _wrong(key: str, field: str, known: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, str] | None:
    kind = field.removesuffix("s")
    article = "an" if kind == "annotation" else "a"
    if not key.startswith(_OURS) or key in known:
        return None
    if key in others:
        other = "label" if kind == "annotation" else "annotation"
        return f"has {key} as {article} {kind}, which Kueue reads as {other} only", f"move it to metadata.{other}s"
    if near := suggest.nearest(key, (*known, *others), _ALIKE):
        return f"has the {kind} {key}, which Kueue does not know", f"did you mean {near}?"
    return None


def _of_whole(job: QueuedJob, key: str, field: str) -> tuple[str, str] | None:
    """What pods have, and Kueue reads on their job; of Deployments and the like it reads each pod."""
    is_of_pods = key in (QUEUE_LABEL, *_OF_PODS) or key.startswith(POD_SET_ANNOTATION)
    if job.kind in _MADE_OF_PODS or is_of_pods or key not in (_LABELS if field == "labels" else _ANNOTATIONS):
        return None
    return (
        f"has the {field.removesuffix('s')} {key}, which Kueue reads on the job only",
        f"move it to its metadata.{field}",
    )


def _beside_pods(data: object) -> Iterator[list[str]]:
    """The annotations about pod sets that stand on the job, or on a template in it, and on no template of pods."""
    if isinstance(data, list):
        for item in data:
            yield from _beside_pods(item)
    elif is_object(data) and "containers" not in inside(data, "spec"):
        yield [key for key in inside(data, "metadata", "annotations") if str(key).startswith(POD_SET_ANNOTATION)]
        for item in data.values():
            yield from _beside_pods(item)
