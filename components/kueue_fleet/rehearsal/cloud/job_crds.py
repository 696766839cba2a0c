"""Resource definitions of the kinds of job whose operators are in the clusters without the fleet.

They are served, so that Kueue and MultiKueue know these kinds. Fields are not looked at, and nothing runs the jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kueue_fleet.kube.answers import Json
from kueue_fleet.kueue_api.job_kinds import KINDS

_TRAIN_JOB: Final = "trainer.kubeflow.org/trainjob"
_RUNTIMES: Final = ("TrainingRuntime", "ClusterTrainingRuntime")
"""What Kueue reads beside TrainJobs."""


def job_definitions(frameworks: Iterable[str]) -> list[Json]:
    """A CustomResourceDefinition for each kind of these frameworks that Kubernetes itself does not have."""
    kinds = [KINDS[name] for name in frameworks if "." in KINDS[name].group]
    train_job = KINDS[_TRAIN_JOB]
    runtimes = _RUNTIMES if train_job in kinds else ()
    # Kueue begins with TrainJobs once they are served, and needs the runtimes then.
    return [
        *(_definition(train_job.group, f"{kind.lower()}s", kind, train_job.version) for kind in runtimes),
        *(_definition(kind.group, kind.plural, kind.kind, kind.version) for kind in kinds),
    ]


def _definition(group: str, plural: str, kind: str, version: str) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, as its operator has it"},
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
