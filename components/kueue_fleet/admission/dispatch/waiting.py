"""How long jobs have waited on each worker, from nomination to admission.

Recent admissions are averaged, and those that another worker won: there the wait was at least as long. Who waits now
and has done so for longer than that counts too, since a worker that admits nobody would otherwise keep the good name of
its better days.
"""

from __future__ import annotations

from collections import deque
from typing import Final

SAMPLES: Final = 10
"""How many of the latest admissions count."""
MEMORY_SECONDS: Final = 6 * 3600.0
"""How long an admission counts."""


class WaitingTimes:
    """Waiting times by worker and queue. `admitted`, `waits` and `gone` follow the workloads."""

    def __init__(self) -> None:
        self._admitted: dict[tuple[str, str], deque[tuple[float, float, str]]] = {}
        self._seen: set[tuple[str, float]] = set()
        self._waiting: dict[tuple[str, str], dict[str, float]] = {}

    def admitted(self, key: str, worker: str, queue: str, at: float, seconds: float) -> None:
        """A workload was admitted on a worker; said twice, it counts once."""
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
        """A workload waited on a worker until another one admitted it; said twice, it counts once."""
        self.admitted(f"{key} not on {worker}", worker, queue, at, seconds)

    def waits(self, key: str, worker: str, queue: str, since: float) -> None:
        """A workload was nominated for a worker and is not admitted."""
        self._waiting.setdefault((worker, queue), {}).setdefault(key, since)

    def gone(self, key: str, worker: str | None = None) -> None:
        """The workload does not wait any more; on one worker, or on all."""
        for (name, _), waiting in self._waiting.items():
            if worker is None or name == worker:
                waiting.pop(key, None)

    def seconds(self, worker: str, queue: str, now: float) -> float | None:
        """The waiting time to expect; None where nothing is known."""
        recent = [seconds for at, seconds, _ in self._admitted.get((worker, queue), ()) if now - at <= MEMORY_SECONDS]
        mean = sum(recent) / len(recent) if recent else None
        ages = [now - since for since in self._waiting.get((worker, queue), {}).values()]
        late = [age for age in ages if mean is None or age > mean]
        if mean is None and not late:
            return None
        samples = recent + late
        return max(0.0, sum(samples) / len(samples))
