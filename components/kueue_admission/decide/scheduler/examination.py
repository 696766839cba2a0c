"""One head of a queue in a scheduling cycle, beside what earlier heads got or hold; `cycle` goes through all of them.

Source: kueue@v0.19.2 pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kueue_admission.decide.flavors.assigner import assign
from kueue_admission.decide.flavors.assignment import Assignment, Mode
from kueue_admission.decide.model import CheckState
from kueue_admission.decide.pods import PodSet
from kueue_admission.decide.preemption.candidates import Target
from kueue_admission.decide.preemption.preemptor import Simulated, find_targets, make_oracle
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import Usage, add_all, available, remove_all
from kueue_admission.decide.reasons import QuotaReservedReason, RequeueReason
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.workload.scan_progress import ScanProgress
from kueue_admission.decide.workload.state import WorkloadInfo


class Cycle:
    """The state of a cycle under way: who is being preempted, and whose quota must be subtracted at its end.

    `blocked`: some admitted workload's pods are not ready, and that blocks admission. `waiting`: a head waits for it,
    and all heads after it with it.
    """

    def __init__(self, cache: Cache, number: int, now: float) -> None:
        self.cache = cache
        self.number = number
        self.now = now
        self.simulated: Simulated = {}
        self.oracle = make_oracle(cache, self.simulated)
        self.victims: dict[str, WorkloadInfo] = {}
        self.held: list[Entry] = []
        self.blocked = cache.blocks_admission and not cache.all_pods_ready()
        self.waiting = False
        for state in cache.topologies.values():
            state.scored.clear()


def examine(cache: Cache, info: WorkloadInfo, *, now: float, tried: int = -1) -> Entry:
    """What a cycle would find for a pending workload if it were the head of its queue now, from its first flavor on.

    `tried` is the index of the last flavor that was tried before, if the search goes on behind one. Nothing is decided
    and nothing changes. The outcome is `ADMITTED`, `PREEMPTING` or `WAITING` as it would be if
    no other workload were considered.
    """
    entry = Entry(info, cache.queues[info.cluster_queue], is_preemptor=False)
    if is_inadmissible(cache, entry):
        return entry
    progress, info.last_progress = info.last_progress, None
    if tried >= 0:
        tried_by_pod_set = [dict.fromkeys((name for name, _ in requests.requests), tried) for requests in info.pod_sets]
        info.last_progress = ScanProgress(tuple(tried_by_pod_set), entry.queue.generation, 0, info.shape)
    cycle = Cycle(cache, 0, now)
    record(cycle, entry)
    process(cycle, entry)
    restore_cache(cycle)
    if entry.outcome is Outcome.ADMITTED:
        remove_all(entry.queue, entry.usage())
        cache.places.reserve(cache, entry, -1)
    info.last_progress = progress
    return entry


def restore_cache(cycle: Cycle) -> None:
    """Subtract what is held only until the end of the cycle."""
    for entry in reversed(cycle.held):
        remove_all(entry.queue, entry.counted)
        cycle.cache.places.reserve(cycle.cache, entry, -1)


def is_inadmissible(cache: Cache, entry: Entry) -> bool:
    """Whether a head is not to be nominated; the entry has why."""
    info, queue = entry.info, entry.queue
    workload = info.workload
    if info.checks and (info.has_check(CheckState.RETRY) or info.has_check(CheckState.REJECTED)):
        entry.refuse(
            Outcome.INADMISSIBLE, QuotaReservedReason.PENDING_EVALUATION, "The workload has failed admission checks"
        )
    elif not queue.active:
        entry.refuse(Outcome.INADMISSIBLE, QuotaReservedReason.SUSPENDED, f"ClusterQueue {queue.name} is inactive")
    elif not cache.namespace_matches(queue.name, workload.namespace):
        entry.requeue_reason = RequeueReason.NAMESPACE_MISMATCH
        entry.refuse(
            Outcome.INADMISSIBLE,
            QuotaReservedReason.MISCONFIGURED,
            "workload namespace doesn't match ClusterQueue selector",
        )
    elif workload.problem:
        entry.refuse(Outcome.INADMISSIBLE, QuotaReservedReason.MISCONFIGURED, workload.problem)
    else:
        return False
    return True


def record(cycle: Cycle, entry: Entry) -> None:
    """Note what a head could have, and whom it would preempt for that."""
    entry.assignment, entry.targets = assignment, targets = find_assignment(cycle, entry.info)
    entry.replaced = cycle.cache.replaced(entry.info) if targets or assignment.mode is Mode.FIT else None
    cycle.cache.places.place_for_preemption(cycle.cache, entry.info, entry.queue, assignment, entry.leaving().values())
    entry.text = None
    # One that has quota is in no queue, and its search starts over once it has none.
    entry.info.last_progress = None if entry.info.is_reserved else assignment.progress


def find_assignment(cycle: Cycle, info: WorkloadInfo) -> tuple[Assignment, list[Target]]:
    """The full assignment, or with fewer pods if only that fits, and the targets it needs."""
    cache = cycle.cache
    cycle.simulated.clear()
    full = assign(cache, info, cycle.oracle, cycle=cycle.number)
    if full.mode is Mode.FIT:
        return full, []
    if full.mode is Mode.PREEMPT:
        targets = find_targets(cache, info, full, cycle.simulated)
        if targets:
            return full, targets
    if cache.gates.partial_admission and info.can_be_partially_admitted:

        def fits(counts: list[int]) -> tuple[Assignment, list[Target]] | None:
            reduced_assignment = assign(cache, info, cycle.oracle, cycle=cycle.number, counts=counts)
            if reduced_assignment.mode is Mode.FIT:
                return reduced_assignment, []
            targets = (
                find_targets(cache, info, reduced_assignment, cycle.simulated)
                if reduced_assignment.mode is Mode.PREEMPT
                else []
            )
            return (reduced_assignment, targets) if targets else None

        partial = search_counts(info.workload.pod_sets, fits)
        if partial is not None:
            return partial
    return full, []


def process(cycle: Cycle, entry: Entry) -> None:
    """Give a head whose turn has come what is left for it, or note why not."""
    if cycle.waiting:
        _block(entry)
    elif cycle.cache.admitted_variants(entry.info)[0] is not None:
        _skip(cycle, entry, "A more favorable variant is already admitted", QuotaReservedReason.PENDING_EVALUATION)
    else:
        _consider(cycle, entry)


def _consider(cycle: Cycle, entry: Entry) -> None:
    fits = _refresh(cycle, entry)
    mode = entry.assignment.mode
    fails_fast = cycle.cache.gates.tas_failed_node_replacement_fail_fast
    if mode is not Mode.FIT and entry.info.has_lost_places and fails_fast:
        nodes = ",".join(entry.info.lost_nodes)
        text = f"Workload was evicted as there was no replacement for unhealthy node(s): {nodes}"
        entry.refuse(Outcome.EVICTED, None, text)
    elif mode is Mode.NO_FIT:
        entry.requeue_reason = RequeueReason.NO_FIT
        entry.refuse(Outcome.NO_FIT, entry.assignment.no_fit_reason)
    elif mode is Mode.PREEMPT and not entry.targets:
        entry.requeue_reason = RequeueReason.PREEMPTION_NO_CANDIDATES
        entry.refuse(Outcome.WAITING, QuotaReservedReason.WAITING_FOR_QUOTA)
        _hold_for(cycle, entry)
    elif mode is Mode.PREEMPT and _is_gated(cycle.cache, entry.info):
        entry.requeue_reason = RequeueReason.PREEMPTION_GATED
        entry.info.last_progress = None
        entry.info.gated = True
        entry.refuse(Outcome.GATED, QuotaReservedReason.ADMISSION_GATED, "Workload requires preemption, but it's gated")
    elif mode is Mode.DEFERRED_FIT:
        entry.requeue_reason = RequeueReason.PENDING_PREEMPTION
        entry.info.last_progress = None
        entry.refuse(
            Outcome.WAITING,
            QuotaReservedReason.WAITING_FOR_PREEMPTED_WORKLOADS,
            "Workload has overlapping preemption targets with another workload, "
            "but will fit after these preemptions complete",
        )
        _hold(cycle, entry, entry.usage())
    elif not cycle.victims.keys().isdisjoint(entry.leaving()):
        _skip(cycle, entry, "Workload has overlapping preemption targets with another workload")
    elif not fits:
        _skip(cycle, entry, "Workload no longer fits after processing another workload")
    elif mode is Mode.PREEMPT:
        cycle.victims.update(entry.leaving())
        _hold(cycle, entry, entry.usage())
        entry.info.last_progress = None
        entry.requeue_reason = RequeueReason.PENDING_PREEMPTION
        entry.suffix = f". Pending the preemption of {len(entry.targets)} workload(s)"
        entry.refuse(Outcome.PREEMPTING, QuotaReservedReason.WAITING_FOR_PREEMPTED_WORKLOADS)
    elif cycle.blocked and not entry.info.is_reserved:
        cycle.waiting = True
        _block(entry)
    else:
        _admit(cycle, entry)


def _admit(cycle: Cycle, entry: Entry) -> None:
    entry.migrates = cycle.cache.admitted_variants(entry.info)[1]
    if entry.migrates is not None:
        _migrate(cycle, entry)
    elif refusal := _refusal(entry):
        # Its quota is free again once the write has failed.
        _hold(cycle, entry, entry.usage())
        entry.requeue_reason = RequeueReason.REFUSED
        entry.refuse(Outcome.REFUSED, QuotaReservedReason.MISCONFIGURED, refusal)
    else:
        cycle.victims.update(entry.leaving())
        _count(cycle, entry, entry.usage())
        entry.outcome = Outcome.ADMITTED
        cycle.blocked = cycle.cache.blocks_admission


def _migrate(cycle: Cycle, entry: Entry) -> None:
    """It takes its quota once the variant on the less preferred flavor is gone."""
    _hold(cycle, entry, entry.usage())
    last = entry.queue.last_acceptable
    own = next(iter(entry.info.workload.allowed_flavors or ()))
    if last is not None and entry.queue.groups[0].flavors.index(own) > last:
        entry.migrates = None
        text = "Target flavor is below LastAcceptableFlavorName"
        entry.refuse(Outcome.INADMISSIBLE, QuotaReservedReason.PENDING_EVALUATION, text)
        return
    entry.info.last_progress = None
    entry.requeue_reason = RequeueReason.PENDING_MIGRATION
    entry.suffix = ". Pending the migration of 1 workload(s)"
    entry.refuse(Outcome.MIGRATING, QuotaReservedReason.WAITING_FOR_PREEMPTED_WORKLOADS)


def _refusal(entry: Entry) -> str:
    """What the API server says of an Admission that Kueue writes, and that cannot be.

    Slices with more pods than their pod set place none: Kueue's webhooks refuse a job of such slices, but no Workload.
    A pod set that asks only for what IgnoreUndeclared ignores ends Kueue's search: those after it are missing.
    Source: kueue@v0.19.2 (topologyAssignment.slices is required), apis/kueue/v1beta2/workload_types.go,
    https://github.com/kubernetes-sigs/kueue/issues/15277.
    """
    if len(entry.assignment.pod_sets) < len(entry.info.pod_sets):
        return "podSetAssignments must have the same number of podSets as the spec"
    for result in entry.assignment.pod_sets:
        if result.count and result.topology == ():
            return f"topologyAssignment.slices of pod set {result.name}: Required value"
    return ""


def _block(entry: Entry) -> None:
    entry.requeue_reason = RequeueReason.FAILED_AFTER_NOMINATION
    entry.refuse(
        Outcome.BLOCKED,
        QuotaReservedReason.WAITING_FOR_PODS_READY,
        "waiting for all admitted workloads to be in PodsReady condition",
    )


def _skip(
    cycle: Cycle, entry: Entry, text: str, why: QuotaReservedReason = QuotaReservedReason.WAITING_FOR_QUOTA
) -> None:
    entry.refuse(Outcome.SKIPPED, why, text)
    if not cycle.cache.gates.flavor_fungibility_preserve_scan_progress:
        entry.info.last_progress = None


def _is_gated(cache: Cache, info: WorkloadInfo) -> bool:
    gates = cache.gates
    return (gates.concurrent_admission or gates.multi_kueue_orchestrated_preemption) and info.has_closed_gate


def _hold(cycle: Cycle, entry: Entry, usage: Usage) -> None:
    """Count this much usage, and the entry's places in the topology, until the end of the cycle."""
    _count(cycle, entry, usage)
    cycle.held.append(entry)


