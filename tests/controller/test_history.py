"""The controller's history: nothing twice and nothing lost, over restarts, changes of the leader and failed writes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.history.workloads import ADMITTED, ASSIGNED, EXHAUSTED, FINISHED, RESERVED, Json, request, workload
from tests.kube.fake_api import FakeApi

from controller_lab import fleet_data
from kueue_admission.history.schema import Kind
from kueue_admission.history.store import Store
from kueue_admission.kernel.duration import Duration
from kueue_fleet.controller import history
from kueue_fleet.controller.history import IF_THERE, PATHS, HistoryWriter
from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.kube.watching import Watch
from kueue_fleet.objects.controller_values import controller_configuration
from kueue_fleet.settings.configuration import ControllerConfiguration

WORKLOADS = PATHS["Workload"]


@pytest.fixture
def api() -> FakeApi:
    result = FakeApi()
    result.lists = {path: {} for path in PATHS.values()}
    return result


@pytest.fixture
def configuration(tmp_path: Path) -> ControllerConfiguration:
    fleet = parse_fleet(fleet_data({"worker": "us-east4"}, history={"volumeClaim": "history", "every": "1s"}))
    result = controller_configuration(fleet)
    assert result.history is not None
    settings = result.history.settings.model_copy(update={"every": Duration("10ms")})
    of = result.history.model_copy(update={"store": str(tmp_path / "history"), "settings": settings})
    return result.model_copy(update={"history": of})


@asynccontextmanager
async def leader(api: FakeApi, configuration: ControllerConfiguration) -> AsyncIterator[Metrics]:
    """The manager is followed, and its history written, until it ends."""
    metrics = Metrics()
    writer = HistoryWriter(configuration, metrics, time.time)
    workloads = Watch(api, WORKLOADS, lambda *_: None)
    requests = Watch(api, IF_THERE["ProvisioningRequest"], lambda *_: None, optional=True)
    writer.follow(None, api, [workloads, requests])
    runs = (workloads.run(), requests.run(), *(w.run() for w in writer.watches), writer.run())
    tasks = [asyncio.create_task(item) for item in runs]
    try:
        yield metrics
    finally:
        for task in reversed(tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def job(name: str, *conditions: Json) -> Json:
    result = workload(*conditions, admission=ASSIGNED if conditions else None)
    result["metadata"] |= {"name": name, "uid": name}
    return result


def written(configuration: ControllerConfiguration) -> Counter[tuple[str, Kind]]:
    """How often each event is in the files, by Workload."""
    from pyarrow import dataset

    assert configuration.history is not None
    folder = Path(configuration.history.store, "events")
    if not any(folder.rglob("*.parquet")):
        return Counter()
    rows = dataset.dataset(folder, partitioning="hive").to_table().to_pylist()
    return Counter((row["uid"], Kind(row["kind"])) for row in rows)


def has(configuration: ControllerConfiguration, name: str, kind: Kind) -> bool:
    return (name, kind) in written(configuration)


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


def once(**events: tuple[Kind, ...]) -> Counter[tuple[str, Kind]]:
    return Counter((name, kind) for name, kinds in events.items() for kind in kinds)


async def test_what_was_on_a_cluster_is_not_gone_while_its_name_leads_to_another(
    api: FakeApi, configuration: ControllerConfiguration
) -> None:
    async def lead_to(cluster: str, lists: dict[str, dict[str, Json]]) -> None:
        asked = api.requests.count(f"GET {WORKLOADS}")
        api.cluster, api.lists = cluster, lists
        api.drop_watches()
        await until(lambda: api.requests.count(f"GET {WORKLOADS}") > asked)

    api.put(WORKLOADS, job("stays", RESERVED))
    async with leader(api, configuration):
        await until(lambda: ("stays", Kind.RESERVED) in written(configuration))
        own = api.lists
        await lead_to("two", {path: {} for path in PATHS.values()})
        api.put(WORKLOADS, job("theirs"))
        await until(lambda: ("theirs", Kind.ARRIVED) in written(configuration))
        await lead_to("one", own)
        api.put(WORKLOADS, job("stays", RESERVED, ADMITTED, FINISHED))
        await until(lambda: ("stays", Kind.ENDED) in written(configuration))
    life = (Kind.ARRIVED, Kind.RESERVED, Kind.ADMITTED, Kind.ENDED)
    assert written(configuration) == once(stays=life, theirs=(Kind.ARRIVED,))
    async with leader(api, configuration):
        await until(lambda: ("theirs", Kind.DELETED) in written(configuration))


async def test_a_leader_that_finds_another_cluster_waits_for_the_next_one_to_say_what_is_gone(
    api: FakeApi, configuration: ControllerConfiguration
) -> None:
    api.put(WORKLOADS, job("stays", RESERVED))
    async with leader(api, configuration):
        await until(lambda: ("stays", Kind.RESERVED) in written(configuration))
    api.cluster, api.lists = "two", {path: {} for path in PATHS.values()}
    for name in ("first", "second"):
        assert ("stays", Kind.DELETED) not in written(configuration)
        api.put(WORKLOADS, job(name))
        async with leader(api, configuration):
            await until(partial(has, configuration, name, Kind.ARRIVED))
            if name == "second":
                await until(partial(has, configuration, "stays", Kind.DELETED))


async def test_a_stock_out_is_written_once_by_whoever_leads(
    api: FakeApi, configuration: ControllerConfiguration
) -> None:
    api.lists[IF_THERE["ProvisioningRequest"]] = {}
    api.put(IF_THERE["ProvisioningRequest"], request(EXHAUSTED))
    for number in (1, 2):
        api.put(WORKLOADS, job(f"seen-{number}"))
        async with leader(api, configuration):
            await until(partial(has, configuration, f"seen-{number}", Kind.ARRIVED))
    assert written(configuration)["r1", Kind.STOCK_OUT] == 1


async def test_another_leader_writes_what_happened_meanwhile(
    api: FakeApi, configuration: ControllerConfiguration
) -> None:
    for name in ("stays", "ends", "goes"):
        api.put(WORKLOADS, job(name, RESERVED))
    async with leader(api, configuration):
        await until(lambda: len(written(configuration)) == 6)
    api.put(WORKLOADS, job("ends", RESERVED, ADMITTED, FINISHED))
    api.remove(WORKLOADS, "vision/goes")
    api.put(WORKLOADS, job("comes"))
    begun = (Kind.ARRIVED, Kind.RESERVED)
    expected = once(
        stays=begun, ends=(*begun, Kind.ADMITTED, Kind.ENDED), goes=(*begun, Kind.DELETED), comes=(Kind.ARRIVED,)
    )
    for _ in range(2):
        async with leader(api, configuration):
            await until(lambda: written(configuration) == expected)


async def test_what_came_last_is_written_when_it_ends(api: FakeApi, configuration: ControllerConfiguration) -> None:
    of = configuration.history
    assert of is not None
    slow = of.model_copy(update={"settings": of.settings.model_copy(update={"every": Duration("60s")})})
    configuration = configuration.model_copy(update={"history": slow})
    api.put(WORKLOADS, job("early"))
    early = once(early=(Kind.ARRIVED,))
    async with leader(api, configuration) as metrics:
        await until(lambda: written(configuration) == early)
        api.put(WORKLOADS, job("late"))
        await asyncio.sleep(0.2)
        assert written(configuration) == early
    assert written(configuration) == early + once(late=(Kind.ARRIVED,))
    assert metrics.registry.get_sample_value("kueue_fleet_history_events_total") == 2


async def test_a_leader_that_ends_while_it_writes_writes_nothing_twice(
    api: FakeApi, configuration: ControllerConfiguration, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, add = asyncio.Event(), Store.add
    loop = asyncio.get_running_loop()

    def slowly(store: Store, events: Any) -> int:
        if events:
            loop.call_soon_threadsafe(writing.set)
            time.sleep(0.2)
        return add(store, events)

    monkeypatch.setattr(Store, "add", slowly)
    api.put(WORKLOADS, job("one", RESERVED))
    async with leader(api, configuration):
        await asyncio.wait_for(writing.wait(), 20)
    assert written(configuration) == once(one=(Kind.ARRIVED, Kind.RESERVED))


async def test_what_could_not_be_written_is_written_later(
    api: FakeApi, configuration: ControllerConfiguration, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, failures = Store.add, iter([OSError("no space left"), OSError("no space left")])

    def fails(store: Store, events: Any) -> int:
        if error := next(failures, None):
            raise error
        return add(store, events)

    monkeypatch.setattr(Store, "add", fails)
    api.put(WORKLOADS, job("one"))
    async with leader(api, configuration) as metrics:
        await until(lambda: written(configuration) == once(one=(Kind.ARRIVED,)))
    assert metrics.registry.get_sample_value("kueue_fleet_failures_total", {"status": "history"}) == 2


async def test_what_waits_for_a_store_that_is_not_there_is_bounded(
    api: FakeApi, configuration: ControllerConfiguration, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = configuration.history
    assert of is not None
    away = configuration.model_copy(update={"history": of.model_copy(update={"store": f"{of.store}/not/there"})})
    monkeypatch.setattr(history, "MOST_WAITING", 5)
    bounded, lost = history.Following.bound, list[int]()

    def bound(following: history.Following) -> int:
        lost.append(bounded(following))
        return lost[-1]

    monkeypatch.setattr(history.Following, "bound", bound)
    async with leader(api, away) as metrics:
        for number in range(20):
            api.put(WORKLOADS, job(f"job-{number}"))
            await asyncio.sleep(0.02)
        await until(lambda: sum(lost) >= 12)
    assert metrics.registry.get_sample_value("kueue_fleet_failures_total", {"status": "history"}) == len(lost)


def test_without_the_field_nothing_is_followed(api: FakeApi) -> None:
    configuration = controller_configuration(parse_fleet(fleet_data({"worker": "us-east4"})))
    writer = HistoryWriter(configuration, Metrics(), time.time)
    writer.follow(None, api, [])
    assert (configuration.history, writer.watches) == (None, [])
