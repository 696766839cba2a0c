"""Which events are new: those of what a cluster has now, and has no more, against what the store has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from kueue_admission.history.events import Place, gone, node_events, request_events, workload_events
from kueue_admission.history.schema import Event, Kind
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.read.printed import Printed, PrintedNode, PrintedWorkload

FIRST: Final = {"Workload": Kind.ARRIVED, "Node": Kind.NODE_ADDED}
"""The event with which everything of a kind begins, whose end is noticed too; ProvisioningRequests have no such one."""


class Known(Protocol):
    """What was written before."""

    def keys(self, uids: set[str], since: float) -> Mapping[str, set[str]]:
        """The keys of these uids, which were created after `since`."""

    def open(self, cluster: str) -> Iterable[Event]:
        """The first event of everything that has not ended and is not said to be gone."""


class Recorder:
    """One cluster. What it keeps grows with what is in the cluster, not with the history."""

    def __init__(self, place: Place, known: Known | None = None) -> None:
        self._place, self._known = place, known
        """None: nothing was written before."""
        self._first: dict[str, Event] = {}
        """The first event of each Workload and node that is in the cluster, by its path."""
        self._requests: dict[str, str] = {}
        """The uid of each ProvisioningRequest that found no capacity, by its path."""
        self._keys: dict[str, set[str]] = {}
        """What is written of each, by uid."""
        self._new: dict[str, Event] = {}
        self._over: set[str] = set()
        """Uids of what has ended."""
        self._left: set[str] = set()

    def see(self, path: str, item: Manifest) -> None:
        """A Workload, Node or ProvisioningRequest, new or changed; `path` is its own in the cluster."""
        if item.get("kind") == "Node":
            events = node_events(PrintedNode.of(item), self._place)
        elif item.get("kind") == "ProvisioningRequest":
            events = request_events(Printed.of(item), self._place)
        else:
            events = workload_events(PrintedWorkload.of(item), self._place)
        for event in events:
            if event.kind in FIRST.values():
                if path in self._first and self._first[path].uid != event.uid:
                    self.lose(path, event.time)
                self._first[path] = replace(event, requests={}, pod_sets="", labels={})
            elif event.kind is Kind.ENDED:
                self._over.add(event.uid)
            elif event.kind is Kind.STOCK_OUT:
                self._requests[path] = event.uid
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
        elif path in self._requests:
            self._left.add(self._requests.pop(path))

    def listed(self, kind: str, now: float, events: Iterable[Event] | None = None) -> None:
        """All of a kind, `Workload` or `Node`, that is in the cluster was seen: what was known beside is gone.

        `events` is what was known: `Known.open` of the cluster, by default asked here.
        """
        there = {event.uid for event in self._first.values()}
        if events is None:
            events = () if self._known is None else self._known.open(self._place.cluster)
        for first in events:
            if first.kind is FIRST[kind] and first.uid not in there:
                self._end(first, now)

    def _end(self, first: Event, now: float) -> None:
        if first.uid not in self._over:
            self.note([gone(first, now)])

    def take(self) -> list[Event]:
        """The new events, each once."""
        uids, since = self.unknown()
        if uids:
            self.learn(uids, {} if self._known is None else self._known.keys(uids, since))
        return self.take_known()

    def unknown(self, begun: float = math.inf) -> tuple[set[str], float]:
        """The uids of new events whose written ones are yet to be asked for, and since when there can be any.

        Of what came after `begun`, only this recorder can have written.
        """
        first: dict[str, float] = {}
        for event in self._new.values():
            if event.uid not in self._keys:
                first[event.uid] = min(first.get(event.uid, event.time), event.time)
        self.learn([uid for uid, time in first.items() if time >= begun], {})
        asked_times = {uid: time for uid, time in first.items() if time < begun}
        return set(asked_times), min(asked_times.values(), default=0.0)

    @property
    def waiting(self) -> int:
        """How many events are new."""
        return len(self._new)

    def give_up(self) -> None:
        """Forget the new events, which cannot be written."""
        self._new.clear()

    def learn(self, uids: Iterable[str], uids_by_cluster: Mapping[str, set[str]]) -> None:
        """What was written of these uids: `Known.keys`."""
        self._keys |= {uid: set(uids_by_cluster.get(uid, ())) for uid in uids}

    def take_known(self) -> list[Event]:
        """The new events of which that is known, each once."""
        known_events = [event for event in self._new.values() if event.uid in self._keys]
        self._new = {key: event for key, event in self._new.items() if event.uid not in self._keys}
        new = [event for event in known_events if event.key not in self._keys[event.uid]]
        for event in new:
            self._keys[event.uid].add(event.key)
        uids_left = self._left - {event.uid for event in self._new.values()}
        for uid in uids_left:
            self._keys.pop(uid, None)
        self._over -= uids_left
        self._left -= uids_left
        return new
