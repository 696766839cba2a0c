"""Resource definitions of the kinds of job whose operators are in the clusters without the fleet.

They are served, so that Kueue and MultiKueue know these kinds. Fields are not looked at, and nothing runs the jobs.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kueue_admission.api.job_kinds import KINDS
from kueue_fleet.kube.answers import ApiError, Json
from kueue_rehearsal.cloud.gke_crds import ANY_OBJECT, install_definition, resource_definition
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi

log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
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


async def serve_job_kinds(api: ControlPlaneApi, file: Path, cluster: str) -> None:
    """Has the cluster serve the kinds of the frameworks in FILE, a list in JSON, from when they are there."""
    served_kinds: set[str] = set()
    while True:
        wanted_kinds = set(json.loads(file.read_text())) if file.is_file() else set()
        try:
            for definition in job_definitions(sorted(wanted_kinds - served_kinds)):
                await install_definition(api, definition)
            served_kinds |= wanted_kinds
        except ApiError as error:
            log.info("%s: kinds of jobs: %s; trying again", cluster, error)
        await asyncio.sleep(_LOOK_SECONDS)


def _definition(group: str, plural: str, kind: str, version: str) -> Json:
    definition = resource_definition(group, plural, kind, version, ANY_OBJECT)
    definition["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, as its operator has it"}
    return definition
