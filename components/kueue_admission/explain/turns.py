"""In words: when the turn of a workload comes for which there is room, and who is in its way."""

from __future__ import annotations

from collections.abc import Iterable

from kueue_admission.decide.amounts import format_amount
from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Outcome
from kueue_admission.explain.answer import Blocker, Explanation, FlavorFigures
from kueue_admission.explain.next_cycles import Outlook


def is_behind_others(explanation: Explanation, outlook: Outlook) -> bool:
    """Whether there is room for it, and others take it or hold it back."""
    return outlook.outcome not in (Outcome.PREEMPTING, Outcome.ADMITTED) and bool(explanation.blockers)


def about_turn(explanation: Explanation, outlook: Outlook) -> str:
    """For a workload that would get quota if no other were pending."""
    if outlook.outcome is Outcome.PREEMPTING:
        count = len(explanation.victims)
        return f"There is room once {count} preempted workload{'s have' if count > 1 else ' has'} stopped."
    if outlook.outcome is not Outcome.ADMITTED:
        place = explanation.position.place if explanation.position else 1
        if not explanation.blockers:
            return f"There is room for it, but it is number {place} in its queue."
        blocker = blocker_text(explanation.blockers[0], explanation.flavors)
        return f"There is room for it, but not beside the others that wait: {blocker}."
    if explanation.written is not None and not explanation.written.agrees and explanation.written.is_current:
        return "Kueue refuses it, though there is room for it by the objects here: this answer disagrees with Kueue."
    if explanation.turns:
        count = len(explanation.turns)
        return f"There is room for it: Kueue admits it after {count} other workload{'s' if count > 1 else ''}."
    unseen = sum(group.count for placement in explanation.placements for group in placement.unseen)
    but = f" But {unseen} of the nodes that Kueue counts are not for its pods." if unseen else ""
    return f"There is room for it and its turn is next: the next cycle admits it.{but}"


def turn_step(explanation: Explanation, outlook: Outlook) -> str:
    """What to do about a workload that gets quota in the next cycles."""
    if outlook.outcome is Outcome.PREEMPTING:
        return "Wait for the preempted workloads to stop."
    if explanation.written is None or explanation.written.agrees:
        return "Wait for the next cycle."
    return (
        "Print the objects again, every kind that docs/explain.md names, and give --fair-sharing if Kueue has it on. "
        "If Kueue still refuses the job, any change of its ClusterQueue lets Kueue look at it again."
    )


def never_starts(blocker: Blocker) -> bool:
    """Whether it waits for what its queue can never have, as queue and flavors are."""
    return blocker.reason in (QuotaReservedReason.EXCEEDS_MAX_QUOTA, QuotaReservedReason.NO_MATCHING_FLAVOR)


def blocker_text(blocker: Blocker, flavors: Iterable[FlavorFigures]) -> str:
    """Who takes or holds back what, why its turn comes first, and why it waits itself; `flavors`: its queue's."""
    of_workers = {flavor.flavor for flavor in flavors if flavor.is_of_workers}
    amounts = ", ".join(
        f"{format_amount(resource, amount)} {resource}{'' if flavor in of_workers else f' of flavor {flavor}'}"
        for flavor, resource, amount in blocker.amounts
    )
    until = f", as it never gets quota ({blocker.reason})" if never_starts(blocker) else " until it gets quota"
    does = _DOES[blocker.does].format(amounts=amounts or "what is free", first=_FIRST[blocker.first], until=until)
    return f"{blocker.workload} of ClusterQueue {blocker.queue} {does}"


_DOES = {
    "getsQuota": "gets {amounts} first{first}",
    "holdsBack": (
        "goes first{first}, cannot start yet, and holds back {amounts}, as reclaimWithinCohort of its queue is not Any"
    ),
    "preempts": "goes first{first}, and takes {amounts} when what it preempts has stopped",
    "preemptsTheSame": "goes first{first}, and preempts what this one would preempt",
    "isHead": "is the head of the queue and stays that{until}",
    "podsNotReady": "has pods that are not ready, and waitForPodsReady.blockAdmission is on",
}
_FIRST = {
    "": "",
    "itsQueue": " as it is ahead in the queue",
    "borrowing": " as it borrows less",
    "fairSharing": " by fair sharing",
    "priority": " as its priority is higher",
    "age": " as it is older",
}
