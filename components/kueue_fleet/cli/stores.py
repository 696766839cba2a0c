"""The history of a fleet, as `record` writes it: options that name one, and how commands open it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kueue_admission.cli import console

if TYPE_CHECKING:
    from kueue_admission.history.store import Store

StoreOption = Annotated[
    str, typer.Option("--store", metavar="DIR", help="A folder, or gs://BUCKET/PATH, that holds the history.")
]
"""Where a history is."""
HistoryOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="DIR", help="What `record` wrote, a folder or gs://BUCKET/PATH, to judge goals by."
    ),
]
"""Where the history of a live fleet is."""
LOOK_BACK: Final = 31 * 86_400.0
"""Seconds before the time that is looked at of which events are read: jobs that ran or waited at its beginning."""


@contextmanager
def opened_store(where: str, *, create: bool = False) -> Iterator[Store]:
    """The store. Raises CommandError where it cannot be used, also for what happens to it in the block."""
    from kueue_admission.history.store import Store, StoreError

    try:
        yield Store(where, create=create)
    except StoreError as refused:
        raise console.CommandError(str(refused.problem)) from None
