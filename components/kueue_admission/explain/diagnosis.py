"""What the core decides about one workload at one moment: its state, and Kueue's token and sentence for it.

The only place where a reason comes from; everything else of an explanation is arranged around it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from kueue_admission.api.cohort_tree import roots_of
from kueue_admission.decide.decisions import Decision, Inadmissible
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.errors import AdmissionError
from kueue_admission.decide.events import Submitted
from kueue_admission.decide.model import CheckState, Objects, Snapshot, Workload
from kueue_admission.decide.reasons import AdmittedReason, QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.scheduler.examination import examine
from kueue_admission.decide.workload import lifecycle
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.explain.next_cycles import Outlook, look_ahead


class Diagnosis(NamedTuple):
    """The engine with the workload in it, and what it says.

    `entry` is there where a cycle would look at it: what that would find if no other workload were pending. `outlook`
    is what becomes of it beside them.
    """

    engine: Engine
    state: str
    reason: str
    message: str
    entry: Entry | None = None
    blocked: bool = False
    """It is in no queue, or its back-off runs: no cycle looks at it."""
    outlook: Outlook | None = None

    @property
    def fits(self) -> bool:
        """Whether a cycle would give it quota, perhaps by preemption, if no other workload were pending."""
        return self.entry is not None and self.entry.outcome in (Outcome.ADMITTED, Outcome.PREEMPTING)

    @property
    def decided(self) -> Entry | None:
        """What the last cycle made of it, beside others where they were considered; None if none looks at it."""
        return self.entry if self.outlook is None else self.outlook.entry

    @property
    def admits(self) -> bool:
        """Whether it gets quota in the next cycles or, if none need look at it, has it."""
        if self.entry is None:
            return self.state in ("QuotaReserved", "Admitted")
        return self.decided is not None and self.decided.outcome in (Outcome.ADMITTED, Outcome.PREEMPTING)


def diagnose(snapshot: Snapshot, key: str) -> Diagnosis:
    """The state of the workload `key` of the snapshot.

    Raises AdmissionError if the snapshot has no such workload.
    """
    target = next((workload for workload in snapshot.workloads if workload.key == key), None)
    if target is None:
        raise AdmissionError(f"there is no workload {key}")
    others = tuple(workload for workload in snapshot.workloads if workload.key != key)
    engine = Engine.from_snapshot(replace(snapshot, workloads=others))
    decisions = engine.handle(Submitted(snapshot.now, target))
    info = engine.workloads.get(key)
    if info is None:
        return Diagnosis(engine, "Finished", "Finished", "The workload is finished")
    diagnosis = _look(engine, info, decisions)
    return beside_others(diagnosis, snapshot)


def _look(engine: Engine, info: WorkloadInfo, decisions: list[Decision]) -> Diagnosis:
    if info.is_reserved:
        return _reserved(engine, info)
    for decision in reversed(decisions):
        if isinstance(decision, Inadmissible) and decision.key == info.key:
            return Diagnosis(engine, "Pending", str(decision.reason), decision.message, blocked=True)
    if not info.backoff_expired(engine.now):
        reason = QuotaReservedReason.PENDING_EVALUATION
        until = "" if info.requeue_at is None else f" for another {info.requeue_at - engine.now:.0f} seconds"
        cause = info.requeued_reason or info.evicted_reason or "its eviction"
        return Diagnosis(engine, "Pending", reason, f"It is held back{until} after {cause}", blocked=True)
    return found_pending(engine, engine.examine(info.key))


def found_pending(engine: Engine, entry: Entry) -> Diagnosis:
    """The diagnosis of a pending workload that a cycle would find so if no other workload were pending."""
    return Diagnosis(engine, "Pending", entry.why or QuotaReservedReason.PENDING_EVALUATION, entry.message(), entry)


def beside_others(diagnosis: Diagnosis, snapshot: Snapshot) -> Diagnosis:
    """The diagnosis with what becomes of the workload in the next cycles, in which the others of the snapshot are too.

    What it lacks even alone stays the reason, unless a later cycle finds another flavor for it.
    """
    entry = diagnosis.entry
    if entry is None or entry.info.is_reserved or entry.outcome in (Outcome.INADMISSIBLE, Outcome.BLOCKED):
        return diagnosis
    outlook = look_ahead(snapshot, entry.info.key)
    diagnosis = diagnosis._replace(outlook=outlook)
    if not diagnosis.fits and not outlook.admits:
        # Kueue names what places no pods by the second look at it, at the latest.
        return diagnosis if entry.why or not outlook.reason else diagnosis._replace(reason=outlook.reason)
    return diagnosis._replace(reason=outlook.reason or QuotaReservedReason.PENDING_EVALUATION, message=outlook.message)


_NEXT: Final = {
    Outcome.ADMITTED: "which the next cycle places elsewhere",
    Outcome.EVICTED: "and there is no other place for them: Kueue evicts it",
    Outcome.PREEMPTING: "and the next cycle preempts other workloads for another place",
}
"""What becomes of pods whose node failed."""
_TRIES_AGAIN: Final = "and there is no other place for them yet: Kueue tries again, at least every 30 s"


def _reserved(engine: Engine, info: WorkloadInfo) -> Diagnosis:
    if info.is_evicted:
        message = "It is evicted, and keeps its quota until its pods are gone"
        return Diagnosis(engine, "Evicted", info.evicted_reason or "Evicted", message)
    has_queue = info.cluster_queue in engine.cache.queues
    if info.has_lost_places and has_queue:
        entry = examine(engine.cache, info, now=engine.now)
        nodes = ", ".join(info.unhealthy_nodes)
        message = f"Node {nodes} failed under its pods, {_NEXT.get(entry.outcome, _TRIES_AGAIN)}"
        return Diagnosis(engine, "Admitted", "Admitted", message, entry)
    if info.is_admitted:
        return Diagnosis(engine, "Admitted", "Admitted", "Its pods may run")
    reason = lifecycle.why_not_admitted(info)
    if reason is AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS and has_queue:
        entry = examine(engine.cache, info, now=engine.now)
        return Diagnosis(engine, "QuotaReserved", reason, entry.message(), entry)
    waiting = [state for state in (CheckState.PENDING, CheckState.RETRY, CheckState.REJECTED) if info.has_check(state)]
    message = "; ".join(lifecycle.describe_checks(info, state) for state in waiting)
    if reason is None:
        return Diagnosis(engine, "QuotaReserved", "Admitted", "Every check is ready; Kueue admits it next")
    return Diagnosis(engine, "QuotaReserved", reason, message)


def only_relevant(snapshot: Snapshot, key: str, *, alone: bool = False) -> Snapshot:
    """The snapshot without what cannot change the decision about `key`, which is what is in other cohort trees.

    Topologies and blocked admission reach across trees; with them every workload stays. `alone` leaves out pending
    workloads too.
    """
    objects = snapshot.objects
    settings = objects.configuration.wait_for_pods_ready
    everywhere = bool(objects.topologies) or (settings is not None and settings.block_admission)
    roots = _roots(objects)
    targets = {queue.key: queue.cluster_queue for queue in objects.local_queues}

    def queue_of(workload: Workload) -> str:
        admission = workload.status.admission
        return targets.get(workload.local_queue, "") if admission is None else admission.cluster_queue

    root = roots.get(queue_of(next(workload for workload in snapshot.workloads if workload.key == key)))

    def is_kept(other: Workload) -> bool:
        if other.key == key:
            return True
        if alone and other.status.admission is None:
            return False
        return everywhere or roots.get(queue_of(other)) == root

    relevant = tuple(other for other in snapshot.workloads if is_kept(other))
    if root is not None and not everywhere:
        objects = replace(
            objects,
            cluster_queues=tuple(q for q in objects.cluster_queues if roots[q.name] == root),
            local_queues=tuple(q for q in objects.local_queues if roots.get(q.cluster_queue) == root),
        )
    return Snapshot(objects, relevant, snapshot.now)


def _roots(objects: Objects) -> dict[str, str]:
    """The topmost cohort above each ClusterQueue, or the queue itself."""
    parents = {cohort.name: cohort.parent for cohort in objects.cohorts}
    return roots_of({queue.name: queue.cohort for queue in objects.cluster_queues}, parents)
