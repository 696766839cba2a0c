"""A whole fleet, manager and workers together, on one clock.

In: a fleet and a workload file. Out: a `result.Result`. Each cluster's engine has the objects that `spec.render_fleet`
makes for it. Admission checks other than MultiKueue's become Ready after the wait that the workload file declares.

MultiKueue: once only its check is left, the manager offers the workload to workers (AllAtOnce: to all; Incremental:
`stepSize` more, in the order of the fleet file, every 300 s). Each gets a copy; the first to admit it wins, and the
other copies are deleted. Losing the copy that runs sends the workload back to the manager.
Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go, pkg/controller/workloaddispatcher.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from kueue_fleet.admission.decisions import (
    Admitted,
    ChecksPending,
    Decision,
    Evicted,
    Parked,
    QuotaReserved,
    Requeued,
)
from kueue_fleet.admission.engine import Engine
from kueue_fleet.admission.errors import NotModelledError, ObjectError
from kueue_fleet.admission.events import (
    CheckStateChanged,
    Deleted,
    Event,
    Finished,
    PodsReadyChanged,
    PodsStopped,
    Submitted,
)
from kueue_fleet.admission.from_configuration import parse_configuration
from kueue_fleet.admission.from_kueue import Parsed, parse_objects
from kueue_fleet.admission.model import MULTIKUEUE_CONTROLLER, Admission, CheckState, Workload
from kueue_fleet.admission.reasons import EvictionReason
from kueue_fleet.simulation.agenda import Agenda
from kueue_fleet.simulation.cluster import SimulatedCluster, drive
from kueue_fleet.simulation.delays import Delays, DrawnDelays
from kueue_fleet.simulation.errors import SimulationError
from kueue_fleet.simulation.raw import check_references
from kueue_fleet.simulation.records import Eviction, Record, State
from kueue_fleet.simulation.result import Result
from kueue_fleet.simulation.workload_file import JobEntry, WorkloadFile
from kueue_fleet.spec import FleetSpec, dispatch_groups, kueue_configuration, render_cluster

ROUND_SECONDS: Final = 300.0
"""How long the Incremental dispatcher waits before it offers a workload to more workers."""


def simulate_fleet(
    fleet: FleetSpec,
    file: WorkloadFile,
    delays: Delays,
    *,
    until: float | None = None,
    seed: int = 0,
    engines: dict[str, Engine] | None = None,
) -> Result:
    """What happens to the jobs of the file. Raises SimulationError with every problem, paths as in the two files.

    `engines`, if given, receives the engine of each cluster as it stands at the end, where the jobs are submitted
    first.
    """
    _check(fleet, file)
    home = fleet.manager.name if fleet.manager is not None else fleet.cluster_names[0]
    submitted = list(file.submissions(seed))
    _check_names(submitted)
    parsed: dict[str, Parsed] = {}
    try:
        for cluster in fleet.cluster_names:
            jobs = [entry.manifest(name) for entry, name, _, _ in submitted] if cluster == home else []
            configuration = parse_configuration(kueue_configuration(fleet, cluster))
            parsed[cluster] = parse_objects([*render_cluster(fleet, cluster), *jobs], configuration)
    except ObjectError as error:
        raise SimulationError(error.problems) from None
    except NotModelledError as error:
        raise SimulationError([str(error)]) from None
    problems = list(check_references(parsed[home]))
    if problems:
        raise SimulationError(problems)
    run = _FleetRun(fleet, file, home, parsed, delays, seed)
    for (entry, _, at, run_seconds), workload in zip(submitted, parsed[home].workloads, strict=True):
        run.expect(replace(workload, created=at), run_seconds, entry.queue)
    drive(run.agenda, list(run.clusters.values()), 0.0, until)
    records = run.settle()
    if engines is not None:
        engines.update((name, run.clusters[name].engine) for name in dict.fromkeys((home, *run.clusters)))
    return Result(tuple(r for r in records if until is None or r.arrived_at <= until), 0.0, until, seed)


def _check(fleet: FleetSpec, file: WorkloadFile) -> None:
    problems = []
    if fleet.multi_kueue is not None and fleet.multi_kueue.dispatcher == "External":
        problems.append("multiKueue.dispatcher: External is not simulated; use AllAtOnce or Incremental")
    known = {
        "cluster": set(fleet.cluster_names),
        "flavor": {flavor.name for flavor in fleet.flavors},
        "check": {check.name for check in fleet.admission_checks},
    }
    for index, wait in enumerate(file.waits):
        for name, names in known.items():
            value = getattr(wait, name)
            if value is not None and value not in names:
                found = ", ".join(sorted(names)) or "none"
                problems.append(f"waits[{index}].{name}: the fleet has no {name} {value}; it has {found}")
    classes = {item.name for item in fleet.workload_priority_classes}
    problems += [
        f"jobs[{job.name}].priorityClass: there is no WorkloadPriorityClass {job.priority_class}; "
        "add it, or name another"
        for job in file.jobs
        if job.priority_class is not None and job.priority_class not in classes
    ]
    if problems:
        raise SimulationError(problems)


def _check_names(submitted: Sequence[tuple[JobEntry, str, float, float | None]]) -> None:
    seen: set[tuple[str, str]] = set()
    problems = []
    for entry, name, _, _ in submitted:
        if (entry.namespace, name) in seen:
            problems.append(f"jobs[{entry.name}].name: {entry.namespace}/{name} is there twice; name it differently")
        seen.add((entry.namespace, name))
    if problems:
        raise SimulationError(problems)


@dataclass(slots=True)
class _Job:
    """A workload and its copies. `attempts` counts, per cluster, what must be forgotten when a copy is gone."""

    workload: Workload
    record: Record
    offered: dict[str, None] = field(default_factory=dict)
    winner: str | None = None
    admissions: dict[str, Admission] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    lost_copy: bool = False


class _FleetRun:
    def __init__(
        self,
        fleet: FleetSpec,
        file: WorkloadFile,
        home: str,
        parsed: Mapping[str, Parsed],
        delays: Delays,
        seed: int,
    ) -> None:
        self.agenda = Agenda()
        self.clusters = {
            name: SimulatedCluster(name, found.objects, delays, self._hear, seed) for name, found in parsed.items()
        }
        self._fleet, self._file, self._seed = fleet, file, seed
        self._delays = DrawnDelays(delays, f"{seed}:runs")
        self._home = home
        self._jobs: dict[str, _Job] = {}
        self._dispatch_checks = {
            check.name for check in parsed[home].objects.checks if check.controller == MULTIKUEUE_CONTROLLER
        }
        self._workers = {queue: group.workers for group in dispatch_groups(fleet) for queue in group.queues}

    def expect(self, workload: Workload, run_seconds: float | None, queue: str) -> None:
        """Let a workload arrive."""
        record = Record(workload.key, workload.namespace, workload.name, workload.created, run_seconds)
        self._jobs[workload.key] = _Job(workload, record)
        self._plan(workload.created, self._home, lambda now: Submitted(now, workload))

    def settle(self) -> list[Record]:
        """The records; what waits for workers says why each of them does not admit it."""
        for job in self._jobs.values():
            record = job.record
            if record.state is State.QUOTA_RESERVED and job.offered:
                record.message = "; ".join(f"{name}: {job.why.get(name, 'offered')}" for name in job.offered)
            elif record.state is State.PENDING and record.cluster_queue:
                record.park(self.clusters[self._home].engine.pending(record.cluster_queue).parked_for(record.key))
        return [job.record for job in self._jobs.values()]

    def _plan(self, at: float, cluster: str, make: Callable[[float], Event]) -> None:
        self.agenda.plan(at, lambda now: self.clusters[cluster].handle(make(now)))

    def _plan_for(self, at: float, job: _Job, cluster: str, action: Callable[[float], None]) -> None:
        """Plan what is only to happen if the copy on the cluster is still the same."""
        attempt = job.attempts.get(cluster, 0)

        def act(now: float) -> None:
            if job.attempts.get(cluster, 0) == attempt and job.record.finished_at is None:
                action(now)

        self.agenda.plan(at, act)

    def _handle_for(self, at: float, job: _Job, cluster: str, make: Callable[[float], Event]) -> None:
        self._plan_for(at, job, cluster, lambda now: self.clusters[cluster].handle(make(now)))

    def _hear(self, cluster: SimulatedCluster, decision: Decision, at: float) -> None:
        job = self._jobs[decision.key]
        if job.record.finished_at is not None:
            return
        if cluster.name == self._home:
            self._hear_home(job, decision, at)
        elif cluster.name in job.offered:
            self._hear_worker(job, cluster.name, decision, at)

    def _hear_home(self, job: _Job, decision: Decision, at: float) -> None:
        record, home = job.record, self._home
        if isinstance(decision, Evicted):
            self._bump(job, home)
            if not (job.lost_copy and decision.reason is EvictionReason.ADMISSION_CHECK):
                record.take(decision, at)
            job.lost_copy = False
            self._plan_for(at, job, home, partial(self._withdraw, job, None))
            self._handle_for(at + self._delays.stop(), job, home, lambda now: PodsStopped(now, record.key))
            return
        record.take(decision, at)
        if isinstance(decision, QuotaReserved):
            job.admissions[home] = decision.admission
        elif isinstance(decision, ChecksPending):
            rest = [name for name in decision.checks if name not in self._dispatch_checks]
            if rest:
                self._answer_checks(job, home, rest, at)
            elif decision.checks and not job.offered and job.winner is None:
                self._plan_for(at, job, home, partial(self._offer, job, 0))
        elif isinstance(decision, Admitted):
            self._start(job, at)

    def _hear_worker(self, job: _Job, worker: str, decision: Decision, at: float) -> None:
        match decision:
            case QuotaReserved():
                job.admissions[worker] = decision.admission
                job.why[worker] = "has quota"
            case ChecksPending():
                job.why[worker] = f"waits for {', '.join(decision.checks)}"
                self._answer_checks(job, worker, decision.checks, at)
            case Admitted():
                self._plan_for(at, job, worker, partial(self._win, job, worker))
            case Evicted():
                self._lose(job, worker, decision, at)
            case Parked() | Requeued():
                job.why[worker] = decision.reason.value if decision.reason else "considered"
            case _:
                pass

    def _answer_checks(self, job: _Job, cluster: str, checks: Sequence[str], at: float) -> None:
        """Plan that each check becomes Ready; one whose resources nobody asks for, at once."""
        key = job.record.key
        flavors = {flavor for ps in job.admissions[cluster].pod_sets for _, flavor in ps.flavors}
        resources = {resource for ps in job.admissions[cluster].pod_sets for resource, _ in ps.flavors}
        for check in checks:
            known = self.clusters[cluster].engine.workloads[key].checks.get(check)
            if known is None or known.state is not CheckState.PENDING:
                continue
            wait = 0.0
            if self._is_managed(check, resources):
                purpose = (self._seed, key, job.attempts.get(cluster, 0))
                wait = self._file.wait(cluster, check, flavors, purpose)
            ready = partial(_ready, key, check)
            self._handle_for(at + wait, job, cluster, ready)

    def _is_managed(self, check: str, resources: set[str]) -> bool:
        entry = self._fleet.check(check)
        if entry is None or entry.provisioning_request is None:
            return True
        managed = set(entry.provisioning_request.managed_resources or ())
        return not managed or bool(managed & resources)

    def _offer(self, job: _Job, first: int, now: float) -> None:
        """Give a copy to more workers."""
        workers = self._workers.get(job.record.cluster_queue, ())
        settings = self._fleet.multi_kueue
        incremental = settings is not None and settings.dispatcher == "Incremental"
        step = settings.incremental.step_size if settings is not None and settings.incremental is not None else 3
        last = first + step if incremental else len(workers)
        for worker in workers[first:last] if incremental else sorted(workers):
            job.offered[worker] = None
            self.clusters[worker].handle(Submitted(now, replace(job.workload, created=now)))
        if last < len(workers):
            self._plan_for(now + ROUND_SECONDS, job, self._home, partial(self._offer_more, job, last))

    def _offer_more(self, job: _Job, first: int, now: float) -> None:
        if job.winner is None:
            self._offer(job, first, now)

    def _win(self, job: _Job, worker: str, now: float) -> None:
        """The first copy that is admitted stays; the manager admits the workload."""
        if job.winner is not None:
            return
        job.winner = job.record.cluster = worker
        self._withdraw(job, worker, now)
        home = self.clusters[self._home]
        for check in sorted(self._dispatch_checks & set(home.engine.workloads[job.record.key].checks)):
            home.handle(CheckStateChanged(now, job.record.key, check, CheckState.READY))

    def _withdraw(self, job: _Job, kept: str | None, now: float) -> None:
        """Delete the copies, but for one."""
        for worker in [name for name in job.offered if name != kept]:
            self._bump(job, worker)
            del job.offered[worker]
            if worker in job.admissions and self.clusters[worker].engine.workloads[job.record.key].is_reserved:
                job.record.copies_thrown_away += 1
            job.admissions.pop(worker, None)
            self.clusters[worker].handle(Deleted(now, job.record.key))
        if kept is None:
            job.winner = job.record.cluster = None

    def _lose(self, job: _Job, worker: str, decision: Evicted, at: float) -> None:
        """A copy is evicted. The one that runs sends the workload back.

        One that waits for a check has no Job yet on the worker, and only a Job's reconciler gives quota back: it keeps
        its quota until the manager deletes it.
        """
        self._bump(job, worker)
        key = job.record.key
        job.why[worker] = f"evicted: {decision.reason.value}"
        if job.winner != worker:
            job.why[worker] += ", but it keeps its quota, as Kueue never finishes this eviction"
            return
        job.record.evictions.append(Eviction(at, decision.reason.value, decision.preemptor))
        job.lost_copy = True
        for check in sorted(self._dispatch_checks):
            if check in self.clusters[self._home].engine.workloads[key].checks:
                retry = partial(_retry, key, check)
                self._handle_for(at, job, self._home, retry)

    def _start(self, job: _Job, at: float) -> None:
        record = job.record
        where = job.winner or self._home
        record.cluster = where
        record.admission = job.admissions[where]
        for cluster in dict.fromkeys((where, self._home)):
            self._handle_for(at, job, cluster, lambda now: PodsReadyChanged(now, record.key, True))
        if record.run_seconds is not None:
            self._plan_for(at + record.run_seconds, job, where, partial(self._finish, job, where))

    def _finish(self, job: _Job, where: str, now: float) -> None:
        job.record.finish(now)
        for cluster in dict.fromkeys((where, self._home)):
            self._plan(now + self._delays.release(), cluster, lambda time: Finished(time, job.record.key))

    @staticmethod
    def _bump(job: _Job, cluster: str) -> None:
        job.attempts[cluster] = job.attempts.get(cluster, 0) + 1


def _ready(key: str, check: str, now: float) -> Event:
    return CheckStateChanged(now, key, check, CheckState.READY)


def _retry(key: str, check: str, now: float) -> Event:
    return CheckStateChanged(now, key, check, CheckState.RETRY, "the copy was evicted")
