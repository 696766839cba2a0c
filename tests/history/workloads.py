"""A Workload as Kueue 0.19.2 prints it at moments of its life."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def condition(kind: str, at: str, status: str = "True", reason: str = "") -> Json:
    return {"type": kind, "status": status, "reason": reason or kind, "lastTransitionTime": at}


def workload(*conditions: Json, evictions: list[Json] | None = None, **status: Any) -> Json:
    """A job of team vision with two pods, and all of a pod that must not be kept."""
    container = {
        "name": "main",
        "image": "registry/secret-model:1",
        "command": ["train", "--password=hunter2"],
        "env": [{"name": "TOKEN", "value": "s3cr3t"}],
        "volumeMounts": [{"name": "key", "mountPath": "/key"}],
        "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": "1"}},
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "key", "secret": {"secretName": "the-key"}}],
        "serviceAccountName": "trainer",
        "nodeSelector": {"zone": "a"},
        "affinity": {"podAffinity": {}, "nodeAffinity": {}},
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "job-train-1",
            "namespace": "vision",
            "uid": "u1",
            "creationTimestamp": "2026-11-01T09:00:00Z",
            "labels": {"kueue-fleet.dev/regions": "eu", "team-secret": "x", "project": "p"},
            "ownerReferences": [{"kind": "Job", "name": "train", "uid": "j1", "controller": True}],
        },
        "spec": {
            "queueName": "gpu",
            "priority": 100,
            "priorityClassRef": {"name": "normal"},
            "podSets": [{"name": "main", "count": 2, "template": {"spec": spec}}],
        },
        "status": {
            "conditions": list(conditions),
            **({"schedulingStats": {"evictions": evictions}} if evictions is not None else {}),
            **status,
        },
    }


def request(*conditions: Json, name: str = "job-train-1-dws-2") -> Json:
    """The second ProvisioningRequest of that Workload, as GKE prints it."""
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {
            "name": name,
            "namespace": "vision",
            "uid": "r1",
            "creationTimestamp": "2026-11-01T09:01:01Z",
            "ownerReferences": [{"kind": "Workload", "name": "job-train-1", "uid": "u1", "controller": True}],
        },
        "status": {"conditions": list(conditions), "provisioningClassDetails": {"NodePoolName": "t4"}},
    }


ASSIGNED: Json = {
    "clusterQueue": "dws",
    "podSetAssignments": [{"name": "main", "count": 2, "flavors": {"cpu": "l4", "nvidia.com/gpu": "l4"}}],
}
RESERVED = condition("QuotaReserved", "2026-11-01T09:01:00Z")
ADMITTED = condition("Admitted", "2026-11-01T09:05:00Z")
FINISHED = condition("Finished", "2026-11-01T10:00:00Z", reason="Succeeded")
EVICTED = condition("Evicted", "2026-11-01T09:30:00Z", reason="Preempted")
EXHAUSTED = condition("Provisioned", "2026-11-01T09:01:03Z", "False", "ResourcePoolExhausted")
