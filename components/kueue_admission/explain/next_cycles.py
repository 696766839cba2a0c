"""What the next scheduling cycles make of a pending workload, with the heads of all queues in them.

A workload for which there is room may still wait: the head of another queue takes the quota or holds it back, preempts
what this one would preempt, or the head of its own queue keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Final, NamedTuple

from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CycleStarted
from kueue_admission.decide.model import Snapshot, Workload, WorkloadStatus
from kueue_admission.decide.preemption.preemption_text import is_preempted_for
from kueue_admission.decide.queue.pending import Place
from kueue_admission.decide.quota.cohort_tree import Usage, add_all, available, remove_all
from kueue_admission.decide.reasons import QuotaReservedReason, RequeueReason
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.explain.answer import Blocker

MOST_EQUALS = 16
"""So many equal workloads of a LocalQueue are looked at, and more only if all of these get quota."""
_STATUS: Final = attrgetter(*(field.name for field in fields(WorkloadStatus) if field.name != "evaluated"))
_NEVER_HELD: Final = _STATUS(WorkloadStatus())
_OWN: Final = frozenset(("name", "uid", "created", "job_uid", "pod_sets", "status"))
_EQUAL: Final = attrgetter(*(field.name for field in fields(Workload) if field.name not in _OWN))
"""What equal workloads of one namespace share beside their pod sets."""


class Outlook(NamedTuple):
    """What becomes of a pending workload.

    `entry` is from the last cycle that looked at it, None if none does; `turns` has who gets quota before, in order.
    `short` is what lacks when its turn comes, as flavor, resource and amount.
    """

    entry: Entry | None
    reason: QuotaReservedReason | None
    message: str
    turns: tuple[str, ...]
    blockers: tuple[Blocker, ...] = ()
    short: tuple[tuple[str, str, int], ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        """What the last cycle that looked at it made of it; None if none does."""
        return None if self.entry is None else self.entry.outcome

    @property
    def admits(self) -> bool:
        """Whether it gets quota, at once or when what is preempted for it has stopped."""
        return self.outcome in (Outcome.ADMITTED, Outcome.PREEMPTING)


class _Cycles(NamedTuple):
    """The cycles until the workload is decided.

    `entry` is from the last that looked at it, `ahead` the heads before it there. `admitted` has every head that got
    quota, with the workload's own entry if that came later in the same cycle. `last` are the heads of the last cycle.
    """

    entry: Entry | None
    ahead: Sequence[Entry]
    admitted: Sequence[tuple[Entry, Entry | None]]
    last: Sequence[Entry]


def look_ahead(snapshot: Snapshot, key: str) -> Outlook:
    """Run cycles until the pending workload `key` is decided, or nothing changes any more; time stands still."""
    kept_keys, groups = _first_of_equals(snapshot, key)
    outlook = _look_ahead(kept_keys, key)
    if any(group <= {*outlook.turns} for group in groups):
        return _look_ahead(snapshot, key)
    return outlook


def _first_of_equals(snapshot: Snapshot, key: str) -> tuple[Snapshot, list[frozenset[str]]]:
    """The snapshot with the first of equal workloads that wait in one LocalQueue, and those of each group of them.

    The next one matters only when all before it have quota. Pod sets that were read from equal text are one object.
    """
    equals: dict[object, list[Workload]] = {}
    for workload in snapshot.workloads:
        status = workload.status
        if status.admission is None and _STATUS(status) == _NEVER_HELD and workload.key != key:
            equals.setdefault((id(workload.pod_sets), _EQUAL(workload)), []).append(workload)
    large = [group for group in equals.values() if len(group) > MOST_EQUALS]
    later: set[str] = set()
    for group in large:
        group.sort(key=lambda workload: (workload.created, workload.uid))
        later.update(workload.key for workload in group[MOST_EQUALS:])
    workloads = tuple(workload for workload in snapshot.workloads if workload.key not in later)
    return replace(snapshot, workloads=workloads), [frozenset(w.key for w in group[:MOST_EQUALS]) for group in large]


def _look_ahead(snapshot: Snapshot, key: str) -> Outlook:
    engine = Engine.from_snapshot(snapshot)
    _let_preemptors_go_on(engine)
    info = engine.workloads[key]
    ran = _run(engine, info)
    turns = tuple(entry.info.key for entry, _ in ran.admitted if entry.info is not info)
    if ran.entry is None:
        why = engine.pending(info.cluster_queue).parked_for(key)
        return Outlook(None, why, "", turns, _ahead_in_queue(engine, info, ran))
    outlook = Outlook(ran.entry, ran.entry.why, ran.entry.message(), turns)
    return outlook if outlook.admits else _name_blockers(engine, outlook, ran)


def _let_preemptors_go_on(engine: Engine) -> None:
    """A workload whose preemption is under way stays the head of its queue until it gets quota.

    It is one that Kueue has looked at, as its condition says, or that those who leave were preempted for.
    """
    leaving = [info.workload.status for info in engine.workloads.values() if info.is_reserved and info.is_evicted]
    if not leaving:
        return
    for queue in engine.queues.pending.values():
        for info in list(queue.infos()):
            preemption_marks = (is_preempted_for(entry.evicted_message, info.workload) for entry in leaving)
            if info.workload.status.evaluated is None and not any(preemption_marks):
                continue
            entry = engine.examine(info.key)
            if entry.targets and all(target.info.is_evicted for target in entry.targets):
                queue.requeue(info, RequeueReason.PENDING_PREEMPTION, entry.why, engine.now)


def _run(engine: Engine, info: WorkloadInfo) -> _Cycles:
    entry: Entry | None = None
    ahead: list[Entry] = []
    admitted_entries: list[tuple[Entry, Entry | None]] = []
    seen_states: set[object] = set()
    while engine.wants_cycle:
        engine.handle(CycleStarted(engine.now))
        heads = engine.last_entries
        mine = next((place for place, head in enumerate(heads) if head.info is info), -1)
        if mine >= 0:
            entry, ahead = heads[mine], heads[:mine]
        got = [
            (head, entry if place < mine else None)
            for place, head in enumerate(heads)
            if head.outcome is Outcome.ADMITTED
        ]
        admitted_entries += got
        if engine.queues.place(info) is not Place.COMPETING or (entry and entry.outcome is Outcome.PREEMPTING):
            break
        state = tuple((head.info.key, head.outcome, _tried(head.info)) for head in heads)
        if not got and state in seen_states:
            break
        seen_states = {state} if got else {*seen_states, state}
    return _Cycles(entry, ahead, admitted_entries, engine.last_entries)


def _tried(info: WorkloadInfo) -> object:
    """How far the search through its flavors has come; the next cycle goes on from there."""
    progress = info.last_progress
    return None if progress is None else tuple(tuple(sorted(tried_flavors.items())) for tried_flavors in progress.tried)


def _ahead_in_queue(engine: Engine, info: WorkloadInfo, ran: _Cycles) -> tuple[Blocker, ...]:
    """Who keeps the workload from being the head of its queue."""
    heads = [entry for entry in ran.last if entry.queue.name == info.cluster_queue]
    if heads:
        return tuple(_blocker(engine, entry, "isHead", entry.counted) for entry in heads)
    beside = [entry for entry, _ in ran.admitted if entry.queue.name == info.cluster_queue]
    return tuple(_blocker(engine, entry, "getsQuota", entry.counted) for entry in beside)


def _name_blockers(engine: Engine, outlook: Outlook, ran: _Cycles) -> Outlook:
    mine = ran.entry
    assert mine is not None
    if mine.outcome is Outcome.BLOCKED:
        return outlook._replace(blockers=not_ready(engine))
    if mine.outcome not in (Outcome.SKIPPED, Outcome.NO_FIT, Outcome.WAITING):
        return outlook
    short = _short(engine, mine, ran.ahead)
    resources_short = frozenset(short) if mine.outcome is Outcome.SKIPPED and short else _asked_of(engine, mine)
    targets = {target.info.key for target in mine.targets}
    blockers = []
    beside = dict(ran.admitted) | dict.fromkeys(ran.ahead, mine)
    for other, then in beside.items():
        usage = tuple((fr, amount) for fr, amount in other.counted if fr in resources_short and amount)
        if targets & {target.info.key for target in other.targets}:
            blockers.append(_blocker(engine, other, "preemptsTheSame", usage, then))
        elif (usage and other.queue.root() is mine.queue.root()) or _shares_nodes(other, mine):
            blockers.append(_blocker(engine, other, _DOES.get(other.outcome, "holdsBack"), usage, then))
    names = engine.cache.ids.names
    return outlook._replace(
        blockers=tuple(blockers), short=tuple((*names[fr], amount) for fr, amount in sorted(short.items()))
    )


_DOES = {Outcome.ADMITTED: "getsQuota", Outcome.PREEMPTING: "preempts"}


def _short(engine: Engine, mine: Entry, ahead: Iterable[Entry]) -> dict[int, int]:
    """What the flavors that were chosen for the workload lacked at its turn, by flavor-resource."""
    holding = [entry for entry in ahead if entry.outcome is not Outcome.ADMITTED]
    for entry in holding:
        add_all(entry.queue, entry.counted)
    short = {fr: amount - available(mine.queue, fr) for fr, amount in mine.usage()}
    for entry in reversed(holding):
        remove_all(entry.queue, entry.counted)
    return {fr: amount for fr, amount in short.items() if amount > 0}


def _asked_of(engine: Engine, mine: Entry) -> frozenset[int]:
    """Every flavor-resource of its queue that it could use."""
    resources_asked = {name for pod_set in mine.info.pod_sets for name, amount in pod_set.requests if amount}
    return frozenset(
        fr
        for group in mine.queue.groups
        for frs in group.frs
        for resource, fr in frs.items()
        if resource in resources_asked
    )


def _shares_nodes(other: Entry, mine: Entry) -> bool:
    """Whether pods of both were placed in the topology of one flavor."""

    def flavors(entry: Entry) -> set[str]:
        placed_results = [result for result in entry.assignment.pod_sets if result.topology is not None]
        return {choice.flavor for result in placed_results for choice in result.flavors.values()}

    return not flavors(other).isdisjoint(flavors(mine))


def not_ready(engine: Engine) -> tuple[Blocker, ...]:
    """The workloads whose pods are not ready, while that blocks admission."""
    return tuple(
        Blocker(key, queue.name, queue.workloads[key].priority, "podsNotReady")
        for queue in engine.cache.queues.values()
        for key in sorted(queue.not_ready)
    )


def _blocker(engine: Engine, entry: Entry, does: str, usage: Usage, mine: Entry | None = None) -> Blocker:
    names = engine.cache.ids.names
    return Blocker(
        workload=entry.info.key,
        queue=entry.queue.name,
        priority=entry.info.priority,
        does=does,
        amounts=tuple((*names[fr], amount) for fr, amount in usage if amount > 0),
        reason=str(entry.why or ""),
        first="" if mine is None else _why_first(entry, mine, fair=engine.cache.configuration.fair_sharing is not None),
    )


def _why_first(other: Entry, mine: Entry, *, fair: bool) -> str:
    """By what the cycle takes the other head before this one."""
    if other.queue is mine.queue:
        return "itsQueue"
    if mine.assignment.borrowing > other.assignment.borrowing:
        return "borrowing"
    if fair:
        return "fairSharing"
    return "priority" if other.info.priority > mine.info.priority else "age"
