"""`record`: writes what happens in a fleet, or has happened elsewhere, into a store that lasts."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import read_objects, read_text, well_formed
from kueue_admission.forms.names import KUEUE_API
from kueue_fleet.cli.contexts import Kubeconfig, check_readable, kubeconfig_files
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.live_jobs import Clusters
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.cli.stores import StoreOption, opened_store
from kueue_fleet.gke.labels import NODE_POOL, SPOT
from kueue_fleet.kube.answers import Json, object_key

if TYPE_CHECKING:
    from kueue_admission.history.recorder import Recorder
    from kueue_admission.history.schema import Event
    from kueue_admission.history.store import Store
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.kube.api import ListAndWatch

_PATHS: Final = {"Workload": f"/apis/{KUEUE_API}/workloads", "Node": "/api/v1/nodes"}
"""What is recorded, and where API servers have it."""


def record(
    file: FleetFile,
    store: StoreOption,
    kubeconfig: Kubeconfig = None,
    once: Annotated[bool, typer.Option("--once", help="Write what there is now, and end.")] = False,
    every: Annotated[float, typer.Option("--every", min=1, help="Seconds between two writes.")] = 60.0,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY", help="Also keep this label or annotation of Workloads; repeatable."),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="[CLUSTER=]FILE",
            help="Instead of the live fleet: a dump of Workloads (YAML, JSON, a folder), sacct's output, or a CSV; of "
            "the cluster that is named, else a dump is the manager's; repeatable.",
        ),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Delete events instead, by --older-than and --team.")] = False,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="TIME", help="With --prune: those older than 90d, 12h, ...")
    ] = None,
    team: Annotated[str | None, typer.Option("--team", help="With --prune: those of this team.")] = None,
) -> None:
    """Write what happens to jobs into Parquet files, a folder for each day, and go on until Ctrl-C.

    Arrivals, requests, nominations, reservations, checks, admissions, evictions, ends, and nodes by pool, with no event
    twice: started again, it writes what it missed as far as Workloads still say it. Of pods only what admission sees is
    kept. It needs the right to list and watch Workloads and Nodes on every cluster, and the extra `history`.

    \b
    Examples:
      kueue-fleet record fleet.yaml --store history --kubeconfig kubeconfig
      kueue-fleet record fleet.yaml --store gs://bucket/history --once
      kueue-fleet record fleet.yaml --store history \\
          --from dump/ --from worker-us-east4=worker.yaml
      TZ=UTC sacct -a -X --parsable2 -S 2026-10-01 -o JobID,Account,\\
      Partition,Submit,Start,End,State,ReqTRES,NNodes > jobs.txt
      kueue-fleet record fleet.yaml --store history --from jobs.txt
      kueue-fleet record fleet.yaml --store history --prune \\
          --older-than 90d --team vision
    """
    if not prune and (older_than or team):
        raise console.mistyped("--older-than and --team: say what --prune deletes; add --prune")
    fleet = load_fleet(file)
    with _opened(store, create=not prune) as opened:
        if prune:
            _prune(fleet, opened, older_than, team)
        elif sources:
            _say(sum(opened.add(_elsewhere(fleet, opened, source, label or [])) for source in sources), store)
        elif once:
            _say(opened.add(_once(fleet, opened, kubeconfig, label or [])), store)
        else:
            check_readable(kubeconfig)
            asyncio.run(_follow(fleet, opened, kubeconfig, label or [], every))


@contextmanager
def _opened(where: str, *, create: bool) -> Iterator[Store]:
    """The store, for this process alone. Raises CommandError where it cannot be used."""
    try:
        with opened_store(where, create=create) as store, store.writing():
            yield store
    except OSError as failed:
        raise console.CommandError(
            f"{where}: cannot be written: {failed}; make room, or give another --store"
        ) from None


def _say(events: int, store: str) -> None:
    console.line(f"{console.count(events, 'new event')} written to {store}")


def _prune(fleet: FleetSpec, store: Store, older_than: str | None, team: str | None) -> None:
    from kueue_admission.forms.duration import Duration
    from kueue_admission.forms.form_rules import FaultError
    from kueue_admission.forms.suggest import instead
    from kueue_admission.forms.syntax import whole_number

    if older_than is None and team is None:
        raise console.mistyped("--prune: deletes nothing without a limit; give --older-than TIME or --team NAME")
    try:
        text = older_than or "0"
        days = whole_number(text[:-1]) if text.endswith("d") else None
        age = Duration(text).seconds if days is None else days * 86_400.0
    except FaultError as wrong:
        raise console.mistyped(f"--older-than {older_than}: {wrong}") from None
    gone = store.prune(time.time() - age, team or "")
    teams = sorted({each.name for each in fleet.teams})
    if not gone and team is not None and team not in teams:
        raise console.CommandError(
            f"--team {team}: has no events, and is not in the fleet; {instead(team, teams, 'teams')}"
        )
    console.line(f"{console.count(gone, 'event')} deleted from {store.where}")


def _elsewhere(fleet: FleetSpec, store: Store, given: str, labels: list[str]) -> list[Event]:
    """The new events of a dump of a cluster, of sacct, or of a CSV. Raises CommandError."""
    from dataclasses import replace

    from kueue_admission.forms.problem import SpecError
    from kueue_admission.history.elsewhere import table_reader

    cluster, separator, path = given.partition("=")
    named = bool(separator) and cluster in fleet.cluster_names
    source = Path(path if named else given)
    recorder = _recorder(fleet, cluster if named else fleet.home, store, labels)
    if str(source) == "-" or not source.is_dir():
        text = read_text(source, "a dump of Workloads, sacct's output, or a CSV")
        if (reader := table_reader(text)) is not None:
            try:
                found = reader(text, console.source_name(source))
            except SpecError as wrong:
                raise console.wrong_input(source, wrong.problems) from None
            region = fleet.cluster(cluster).region if named else ""
            placed = (replace(each, cluster=cluster if named else "", region=region) for each in found)
            recorder.note(replace(each, team=fleet.team_of.get(each.namespace, "")) for each in placed)
            return recorder.take()
    with well_formed():
        documents = [each.data for each in read_objects(source) if each.data.get("kind") in _PATHS]
    if not documents:
        raise console.CommandError(f"{source}: holds no Workloads; print them with kubectl get workloads -A -o yaml")
    for item in documents:
        recorder.see(f"{item['kind']}/{object_key(item)}", item)
    return recorder.take()


def _recorder(fleet: FleetSpec, cluster: str, store: Store, labels: list[str]) -> Recorder:
    from kueue_admission.history.events import Place
    from kueue_admission.history.recorder import Recorder

    place = Place(cluster, fleet.cluster(cluster).region, fleet.team_of, labels, NODE_POOL, SPOT)
    return Recorder(place, store)


def _once(fleet: FleetSpec, store: Store, kubeconfig: Path | None, labels: list[str]) -> list[Event]:
    clusters = Clusters("record", kubeconfig)
    found: list[Event] = []
    for cluster in fleet.cluster_names:
        recorder = _recorder(fleet, cluster, store, labels)
        for kind in _PATHS:
            for item in clusters.read(cluster, _PATHS[kind], f"its {kind}s"):
                recorder.see(f"{kind}/{object_key(item)}", {**item, "kind": kind})
            recorder.listed(kind, time.time())
        found += recorder.take()
    return found


async def _follow(fleet: FleetSpec, store: Store, kubeconfig: Path | None, labels: list[str], every: float) -> None:
    """Follow every cluster, and write what is new now and then, until a signal ends it."""
    from kueue_fleet.kube.access import AccessError
    from kueue_fleet.kube.client import KubeApi

    clusters = Clusters("record", kubeconfig)
    recorders = {name: _recorder(fleet, name, store, labels) for name in fleet.cluster_names}
    for name in recorders:
        for kind in _PATHS:
            clusters.read(name, _PATHS[kind], f"its {kind}s", {"limit": "1"})  # What is refused is said at once.
    [given, *_] = kubeconfig_files(kubeconfig)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    apis = {name: KubeApi(given, context=name) for name in recorders}
    watched = {name: Watched() for name in recorders}
    following: list[asyncio.Task[None]] = []
    try:
        for api in apis.values():
            await api.client()
        following += [
            asyncio.create_task(_watch(name, apis[name], kind, recorder, watched[name]))
            for name, recorder in recorders.items()
            for kind in _PATHS
        ]
        while not stopped.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), every)
            for task in following:
                if task.done():
                    task.result()
            _write(store, recorders, watched, time.time())
    except AccessError as refused:
        raise console.CommandError(str(refused)) from None
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        for api in apis.values():
            await api.close()


def _write(store: Store, recorders: Mapping[str, Recorder], watched: Mapping[str, Watched], now: float) -> None:
    """Write what is new, then that nothing was missed up to now where that is so."""
    if events := [event for recorder in recorders.values() for event in recorder.take()]:
        _say(store.add(events), store.where)
    store.follow({name: since for name, each in watched.items() if (since := each.seen_until(now)) is not None}, now)


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
        is_whole = len(self._followed) == len(_PATHS)
        self._since = (self._since or now) if is_whole else None

    def seen_until(self, now: float) -> float | None:
        """From when to NOW nothing was missed, the next time from NOW on; None: there was a break."""
        since = self._since
        self._since = since and now
        return since


async def _watch(cluster: str, api: ListAndWatch, kind: str, recorder: Recorder, watched: Watched) -> None:
    """Follow what is of a kind in a cluster."""
    from kueue_fleet.kube.watching import Watch

    def hear(key: str, item: Json | None) -> None:
        if item is None:
            recorder.lose(f"{kind}/{key}", time.time())
        else:
            recorder.see(f"{kind}/{key}", {**item, "kind": kind})

    def tell() -> None:
        watched.hear(kind, time.time(), follows=watch.connected and watch.synced.is_set())
        if not watch.connected:
            console.warning(
                f"{cluster}: its {kind}s cannot be followed; trying again, what is deleted meanwhile is lost"
            )

    watch = Watch(api, _PATHS[kind], hear, on_connection=tell)
    async with asyncio.TaskGroup() as group:
        group.create_task(watch.run())
        await watch.synced.wait()
        recorder.listed(kind, time.time())
        watched.hear(kind, time.time(), follows=watch.connected)
