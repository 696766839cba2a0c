"""The objects of a cluster, as they were printed: which are read, and a sentence about the others.

Whatever is left out is named: jobs that Kueue does not manage, kinds with a queue that are not read, Workloads
that are in no queue, and kinds of objects that are missing although others refer to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kueue_admission.api.job_kinds import enabled_kinds
from kueue_admission.api.resources import KUEUE_NAMESPACE, RESOURCES
from kueue_admission.kernel.manifest import Manifest, inside, is_live, key_of, maps_in
from kueue_admission.kernel.names import NAMESPACE_NAME_LABEL, QUEUE_LABEL
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.read_model import read_stored
from kueue_admission.read.dumped_configuration import configurations_in
from kueue_admission.read.manifests import JOBS, WITH_QUEUE, is_job, label_of, owners_of, without_stood_for

NOT_READ: Final = ("AppWrapper", "SparkApplication")
"""Kinds that Kueue manages and whose pods are not read."""
_BY_PODS: Final = ("Deployment", "StatefulSet")
"""Kinds whose pods Kueue queues: the Workloads belong to the pods."""
_MOST_NAMED: Final = 8
_DEFAULT_QUEUE: Final = "default"
"""The LocalQueue of jobs that name none when they are created.

Source: kueue@v0.19.2 pkg/controller/jobframework/defaults.go.
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """The objects that are read, and a sentence about each group of those that are not."""

    manifests: Sequence[Manifest]
    left_out: Sequence[str]


def queue_of_job(manifest: Manifest) -> str:
    """The LocalQueue that a job names; empty where it names none."""
    return str(inside(manifest, "metadata", "labels").get(QUEUE_LABEL) or "")


def is_unmanaged(manifest: Manifest) -> bool:
    """Whether this is a job that names no LocalQueue."""
    return manifest.get("kind") in JOBS and not queue_of_job(manifest)


def disabled_kinds(manifests: Iterable[Manifest]) -> Mapping[str, Manifest]:
    """Kinds of jobs that Kueue passes over, each with the ConfigMap whose integrations do not name it.

    Empty where Kueue's Configuration is not among the objects.
    """
    for config, configuration in configurations_in(manifests):
        enabled_names = {kind.kind for kind in enabled_kinds(configuration)}
        return {kind: config for kind in JOBS if kind not in enabled_names}
    return {}


def unmanaged_namespaces(manifests: Iterable[Manifest]) -> Mapping[str, Manifest]:
    """Namespaces with jobs all of which Kueue passes over, each with the ConfigMap whose selector leaves it out.

    Empty where Kueue's Configuration is not among the objects. Source: kueue@v0.19.2
    pkg/controller/jobframework/reconciler.go, and apis/config/v1beta2/defaults.go for the default of the selector.
    """
    manifest_list = list(manifests)
    for config, configuration in configurations_in(manifest_list):
        from kueue_admission.api.selector import LabelSelector  # The models take a while.

        own = str(inside(config, "metadata").get("namespace") or KUEUE_NAMESPACE)
        others = {"key": NAMESPACE_NAME_LABEL, "operator": "NotIn", "values": ["kube-system", own]}
        default = {"matchExpressions": [others]}
        try:
            selector = read_stored(LabelSelector, configuration.get("managedJobsNamespaceSelector") or default)
        except SpecError:
            return {}
        labels = {
            _name(m): {**inside(m, "metadata", "labels"), NAMESPACE_NAME_LABEL: _name(m)}
            for m in _of(manifest_list, "Namespace")
        }
        kinds = (*JOBS, *WITH_QUEUE)
        used_namespaces = {_namespace(m) for m in manifest_list if m.get("kind") in kinds}
        return {
            namespace: config
            for namespace in used_namespaces
            if not selector.matches(labels.get(namespace, {NAMESPACE_NAME_LABEL: namespace}))
        }
    return {}


