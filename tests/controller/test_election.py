from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kueue_fleet.controller import election
from kueue_fleet.controller.election import LeaseLock, Terms, lead
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.client import KubeApi

pytestmark = pytest.mark.usefixtures("no_waiting")
QUICK = Terms(lease=3, renew=2, retry=1)


class OneLease:
    """An API server with one Lease, or none."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.version = 1
        self.broken = False

    def _check(self) -> None:
        if self.broken:
            raise ApiError(0, "", "unreachable")

    async def get(self, path: str) -> Json:
        self._check()
        assert path == "/apis/coordination.k8s.io/v1/namespaces/ns/leases/name"
        if self.lease is None:
            raise ApiError(404, "NotFound", "no lease")
        return dict(self.lease)

    async def create(self, path: str, body: Json) -> Json:
        self._check()
        if self.lease is not None:
            raise ApiError(409, "AlreadyExists", "there is one")
        return await self._keep(body)

    async def replace(self, path: str, body: Json) -> Json:
        self._check()
        assert self.lease is not None
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "somebody was faster")
        return await self._keep(body)

    async def _keep(self, body: Json) -> Json:
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return dict(self.lease)

    @property
    def holder(self) -> Any:
        return self.lease["spec"]["holderIdentity"] if self.lease else None


class Replica:
    def __init__(self, server: OneLease, identity: str) -> None:
        self.working = asyncio.Event()
        self.stopped = False
        api = cast("KubeApi", server)
        self.task = asyncio.create_task(lead(api, "name", "ns", identity, self.work, QUICK))

    async def work(self) -> None:
        self.working.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped = True

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def test_one_leads_and_the_other_follows_as_soon_as_the_lease_is_let_go() -> None:
    server = OneLease()
    first = Replica(server, "a")
    await asyncio.wait_for(first.working.wait(), 5)
    second = Replica(server, "b")
    await asyncio.sleep(0.1)
    assert (server.holder, second.working.is_set()) == ("a", False)
    await first.end()
    assert first.stopped
    assert server.holder == ""
    await asyncio.wait_for(second.working.wait(), 5)
    assert server.holder == "b"
    await second.end()


async def test_a_leader_that_cannot_renew_stops_before_the_lease_ends() -> None:
    server = OneLease()
    first = Replica(server, "a")
    await asyncio.wait_for(first.working.wait(), 5)
    server.broken = True
    await asyncio.wait_for(first.task, 10)
    assert first.stopped


async def test_what_the_work_raises_ends_it() -> None:
    async def fail() -> None:
        raise RuntimeError("a bug")

    server = OneLease()
    with pytest.raises(RuntimeError, match="a bug"):
        await lead(cast("KubeApi", server), "name", "ns", "a", fail, QUICK)
    assert server.holder == ""


async def test_a_lease_of_somebody_else_is_never_let_go() -> None:
    server = OneLease()
    await server.create("", {"metadata": {"name": "name"}, "spec": {"holderIdentity": "other"}})
    lock = LeaseLock(cast("KubeApi", server), "name", "ns", "me")
    assert (await lock.get("name", "ns"))[0] is True
    await lock.release()
    assert server.holder == "other"


async def test_letting_go_of_the_lease_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(election, "_RELEASE_SECONDS", 0.2)
    server = OneLease()
    first = Replica(server, "a")
    await asyncio.wait_for(first.working.wait(), 5)

    async def silent(path: str, body: Json) -> Json:
        await asyncio.Event().wait()
        return {path: body}

    server.replace = silent  # type: ignore[method-assign]
    await asyncio.wait_for(first.end(), 2)
    assert first.stopped


async def test_a_leader_whose_lease_was_taken_stops_at_once() -> None:
    server = OneLease()
    first = Replica(server, "a")
    await asyncio.wait_for(first.working.wait(), 5)
    assert server.lease is not None
    await server.replace("", {**server.lease, "spec": {**server.lease["spec"], "holderIdentity": "b"}})
    await asyncio.wait_for(first.task, QUICK.retry + 0.8)
    assert first.stopped
    assert server.holder == "b"


async def test_an_answer_that_comes_too_late_is_none() -> None:
    server = OneLease()
    first = Replica(server, "a")
    await asyncio.wait_for(first.working.wait(), 5)

    async def silent(path: str) -> Json:
        await asyncio.Event().wait()
        return {"path": path}

    server.get = silent  # type: ignore[method-assign]
    await asyncio.wait_for(first.task, QUICK.lease + 0.8)
    assert first.stopped
