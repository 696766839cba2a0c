"""The clusters of a fleet through the contexts of a kubeconfig: those that the file names, or named like the clusters.

A rehearsal and `pulumi stack output kubeconfig` have the names of clusters alone.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import read_yaml
from kueue_fleet.kube.kubeconfig import AccessError, kubeconfig_files, read_kubeconfig

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

    from kueue_fleet.fleet_file import FleetSpec


Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="With a context for each cluster, of its name or the file's.",
        show_default="$KUBECONFIG or ~/.kube/config",
    ),
]
"""The option of commands that read a live fleet."""


def files_of(kubeconfig: Path | None) -> tuple[Path, ...]:
    """The files that are read: the one of the option, else those that kubectl reads."""
    return (kubeconfig.expanduser(),) if kubeconfig else kubeconfig_files()


def check_readable(kubeconfig: Path | None) -> None:
    """Raises CommandError for files that the client would read for minutes, or end with a traceback for."""
    if str(kubeconfig) == "-":
        raise console.mistyped("--kubeconfig -: the client reads it from a file; give one")
    for file in files_of(kubeconfig):
        need = "a kubeconfig with a context for each cluster"
        data = read_yaml(file, need)
        if not isinstance(data, Mapping):
            raise console.CommandError(f"{file}: is not a kubeconfig; give {need}")


def connect(command: str, cluster: str, kubeconfig: Path | None, fleet: FleetSpec | None = None) -> ApiClient:
    """The client of a cluster, for a command; None: the kubeconfig that kubectl uses.

    Raises CommandError if there is no context for it, see `context_name`, no credentials, or no client.
    """
    # The client and urllib3 tell people who program what they try; commands say what went wrong.
    logging.getLogger().addHandler(logging.NullHandler())
    warnings.simplefilter("ignore")
    try:
        from kueue_fleet.kube.command_client import CommandClient
    except ImportError:
        raise console.CommandError(
            f"{command} needs the Kubernetes client; pip install 'kueue-fleet[rehearsal]' or 'kueue-fleet[controller]'"
        ) from None
    try:
        return CommandClient(files_of(kubeconfig), context_name(kubeconfig, cluster, fleet))
    except AccessError as refused:
        raise console.CommandError(str(refused)) from None


def context_name(kubeconfig: Path | None, cluster: str, fleet: FleetSpec | None) -> str:
    """The context of a cluster: that of the fleet file, unless only one of the cluster's name is there.

    Raises AccessError.
    """
    named = fleet.cluster(cluster).context if fleet is not None and cluster in fleet.plain_clusters else cluster
    if named == cluster:
        return cluster
    contexts = read_kubeconfig(files_of(kubeconfig)).contexts
    return cluster if named not in contexts and cluster in contexts else named


def namespace_of(kubeconfig: Path | None, fleet: FleetSpec) -> str:
    """The namespace of the context of the cluster that takes jobs; empty where it has none, or cannot be read, which
    `connect` says."""
    try:
        context = context_name(kubeconfig, fleet.home, fleet)
        return read_kubeconfig(files_of(kubeconfig)).context(context).text("namespace")
    except AccessError:
        return ""


def context_of(kubeconfig: Path | None, name: str | None) -> tuple[str, str]:
    """Name and namespace of a context; None: of the one that kubectl uses. Raises CommandError if there is none."""
    try:
        config = read_kubeconfig(files_of(kubeconfig))
        if not (name or config.current):
            raise console.CommandError(
                f"{config.path}: has no current context; give --context with the cluster that jobs are submitted to"
            )
        return name or config.current, config.context(name or "").text("namespace") or "default"
    except AccessError as refused:
        raise console.CommandError(str(refused)) from None
