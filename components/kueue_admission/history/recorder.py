"""Which events are new: those of what a cluster has now, and has no more, against what the store has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from kueue_admission.forms.manifest import Manifest
from kueue_admission.history.events import Place, gone, node_events, workload_events
from kueue_admission.history.schema import Event, Kind
from kueue_admission.read.printed import PrintedNode, PrintedWorkload

FIRST: Final = {"Workload": Kind.ARRIVED, "Node": Kind.NODE_ADDED}
"""The event with which everything of a kind begins."""


class Known(Protocol):
    """What was written before."""

    def keys(self, uids: set[str], since: float) -> Mapping[str, set[str]]:
        """The keys of these uids, which were created after `since`."""

    def open(self, cluster: str) -> Iterable[Event]:
        """The first event of everything that has not ended and is not said to be gone."""


class Recorder:
    """One cluster. What it keeps grows with what is in the cluster, not with the history."""

    def __init__(self, place: Place, known: Known) -> None:
        self._place, self._known = place, known
        self._first: dict[str, Event] = {}
        """The first event of each Workload and node that is in the cluster, by its path."""
        self._keys: dict[str, set[str]] = {}
        """What is written of each, by uid."""
        self._new: dict[str, Event] = {}
        self._over: set[str] = set()
        """Uids of what has ended."""
        self._left: set[str] = set()

    def see(self, path: str, item: Manifest) -> None:
        """A Workload or Node, new or changed; `path` is its own in the cluster."""
        if item.get("kind") == "Node":
            found = node_events(PrintedNode.of(item), self._place)
        else:
            found = workload_events(PrintedWorkload.of(item), self._place)
        for event in found:
            if event.kind in FIRST.values():
                if path in self._first and self._first[path].uid != event.uid:
                    self.lose(path, event.time)
                self._first[path] = event
            elif event.kind is Kind.ENDED:
                self._over.add(event.uid)
            self.note([event])

    def note(self, events: Iterable[Event]) -> None:
        """Events, new or not."""
        for event in events:
            if event.key not in self._keys.get(event.uid, ()):
                self._new.setdefault(event.key, event)

    def lose(self, path: str, now: float) -> None:
        """What was at this path is there no more."""
        first = self._first.pop(path, None)
        if first is not None:
            self._left.add(first.uid)
            self._end(first, now)

    def listed(self, kind: str, now: float) -> None:
        """All of a kind, `Workload` or `Node`, that is in the cluster was seen: what was known beside is gone."""
        there = {event.uid for event in self._first.values()}
        for first in self._known.open(self._place.cluster):
            if first.kind is FIRST[kind] and first.uid not in there:
                self._end(first, now)

    def _end(self, first: Event, now: float) -> None:
        if first.uid not in self._over:
            self.note([gone(first, now)])

    def take(self) -> list[Event]:
        """The new events, each once."""
        asked = {event.uid for event in self._new.values()} - set(self._keys)
        if asked:
            since = min(event.time for event in self._new.values() if event.uid in asked)
            found = self._known.keys(asked, since)
            self._keys |= {uid: set(found.get(uid, ())) for uid in asked}
        new = [event for event in self._new.values() if event.key not in self._keys[event.uid]]
        self._new.clear()
        for event in new:
            self._keys[event.uid].add(event.key)
        for uid in self._left:
            self._keys.pop(uid, None)
        self._over -= self._left
        self._left.clear()
        return new
