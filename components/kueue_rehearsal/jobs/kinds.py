"""The kinds of job that a rehearsal can submit, and of what jobs use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kueue_admission.api.job_kinds import KINDS

JOB_KINDS: Final = {
    KINDS[framework].kind: KINDS[framework]
    for framework in (
        "batch/job",
        "jobset.x-k8s.io/jobset",
        "ray.io/rayjob",
        "ray.io/raycluster",
        "trainer.kubeflow.org/trainjob",
        "leaderworkerset.x-k8s.io/leaderworkerset",
        "pod",
        "deployment",
        "statefulset",
    )
}
"""Those that something runs in a rehearsal: Kubernetes itself, or an operator that the fleet file can install."""
SERVICES: Final = frozenset({"RayCluster", "LeaderWorkerSet", "Deployment", "StatefulSet"})
"""Those that never finish on their own."""
USED_KINDS: Final = {
    "ConfigMap": ("", "v1", "configmaps"),
    "Secret": ("", "v1", "secrets"),
    "Service": ("", "v1", "services"),
    "HorizontalPodAutoscaler": ("autoscaling", "v2", "horizontalpodautoscalers"),
    "PodDisruptionBudget": ("policy", "v1", "poddisruptionbudgets"),
    "TrainingRuntime": ("trainer.kubeflow.org", "v1alpha1", "trainingruntimes"),
}
"""Group, version and plural of what jobs use, and people write beside them."""


def job_name(job: Mapping[str, Any]) -> str:
    """The name of a job, or what its generated name begins with."""
    return str(job["metadata"].get("name") or job["metadata"]["generateName"])
