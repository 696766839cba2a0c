"""The story of one workload, as the simulation writes it down; times on the engines' clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kueue_admission.decide.decisions import (
    Admitted,
    BackoffStarted,
    ChecksPending,
    Deactivated,
    Decision,
    Evicted,
    Inadmissible,
    NodesReplaced,
    Parked,
    Queued,
    QuotaReserved,
    Released,
    Replaced,
    Requeued,
)
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.model import Admission
from kueue_admission.decide.reasons import QuotaReservedReason


class State(StrEnum):
    """Where a workload stands."""

    PENDING = "Pending"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    FINISHED = "Finished"


class Phase(StrEnum):
    """What a workload does between two times of its story."""

    QUOTA = "waits for quota"
    CHECKS = "has quota, waits for checks"
    NODES = "admitted, waits for nodes"
    RUNNING = "runs"
    RECLAIMED = "lost its nodes"
    OVER = "finished"


@dataclass(slots=True)
class Eviction:
    """One eviction, with Kueue's reason; `preemptor` is the workload for which, if any."""

    time: float
    reason: str
    preemptor: str = ""


@dataclass(slots=True)
class Run:
    """A time in which a workload was admitted: where, with what, and how it ended.

    `started_at` is when its pods had nodes, later than `admitted_at` where the fleet's node pools were full. `end` is
    Kueue's reason, Succeeded, or Failed. `reclaimed` are the times at which its nodes were reclaimed.
    """

    cluster: str | None
    admission: Admission
    admitted_at: float
    started_at: float | None = None
    ended_at: float | None = None
    end: str = ""
    reclaimed: list[float] = field(default_factory=list)
    no_nodes: str = ""
    """Why its pods did not have nodes, the last time that they were looked for."""

    @property
    def flavors(self) -> tuple[str, ...]:
        """The flavors it used, each once."""
        return tuple(dict.fromkeys(flavor for ps in self.admission.pod_sets for _, flavor in ps.flavors))

    @property
    def usage(self) -> dict[tuple[str, str], int]:
        """What it used: amounts by flavor and resource."""
        amounts: dict[tuple[str, str], int] = {}
        for pod_set in self.admission.pod_sets:
            flavors = dict(pod_set.flavors)
            for resource, amount in pod_set.usage:
                key = flavors.get(resource, ""), resource
                amounts[key] = amounts.get(key, 0) + amount
        return amounts


