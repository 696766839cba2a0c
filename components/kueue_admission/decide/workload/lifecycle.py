"""Changes of one workload's status: reservation, checks, eviction, back-off. No queues and no usage here.

Source: kueue@v0.19.2 pkg/workload/{workload,admissionchecks}.go, pkg/workload/evict/evict.go,
pkg/controller/core/workload_controller.go.
"""

from __future__ import annotations

from dataclasses import replace

from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.model import Admission, CheckState, WaitForPodsReady, WorkloadCheck
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.reasons import AdmittedReason, EvictionReason
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.decide.workload.transitions import Step


def required_checks(info: WorkloadInfo, queue: QueueNode, behaviours: Behaviours) -> list[str]:
    """The checks the workload needs: with quota those of its flavors, without it those that apply to all flavors."""
    if not queue.checks:
        return []
    if info.admission is None:
        return queue.checks_of_all
    flavors_used = {flavor for pod_set in info.admission.pod_sets for _, flavor in pod_set.flavors}
    if not flavors_used and not behaviours.needs_no_checks_without_flavors:
        return list(queue.checks)
    return [name for name, flavors in queue.checks.items() if not flavors.isdisjoint(flavors_used)]


def sync_checks(info: WorkloadInfo, queue: QueueNode, now: float, behaviours: Behaviours) -> None:
    """Add checks it needs as Pending and forget those it does not need."""
    names = required_checks(info, queue, behaviours)
    if list(info.checks) != names:
        info.checks = {name: info.checks.get(name) or WorkloadCheck(name, since=now) for name in names}


def reserve(info: WorkloadInfo, admission: Admission, now: float) -> None:
    """The workload gets quota; what was said about an earlier eviction no longer holds."""
    info.take(Step.RESERVE, now, admission.cluster_queue)
    info.admission = admission
    info.reserved_at = now
    info.evicted_at = None
    info.evicted_reason = None
    info.evicted_message = ""
    info.preempted_reason = None
    info.gated = False
    info.considered = True


def why_not_admitted(info: WorkloadInfo) -> AdmittedReason | None:
    """What keeps a workload from being Admitted; None if nothing does."""
    if info.admission is None:
        return AdmittedReason.NO_RESERVATION
    if any(check.state is not CheckState.READY for check in info.checks.values()):
        return AdmittedReason.UNSATISFIED_ADMISSION_CHECKS
    if any(ps.delayed_topology and ps.topology is None for ps in info.admission.pod_sets):
        return AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS
    return None


def admit(info: WorkloadInfo, now: float) -> None:
    """Nothing is left to wait for: its pods may run."""
    info.take(Step.ADMIT, now)
    info.admitted_at = now


def mark_evicted(info: WorkloadInfo, reason: EvictionReason, now: float, message: str = "") -> None:
    """The eviction is decided; checks start over, and one that asked for a retry counts it."""
    info.take(Step.EVICT, now, reason)
    info.evicted_at = now
    info.evicted_reason = reason
    info.evicted_message = message
    for name, check in info.checks.items():
        if check.state is not CheckState.PENDING:
            info.checks[name] = WorkloadCheck(
                name,
                since=now,
                requeue_after=check.requeue_after,
                retry_count=check.retry_count + 1 if check.state is CheckState.RETRY else 0,
                message=f"Reset to Pending after eviction. Previously: {check.state.value}",
            )
    info.open_gates = {}
    info.unhealthy_nodes = info.lost_nodes = ()


def finish(info: WorkloadInfo, now: float) -> None:
    """Its job has ended, or Kueue has given it up."""
    info.take(Step.FINISH, now)
    info.finished = True


def release(info: WorkloadInfo, step: Step, now: float) -> None:
    """The quota is given back; the time it was admitted counts against its maximum execution time."""
    info.take(step, now)
    if info.admitted_at is not None:
        info.past_execution += float(int(now - info.admitted_at))
    info.admission = None
    info.reserved_at = None
    info.admitted_at = None
    info.pods_ready = False
    info.pods_ready_since = None
    info.waits_for_recovery = False
    if info.evicted_reason is not None:
        info.requeued = info.evicted_reason in (EvictionReason.PREEMPTED, EvictionReason.NODE_FAILURES)
        info.requeued_reason = info.evicted_reason


def latest_retry(info: WorkloadInfo) -> float | None:
    """Until when the checks that asked for a retry want to wait."""
    times = [
        check.since + check.requeue_after
        for check in info.checks.values()
        if check.state is CheckState.RETRY and check.requeue_after is not None
    ]
    return max(times, default=None)


def backoff_seconds(count: int, base: float, most: float) -> float:
    """The `count`-th wait: `base` doubled each time, at most `most`.

    Kueue adds up to 0.01 % at random, which is left out here.
    """
    if base <= 0:
        return 0.0
    return float(min(base * 2.0 ** (min(count, 64) - 1), most))


def start_backoff(info: WorkloadInfo, settings: WaitForPodsReady, now: float) -> float:
    """Count one more requeueing after the PodsReady timeout; until when it waits."""
    info.requeue_count += 1
    until = now + backoff_seconds(info.requeue_count, settings.backoff_base, settings.backoff_max)
    if info.requeue_at is None or info.requeue_at < until:
        info.requeue_at = until
    return info.requeue_at


def set_check(
    info: WorkloadInfo, name: str, state: CheckState, message: str, requeue_after: float | None, now: float
) -> bool:
    """Take over what a check's controller says; False if the workload does not have the check."""
    known_check = info.checks.get(name)
    if known_check is None:
        return False
    since = now if known_check.state is not state else known_check.since
    info.checks[name] = replace(known_check, state=state, message=message, requeue_after=requeue_after, since=since)
    return True


def describe_checks(info: WorkloadInfo, state: CheckState) -> str:
    """Kueue's words about the checks in one state."""
    checks = [check for name, check in sorted(info.checks.items()) if check.state is state]
    parts = [f'"{check.name}" ({check.message})' if check.message else f'"{check.name}"' for check in checks]
    noun = "AdmissionCheck" if len(checks) == 1 else "AdmissionChecks"
    return f"{noun} in {state.value} state: {'; '.join(parts)}"
