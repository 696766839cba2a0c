"""Which pods a worker never runs, and how it says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kueue_fleet.kube.answers import ApiError
from kueue_rehearsal.node_agent import worker as worker_module
from kueue_rehearsal.node_agent.addresses import AddressError
from kueue_rehearsal.node_agent.containers import PodNode
from kueue_rehearsal.node_agent.programs import default_programs
from kueue_rehearsal.node_agent.worker import PodWorker
from kueue_rehearsal.paths import RehearsalPaths

Json = dict[str, Any]
DEADLINE_SECONDS = 10.0


class Api:
    """Takes every status."""

    server, ca_file = "https://127.0.0.1:1", Path("/dev/null")

    def __init__(self) -> None:
        self.statuses: list[Json] = []

    async def patch(self, path: str, body: Json, content_type: str) -> Json:
        self.statuses.append(body["status"])
        return {}


def pod(image: str = "nginx:1", **spec: Any) -> Json:
    containers = [{"name": "main", "image": image}, {"name": "side", "image": image}]
    metadata = {"name": "web", "namespace": "shop", "uid": "u-1"}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


@asynccontextmanager
async def running(made: Json, folder: Path) -> AsyncIterator[PodWorker]:
    anything: Any = None
    api: Any = Api()
    programs = default_programs(lambda name: Path("/bin/true"), RehearsalPaths(folder))
    node = PodNode(api, "system-0", "127.0.0.1", programs, anything, anything, anything)
    worker = PodWorker(node, made, folder, lambda: None)
    task = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while worker.refusal() is None:
                await asyncio.sleep(0.01)
        yield worker
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_an_image_without_a_program_is_refused_once_for_all_its_containers(tmp_path: Path) -> None:
    async with running(pod(), tmp_path) as worker:
        output = worker.refusal()
        assert output is not None
        assert output.count("no program on this machine stands in for image nginx:1") == 1
        assert not worker.is_curable
        # Whoever waits for it need not, once it goes.
        deleted = pod()
        deleted["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
        worker.update(deleted)
        assert worker.refusal() is None


async def test_what_the_node_does_not_have_is_refused(tmp_path: Path) -> None:
    result = pod("registry.k8s.io/kueue/kueue:v1", volumes=[{"name": "disk", "hostPath": {"path": "/"}}])
    async with running(result, tmp_path) as worker:
        assert worker.refusal() is not None
        assert str(worker.refusal()).startswith("spec.volumes[disk].hostPath: this node has only ")
        assert not worker.is_curable


async def test_a_taken_port_says_what_to_do_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(key: str) -> None:
        raise AddressError("127.70.0.2: port 8443 is taken; stop the program")

    monkeypatch.setattr(worker_module, "claim_address", taken)
    async with running(pod("registry.k8s.io/kueue/kueue:v1"), tmp_path) as worker:
        assert worker.refusal() == "127.70.0.2: port 8443 is taken; stop the program"
        assert worker.is_curable


async def test_a_port_that_is_free_again_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [8443]
    monkeypatch.setattr(worker_module, "taken_ports", lambda ip, ports: taken)
    monkeypatch.setattr(worker_module, "_RETRY_SECONDS", 0.01)
    async with running(pod("registry.k8s.io/kueue/kueue:v1"), tmp_path) as worker:
        assert "port 8443 is taken" in str(worker.refusal())
        assert "port 8443 is taken" in str(worker.delay())
        taken.clear()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while worker.refusal() is not None:
                await asyncio.sleep(0.01)


async def test_whatever_fails_in_a_pod_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter((OSError("no space left on device"), AddressError("127.70.0.2: port 8443 is taken")))

    def fails(key: str) -> None:
        raise next(failures)

    monkeypatch.setattr(worker_module, "claim_address", fails)
    monkeypatch.setattr(worker_module, "_RETRY_SECONDS", 0.01)
    async with running(pod("registry.k8s.io/kueue/kueue:v1"), tmp_path) as worker:
        assert worker.refusal() == "127.70.0.2: port 8443 is taken"


async def test_a_status_that_meets_another_writer_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter((ApiError(409, "Conflict", "the object has been modified"), None))
    written: list[Json] = []

    async def patch(self: Api, path: str, body: Json, content_type: str) -> Json:
        if error := next(answers, None):
            raise error
        written.append(body["status"])
        return {}

    monkeypatch.setattr(Api, "patch", patch)
    monkeypatch.setattr(worker_module, "_RETRY_SECONDS", 0.01)
    async with running(pod(), tmp_path), asyncio.timeout(DEADLINE_SECONDS):
        while not written:
            await asyncio.sleep(0.01)
