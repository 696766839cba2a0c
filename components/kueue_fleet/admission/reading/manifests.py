"""Objects as they are printed, of whatever quality: what they are called, whom they belong to, where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeGuard

Manifest = Mapping[str, Any]
"""An object of Kubernetes as plain data."""

JOBS: Final = ("Job", "JobSet")
"""Kinds for which Kueue makes Workloads, and that are read."""
WORKLOADS: Final = ("Workload", *JOBS)
"""What is queued."""
NAMESPACED: Final = frozenset((*WORKLOADS, "LocalQueue", "LimitRange", "Pod"))
"""Kinds whose objects are in `default` where they name no namespace."""


def is_object(data: object) -> TypeGuard[Manifest]:
    """Whether `data` has fields."""
    return type(data) is dict or isinstance(data, Mapping)  # The first is much cheaper to ask.


def inside(data: object, *names: str) -> Manifest:
    """The object at the end of these fields; empty where there is none."""
    for name in names:
        data = data.get(name) if is_object(data) else None
    return data if is_object(data) else {}


def key_of(manifest: Manifest) -> str:
    """`namespace/name` of a namespaced object."""
    metadata = inside(manifest, "metadata")
    return f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"


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


def conditions_of(manifest: Manifest) -> list[Manifest]:
    """The conditions in the status of an object."""
    conditions = inside(manifest, "status").get("conditions")
    return [each for each in conditions if is_object(each)] if isinstance(conditions, list) else []


def without_stood_for(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Without Jobs and JobSets for which there is a Workload, and Jobs that belong to a JobSet."""
    given = list(manifests)
    if not any(m.get("kind") in JOBS for m in given):
        return given
    stood_for = {owner for m in given if m.get("kind") == "Workload" for owner in owners_of(m)}
    return [
        m
        for m in given
        if m.get("kind") not in JOBS
        or ((m.get("kind"), key_of(m)) not in stood_for and all(kind != "JobSet" for kind, _ in owners_of(m)))
    ]


def with_place(problem: str, places: Mapping[str, str]) -> str:
    """The problem, behind the place in a file of the object that its path begins with, by `label_of`."""
    for end in range(len(problem) - 1, 0, -1):
        if problem[end] in ".:(":
            where = places.get(problem[:end].rstrip())
            if where is not None:
                return f"{where}: {problem}"
    return problem
