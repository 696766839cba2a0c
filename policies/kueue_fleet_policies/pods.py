"""Where the pods of a Kubernetes object are described."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.values import at, items

_APPS: Final = "kubernetes:apps/v1:"
_BATCH: Final = "kubernetes:batch/v1:"
WORKLOAD_TYPES: Final = (
    f"{_APPS}Deployment",
    f"{_APPS}DaemonSet",
    f"{_APPS}StatefulSet",
    f"{_APPS}ReplicaSet",
    f"{_BATCH}Job",
    f"{_BATCH}CronJob",
    "kubernetes:core/v1:Pod",
    "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet",
)
"""Pulumi types of objects with pods."""


def pod_specs(resource: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and content of every known pod description."""
    match resource.kind:
        case "Pod":
            paths = [("spec", resource.get("spec"))]
        case "CronJob":
            paths = [("spec.jobTemplate.spec.template.spec", resource.get("spec.jobTemplate.spec.template.spec"))]
        case "JobSet":
            paths = [
                (f"spec.replicatedJobs[{index}].template.spec.template.spec", at(job, "template.spec.template.spec"))
                for index, job in enumerate(items(resource.get("spec.replicatedJobs")))
            ]
        case _:
            paths = [("spec.template.spec", resource.get("spec.template.spec"))]
    for path, spec in paths:
        if isinstance(spec, Mapping):
            yield path, spec


def containers(path: str, spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and content of every known container of a pod, those that run first or are added later included."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec.get(key))):
            if isinstance(container, Mapping):
                yield f"{path}.{key}[{index}]", container
