"""How long jobs have waited on each worker, from nomination to admission, and the pace of each ClusterQueue.

Recent admissions are averaged, and those that another worker won: there the wait was at least as long. Who waits now
and has done so for longer than that counts too, since a worker that admits nothing would otherwise keep the good name
of its better days.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from math import sqrt
from typing import Final, NamedTuple

SAMPLES: Final = 10
"""How many of the latest admissions count."""
MEMORY_SECONDS: Final = 6 * 3600.0
"""How long an admission counts."""
LEAST: Final = 5
"""Fewer admissions say nothing."""
_KEPT: Final = 500
_QUANTILES: Final = (0.0, 1.2816)
"""Of the normal distribution, for 50 % and 90 %."""


@dataclass(slots=True)
class _Line:
    """Who waits, the times since when in order, and their sum."""

    since: dict[str, float] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    total: float = 0.0


_EMPTY_LINE: Final = _Line()


class WaitingTimes:
    """Waiting times by worker and queue. `admitted`, `waits` and `gone` follow the workloads."""

    def __init__(self) -> None:
        self._admitted: dict[tuple[str, str], deque[tuple[float, float, str]]] = {}
        self._seen: set[tuple[str, float]] = set()
        self._waiting: dict[tuple[str, str], _Line] = {}
        self._places: dict[str, list[tuple[str, str]]] = {}
        """Where each workload waits, so that no call takes longer in a large fleet."""

    def admitted(self, key: str, worker: str, queue: str, at: float, seconds: float) -> None:
        """A workload was admitted on a worker; a second call counts nothing."""
        self.gone(key)
        if (key, at) in self._seen:
            return
        samples = self._admitted.setdefault((worker, queue), deque())
        samples.append((at, max(0.0, seconds), key))
        self._seen.add((key, at))
        if len(samples) > SAMPLES:
            oldest = min(samples)
            samples.remove(oldest)
            self._seen.discard((oldest[2], oldest[0]))

    def passed(self, key: str, worker: str, queue: str, at: float, seconds: float) -> None:
        """A workload waited on a worker until another one admitted it; a second call counts nothing."""
        self.admitted(f"{key} not on {worker}", worker, queue, at, seconds)

    def waits(self, key: str, worker: str, queue: str, since: float) -> None:
        """A workload was nominated for a worker and is not admitted."""
        line = self._waiting.setdefault((worker, queue), _Line())
        if key not in line.since:
            line.since[key] = since
            insort(line.times, since)
            line.total += since
            self._places.setdefault(key, []).append((worker, queue))

    def waits_only(self, key: str, workers: Collection[str]) -> None:
        """The workload waits on none but these workers: from others it was taken back."""
        self._leave(key, [place for place in self._places.get(key, ()) if place[0] not in workers])

    def gone(self, key: str, worker: str | None = None) -> None:
        """The workload does not wait any more; on one worker, or on all."""
        self._leave(key, [place for place in self._places.get(key, ()) if worker is None or place[0] == worker])

    def _leave(self, key: str, places: Collection[tuple[str, str]]) -> None:
        for place in places:
            line = self._waiting[place]
            since = line.since.pop(key)
            del line.times[bisect_left(line.times, since)]
            line.total = line.total - since if line.since else 0.0
            self._places[key].remove(place)
        if places and not self._places[key]:
            del self._places[key]

    def seconds(self, worker: str, queue: str, now: float) -> float | None:
        """The waiting time to expect; None where nothing is known."""
        samples = self._admitted.get((worker, queue), ())
        # One that is far in the future is garbage.
        recent = [seconds for at, seconds, _ in samples if abs(now - at) <= MEMORY_SECONDS]
        mean = sum(recent) / len(recent) if recent else None
        line = self._waiting.get((worker, queue), _EMPTY_LINE)
        late = len(line.times) if mean is None else bisect_left(line.times, now - mean)
        if mean is None and not late:
            return None
        since = line.total if late == len(line.times) else sum(line.times[:late])
        return max(0.0, (sum(recent) + late * now - since) / (len(recent) + late))


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
    """What ClusterQueues admitted in the last six hours, deleted jobs too, and when a job that waits may start by that.

    The cheap estimate of the controller; `kueue-fleet when` simulates. Admissions are taken for a Poisson process, so
    that the time until the k-th is of a gamma distribution, whose quantiles are those of Wilson and Hilferty (PNAS 17,
    1931). Jobs that come later and go first are in the pace, and not in the work ahead.
    """

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
