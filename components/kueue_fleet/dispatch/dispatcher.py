"""One dispatch decision: filter, score, nominate; widen step by step; give up.

Nominations only grow until they are given up, but for clusters that must not be among them any more: a copy that waits
keeps its place in the worker's queue, also while the worker is out of reach, and one that has quota is not given up.
Where the job may run already, nothing else is nominated. What was decided follows from the arguments alone, so that a
restart changes nothing.

Why it converges: all that it remembers is on the Workload (who is nominated, since when, who was given up), and the
number of clusters follows from the time since then, not from how often it was asked (`rounds_begun`). A call that is
lost, late or repeated leads to as many as a punctual one. Clusters are ordered by whether they were given up, by
score and by their place in the list, so no two are equal and the order does not depend on who answered first. More
than one nominated cluster is safe: MultiKueue keeps the copy that is admitted first and deletes the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kueue_admission.read.dispatch_report import Filtered, ParsedReport, Scored, Verdict, one_line
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.dispatch.model import (
    MOST_CLUSTERS,
    OUT_OF_REACH,
    Action,
    Decision,
    FilterReason,
    Reason,
    Request,
    Worker,
)
from kueue_fleet.dispatch.scoring import judge
from kueue_fleet.settings.dispatch import Dispatch

_SKEW_SECONDS: Final = 60.0
"""A start later than that from now is none."""
_PERMANENT: Final = frozenset(
    {FilterReason.REGION_NOT_ALLOWED, FilterReason.EXCEEDS_MAX_QUOTA, FilterReason.NO_MATCHING_FLAVOR}
)
"""Reasons that stay until a user changes the job, its region labels or a worker's quota."""
REMIND_SECONDS: Final = 30.0
"""After which Kueue is asked again for a copy that it has not made; then each time after twice as long."""
LONGEST_REMIND_SECONDS: Final = 300.0
"""After which it is asked again at the latest. A Kueue that is behind with its work gets no more of it by reminders."""


def decide(request: Request, workers: Sequence[Worker], settings: Dispatch, now: float) -> Decision:
    """Which of `workers` (those of the queue's MultiKueueConfig, most preferred first) are nominated now.

    Source of what may be nominated: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go
    (nominateAndSynchronizeWorkers), pkg/webhooks/workload_webhook.go.
    """
    return _remind(request, _decide(request, workers, settings, now))


def _remind(request: Request, decision: Decision) -> Decision:
    """Ask Kueue again for the copies that clusters within reach do not have.

    What Kueue could not send it tries again after as long as it has failed, up to 1,000 s, whether or not the worker is
    back (controller-runtime's rate limiter). Any change of the Workload makes it try at once.
    """
    within_reach = {verdict.cluster for verdict in decision.verdicts if isinstance(verdict, Scored)}
    unsent = [name for name in decision.nominated if name in request.unsent and name in within_reach]
    if decision.action is not Action.KEEP or not unsent:
        return decision
    now, again = decision.now, math.inf if decision.retry_at is None else decision.retry_at
    last = now if request.asked is None else min(request.asked, now)
    due = last + _remind_after(decision, last)
    if due > now:
        return replace(decision, retry_at=min(again, due))
    reminder = f"Kueue was asked again at {format_time(now)} for the copy that is missing on {', '.join(unsent)}"
    return replace(
        decision,
        action=Action.REMIND,
        message=f"{decision.message}; {reminder}",
        retry_at=min(again, now + _remind_after(decision, now)),
    )


def _remind_after(decision: Decision, last: float) -> float:
    """Seconds from the last time that Kueue was asked: as long as the job has been nominated."""
    return min(max(REMIND_SECONDS, last - decision.started), LONGEST_REMIND_SECONDS)


