from __future__ import annotations

import pytest

from kueue_fleet.kube import client
from kueue_fleet.kube.client import LONGEST_PAUSE_SECONDS, Throttle


class Time:
    """A clock that goes on only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(client, "sleep", self.sleep)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def test_after_a_burst_requests_begin_at_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time(monkeypatch)
    limited = Throttle(10.0, 5.0, time)
    begun = []
    for _ in range(25):
        await limited.wait()
        begun.append(time.now - 100.0)
    assert begun[:5] == [0.0] * 5
    assert begun[24] == pytest.approx(2.0, abs=0.05)
    time.now += 60.0
    for _ in range(5):
        await limited.wait()
    assert time.now - 100.0 == pytest.approx(62.0, abs=0.05)


@pytest.mark.parametrize(("asked", "least"), [(3.0, 3.0), (1e9, LONGEST_PAUSE_SECONDS), (-5.0, 0.0)])
async def test_a_pause_holds_everybody_up_and_ends(monkeypatch: pytest.MonkeyPatch, asked: float, least: float) -> None:
    time = Time(monkeypatch)
    limited = Throttle(10.0, 5.0, time)
    limited.pause(asked)
    limited.pause(asked / 2)
    await limited.wait()
    assert least <= time.now - 100.0 <= least + 0.6
