"""Writes what happens in the clusters of a fleet into a store: for the controller, and for `kueue-fleet record`."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kueue_admission.history.events import Place
from kueue_admission.history.recorder import FIRST, Recorder
from kueue_admission.history.schema import Event
from kueue_admission.history.store import Store
from kueue_admission.kernel.names import KUEUE_API, NODE_POOL, SPOT
from kueue_fleet.controller.configured_quota import GRACE_SECONDS
from kueue_fleet.kube.answers import Json
from kueue_fleet.kube.api import PROVISIONING_REQUESTS, Api
from kueue_fleet.kube.watching import Watch

if TYPE_CHECKING:
    from kueue_fleet.controller.metrics import Metrics
    from kueue_fleet.settings.configuration import ControllerConfiguration, RecordedFleet

PATHS: Final = {"Workload": f"/apis/{KUEUE_API}/workloads", "Node": "/api/v1/nodes"}
"""What is recorded, and where API servers have it."""
IF_THERE: Final = {"ProvisioningRequest": PROVISIONING_REQUESTS}
"""What is recorded too where a cluster has it: of requests for nodes, that they found no capacity."""
MOST_WAITING: Final = 200_000
"""Events that wait for a store that cannot be written; those after them are lost, and the gap is noted."""

_CLOCKS_APART_SECONDS: Final = 300.0

log = logging.getLogger(__name__)


class Watched:
    """Since when all kinds of a cluster are followed without a break."""

    def __init__(self) -> None:
        self._followed: set[str] = set()
        self._since: float | None = None

    def hear(self, kind: str, now: float, *, follows: bool) -> None:
        """A kind is followed from NOW on, or no more."""
        if follows:
            self._followed.add(kind)
        else:
            self._followed.discard(kind)
        is_whole = self._followed >= PATHS.keys()
        self._since = (self._since or now) if is_whole else None

    def seen_until(self, now: float) -> float | None:
        """From when to NOW nothing was missed, the next time from NOW on; None: there was a break."""
        since = self._since
        self._since = since and now
        return since


class Following:
    """What is new in the clusters of `places`, by what watches of them say; `tell` gets what cannot be followed.

    A name may lead to another cluster, for a moment or for good. Nothing of the former is said to be gone then, as it
    may be there again. If it is not, the next comparison notices.
    """

    def __init__(self, places: Mapping[str, Place], clock: Callable[[], float], tell: Callable[[str], None]) -> None:
        self._clock, self._tell = clock, tell
        self._places = places
        self._recorders: dict[tuple[str, str], Recorder] = {}
        """By the cluster's name and identity."""
        self._watched = {name: Watched() for name in places}
        self._watches: list[tuple[str, str, Watch]] = []
        self._waiting: list[Event] = []
        self._since: dict[str, float] = {}
        self._begun = math.inf

    def follow(self, cluster: str, kind: str, watch: Watch) -> None:
        """Hear what a watch of this kind tells; before it runs."""
        self._watches.append((cluster, kind, watch))
        watch.tell_too(partial(self._hear, cluster, kind, watch), partial(self._take_connection, cluster, kind, watch))

    def _recorder(self, cluster: str, watch: Watch) -> Recorder:
        return self._recorders.setdefault((cluster, watch.identity), Recorder(self._places[cluster]))

    def _hear(self, cluster: str, kind: str, watch: Watch, key: str, item: Json | None) -> None:
        recorder = self._recorder(cluster, watch)
        if item is None:
            recorder.lose(f"{kind}/{key}", self._clock())
        else:
            recorder.see(f"{kind}/{key}", {**item, "kind": kind})

    def _take_connection(self, cluster: str, kind: str, watch: Watch) -> None:
        follows = watch.connected and watch.synced.is_set()
        self._watched[cluster].hear(kind, self._clock(), follows=follows)
        if not watch.connected:
            self._tell(f"{cluster}: its {kind}s cannot be followed; trying again, what is deleted meanwhile is lost")

    async def compare(self, store: Store) -> None:
        """As soon as all of a kind was seen, note as gone what the store knows beside; not yet of another cluster."""
        self._begun = self._clock() + _CLOCKS_APART_SECONDS
        met: dict[tuple[str, str], bool] = {}
        for cluster, kind, watch in self._watches:
            await watch.synced.wait()
            if kind not in FIRST:
                continue
            name = cluster, watch.identity
            if name not in met:
                met[name] = await asyncio.to_thread(store.meet, *name)
                if met[name]:
                    self._tell(f"{cluster}: is another cluster than before; what was there counts as gone next time")
            if met[name]:
                continue
            open_store = await asyncio.to_thread(store.open, cluster)
            self._recorder(cluster, watch).listed(kind, self._clock(), open_store)

    async def write(self, store: Store) -> int:
        """Write what is new, then that nothing was missed up to now where that is so; how many events.

        Raises OSError where it cannot; then all of it is written the next time.
        """
        now = self._clock()
        self._note_followed(now)
        for recorder in self._recorders.values():
            uids, since = recorder.unknown(self._begun)
            if uids:
                recorder.learn(uids, await asyncio.to_thread(store.keys, uids, since))
            self._waiting += recorder.take_known()
        task = asyncio.create_task(asyncio.to_thread(self._put, store, now))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])  # What `write_last` writes is not to be there already.
            raise

    def write_last(self, store: Store) -> int:
        """The same at once, at the end."""
        now = self._clock()
        self._note_followed(now)
        for recorder in self._recorders.values():
            uids, since = recorder.unknown(self._begun)
            recorder.learn(uids, store.keys(uids, since) if uids else {})
            self._waiting += recorder.take_known()
        write_count = self._put(store, now)
        store.finish()
        return write_count

    def _put(self, store: Store, now: float) -> int:
        write_count = store.add(self._waiting)
        self._waiting = []
        store.follow(self._since, now)
        self._since = {}
        return write_count

    def _note_followed(self, now: float) -> None:
        """An event that was noticed before NOW is written with those of NOW."""
        for name, watch in self._watched.items():
            if (since := watch.seen_until(now)) is not None:
                self._since.setdefault(name, since)
            else:
                self._since.pop(name, None)

    def bound(self) -> int:
        """Give up what waits to be written, if that is too much; how many events are lost."""
        waiting = len(self._waiting) + sum(recorder.waiting for recorder in self._recorders.values())
        if waiting <= MOST_WAITING:
            return 0
        for recorder in self._recorders.values():
            recorder.give_up()
        self._waiting, self._since = [], {}
        return waiting


