from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from tests.kube.fake_api import FakeApi

from kueue_fleet.kube import watching
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.api import Opened
from kueue_fleet.kube.watching import PAGE, Watch

pytestmark = pytest.mark.usefixtures("no_waiting")
PATH = "/apis/x/things"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_FIRST_DELAY", 0.001)
    monkeypatch.setattr(watching, "_LAST_DELAY", 0.01)
    monkeypatch.setattr(watching, "_SHORT_WATCH", 0.01)


def thing(name: str, size: int = 1) -> Json:
    return {
        "kind": "Thing",
        "apiVersion": "x/v1",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"size": size},
    }


class Follower:
    """What a watch told."""

    def __init__(self, api: FakeApi, *, optional: bool, page: int) -> None:
        self.objects: dict[str, int] = {}
        self.connections: list[bool] = []
        self.told = 0
        self.listed: list[tuple[int, bool]] = []
        self.watch = Watch(
            api,
            PATH,
            self.listen,
            optional=optional,
            on_connection=self.connection,
            on_list=lambda version, reset: self.listed.append((version, reset)),
            page=page,
        )

    def listen(self, key: str, item: Json | None) -> None:
        self.told += 1
        if item is None:
            self.objects.pop(key, None)
        else:
            assert item["kind"] == "Thing"
            self.objects[key] = item["spec"]["size"]

    def connection(self) -> None:
        self.connections.append(self.watch.connected)


@asynccontextmanager
async def following(api: FakeApi, *, optional: bool = False, page: int = PAGE) -> AsyncIterator[Follower]:
    follower = Follower(api, optional=optional, page=page)
    task = asyncio.create_task(follower.watch.run())
    try:
        await asyncio.wait_for(follower.watch.synced.wait(), 5)
        yield follower
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not look():
            await asyncio.sleep(0.001)


async def test_it_lists_and_then_follows() -> None:
    api = FakeApi()
    api.put(PATH, thing("a"))
    async with following(api) as follower:
        assert follower.objects == {"ns/a": 1}
        api.put(PATH, thing("b", 2))
        api.put(PATH, thing("a", 3))
        await until(lambda: follower.objects == {"ns/a": 3, "ns/b": 2})
        api.remove(PATH, "ns/a")
        await until(lambda: follower.objects == {"ns/b": 2})
        assert follower.watch.lists == 1


async def test_an_object_that_nobody_understands_keeps_nobody_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    api = FakeApi()
    api.put(PATH, thing("a"))
    api.put(PATH, thing("b") | {"spec": None})
    async with following(api) as follower:
        api.put(PATH, thing("c", 3))
        await until(lambda: follower.objects == {"ns/a": 1, "ns/c": 3})
    assert "object not understood" in caplog.text


async def test_long_lists_come_in_pages() -> None:
    api = FakeApi()
    for index in range(8):
        api.put(PATH, thing(f"t{index}"))
    async with following(api, page=3) as follower:
        assert len(follower.objects) == 8
        assert api.requests.count(f"GET {PATH}") == 3


async def test_a_dropped_watch_goes_on_where_it_was() -> None:
    api = FakeApi()
    async with following(api) as follower:
        api.drop_watches()
        api.put(PATH, thing("a"))
        await until(lambda: follower.objects == {"ns/a": 1})
        assert follower.watch.lists == 1
        await until(lambda: follower.watch.connected)
        assert follower.connections == [True, False, True]


async def test_too_old_a_version_means_a_new_list_which_also_tells_what_is_gone() -> None:
    api = FakeApi()
    api.put(PATH, thing("a"))
    api.put(PATH, thing("b"))
    async with following(api) as follower:
        api.failures = [ApiError(0, "", "unreachable"), ApiError(410, "Expired", "too old")]
        api.lists[PATH].pop("ns/a")
        api.drop_watches()
        await until(lambda: follower.watch.lists == 2)
        assert follower.objects == {"ns/b": 1}


async def test_a_server_that_does_not_answer_is_asked_again() -> None:
    api = FakeApi()
    api.put(PATH, thing("a"))
    api.failures = [ApiError(0, "", "unreachable"), ApiError(500, "", "broken"), ApiError(403, "Forbidden", "no")]
    async with following(api) as follower:
        assert follower.objects == {"ns/a": 1}


async def test_a_kind_that_is_not_there_is_empty_and_looked_for_again() -> None:
    api = FakeApi()
    api.failures = [ApiError(404, "NotFound", "no such kind")] * 2
    async with following(api, optional=True) as follower:
        assert follower.objects == {}
        api.put(PATH, thing("a"))
        await until(lambda: follower.objects == {"ns/a": 1})


async def test_a_list_that_is_always_too_old_is_asked_for_again_and_again_but_not_without_a_pause() -> None:
    api = FakeApi()
    api.put(PATH, thing("a"))
    api.failures = [ApiError(410, "Expired", "too old")] * 3
    async with following(api) as follower:
        await asyncio.sleep(0)
        assert follower.objects == {"ns/a": 1}
    assert len(api.failures) == 0


