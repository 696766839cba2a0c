"""How much is tried of what can be tried at length: a share in `make test`, all of it in `make properties`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")
SHARE = float(os.environ.get("KUEUE_FLEET_EXAMPLES", "0.25"))
"""Of the examples of a property, and of the inputs of a table that is tried in full by `make properties`."""


def examples(most: int) -> int:
    """The number of examples of a property, of which `make properties` tries `most`."""
    return max(5, round(most * SHARE))


def some_of(inputs: Sequence[T], name: str) -> Sequence[T]:
    """Every fourth input, or all of them with `make properties`; by `name`, so that other tests take others."""
    step = max(1, round(1 / SHARE))
    return inputs[crc32(name.encode()) % step :: step]
