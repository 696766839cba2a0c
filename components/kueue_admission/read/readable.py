"""What a live cluster holds, without what cannot be read: that ends no answer about the rest.

A cluster may hold what this release does not know, or what Kueue itself passes over, such as a job whose priority class
is gone. What names such an object cannot be judged either, and is left out with it. So is a job that is yet to be
created; of queues and flavors without creationTimestamp and uid, on which all depends, it is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kueue_admission.decide.model import Configuration
from kueue_admission.kernel.form_rules import OBJECT
from kueue_admission.kernel.job_rules import NO_WORKLOAD
from kueue_admission.kernel.manifest import Manifest, inside, key_of, maps_in
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.dumps import queue_of_job
from kueue_admission.read.kueue_objects import LeftOut, Parsed, parse_objects
from kueue_admission.read.manifests import QUEUED, label_of
from kueue_admission.read.printed import PrintedWorkload

_NAMED_BY_NAMESPACE = (*QUEUED, "LocalQueue")


def parse_readable(
    manifests: Iterable[Manifest], configuration: Configuration | None = None, left_out: Sequence[LeftOut] = ()
) -> Parsed:
    """`parse_objects` without what was left out before, what cannot be read, and what names either of them.

    Raises ObjectError, NotModelledError for what is yet to be created, and is no job.
    """
    manifest_list = list(manifests)
    readable_objects = parse_objects(_without(manifest_list, left_out), configuration, live=True)
    unread = [*left_out, *readable_objects.left_out]
    lost = list(_with_them(manifest_list, unread))
    if unread:
        readable_objects = parse_objects(_without(manifest_list, [*unread, *lost]), configuration, live=True)
    return readable_objects._replace(left_out=(*unread, *lost))


def is_without_workload(left_out: LeftOut) -> bool:
    """Whether Kueue makes no Workload of it, so that it touches nothing else.

    Source: kueue@v0.19.2 pkg/controller/jobframework/reconciler.go (PrepareWorkloadPriority),
    apis/kueue/v1beta2/workload_types.go (podSets).
    """
    return all(problem.rule is NO_WORKLOAD for problem in left_out.problems)


def why(left_out: LeftOut) -> str:
    """Why it is left out, in one clause behind its name."""
    label = label_of(left_out.manifest)
    wrong_fields = [
        (problem.path.removeprefix(label).removeprefix("."), problem.wrong) for problem in left_out.problems
    ]
    return " and ".join(f"{path}: {wrong}" if path else wrong for path, wrong in dict.fromkeys(wrong_fields))


def notes(left_out: Iterable[LeftOut]) -> Iterator[str]:
    """A sentence for the user about each, which names what is not known because of it."""
    for object_left_out in left_out:
        note_text = f"left out: {label_of(object_left_out.manifest)}: {why(object_left_out)}"
        if is_without_workload(object_left_out):
            yield f"{note_text}; Kueue makes no Workload of it"
        elif object_left_out.manifest.get("kind") in QUEUED:
            yield f"{note_text}; what it takes from others of its queue and cohort is not known"
        else:
            yield f"{note_text}; what depends on it is not known"


def notes_of_problems(problems: Iterable[Problem]) -> Iterator[str]:
    """The same for what is no object."""
    for problem in problems:
        yield f"left out: {problem}; what depends on it is not known"


def _without(manifests: Iterable[Manifest], left_out: Iterable[LeftOut]) -> list[Manifest]:
    gone = {id(object_left_out.manifest) for object_left_out in left_out}
    return [manifest for manifest in manifests if id(manifest) not in gone]


def _with_them(manifests: Sequence[Manifest], left_out: Iterable[LeftOut]) -> Iterator[LeftOut]:
    """What names an object that is left out, or one that does so."""
    gone = {_identity(object_left_out.manifest) for object_left_out in left_out}
    rest = [manifest for manifest in manifests if _identity(manifest) not in gone]
    while True:
        dependents = [
            (manifest, named_keys) for manifest in rest if (named_keys := gone.intersection(_names_in(manifest)))
        ]
        if not dependents:
            return
        for manifest, named_keys in dependents:
            kind, name = min(named_keys)
            yield LeftOut(manifest, (OBJECT.at("", f"names {kind} {name}, which is left out", "look at that one"),))
        gone |= {_identity(manifest) for manifest, _ in dependents}
        rest = [manifest for manifest in rest if _identity(manifest) not in gone]


def _identity(manifest: Manifest) -> tuple[str, str]:
    kind, key = str(manifest.get("kind")), key_of(manifest)
    return kind, key if kind in _NAMED_BY_NAMESPACE else key.partition("/")[2]


def _names_in(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Kind and name of what decides about the object, by its own fields."""
    kind, spec = manifest.get("kind"), inside(manifest, "spec")
    if kind == "ClusterQueue":
        yield "Cohort", str(spec.get("cohortName"))
        for group in maps_in(spec.get("resourceGroups")):
            yield from (("ResourceFlavor", str(flavor.get("name"))) for flavor in maps_in(group.get("flavors")))
        checks = inside(spec, "admissionChecksStrategy").get("admissionChecks")
        yield from (("AdmissionCheck", str(check.get("name"))) for check in maps_in(checks))
    elif kind in QUEUED:
        printed_workload = PrintedWorkload.of(manifest)
        queue = printed_workload.queue if kind == QUEUED[0] else queue_of_job(manifest)
        yield "LocalQueue", f"{printed_workload.namespace}/{queue}"
        yield "ClusterQueue", printed_workload.cluster_queue
    else:
        fields = {"Cohort": "parentName", "ResourceFlavor": "topologyName", "LocalQueue": "clusterQueue"}
        named_kinds = {"Cohort": "Cohort", "ResourceFlavor": "Topology", "LocalQueue": "ClusterQueue"}
        if kind in fields:
            yield named_kinds[kind], str(spec.get(fields[kind]))
