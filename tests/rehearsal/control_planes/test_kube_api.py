"""The client against a small API server made of aiohttp, with the faults that a real one has."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from kueue_fleet.kube.answers import ApiError, object_key
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi, Watched
from kueue_rehearsal.node_agent.webhook_certificate import service_certificate

WAIT_SECONDS = 10.0
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def thing(name: str, version: int, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version), "managedFields": ["long"]}, **fields}


def status(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": f"it is {reason}"}


class FakeServer:
    """Lists `items`, then plays one script of events per watch; a script that ends closes the connection."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.items_after_watch: list[dict[str, Any]] | None = None
        self.scripts: list[list[tuple[str, dict[str, Any]]]] = []
        self.watched_from: list[str] = []
        self.lists = 0
        self.absent = 0
        self.page_size: int | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1/namespaces":
            metadata = {"uid": "one", "name": "kube-system"}
            return web.json_response({"metadata": {"resourceVersion": "100"}, "items": [{"metadata": metadata}]})
        if "watch" in request.query:
            return await self._watch(request)
        self.lists += 1
        if self.absent > 0:
            self.absent -= 1
            return web.json_response(status(404, "NotFound"), status=404)
        start = int(request.query.get("continue", "0"))
        end = len(self.items) if self.page_size is None else start + self.page_size
        metadata = {"resourceVersion": "10", **({"continue": str(end)} if end < len(self.items) else {})}
        return web.json_response({"metadata": metadata, "items": self.items[start:end]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.watched_from.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        if not self.scripts:
            await asyncio.sleep(WAIT_SECONDS)
            return response
        for kind, item in self.scripts.pop(0):
            await response.write(json.dumps({"type": kind, "object": item}).encode() + b"\n")
        if self.items_after_watch is not None:
            self.items = self.items_after_watch
        return response


@pytest.fixture
async def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
async def api(server: FakeServer, tmp_path: Path) -> AsyncIterator[ControlPlaneApi]:
    ca_file = tmp_path / "ca.crt"
    now = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
    ca_file.write_bytes(service_certificate("s", "n", now).ca)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with (
        TestServer(app) as running,
        ControlPlaneApi(str(running.make_url("")), ca_file=ca_file, token="secret", field_manager="test") as api,
    ):
        yield api


async def follow(api: ControlPlaneApi, until: Callable[[Watched], bool]) -> tuple[Watched, list[tuple[str, bool]]]:
    """Runs a watch until the condition holds; returns it and (key, whether it is there) of each change."""
    changes: list[tuple[str, bool]] = []
    watched = Watched(api, "/things", on_change=lambda key, _, new: changes.append((key, new is not None)))
    task = asyncio.create_task(watched.run())
    async with asyncio.timeout(WAIT_SECONDS):
        while not until(watched):
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return watched, changes


async def test_events_are_applied_and_bookmarks_only_move_the_version(server: FakeServer, api: ControlPlaneApi) -> None:
    server.items = [thing("a", 5)]
    server.scripts = [
        [
            ("ADDED", thing("b", 11)),
            ("BOOKMARK", thing("", 15)),
            ("DELETED", thing("a", 16)),
        ]
    ]
    watched, changes = await follow(api, lambda one: len(server.watched_from) == 2)
    assert changes == [("a", True), ("b", True), ("a", False)]
    assert watched.objects["b"] == {"metadata": {"name": "b", "resourceVersion": "11"}}
    # A watch that the server ended goes on where it was, without a new list.
    assert (server.watched_from, server.lists) == (["10", "16"], 1)


async def test_an_expired_version_is_answered_by_a_new_list(server: FakeServer, api: ControlPlaneApi) -> None:
    server.items = [thing("a", 5), thing("gone", 6)]
    server.scripts = [[("ADDED", thing("gone", 6)), ("ERROR", status(410, "Expired"))]]
    server.items_after_watch = [thing("a", 5), thing("new", 20)]
    watched, changes = await follow(api, lambda _: len(server.watched_from) == 2)
    assert set(watched.objects) == {"a", "new"}
    assert changes[-2:] == [("new", True), ("gone", False)]


async def test_a_resource_that_comes_later_is_waited_for(server: FakeServer, api: ControlPlaneApi) -> None:
    server.absent = 2
    server.items = [thing("a", 5)]
    watched, _ = await follow(api, lambda one: one.synced.is_set())
    assert set(watched.objects) == {"a"}


async def test_long_lists_come_in_pages_and_long_events_whole(server: FakeServer, api: ControlPlaneApi) -> None:
    server.items = [thing(str(number), number) for number in range(5)]
    server.page_size = 2
    server.scripts = [[("ADDED", thing("big", 11, data="x" * 1_000_000))]]
    watched, _ = await follow(api, lambda one: "big" in one.objects)
    assert len(watched.objects) == 6
    assert server.lists == 3


async def test_a_refusal_carries_the_servers_words(server: FakeServer, api: ControlPlaneApi) -> None:
    server.absent = 2
    with pytest.raises(ApiError, match=r"it is NotFound \(404 NotFound\)") as caught:
        await api.get("/things/x")
    assert caught.value.is_not_found
    assert await api.find("/things/x") is None


def test_keys() -> None:
    assert object_key({"metadata": {"name": "a"}}) == "a"
    assert object_key({"metadata": {"name": "a", "namespace": "n"}}) == "n/a"


def test_the_token_is_not_in_the_representation(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.crt"
    ca_file.write_bytes(service_certificate("s", "n", datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)).ca)
    assert "secret" not in repr(ControlPlaneApi("https://h", ca_file=ca_file, token="secret", field_manager="t"))
