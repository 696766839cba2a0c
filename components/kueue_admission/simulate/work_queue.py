"""Workers that deal with one thing after the other, so many at a time, such as those of a job's controller.

Source: MaxConcurrentReconciles of sigs.k8s.io/controller-runtime@v0.24.1 pkg/internal/controller/controller.go.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class Workers:
    """`count` of them; 0: as many as there is to do.

    Invariant: what is due first is begun first, if it is passed on in that order.
    """

    __slots__ = ("_count", "_free_at")

    def __init__(self, count: int) -> None:
        self._count = count
        self._free_at: list[float] = []

    def done(self, now: float, seconds: Callable[[float], float]) -> float:
        """When it is done that is due now, and takes `seconds(begun)` from when one of them turns to it."""
        if not self._count:
            return now + seconds(now)
        begun = now if len(self._free_at) < self._count else max(now, heappop(self._free_at))
        done = begun + seconds(begun)
        heappush(self._free_at, done)
        return done