def take(manifests: Iterable[Manifest]) -> Taken:
    """What Kueue has to do with of these objects, each thing once."""
    manifest_list = list(manifests)
    defaults = {_namespace(m) for m in _of(manifest_list, "LocalQueue") if _name(m) == _DEFAULT_QUEUE}
    outside = unmanaged_namespaces(manifest_list)
    defaults -= outside.keys()
    manifest_list = [_with_default_queue(m) if _namespace(m) in defaults else m for m in manifest_list]
    single = without_stood_for(manifest_list)
    unmanaged_manifests = [m for m in single if is_unmanaged(m)]
    disabled_names = disabled_kinds(manifest_list)
    passed_over = [m for m in single if m.get("kind") in disabled_names and queue_of_job(m)]
    jobs = [m for m in single if is_job(m) and queue_of_job(m) and m.get("kind") not in disabled_names]
    apart = [m for m in jobs if _namespace(m) in outside]
    stood_for = _owners_of_workloads(manifest_list)
    unread = [m for m in single if m.get("kind") in NOT_READ and queue_of_job(m)]
    not_read = [m for m in unread if key_of(m) not in stood_for]
    live = [m for m in single if m.get("kind") in _BY_PODS and _is_live(m) and queue_of_job(m)]
    without = [m for m in live if inside(m, "spec").get("replicas") != 0 and not _has_pods(m, stood_for)]
    gone = {id(m) for m in (*unmanaged_manifests, *passed_over, *apart, *unread, *live)}
    notes = [
        *_notes_of(unmanaged_manifests, "Kueue does not manage what names no LocalQueue"),
        *_notes_of(passed_over, "integrations.frameworks of Kueue's Configuration does not name their kind"),
        *_notes_of(apart, "managedJobsNamespaceSelector of Kueue's Configuration leaves their namespace out"),
        *_notes_of(not_read, "the pods of their kinds are not read"),
        *_notes_of(without, "none of the Workloads of their pods is among the objects"),
    ]
    return Taken([m for m in single if id(m) not in gone], notes)


def without_queue(manifests: Sequence[Manifest]) -> Taken:
    """Without what waits in a live cluster and whose LocalQueue or ClusterQueue is not there, and such LocalQueues."""
    queues = {_name(m) for m in _of(manifests, "ClusterQueue")}
    dangling = [m for m in _of(manifests, "LocalQueue") if str(inside(m, "spec").get("clusterQueue")) not in queues]
    known_queues = {key_of(m) for m in _of(manifests, "LocalQueue")} - {key_of(m) for m in dangling}
    waiting = [m for m in _of(manifests, "Workload") if not inside(m, "status", "admission")]
    queues_of = {id(m): inside(m, "spec").get("queueName") for m in waiting}
    queues_of |= {id(m): queue_of_job(m) for m in manifests if is_job(m) and is_live(m)}
    named_manifests = [m for m in manifests if id(m) in queues_of]
    lost = [m for m in named_manifests if f"{_namespace(m)}/{queues_of[id(m)]}" not in known_queues]
    if not lost and not any(map(is_live, dangling)):
        return Taken(manifests, ())
    gone = {id(m) for m in (*lost, *dangling)}
    notes = [
        *_notes_of(dangling, "their ClusterQueue is not there"),
        *_notes_of(lost, "their LocalQueue is not there"),
    ]
    return Taken([m for m in manifests if id(m) not in gone], notes)