def _decide(request: Request, workers: Sequence[Worker], settings: Dispatch, now: float) -> Decision:
    if request.started is not None and request.started > now + _SKEW_SECONDS:
        # It was written by a controller with another clock; without this, nothing would be widened before that time.
        request = replace(request, started=None)
    if request.bound:
        return _stay(request, workers, settings, now)
    if request.gave_up and request.started is not None and now < request.started + settings.retry_after.seconds:
        return _rest(request, workers, settings, now)
    start_time = now if request.started is None or request.gave_up else request.started
    verdicts = judge(request, workers, settings, now)
    fits_nowhere = can_never_run(verdicts)
    if fits_nowhere and (request.nominated or request.could_run):
        start_time = now  # Until now some cluster could run it: quotas or queues may just be changing.
    if fits_nowhere and start_time + settings.reject_after.seconds <= now:
        return _reject(request, verdicts, start_time, now)
    suitable = {verdict.cluster: verdict for verdict in verdicts if isinstance(verdict, Scored)}
    lost = _out_of_reach(verdicts)
    names = [name for name in request.nominated if name in suitable or name in lost]
    stays = bool(request.reserved.intersection(names))
    if start_time + settings.give_up_after.seconds <= now and not stays:
        return _give_up(request, verdicts, start_time, now)
    order = {worker.name: index for index, worker in enumerate(workers)}
    fresh = sorted(
        (verdict for name, verdict in suitable.items() if name not in names),
        key=lambda verdict: (verdict.cluster in request.given_up, -verdict.score, order[verdict.cluster]),
    )
    rounds, widens_at = rounds_begun(start_time, settings.widen_after.seconds, now)
    # A cluster that is out of reach is none that could take the job now: another one is asked in its place.
    room = max(0, min(settings.step * rounds - sum(name in suitable for name in names), MOST_CLUSTERS - len(names)))
    again = [] if stays else [start_time + settings.give_up_after.seconds]
    if len(fresh) > room:
        again.append(widens_at)
    if fits_nowhere:
        again.append(start_time + settings.reject_after.seconds)
    nominated_names = (*names, *(verdict.cluster for verdict in fresh[:room]))
    reached_names = [name for name in nominated_names if name in suitable]
    return Decision(
        key=request.workload.key,
        now=now,
        action=_action(request, nominated_names),
        reason=_reason(request, reached_names, rounds),
        nominated=nominated_names,
        message=_message(reached_names, nominated_names, verdicts, rounds),
        verdicts=verdicts,
        started=start_time,
        retry_at=min(again, default=None),
    )


def _stay(request: Request, workers: Sequence[Worker], settings: Dispatch, now: float) -> Decision:
    """Where it may run already, and nowhere else, however long that takes.

    Those clusters are nominated, or Kueue could not take over what it finds there: clusterName must be one of the
    nominated clusters (kueue@v0.19.2 pkg/webhooks/workload_webhook.go).
    """
    verdicts = judge(request, workers, settings, now)
    lost = _out_of_reach(verdicts)
    out = {one.cluster for one in verdicts if isinstance(one, Filtered)}
    names = [worker.name for worker in workers]
    bound = [name for name in names if name in request.bound and name not in request.withdrawn]
    kept_names = [name for name in request.nominated if name in bound or (name in names and name not in out)]
    nominated_names = (*kept_names, *(name for name in bound if name not in kept_names))[:MOST_CLUSTERS]
    missing_reasons = [
        (name, "its queue does not have it any more") for name in sorted(request.bound.difference(names))
    ]
    missing_reasons += [(name, lost[name]) for name in bound if name in lost]
    why = "; ".join(f"it may run on {name}, and {text}" for name, text in missing_reasons)
    return Decision(
        key=request.workload.key,
        now=now,
        action=_action(request, nominated_names),
        reason=Reason.WAITING_FOR_WORKER if missing_reasons else Reason.NOMINATED,
        nominated=nominated_names,
        message=f"Waits: {why}" if missing_reasons else _message(nominated_names, nominated_names, verdicts, 1),
        verdicts=verdicts,
        started=now if request.started is None or request.gave_up else request.started,
        retry_at=None,
    )