class HistoryWriter:
    """The controller's history; of a configuration without one, nothing."""

    def __init__(self, configuration: ControllerConfiguration, metrics: Metrics, clock: Callable[[], float]) -> None:
        self._of, self._metrics, self._clock = configuration.history, metrics, clock
        self.watches: list[Watch] = []
        """What is to be run for it: it follows nodes."""
        places = {}
        if self._of is not None:
            labels = self._of.settings.labels
            places = {
                name: Place(name, region, self._of.teams, labels, NODE_POOL, SPOT)
                for name, region in self._of.regions.items()
            }
        self._following = Following(places, clock, log.warning)

    def follow(self, cluster: str | None, api: Api, watches: Iterable[Watch]) -> None:
        """Hear what these watches of a cluster tell, None for the controller's own; and follow nodes."""
        if self._of is None:
            return
        name = cluster or self._of.home
        nodes = Watch(api, PATHS["Node"], lambda *_: None, grace=GRACE_SECONDS)
        self.watches.append(nodes)
        self._following.follow(name, "Node", nodes)
        heard = {"Workload": PATHS["Workload"], **IF_THERE}
        for watch in watches:
            for kind, path in heard.items():
                if watch.path == path:
                    self._following.follow(name, kind, watch)

    async def run(self) -> None:
        """Write until cancelled; where the store cannot be used, try again, while the controller decides on."""
        while self._of is not None:
            try:
                await self._write_on(self._of)
            except Exception as error:
                # Of whatever kind: files that somebody else changed must not keep the controller from deciding.
                self._fail(error)
            await asyncio.sleep(self._of.settings.pause)

    def _fail(self, error: Exception) -> None:
        self._metrics.failures.labels("history").inc()
        lost = self._following.bound()
        log.warning("history not written", extra={"fields": {"error": str(error)[:500], "lostEvents": lost}})

    async def _write_on(self, of: RecordedFleet) -> None:
        store = await asyncio.to_thread(partial(Store, of.store, create=True, appends=of.settings.store is not None))
        with store.writing():
            await self._following.compare(store)
            try:
                while True:
                    self._metrics.history_events.inc(await self._following.write(store))
                    if of.settings.volume_claim is not None:
                        await asyncio.to_thread(store.bound, *of.settings.bounds(self._clock()))
                    await asyncio.sleep(of.settings.pause)
            except asyncio.CancelledError:
                self._write_last(store)
                raise

    def _write_last(self, store: Store) -> None:
        """The process ends: what a next leader would find deleted is written now."""
        try:
            self._metrics.history_events.inc(self._following.write_last(store))
        except Exception as error:
            self._fail(error)
