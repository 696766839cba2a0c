"""Waits for the rehearsal's supervisor: with progress for the user, and an end when the engine cancels."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from threading import Event
from typing import Final, TypeVar

from kueue_fleet.kube.beside import beside
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.standins.plugin_errors import PluginError

PROGRESS_SECONDS: Final = 2.0
"""How often a long request reports that it is still running."""
CANCEL_POLL_SECONDS: Final = 0.2
"""How often a cancelled request is looked for."""

T = TypeVar("T")


def call_supervisor(ask: Callable[[], T], stop: Event, progress: Callable[[float], None]) -> T:
    """What `ask` returns; `progress` gets the seconds waited so far, every two seconds.

    Raises PluginError with the supervisor's own sentence, or when `stop` is set before it has answered.
    """
    answer = beside(ask)
    wait_seconds, last_notice = 0.0, 0.0
    while not wait([answer], CANCEL_POLL_SECONDS).done:
        if stop.is_set():
            raise PluginError("cancelled while waiting for the rehearsal's supervisor")
        wait_seconds += CANCEL_POLL_SECONDS
        if wait_seconds - last_notice >= PROGRESS_SECONDS:
            last_notice = wait_seconds
            progress(wait_seconds)
    try:
        return answer.result()
    except RehearsalError as error:
        raise PluginError(str(error)) from error
