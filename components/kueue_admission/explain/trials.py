"""Trying a change: the core decides again as if it were made.

Where the workload is in an active queue, the change is made in the diagnosis and undone, which costs one decision: what
is not enough for the workload alone is enough beside others even less. Otherwise, and before a change is said to help,
the cluster is built again with it, and its next cycles run with all heads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from kueue_admission.decide.model import ClusterQueue, Cohort, FlavorQuotas, Objects, ResourceQuota, Snapshot, Workload
from kueue_admission.decide.pods import PodSet
from kueue_admission.decide.quota.cohort_tree import TreeNode
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.scheduler.examination import examine
from kueue_admission.explain.changes import Change, NewAmount
from kueue_admission.explain.diagnosis import Diagnosis, beside_others, diagnose, found_pending, only_relevant
from kueue_admission.explain.figures import flavors_of_workers

Owner = TypeVar("Owner", ClusterQueue, Cohort)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change: of the objects, of the workload that is explained, and of workloads removed as if they had finished."""

    objects: Callable[[Objects], Objects] | None = None
    workload: Callable[[Workload], Workload] | None = None
    gone: frozenset[str] = frozenset()

    def on(self, snapshot: Snapshot, key: str) -> Snapshot:
        """The snapshot with the change made; `key` is the workload that is explained."""
        objects = snapshot.objects if self.objects is None else self.objects(snapshot.objects)
        workloads = tuple(
            w if self.workload is None or w.key != key else self.workload(w)
            for w in snapshot.workloads
            if w.key not in self.gone
        )
        return replace(snapshot, objects=objects, workloads=workloads)


