"""A scenario on the admission core, at the moments at which Kueue did something.

The moments are Kueue's: when a cycle ran, when parked workloads were looked at again, when it saw what the script did.
What was decided at each of them is the core's, and is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

from tests.decide import expand
from tests.differential import states
from tests.differential.settings import LATEST, deciding
from tests.differential.steps import reclaimed
from tests.differential.topologies import BROKEN

from kueue_admission.decide.decisions import Decision, Evicted, Parked, QuotaReserved, Released, Requeued
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import (
    CheckStateChanged,
    CountsChanged,
    CycleStarted,
    Deleted,
    Event,
    Finished,
    ObjectsChanged,
    PodsReadyChanged,
    PodsStopped,
    PriorityChanged,
    ReclaimableChanged,
    Submitted,
    TimePassed,
)
from kueue_admission.decide.model import CheckState, Configuration, Objects
from kueue_admission.decide.queue.pending import Place
from kueue_admission.decide.queue.queues import Queues
from kueue_admission.decide.queue.usage_ledger import NANO
from kueue_admission.decide.reasons import EvictionReason, QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Outcome
from kueue_admission.decide.timers import Timer
from kueue_admission.decide.workload.state import WorkloadInfo, refresh_order
from kueue_admission.decide.workload.workload_controller import WorkloadController
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.kueue_objects import Parsed, parse_objects
from kueue_admission.releases import release

Json = dict[str, Any]

NAMESPACE = "default"


@dataclass(frozen=True)
class Chance:
    """What Kueue leaves to the speed of its API server; each way of it is one that Kueue may go."""

    whole_seconds: bool = False
    """Whether reservations of this round are known by the second only, and equal ones compare by uid."""
    echoes: bool = True
    """Whether Kueue's own writes, when they come back, void the progress of flavor searches."""

    writes: int = 2
    """How many of its own writes Kueue needs to let a workload queue again whose check asked for a little delay."""
    late_alone: bool = False
    """Whether queues without a cohort, too, are looked at again only when Kueue logs it, which it does not always."""
    late_order: bool = False
    """Whether penalties that are settled before the next cycle change the order of LocalQueues later only."""


CHANCES = tuple(Chance(*one) for one in product((False, True), (True, False), (2, 1), (False, True)))
"""The most likely one first."""


def chances_for(case: Json) -> tuple[Chance, ...]:
    """The ways that Kueue may go in a scenario."""
    late = tuple(replace(one, late_order=True) for one in CHANCES) if case["setting"] == "usage" else ()
    return (*CHANCES, *late)


TOLERANCE = 0.03
"""How much a sample of usage may differ: Kueue logs it after it has written it, which takes part of a half-life."""
JUST_BEFORE_MS = 40
"""Kueue logs what it sees before it takes it to heart; a cycle that starts so soon after it may not know of it."""


def just_before(trace: list[list[Any]], number: int) -> int:
    """How many items come just before the cycle of this number."""
    place = next(index for index, item in enumerate(trace) if item[0] == "c" and item[2] == number)
    count = 0
    for item in reversed(trace[:place]):
        if item[0] == "c" or trace[place][1] - item[1] > JUST_BEFORE_MS:
            break
        count += 1
    return count


def with_late(trace: list[list[Any]], numbers: set[int]) -> list[list[Any]]:
    """The trace in which what came just before the cycles of these numbers comes after them."""
    result = list(trace)
    for number in sorted(numbers & {item[2] for item in trace if item[0] == "c"}):
        count = just_before(result, number)
        place = next(index for index, item in enumerate(result) if item[0] == "c" and item[2] == number)
        result.insert(place - count, result.pop(place))
    return result