def _count(cycle: Cycle, entry: Entry, usage: Usage) -> None:
    entry.counted = usage
    add_all(entry.queue, usage)
    cycle.cache.places.reserve(cycle.cache, entry, 1)


def _hold_for(cycle: Cycle, entry: Entry) -> None:
    """Hold back quota for an entry that found no workload to preempt, unless its queue can always reclaim its own."""
    reclaims = entry.queue.spec.preemption.reclaim_within_cohort == "Any"
    if reclaims and not (cycle.cache.gates.prioritize_preemptor_workloads and entry.is_preemptor):
        return
    _hold(cycle, entry, () if entry.info.is_reserved else quota_to_reserve(entry.assignment, entry.queue))


def quota_to_reserve(assignment: Assignment, queue: QueueNode) -> Usage:
    """How much an entry without targets holds back: what it wants, up to nominal quota, or the borrowing limit."""
    if assignment.mode is not Mode.PREEMPT:
        return tuple(assignment.usage.items())
    reserved_usage = []
    for fr, amount in assignment.usage.items():
        rest_of_quota = queue.nominal.get(fr, 0) - queue.usage.get(fr, 0)
        if assignment.borrowing > 0:
            limit = queue.borrowing_limit.get(fr)
            reserved_usage.append((fr, amount if limit is None else min(amount, rest_of_quota + limit)))
        else:
            reserved_usage.append((fr, max(0, min(amount, rest_of_quota))))
    return tuple(reserved_usage)