class Trials:
    """Tries edits on one workload's snapshot and keeps those that help.

    `found` has every change that lets the core admit the workload, or at least gives it another reason than before.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        key: str,
        before: Diagnosis,
        unplaceable: frozenset[str] = frozenset(),
        *,
        with_workers: bool = False,
        room: Mapping[tuple[str, str], int] = MappingProxyType({}),
    ) -> None:
        self.snapshot = snapshot
        self.room = room
        """How much more nominal quota the nodes of a flavor can hold, by flavor and resource, where that is known."""
        self.with_workers = with_workers
        """Whether its worker clusters are explained too: quota that stands for theirs is raised there."""
        entry = before.entry
        self.of_workers = flavors_of_workers(before.engine.cache, entry.queue) if entry is not None else frozenset()
        """The flavors that stand for those of worker clusters."""
        self.unplaceable = unplaceable
        """Workloads that never finish, as no worker can hold them."""
        self.key = key
        self.before = before
        self.found: list[Change] = []

    def decide(self, edit: Edit) -> Diagnosis:
        """What the core decides about the workload after `edit`."""
        entry = self.before.entry
        if entry is None or entry.outcome is Outcome.INADMISSIBLE:
            return diagnose(only_relevant(edit.on(self.snapshot, self.key), self.key), self.key)
        alone = self._decide_alone(edit, entry)
        return beside_others(alone, edit.on(self.snapshot, self.key)) if alone.fits else alone

    def _decide_alone(self, edit: Edit, entry: Entry) -> Diagnosis:
        """Make the edit in the diagnosis, decide as if no other workload were pending, and undo it."""
        engine, info = self.before.engine, entry.info
        cache = engine.cache
        known_workloads = [engine.workloads[key] for key in sorted(edit.gone) if key in engine.workloads]
        gone = [other for other in known_workloads if cache.remove(other)]
        if edit.objects is not None:
            cache.load(edit.objects(engine.objects))
        if edit.workload is not None:
            checks, queue = info.checks, info.cluster_queue
            info = cache.info(edit.workload(info.workload))
            info.checks, info.cluster_queue = checks, queue
        diagnosis = found_pending(engine, examine(cache, info, now=engine.now))
        if edit.objects is not None:
            cache.load(engine.objects)
        for other in gone:
            cache.add(other)
        return diagnosis

    def admits(self, edit: Edit, *, preempting: bool = False) -> bool:
        """Whether the workload gets its quota after `edit`; by preemption only if `preempting`.

        Only where others are in its way now are they considered here; `offer` always does.
        """
        entry = self.before.entry
        if self.before.fits or entry is None or entry.outcome is Outcome.INADMISSIBLE:
            decided_entries = self.decide(edit).decided
        else:
            decided_entries = self._decide_alone(edit, entry).entry
        outcome = None if decided_entries is None else decided_entries.outcome
        return outcome is Outcome.ADMITTED or (preempting and outcome is Outcome.PREEMPTING)

    def offer(self, kind: str, what: str, edit: Edit, *, then: str = "", amounts: tuple[NewAmount, ...] = ()) -> bool:
        """Keep the change if it helps; whether it admits the workload.

        A copy that a manager made on this worker follows its job there. `then`: what comes between quota and admission,
        and is not known. `amounts`: the numbers that it sets.
        """
        if edit.workload is not None and next(w.origin for w in self.snapshot.workloads if w.key == self.key):
            what = f"{what}, in its job on the manager"
        after = self.decide(edit)
        decided_entries = after.decided
        preempts: tuple[str, ...] = ()
        got = "has quota here" if self.of_workers else "admitted"
        then += "; a worker cluster then decides" if self.of_workers else ""
        if decided_entries is not None and decided_entries.outcome is Outcome.PREEMPTING:
            preempts = tuple(sorted(target.info.key for target in decided_entries.targets))
            outcome = f"{got} once {len(preempts)} preempted {_workloads(len(preempts))} stopped{then}"
        elif decided_entries is not None and decided_entries.outcome is Outcome.ADMITTED:
            outcome = f"{got}{then}"
        elif after.entry is None and after.state != self.before.state and after.admits:
            outcome = "admitted" if after.state == "Admitted" else f"it has quota; then {after.reason}"
        elif (after.reason, after.message) == (self.before.reason, self.before.message):
            return False
        elif kind == "nodeSelector" and after.reason == self.before.reason:
            return False  # What one flavor has, another that the pods need too lacks.
        else:
            outcome = f"not yet admitted: then {after.reason}{_in_the_way(after)}"
        change = Change(kind, what, outcome, after.admits, preempts, amounts)
        if change not in self.found:
            self.found.append(change)
        return after.admits

    def offer_if_admitted(self, kind: str, what: str, edit: Edit, *amounts: NewAmount) -> bool:
        """Keep the change if the workload gets its quota by it, by preemption too; whether it admits the workload."""
        return self.admits(edit, preempting=True) and self.offer(kind, what, edit, amounts=amounts)


def _in_the_way(after: Diagnosis) -> str:
    blockers = after.outlook.blockers if after.fits and after.outlook is not None else ()
    return f", as {blockers[0].workload} of ClusterQueue {blockers[0].queue} goes first" if blockers else ""


def _workloads(count: int) -> str:
    return "workload has" if count == 1 else "workloads have"


def without(keys: Iterable[str]) -> Edit:
    """Removes workloads, as if they had finished."""
    return Edit(gone=frozenset(keys))


def together(edits: Iterable[Edit]) -> Edit:
    """All changes of objects at once."""
    changes = [edit.objects for edit in edits if edit.objects is not None]

    def change(objects: Objects) -> Objects:
        for change in changes:
            objects = change(objects)
        return objects

    return Edit(objects=change)


def edit_each(field: str, change: Callable[[Any], Any]) -> Edit:
    """Replaces each object in a field of `Objects`."""
    return Edit(objects=lambda objects: _with_items(objects, field, map(change, getattr(objects, field))))


def edit_named(field: str, names: Collection[str], change: Callable[[Any], Any]) -> Edit:
    """Replaces those objects in a field of `Objects` that have one of these names."""
    return edit_each(field, lambda item: change(item) if item.name in names else item)


def add_objects(field: str, items: Iterable[object]) -> Edit:
    """Adds objects to a field of `Objects`."""
    more = tuple(items)
    return Edit(objects=lambda objects: _with_items(objects, field, (*getattr(objects, field), *more)))


def _with_items(objects: Objects, field: str, items: Iterable[object]) -> Objects:
    changed: dict[str, Any] = {field: tuple(items)}
    return replace(objects, **changed)


def edit_queue(name: str, change: Callable[[ClusterQueue], ClusterQueue]) -> Edit:
    """Replaces one ClusterQueue."""
    return edit_named("cluster_queues", (name,), change)


def edit_pods(change: Callable[[PodSet], PodSet]) -> Edit:
    """Replaces each pod set of the workload."""
    return Edit(workload=lambda w: replace(w, pod_sets=tuple(change(pod_set) for pod_set in w.pod_sets)))


FIELDS: Final = {"nominalQuota": "nominal", "borrowingLimit": "borrowing_limit", "lendingLimit": "lending_limit"}
"""The fields of a quota, and what they are called here."""


def raise_quota(node: TreeNode, flavor: str, field: str, more: Mapping[str, int]) -> Edit:
    """Adds to one of FIELDS of one flavor of a ClusterQueue or Cohort, by resource; no limit stays none."""

    def quota(resource: str, resource_quota: ResourceQuota) -> ResourceQuota:
        now = getattr(resource_quota, FIELDS[field])
        return (
            resource_quota if now is None else replace(resource_quota, **{FIELDS[field]: now + more.get(resource, 0)})
        )

    def quotas(flavors: FlavorQuotas) -> FlavorQuotas:
        if flavors.flavor != flavor:
            return flavors
        return replace(flavors, quotas=tuple((name, quota(name, known_quota)) for name, known_quota in flavors.quotas))

    def groups(owner: Owner) -> Owner:
        return replace(owner, groups=tuple(replace(g, flavors=tuple(map(quotas, g.flavors))) for g in owner.groups))

    return edit_named("cluster_queues" if node.is_queue else "cohorts", (node.name,), groups)


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