def parse(case: Json, workloads: Json) -> Parsed:
    """The scenario's objects with these workloads."""
    given = {
        **case,
        "localQueues": {f"{NAMESPACE}/{name}": queue for name, queue in case["localQueues"].items()},
        "checks": dict.fromkeys(case.get("checks", ()), "example.com/external"),
        "workloads": {f"{NAMESPACE}/{name}": short for name, short in workloads.items()},
        "namespaces": {NAMESPACE: {}},
    }
    manifests = expand.manifests(given)
    for item in manifests:
        name = item["metadata"]["name"]
        if item["kind"] == "LocalQueue" and name in case.get("stopped", {}):
            item["spec"]["stopPolicy"] = case["stopped"][name]
        if item["kind"] == "LocalQueue" and name in case.get("weights", {}):
            item["spec"]["fairSharing"] = {"weight": case["weights"][name]}
    return parse_objects(manifests, _configuration(case["setting"], case.get("release", LATEST)))


@cache
def _configuration(setting: str, version: str) -> Configuration:
    return parse_configuration(deciding(setting, version), release(version))


class _Controller(WorkloadController):
    """Acts when Kueue does, as its log says."""

    def __init__(self, queues: Queues, chance: Chance) -> None:
        super().__init__(queues)
        self.chance = chance
        self.owed: set[str] = set()
        self.done: set[str] = set()
        """Queues without a cohort that the core looked at again before Kueue logged it."""
        self.written: dict[str, int] = {}
        """How often the core wrote another status than before of ClusterQueues below each root, which wakes others."""
        self.deferred: dict[str, int] = {}
        self.timeouts: set[str] = set()
        self.judged: dict[str, list[tuple[str, bool]]] = {}
        """By workload: nodes that Kueue has judged, of which it has yet to see its write."""

    def on_timer(self, kind: Timer, name: str) -> None:
        if kind is Timer.REACTIVATE and (name.startswith("cohort ") or (self.chance.late_alone and self._parks(name))):
            self.owed.add(name)
        elif kind is Timer.STATUS:
            # Kueue's writes take their time, and may even come in a later round.
            if self.queues.status.write(name):
                self.will_wake(name)
        elif kind is Timer.PODS_READY:
            self.timeouts.add(name)
        else:
            if kind is Timer.REACTIVATE:
                self.done.add(name)
            super().on_timer(kind, name)

    def _parks(self, name: str) -> bool:
        """Whether a workload is parked in `queue NAME`; where none is, Kueue logs no look."""
        pending = self.queues.pending.get(name.partition(" ")[2])
        return pending is not None and bool(pending.keys(Place.PARKED))

    def will_wake(self, cluster_queue: str, times: int = 1) -> None:
        """Kueue writes the status of a ClusterQueue some time, and looks at its tree again then."""
        queue = self.queues.cache.queues[cluster_queue]
        if queue.parent is not None and queue.parent.parent is not None:
            root = queue.root().name
            self.written[root] = self.written.get(root, 0) + times

    def has_reason(self, tree: str) -> bool:
        """Whether the core knows why Kueue looks at a tree, `cohort ROOT` or `queue NAME`, again; once for each reason.

        A reason that is due a moment later by the core's clock counts too.
        """
        root = tree.partition(" ")[2]
        if tree in self.owed or tree in self.done or self.queues.timers.is_set(Timer.REACTIVATE, tree):
            return True
        self.written[root] = self.written.get(root, 0) - 1
        return self.written[root] >= 0

    def mark_node(self, info: WorkloadInfo, node: str, *, failed: bool) -> None:
        """What Kueue judges is written first."""
        if failed or node in info.unhealthy_nodes:
            self.judged.setdefault(info.key, []).append((node, failed))

    def saw_nodes(self, key: str) -> list[Decision]:
        """Kueue saw what it wrote about the nodes of a workload."""
        self.queues.decisions = []
        for node, failed in self.judged.pop(key, ()):
            super().mark_node(self.queues.workloads[key], node, failed=failed)
        return self.queues.decisions

    def set_timers(self, info: WorkloadInfo) -> None:
        """Kueue counts from the times in the object, which have whole seconds."""
        for name in ("admitted_at", "pods_ready_since"):
            at = getattr(info, name)
            setattr(info, name, at if at is None else float(int(at)))
        super().set_timers(info)

    def time_out(self, info: WorkloadInfo) -> None:
        super().time_out(info)
        if info.requeue_at is not None:
            info.requeue_at = float(int(info.requeue_at))

    def settle_usage(self, info: WorkloadInfo) -> None:
        """The workload counts at once; its penalty is settled when Kueue logs it."""
        if self.queues.cache.ledger is not None:
            self.queues.cache.ledger.count(info)

    def finish_backoff(self, info: WorkloadInfo) -> None:
        """Kueue needs a write of its own for that, and one more before it to forget how long the workload waits."""
        self.deferred[info.key] = 1 if info.requeue_at is None else self.chance.writes

    def requeue(self, key: str, writes: int = 1) -> bool:
        """Kueue saw writes of a workload without quota; whether it is queued again for that."""
        if key not in self.deferred:
            return False
        self.deferred[key] -= writes
        if self.deferred[key] > 0:
            return False
        del self.deferred[key]
        info = self.queues.workloads.get(key)
        if info is None or info.is_reserved:
            return False
        super().finish_backoff(info)
        return True

    def pods_not_ready(self, key: str) -> list[Decision]:
        """A timeout that is due is dealt with."""
        self.queues.decisions = []
        if key in self.timeouts:
            self.timeouts.discard(key)
            super().on_timer(Timer.PODS_READY, key)
        return self.queues.decisions