async def test_a_server_that_does_not_begin_the_watch_again_is_not_followed() -> None:
    api = FakeApi()
    async with following(api) as follower:
        await until(lambda: follower.watch.connected)
        api.silent = True
        api.drop_watches()
        await until(lambda: not follower.watch.connected)
        await asyncio.sleep(0.05)
        assert not follower.watch.connected
        assert follower.connections == [True, False]


@pytest.mark.parametrize("refusal", [None, ApiError(410, "Expired", "too old"), ApiError(403, "Forbidden", "no watch")])
async def test_watches_that_end_at_once_are_not_begun_without_a_pause(
    monkeypatch: pytest.MonkeyPatch, refusal: ApiError | None
) -> None:
    monkeypatch.setattr(watching, "_LAST_DELAY", 1.0)
    api = FakeApi()
    api.short = refusal is None
    api.refusal = refusal
    async with following(api):
        await asyncio.sleep(0.3)
    assert 5 < len(api.requests) < 30


async def test_a_quiet_watch_that_ends_is_begun_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi()
    begun: list[float] = []

    async def quiet(path: str, version: str, opened: Opened) -> AsyncIterator[tuple[str, Json]]:
        begun.append(asyncio.get_running_loop().time())
        opened()
        await asyncio.sleep(0.05)
        if not path:
            yield version, {}

    monkeypatch.setattr(watching, "_FIRST_DELAY", 5.0)
    api.watch = quiet  # type: ignore[method-assign,assignment]
    async with following(api) as follower:
        await until(lambda: len(begun) == 3)
        assert follower.connections == [True]
        assert follower.watch.lists == 1


@pytest.mark.parametrize(
    "refusal",
    [
        ApiError(429, "TooManyRequests", "slow down"),
        ApiError(500, "InternalError", ""),
        ApiError(403, "Forbidden", "no watch"),
        ApiError(401, "Unauthorized", ""),
        ApiError(504, "Timeout", "context deadline exceeded"),
    ],
)
async def test_a_watch_that_is_refused_goes_on_where_it_was_and_costs_no_list(refusal: ApiError) -> None:
    api = FakeApi()
    async with following(api) as follower:
        await until(lambda: follower.watch.connected)
        api.refusal = refusal
        api.drop_watches()
        await until(lambda: not follower.watch.connected)
        api.put(PATH, thing("a"))
        api.refusal = None
        await until(lambda: follower.objects == {"ns/a": 1})
        assert follower.watch.lists == 1


async def test_a_server_that_asks_for_a_pause_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi()
    async with following(api) as follower:
        await until(lambda: follower.watch.connected)
        api.refusal = ApiError(429, "TooManyRequests", "slow down", 3.0)
        api.drop_watches()
        await until(lambda: len(api.requests) == 3)
        await asyncio.sleep(2.0)
        assert len(api.requests) == 3


async def test_a_version_that_is_yet_to_come_means_a_new_list() -> None:
    api = FakeApi()
    async with following(api) as follower:
        await until(lambda: follower.watch.connected)
        api.refusal = ApiError(504, "Timeout", "Too large resource version: 900, current: 100")
        api.drop_watches()
        await until(lambda: follower.watch.lists == 2)


async def test_a_server_that_went_back_to_an_earlier_state_is_listed_again() -> None:
    """Its etcd was restored from a backup: a watch from the version that is known would tell of nothing for days."""
    api = FakeApi()
    api.version = 900_000
    api.put(PATH, thing("a"))
    api.put(PATH, thing("b"))
    async with following(api) as follower:
        await until(lambda: follower.watch.connected)
        api.version = 850_000
        api.lists[PATH] = {}
        api._log.clear()
        api.put(PATH, thing("a", 7))
        api.drop_watches()
        await until(lambda: follower.objects == {"ns/a": 7})
        assert follower.listed == [(900_002, False), (850_001, True)]
        assert False in follower.connections
        api.put(PATH, thing("c", 3))
        await until(lambda: follower.objects == {"ns/a": 7, "ns/c": 3})


async def test_a_server_that_was_replaced_under_its_name_is_listed_again() -> None:
    api = FakeApi()
    api.put(PATH, thing("a"))
    async with following(api) as follower:
        await until(lambda: follower.watch.connected)
        api.cluster = "another"
        api.lists[PATH] = {}
        api.put(PATH, thing("b", 2))
        api.drop_watches()
        await until(lambda: follower.objects == {"ns/b": 2})
        assert [reset for _, reset in follower.listed] == [False, True]


async def test_it_is_not_followed_before_the_watch_is_answered() -> None:
    api = FakeApi()
    api.silent = True
    async with following(api) as follower:
        await asyncio.sleep(0.05)
        assert not follower.watch.connected


async def test_a_watch_that_is_soon_there_again_was_never_lost() -> None:
    api, connections = FakeApi(), []
    watch = Watch(
        api, PATH, lambda key, item: None, on_connection=lambda: connections.append(watch.connected), grace=2.0
    )
    task = asyncio.create_task(watch.run())
    await until(lambda: connections == [True])
    api.drop_watches()
    await asyncio.sleep(3.0)
    assert connections == [True]
    api.refusal = ApiError(0, "", "no route to host")
    api.drop_watches()
    await asyncio.sleep(1.0)
    assert watch.connected
    await until(lambda: connections == [True, False])
    api.refusal = None
    await until(lambda: connections == [True, False, True])
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
