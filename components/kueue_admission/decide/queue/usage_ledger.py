"""What each LocalQueue has used, which counts half after each half-life: their order under admission fair sharing.

A reservation costs its LocalQueue a penalty at once, in advance of what will be sampled; when the workload is admitted,
the penalty becomes part of the usage. Usage is sampled every `sampling_interval`, which is caught up here when the
usage is asked for or what is admitted changes; while a penalty is pending, Kueue samples all the time.
Amounts are in billionths of a core, byte or device: Kueue rounds down to nine decimals, before 0.19.1 to three.
Source: kueue@v0.19.2 pkg/util/admissionfairsharing, pkg/cache/queue/afs, pkg/controller/core/localqueue_controller.go,
pkg/controller/core/workload_controller.go (updateAfsConsumedUsage), pkg/scheduler/scheduler.go (updateEntryPenalty).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from math import inf
from typing import Final

from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.model import AdmissionFairSharing, LocalQueue
from kueue_admission.decide.workload.state import WorkloadInfo

Amounts = dict[str, int]
"""By resource, in billionths."""
NANO: Final = 10**9
"""So many are one byte or device."""
_NANO_OF_CPU: Final = 10**6
_MILLI: Final = 10**6


class Used:
    """What a LocalQueue has used. `penalties` are pending, by workload; `admitted` is what it uses now."""

    __slots__ = ("admitted", "consumed", "penalties", "updated")

    def __init__(self, amounts: Amounts, update_time: float) -> None:
        self.consumed = amounts
        self.updated = update_time
        self.penalties: dict[str, Amounts] = {}
        self.admitted: Amounts = {}


class UsageLedger:
    """The usage of every LocalQueue; `now` is the time up to which usage is caught up when it is asked for."""

    def __init__(self, settings: AdmissionFairSharing, behaviours: Behaviours) -> None:
        self.settings = settings
        self.behaviours = behaviours
        self.now = 0.0
        self.used: dict[str, Used] = {}
        self._weights: dict[str, float] = {}
        self._counted: dict[str, tuple[str, Amounts]] = {}

    def configure(self, settings: AdmissionFairSharing, local_queues: Iterable[LocalQueue]) -> None:
        """Take over settings and LocalQueues; a new one begins with the usage in its status."""
        self.settings = settings
        queues = {queue.key: queue for queue in local_queues}
        self._weights = {key: queue.fair_weight for key, queue in queues.items()}
        self.used = {
            key: self.used.get(key) or Used(dict(queue.consumed), self.now if queue.sampled is None else queue.sampled)
            for key, queue in queues.items()
        }

    def usage(self, local_queue: str) -> float:
        """What orders the LocalQueues: weighted usage and penalties, by the weight of the LocalQueue."""
        queue_usage = self.used.get(local_queue)
        if queue_usage is None:
            return 0.0
        self.catch_up(queue_usage)
        total = dict(queue_usage.consumed)
        for penalty in queue_usage.penalties.values():
            _add(total, penalty)
        weight = self._weights[local_queue]
        weights = self.settings.resource_weights
        usage = sum(weights.get(name, 1.0) * (total[name] / NANO) for name in sorted(total))
        if weight > 0:
            return usage / weight
        return inf if usage or self.behaviours.queues_of_weight_zero_come_last else -inf

    def charge(self, info: WorkloadInfo, resources: Iterable[str] | None = None) -> None:
        """A workload got its reservation: the penalty for its requests, only of `resources` where they are given."""
        queue_usage = self.used.get(info.workload.local_queue)
        if queue_usage is None:
            return
        self.catch_up(queue_usage)
        alpha = self._alpha(self.settings.sampling_interval)
        queue_usage.penalties[info.key] = self._scaled(amounts_of(info, resources), alpha)

    def drop_penalty(self, info: WorkloadInfo) -> None:
        """A workload will not be admitted with the reservation that was charged."""
        queue_usage = self.used.get(info.workload.local_queue)
        if queue_usage is not None and info.key in queue_usage.penalties:
            self.catch_up(queue_usage)
            del queue_usage.penalties[info.key]

    def settle(self, info: WorkloadInfo) -> None:
        """A workload was admitted, and counts already: its penalty is part of the usage from now on."""
        queue_usage = self.used.get(info.workload.local_queue)
        if queue_usage is not None:
            self.sample(queue_usage, self.now)
            _add(queue_usage.consumed, queue_usage.penalties.pop(info.key, {}))

    def count(self, info: WorkloadInfo) -> None:
        """What an admitted workload holds is used from now on."""
        key = info.workload.local_queue
        queue_usage = self.used.get(key)
        if queue_usage is not None and info.key not in self._counted:
            self.catch_up(queue_usage)
            self._counted[info.key] = key, amounts_of(info)
            _add(queue_usage.admitted, self._counted[info.key][1])

    def uncount(self, info: WorkloadInfo) -> None:
        """What a workload held is free."""
        key, amounts = self._counted.pop(info.key, ("", {}))
        queue_usage = self.used.get(key)
        if queue_usage is not None:
            self.catch_up(queue_usage)
            _add(queue_usage.admitted, {name: -amount for name, amount in amounts.items()})

    def catch_up(self, queue_usage: Used) -> None:
        """Sample whatever Kueue has sampled by now."""
        interval = self.settings.sampling_interval
        time_passed = self.now - queue_usage.updated
        if queue_usage.penalties or interval <= 0:
            self.sample(queue_usage, self.now)
        elif time_passed >= interval:
            self.sample(queue_usage, queue_usage.updated + time_passed // interval * interval)

    def sample(self, queue_usage: Used, now: float) -> None:
        """Usage is what it was, decayed until `now`, and what is admitted, for as much as that takes away.

        Several samples with the same admitted workloads are one for the whole time.
        """
        if now < queue_usage.updated:
            return
        if self.settings.half_life == 0:
            queue_usage.consumed = {}
        else:
            alpha = self._alpha(now - queue_usage.updated)
            consumption = self._scaled(queue_usage.consumed, 1.0 - alpha)
            _add(consumption, self._scaled(queue_usage.admitted, alpha))
            queue_usage.consumed = consumption
        queue_usage.updated = now

    def as_local_queues(self, local_queues: Iterable[LocalQueue]) -> tuple[LocalQueue, ...]:
        """The LocalQueues with the usage that they have now."""
        queues = []
        for queue in local_queues:
            queue_usage = self.used[queue.key]
            self.catch_up(queue_usage)
            queues.append(
                replace(queue, consumed=tuple(sorted(queue_usage.consumed.items())), sampled=queue_usage.updated)
            )
        return tuple(queues)

    def _alpha(self, seconds: float) -> float:
        """How much of the usage of so many seconds ago does not count any more."""
        half_life = self.settings.half_life
        return 1.0 - 0.5 ** (seconds / half_life) if half_life else 0.0

    def _scaled(self, amounts: Mapping[str, int], factor: float) -> Amounts:
        if not self.behaviours.counts_usage_in_billionths:
            return {name: int(amount / _MILLI * factor) * _MILLI for name, amount in amounts.items()}
        numerator, denominator = Decimal(repr(factor)).as_integer_ratio()
        return {name: amount * numerator // denominator for name, amount in amounts.items()}


def amounts_of(info: WorkloadInfo, resources: Iterable[str] | None = None) -> Amounts:
    """What a workload asks for or holds in total."""
    names = None if resources is None else frozenset(resources)
    amounts: Amounts = {}
    for requests in info.pod_sets:
        for name, amount in requests.requests:
            if names is None or name in names:
                amounts[name] = amounts.get(name, 0) + amount * (_NANO_OF_CPU if name == "cpu" else NANO)
    return amounts


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
