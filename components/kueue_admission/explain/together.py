"""One next step for a workload on several clusters: that of the manager, or of the worker nearest to running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kueue_admission.explain.answer import Explanation
from kueue_admission.explain.entry_text import lacks_quota_of_workers, room_text, rooms_text, shortage
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER

_NEAREST: Final = (
    "Admitted",
    "PendingDelayedTopologyRequests",
    "UnsatisfiedAdmissionChecks",
    "PendingEvaluation",
    "WaitingForPodsReady",
    "WaitingForPreemptedWorkloads",
    "WaitingForQuota",
    "TopologyPlacementFailed",
)
"""Reasons of a copy, from the one that is nearest to running; all others need somebody to change something."""


def next_step_of_all(explanations: Sequence[Explanation]) -> str:
    """What to do now, where the same workload is explained on several clusters."""
    home = next(
        (explanation for explanation in explanations if explanation.is_there and not explanation.is_copy),
        explanations[0],
    )
    copies = [explanation for explanation in explanations if explanation.is_there and explanation is not home]
    if home.state == "Admitted" and copies:
        return _on([copy for copy in copies if copy.state == "Admitted"] or copies)
    if not _waits_for_a_worker(home):
        pending = [
            explanation for explanation in explanations if explanation.state == "Pending" and explanation is not home
        ]
        has_none = lacks_quota_of_workers(home) and not any(change.admits for change in home.changes)
        return _on(pending if has_none and pending and not home.is_unplaceable else [home])
    if copies:
        return _on(copies)
    others = [explanation for explanation in explanations if explanation is not home]
    if others and all(other.state == "Absent" for other in others):
        names = ", ".join(other.cluster for other in others)
        namespace = home.workload.partition("/")[0]
        return f"On {names}: create LocalQueue {namespace}/{home.local_queue}, which no worker that was given has."
    if others and home.dispatch is None and not any(link.undo for link in home.links):
        return (
            "None of the other clusters given has a copy of it, which the manager's Kueue makes: kubectl get "
            f"multikueueclusters, kubectl describe workload {home.workload.partition('/')[2]} there."
        )
    return _on([home])


def beside_workers(explanations: Sequence[Explanation]) -> list[Explanation]:
    """The same, where the manager's also says how much is free on each worker, if it is quota that is missing."""
    homes = [explanation for explanation in explanations if lacks_quota_of_workers(explanation)]
    there = [text for explanation in explanations if explanation not in homes and (text := _room_on(explanation))]
    more = rooms_text(there)
    return [
        replace(explanation, headline=f"{explanation.headline}{more}") if explanation in homes else explanation
        for explanation in explanations
    ]


def _room_on(worker: Explanation) -> str:
    """What of the quota that it lacks is free on a worker; empty where that is not what speaks against it."""
    short = shortage(worker) if worker.state == "Pending" else None
    if short is None:
        return ""
    return room_text(worker.cluster, short[0].flavor, short[1].resource, short[1].free, short[1].capacity)


def _waits_for_a_worker(home: Explanation) -> bool:
    """Whether all that is left is up to the workers: not to what the manager itself lacks."""
    controllers = {check.controller for check in home.checks}
    return home.state == "QuotaReserved" and controllers == {MULTIKUEUE_CONTROLLER} and not home.is_unplaceable


def _on(explanations: Sequence[Explanation]) -> str:
    """The step of the one that is nearest to running, with the names of those that have the same."""
    best = min(explanations, key=lambda each: _NEAREST.index(each.reason) if each.reason in _NEAREST else len(_NEAREST))
    names = [
        explanation.cluster
        for explanation in explanations
        if explanation.next_step == best.next_step and explanation.cluster
    ]
    return f"On {', '.join(names)}: {best.next_step}" if names else best.next_step
