"""Reads the clusters of a fleet through the contexts of a kubeconfig, all at the same time; `--watch` does so again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, Protocol, TypeVar

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.input_files import Output
from kueue_admission.cli.interrupts import interruptible
from kueue_admission.kernel.names import KUEUE_API
from kueue_fleet.cli.contexts import connect
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.labels import ACCELERATOR, TPU_ACCELERATOR
from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.beside import beside
from kueue_fleet.kube.lists import list_of
from kueue_fleet.kube.requests import READ_SECONDS, request

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from rich.console import RenderableType

    from kueue_admission.read.printed import PrintedWorkload
    from kueue_fleet.kube.followed import FollowedList
    from kueue_fleet.status import ClusterObjects

_KINDS = {
    "clusterqueues": KUEUE_API,
    "workloads": KUEUE_API,
    "multikueueclusters": KUEUE_API,
    "provisioningrequests": "autoscaling.x-k8s.io/v1",
}
_NEVER_THERE = {"provisioningrequests"}
_STALE_SECONDS = 15
"""How long what was read of a cluster stands for it while it is read again: 15,000 Workloads take seconds."""
_ONCE_SECONDS = 20.0
_AGAIN_SECONDS = 2.0

Watch = Annotated[bool, typer.Option("--watch", "-w", help="Update the output until Ctrl-C.")]
"""The option --watch."""
Every = Annotated[float, typer.Option("--every", min=1, max=86_400, help="Seconds between two updates of --watch.")]
"""The option --every."""


class LiveView(Protocol):
    """What a command shows of a live fleet."""

    def as_json(self) -> dict[str, Any]:
        """The document of --output json."""

    @property
    def is_complete(self) -> bool:
        """Whether every cluster could be read."""


View = TypeVar("View", bound=LiveView)


def show_live(
    look: Callable[[], View], rendered: Callable[[View], list[RenderableType]], output: Output, every: float | None
) -> None:
    """Show what `look` finds, in the form asked for; again every so many seconds until Ctrl-C, if `every` is given.

    Raises:
        Exit: with code 1; a cluster could not be read.
    """
    if every is not None:
        _show_again_and_again(lambda: rendered(look()), every)
    view = look()
    if output is Output.json:
        console.json_document(view.as_json())
    else:
        console.show(*rendered(view))
    if not view.is_complete:
        raise typer.Exit(1)


def watch_interval(context: typer.Context, watch: bool, every: float, output: Output) -> float | None:
    """Seconds between two looks; None without --watch.

    Raises CommandError for --watch with JSON, and for --every without it.
    """
    if not watch:
        options.refuse_idle(context, "every", "without --watch")
    if watch and output is Output.json:
        raise console.mistyped("--watch: shows text only; leave it out for --output json")
    return every if watch else None


def patience(every: float | None) -> float:
    """Seconds that a look may take which is made once, or every so many seconds."""
    return _ONCE_SECONDS if every is None else _AGAIN_SECONDS


def _show_again_and_again(look: Callable[[], list[RenderableType]], every: float) -> NoReturn:
    with ExitStack() as stack:
        show = console.show
        if console.interactive():
            # The cursor has to come back.
            stack.enter_context(interruptible())
            show = stack.enter_context(console.in_place(stays=True))
        while True:
            show(*look(), "")
            time.sleep(every)


_WITH_DEVICES: Final = ({"labelSelector": ACCELERATOR}, {"labelSelector": TPU_ACCELERATOR})
"""The nodes of GKE with GPUs or TPUs, by parameters of lists."""
_EVERY_NODE: Final[Sequence[Mapping[str, str]]] = ({},)
"""Outside GKE no label is on all of those."""


class FleetReader:
    """Reads every cluster of a fleet at the same time, as often as `look` is called.

    A cluster that does not answer delays a look by `patience` seconds at most, and is not asked again until it has
    answered or failed. With `nodes`, those with GPUs or TPUs are read too. With `again`, for more than one look,
    Workloads are followed by a watch, and not read each time.
    """

    def __init__(
        self,
        command: str,
        fleet: FleetSpec,
        kubeconfig: Path | None,
        patience: float,
        *,
        nodes: bool = False,
        again: bool = False,
    ) -> None:
        self._command, self._fleet, self._kubeconfig, self._patience = command, fleet, kubeconfig, patience
        job_clusters = fleet.job_clusters if nodes else ()
        self._nodes = {name: _EVERY_NODE if name in fleet.plain_clusters else _WITH_DEVICES for name in job_clusters}
        self._roles = {name: fleet.cluster(name).role for name in fleet.cluster_names}
        self._kept = {name: _Memory() for name in fleet.cluster_names} if again else {}
        self._asked: dict[str, Future[ClusterObjects]] = {}
        self._last: dict[str, tuple[ClusterObjects, datetime]] = {}
        """What was read of each, and when; before that, nothing, and when it was asked."""

    def look(self) -> dict[str, ClusterObjects]:
        """The objects of every cluster, by its name in the order of the file; of one that is still being read, those
        of the last time, unless that is long ago.

        Raises CommandError if a cluster has no context, or no credentials.
        """
        from kueue_fleet.status import ClusterObjects

        end = time.monotonic() + self._patience
        for name, role in self._roles.items():
            self._last.setdefault(name, (ClusterObjects(role, unreachable="not read yet"), _now()))
            if name not in self._asked:
                nodes = self._nodes.get(name, ())
                kept = self._kept.get(name)
                read_arguments = (self._command, name, role, self._kubeconfig, self._fleet, nodes, kept)
                self._asked[name] = beside(partial(_read, *read_arguments))
        return {name: self._cluster_objects(name, end) for name in self._roles}

    def _cluster_objects(self, name: str, end: float) -> ClusterObjects:
        from kueue_fleet.status import ClusterObjects

        last, since = self._last[name]
        try:
            cluster_objects = self._asked[name].result(max(0.0, end - time.monotonic()))
        except TimeoutError:
            if not last.unreachable and (_now() - since).total_seconds() < _STALE_SECONDS:
                return last
            return ClusterObjects(self._roles[name], unreachable=f"not answered since {since:%Y-%m-%d %H:%M:%S} UTC")
        except BaseException:
            del self._asked[name]
            raise
        del self._asked[name]
        if not cluster_objects.unreachable:
            self._last[name] = cluster_objects, _now()
        elif not last.unreachable:
            error_text = f"{cluster_objects.unreachable}; last read at {since:%Y-%m-%d %H:%M:%S} UTC"
            return ClusterObjects(cluster_objects.role, cluster_objects.objects, error_text)
        return cluster_objects


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the edge has the clock


class _Memory:
    """What is kept of a cluster between two looks: its client, and its Workloads."""

    def __init__(self) -> None:
        self.client: ApiClient | None = None
        self._workloads: FollowedList[PrintedWorkload] | None = None

    def followed(self, client: ApiClient, path: str) -> FollowedList[PrintedWorkload]:
        """The Workloads of the cluster that the client reaches."""
        from kueue_admission.read.printed import PrintedWorkload
        from kueue_fleet.kube.followed import FollowedList

        if self._workloads is None:
            self.client, self._workloads = client, FollowedList(client, path, PrintedWorkload.of)
        return self._workloads

    def drop(self) -> None:
        """Begin again with the next look: the cluster may have other credentials, or be another one."""
        if self._workloads is not None:
            self._workloads.forget()
        self.client = self._workloads = None


def _read(
    command: str,
    cluster: str,
    role: str,
    kubeconfig: Path | None,
    fleet: FleetSpec,
    nodes: Sequence[Mapping[str, str]],
    kept: _Memory | None,
) -> ClusterObjects:
    client = (kept and kept.client) or connect(command, cluster, kubeconfig, fleet)
    from kueue_fleet.status import ClusterObjects

    def listed(path: str, params: Mapping[str, str] | None = None) -> Any:
        return list_of(request(client, "GET", path, params=params, seconds=READ_SECONDS))

    objects: dict[str, Any] = {}
    views: Sequence[PrintedWorkload] | None = None
    for plural, api_version in _KINDS.items():
        path = f"/apis/{api_version}/{plural}"
        try:
            if plural == "workloads" and kept is not None:
                views = kept.followed(client, path).objects()
                objects[plural] = [view.fields.data for view in views]
            else:
                objects[plural] = listed(path)
        except ApiError as error:
            if error.is_not_found and plural in _NEVER_THERE:
                continue
            if kept is not None:
                kept.drop()
            error_text = f"{plural}: {error.status} {error.reason}" if error.status else error.message
            return ClusterObjects(role, objects, error_text)
    if nodes:
        # Users who may not list nodes see the rest; what is not there is shown as not known.
        with suppress(ApiError):
            objects["nodes"] = [node for selector in nodes for node in listed("/api/v1/nodes", selector)]
    return ClusterObjects(role, objects, views=views)
