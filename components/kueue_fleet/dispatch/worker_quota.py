"""What is free on one worker, with what is on its way there: the admission core on the worker's own objects.

A workload that was nominated for the worker and has no quota there yet holds the quota that it will get, so that two
nominations in flight never count the same GPUs. Holds are given in the order of the worker's queues; when quota becomes
free, workloads that wait get it before new ones. Only quota is looked at: where pods go in a topology is the worker's
decision. Nothing is kept between decisions: all follows from objects of the worker and nominations on the manager.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from kueue_admission.decide.flavors.assignment import Mode
from kueue_admission.decide.model import Admission, Objects, Workload, WorkloadStatus
from kueue_admission.decide.pods import PodSet
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import available
from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.decide.scheduler.cache import Cache, NoPlaces
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.scheduler.examination import examine
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.explain.answer import Explanation
from kueue_admission.explain.entry_text import explain_alone


class FitKind(StrEnum):
    """What a workload would find in its queue on a worker."""

    FREE = "Free"
    """Unused nominal quota."""
    BORROWING = "Borrowing"
    """Unused quota of others."""
    PREEMPTING = "Preempting"
    """Quota of others, who would be evicted."""
    WAITING = "Waiting"
    """Quota that is in use."""
    NEVER = "Never"
    """It can never be admitted there as things are configured."""
    INACTIVE = "Inactive"
    """Its queue does not admit anything now."""
    MISSING = "Missing"
    """There is no such queue."""
    UNKNOWN = "Unknown"
    """Nothing is known about the worker's quota."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What was found, with Kueue's reason and message. `devices` counts devices such as GPUs by flavor; None where no
    flavor was found for some of them."""

    kind: FitKind
    reason: str = ""
    message: str = ""
    flavors: tuple[str, ...] = ()
    devices: tuple[tuple[str, int], ...] | None = ()


UNKNOWN = Fit(FitKind.UNKNOWN)
"""What is found where nothing is known of the quota."""

_MOST_FITS = 10000
_NEVER = frozenset((QuotaReservedReason.NO_MATCHING_FLAVOR, QuotaReservedReason.EXCEEDS_MAX_QUOTA))


class WorkerQuota:
    """The quota of one worker.

    `put` and `drop` follow the worker's Workloads, `expect` and `forget` the nominations for it.
    """

    def __init__(self, objects: Objects) -> None:
        self._known: dict[str, Workload] = {}
        self._expected: dict[str, Workload] = {}
        self.load(objects)

    def load(self, objects: Objects) -> None:
        """Take over the configuration of the worker, and do all sums again."""
        self._cache = Cache(_without_topology(objects), NoPlaces())
        self._local_queues = {queue.key: queue for queue in objects.local_queues}
        self._counted: dict[str, WorkloadInfo] = {}
        self._held: dict[str, WorkloadInfo] = {}
        self._waiting: dict[str, WorkloadInfo] = {}
        self._fresh: set[str] = set()
        self._hopeless: set[tuple[str, str, int]] = set()
        self._fits: dict[tuple[object, ...], tuple[tuple[PodSet, ...], Fit]] = {}
        self._freed = True
        for key in sorted(self._known.keys() | self._expected.keys()):
            self._place(key)

    @property
    def held(self) -> frozenset[str]:
        """Workloads for which quota is kept."""
        self._settle()
        return frozenset(self._held)

    def has(self, key: str) -> bool:
        """Whether the worker has a Workload of that name."""
        return key in self._known

    def put(self, workload: Workload) -> None:
        """The worker has this Workload, in this state."""
        plain = _plain(workload)
        if self._known.get(workload.key) != plain:
            self._known[workload.key] = plain
            self._place(workload.key)

    def drop(self, key: str) -> None:
        """The worker has no such Workload any more."""
        if self._known.pop(key, None) is not None:
            self._place(key)

    def expect(self, workload: Workload) -> None:
        """The workload was nominated for this worker."""
        fresh = _without_status(workload)
        if self._expected.get(workload.key) != fresh:
            self._expected[workload.key] = fresh
            self._place(workload.key)

    def forget(self, key: str) -> None:
        """The workload is not nominated for this worker any more."""
        if self._expected.pop(key, None) is not None:
            self._place(key)

    def examine(self, workload: Workload, now: float) -> Fit:
        """What the workload would find in its queue now, if it were the first there. Nothing changes."""
        node = self._queue(workload)
        if isinstance(node, Fit):
            return node
        self._settle()
        own = self._held.get(workload.key) or self._counted.get(workload.key)
        if own is None:
            return self._known_fit(workload, node, now)
        self._cache.remove(own)
        try:
            return self._look(workload, node.name, now)
        finally:
            self._cache.add(own)

    def _queue(self, workload: Workload) -> QueueNode | Fit:
        """The ClusterQueue that it waits in, or why it waits in none."""
        local = self._local_queues.get(workload.local_queue)
        if local is None:
            return Fit(FitKind.MISSING, "Misconfigured", f"there is no LocalQueue {workload.queue} in its namespace")
        node = self._cache.queues.get(local.cluster_queue)
        if node is None:
            return Fit(FitKind.MISSING, "Misconfigured", f"ClusterQueue {local.cluster_queue} doesn't exist")
        if local.stop_policy != "None":
            return Fit(FitKind.INACTIVE, "Suspended", f"LocalQueue {workload.queue} is stopped")
        if not node.active:
            why = ", ".join(text for _, text in node.inactive)
            return Fit(FitKind.INACTIVE, "Suspended", f"ClusterQueue {node.name} is inactive: {why}")
        return node

    def explain(self, workload: Workload, now: float) -> Explanation | Fit:
        """Why a workload without quota would wait here even if it were alone, or that no queue here can admit it."""
        node = self._queue(workload)
        return node if isinstance(node, Fit) else explain_alone(self._cache, self._entry(workload, node.name, now))

    def room(self, workload: Workload, resource: str) -> tuple[str, int, int] | None:
        """The flavor of its queue with most of the resource free, how much that is, and how much the queue can ever
        have of it, as if the workload had none; None where there is none."""
        node = self._queue(workload)
        if isinstance(node, Fit):
            return None
        self._settle()
        own = self._held.get(workload.key) or self._counted.get(workload.key)
        if own is not None:
            self._cache.remove(own)
        ids = self._cache.ids
        flavors = [flavor for group in node.groups if resource in group.covered for flavor in group.flavors]
        rooms = ((name, ids.id(name, resource)) for name in flavors)
        flavor_rooms = [(name, available(node, fr), node.potential.get(fr, 0)) for name, fr in rooms]
        if own is not None:
            self._cache.add(own)
        return max(flavor_rooms, key=lambda each: each[1:], default=None)

    def place(self, workload: Workload) -> tuple[str, tuple[int, float, str]]:
        """The ClusterQueue of a workload, empty if it has none, and what sorts it there."""
        local = self._local_queues.get(workload.local_queue)
        return (local.cluster_queue if local is not None else "", self._cache.info(_plain(workload)).order)

    def _known_fit(self, workload: Workload, node: QueueNode, now: float) -> Fit:
        """What was found for a workload that is the same to the queue, as long as nothing changed.

        Callers that keep equal pod sets as one object find them by it.
        """
        newer = node.spec.preemption.within_cluster_queue == "LowerOrNewerEqualPriority"
        kind = (
            id(workload.pod_sets),
            node.name,
            workload.namespace,
            workload.priority,
            workload.priority_boost,
            workload.active,
            workload.reclaimable,
            workload.gated_by,
            workload.preemption_gates,
            workload.problem,
            workload.created if newer else None,
        )
        known_fit = self._fits.get(kind)
        if known_fit is not None:
            return known_fit[1]
        fit = self._look(workload, node.name, now)
        if len(self._fits) >= _MOST_FITS:
            # A worker whose state never changes would remember every workload that it was not given.
            self._fits.clear()
        # With the pod sets in it, no other object can get their id.
        self._fits[kind] = (workload.pod_sets, fit)
        return fit

    def _look(self, workload: Workload, cluster_queue: str, now: float) -> Fit:
        return _fit(self._entry(workload, cluster_queue, now))

    def _entry(self, workload: Workload, cluster_queue: str, now: float) -> Entry:
        info = self._cache.info(_without_status(workload))
        info.cluster_queue = cluster_queue
        return examine(self._cache, info, now=now)

    def _place(self, key: str) -> None:
        """Put the workload where it belongs by what is known of it: counted, waiting or held, or nowhere."""
        workload = self._known.get(key)
        before = self._counted.pop(key, None)
        if before is not None:
            self._cache.remove(before)
            self._fits.clear()
        if workload is not None and workload.status.admission is not None and not workload.status.finished:
            before = before or self._unhold(key)
            self._waiting.pop(key, None)
            info = self._cache.info(workload)
            if self._cache.add(info):
                self._counted[key] = info
                self._fits.clear()
            if before is None:
                self._hold_anew()
            self._freed |= before is None or before.usage != info.usage
            return
        self._freed |= before is not None
        waiting = self._waiting_info(workload or self._expected.get(key))
        held = self._held.get(key)
        if held is not None and (waiting is None or held.workload.pod_sets != waiting.workload.pod_sets):
            self._freed |= self._unhold(key) is not None
        if waiting is None:
            self._waiting.pop(key, None)
        elif key not in self._held:
            self._waiting[key] = waiting
            self._fresh.add(key)

    def _hold_anew(self) -> None:
        """A workload got quota that was kept for others: who holds any is decided again."""
        for key in list(self._held):
            info = self._unhold(key)
            info = self._waiting_info(info.workload) if info is not None else None
            if info is not None:
                self._waiting[key] = info

    def _unhold(self, key: str) -> WorkloadInfo | None:
        info = self._held.pop(key, None)
        if info is not None:
            self._cache.remove(info)
            self._fits.clear()
        return info

    def _waiting_info(self, workload: Workload | None) -> WorkloadInfo | None:
        """Scratch for a workload that waits in a queue; None if it is in none."""
        if workload is None or not workload.active or workload.gated_by:
            return None
        if workload.status.finished or workload.status.requeued is False:
            return None
        local = self._local_queues.get(workload.local_queue)
        if local is None or local.cluster_queue not in self._cache.queues:
            return None
        info = self._cache.info(_without_status(workload))
        info.cluster_queue = local.cluster_queue
        return info

    def _settle(self) -> None:
        """Give quota that is free to those who wait, in the order of the queues."""
        if self._freed:
            self._hopeless.clear()
            candidates = list(self._waiting.values())
        else:
            candidates = [self._waiting[key] for key in self._fresh if key in self._waiting]
        self._fresh.clear()
        self._freed = False
        for info in sorted(candidates, key=lambda info: (info.order, info.key)):
            shape = (info.cluster_queue, info.workload.namespace, info.shape)
            if shape in self._hopeless:
                continue
            entry = examine(self._cache, info, now=info.workload.created)
            if entry.outcome is not Outcome.ADMITTED:
                if info.shape != -1:
                    self._hopeless.add(shape)
                continue
            assignments = tuple(result.as_assignment() for result in entry.assignment.pod_sets)
            info.admission = Admission(info.cluster_queue, assignments)
            info.reserved_at = info.workload.created
            self._cache.refresh(info)
            self._cache.add(info)
            self._fits.clear()
            self._held[info.key] = info
            del self._waiting[info.key]


_CREATED = WorkloadStatus()


def _plain(workload: Workload) -> Workload:
    if all(pod_set.topology is None for pod_set in workload.pod_sets):
        return workload
    return replace(workload, pod_sets=tuple(replace(ps, topology=None) for ps in workload.pod_sets))


def _without_status(workload: Workload) -> Workload:
    """The workload as its copy begins on a worker."""
    plain = _plain(workload)
    return plain if plain.status == _CREATED else replace(plain, status=_CREATED)


def _without_topology(objects: Objects) -> Objects:
    flavors = tuple(replace(flavor, topology=None) for flavor in objects.flavors)
    return replace(objects, flavors=flavors, topologies=(), nodes=())


def _fit(entry: Entry) -> Fit:
    devices: dict[str, int] = {}
    flavors: dict[str, None] = {}
    for result in entry.assignment.pod_sets:
        amounts = dict(result.requests)
        for resource, choice in sorted(result.flavors.items()):
            flavors[choice.flavor] = None
            if "/" in resource and amounts.get(resource):
                devices[choice.flavor] = devices.get(choice.flavor, 0) + amounts[resource]
    reason = entry.why.value if entry.why else ""
    kind, message = FitKind.WAITING, entry.message()
    if entry.outcome is Outcome.ADMITTED:
        kind = FitKind.BORROWING if entry.assignment.borrowing else FitKind.FREE
    elif entry.outcome is Outcome.PREEMPTING:
        kind = FitKind.PREEMPTING
    elif entry.outcome is Outcome.NO_FIT and entry.why in _NEVER:
        kind = FitKind.NEVER
    elif entry.outcome is Outcome.INADMISSIBLE:
        kind = FitKind.NEVER if entry.why is QuotaReservedReason.MISCONFIGURED else FitKind.INACTIVE
    pod_sets = entry.assignment.pod_sets
    is_known = len(pod_sets) == len(entry.info.workload.pod_sets) and all(
        one.mode is not Mode.NO_FIT for one in pod_sets
    )
    return Fit(kind, reason, message, tuple(flavors), tuple(sorted(devices.items())) if is_known else None)