def _out_of_reach(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The clusters that are out of reach, and why."""
    return {one.cluster: one.message for one in verdicts if isinstance(one, Filtered) and one.reason in OUT_OF_REACH}


def _action(request: Request, nominated_names: Sequence[str]) -> Action:
    is_unchanged = tuple(nominated_names) == request.nominated and request.started is not None and not request.gave_up
    return Action.KEEP if is_unchanged else Action.NOMINATE


def rounds_begun(start_time: float, seconds: float, now: float) -> tuple[int, float]:
    """How many rounds of `seconds` (above 0) have begun by `now`, at least one, and when the next begins.

    The next one is always later than `now`, which a difference of two times would not promise: in floating point
    `(started + 300) - started` can be less than 300, and who waits until then would wait again, indefinitely.
    """
    rounds = max(1, math.floor((now - start_time) / seconds))
    while start_time + rounds * seconds <= now:
        rounds += 1
    return rounds, start_time + rounds * seconds


def _reason(request: Request, reached_names: Sequence[str], rounds: int) -> Reason:
    if not reached_names:
        return Reason.NO_SUITABLE_CLUSTER
    return Reason.WIDENED if rounds > 1 and request.nominated else Reason.NOMINATED


def _message(
    reached_names: Sequence[str], nominated_names: Sequence[str], verdicts: Sequence[Verdict], rounds: int
) -> str:
    if not reached_names:
        why = ", ".join(f"{verdict.cluster} {verdict.reason}" for verdict in verdicts if isinstance(verdict, Filtered))
        return f"None of {len(verdicts)} clusters is suitable{f': {why}' if why else ''}"
    step = "" if rounds == 1 else f" in step {rounds}"
    return f"Nominated {', '.join(nominated_names)} of {len(verdicts)} clusters{step}"


def _give_up(request: Request, verdicts: tuple[Verdict, ...], start_time: float, now: float) -> Decision:
    nominated_text = ", ".join(request.nominated) or "no cluster"
    return Decision(
        key=request.workload.key,
        now=now,
        action=Action.GIVE_UP,
        reason=Reason.DEADLINE_EXCEEDED,
        nominated=(),
        message=f"Not admitted by {nominated_text} within {now - start_time:.0f} s",
        verdicts=verdicts,
        started=now,
        retry_at=now,
    )


def can_never_run(verdicts: Iterable[Verdict]) -> bool:
    """Whether there are clusters, all of them are known, and none can ever run the workload."""
    reasons = {one.reason if isinstance(one, Filtered) else None for one in verdicts}
    return bool(reasons) and reasons <= _PERMANENT


def _reject(request: Request, verdicts: tuple[Verdict, ...], start_time: float, now: float) -> Decision:
    why = ", ".join(f"{verdict.cluster} {verdict.reason}" for verdict in verdicts if isinstance(verdict, Filtered))
    return Decision(
        key=request.workload.key,
        now=now,
        action=Action.REJECT,
        reason=Reason.FITS_NO_CLUSTER,
        nominated=(),
        message=f"None of {len(verdicts)} clusters can ever run this job: {why}; request less, or change quotas or "
        "regions, and submit the job again",
        verdicts=verdicts,
        started=start_time,
        retry_at=None,
    )


def _rest(request: Request, workers: Sequence[Worker], settings: Dispatch, now: float) -> Decision:
    """Nothing before the time to start again."""
    again = (request.started or now) + settings.retry_after.seconds
    forbidden = [v for v in judge(request, workers, settings, now) if isinstance(v, Filtered)]
    return Decision(
        key=request.workload.key,
        now=now,
        action=Action.KEEP if not request.nominated else Action.GIVE_UP,
        reason=Reason.DEADLINE_EXCEEDED,
        nominated=(),
        message=f"Starts again in {again - now:.0f} s",
        verdicts=tuple(forbidden),
        started=request.started or now,
        retry_at=again,
    )


def report_of(decision: Decision) -> ParsedReport:
    """What is written of a decision."""
    nominated_names = decision.nominated if decision.reason in (Reason.NOMINATED, Reason.WIDENED) else ()
    return ParsedReport(one_line(decision.message), tuple(map(_report_entry, decision.verdicts)), nominated_names)


def _report_entry(verdict: Verdict) -> Verdict:
    message = one_line(verdict.message)
    if isinstance(verdict, Filtered):
        return replace(verdict, message=message)
    parts = (round(part, 3) for part in (verdict.score, verdict.price, verdict.waiting, verdict.free))
    return Scored(verdict.cluster, message, *parts)
