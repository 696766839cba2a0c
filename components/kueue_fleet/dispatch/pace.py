"""When a job that waits may start, by the pace at which its ClusterQueue admitted jobs lately.

The cheap estimate of the controller; `kueue-fleet when` simulates. Admissions are taken for a Poisson process, so that
the time until the k-th is of a gamma distribution, whose quantiles are those of Wilson and Hilferty (PNAS 17, 1931).
Jobs that come later and go first are in the pace, and not in the work ahead.
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import Final, NamedTuple

from kueue_fleet.dispatch.waiting import MEMORY_SECONDS

LEAST: Final = 5
"""Fewer admissions say nothing."""
_KEPT: Final = 500
_QUANTILES: Final = (0.0, 1.2816)
"""Of the normal distribution, for 50 % and 90 %."""


class Estimate(NamedTuple):
    """Seconds from now until half, and until 90 %, of such jobs have started; `rests_on`: how many admissions."""

    p50: float
    p90: float
    rests_on: int


class _Admission(NamedTuple):
    at: float
    seconds: float
    size: float
    queued: bool


class Pace:
    """What ClusterQueues admitted in the last six hours; deleted jobs stay in it."""

    def __init__(self) -> None:
        self._admitted: dict[str, deque[_Admission]] = {}

    def admitted(self, queue: str, at: float, seconds: float, size: float, *, queued: bool) -> None:
        """A job was admitted, so many seconds after it had its quota; `size` is what it asks for, `queued` whether it
        had to wait for quota before."""
        self._admitted.setdefault(queue, deque(maxlen=_KEPT)).append(_Admission(at, seconds, size, queued))

    def start(self, queue: str, ahead: int, work: float, size: float, now: float) -> Estimate | None:
        """Of a job without quota, behind `ahead` jobs that ask for `work` together; None: not known."""
        # Those that found free quota do not tell how soon any becomes free.
        recent = [one for one in self._recent(queue, now) if one.queued]
        like = sum(one.size >= size for one in recent)
        if like < LEAST:
            # Where only smaller jobs get in, nothing tells when this one does.
            return None
        pace = sum(one.size for one in recent) / max(1.0, now - min(one.at for one in recent))
        mean, count = (work + size) / max(pace, 1e-9), ahead + 1
        p50, p90 = (mean * (1 - 1 / (9 * count) + z / (3 * sqrt(count))) ** 3 for z in _QUANTILES)
        return Estimate(p50, p90, len(recent))

    def rest(self, queue: str, wait_seconds: float, now: float) -> Estimate | None:
        """Of a job that has had quota for `wait_seconds` seconds, by those that had to wait longer; None: not known."""
        longer = sorted(one.seconds - wait_seconds for one in self._recent(queue, now) if one.seconds > wait_seconds)
        if len(longer) < LEAST:
            return None
        return Estimate(longer[len(longer) // 2], longer[len(longer) * 9 // 10], len(longer))

    def _recent(self, queue: str, now: float) -> list[_Admission]:
        return [one for one in self._admitted.get(queue, ()) if 0 <= now - one.at <= MEMORY_SECONDS]
