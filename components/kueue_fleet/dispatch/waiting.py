"""How long jobs have waited on each worker, from nomination to admission.

Recent admissions are averaged, and those that another worker won: there the wait was at least as long. Who waits now
and has done so for longer than that counts too, since a worker that admits nothing would otherwise keep the good name
of its better days.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

SAMPLES: Final = 10
"""How many of the latest admissions count."""
MEMORY_SECONDS: Final = 6 * 3600.0
"""How long an admission counts."""


@dataclass(slots=True)
class _Line:
    """Who waits, the times since when in order, and their sum."""

    since: dict[str, float] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    total: float = 0.0


_NOBODY: Final = _Line()


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
        line = self._waiting.get((worker, queue), _NOBODY)
        late = len(line.times) if mean is None else bisect_left(line.times, now - mean)
        if mean is None and not late:
            return None
        since = line.total if late == len(line.times) else sum(line.times[:late])
        return max(0.0, (sum(recent) + late * now - since) / (len(recent) + late))
