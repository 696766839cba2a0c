"""Admission checks of the fleet: may this job start, and may it start now?

Run time: given and not too long, as DWS Flex Start wants it. Calendar: one of the windows is open, and long enough for
the run. Region: some worker is in an allowed region. What can never become true rejects the workload, which deactivates
it; what will become true waits, with the time in the message, and so does what is not known yet.
Source of the limit: https://cloud.google.com/kubernetes-engine/docs/concepts/dws (seven days).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from kueue_admission.decide.model import CheckState
from kueue_admission.kernel.names import RUN_DURATION_ANNOTATION
from kueue_fleet.dispatch.residency import Residency
from kueue_fleet.settings.dispatch import FleetCheck
from kueue_fleet.settings.windows import CalendarWindow

_AHEAD: Final = timedelta(days=8)
"""A window of the week opens again within that."""


@dataclass(frozen=True, slots=True)
class CheckDecision:
    """The state of the check and why. `retry_at` is when it changes without an event."""

    state: CheckState
    message: str
    retry_at: float | None = None


def decide_check(
    rules: FleetCheck, run_seconds: str | float | None, residency: Residency, regions: Sequence[str | None], now: float
) -> CheckDecision:
    """Whether a workload passes.

    Args:
        rules: what is looked at.
        run_seconds: the longest run that the job declares: the text of the annotation or a number; None: it says none.
        residency: where it may be.
        regions: where the workers of its queue are; None for one of which that is not known.
        now: seconds of the epoch.
    """
    run = _seconds(run_seconds)
    if rules.run_duration is not None:
        problem = _run_problem(run_seconds, run, rules.run_duration.max.seconds)
        if problem:
            return CheckDecision(CheckState.REJECTED, problem)
    if rules.regions and residency.bounds:
        check_decision = _decide_region(residency, regions)
        if check_decision is not None:
            return check_decision
    if rules.windows and run_seconds is not None and not run:
        # What cannot be read might outlast every window; who says nothing needs one that is open.
        longest = max(window.duration.seconds for window in rules.windows)
        return CheckDecision(CheckState.REJECTED, _run_problem(run_seconds, run, longest))
    if rules.windows:
        return _decide_calendar(rules.windows, run, now)
    return CheckDecision(CheckState.READY, "Passed")


def _decide_region(residency: Residency, regions: Sequence[str | None]) -> CheckDecision | None:
    """What speaks against the regions; None where the workload may be in one of them."""
    known_regions = [region for region in regions if region is not None]
    if residency.allowed(known_regions):
        return None
    bounds = "; ".join(bound.text for bound in residency.bounds)
    places = ", ".join(dict.fromkeys(known_regions)) or "no known region"
    text = f"No worker of its queue is where its data may be: the workers are in {places}, but {bounds}"
    if len(known_regions) < len(regions) or not regions:
        # A MultiKueueConfig that is just being replaced must not deactivate whatever waits.
        return CheckDecision(CheckState.PENDING, f"{text}; waits until all workers of its queue are known")
    return CheckDecision(
        CheckState.REJECTED, f"{text}; correct the label, or choose another queue, and submit the job again"
    )


def _seconds(value: str | float | None) -> float | None:
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) <= 12):
        return None
    return None if value is None else float(value)


def _run_problem(run_seconds: str | float | None, run: float | None, longest: float) -> str:
    fix = f"set annotation {RUN_DURATION_ANNOTATION} to a number of seconds up to {longest:.0f}, and submit it again"
    if run_seconds is None:
        return f"The job does not say how long it runs; {fix}"
    if run is None or run <= 0:
        return f"The job's run time {str(run_seconds)[:40]!r} is not a number of seconds above 0; {fix}"
    if run > longest:
        return f"The job's run time of {run:.0f} s is longer than {longest:.0f} s; {fix}"
    return ""


def _decide_calendar(windows: Sequence[CalendarWindow], run: float | None, now: float) -> CheckDecision:
    need = run or 0.0
    for start, end, name in sorted(_openings(windows, now)):
        if max(now, start) + need > end:
            continue
        if now >= start:
            return CheckDecision(CheckState.READY, f"Window {name} is open until {format_time(end)}")
        return CheckDecision(CheckState.PENDING, f"Waits for window {name}, which opens at {format_time(start)}", start)
    return CheckDecision(CheckState.REJECTED, _no_window(windows, need, now))


def _openings(windows: Iterable[CalendarWindow], now: float) -> Iterator[tuple[float, float, str]]:
    """Start and end of the times that are not over, of windows of the week those of at least a week; and whose."""
    moment = datetime.fromtimestamp(now, UTC)
    for window in windows:
        for opening in window.opens(moment, max(moment, window.start) + _AHEAD):
            start, end = (at.timestamp() for at in opening)
            if now < end:
                yield start, end, window.name


def _no_window(windows: Sequence[CalendarWindow], need: float, now: float) -> str:
    if any(window.days for window in windows):
        longest = max(window.duration.seconds for window in windows if window.days or now < _end(window))
        return (
            f"A run of {need:.0f} s fits into none of the windows, the longest of which lasts {longest:.0f} s; "
            "declare a shorter run, or another window"
        )
    last = max(map(_end, windows))
    if now >= last:
        return f"The last window closed at {format_time(last)}; declare another one"
    return (
        f"A run of {need:.0f} s fits into none of the windows that are left, the last of which closes at "
        f"{format_time(last)}; declare a shorter run, or another window"
    )


def _end(window: CalendarWindow) -> float:
    """Of one that opens once."""
    return window.start.timestamp() + window.duration.seconds


def format_time(seconds: float) -> str:
    """A time as Kubernetes writes it."""
    # strftime("%Y") writes the year 1 without zeros, which no API server reads.
    return datetime.fromtimestamp(seconds // 1, UTC).isoformat().replace("+00:00", "Z")