@dataclass(slots=True)
class Record:
    """What happened to a workload so far.

    `name` is that of its job where there is one, `run_seconds` None never ends.
    """

    key: str
    namespace: str
    name: str
    arrived_at: float
    run_seconds: float | None = None
    label: str = ""
    cluster: str | None = None
    cluster_queue: str = ""
    reason: str = QuotaReservedReason.PENDING_EVALUATION.value
    message: str = ""
    admission: Admission | None = None
    reserved_at: float | None = None
    admitted_at: float | None = None
    finished_at: float | None = None
    evictions: list[Eviction] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    first_admitted_at: float | None = None
    copies_thrown_away: int = 0
    """Copies on workers that held quota when another worker won, or when the workload was taken back."""
    requests: tuple[tuple[str, int], ...] = ()
    """What all its pods ask for together, by resource."""
    priority: int = 0
    phases: list[tuple[float, Phase]] = field(default_factory=list)
    """When each phase after the first began; the first is QUOTA, from `arrived_at`."""
    not_known: str = ""
    """Why it is not known whether it starts, though it did not here; empty: it started, or is known not to."""

    @property
    def state(self) -> State:
        """Where it stands."""
        if self.finished_at is not None:
            return State.FINISHED
        if self.admitted_at is not None:
            return State.ADMITTED
        return State.PENDING if self.reserved_at is None else State.QUOTA_RESERVED

    @property
    def why_not_started(self) -> str:
        """Why its pods have never had nodes; empty where they had, or where Kueue has not looked at it.

        It looks at nothing in an inactive queue.
        """
        if any(run.started_at is not None for run in self.runs) or self.reason == QuotaReservedReason.SUSPENDED:
            return ""
        if self.runs:
            return self.runs[-1].no_nodes
        return f"{self.reason}: {self.message}" if self.message and self.reserved_at is None else self.message

    @property
    def wait(self) -> float | None:
        """Seconds until it was first admitted; None: never, or only to be evicted before its pods had nodes."""
        in_vain = bool(self.runs and self.evictions) and all(run.started_at is None for run in self.runs)
        return None if self.first_admitted_at is None or in_vain else self.first_admitted_at - self.arrived_at

    @property
    def flavors(self) -> dict[str, dict[str, str]]:
        """The flavor of each resource of each pod set, from the reservation."""
        return {} if self.admission is None else {ps.name: dict(ps.flavors) for ps in self.admission.pod_sets}

    @property
    def group(self) -> str:
        """What waiting times are summed up by: its label, or its ClusterQueue where it has none."""
        return self.label or self.cluster_queue or "(no queue)"

    def take(self, decision: Decision, at: float) -> None:
        """Write a decision down that holds from `at`."""
        match decision:
            case Queued():
                self.cluster_queue = decision.cluster_queue
            case QuotaReserved():
                self.cluster_queue = decision.admission.cluster_queue
                self.admission, self.reserved_at = decision.admission, at
                self.reason, self.message = "QuotaReserved", ""
                self.enter(Phase.CHECKS, at)
            case ChecksPending():
                self.reason = decision.reason.value
                self.message = f"waits for {', '.join(decision.checks)}" if decision.checks else ""
            case Admitted():
                self.admitted_at = at
                self.first_admitted_at = at if self.first_admitted_at is None else self.first_admitted_at
                self.reason, self.message = "Admitted", ""
            case Evicted():
                self.evict(at, decision.reason.value, decision.preemptor)
                self.reason, self.message = decision.reason.value, decision.message
            case Released():
                self.admission = self.reserved_at = self.admitted_at = None
                self.enter(Phase.QUOTA, at)
            case Replaced():
                self.finish(at, "WorkloadSliceReplaced")
            case NodesReplaced():
                self.admission = decision.admission
                self.message = f"has other places for its pods on {', '.join(decision.nodes)}"
            case Inadmissible() | Requeued() | Parked():
                self._wait(decision)
            case BackoffStarted() | Deactivated():
                pass

    def _wait(self, decision: Inadmissible | Requeued | Parked) -> None:
        self.reason = str(decision.reason or QuotaReservedReason.PENDING_EVALUATION.value)
        # An eviction may have said the same, and why.
        if not isinstance(decision, Inadmissible) or not self.message.startswith(decision.message):
            self.message = decision.message

    def begin(self, at: float) -> None:
        """It is admitted from now on, where and with what is written down already."""
        assert self.admission is not None
        self.runs.append(Run(self.cluster, self.admission, at))
        self.enter(Phase.NODES, at)

    def start(self, at: float) -> None:
        """Its pods have nodes, for the first time or again after they were reclaimed."""
        if self.runs[-1].started_at is None:
            self.runs[-1].started_at = at
        self.enter(Phase.RUNNING, at)

    @property
    def is_running(self) -> bool:
        """Whether its pods have nodes now."""
        return bool(self.phases) and self.phases[-1][1] is Phase.RUNNING

    def reclaim(self, at: float, why: str) -> None:
        """Its nodes are reclaimed; it keeps its quota."""
        self.runs[-1].reclaimed.append(at)
        self.message = why
        self.enter(Phase.RECLAIMED, at)

    def enter(self, phase: Phase, at: float) -> None:
        """A phase begins."""
        if phase is not (self.phases[-1][1] if self.phases else Phase.QUOTA):
            self.phases.append((at, phase))

    def evict(self, at: float, reason: str, preemptor: str = "") -> None:
        """It has to give its quota back."""
        self.evictions.append(Eviction(at, reason, preemptor))
        self._end_run(at, reason)
        self.enter(Phase.QUOTA, at)

    def _end_run(self, at: float, reason: str) -> None:
        if self.runs and self.runs[-1].ended_at is None:
            self.runs[-1].ended_at, self.runs[-1].end = at, reason

    def finish(self, at: float, end: str = "Succeeded") -> None:
        """Its run is over."""
        self._end_run(at, end)
        self.finished_at = at
        self.enter(Phase.OVER, at)
        self.reason, self.message = end, ""

    def settle(self, engine: Engine) -> None:
        """Give it the reason that no cycle of its own gave: its queue is inactive, or it is parked with its shape."""
        queue, info = engine.cache.queues.get(self.cluster_queue), engine.workloads.get(self.key)
        if self.state is not State.PENDING or queue is None or info is None or engine.queues.place(info) is None:
            return
        why, message = engine.pending(self.cluster_queue).parked_for(self.key), ""
        if not queue.active:
            why, message = QuotaReservedReason.SUSPENDED, f"ClusterQueue {self.cluster_queue} is inactive"
        if why is not None and why.value != self.reason:
            self.reason, self.message = why.value, message


def pass_not_known_on(records: Mapping[str, Record], engines: Iterable[Engine]) -> None:
    """It is not known either whether a workload starts that StrictFIFO keeps behind such a head."""
    engines, rest = list(engines), [record for record in records.values() if not record.not_known]
    not_known = [record for record in records.values() if record.not_known]
    while not_known and rest:
        not_known = []
        for record in rest:
            for engine in engines:
                info = engine.workloads.get(record.key)
                queue = engine.queues.pending.get(info.cluster_queue) if info is not None else None
                head = records.get(queue.blocker_of(record.key) or "") if queue is not None else None
                if head is not None and head.not_known:
                    record.not_known = f"StrictFIFO keeps it behind {head.key}, and of that: {head.not_known}"
                    not_known.append(record)
                    break
        rest = [record for record in rest if not record.not_known]
