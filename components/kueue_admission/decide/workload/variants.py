"""Concurrent admission: a job waits for all flavors of its queue at once, with one Workload for each, a variant.

The job's own Workload, the parent, is in no queue and holds no quota. Its variants wait and get quota as any Workload
does, each allowed one flavor. As soon as one is admitted, the parent is, with the same admission; variants on less
preferred flavors are deactivated. Those on more preferred ones go on trying, where the policy says so: when one fits,
the admitted one is evicted (migration), the parent with it, and quota passes on when the job's pods are gone. A variant
preempts only once its gate is open: the most preferred one that needs it first, the next after five minutes.

Kueue does each step by a write that it sees a moment later; here the family of a workload is settled after every
event, by the same steps in the same order. Source: kueue@v0.19.2 pkg/controller/concurrentadmission/controller.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from kueue_admission.decide.decisions import Admitted, QuotaReserved
from kueue_admission.decide.model import Snapshot, Workload, WorkloadStatus
from kueue_admission.decide.queue.queues import Queues
from kueue_admission.decide.reasons import EvictionReason
from kueue_admission.decide.timers import Timer
from kueue_admission.decide.workload import lifecycle
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.decide.workload.transitions import Step
from kueue_admission.decide.workload.workload_controller import WorkloadController

GATE: Final = "kueue.x-k8s.io/concurrent-admission"
"""Preemption gate of every variant."""
GATE_SECONDS: Final = 300.0
"""From the opening of one variant's gate to that of the next (preemptionTimeout)."""
MOMENT: Final = 0.05
"""Seconds until a gate is open: its write takes longer than the cycles that look at the other variants meanwhile."""