class _Engine(Engine):
    """An engine that looks at parked workloads again when Kueue does."""

    controller: _Controller

    def __init__(self, objects: Objects, chance: Chance) -> None:
        super().__init__(objects, partial(_Controller, chance=chance))
        if self.cache.ledger is not None:
            vars(self.cache.ledger)["catch_up"] = lambda used: None
            if chance.late_order:
                self.queues.usage_of = lambda local_queue: self._ranks.get(local_queue, 0.0)
        self.withdrawn: set[str] = set()
        """Workloads that gave their quota back because a queue was stopped, of which Kueue has yet to see its write."""
        self._replaced: dict[str, tuple[WorkloadInfo, WorkloadInfo]] = {}
        """Slices that Kueue has yet to see finished, and those that take their place."""
        self._sampled: set[str] = set()
        self._ranks: dict[str, float] = {}

    def retry_at(self, node: str) -> bool:
        """Kueue looks at the parked workloads of this cohort or queue now; whether the core knows why."""
        name = f"queue {node}" if self._is_alone(node) else f"cohort {node}"
        known = self.controller.has_reason(name)
        self.controller.owed.discard(name)
        self.controller.done.discard(name)
        self.queues.timers.cancel(Timer.REACTIVATE, name)
        self.queues.reactivate(name)
        return known

    def sample(self, local_queue: str, consumed: Json, workload: str | None) -> bool:
        """Kueue sampled the usage of a LocalQueue; whether the core's is the same, but for the time that its log took.

        From here on it is Kueue's, since milliseconds decide which of two equal LocalQueues has used more.
        """
        ledger = self.cache.ledger
        assert ledger is not None
        used = ledger.used[local_queue]
        first = local_queue not in self._sampled
        self._sampled.add(local_queue)
        info = self.workloads.get(workload) if workload is not None else None
        ledger.sample(used, self.now)
        if info is not None:
            ledger.settle(info)
        kueues = {name: round(Quantity(text).decimal * NANO) for name, text in consumed.items()}
        most = {name: max(used.admitted.get(name, 0), kueues.get(name, 0)) for name in {*used.consumed, *kueues}}
        same = all(
            abs(used.consumed.get(name, 0) - kueues.get(name, 0)) <= TOLERANCE * amount for name, amount in most.items()
        )
        used.consumed = kueues
        if workload is None:
            self._ranks[local_queue] = ledger.usage(local_queue)
        return same or first

    def rank_local_queues(self) -> None:
        """Kueue orders the LocalQueues of a queue again when it takes the head, if penalties are pending.

        But for that it does so when it samples one of them: a penalty that is settled before the next cycle comes late.
        """
        ledger = self.cache.ledger
        if ledger is None:
            return
        targets = {queue.key: queue.cluster_queue for queue in self.objects.local_queues}
        pending = {targets[key] for key, used in ledger.used.items() if used.penalties}
        for key, queue in targets.items():
            if queue in pending or ledger.usage(key) == float("inf"):
                self._ranks[key] = ledger.usage(key)

    def open(self) -> None:
        """All queues open, and Kueue will look at them again; it logs that only where something is parked by then."""
        self.queues.status.take_over(self.cache.queues)
        for name in self.cache.queues:
            self.queues.reactivate_later(name)
            self.controller.will_wake(name, 3)  # That it is active, and what changed while that was written.
        self.controller.owed.clear()

    def parked_for(self, key: str) -> str | None:
        """Why an equal workload is parked; Kueue says so of one that comes back, without a look at it."""
        pending = self.queues.pending.get(self.workloads[key].cluster_queue)
        return None if pending is None else pending.parked_for(key)

    def wake_others(self, key: str) -> None:
        """Kueue saw its own write of a workload: of one that is deactivated, or gave its quota back, it looks again."""
        info = self.workloads.get(key)
        if info is not None and (not info.workload.active or key in self.withdrawn):
            self.withdrawn.discard(key)
            self.queues.wake_others(info)

    def saw_own_write(self, key: str) -> None:
        """Kueue saw its own write of a workload without quota."""
        self.wake_others(key)
        if key in self.workloads and not self.cache.gates.flavor_fungibility_preserve_scan_progress:
            self.workloads[key].last_progress = None

    def _finish_replaced(self, replaced: WorkloadInfo, successor: WorkloadInfo) -> None:
        """Its successor has quota, but both of them count until Kueue sees its own write of the one that is over."""
        self._replaced[replaced.key] = replaced, successor

    def saw_replaced(self, key: str) -> None:
        """Kueue saw that a slice is over."""
        if key in self._replaced:
            super()._finish_replaced(*self._replaced.pop(key))

    def settle(self) -> None:
        """What Kueue does not log: looking again where nothing is parked."""
        for key in sorted(self.controller.deferred):
            self.controller.requeue(key, 2)
        for name in sorted(self.controller.owed):
            self.queues.reactivate(name)
        self.controller.owed.clear()

    def _is_alone(self, node: str) -> bool:
        return node in self.cache.queues and self.cache.queues[node].parent is None

    def at_cycle(self, number: int) -> None:
        """The next cycle has this number; Kueue counts those without heads of this scenario too."""
        self.cycles = number - 1

    def echo(self, key: str, *, voids: bool) -> list[Decision]:
        """Kueue saw its own write of a workload with quota; the eviction, if its pods are not ready for too long."""
        info = self.workloads.get(key)
        if voids and info is not None and info.cluster_queue in self.cache.queues:
            self.cache.queues[info.cluster_queue].generation += 1
        self.wake_others(key)
        return [*self.controller.saw_nodes(key), *self.controller.pods_not_ready(key)]


