"""Kinds of jobs whose operators the fleet does not install are served in a rehearsal."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from kueue_fleet.kube.answers import ApiError
from kueue_rehearsal.cloud import job_crds
from kueue_rehearsal.cloud.job_crds import job_definitions, serve_job_kinds


def names(*frameworks: str) -> list[str]:
    return [definition["metadata"]["name"] for definition in job_definitions(frameworks)]


def test_kinds_of_kubernetes_itself_need_no_definition() -> None:
    assert names("batch/job", "pod", "kubeflow.org/mpijob") == ["mpijobs.kubeflow.org"]


def test_train_jobs_come_after_their_runtimes() -> None:
    assert [name.partition(".")[0] for name in names("trainer.kubeflow.org/trainjob")] == [
        "trainingruntimes",
        "clustertrainingruntimes",
        "trainjobs",
    ]


class Api:
    """An API server that is away for the first request."""

    def __init__(self) -> None:
        self.away = True
        self.there: list[str] = []

    async def apply(self, path: str, definition: dict[str, Any]) -> None:
        if self.away:
            self.away = False
            raise ApiError(0, "", "connection refused")
        self.there.append(definition["metadata"]["name"])

    async def get(self, path: str) -> dict[str, Any]:
        return {"status": {"conditions": [{"type": "Established", "status": "True"}]}}


async def test_an_api_server_that_is_away_is_asked_again_and_later_names_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_crds, "_LOOK_SECONDS", 0.01)
    api, file = Api(), tmp_path / "frameworks.json"
    task = asyncio.create_task(serve_job_kinds(cast("Any", api), file, "batch"))
    try:
        for frameworks in (["kubeflow.org/mpijob"], ["kubeflow.org/mpijob", "kubeflow.org/tfjob"]):
            file.with_suffix(".new").write_text(json.dumps(frameworks))
            file.with_suffix(".new").replace(file)
            async with asyncio.timeout(10):
                while api.there != names(*frameworks):
                    await asyncio.sleep(0.01)
    finally:
        task.cancel()