class Variants:
    """What Kueue's variant controller does. `add` and `forget` are the engine's, for Workloads that come and go."""

    def __init__(
        self,
        queues: Queues,
        controller: WorkloadController,
        add: Callable[[Workload], None],
        forget: Callable[[WorkloadInfo], None],
    ) -> None:
        self._queues = queues
        self._controller = controller
        self._add = add
        self._forget = forget
        self._families = queues.cache.families
        self._opens_at: dict[str, float] = {}

    def see(self, info: WorkloadInfo) -> None:
        """A Workload is there: a variant joins its family, a parent has one from now on."""
        flavors = info.workload.allowed_flavors
        if info.workload.parent and flavors:
            self._families.setdefault(info.workload.parent, {})[flavors[0]] = info
        elif self._queues.cache.is_parent(info):
            self._families.setdefault(info.key, {})

    def forget(self, info: WorkloadInfo) -> None:
        """A Workload is gone: with a parent go its variants, whose owner it is."""
        for variant in self._families.pop(info.key, {}).values():
            self._forget(variant)
        self._opens_at.pop(info.key, None)
        family = self._families.get(info.workload.parent)
        if family is not None:
            for flavor in [flavor for flavor, value in family.items() if value is info]:
                del family[flavor]

    def settle(self, *keys: str) -> None:
        """Let the families of the workloads of these names, and of those about which was decided, take their steps."""
        if not self._families:
            return
        touched_families = {
            self._family_of(key) for key in (*keys, *(decision.key for decision in self._queues.decisions))
        }
        for key in sorted(touched_families & self._families.keys()):
            while self._reconcile(key):
                pass

    def settle_all(self) -> None:
        """The same for every family."""
        self.settle(*self._families)

    def _family_of(self, key: str) -> str:
        info = self._queues.workloads.get(key)
        return key if info is None else info.workload.parent or key

    def migrate(self, variant: WorkloadInfo, target: WorkloadInfo) -> None:
        """A variant on a more preferred flavor fits: this one makes way."""
        message = (
            f"Evicted to accommodate a workload (UID: {target.uid}) due to migration to more favorable resource flavor"
        )
        if not variant.is_evicted:
            self._controller.evict(variant, EvictionReason.FLAVOR_MIGRATION, message, preemptor=target.key)

    def _reconcile(self, key: str) -> bool:
        """One look at a family; whether it changed anything."""
        parent = self._queues.workloads.get(key)
        queue = self._queues.cache.queues.get(self._queues.queue_for(parent)) if parent else None
        if parent is None or queue is None or queue.spec.migration is None:
            return False
        flavors, family = queue.groups[0].flavors, self._families[key]
        missing_indexes = [index for index, flavor in enumerate(flavors) if flavor not in family]
        stale = [variant for flavor, variant in family.items() if flavor not in flavors]
        for index in missing_indexes:
            self._create(parent, flavors[index], index)
        for variant in stale:
            self._forget(variant)
        variants = [family[flavor] for flavor in flavors]
        has_changed = bool(missing_indexes or stale)
        evicted_variant = next((variant for variant in variants if variant.is_evicted and variant.is_reserved), None)
        if evicted_variant is not None and parent.is_reserved:
            # The quota of the variant is the parent's: the job's pods stop first.
            return self._evict(parent, EvictionReason.VARIANT_EVICTED, "Admitted variant was evicted") or has_changed
        if evicted_variant is not None:
            self._controller.release(evicted_variant, Step.STOP)
            has_changed = True
        admitted_variant = next((variant for variant in variants if variant.is_admitted), None)
        active = _active(parent, variants, admitted_variant, queue.spec.migration.mode, queue.last_acceptable)
        has_changed = self._share_admission(parent, admitted_variant) or has_changed
        for variant in variants:
            if variant.workload.active != active.get(variant.key, variant.workload.active):
                variant.workload = replace(variant.workload, active=not variant.workload.active)
                self._controller.change_active(variant)
                has_changed = True
        return self._open_gate(parent, variants) or has_changed

    def _create(self, parent: WorkloadInfo, flavor: str, index: int) -> None:
        workload = parent.workload
        name = f"{workload.name}-variant-{flavor}"
        while f"{workload.namespace}/{name}" in self._queues.workloads:
            name += "-2"  # Kueue's names end with a hash.
        self._add(
            replace(
                workload,
                name=name,
                uid=f"{workload.uid}-{index:02}",
                parent=parent.key,
                allowed_flavors=(flavor,),
                preemption_gates=(*workload.preemption_gates, GATE),
                status=WorkloadStatus(),
            )
        )

    def _share_admission(self, parent: WorkloadInfo, workload_info: WorkloadInfo | None) -> bool:
        """The parent is admitted as long as a variant is; the variant's pods are the parent's."""
        if workload_info is None or workload_info.admission is None:
            return parent.is_admitted and self._evict(parent, EvictionReason.NO_VARIANT, "No variant is running")
        has_changed = parent.pods_ready != workload_info.pods_ready and (parent.is_admitted or parent.pods_ready)
        if has_changed:
            self._controller.set_pods_ready(workload_info, ready=parent.pods_ready)
        if parent.is_admitted:
            return has_changed
        now = self._queues.now
        lifecycle.reserve(parent, workload_info.admission, now)
        self._queues.decide(QuotaReserved(now, parent.key, workload_info.admission))
        lifecycle.admit(parent, now)
        self._queues.decide(Admitted(now, parent.key, workload_info.cluster_queue))
        self._controller.set_timers(parent)
        return True

    def _evict(self, parent: WorkloadInfo, reason: EvictionReason, message: str) -> bool:
        if parent.is_evicted:
            return False
        self._controller.evict(parent, reason, message)
        return True

    def _open_gate(self, parent: WorkloadInfo, variants: Sequence[WorkloadInfo]) -> bool:
        """Let the most preferred variant preempt that needs to, one each five minutes."""
        waiting = [variant for variant in variants if variant.is_admissible(self._queues.cache.gates)]
        for item in waiting:
            if GATE not in item.open_gates and not item.considered:
                return False
            if GATE not in item.open_gates and item.gated:
                break
        else:
            return False
        open_time = max((other.open_gates[GATE] for other in waiting if GATE in other.open_gates), default=None)
        now = self._queues.now
        if open_time is not None and open_time + GATE_SECONDS > now:
            self._queues.timers.reset(Timer.PREEMPTION_GATE, parent.key, open_time + GATE_SECONDS)
            return False
        opens_at = self._opens_at.setdefault(item.key, now + MOMENT)
        if now < opens_at:
            self._queues.timers.reset(Timer.PREEMPTION_GATE, parent.key, opens_at)
            return False
        del self._opens_at[item.key]
        self._controller.open_gate(item, GATE)
        self._queues.timers.reset(Timer.PREEMPTION_GATE, parent.key, now + GATE_SECONDS)
        return True


def as_one(snapshot: Snapshot, key: str) -> Snapshot:
    """The snapshot in which the workload `key` waits for its flavors by itself, as it would without its variants."""
    if not any(workload.parent == key for workload in snapshot.workloads):
        return snapshot
    others = (workload for workload in snapshot.workloads if workload.parent != key)
    # As a variant of itself it is queued and counted.
    return replace(
        snapshot,
        workloads=tuple(replace(workload, parent=key) if workload.key == key else workload for workload in others),
    )


def _active(
    parent: WorkloadInfo,
    variants: Sequence[WorkloadInfo],
    workload_info: WorkloadInfo | None,
    mode: str,
    last_acceptable: int | None,
) -> dict[str, bool]:
    """By key the variants that are to be active, or not; the others stay as they are."""
    if not parent.workload.active or workload_info is None:
        return {variant.key: parent.workload.active for variant in variants}
    if mode == "RetainFirstAdmission":
        return {variant.key: False for variant in variants if variant is not workload_info}
    best = variants.index(workload_info)
    last = best if last_acceptable is None else last_acceptable
    return {variant.key: index <= last and index < best for index, variant in enumerate(variants) if index != best}
