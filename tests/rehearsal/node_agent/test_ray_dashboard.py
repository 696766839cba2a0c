"""The stand-in for Ray's dashboards, asked as KubeRay asks them: as an HTTP proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import aiohttp
import pytest

from kueue_fleet.kube.answers import ApiError
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi
from kueue_rehearsal.node_agent.addresses import claim_address
from kueue_rehearsal.node_agent.ray_dashboard import PORT, RayDashboards

HEAD = "http://train-x7-head-svc.research.svc.cluster.local:8265"
RAY_JOB = {
    "metadata": {"name": "train"},
    "spec": {"entrypoint": "python train.py"},
    "status": {"jobId": "train-1"},
}


class Cluster:
    """What of the API is asked for."""

    def __init__(self) -> None:
        self.submitter: dict[str, Any] | None = None
        self.away = False

    async def get(self, path: str) -> dict[str, Any]:
        if self.away:
            raise ApiError(0, "", "away")
        assert path == "/apis/ray.io/v1/namespaces/research/rayjobs"
        return {"items": [{"metadata": {"name": "new"}, "spec": {}}, RAY_JOB]}

    async def find(self, path: str) -> dict[str, Any] | None:
        assert path == "/apis/batch/v1/namespaces/research/jobs/train"
        return self.submitter


class Asker:
    """KubeRay's side."""

    def __init__(self, cluster: Cluster, client: aiohttp.ClientSession, proxy: str) -> None:
        self.cluster, self._client, self._proxy = cluster, client, proxy

    async def __call__(self, path: str, method: str = "GET", host: str = HEAD) -> tuple[int, str]:
        async with self._client.request(method, f"{host}{path}", proxy=self._proxy) as answer:
            return answer.status, await answer.text()

    async def job(self, **status: Any) -> dict[str, Any]:
        self.cluster.submitter = {"status": status}
        async with self._client.get(f"{HEAD}/api/jobs/train-1", proxy=self._proxy) as answer:
            result: dict[str, Any] = await answer.json()
            return result


@pytest.fixture
async def ask() -> AsyncIterator[Asker]:
    cluster, address = Cluster(), claim_address("ray-dashboard-test")
    server = asyncio.create_task(RayDashboards(cast("ControlPlaneApi", cluster), address.ip).run())
    while True:
        try:
            _, writer = await asyncio.open_connection(address.ip, PORT)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            break
    async with aiohttp.ClientSession() as client:
        yield Asker(cluster, client, f"http://{address.ip}:{PORT}")
    server.cancel()
    await asyncio.gather(server, return_exceptions=True)
    address.release()


async def test_a_job_is_there_once_its_submitter_runs(ask: Asker) -> None:
    assert (await ask("/api/jobs/train-1"))[0] == 404
    ask.cluster.submitter = {"metadata": {"name": "train"}}
    assert (await ask("/api/jobs/train-1"))[0] == 404
    assert await ask.job(ready=1, active=1, startTime="2026-11-23T07:00:00Z") == {
        "type": "SUBMISSION",
        "submission_id": "train-1",
        "status": "RUNNING",
        "entrypoint": "python train.py",
        "message": "Job is currently running.",
        "start_time": 1795417200000,
    }
    assert (await ask("/api/jobs/other"))[0] == 404


async def test_a_job_ends_as_its_submitter(ask: Asker) -> None:
    result = await ask.job(succeeded=1, startTime="2026-11-23T07:00:00Z", completionTime="2026-11-23T07:00:05Z")
    assert (result["status"], result["end_time"] - result["start_time"]) == ("SUCCEEDED", 5000)
    # The Job tries again; Ray's job, which has failed, does not.
    assert (await ask.job(failed=1, ready=1, active=1))["status"] == "FAILED"


@pytest.mark.parametrize(
    ("path", "method", "host"),
    [
        ("/api/jobs/", "POST", HEAD),
        ("/api/jobs/train-1/stop", "POST", HEAD),
        ("/api/serve/applications/", "GET", HEAD),
        ("/api/jobs/train-1", "GET", "http://example.com"),
    ],
)
async def test_nothing_else_is_answered(ask: Asker, path: str, method: str, host: str) -> None:
    status, text = await ask(path, method, host)
    assert (status, text) == (503, f"{method} {path}: Ray does not run in a rehearsal")


async def test_an_api_server_that_is_away_is_no_answer(ask: Asker) -> None:
    ask.cluster.away = True
    assert (await ask("/api/jobs/train-1"))[0] == 503
