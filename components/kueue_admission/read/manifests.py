"""Objects as they are printed, of whatever quality: what they are called, whom they belong to, where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kueue_admission.kernel.manifest import Manifest, inside, is_object, key_of
from kueue_admission.kernel.names import QUEUE_LABEL
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.job_pod_sets import ROLES

WITH_QUEUE: Final = ("Deployment", "StatefulSet", "Pod")
"""Kinds that Kueue leaves alone unless they name a queue."""
JOBS: Final = tuple(kind for kind in ROLES if kind not in WITH_QUEUE)
"""Kinds of jobs, for which Kueue makes Workloads, and that are read."""
QUEUED: Final = ("Workload", *JOBS, *WITH_QUEUE)
"""Kinds of what may be queued, see `is_job`, in the order in which the core gives their workloads."""
NAMESPACED: Final = frozenset((*QUEUED, "LocalQueue", "LimitRange", "ResourceClaimTemplate", "TrainingRuntime"))
"""Kinds whose objects are in `default` where they name no namespace."""


def is_job(manifest: Manifest) -> bool:
    """Whether Kueue makes a Workload of it: a kind of job, or a Pod and the like with a queue that is not created yet.

    The Pods of a dump, which have a uid, mostly belong to jobs; their Workloads are in the dump.
    """
    if manifest.get("kind") not in WITH_QUEUE:
        return manifest.get("kind") in JOBS
    metadata = inside(manifest, "metadata")
    return QUEUE_LABEL in inside(metadata, "labels") and not metadata.get("uid")


def label_of(manifest: Manifest) -> str:
    """How the paths of problems of the object begin: `ClusterQueue gpu`, `Job team-vision/train`."""
    kind, metadata = manifest.get("kind"), inside(manifest, "metadata")
    namespace = metadata.get("namespace") or ("default" if kind in NAMESPACED else "")
    return f"{kind} {namespace}/{metadata.get('name')}" if namespace else f"{kind} {metadata.get('name')}"


def owners_of(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Kind and `namespace/name` of the objects that own this one."""
    references = inside(manifest, "metadata").get("ownerReferences")
    namespace = key_of(manifest).partition("/")[0]
    for owner in references if isinstance(references, list) else ():
        if is_object(owner):
            yield str(owner.get("kind")), f"{namespace}/{owner.get('name')}"


def without_stood_for(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Without jobs for which there is a Workload, and those that belong to other jobs, as the Jobs of a JobSet do."""
    manifest_list = list(manifests)
    if not any(m.get("kind") in JOBS for m in manifest_list):
        return manifest_list
    stood_for = {owner for m in manifest_list if m.get("kind") == "Workload" for owner in owners_of(m)}
    return [
        m
        for m in manifest_list
        if m.get("kind") not in JOBS
        or ((m.get("kind"), key_of(m)) not in stood_for and all(kind not in JOBS for kind, _ in owners_of(m)))
    ]


def with_place(problem: Problem, places: Mapping[str, str]) -> Problem:
    """The problem, with the place in a file of the object that its path begins with, by `label_of`."""
    for end in range(len(problem.path), 0, -1):
        if problem.path[end : end + 1] in ("", ".", "("):
            where = places.get(problem.path[:end].rstrip())
            if where is not None:
                return problem.behind(where)
    return problem
