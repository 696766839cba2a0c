"""What can be said about a waiting workload to whoever may read it: no other job or queue is named."""

from __future__ import annotations

from dataclasses import replace

from kueue_admission.decide.amounts import format_amount
from kueue_admission.decide.reasons import LASTING, QuotaReservedReason
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.explain.answer import Explanation
from kueue_admission.explain.entry_text import about_entry, shortage, step_of_limits
from kueue_admission.explain.figures import figures, requests_of

_ROOM = {
    Outcome.ADMITTED: "There is quota for it.",
    Outcome.PREEMPTING: "There is quota for it once the jobs that it preempts have stopped.",
}


def explain_alone(cache: Cache, entry: Entry) -> Explanation:
    """Headline and next step of a workload by what a cycle finds for it alone."""
    info = entry.info
    explanation = Explanation(
        workload=info.key,
        cluster="",
        state="Pending",
        reason=entry.why,
        message=entry.message(),
        headline="",
        cluster_queue=info.cluster_queue,
        requests=requests_of(info),
        flavors=figures(cache, info, entry) if entry.outcome is not Outcome.INADMISSIBLE else (),
    )
    return replace(
        explanation,
        headline=_ROOM.get(entry.outcome) or about_entry(explanation, entry),
        next_step=_step(explanation, entry),
    )


def _step(explanation: Explanation, entry: Entry) -> str:
    if entry.outcome in _ROOM:
        return "Wait: Kueue looks at the jobs of a queue in turn."
    if explanation.message and entry.info.workload.problem == explanation.message:
        return step_of_limits(entry.info.workload.namespace)
    short = shortage(explanation)
    if short is None:
        lasts = explanation.reason in LASTING
        ask = f"Ask whoever administers ClusterQueue {explanation.cluster_queue}: it does not change by itself."
        return ask if lasts else "Wait: Kueue tries it again when other jobs end."
    flavor, figure = short
    if explanation.reason == QuotaReservedReason.EXCEEDS_MAX_QUOTA:
        most = format_amount(figure.resource, figure.capacity)
        return f"Submit it again with at most {most} {figure.resource}, or ask for a larger quota."
    amount = format_amount(figure.resource, figure.missing)
    where = "on a worker cluster" if flavor.is_of_workers else f"of flavor {flavor.flavor}"
    return f"Wait until {amount} more {figure.resource} {where} is free for ClusterQueue {explanation.cluster_queue}."
