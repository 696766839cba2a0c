"""Trying a change: the core decides again on a copy of the cluster in which it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kueue_fleet.admission.cycle import Outcome
from kueue_fleet.admission.model import ClusterQueue, FlavorQuotas, Objects, ResourceQuota, Snapshot, Workload
from kueue_fleet.explain.answer import Change
from kueue_fleet.explain.diagnosis import Diagnosis, diagnose, only_relevant

Edit = Callable[[Snapshot], Snapshot]


class Trials:
    """Tries edits on one workload's snapshot and keeps those that help.

    `found` has every change that lets the core admit the workload, or at least gives it another reason than before.
    """

    def __init__(self, snapshot: Snapshot, key: str, before: Diagnosis) -> None:
        self.snapshot = snapshot
        self.key = key
        self.before = before
        self.found: list[Change] = []
        # A workload in a queue stays in that queue's tree whatever is tried; for others the edit decides which it is.
        self._small = None if before.entry is None else only_relevant(snapshot, key)

    def decide(self, edit: Edit) -> Diagnosis:
        """What the core decides about the workload after `edit`."""
        if self._small is not None:
            return diagnose(edit(self._small), self.key)
        return diagnose(only_relevant(edit(self.snapshot), self.key), self.key)

    def admits(self, edit: Edit, *, preempting: bool = False) -> bool:
        """Whether the workload gets its quota after `edit`; by preemption only if `preempting`."""
        entry = self.decide(edit).entry
        return entry is not None and (
            entry.outcome is Outcome.ADMITTED or (preempting and entry.outcome is Outcome.PREEMPTING)
        )

    def offer(self, kind: str, what: str, edit: Edit) -> bool:
        """Keep the change if it helps; whether it admits the workload."""
        after = self.decide(edit)
        entry = after.entry
        preempts: tuple[str, ...] = ()
        if entry is not None and entry.outcome is Outcome.PREEMPTING:
            preempts = tuple(sorted(target.info.key for target in entry.targets))
            outcome = f"admitted once {len(preempts)} preempted {_workloads(len(preempts))} stopped"
        elif entry is not None and entry.outcome is Outcome.ADMITTED:
            outcome = "admitted"
        elif entry is None and after.state != self.before.state and after.admits:
            outcome = "admitted" if after.state == "Admitted" else f"it has quota; then {after.reason}"
        elif (after.reason, after.message) == (self.before.reason, self.before.message):
            return False
        else:
            outcome = f"not yet admitted: then {after.reason}"
        change = Change(kind, what, outcome, after.admits, preempts)
        if change not in self.found:
            self.found.append(change)
        return after.admits


def _workloads(count: int) -> str:
    return "workload has" if count == 1 else "workloads have"


def edit_workload(key: str, change: Callable[[Workload], Workload]) -> Edit:
    """Replaces one workload."""

    def edit(snapshot: Snapshot) -> Snapshot:
        changed = tuple(change(w) if w.key == key else w for w in snapshot.workloads)
        return replace(snapshot, workloads=changed)

    return edit


def without(keys: Iterable[str]) -> Edit:
    """Takes workloads away, as if they had finished."""
    gone = frozenset(keys)

    def edit(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, workloads=tuple(w for w in snapshot.workloads if w.key not in gone))

    return edit


def edit_objects(change: Callable[[Objects], Objects]) -> Edit:
    """Replaces the objects."""
    return lambda snapshot: replace(snapshot, objects=change(snapshot.objects))


def edit_queue(name: str, change: Callable[[ClusterQueue], ClusterQueue]) -> Edit:
    """Replaces one ClusterQueue."""
    return edit_objects(
        lambda objects: replace(
            objects,
            cluster_queues=tuple(change(q) if q.name == name else q for q in objects.cluster_queues),
        )
    )


def raise_quota(queue: str, flavor: str, nominal: dict[str, int], limit: dict[str, int]) -> Edit:
    """Adds to the nominal quotas, and to the borrowing limits, of one flavor of a ClusterQueue, by resource."""

    def quota(resource: str, known: ResourceQuota) -> ResourceQuota:
        bound = known.borrowing_limit
        return replace(
            known,
            nominal=known.nominal + nominal.get(resource, 0),
            borrowing_limit=None if bound is None else bound + limit.get(resource, 0),
        )

    def quotas(flavors: FlavorQuotas) -> FlavorQuotas:
        if flavors.flavor != flavor:
            return flavors
        return replace(flavors, quotas=tuple((name, quota(name, known)) for name, known in flavors.quotas))

    return edit_queue(
        queue,
        lambda q: replace(
            q, groups=tuple(replace(group, flavors=tuple(quotas(f) for f in group.flavors)) for group in q.groups)
        ),
    )


def least(high: int, works: Callable[[int], bool]) -> int | None:
    """The least number from 1 to `high` that works, if `high` does; tried as if every larger one then works too."""
    if high < 1 or not works(high):
        return None
    if high == 1 or not works(high - 1):
        return high
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if works(middle):
            high = middle
        else:
            low = middle
    return high
