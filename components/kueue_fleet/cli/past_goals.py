"""How the last days met the goals of a live fleet, by its history."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_admission.cli import console

if TYPE_CHECKING:
    from kueue_admission.read.goals import Judged
    from kueue_fleet.fleet_file import FleetSpec

HistoryOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="DIR", help="What `record` wrote, a folder or gs://BUCKET/PATH, to judge goals by."
    ),
]
"""Where the history of a live fleet is."""
_LOOK_BACK = 31 * 86_400.0


def judged_goals(fleet: FleetSpec, store: str | None, now: datetime) -> list[Judged]:
    """How the seven days up to `now` met each goal; without a store none is known. Raises CommandError."""
    from kueue_admission.history.jobs import OF_JOBS, past_of
    from kueue_admission.read.goals import WEEK
    from kueue_fleet.fleet_file.goals import Recorded, goals_of, judge_recorded

    if store is None or not goals_of(fleet):
        return judge_recorded(fleet, None)
    from kueue_admission.history.store import Store, StoreError

    end = now.timestamp()
    try:
        past = past_of(Store(store).read(end - WEEK - _LOOK_BACK, OF_JOBS))
    except StoreError as refused:
        raise console.CommandError(str(refused.problem)) from None
    return judge_recorded(fleet, Recorded(past, end - WEEK, end))
