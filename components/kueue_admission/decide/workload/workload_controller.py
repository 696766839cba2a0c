"""What Kueue's workload controller does: admit when all checks are ready, evict, release, back off, time out.

Source: kueue@v0.19.2 pkg/controller/core/workload_controller.go, pkg/controller/jobframework/reconciler.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mypy_extensions import mypyc_attr

from kueue_admission.decide.decisions import (
    Admitted,
    BackoffStarted,
    ChecksPending,
    Deactivated,
    DeactivationCause,
    Evicted,
    Released,
)
from kueue_admission.decide.model import CheckState, Node
from kueue_admission.decide.queue.queues import Queues
from kueue_admission.decide.reasons import DEACTIVATED_BY_HAND, AdmittedReason, EvictionReason, PreemptionReason
from kueue_admission.decide.timers import Timer
from kueue_admission.decide.topology.replacement import judge_nodes
from kueue_admission.decide.workload import lifecycle
from kueue_admission.decide.workload.state import WorkloadInfo, refresh_order
from kueue_admission.decide.workload.transitions import Step


@mypyc_attr(allow_interpreted_subclasses=True)
class WorkloadController:
    """Admission after the reservation, eviction, and everything that is due at some time.

    `second_ready` are the workloads with quota whose pods the next cycle is to place.
    """

    def __init__(self, queues: Queues) -> None:
        self.queues = queues
        self.second_ready: list[str] = []
        self.second_passes: dict[str, int] = {}

    def resume_second_pass(self, info: WorkloadInfo) -> None:
        """A workload that was submitted with quota may be waiting for the placement of its pods."""
        if info.has_lost_places and not info.is_evicted:
            self.second_ready.append(info.key)
        if not info.is_reserved or info.is_admitted or info.is_evicted or not info.checks:
            return
        if lifecycle.why_not_admitted(info) is AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS:
            self.second_ready.append(info.key)

    def see_nodes(self, changed_nodes: Mapping[str, Node | None]) -> None:
        """Nodes have changed; Kueue looks at the admitted workloads with pods on them."""
        gates = self.queues.cache.gates
        if not changed_nodes or not gates.tas_failed_node_replacement:
            return
        flavors = self.queues.cache.flavors
        for info in list(self.queues.workloads.values()):
            if info.admission is not None and info.is_admitted and not info.is_evicted:
                verdicts = judge_nodes(info.workload, info.admission, flavors, changed_nodes, gates)
                for node, has_failed in verdicts.items():
                    self.mark_node(info, node, failed=has_failed)

    def mark_node(self, info: WorkloadInfo, node: str, *, failed: bool) -> None:
        """Kueue has judged a node on which an admitted workload has pods."""
        if not failed:
            info.unhealthy_nodes = tuple(name for name in info.unhealthy_nodes if name != node)
            if not info.has_lost_places:
                info.lost_nodes = info.unhealthy_nodes
        elif not info.unhealthy_nodes:
            info.unhealthy_nodes = (node,)
            self.plan_second_pass(info)
        elif node not in info.unhealthy_nodes:
            names = ", ".join((*info.unhealthy_nodes, node))
            message = f"Workload eviction triggered due to multiple TAS assigned node failures, including: {names}"
            self.evict(info, EvictionReason.NODE_FAILURES, message)

    def plan_second_pass(self, info: WorkloadInfo) -> None:
        """Try to place the pods again, after 1 s, then twice as long each time up to 30 s."""
        info.lost_nodes = info.lost_nodes or info.unhealthy_nodes
        passes = self.second_passes[info.key] = self.second_passes.get(info.key, 0) + 1
        delay = lifecycle.backoff_seconds(passes, 1.0, 30.0)
        self.queues.timers.reset(Timer.SECOND_PASS, info.key, self.queues.now + delay)

    def sync_admitted(self, info: WorkloadInfo) -> None:
        """Admit a workload with quota if nothing is left to wait for."""
        if info.is_admitted:
            return
        reason = lifecycle.why_not_admitted(info)
        if reason is None:
            lifecycle.admit(info, self.queues.now)
            self.settle_usage(info)
            if (queue := self.queues.cache.queues.get(info.cluster_queue)) is not None:
                queue.generation += 1
            self.second_passes.pop(info.key, None)
            self.queues.decide(Admitted(self.queues.now, info.key, info.cluster_queue))
            self.set_timers(info)
        else:
            waiting = tuple(name for name, check in info.checks.items() if check.state is not CheckState.READY)
            self.queues.decide(ChecksPending(self.queues.now, info.key, reason, waiting))
            if reason is AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS and info.checks:
                self.plan_second_pass(info)

    def settle_usage(self, info: WorkloadInfo) -> None:
        """An admitted workload counts in the usage of its LocalQueue."""
        self.queues.cache.settle(info)

    def evict(
        self,
        info: WorkloadInfo,
        reason: EvictionReason,
        message: str,
        *,
        cause: DeactivationCause | str = "",
        preemptor: str = "",
        preemption: PreemptionReason | None = None,
    ) -> None:
        """Begin to take back quota; the pods still run."""
        lifecycle.mark_evicted(info, reason, self.queues.now, message)
        queue = self.queues.cache.queues.get(info.cluster_queue)
        if queue is not None and info.key in queue.workloads:
            queue.generation += 1
        refresh_order(info, self.queues.cache.gates, self.queues.cache.configuration.wait_for_pods_ready)
        for kind in (Timer.PODS_READY, Timer.MAX_EXECUTION, Timer.SECOND_PASS):
            self.queues.timers.cancel(kind, info.key)
        self.second_passes.pop(info.key, None)
        name = info.cluster_queue
        self.queues.decide(Evicted(self.queues.now, info.key, name, reason, message, cause, preemptor, preemption))

    def deactivate(self, info: WorkloadInfo, cause: DeactivationCause, message: str) -> None:
        """Evict a workload that is not to be queued again."""
        info.workload = replace(info.workload, active=False)
        self.forget_backoff(info)
        self.queues.decide(Deactivated(self.queues.now, info.key, cause))
        self.evict(info, EvictionReason.DEACTIVATED, f"The workload is deactivated due to {message}", cause=cause)
        self.stop_counting(info)

    def change_active(self, info: WorkloadInfo) -> None:
        """A user has set `spec.active`."""
        if info.workload.active:
            if info.requeued is False and info.requeued_reason == EvictionReason.DEACTIVATED:
                info.requeued = True
            if not info.is_reserved:
                self.queues.enqueue(info)
            elif info.key not in self.queues.cache.queues[info.cluster_queue].workloads:
                self.queues.cache.add(info)
            return
        self.forget_backoff(info)
        if info.is_reserved:
            if not info.is_evicted:
                self.evict(info, EvictionReason.DEACTIVATED, DEACTIVATED_BY_HAND)
            self.stop_counting(info)
        else:
            self.queues.cache.drop_penalty(info)
            self.queues.enqueue(info)

    def forget_backoff(self, info: WorkloadInfo) -> None:
        """The workload need not wait any longer."""
        info.requeue_at, info.requeue_count = None, 0
        self.queues.timers.cancel(Timer.BACKOFF, info.key)

    def stop_counting(self, info: WorkloadInfo) -> None:
        """Others may have the quota of a deactivated workload at once, before its pods are gone."""
        if self.queues.cache.remove(info):
            self.queues.wake_others(info)

    def release(self, info: WorkloadInfo, step: Step) -> None:
        """Take back the quota of a workload whose pods are gone or were never made, and queue it again."""
        name = info.cluster_queue
        lifecycle.release(info, step, self.queues.now)
        self.queues.cache.remove(info)
        self.queues.cache.refresh(info)
        self.queues.decide(Released(self.queues.now, info.key, name))
        self.queues.wake_others(info)
        if not info.workload.active:
            self.queues.cache.drop_penalty(info)
            self.queues.enqueue(info)
            return
        if info.requeued is False and info.requeued_reason in (
            EvictionReason.PODS_READY_TIMEOUT,
            EvictionReason.ADMISSION_CHECK,
        ):
            if info.requeue_at is None or info.requeue_at <= self.queues.now:
                self.finish_backoff(info)
                return
            self.queues.decide(BackoffStarted(self.queues.now, info.key, info.requeue_at, info.requeue_count))
            self.queues.timers.reset(Timer.BACKOFF, info.key, info.requeue_at)
        self.queues.restart(info)
        self.queues.enqueue(info)

    def reconcile(self, info: WorkloadInfo) -> None:
        """What Kueue does with a workload that has quota when it looks at it again."""
        if self.backs_off(info):
            return
        if not info.is_evicted:
            self.act_on_checks(info)
        if info.is_reserved:
            self.check_stop_policy(info)
        self.set_timers(info)

    def act_on_checks(self, info: WorkloadInfo) -> None:
        """Evict a workload of which a check failed; admit it if all are ready."""
        if not self._act_on_failed_checks(info):
            self.sync_admitted(info)

    def _act_on_failed_checks(self, info: WorkloadInfo) -> bool:
        if not info.checks:
            return False
        if info.has_check(CheckState.REJECTED):
            message = lifecycle.describe_checks(info, CheckState.REJECTED)
            self.deactivate(info, DeactivationCause.ADMISSION_CHECK, message)
            return True
        if info.has_check(CheckState.RETRY):
            message = f"Evicted due to {lifecycle.describe_checks(info, CheckState.RETRY)}"
            self.evict(info, EvictionReason.ADMISSION_CHECK, message)
            return True
        return False

    def backs_off(self, info: WorkloadInfo) -> bool:
        """Whether Kueue leaves the workload alone until the time its check asked for: it keeps its quota till then.

        Nothing happens to it meanwhile but preemption and deactivation (core/workload_controller.go, Reconcile).
        """
        return info.workload.active and info.requeue_at is not None and info.requeue_at > self.queues.now

    def check_stop_policy(self, info: WorkloadInfo) -> None:
        """Stopped queues: drain what is admitted, take back what only has quota.

        The ClusterQueue's policy means nothing to what was admitted by a LocalQueue that is stopped itself: Kueue finds
        the ClusterQueue by the LocalQueues that are not stopped.
        """
        local = self.queues.local_queues.get(info.workload.local_queue)
        queue = self.queues.cache.queues.get(info.cluster_queue)
        by_local = local.stop_policy if local else "None"
        by_queue = queue.spec.stop_policy if queue and by_local == "None" else "None"
        if by_local == by_queue == "None":
            return
        checks = (
            (by_local, EvictionReason.LOCAL_QUEUE_STOPPED, "The LocalQueue is stopped"),
            (by_queue, EvictionReason.CLUSTER_QUEUE_STOPPED, "The ClusterQueue is stopped"),
        )
        for policy, reason, message in checks:
            if info.is_admitted and policy == "HoldAndDrain" and not info.is_evicted:
                self.evict(info, reason, message)
            elif not info.is_admitted and info.is_reserved and policy != "None":
                self.release(info, Step.WITHDRAW)
                return

    def set_timers(self, info: WorkloadInfo) -> None:
        """When pods have to be ready, and when the workload has run long enough."""
        settings = self.queues.cache.configuration.wait_for_pods_ready
        self.queues.timers.cancel(Timer.PODS_READY, info.key)
        if info.admitted_at is None or info.is_evicted:
            return
        if settings is not None and not info.pods_ready and not info.workload.parent:
            if not info.waits_for_recovery:
                self.queues.timers.reset(Timer.PODS_READY, info.key, info.admitted_at + settings.timeout)
            elif settings.recovery_timeout is not None and info.pods_ready_since is not None:
                self.queues.timers.reset(Timer.PODS_READY, info.key, info.pods_ready_since + settings.recovery_timeout)
        limit = info.workload.max_execution_seconds
        if limit is not None:
            self.queues.timers.reset(Timer.MAX_EXECUTION, info.key, info.admitted_at + limit - info.past_execution)

    def open_gate(self, info: WorkloadInfo, gate: str) -> None:
        """A preemption gate opens; what waited for that is looked at again."""
        info.open_gates[gate] = self.queues.now
        if not info.is_reserved:
            self.queues.enqueue(info)

    def set_pods_ready(self, info: WorkloadInfo, *, ready: bool) -> None:
        """All its pods are ready, or not any more."""
        was_ready = info.pods_ready
        info.pods_ready = ready
        info.pods_ready_since = self.queues.now
        info.waits_for_recovery = was_ready and not ready
        queue = self.queues.cache.queues.get(info.cluster_queue)
        if queue is not None and info.key in queue.workloads:
            queue.generation += 1
            if ready:
                queue.not_ready.discard(info.key)
            else:
                queue.not_ready.add(info.key)
        self.set_timers(info)

    def on_timer(self, kind: Timer, name: str) -> None:
        """What was due is done; `name` is a workload, a ClusterQueue or, to reactivate, a tree."""
        if kind is Timer.REACTIVATE:
            self.queues.reactivate(name)
            return
        if kind is Timer.STATUS:
            self.queues.write_status(name)
            return
        info = self.queues.workloads.get(name)
        if info is None:
            return
        if kind is Timer.PREEMPTION_GATE:
            pass  # Its variants are looked at after each timer.
        elif kind is Timer.SECOND_PASS:
            self.second_ready.append(name)
        elif kind is Timer.BACKOFF:
            if info.is_reserved:
                self.reconcile(info)
            else:
                self.finish_backoff(info)
        elif self.backs_off(info):
            pass
        elif kind is Timer.PODS_READY:
            self.time_out(info)
        elif info.is_admitted and not info.is_evicted:
            info.past_execution = 0.0
            self.deactivate(
                info, DeactivationCause.MAXIMUM_EXECUTION_TIME_EXCEEDED, "exceeding the maximum execution time"
            )

    def resume_backoff(self, info: WorkloadInfo) -> None:
        """A workload that was submitted without quota may have waited long enough by now."""
        if info.requeue_at is None or info.requeue_at <= self.queues.now:
            self._end_backoff(info)

    def finish_backoff(self, info: WorkloadInfo) -> None:
        """The workload has waited long enough."""
        self._end_backoff(info)
        self.queues.enqueue(info)

    @staticmethod
    def _end_backoff(info: WorkloadInfo) -> None:
        info.requeue_at = None
        if info.requeued is False and info.requeued_reason in (
            EvictionReason.PODS_READY_TIMEOUT,
            EvictionReason.ADMISSION_CHECK,
        ):
            info.requeued = True

    def time_out(self, info: WorkloadInfo) -> None:
        """Evict a workload whose pods are not ready in time, or deactivate it after the last try."""
        settings = self.queues.cache.configuration.wait_for_pods_ready
        if settings is None or not info.is_admitted or info.is_evicted or info.pods_ready:
            return
        if settings.backoff_limit is not None and info.requeue_count + 1 > settings.backoff_limit:
            self.deactivate(
                info, DeactivationCause.REQUEUING_LIMIT_EXCEEDED, "exceeding the maximum number of re-queuing retries"
            )
            return
        cause = "WaitForRecovery" if info.waits_for_recovery else "WaitForStart"
        lifecycle.start_backoff(info, settings, self.queues.now)
        message = f"Exceeded the PodsReady timeout {info.key}"
        self.evict(info, EvictionReason.PODS_READY_TIMEOUT, message, cause=cause)
