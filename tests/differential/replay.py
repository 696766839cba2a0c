"""A scenario on the admission core, in the rounds in which Kueue answered it."""

from __future__ import annotations

from typing import Any

from admission import expand
from differential import states
from differential.steps import next_event, reclaimed, submitted
from kueue_fleet.admission.decisions import Decision, Evicted, Parked, QuotaReserved, Requeued
from kueue_fleet.admission.engine import Engine
from kueue_fleet.admission.events import (
    CheckStateChanged,
    CycleStarted,
    Deleted,
    Event,
    Finished,
    ObjectsChanged,
    PodsStopped,
    PriorityChanged,
    ReclaimableChanged,
    Submitted,
    TimePassed,
)
from kueue_fleet.admission.from_configuration import parse_configuration
from kueue_fleet.admission.from_kueue import Parsed, parse_objects
from kueue_fleet.admission.info import WorkloadInfo, refresh_order
from kueue_fleet.admission.model import CheckState, Objects, Workload
from kueue_fleet.admission.reasons import EvictionReason

Json = dict[str, Any]

QUIET_SECONDS = 1.5
MOST_CYCLES = 200
MOST_IDLE = 8
NAMESPACE = "default"


def parse(case: Json, workloads: Json) -> Parsed:
    """The scenario's objects with these workloads."""
    given = {
        **case,
        "localQueues": {f"{NAMESPACE}/{name}": queue for name, queue in case["localQueues"].items()},
        "checks": dict.fromkeys(case.get("checks", ()), "example.com/external"),
        "workloads": {f"{NAMESPACE}/{name}": short for name, short in workloads.items()},
        "namespaces": {NAMESPACE: {}},
    }
    settings: Json = {"featureGates": {"UnadmittedWorkloadsObservability": True}}
    if case["fair"]:
        settings["fairSharing"] = {"preemptionStrategies": case["strategies"]}
    return parse_objects(expand.manifests(given), parse_configuration(settings))


