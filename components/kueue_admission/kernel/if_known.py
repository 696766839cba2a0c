"""What follows from what may not be known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kueue_admission.kernel.unknown import NotKnownError

T = TypeVar("T")


def if_known(ask: Callable[[], T]) -> T | None:
    """What `ask` returns; None where that depends on what is not known."""
    try:
        return ask()
    except NotKnownError:
        return None
