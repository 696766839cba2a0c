"""`record`: writes what happens in a fleet, or has happened elsewhere, into a store that lasts."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.input_files import read_text, read_what_can_be, well_formed
from kueue_admission.kernel.manifest import inside
from kueue_fleet.cli.contexts import Kubeconfig, check_readable, context_name, files_of
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.live_jobs import Clusters
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.cli.stores import StoreOption, opened_store
from kueue_fleet.gke.labels import NODE_POOL, SPOT
from kueue_fleet.kube.answers import object_key

if TYPE_CHECKING:
    from kueue_admission.history.events import Place
    from kueue_admission.history.recorder import Recorder
    from kueue_admission.history.schema import Event
    from kueue_admission.history.store import Store
    from kueue_admission.kernel.problem import Problem
    from kueue_admission.simulate.documents import Document
    from kueue_fleet.fleet_file import FleetSpec

Bounds = Callable[[float], tuple[float, int | None]]
"""At a time: before when days are deleted, and how many bytes are kept."""


def record(
    context: typer.Context,
    file: FleetFile,
    store: StoreOption,
    kubeconfig: Kubeconfig = None,
    once: Annotated[bool, typer.Option("--once", help="Write what there is now, and end.")] = False,
    every: Annotated[float, typer.Option("--every", min=1, max=86_400, help="Seconds between two writes.")] = 60.0,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="TIME", help="While following, delete days older than 90d, ...")
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option("--max-size", metavar="BYTES", help="And the oldest where there is more than 20Gi, ..."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY", help="Also keep this label or annotation of Workloads; repeatable."),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="[CLUSTER=]FILE",
            help="Instead of the live fleet: a dump of Workloads (YAML, JSON, a folder), a CSV, or "
            "Kueue's metrics, as text or at the address of a Prometheus; of the cluster that is named, else a dump is "
            "the manager's; repeatable.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="With the address of a Prometheus: each of the last 30d, ..."),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Delete events instead, by --older-than and --team.")] = False,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="TIME", help="With --prune: those older than 90d, 12h, ...")
    ] = None,
    team: Annotated[str | None, typer.Option("--team", help="With --prune: those of this team.")] = None,
) -> None:
    """Write what happens to jobs into Parquet files, a folder for each day, and go on until Ctrl-C.

    Arrivals, requests, nominations, reservations, checks, admissions, evictions, ends, stock-outs, and nodes by pool,
    with no event twice: started again, it writes what it missed as far as Workloads still say it. Of pods only what
    admission sees is kept. It needs the right to list and watch Workloads, Nodes and namespaces on every cluster, for
    stock-outs ProvisioningRequests too, and the extra `history`.

    \b
    Examples:
      kueue-fleet record fleet.yaml --store history --kubeconfig kubeconfig
      kueue-fleet record fleet.yaml --store gs://bucket/history --once
      kueue-fleet record fleet.yaml --store history \\
          --from dump/ --from worker-us-east4=worker.yaml
      kueue-fleet record fleet.yaml --store history \\
          --from http://localhost:9090 --since 30d
      kueue-fleet record fleet.yaml --store history --from jobs.csv
      kueue-fleet record fleet.yaml --store history --prune \\
          --older-than 90d --team vision
    """
    if not prune and (older_than or team):
        raise console.mistyped("--older-than and --team: say what --prune deletes; add --prune")
    if (prune or once or sources) and (keep or max_size):
        raise console.mistyped("--keep and --max-size: bound a store while clusters are followed; use --prune instead")
    if since is not None and not any(map(_is_prometheus, sources or [])):
        raise console.mistyped("--since: says from when on a Prometheus is asked; add --from http://...")
    if prune:
        options.refuse_idle(context, "sources once label kubeconfig", "with --prune")
    if sources:
        options.refuse_idle(context, "once kubeconfig", "with --from")
    if prune or once or sources:
        options.refuse_idle(context, "every", "where a write is the only one")
    bounds = _bounds(keep, max_size)
    back = 0.0 if since is None else _age("--since", since)
    fleet = load_fleet(file)
    with _opened(store, create=not prune) as record_store:
        if prune:
            _prune(fleet, record_store, older_than, team)
        elif sources:
            _say(
                sum(record_store.add(_elsewhere(fleet, record_store, source, label or [], back)) for source in sources),
                store,
            )
        elif once:
            _say(record_store.add(_once(fleet, record_store, kubeconfig, label or [])), store)
        else:
            check_readable(kubeconfig)
            asyncio.run(_follow(fleet, record_store, kubeconfig, label or [], every, bounds))


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


def _age(option: str, text: str) -> float:
    """Seconds of 90d, 12h, ... Raises CommandError."""
    from kueue_admission.kernel.duration import Duration
    from kueue_admission.kernel.form_rules import FaultError
    from kueue_admission.kernel.syntax import whole_number

    try:
        days = whole_number(text[:-1]) if text.endswith("d") else None
        return Duration(text).seconds if days is None else days * 86_400.0
    except FaultError as wrong:
        raise console.mistyped(f"{option} {text}: {wrong}") from None


def _bounds(keep: str | None, max_size: str | None) -> Bounds:
    """What is deleted at a time: days before another time, and the oldest beyond so many bytes. Raises CommandError."""
    from kueue_admission.kernel.form_rules import FaultError
    from kueue_admission.kernel.quantity import Quantity

    age = _age("--keep", keep) if keep is not None else None
    if age is not None and age < 86_400:
        raise console.mistyped(f"--keep {keep}: is less than a day; write 1d or more")
    try:
        most = None if max_size is None else Quantity(max_size).value
    except FaultError as wrong:
        raise console.mistyped(f"--max-size {max_size}: {wrong}") from None
    if most is not None and most < 2**24:
        raise console.mistyped(f"--max-size {max_size}: is less than 16Mi; write 16Mi or more")
    return lambda now: (0.0 if age is None else max(0.0, now - age), most)


def _prune(fleet: FleetSpec, store: Store, older_than: str | None, team: str | None) -> None:
    from kueue_admission.kernel.suggest import instead

    if older_than is None and team is None:
        raise console.mistyped("--prune: deletes nothing without a limit; give --older-than TIME or --team NAME")
    age = _age("--older-than", older_than or "0")
    gone = store.prune(max(0.0, time.time() - age), team or "")
    teams = sorted({team_entry.name for team_entry in fleet.teams})
    if not gone and team is not None and team not in teams:
        raise console.CommandError(
            f"--team {team}: has no events, and is not in the fleet; {instead(team, teams, 'teams')}"
        )
    console.line(f"{console.count(gone, 'event')} deleted from {store.where}")


def _is_prometheus(source: str) -> bool:
    """Whether a --from is the address of a server, with the name of a cluster before it or without."""
    from kueue_fleet.cli.prometheus import is_address

    return is_address(source) or is_address(source.partition("=")[2])


def _prometheus_events(fleet: FleetSpec, source: str, back: float) -> list[Event]:
    """What a Prometheus says that Kueue counted now, and on each of the days before. Raises CommandError."""
    from kueue_admission.kernel.suggest import instead
    from kueue_fleet.cli.prometheus import ask, is_address

    context_name, _, address = ("", "", source) if is_address(source) else source.partition("=")
    if context_name and context_name not in fleet.cluster_names:
        fix = instead(context_name, fleet.cluster_names, "clusters")
        raise console.mistyped(f"--from {source}: there is no cluster {context_name}; {fix}")
    cluster, now = context_name or fleet.home, time.time()
    answers = ask(address, cluster, now, now - back)
    _warn_of_metrics(address, answers)
    return _on(fleet, cluster, answers)


def _on(fleet: FleetSpec, cluster: str, rows: list[Event]) -> list[Event]:
    """Rows of metrics as those of a cluster: others have queues of the same names."""
    from dataclasses import replace

    region = fleet.cluster(cluster).place
    return [
        replace(row, cluster=cluster, region=region, key=f"{cluster}/{row.key}", uid=f"{cluster}/{row.uid}")
        for row in rows
    ]


def _elsewhere(fleet: FleetSpec, store: Store, given_source: str, labels: list[str], back: float) -> list[Event]:
    """The new events of a dump of a cluster, of a CSV, or of metrics. Raises CommandError."""
    if _is_prometheus(given_source):
        recorder = _recorder(fleet, fleet.home, store, labels)
        recorder.note(_prometheus_events(fleet, given_source, back))
        return recorder.take()
    cluster, source = _cluster_and_path(fleet, given_source)
    recorder = _recorder(fleet, cluster or fleet.home, store, labels)
    if (rows := _rows(fleet, cluster, source)) is not None:
        recorder.note(rows)
    else:
        for item in _dumped(source):
            recorder.see(f"{item['kind']}/{object_key(item)}", item)
    return recorder.take()


def _cluster_and_path(fleet: FleetSpec, given_source: str) -> tuple[str, Path]:
    """The cluster that is named, empty where none is, and what is behind its name. Raises CommandError."""
    from kueue_admission.kernel.suggest import instead

    cluster, separator, path = given_source.partition("=")
    if separator and cluster in fleet.cluster_names:
        return cluster, Path(path)
    if separator and Path(path).exists() and not Path(given_source).exists():
        fix = instead(cluster, fleet.cluster_names, "clusters")
        raise console.mistyped(f"--from {given_source}: there is no cluster {cluster}; {fix}")
    return "", Path(given_source)


def _rows(fleet: FleetSpec, cluster: str, source: Path) -> list[Event] | None:
    """The rows of a CSV or of metrics; None of what is neither. Raises CommandError."""
    from dataclasses import replace

    from kueue_admission.history.elsewhere import table_reader
    from kueue_admission.history.metrics import is_metrics
    from kueue_admission.kernel.problem import SpecError

    if str(source) != "-" and source.is_dir():
        return None
    text = read_text(source, "a dump of Workloads, a CSV, or metrics")
    if is_metrics(text):
        return _on(fleet, cluster or fleet.home, _counted(text, source))
    if (reader := table_reader(text)) is None:
        return None
    try:
        rows = reader(text, console.source_name(source))
    except SpecError as wrong:
        raise console.wrong_input(source, wrong.problems) from None
    region = fleet.cluster(cluster).place if cluster else ""
    teams = fleet.team_of
    return [replace(row, cluster=cluster, region=region, team=teams.get(row.namespace, "")) for row in rows]


def _dumped(source: Path) -> list[Mapping[str, Any]]:
    """The objects of a dump that can be recorded. Raises CommandError."""
    from kueue_fleet.controller.history import IF_THERE, PATHS

    with well_formed():
        objects = [
            manifest for manifest in read_what_can_be(source) if manifest.data.get("kind") in {**PATHS, **IF_THERE}
        ]
    faults = [list(_unprinted(manifest)) for manifest in objects]
    problems = [problem for of_object in faults for problem in of_object]
    documents = [manifest.data for manifest, wrong in zip(objects, faults, strict=True) if not wrong]
    if problems and not documents:
        raise console.wrong_input(source, problems)
    for problem in problems:
        console.warning(f"left out: {problem}; it is not recorded")
    if not documents:
        raise console.CommandError(f"{source}: holds no Workloads; print them with kubectl get workloads -A -o yaml")
    return documents


def _counted(text: str, source: Path) -> list[Event]:
    """The rows of metrics, and on the way what they do not tell. Raises CommandError."""
    from kueue_admission.history.metrics import read_metrics
    from kueue_admission.kernel.problem import SpecError

    print_time = source.stat().st_mtime if source.is_file() else time.time()  # The text itself seldom says.
    try:
        events = read_metrics(text, console.source_name(source), print_time)
    except SpecError as wrong:
        raise console.wrong_input(source, wrong.problems) from None
    _warn_of_metrics(console.source_name(source), events)
    return events


def _warn_of_metrics(source: str, events: list[Event]) -> None:
    from kueue_admission.history.metrics import SINCE

    since = "" if any(SINCE in (answer.counts or {}) for answer in events) else ", nor since when they were counted"
    console.warning(
        f"{source}: metrics tell of no single job: not known is what each asked for, where and "
        f"how long it ran, and for which team{since}; so replay, plan, cost and evidence have nothing of it, and of "
        "the goals only waits of whole ClusterQueues can be judged"
    )


def _unprinted(document: Document) -> Iterator[Problem]:
    """What an object lacks that every cluster prints, and without which it would be taken for another one, or lost."""
    from kueue_admission.kernel.form_rules import OBJECT
    from kueue_admission.read.fields import seconds_of

    metadata, fix = document.data.get("metadata"), "print it with kubectl get -o yaml"
    owner_metadata = metadata if isinstance(metadata, dict) else {}
    path = f"{document.data['kind']} {owner_metadata.get('name', '')}".rstrip() + ".metadata"
    if missing_fields := [name for name in ("name", "uid", "creationTimestamp") if not owner_metadata.get(name)]:
        yield OBJECT.at(path, f"has no {', '.join(missing_fields)}", fix).behind(document.where)
        return
    try:
        is_time = seconds_of(owner_metadata["creationTimestamp"]) >= 0
    except ValueError:
        is_time = False
    if not is_time:
        wrong = f"{owner_metadata['creationTimestamp']} is not a time after 1970"
        yield OBJECT.at(f"{path}.creationTimestamp", wrong, fix).behind(document.where)


def _place(fleet: FleetSpec, cluster: str, labels: list[str]) -> Place:
    from kueue_admission.history.events import Place

    return Place(cluster, fleet.cluster(cluster).place, fleet.team_of, labels, NODE_POOL, SPOT)


def _recorder(fleet: FleetSpec, cluster: str, store: Store, labels: list[str]) -> Recorder:
    from kueue_admission.history.recorder import Recorder

    return Recorder(_place(fleet, cluster, labels), store)


def _once(fleet: FleetSpec, store: Store, kubeconfig: Path | None, labels: list[str]) -> list[Event]:
    from kueue_fleet.controller.history import PATHS

    clusters = Clusters("record", kubeconfig, fleet)
    _meet(fleet, store, clusters)
    events: list[Event] = []
    for cluster in fleet.cluster_names:
        recorder = _recorder(fleet, cluster, store, labels)
        for kind, path in {**PATHS, **_if_there(clusters, cluster)}.items():
            for item in clusters.read(cluster, path, f"its {kind}s"):
                recorder.see(f"{kind}/{object_key(item)}", {**item, "kind": kind})
            if kind in PATHS:
                recorder.listed(kind, time.time())
        events += recorder.take()
    return events


def _meet(fleet: FleetSpec, store: Store, clusters: Clusters) -> None:
    """Note which clusters these are. Raises CommandError where one is another than before: all that ran on the former
    would count as deleted."""
    from kueue_fleet.kube.api import KUBE_SYSTEM, NAMESPACES

    known_identities = {
        name: str(inside(space, "metadata").get("uid"))
        for name in fleet.cluster_names
        for space in clusters.read(name, NAMESPACES, "its namespaces", KUBE_SYSTEM)
    }
    others = [name for name, identity in known_identities.items() if store.is_another(name, identity)]
    if others:
        raise console.CommandError(
            f"{', '.join(others)}: the context leads to another cluster than the one that {store.where} has of this "
            "name; correct the kubeconfig, or run without --once where it was made again"
        )
    for name, identity in known_identities.items():
        store.meet(name, identity)


def _if_there(clusters: Clusters, cluster: str) -> dict[str, str]:
    """What is recorded too where a cluster has it, and lets its user read it. Raises CommandError."""
    from kueue_fleet.controller.history import IF_THERE
    from kueue_fleet.kube.answers import ApiError

    files = {}
    for kind, path in IF_THERE.items():
        try:
            clusters.ask(cluster, path, {"limit": "1"})
        except ApiError as failed:
            if failed.status == 403:
                console.warning(f"{cluster}: its {kind}s cannot be read; stock-outs are not recorded there")
            elif not failed.is_not_found:
                raise console.CommandError(f"{cluster}: its {kind}s cannot be read: {failed}; try again") from None
        else:
            files[kind] = path
    return files


async def _pause(stop_event: asyncio.Event, seconds: float, tasks: Iterable[asyncio.Task[None]]) -> None:
    """Until it is stopped, at most so long. Raises what ended a task."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop_event.wait(), seconds)
    for task in tasks:
        if task.done():
            task.result()


