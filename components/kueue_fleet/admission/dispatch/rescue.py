"""Evictions that Kueue 0.19 never finishes, and how long they are waited for.

A copy that is evicted on its worker before its job is there: the quota of an evicted Workload is given back by the
reconciler of its job (kueue@v0.19.2 pkg/controller/jobframework/reconciler.go, "handle eviction"), and there is none.
The copy is taken back, by taking the nomination back, and offered anew.

A Workload that is evicted on the manager while its remote pods run: its copy can be removed as out of sync before the
job's status was copied back (pkg/controller/admissionchecks/multikueue/workload.go, step 5), so that the manager's job
counts an active pod for ever, and holds its quota. Once no worker has a copy, its status is told the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kueue_fleet.admission.dispatch.watchdog import WatchdogDecision

STUCK_COPY: Final = "StuckCopy"
"""Reason of the event about a copy that was taken back."""
STUCK_EVICTION: Final = "StuckEviction"
"""Reason of the event about a job of the manager whose status was corrected."""


@dataclass(frozen=True, slots=True)
class EvictedCopy:
    """A copy on a worker that is evicted and has its quota still. `owned`: its job is there, and will end it."""

    since: float
    owned: bool


def watch_copy(cluster: str, copy: EvictedCopy | None, patience: float, now: float) -> WatchdogDecision:
    """Whether to take a copy back from a worker. `patience`: seconds after its eviction."""
    if copy is None or copy.owned:
        return WatchdogDecision(give_up=False)
    if now < copy.since + patience:
        return WatchdogDecision(give_up=False, look_again=copy.since + patience)
    return WatchdogDecision(
        give_up=True,
        message=f"The copy on {cluster} was evicted {now - copy.since:.0f} s ago, has no job there that could give "
        "its quota back, and is taken back",
    )


def watch_eviction(
    evicted_at: float, copies: Mapping[str, bool | None], patience: float, now: float
) -> WatchdogDecision:
    """Whether the eviction of a Workload of the manager that keeps its quota has to be finished.

    `copies` says of each of its workers whether a copy is there; None: nobody knows, and nothing is done, since pods
    may run there. Nor is anything where its workers are not known. What is tried in vain is tried again ever later.
    """
    due = evicted_at + patience
    if now < due:
        return WatchdogDecision(give_up=False, look_again=due)
    if not copies or any(there is not False for there in copies.values()):
        return WatchdogDecision(give_up=False, look_again=now + patience)
    return WatchdogDecision(
        give_up=True,
        message=f"Evicted {now - evicted_at:.0f} s ago, and none of {', '.join(copies)} has a copy of it; "
        "the status of its job still counted pods, and is corrected",
        look_again=now + max(patience, now - evicted_at),
    )
