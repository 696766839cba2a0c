"""What Kueue's workload controller does by itself: admit when all checks are ready, evict, release, back off, time out.

Source: kueue@v0.19.2 pkg/controller/core/workload_controller.go, pkg/controller/jobframework/reconciler.go.
"""

from __future__ import annotations

from dataclasses import replace

from kueue_fleet.admission.decisions import Admitted, BackoffStarted, ChecksPending, Deactivated, Evicted, Released
from kueue_fleet.admission.model import CheckState
from kueue_fleet.admission.queue.queues import Membership
from kueue_fleet.admission.reasons import AdmittedReason, DeactivationCause, EvictionReason, PreemptionReason
from kueue_fleet.admission.timers import Timer
from kueue_fleet.admission.workload import lifecycle
from kueue_fleet.admission.workload.state import WorkloadInfo, refresh_order


class WorkloadControl(Membership):
    """Admission after the reservation, eviction, and everything that is due at some time."""

    def _resume_second_pass(self, info: WorkloadInfo) -> None:
        if not info.is_reserved or info.is_admitted or info.is_evicted or not info.checks:
            return
        if lifecycle.why_not_admitted(info) is AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS:
            self._second_ready.append(info.key)

    def _plan_second_pass(self, info: WorkloadInfo) -> None:
        """Try to place the pods again, after 1 s, then twice as long each time up to 30 s."""
        passes = self._second_passes[info.key] = self._second_passes.get(info.key, 0) + 1
        delay = lifecycle.backoff_seconds(passes, 1.0, 30.0)
        self._timers.reset(Timer.SECOND_PASS, info.key, self.now + delay)

    def _sync_admitted(self, info: WorkloadInfo) -> None:
        """Admit a workload with quota if nothing is left to wait for."""
        if info.is_admitted:
            return
        missing = lifecycle.why_not_admitted(info)
        if missing is None:
            info.admitted_at = self.now
            self.cache.queues[info.cluster_queue].generation += 1
            self._second_passes.pop(info.key, None)
            self._decide(Admitted(self.now, info.key, info.cluster_queue))
            self._set_timers(info)
        else:
            waiting = tuple(name for name, check in info.checks.items() if check.state is not CheckState.READY)
            self._decide(ChecksPending(self.now, info.key, missing, waiting))
            if missing is AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS and info.checks:
                self._plan_second_pass(info)

    def _evict(
        self,
        info: WorkloadInfo,
        reason: EvictionReason,
        message: str,
        *,
        cause: DeactivationCause | str = "",
        preemptor: str = "",
        preemption: PreemptionReason | None = None,
    ) -> None:
        lifecycle.mark_evicted(info, reason, self.now)
        queue = self.cache.queues.get(info.cluster_queue)
        if queue is not None and info.key in queue.workloads:
            queue.generation += 1
        refresh_order(info, self.cache.gates, self.cache.configuration.wait_for_pods_ready)
        for kind in (Timer.PODS_READY, Timer.MAX_EXECUTION, Timer.SECOND_PASS):
            self._timers.cancel(kind, info.key)
        self._second_passes.pop(info.key, None)
        name = info.cluster_queue
        self._decide(Evicted(self.now, info.key, name, reason, message, cause, preemptor, preemption))

    def _deactivate(self, info: WorkloadInfo, cause: DeactivationCause, message: str) -> None:
        info.workload = replace(info.workload, active=False)
        self._forget_backoff(info)
        self._decide(Deactivated(self.now, info.key, cause))
        self._evict(info, EvictionReason.DEACTIVATED, f"The workload is deactivated due to {message}", cause=cause)
        self._stop_counting(info)

    def _forget_backoff(self, info: WorkloadInfo) -> None:
        info.requeue_at, info.requeue_count = None, 0
        self._timers.cancel(Timer.BACKOFF, info.key)

    def _stop_counting(self, info: WorkloadInfo) -> None:
        """Others may have the quota of a deactivated workload at once, before its pods are gone."""
        if self.cache.remove(info):
            self._wake_others(info)

    def _release(self, info: WorkloadInfo) -> None:
        name = info.cluster_queue
        self.cache.remove(info)
        lifecycle.release(info, self.now)
        self.cache.refresh(info)
        self._decide(Released(self.now, info.key, name))
        self._wake_others(info)
        if not info.workload.active:
            self._enqueue(info)
            return
        if info.requeued is False and info.requeued_reason in (
            EvictionReason.PODS_READY_TIMEOUT,
            EvictionReason.ADMISSION_CHECK,
        ):
            if info.requeue_at is None or info.requeue_at <= self.now:
                self._finish_backoff(info)
                return
            self._decide(BackoffStarted(self.now, info.key, info.requeue_at, info.requeue_count))
            self._timers.reset(Timer.BACKOFF, info.key, info.requeue_at)
        self._restart(info)
        self._enqueue(info)

    def _go_on(self, info: WorkloadInfo) -> None:
        """What Kueue does with a workload that has quota when it looks at it again."""
        if self._backs_off(info):
            return
        if not info.is_evicted:
            self._act_on_checks(info)
        if info.is_reserved:
            self._check_stop_policy(info)
        self._set_timers(info)

    def _act_on_checks(self, info: WorkloadInfo) -> None:
        if not self._act_on_failed_checks(info):
            self._sync_admitted(info)

    def _act_on_failed_checks(self, info: WorkloadInfo) -> bool:
        if not info.checks:
            return False
        if info.has_check(CheckState.REJECTED):
            message = lifecycle.describe_checks(info, CheckState.REJECTED)
            self._deactivate(info, DeactivationCause.ADMISSION_CHECK, message)
            return True
        if info.has_check(CheckState.RETRY):
            message = f"Evicted due to {lifecycle.describe_checks(info, CheckState.RETRY)}"
            self._evict(info, EvictionReason.ADMISSION_CHECK, message)
            return True
        return False

    def _backs_off(self, info: WorkloadInfo) -> bool:
        """Whether Kueue leaves the workload alone until the time its check asked for: it keeps its quota till then.

        Nothing happens to it meanwhile but preemption and deactivation (core/workload_controller.go, Reconcile).
        """
        return info.workload.active and info.requeue_at is not None and info.requeue_at > self.now

    def _check_stop_policy(self, info: WorkloadInfo) -> None:
        """Stopped queues: drain what is admitted, take back what only has quota.

        The ClusterQueue's policy means nothing to what was admitted by a LocalQueue that is stopped itself: Kueue finds
        the ClusterQueue by the LocalQueues that are not stopped.
        """
        local = self._local_queues.get(f"{info.workload.namespace}/{info.workload.queue}")
        queue = self.cache.queues.get(info.cluster_queue)
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
                self._evict(info, reason, message)
            elif not info.is_admitted and info.is_reserved and policy != "None":
                self._release(info)
                return

    def _set_timers(self, info: WorkloadInfo) -> None:
        settings = self.cache.configuration.wait_for_pods_ready
        self._timers.cancel(Timer.PODS_READY, info.key)
        if info.admitted_at is None or info.is_evicted:
            return
        if settings is not None and not info.pods_ready:
            if not info.waits_for_recovery:
                self._timers.reset(Timer.PODS_READY, info.key, info.admitted_at + settings.timeout)
            elif settings.recovery_timeout is not None and info.pods_ready_since is not None:
                self._timers.reset(Timer.PODS_READY, info.key, info.pods_ready_since + settings.recovery_timeout)
        limit = info.workload.max_execution_seconds
        if limit is not None:
            self._timers.reset(Timer.MAX_EXECUTION, info.key, info.admitted_at + limit - info.past_execution)

    def _go_off(self, kind: Timer, name: str) -> None:
        if kind is Timer.REACTIVATE:
            self._reactivate(name)
            return
        info = self.workloads.get(name)
        if info is None:
            return
        if kind is Timer.SECOND_PASS:
            self._second_ready.append(name)
        elif kind is Timer.BACKOFF:
            if info.is_reserved:
                self._go_on(info)
            else:
                self._finish_backoff(info)
        elif self._backs_off(info):
            pass
        elif kind is Timer.PODS_READY:
            self._time_out(info)
        elif info.is_admitted and not info.is_evicted:
            info.past_execution = 0.0
            self._deactivate(
                info, DeactivationCause.MAXIMUM_EXECUTION_TIME_EXCEEDED, "exceeding the maximum execution time"
            )

    def _finish_backoff(self, info: WorkloadInfo) -> None:
        info.requeue_at = None
        if info.requeued is False and info.requeued_reason in (
            EvictionReason.PODS_READY_TIMEOUT,
            EvictionReason.ADMISSION_CHECK,
        ):
            info.requeued = True
        self._enqueue(info)

    def _time_out(self, info: WorkloadInfo) -> None:
        settings = self.cache.configuration.wait_for_pods_ready
        if settings is None or not info.is_admitted or info.is_evicted or info.pods_ready:
            return
        if settings.backoff_limit is not None and info.requeue_count + 1 > settings.backoff_limit:
            self._deactivate(
                info,
                DeactivationCause.REQUEUING_LIMIT_EXCEEDED,
                "exceeding the maximum number of re-queuing retries",
            )
            return
        cause = "WaitForRecovery" if info.waits_for_recovery else "WaitForStart"
        lifecycle.start_backoff(info, settings, self.now)
        message = f"Exceeded the PodsReady timeout {info.key}"
        self._evict(info, EvictionReason.PODS_READY_TIMEOUT, message, cause=cause)
