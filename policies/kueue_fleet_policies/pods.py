"""Where the pods of a Kubernetes object are described."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.values import items, objects_in

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_SHARED: Final = ("hostIPC", "hostNetwork", "hostPID")


def pod_specs(resource: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and content of every known pod description, wherever in the object it is: operators add kinds of their own.

    A chart or a file of manifests has no kind; its objects are resources themselves.
    """
    if not resource.lacks("kind"):
        yield from ((path, spec) for path, spec in objects_in(resource.props) if _describes_pods(spec))


def _describes_pods(found: Mapping[str, Any]) -> bool:
    """Whether an object has what only a pod has; in a schema of pods, these names stand for objects."""
    lists = [found.get(key) for key in (*_CONTAINERS, "volumes")]
    listed = any(isinstance(one, list) and any(isinstance(item, Mapping) for item in one) for one in lists)
    return listed or any(isinstance(found.get(key), bool) for key in _SHARED)


def containers(path: str, spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and content of every known container of a pod, those that run first or are added later included."""
    for key in _CONTAINERS:
        for index, container in enumerate(items(spec.get(key))):
            if isinstance(container, Mapping):
                yield f"{path}.{key}[{index}]", container


def security_contexts(resource: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and content of every known security context, also of a pod of which a patch says nothing else."""
    if not resource.lacks("kind"):
        yield from _called("securityContext", resource)


def metadata(resource: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and content of the known metadata of an object, and of the pods and other objects that it describes."""
    yield from _called("metadata", resource)


def _called(name: str, resource: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((path, value) for path, value in objects_in(resource.props) if path.rpartition(".")[2] == name)
