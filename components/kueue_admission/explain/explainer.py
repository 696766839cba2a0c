"""From a snapshot and a workload's key to its explanation: the diagnosis, its evidence, and the changes that help."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kueue_admission.decide.engine import Engine
from kueue_admission.decide.errors import AdmissionError
from kueue_admission.decide.model import Snapshot, Workload, WorkloadStatus
from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.decide.workload.variants import as_one
from kueue_admission.explain.answer import Explanation, FlavorFigures
from kueue_admission.explain.checks import checks_of, has_failed
from kueue_admission.explain.crowd_changes import crowd_changes
from kueue_admission.explain.diagnosis import Diagnosis, diagnose, only_relevant
from kueue_admission.explain.figures import figures, requests_of
from kueue_admission.explain.headlines import (
    code_of_reason,
    fits_nowhere,
    headline,
    next_step,
    not_known,
    still_suspended,
    unprinted_kind,
)
from kueue_admission.explain.label_conflicts import label_conflicts
from kueue_admission.explain.links import Links
from kueue_admission.explain.next_cycles import not_ready
from kueue_admission.explain.other_changes import (
    blocked_changes,
    check_changes,
    failed_check_changes,
    flavor_changes,
    inactive_changes,
    namespace_changes,
)
from kueue_admission.explain.placement import placements_of
from kueue_admission.explain.placement_changes import placement_changes
from kueue_admission.explain.quota_changes import quota_changes
from kueue_admission.explain.spared import spared_in
from kueue_admission.explain.trials import Trials
from kueue_admission.explain.worker_state import holdings_of, position_of, victims_of
from kueue_admission.explain.written import Condition, as_written, compare, equal_before
from kueue_admission.kernel.known_messages import code_of
from kueue_admission.read.dispatch_report import Filtered, ParsedReport


def explain(
    snapshot: Snapshot,
    key: str,
    *,
    cluster: str = "",
    dispatch: ParsedReport | None = None,
    written: Condition | None = None,
    unplaceable: Collection[str] = (),
    links: Links | None = None,
    suspended_job: str = "",
    with_changes: bool = True,
    with_workers: bool = False,
    room: Mapping[tuple[str, str], int] = MappingProxyType({}),
) -> Explanation:
    """Why the workload `key` is where it is on this cluster. `dispatch`: what `dispatch_report` found in it.

    Without `with_changes`, no change is tried, which takes about half of the time. `with_workers`: its worker clusters
    are explained too, and changes of their quotas are tried there. `room`: how much more nominal quota the nodes of a
    flavor can hold, by flavor and resource, where that is known; a change that needs more is not listed.

    `written`: what Kueue wrote on it, by `written.written_on`. `links`: what its ClusterQueue refers to, where that is
    known. `suspended_job`: its job, where that is suspended. `unplaceable`: the workloads here that no worker can ever
    hold, this one or others (see the module of that name).

    A job that waits for all flavors at once is explained without its variants, as one that tries them in turn.

    Raises AdmissionError if the snapshot has no such workload.
    """
    snapshot = as_one(snapshot, key)
    workload = next((w for w in snapshot.workloads if w.key == key), None)
    if workload is None:
        raise AdmissionError(f"there is no workload {key}")
    diagnosis = as_written(diagnose(only_relevant(snapshot, key), key), written)
    info = diagnosis.engine.workloads.get(key) or diagnosis.engine.cache.info(workload)
    trials = Trials(snapshot, key, diagnosis, frozenset(unplaceable), with_workers=with_workers, room=room)
    if with_changes:
        _try_changes(trials, diagnosis, info)
    queue = diagnosis.engine.cache.queues.get(info.cluster_queue)
    replaced_info = diagnosis.engine.cache.replaced(info) if queue is not None else None
    entry, outlook = diagnosis.entry, diagnosis.outlook
    looked_at = diagnosis.state == "Pending" and entry is not None and entry.outcome is not Outcome.INADMISSIBLE
    blockers = outlook.blockers if outlook is not None and diagnosis.fits else ()
    explanation = Explanation(
        workload=key,
        cluster=cluster,
        state=diagnosis.state,
        reason=diagnosis.reason,
        message=diagnosis.message,
        headline="",
        local_queue=workload.queue,
        cluster_queue=info.cluster_queue,
        cohort=queue.parent.name if queue is not None and queue.parent is not None else "",
        priority=info.priority,
        evicted_for=", ".join(dict.fromkeys(filter(None, (info.evicted_reason, info.preempted_reason)))),
        evicted_message=workload.status.evicted_message,
        replaces=replaced_info.key if replaced_info is not None else "",
        requests=requests_of(info),
        holdings=holdings_of(diagnosis.engine, info),
        flavors=_flavors(diagnosis.engine, info, entry) if entry is not None and looked_at else (),
        placements=placements_of(diagnosis.engine, entry),
        checks=checks_of(diagnosis.engine, info),
        links=links.broken(queue.spec) if links is not None and queue is not None else (),
        lost=links.lost(info.cluster_queue) if links is not None and diagnosis.state == "Pending" else (),
        nodes=label_conflicts(snapshot.objects.flavors, workload.status.admission, entry),
        position=position_of(diagnosis.engine, info) if diagnosis.state == "Pending" else None,
        victims=victims_of(diagnosis.decided),
        turns=outlook.turns if outlook is not None and diagnosis.fits else (),
        blockers=not_ready(diagnosis.engine) if entry is not None and entry.outcome is Outcome.BLOCKED else blockers,
        written=compare(written, diagnosis),
        equal_before=equal_before(diagnosis, written),
        changes=tuple(sorted(trials.found, key=lambda change: not change.admits)),
        is_copy=bool(workload.origin),
        dispatch=dispatch,
    )
    if diagnosis.state == "Pending" and (lacking := unprinted_kind(diagnosis)) is not None:
        return not_known(explanation, lacking)
    if explanation.state == "Admitted" and suspended_job:
        return still_suspended(explanation, suspended_job)
    explanation = replace(
        explanation, headline=headline(explanation, diagnosis), code=code_of_reason(explanation, diagnosis)
    )
    explanation = replace(explanation, next_step=next_step(explanation, diagnosis))
    return (
        fits_nowhere(explanation)
        if key in unplaceable and explanation.state in ("Pending", "QuotaReserved")
        else explanation
    )


def _flavors(engine: Engine, info: WorkloadInfo, entry: Entry) -> tuple[FlavorFigures, ...]:
    flavor_figures = figures(engine.cache, info, entry)
    return tuple(
        replace(figure, spared=spared_in(engine, entry, figure.flavor, figure.resources)) for figure in flavor_figures
    )


def explain_elsewhere(
    snapshot: Snapshot,
    workload: Workload,
    *,
    cluster: str,
    with_queue: Sequence[str] = (),
    dispatch: ParsedReport | None = None,
    room: Mapping[tuple[str, str], int] = MappingProxyType({}),
) -> Explanation:
    """What would happen to a workload on a cluster to which it was not dispatched: as if it were submitted there.

    `with_queue`: the clusters that have its LocalQueue; on any other cluster it would never get a Workload.
    `dispatch`: what was decided about it, which may be that it must not go there. `room`: as `explain` has it.
    """
    if with_queue and cluster not in with_queue:
        return _explain_without_queue(workload, cluster, ", ".join(with_queue))
    there = replace(workload, status=WorkloadStatus())
    others = tuple(w for w in snapshot.workloads if w.key != workload.key)
    explanation = explain(replace(snapshot, workloads=(*others, there)), workload.key, cluster=cluster, room=room)
    verdicts = dispatch.verdicts if dispatch is not None else ()
    ruled_out = [
        f" ({one.reason}: {one.message})" for one in verdicts if one.cluster == cluster and isinstance(one, Filtered)
    ]
    where = f"It is not on this cluster{''.join(ruled_out)}."
    code = code_of("\n".join(ruled_out)) or explanation.code
    return replace(explanation, headline=f"{where} If it were: {explanation.headline}", is_there=False, code=code)


def _explain_without_queue(workload: Workload, cluster: str, places: str) -> Explanation:
    """For a cluster to which MultiKueue can dispatch nothing of the workload's queue."""
    return Explanation(
        workload=workload.key,
        cluster=cluster,
        state="Absent",
        reason=None,
        message=f"its LocalQueue {workload.queue} is on {places} only",
        headline=f"It cannot be dispatched here: its LocalQueue {workload.queue} is on {places} only. If it belongs "
        "here too, add this cluster to the clusters of its ClusterQueue and of the team.",
        local_queue=workload.queue,
        next_step="Nothing to do here.",
        is_there=False,
    )


