from __future__ import annotations

import asyncio
import time

import pytest

from kueue_fleet.controller.work_queue import WorkQueue

pytestmark = pytest.mark.usefixtures("no_waiting")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def soon(queue: WorkQueue) -> str | None:
    """The next key, or None if there is none now."""
    try:
        return await asyncio.wait_for(queue.take(), 1.0)
    except TimeoutError:
        return None


async def test_a_key_is_there_once_however_often_it_was_added() -> None:
    queue = WorkQueue(Clock())
    for key in ("a", "b", "a", "a"):
        queue.add(key)
    assert [await soon(queue), await soon(queue), await soon(queue)] == ["a", "b", None]


async def test_a_long_queue_lets_others_run_between_two_keys() -> None:
    """The Lease is renewed while 20,000 keys are looked at that need no request."""
    queue, turns = WorkQueue(Clock()), 0

    async def renew() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    for number in range(100):
        queue.add(str(number))
    other = asyncio.create_task(renew())
    for _ in range(100):
        queue.done(await queue.take())
    other.cancel()
    assert turns >= 100


async def test_a_new_key_has_its_turn_while_thousands_are_due() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    for number in range(1000):
        queue.add_after(f"due-{number:03}", 30.0)
    clock.now += 30.0
    assert [await soon(queue), await soon(queue)] == ["due-000", "due-001"]
    for key in ("new-0", "new-1", "due-005"):
        queue.add(key)
    result = [await soon(queue) for _ in range(7)]
    assert result == ["new-0", "due-002", "new-1", "due-003", "due-005", "due-004", "due-006"]
    assert len(queue) == 1000 - 7


async def test_a_key_that_is_looked_at_comes_again_only_when_that_is_done() -> None:
    queue = WorkQueue(Clock())
    queue.add("a")
    assert await queue.take() == "a"
    queue.add("a")
    assert await soon(queue) is None
    queue.done("a")
    assert await soon(queue) == "a"


async def test_a_key_comes_when_it_is_due_and_no_later_than_asked_for() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add_after("a", 10.0)
    queue.add_after("a", 5.0)
    queue.add_after("a", 20.0)
    assert await soon(queue) is None
    clock.now = 1005.0
    assert await soon(queue) == "a"
    queue.done("a")
    clock.now = 1030.0
    assert await soon(queue) is None


async def test_what_is_past_is_due_now() -> None:
    queue = WorkQueue(Clock())
    queue.add_after("a", -1.0)
    assert await soon(queue) == "a"


async def test_who_waits_is_woken() -> None:
    queue = WorkQueue(Clock())
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add("a")
    assert await asyncio.wait_for(waiting, 1) == "a"


async def test_failures_wait_longer_each_time_and_success_forgets_them() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    waits = []
    for _ in range(12):
        queue.retry("a")
        began = clock.now
        while await soon(queue) is None:
            clock.now += 0.1 if clock.now - began < 2 else 1.0
        queue.done("a")
        waits.append(clock.now - began)
    assert waits == sorted(waits)
    assert waits[0] <= 0.2
    assert 29.0 <= waits[-1] <= 31.5
    queue.succeeded("a")
    queue.retry("a")
    clock.now += 0.2
    assert await soon(queue) == "a"


async def test_whoever_is_told_to_end_while_there_is_news_ends() -> None:
    for _ in range(20):
        queue = WorkQueue(time.monotonic)
        queue.add_after("later", 60)
        waiting = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        queue.add_after("sooner", 30)
        waiting.cancel()
        result, _ = await asyncio.wait([waiting], timeout=1)
        assert result
        assert waiting.cancelled()
