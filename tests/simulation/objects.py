"""Kubernetes objects for the tests of the simulation."""

from __future__ import annotations

from typing import Any

from kueue_admission.simulate.documents import Document

API = "kueue.x-k8s.io/v1beta2"


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


def queue(name: str = "cq", cpu: int = 2, **spec: Any) -> dict[str, Any]:
    flavors = [{"name": "rf", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    return {
        "apiVersion": API,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, "resourceGroups": groups, **spec},
    }


def cluster(**spec: Any) -> list[dict[str, Any]]:
    """A flavor, a queue `cq`, a LocalQueue `lq`, and a priority class `high`."""
    return [
        {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "rf"}},
        queue(**spec),
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": "lq", "namespace": "default"},
            "spec": {"clusterQueue": "cq"},
        },
        {"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 100},
    ]


def job(name: str, second: int, run: str | None = None, cpu: str = "2", **labels: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "creationTimestamp": at(second),
            "labels": {
                "kueue.x-k8s.io/queue-name": "lq",
                **{f"kueue.x-k8s.io/{key}": value for key, value in labels.items()},
            },
            "annotations": {} if run is None else {"kueue-fleet.dev/run-seconds": run},
        },
        "spec": {"parallelism": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def documents(*objects: dict[str, Any]) -> list[Document]:
    return [Document(f"test.yaml:{index}", data) for index, data in enumerate(objects)]
