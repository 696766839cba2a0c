"""How a simulation compares with goals."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kueue_admission.kernel.names import GPU_RESOURCE
from kueue_admission.read.goals import Goal, Judged, Seen, judge
from kueue_admission.simulate.clock import EndReason
from kueue_admission.simulate.records import Record
from kueue_admission.simulate.result import Result


def seen_in(result: Result) -> list[Seen]:
    """The jobs of a simulation."""
    return [seen(record, result.teams.get(record.namespace, ""), result.end.at) for record in result.records]


def seen(record: Record, team: str, end: float) -> Seen:
    """A job of a simulation that is over at `end`."""
    spans = tuple((run.admitted_at, end if run.ended_at is None else run.ended_at) for run in record.runs)
    return Seen(
        record.cluster_queue,
        team,
        record.priority,
        dict(record.requests).get(GPU_RESOURCE, 0),
        record.arrived_at,
        None if record.wait is None else record.first_admitted_at,
        spans,
        bool(record.not_known),
    )


def judge_result(goals: Iterable[Goal], result: Result) -> list[Judged]:
    """How a simulation compares with each goal."""
    is_over = result.end.reason in (EndReason.NOTHING_MORE, EndReason.REPEATS)
    end = result.origin + result.until if result.until is not None else result.end.at
    return judge(goals, seen_in(result), result.origin, end, math.inf if is_over else result.end.at)
