"""The clusters of a fleet through the contexts of a kubeconfig, which are named like them."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cache
from logging.handlers import BufferingHandler
from pathlib import Path
from threading import Thread, get_ident
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import is_there, read_yaml

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

T = TypeVar("T")

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="With a context for each cluster, of the cluster's name.",
        show_default="$KUBECONFIG or ~/.kube/config",
    ),
]
"""The option of commands that read a live fleet."""


def kubeconfig_files(kubeconfig: Path | None) -> list[Path]:
    """The files that are read: the one of the option, else those that kubectl reads."""
    given = [str(kubeconfig)] if kubeconfig else os.environ.get("KUBECONFIG", "~/.kube/config").split(os.pathsep)
    return [Path(each).expanduser() for each in given if each]


def check_readable(kubeconfig: Path | None) -> None:
    """Raises CommandError for files that the client would read for minutes, or end with a traceback for."""
    if str(kubeconfig) == "-":
        raise console.mistyped("--kubeconfig -: the client reads it from a file; give one")
    for file in kubeconfig_files(kubeconfig):
        wanted = "a kubeconfig with a context for each cluster"
        if not kubeconfig and not is_there(file):
            continue
        data = read_yaml(file, wanted)
        if not isinstance(data, Mapping):
            raise console.CommandError(f"{file}: is not a kubeconfig; give {wanted}")


def connect(command: str, cluster: str, kubeconfig: Path | None) -> ApiClient:
    """The official client of a cluster, for a command; None: the kubeconfig that kubectl uses.

    Raises CommandError if there is no context of its name, no credentials, or no client.
    """
    config = _client_config(command)
    name = kubeconfig or "kubeconfig"
    # The client only logs that a plugin gave no credentials, and goes on without.
    logged = BufferingHandler(100)
    logging.getLogger().addHandler(logged)
    try:
        # urllib3 would try each request four times, and take as many times as long as its caller allows.
        once = config.kube_config.Configuration(retries=0)
        made: ApiClient = config.new_client_from_config(
            str(kubeconfig) if kubeconfig else None, context=cluster, client_configuration=once
        )
    except (LookupError, TypeError, AttributeError):
        # The client takes for granted that a kubeconfig has the form of one.
        raise console.CommandError(f"{name}: is not a kubeconfig; give one with a context {cluster}") from None
    except Exception as wrong:
        # Whatever the client uses to read a kubeconfig and its credentials has errors of its own.
        words = _sentence(wrong).removeprefix("Invalid kube-config file. ")
        raise console.CommandError(f"{name}: {words}; give a kubeconfig with a context {cluster}") from None
    finally:
        logging.getLogger().removeHandler(logged)
    failed = next((record.getMessage() for record in logged.buffer if record.thread == get_ident()), None)
    if failed is not None:
        raise console.CommandError(
            f"{name}: the credentials plugin of context {cluster} failed: {_sentence(failed)}; sign in again"
        )
    return made


def beside(work: Callable[[], T]) -> Future[T]:
    """What `work` finds or raises, in a thread of its own.

    Ctrl-C ends a command while it waits for these; a pool's threads would be waited for.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as failure:
            answer.set_exception(failure)

    Thread(target=run, daemon=True).start()
    return answer


def context_of(command: str, kubeconfig: Path | None, name: str | None) -> tuple[str, str]:
    """Name and namespace of a context; None: of the one that kubectl uses. Raises CommandError if there is none."""
    config = _client_config(command)
    try:
        contexts, current = config.list_kube_config_contexts(str(kubeconfig) if kubeconfig else None)
        found = next(each for each in contexts if each["name"] == name) if name else current
        return str(found["name"]), str(found["context"].get("namespace") or "default")
    except (config.ConfigException, OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        if name is not None:
            return name, "default"  # `connect` says what is wrong with it.
    raise console.CommandError(
        f"{kubeconfig or 'kubeconfig'}: has no current context; give --context with the cluster that jobs are "
        "submitted to"
    )


def _sentence(words: object) -> str:
    return " ".join(str(words).split()).rstrip(".")


@cache
def _client_config(command: str) -> Any:
    # The client and urllib3 tell people who program what they try; commands say what went wrong.
    logging.getLogger().addHandler(logging.NullHandler())
    warnings.simplefilter("ignore")
    try:
        from kubernetes import config
    except ImportError:
        raise console.CommandError(
            f"{command} needs the Kubernetes client; pip install 'kueue-fleet[rehearsal]' or 'kueue-fleet[controller]'"
        ) from None
    return config