class Replay:
    """The core in the place of Kueue. `made` says when each workload was created and how its uid compares."""

    def __init__(self, case: Json, made: dict[str, list[int]]) -> None:
        self.case = {**case, "queues": dict(case["queues"])}
        self.made = made
        self.order: list[str] = []
        self.why: dict[str, str] = {}
        self.evicted: dict[str, str] = {}
        parsed = parse(self.case, self._dated(case["workloads"]))
        self.engine = Engine(parsed.objects)
        self._first = parsed.workloads

    def start(self, second: int) -> None:
        """Every workload of the start is there, then the queues open."""
        now = expand.ZERO + second
        for workload in self._first:
            self._handle(Submitted(now, workload))
        self._settle(now)

    def do(self, second: int, event: list[Any] | None) -> None:
        """One round: the event, then whatever follows from it."""
        now = expand.ZERO + second
        if event is not None:
            self._handle(self._translate(now, event))
            if event[0] == "delete":
                self.why.pop(event[1], None)
        self._settle(now)

    def set_times(self, times: dict[str, int]) -> None:
        """Kueue's own times of reservations and evictions: a round may take it more than a second."""
        for name, second in times.items():
            info = self.engine.workloads.get(f"{NAMESPACE}/{name}")
            if info is None or info.admission is None:
                continue
            if info.is_evicted:
                info.evicted_at = expand.ZERO + second
                refresh_order(info, self.engine.cache.gates, self.engine.cache.configuration.wait_for_pods_ready)
            else:
                info.reserved_at = expand.ZERO + second

    def states(self) -> dict[str, str]:
        """Where every workload stands."""
        return {info.workload.name: self._state(info) for info in self.engine.workloads.values()}

    def _dated(self, workloads: Json) -> Json:
        found = {}
        for name, short in workloads.items():
            created, rank = self.made[name]
            found[name] = {**short, "created": created, "uid": f"{rank:04}"}
        return found

    def _workload(self, name: str, short: Json) -> Workload:
        return parse(self.case, self._dated({name: short})).workloads[0]

    def _objects(self) -> Objects:
        return parse(self.case, {}).objects

    def _translate(self, now: float, event: list[Any]) -> Event:
        kind, name = event[0], event[1]
        key = f"{NAMESPACE}/{name}"
        match kind:
            case "submit":
                return Submitted(now, self._workload(name, event[2]))
            case "finish":
                return Finished(now, key)
            case "delete":
                return Deleted(now, key)
            case "release":
                self.why[name] = states.PENDING
                return PodsStopped(now, key)
            case "check":
                check = next(iter(self.engine.workloads[key].checks))
                return CheckStateChanged(now, key, check, CheckState(event[2]), "by the script")
            case "reclaim":
                pods = reclaimed(self.case, name)
                assert pods is not None
                return ReclaimableChanged(now, key, (pods,))
            case "priority":
                return PriorityChanged(now, key, event[2])
            case "quota":
                self.case["queues"][name] = {**self.case["queues"][name], "groups": event[2]}
            case "stop":
                self.case["queues"][name] = {**self.case["queues"][name], "stopPolicy": event[2]}
            case _:
                raise ValueError(f"no such step: {kind}")
        return ObjectsChanged(now, self._objects())

    def _settle(self, now: float) -> None:
        until = now + QUIET_SECONDS
        while True:
            idle = cycles = 0
            seen: dict[str, list[str]] = {}
            while idle < MOST_IDLE and self.engine.wants_cycle:
                decisions = self._handle(CycleStarted(now))
                cycles += 1
                if any(not isinstance(one, Requeued) for one in decisions):
                    idle, seen = 0, {}
                    continue
                idle += 1
                for one in decisions:
                    name = one.key.partition("/")[2]
                    seen.setdefault(name, []).append(self.why[name])
                if idle >= 2 and all(len(set(why)) == 1 for why in seen.values()):
                    break
                if cycles == MOST_CYCLES:
                    raise RuntimeError(f"{self.case['name']}: {cycles} cycles at one moment")
            for name, found in seen.items():
                self.why[name] = states.restless(found[-MOST_IDLE // 2 :])
            due = self.engine.next_timer()
            if due is None or due > until:
                return
            now = max(now, due)
            self._handle(TimePassed(now))

    def _handle(self, event: Event) -> list[Decision]:
        decisions = self.engine.handle(event)
        for one in decisions:
            name = one.key.partition("/")[2]
            if isinstance(one, QuotaReserved):
                self.order.append(name)
                self.why.pop(name, None)
            elif isinstance(one, Parked | Requeued):
                self.why[name] = states.pending(one.reason or "")
            elif isinstance(one, Evicted):
                why = f"{one.reason}DueTo{one.cause}" if one.reason is EvictionReason.DEACTIVATED else str(one.reason)
                if one.preemption is not None:
                    why += f" {one.preemption} by {one.preemptor.partition('/')[2]}"
                self.evicted[name] = why
        return decisions

    def _stopped(self, info: WorkloadInfo) -> bool:
        queue: str = self.case["localQueues"][info.workload.queue]
        return bool(self.case["queues"][queue].get("stopPolicy", "None") != "None")

    def _state(self, info: WorkloadInfo) -> str:
        name = info.workload.name
        if info.admission is None:
            if not info.workload.active:
                return states.DEACTIVATED
            if self._stopped(info):
                self.why.pop(name, None)
            return self.why.get(name, states.PENDING)
        pod_sets = [states.pod_set_text(ps.name, ps.count, dict(ps.flavors)) for ps in info.admission.pod_sets]
        if info.is_evicted:
            return states.held(states.EVICTED, pod_sets, self.evicted.get(name, ""))
        return states.held(states.ADMITTED if info.is_admitted else states.RESERVED, pod_sets)


def agree(case: Json, mine: Json, right: Json) -> bool:
    """Whether two answers to one round are the same: every state, and within each ClusterQueue the order.

    Between queues Kueue leaves the order of equal heads, and of heads that share nothing, to chance.
    """
    if mine["changes"] != right["changes"]:
        return False
    queues = {name: workload["queue"] for name, workload in submitted(case).items()}
    return all(
        [name for name in mine["order"] if queues[name] == queue]
        == [name for name in right["order"] if queues[name] == queue]
        for queue in case["localQueues"]
    )


def replay(case: Json, answer: Json) -> Json:
    """The core's answer in the form of Kueue's."""
    run = Replay(case, answer["made"])
    clock = answer["clock"]
    rounds: list[Json] = []
    before: dict[str, str] = {}
    event: list[Any] | None = None
    done = 0
    for number, second in enumerate(clock):
        if number == 0:
            run.start(second)
        else:
            event, done = next_event(case, before, done)
            run.do(second, event)
        run.set_times(answer["times"][number])
        after = run.states()
        one: Json = {"changes": states.changes(before, after), "order": run.order}
        run.order = []
        rounds.append(one)
        before = after
        if number + 1 < len(answer["rounds"]) and not agree(case, one, answer["rounds"][number]):
            break
    return {"rounds": rounds}
