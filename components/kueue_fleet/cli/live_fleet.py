"""Reads the clusters of a fleet through the contexts of a kubeconfig, all at the same time; `--watch` does so again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Protocol, TypeVar

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import Output
from kueue_admission.cli.interrupts import interruptible
from kueue_admission.forms.names import KUEUE_API
from kueue_fleet.cli.contexts import connect
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.labels import ACCELERATOR, TPU_ACCELERATOR
from kueue_fleet.kube.answers import ApiError, list_of
from kueue_fleet.kube.requests import request

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kueue_fleet.status import ClusterObjects

_KINDS = {
    "clusterqueues": KUEUE_API,
    "workloads": KUEUE_API,
    "multikueueclusters": KUEUE_API,
    "provisioningrequests": "autoscaling.x-k8s.io/v1",
}
_NEVER_THERE = {"provisioningrequests"}
_TIMEOUT_SECONDS = 10

Watch = Annotated[bool, typer.Option("--watch", "-w", help="Update the output until Ctrl-C.")]
"""The option --watch."""
Every = Annotated[float, typer.Option("--every", min=1, help="Seconds between two updates of --watch.")]
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
    found = look()
    if output is Output.json:
        console.json_document(found.as_json())
    else:
        console.show(*rendered(found))
    if not found.is_complete:
        raise typer.Exit(1)


def watch_interval(watch: bool, every: float, output: Output) -> float | None:
    """Seconds between two looks; None without --watch. Raises CommandError for --watch with JSON."""
    if watch and output is Output.json:
        raise console.mistyped("--watch: shows text only; leave it out for --output json")
    return every if watch else None


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


def read_clusters(
    command: str, fleet: FleetSpec, kubeconfig: Path | None, *, nodes: bool = False
) -> dict[str, ClusterObjects]:
    """The objects of every cluster, by its name in the order of the file; with `nodes`, those with GPUs or TPUs."""
    roles = {name: fleet.cluster(name).role for name in fleet.cluster_names}
    answers: dict[str, Future[ClusterObjects]] = {name: Future() for name in roles}

    def ask(name: str) -> None:
        try:
            answers[name].set_result(_read(command, name, roles[name], kubeconfig, nodes and roles[name] != "manager"))
        except BaseException as failure:
            answers[name].set_exception(failure)

    for name in roles:
        # Ctrl-C ends the command while these wait for an answer; a pool's threads would be waited for.
        Thread(target=ask, args=(name,), daemon=True).start()
    return {name: answer.result() for name, answer in answers.items()}


def _read(command: str, cluster: str, role: str, kubeconfig: Path | None, nodes: bool) -> ClusterObjects:
    client = connect(command, cluster, kubeconfig)
    from kueue_fleet.status import ClusterObjects

    def listed(path: str, params: Mapping[str, str] | None = None) -> Any:
        return list_of(request(client, "GET", path, params=params, seconds=_TIMEOUT_SECONDS))

    found: dict[str, Any] = {}
    for plural, api_version in _KINDS.items():
        try:
            found[plural] = listed(f"/apis/{api_version}/{plural}")
        except ApiError as error:
            if error.is_not_found and plural in _NEVER_THERE:
                continue
            told = f"{plural}: {error.status} {error.reason}" if error.status else error.message
            return ClusterObjects(role, found, told)
    if nodes:
        try:
            selectors = ({"labelSelector": label} for label in (ACCELERATOR, TPU_ACCELERATOR))
            found["nodes"] = [node for selector in selectors for node in listed("/api/v1/nodes", selector)]
        except ApiError:
            pass  # Whoever may not list nodes sees the rest; what is not there is shown as not known.
    return ClusterObjects(role, found)
