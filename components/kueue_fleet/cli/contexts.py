"""The clusters of a fleet through the contexts of a kubeconfig, which are named like them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kueue_fleet.cli import console
from kueue_fleet.cli.input_files import is_there, read_yaml

if TYPE_CHECKING:
    from kubernetes.client import ApiClient


def check_readable(kubeconfig: Path | None) -> None:
    """Raises CommandError for files that the client would read for minutes, or end with a traceback for."""
    given = [str(kubeconfig)] if kubeconfig else os.environ.get("KUBECONFIG", "~/.kube/config").split(os.pathsep)
    for file in (Path(each).expanduser() for each in given if each):
        wanted = "a kubeconfig with a context for each cluster"
        if not kubeconfig and not is_there(file):
            continue
        data = read_yaml(file, wanted)
        if not isinstance(data, Mapping):
            raise console.CommandError(f"{file}: is not a kubeconfig; give {wanted}")


def connect(command: str, cluster: str, kubeconfig: Path | None) -> ApiClient:
    """The official client of a cluster, for a command; None: the kubeconfig that kubectl uses.

    Raises CommandError if there is no context of its name, or no client.
    """
    try:
        from kubernetes import config
        from yaml import YAMLError
    except ImportError:
        raise console.CommandError(
            f"{command} needs the Kubernetes client; pip install 'kueue-fleet[rehearsal]' or 'kueue-fleet[controller]'"
        ) from None
    name = kubeconfig or "kubeconfig"
    try:
        made: ApiClient = config.new_client_from_config(str(kubeconfig) if kubeconfig else None, context=cluster)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError, ValueError, YAMLError) as wrong:
        words = " ".join(str(wrong).removeprefix("Invalid kube-config file. ").split()).rstrip(".")
        raise console.CommandError(f"{name}: {words}; give a kubeconfig with a context {cluster}") from None
    except (LookupError, TypeError, AttributeError):
        # The client takes for granted that a kubeconfig has the form of one.
        raise console.CommandError(f"{name}: is not a kubeconfig; give one with a context {cluster}") from None
    return made
