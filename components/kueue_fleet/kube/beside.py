"""Work beside a command or a request."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def beside(work: Callable[[], T]) -> Future[T]:
    """What `work` finds or raises, in a thread of its own.

    The end of the process does not wait for it, as it would for the threads of a pool.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as failure:
            answer.set_exception(failure)

    Thread(target=run, daemon=True).start()
    return answer
