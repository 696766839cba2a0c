"""How the last days met the goals of a live fleet, and what its last hours were, by its history."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from kueue_fleet.cli.stores import LOOK_BACK, opened_store

if TYPE_CHECKING:
    from kueue_admission.history.jobs import Past
    from kueue_admission.read.goals import Judged
    from kueue_fleet.fleet_file import FleetSpec

HOURS = 12
"""Hours that are shown of a history."""


def check_store(store: str | None) -> None:
    """Raises CommandError where there is no history, before clusters are asked."""
    if store is not None:
        with opened_store(store):
            pass


def judged_goals(fleet: FleetSpec, store: str | None, now: datetime) -> list[Judged]:
    """How the seven days up to `now` met each goal; without a store none is known. Raises CommandError."""
    from kueue_fleet.fleet_file.goals import goals_of

    return judged_by(fleet, read_week(store, now) if store is not None and goals_of(fleet) else None, now)


def judged_by(fleet: FleetSpec, past: Past | None, now: datetime) -> list[Judged]:
    """How the seven days up to `now` met each goal, by the jobs that `read_week` read; None: none is known."""
    from kueue_admission.read.goals import WEEK
    from kueue_fleet.fleet_file.goals import Recorded, judge_recorded

    end = now.timestamp()
    return judge_recorded(fleet, None if past is None else Recorded(past, end - WEEK, end))


def read_week(store: str, now: datetime) -> Past:
    """The jobs of the week up to `now`, with what came before and may go on in it. Raises CommandError."""
    from kueue_admission.history.jobs import OF_JOBS, past_of
    from kueue_admission.history.schema import Kind
    from kueue_admission.read.goals import WEEK

    with opened_store(store) as past:
        return past_of(past.read(now.timestamp() - WEEK - LOOK_BACK, (*OF_JOBS, Kind.COUNTED)))


def last_hours(past: Past, now: datetime) -> list[dict[str, Any]]:
    """What happened in each of the last hours, the present one first: jobs that came, began and ended, and how long
    those that began had waited, in the middle."""
    ends = [now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1 - hour) for hour in range(HOURS)]
    rows = []
    for end in ends:
        begin = end - timedelta(hours=1)
        within = range(int(begin.timestamp()), int(end.timestamp()))
        began = [job for job in past.jobs if job.runs and int(job.runs[0].admitted) in within]
        waits = sorted(job.wait for job in began if job.wait is not None)
        rows.append(
            {
                "hour": begin.isoformat(timespec="minutes"),
                "arrived": sum(int(job.arrival.time) in within for job in past.jobs),
                "began": len(began),
                "ended": sum(job.ended is not None and int(job.ended) in within for job in past.jobs),
                "wait": waits[len(waits) // 2] if waits else None,
            }
        )
    return rows
