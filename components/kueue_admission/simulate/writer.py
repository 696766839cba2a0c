"""The API calls by which decisions are written, one after the other over one rate-limited connection.

A token bucket, as Kueue's client has one for Workloads (`clientConnection.qps` and `burst`); calls that find no token
wait in line.
Source: k8s.io/client-go@v0.36.3 util/flowcontrol/throttle.go.
"""

from __future__ import annotations


class Writer:
    """A call takes `seconds`, but for `burst` calls that go through at once after a rest. 0 seconds: all at once.

    Invariant: calls are through in the order in which they are made.
    """

    __slots__ = ("_after_burst", "_free_at", "_seconds")

    def __init__(self, seconds: float, burst: int = 0) -> None:
        self._seconds = seconds
        self._after_burst = seconds * (1 - burst)
        self._free_at = float("-inf")

    def write(self, now: float) -> float:
        """When a call made now is through."""
        since = max(self._free_at, now)
        self._free_at = since + self._seconds
        return max(now, since + self._after_burst)