def _refresh(cycle: Cycle, entry: Entry) -> bool:
    """Find another assignment if others took its targets or its place in the topology; whether it fits now."""
    gates = cycle.cache.gates
    fits, only_topology_lacks = _fits(cycle, entry)
    overlaps = gates.recompute_assignment_upon_preemption_targets_overlap and not cycle.victims.keys().isdisjoint(
        entry.leaving()
    )
    lacks = only_topology_lacks and gates.tas_recompute_assignment_within_scheduling_cycle
    if not (overlaps or lacks):
        return fits
    info = entry.info
    info.last_progress = None
    info.nomination = {
        result.name: {resource: choice.flavor for resource, choice in result.flavors.items()}
        for result in entry.assignment.pod_sets
    }
    with cycle.cache.without(cycle.victims.values() if overlaps else (), preemptable=False):
        record(cycle, entry)
    if overlaps and entry.assignment.mode is Mode.FIT:
        entry.assignment.set_mode(Mode.DEFERRED_FIT)
    fits, _ = _fits(cycle, entry)
    info.nomination = None
    return fits


def _fits(cycle: Cycle, entry: Entry) -> tuple[bool, bool]:
    """Whether the entry's usage fits once all victims are gone, and whether only its placement does not."""
    victims = {**cycle.victims, **entry.leaving()}
    if not victims:
        return _fits_now(cycle.cache, entry)
    with cycle.cache.without(victims.values()):
        return _fits_now(cycle.cache, entry)


def _fits_now(cache: Cache, entry: Entry) -> tuple[bool, bool]:
    for fr, amount in entry.usage():
        if available(entry.queue, fr) < amount:
            return False, False
    fits_topology = cache.places.are_free(cache, entry)
    return fits_topology, not fits_topology


T = TypeVar("T")


def search_counts(pod_sets: tuple[PodSet, ...], fits: Callable[[list[int]], T | None]) -> T | None:
    """What `fits` gives for the fewest pods taken away; None if it never does.

    The pods are taken from all pod sets in proportion to how far each may shrink, between `minCount` and `count`.
    Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/podset_reducer.go (a binary search, as Go's sort.Search does it).
    """
    full = [ps.count for ps in pod_sets]
    deltas = [ps.count - (ps.count if ps.min_count is None else ps.min_count) for ps in pod_sets]
    total = sum(deltas)
    if total == 0:
        return None
    good_index, good = -1, None
    low, high = 0, total + 1
    while low < high:
        middle = (low + high) // 2
        result = fits([count - delta * middle // total for count, delta in zip(full, deltas, strict=True)])
        if result is None:
            low = middle + 1
        else:
            high = middle
            good_index, good = middle, result
    return good if low == good_index else None