def explain_finished(key: str, message: str, *, cluster: str, queue: str) -> Explanation:
    """For a workload of which nothing is left but that it finished."""
    return Explanation(
        workload=key,
        cluster=cluster,
        state="Finished",
        reason="Finished",
        message=message,
        headline=f"{message}.",
        cluster_queue=queue,
        next_step="Nothing to do.",
    )


def _try_changes(trials: Trials, diagnosis: Diagnosis, info: WorkloadInfo) -> None:
    if diagnosis.entry is not None and diagnosis.state == "QuotaReserved":
        placement_changes(trials, diagnosis.entry)
    elif diagnosis.state == "QuotaReserved":
        check_changes(trials, info.workload)
    elif diagnosis.blocked:
        blocked_changes(trials, info.workload)
    elif diagnosis.fits and not diagnosis.admits:
        crowd_changes(trials)
    elif diagnosis.entry is not None and not diagnosis.admits:
        _change_entry(trials, diagnosis.entry)


def _change_entry(trials: Trials, entry: Entry) -> None:
    if entry.outcome is Outcome.INADMISSIBLE:
        if has_failed(entry.info):
            failed_check_changes(trials, entry.info.workload)
        elif not entry.queue.active:
            inactive_changes(trials, entry)
        elif entry.why is QuotaReservedReason.MISCONFIGURED:
            namespace_changes(trials, entry)
    elif entry.outcome in (Outcome.NO_FIT, Outcome.WAITING):
        flavor_changes(trials, entry)
        placement_changes(trials, entry)
        quota_changes(trials, entry)