def missing_kinds(manifests: Iterable[Manifest]) -> dict[str, str]:
    """The kinds that are missing although other objects refer to them, each with a sentence for the user: answers about
    those others may be wrong."""
    manifest_list = list(manifests)
    there = {str(m.get("kind")) for m in manifest_list}
    queued_manifests = [m for m in manifest_list if m.get("kind") == "Workload" or is_job(m)]
    needs = {
        "ClusterQueue": [*queued_manifests, *_of(manifest_list, "LocalQueue")],
        "LocalQueue": queued_manifests,
        "ResourceFlavor": [m for m in _of(manifest_list, "ClusterQueue") if inside(m, "spec").get("resourceGroups")],
        "Topology": (
            by_topology := [m for m in _of(manifest_list, "ResourceFlavor") if inside(m, "spec").get("topologyName")]
        ),
        "Node": by_topology,
        "Pod": by_topology,
        "AdmissionCheck": [
            m
            for m in _of(manifest_list, "ClusterQueue")
            if inside(m, "spec", "admissionChecksStrategy").get("admissionChecks")
        ],
        "Namespace": [m for m in _of(manifest_list, "ClusterQueue") if inside(m, "spec").get("namespaceSelector")],
        "RuntimeClass": [m for m in queued_manifests if any(map(_lacks_overhead, _pod_specs(m)))],
    }
    return {
        kind: f"there is no {kind} among the objects, and {label_of(users[0])} {_WHY[kind]}; "
        f"add what `kubectl get {RESOURCES[kind]} -A -o yaml` prints"
        for kind, users in needs.items()
        if users and kind not in there
    }


_WHY: Final[Mapping[str, str]] = {
    "ClusterQueue": "needs one",
    "LocalQueue": "needs one",
    "ResourceFlavor": "names one",
    "Topology": "names one",
    "Node": "has a topology: no pod has a place without nodes",
    "Pod": "has a topology: what pods outside Kueue use of its nodes is not known",
    "AdmissionCheck": "names one",
    "Namespace": "selects them by labels: each counts as if it had no label but its name",
    "RuntimeClass": "names one: what it adds to the requests of pods is not known",
}
"""What the object does with the missing kind, by that kind."""


def _pod_specs(manifest: Manifest) -> list[Manifest]:
    """Those of a Workload, a Job, a Pod, and of kinds with the same fields."""
    spec = inside(manifest, "spec")
    pod_sets = [inside(pod_set, "template", "spec") for pod_set in maps_in(spec.get("podSets"))]
    return [spec, inside(spec, "template", "spec"), *pod_sets]


def _lacks_overhead(pod: Manifest) -> bool:
    """Whether the overhead of a pod is in its RuntimeClass alone: the API server copies it into Pods, not templates."""
    return bool(pod.get("runtimeClassName")) and "overhead" not in pod


def _of(manifests: Iterable[Manifest], kind: str) -> list[Manifest]:
    return [m for m in manifests if m.get("kind") == kind]


def _namespace(manifest: Manifest) -> str:
    return key_of(manifest).partition("/")[0]


def _name(manifest: Manifest) -> str:
    return str(inside(manifest, "metadata").get("name"))


def _is_live(manifest: Manifest) -> bool:
    """Whether the API server has it, so that Kueue has seen it."""
    return bool(inside(manifest, "metadata").get("uid"))


def _with_default_queue(manifest: Manifest) -> Manifest:
    """A job that is yet to be created, with the LocalQueue that Kueue gives it."""
    if not is_unmanaged(manifest) or _is_live(manifest) or any(owners_of(manifest)):
        return manifest
    metadata: dict[str, Any] = dict(inside(manifest, "metadata"))
    metadata["labels"] = {**inside(metadata, "labels"), QUEUE_LABEL: _DEFAULT_QUEUE}
    return {**manifest, "metadata": metadata}


def _owners_of_workloads(manifests: Iterable[Manifest]) -> list[str]:
    return [name for m in _of(manifests, "Workload") for _, name in owners_of(m)]


def _has_pods(manifest: Manifest, owners: Iterable[str]) -> bool:
    """Whether Workloads belong to pods of a Deployment or StatefulSet, whose names begin with its own."""
    key = key_of(manifest)
    return any(owner == key or owner.startswith(f"{key}-") for owner in owners)


def _notes_of(manifests: Sequence[Manifest], why: str) -> Iterator[str]:
    if manifests:
        names = ", ".join(label_of(m) for m in manifests[:_MOST_NAMED])
        more = f" and {len(manifests) - _MOST_NAMED} more" if len(manifests) > _MOST_NAMED else ""
        yield f"left out, since {why}: {names}{more}"