async def _follow(
    fleet: FleetSpec, store: Store, kubeconfig: Path | None, labels: list[str], every: float, bounds: Bounds
) -> None:
    """Follow every cluster, and write what is new now and then, until a signal ends it."""
    from kueue_fleet.controller.history import PATHS, Following
    from kueue_fleet.kube.client import KubeApi
    from kueue_fleet.kube.kubeconfig import AccessError
    from kueue_fleet.kube.watching import Watch

    clusters = Clusters("record", kubeconfig, fleet)
    places = {name: _place(fleet, name, labels) for name in fleet.cluster_names}
    follow_times = {}
    for name in places:
        for kind in PATHS:
            clusters.read(name, PATHS[kind], f"its {kind}s", {"limit": "1"})  # What is refused is said at once.
        follow_times[name] = {**PATHS, **_if_there(clusters, name)}
    stop_event = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop_event.set)
    apis = {name: KubeApi(files_of(kubeconfig), context=context_name(kubeconfig, name, fleet)) for name in places}
    following = Following(places, time.time, console.warning)
    tasks: list[asyncio.Task[None]] = []
    try:
        for name, api in apis.items():
            await api.connect()
            for kind, path in follow_times[name].items():
                watch = Watch(api, path, lambda *_: None, optional=kind not in PATHS)
                following.follow(name, kind, watch)
                tasks.append(asyncio.create_task(watch.run()))
        tasks.append(asyncio.create_task(following.compare(store)))
        while not stop_event.is_set():
            await _pause(stop_event, every, tasks)
            if events := await following.write(store):
                _say(events, store.where)
            store.bound(*bounds(time.time()))
        store.finish()
    except AccessError as refused:
        raise console.CommandError(str(refused)) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for api in apis.values():
            await api.close()