class Replay:
    """The core in the place of Kueue. `made` says when each workload was created and how its uid compares."""

    def __init__(self, case: Json, made: dict[str, list[int]], chance: Chance) -> None:
        self.case = {**case, "queues": dict(case["queues"]), "stopped": {}}
        self.made = made
        self.chance = chance
        self.why: dict[str, str] = {}
        self.seen: dict[str, set[str]] = {}
        """Every state a workload was left in by a cycle since it began to wait."""
        self.unlike: list[list[Any]] = []
        """Samples of usage that differ."""
        self.unexplained: list[list[Any]] = []
        """Times at which Kueue looked at a tree again, and the core does not know why."""
        self.evaluated: set[str] = set()
        """Workloads that a cycle has left without quota since they were queued."""
        self._idle_cycles = 0
        self._is_free = True
        """Whether Kueue may look at trees again for no reason of the core's: in the first round, for what it learns of
        their objects one by one, and for nodes of other scenarios too, up to three times for each change."""
        self.evicted: dict[str, str] = {}
        beside: Json = {name: case.get(name, {}) for name in ("limitRanges", "runtimeClasses", "claimTemplates")}
        self._alone: Json = {
            **beside,
            "devices": case.get("devices", []),
            "setting": case["setting"],
            "release": case.get("release", LATEST),
            "localQueues": {},
        }
        """What a workload is read with; it refers to other objects by name only."""
        parsed = parse(self.case, self._dated(case["workloads"]))
        self.engine = _Engine(parsed.objects, chance)
        self._first = parsed.workloads

    def play(self, one: Json, late: set[int]) -> Iterator[tuple[list[Any], list[list[str]]]]:
        """One round: for every cycle of Kueue's the item of the trace, and the core's heads with their outcomes.

        `late` are the numbers of cycles that do not know yet of what came just before them.
        """
        event = one["event"]
        self._idle_cycles = 0
        self._is_free = event == ["start"] or self.case["setting"].startswith("nodes")
        if event == ["start"]:
            for workload in self._first:
                self._handle(Submitted(expand.ZERO, workload))
            event = None
            self.engine.open()
        for item in with_late(one["trace"], late):
            kind, now = item[0], max(expand.ZERO + item[1] / 1000, self.engine.now)
            if kind not in "cpt":
                self._idle_cycles = 0
            if kind == "c":
                yield item, self._cycles(now, item)
            else:
                self._take(now, item, event)
        self._handle(TimePassed(max(expand.ZERO + one["end"] / 1000, self.engine.now)))
        for key in sorted(self.engine.controller.timeouts):
            self._note(self.engine.controller.pods_not_ready(key))
        self.engine.settle()
        self._set_times(one["times"])

    def _take(self, now: float, item: list[Any], event: Any) -> None:
        """What Kueue saw or did beside its cycles."""
        match item[0]:
            case "e":
                self._do(now, event)
            case "m":
                self._handle(TimePassed(now))
                if not self.engine.retry_at(item[2]) and not self._is_free:
                    self.unexplained.append(item)
            case "r":
                self._handle(PodsReadyChanged(now, f"{NAMESPACE}/{item[2]}", True))
            case "p":
                self._handle(TimePassed(now))
                self.engine.saw_own_write(f"{NAMESPACE}/{item[2]}")
                if self.engine.controller.requeue(f"{NAMESPACE}/{item[2]}"):
                    self._come_back(item[2])
            case "f":
                self._handle(TimePassed(now))
                self.engine.saw_replaced(f"{NAMESPACE}/{item[2]}")
            case "u":
                self._handle(TimePassed(now))
                self._note(self.engine.echo(f"{NAMESPACE}/{item[2]}", voids=self.chance.echoes))
            case _:
                self._handle(TimePassed(now))
                self._sample(item)

    def _sample(self, item: list[Any]) -> None:
        workload = f"{NAMESPACE}/{item[4]}" if item[0] == "s" else None
        if not self.engine.sample(f"{NAMESPACE}/{item[2]}", item[3], workload):
            self.unlike.append(item)

    def _cycles(self, start: float, item: list[Any]) -> list[list[str]]:
        """The heads of several cycles that are all alike, or of the first that differs."""
        ms, number, times, last = item[1], item[2], item[4], item[5]
        heads: list[list[str]] = []
        for count in range(times):
            now = start + (last - ms) / 1000 * count / max(1, times - 1)
            self.engine.at_cycle(number + count)
            result = self._cycle(now)
            if count and result != heads:
                return result
            heads = result
            self._idle_cycles = 0 if any(outcome == "assumed" for _, outcome in heads) else self._idle_cycles + 1
            for name, _ in heads:
                if name in self.why:
                    self.seen.setdefault(name, set()).add(self.why[name])
        return heads

    def _cycle(self, now: float) -> list[list[str]]:
        whole = float(int(now)) if self.chance.whole_seconds else now
        self.engine.rank_local_queues()
        decisions = self._handle(CycleStarted(max(now, self.engine.now)))
        outcomes = {
            one.key: str(one.requeue_reason) or "generic" for one in decisions if isinstance(one, Parked | Requeued)
        }
        heads = []
        for entry in self.engine.last_entries:
            if entry.outcome is Outcome.ADMITTED:
                outcomes[entry.info.key] = "assumed"
                if entry.info.reserved_at == self.engine.now:
                    entry.info.reserved_at = whole
                self._refresh(entry.info)
            elif entry.outcome is Outcome.EVICTED:
                outcomes[entry.info.key] = "nothing"
            heads.append([entry.info.workload.name, outcomes.get(entry.info.key, "secondPass")])
        others = sorted(head for head in heads if head[1] == "generic" or self._is_alone(head[0]))
        return [*(head for head in heads if head not in others), *others]

    def _is_alone(self, name: str) -> bool:
        queue = self.engine.cache.queues[self.engine.workloads[f"{NAMESPACE}/{name}"].cluster_queue]
        return queue.parent is None

    def _refresh(self, info: WorkloadInfo) -> None:
        refresh_order(info, self.engine.cache.gates, self.engine.cache.configuration.wait_for_pods_ready)

    def _set_times(self, times: dict[str, int]) -> None:
        """From the next round on, times are those of Kueue's objects, which have whole seconds."""
        for name, second in times.items():
            info = self.engine.workloads.get(f"{NAMESPACE}/{name}")
            if info is None or info.admission is None:
                continue
            if info.is_evicted:
                info.evicted_at = expand.ZERO + second
            else:
                info.reserved_at = expand.ZERO + second
            self._refresh(info)
        for info in self.engine.workloads.values():
            if info.reserved_at is not None:
                info.reserved_at = float(int(info.reserved_at))
                self._refresh(info)

    @property
    def is_restless(self) -> bool:
        """Whether Kueue looks at the same heads again and again when the round ends."""
        return self._idle_cycles > 1

    def states(self) -> dict[str, str]:
        """Where every workload stands."""
        return {info.workload.name: self._state(info) for info in self.engine.workloads.values()}

    def _dated(self, workloads: Json) -> Json:
        result = {}
        for name, short in workloads.items():
            created, rank = self.made[name]
            result[name] = {**short, "created": created, "uid": f"{rank:04}"}
        return result

    def _do(self, now: float, event: list[Any]) -> None:
        decisions = self._handle(self._translate(now, event))
        if event[0] in ("quota", "stop"):
            self.engine.controller.will_wake(event[1])  # The status names the generation of the object.
        if event[0] in ("stop", "hold"):
            self.engine.withdrawn.update(one.key for one in decisions if isinstance(one, Released))
        if event[0] == "delete":
            self.why.pop(event[1], None)
        elif event[0] == "release":
            self._come_back(event[1])

    def _come_back(self, name: str) -> None:
        """The workload waits again, with the reason of an equal one that is parked, which Kueue may write or not."""
        why = states.pending(self.engine.parked_for(f"{NAMESPACE}/{name}") or "")
        self.seen[name] = {states.PENDING, why}
        self.why[name] = why

    def _translate(self, now: float, event: list[Any]) -> Event:
        kind, name = event[0], event[1]
        key = f"{NAMESPACE}/{name}"
        match kind:
            case "submit":
                return Submitted(now, parse(self._alone, self._dated({name: event[2]})).workloads[0])
            case "finish":
                return Finished(now, key)
            case "delete":
                return Deleted(now, key)
            case "release":
                return PodsStopped(now, key)
            case "check":
                check = next(iter(self.engine.workloads[key].checks))
                later = event[3] - now % 1 if len(event) > 3 else None
                return CheckStateChanged(now, key, check, CheckState(event[2]), "by the script", later)
            case "unready":
                return PodsReadyChanged(now, key, False)
            case "reclaim":
                pods = reclaimed(self.case, name)
                assert pods is not None
                return ReclaimableChanged(now, key, (pods,))
            case "scale":
                return CountsChanged(now, key, (("main", event[2]),))
            case "priority":
                return PriorityChanged(now, key, event[2])
        return self._translate_objects(now, event)

    def _translate_objects(self, now: float, event: list[Any]) -> Event:
        kind, name = event[0], event[1]
        match kind:
            case "quota":
                self.case["queues"][name] = {**self.case["queues"][name], "groups": event[2]}
            case "node":
                self.case["nodes"] = changed_node(self.case["nodes"], name, event[2])
            case "stop":
                self.case["queues"][name] = {**self.case["queues"][name], "stopPolicy": event[2]}
            case "hold":
                self.case["stopped"] = {**self.case["stopped"], name: event[2]}
            case _:
                raise ValueError(f"no such step: {kind}")
        return ObjectsChanged(now, parse(self.case, {}).objects)

    def _handle(self, event: Event) -> list[Decision]:
        decisions = self.engine.handle(event)
        self._note(decisions)
        return decisions

    def _note(self, decisions: list[Decision]) -> None:
        for one in decisions:
            name = one.key.partition("/")[2]
            if isinstance(one, Parked | Requeued):
                self.evaluated.add(one.key)
            elif isinstance(one, Released | QuotaReserved):
                self.evaluated.discard(one.key)
            if isinstance(one, QuotaReserved):
                self.why.pop(name, None)
                self.seen.pop(name, None)
            elif isinstance(one, Parked | Requeued):
                self.why[name] = states.pending(one.reason or "")
            elif isinstance(one, Evicted):
                why = f"{one.reason}DueTo{one.cause}" if one.reason is EvictionReason.DEACTIVATED else str(one.reason)
                if one.preemption is not None:
                    why += f" {one.preemption} by {one.preemptor.partition('/')[2]}"
                self.evicted[name] = why

    def _stopped(self, info: WorkloadInfo) -> bool:
        local = info.workload.queue
        queue = self.case["queues"][self.case["localQueues"][local]]
        return any(
            policy != "None" for policy in (queue.get("stopPolicy", "None"), self.case["stopped"].get(local, "None"))
        )

    def _state(self, info: WorkloadInfo) -> str:
        name = info.workload.name
        if info.admission is None:
            if not info.workload.active:
                return states.DEACTIVATED
            if self._stopped(info):
                self.why.pop(name, None)
            elif info.workload.claims_problem:
                return states.pending(QuotaReservedReason.MISCONFIGURED)
            return self.why.get(name, states.PENDING)
        pod_sets = [
            states.pod_set_text(ps.name, ps.count, dict(ps.flavors), _places(ps.topology))
            for ps in info.admission.pod_sets
        ]
        if info.is_evicted:
            return states.held(states.EVICTED, pod_sets, self.evicted.get(name, ""))
        return states.held(states.ADMITTED if info.is_admitted else states.RESERVED, pod_sets)


def changed_node(nodes: Json, name: str, state: str) -> Json:
    """The scenario's nodes with one in another state."""
    well = {key: value for key, value in nodes[name].items() if key not in ("ready", "taints")}
    changed: Json = {"gone": None, "notReady": {**well, "ready": False}, "tainted": {**well, "taints": [BROKEN]}}
    result = {**nodes, name: changed.get(state, well)}
    return {key: node for key, node in result.items() if node is not None}


def _places(topology: Any) -> dict[str, int]:
    return {"/".join(domain.values): domain.count for domain in topology or ()}


def same_heads(mine: list[list[str]], right: list[list[str]]) -> bool:
    """Whether two cycles had the same heads in the same order, with the same outcomes."""
    return mine == [head for head in right if head[1] != "accounted"]
