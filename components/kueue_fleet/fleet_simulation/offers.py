"""To which workers a job is offered, and when to more: Kueue's own two dispatchers, and this fleet's.

Source: kueue@v0.19.2 pkg/controller/workloaddispatcher, pkg/controller/admissionchecks/multikueue/workload.go; for the
fleet's own, `kueue_fleet.dispatch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kueue_admission.decide.model import Objects
from kueue_admission.kernel.names import REGIONS_LABEL
from kueue_admission.simulate.cluster import SimulatedCluster
from kueue_fleet.dispatch import (
    Action,
    Decision,
    LaterQuota,
    Request,
    WaitingTimes,
    Worker,
    WorkerQuota,
    can_never_run,
    decide,
    rounds_begun,
)
from kueue_fleet.dispatch.residency import Residency, read_residency
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration
from kueue_fleet.fleet_file.fleet_quotas import fleet_quotas
from kueue_fleet.jobs.fleet_job import FleetJob
from kueue_fleet.objects.controller_values import controller_configuration

ROUND_SECONDS: Final = 300.0
"""How long the Incremental dispatcher waits before it offers a workload to more workers."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The workers that get a copy; others lose theirs. `retry_at` is when that may change without an event.

    `given_up`: to none, and the job starts over `rest` seconds later. `rejected`: never to any; the text says why.
    """

    workers: tuple[str, ...]
    retry_at: float | None = None
    given_up: bool = False
    rest: float = 0.0
    rejected: str = ""


class Dispatcher(Protocol):
    """How workers are chosen. `lost` are workers that the manager cannot reach.

    `waits_for_lost`: a job that ran on one starts nowhere else before the manager reaches it again.
    """

    waits_for_lost: bool

    def offer(self, job: FleetJob, lost: frozenset[str], now: float) -> Offer:
        """Who is to have a copy of the job now."""

    def touch(self, cluster: str, key: str) -> None:
        """Something happened to a workload on a worker."""

    def load(self, cluster: str, objects: Objects) -> None:
        """A cluster has other queues and quotas."""

    def admitted(self, job: FleetJob, worker: str, now: float) -> None:
        """The job is admitted on a worker."""

    def withdrawn(self, job: FleetJob) -> None:
        """The job is no longer offered."""


class KueueDispatcher:
    """AllAtOnce (`step` None): to all. Incremental: `step` more each round, most preferred first.

    Two feature gates, new in 0.19, are for that step and that order; without them it is 3 more, by name.
    """

    waits_for_lost = False

    def __init__(self, fleet: FleetSpec) -> None:
        self._fleet = fleet
        settings, kueue = fleet.multi_kueue, fleet.kueue_on(fleet.home).release
        gates = kueue_configuration(fleet, fleet.home).get("featureGates")
        self._step: int | None = None
        if settings is not None and settings.dispatcher == "Incremental":
            own = settings.incremental if kueue.gate_is_on("MultiKueueIncrementalDispatcherConfig", gates) else None
            self._step = 3 if own is None else own.step_size
        self._by_name = not kueue.gate_is_on("MultiKueueIncrementalDispatcherRespectConfigOrder", gates)

    def offer(self, job: FleetJob, lost: frozenset[str], now: float) -> Offer:
        """Who is to have a copy of the job now."""
        workers = self._fleet.dispatch_workers(job.record.cluster_queue)
        offer_time = now if job.offered_since is None else job.offered_since
        job.offered_since = offer_time
        if self._step is None:
            return Offer(tuple(sorted(workers)))
        rounds, next_round = rounds_begun(offer_time, ROUND_SECONDS, now)
        seconds = self._step * rounds
        workers = tuple(sorted(workers)) if self._by_name else workers
        return Offer(workers[:seconds], next_round if seconds < len(workers) else None)

    def touch(self, cluster: str, key: str) -> None:
        """Nothing depends on it."""

    def load(self, cluster: str, objects: Objects) -> None:
        """Nothing depends on it."""

    def admitted(self, job: FleetJob, worker: str, now: float) -> None:
        """Nothing depends on it."""

    def withdrawn(self, job: FleetJob) -> None:
        """Nothing depends on it."""


class FleetDispatcher:
    """The fleet's own dispatcher, with everything that its controller would know of the workers."""

    waits_for_lost = True

    def __init__(
        self, fleet: FleetSpec, clusters: Mapping[str, SimulatedCluster], objects: Mapping[str, Objects]
    ) -> None:
        self._fleet = fleet
        self._clusters = clusters
        configuration = controller_configuration(fleet)
        self._section = configuration.controller
        self._settings = configuration.controller.dispatch
        self._team_regions = configuration.team_regions
        self._quotas = {name: WorkerQuota(objects[name]) for name in fleet.worker_names}
        self._later = LaterQuota(fleet_quotas(fleet) if configuration.following is not None else None)
        self._waiting = WaitingTimes()
        self._touched: dict[str, dict[str, None]] = {}
        self.decisions: dict[str, Decision] = {}
        """The last one about each workload that no worker has admitted."""

    def residency(self, job: FleetJob) -> Residency:
        """Where the job may run, by its label and its team."""
        regions = self._team_regions.get(job.record.namespace)
        return read_residency(job.labels.get(REGIONS_LABEL), None, regions, self._section.region_groups)

    def offer(self, job: FleetJob, lost: frozenset[str], now: float) -> Offer:
        """Who is to have a copy of the job now."""
        self._catch_up()
        last = self.decisions.get(job.record.key)
        request = Request(
            workload=job.workload,
            residency=self.residency(job),
            nominated=tuple(job.offered),
            started=job.offered_since,
            gave_up=job.gave_up,
            given_up=job.given_up,
            could_run=last is not None and not can_never_run(last.verdicts),
        )
        names = self._fleet.dispatch_workers(job.record.cluster_queue)
        decision = decide(request, [self._worker(job, name, lost, now) for name in names], self._settings, now)
        self.decisions[job.record.key] = decision
        job.offered_since = decision.started
        for name in names:
            quota = self._quotas[name]
            if name in decision.nominated:
                quota.expect(job.workload)
                self._waiting.waits(job.record.key, name, job.record.cluster_queue, decision.started)
            else:
                quota.forget(job.record.key)
                self._waiting.gone(job.record.key, name)
        given_up = decision.action is Action.GIVE_UP
        job.gave_up = given_up
        rejection = decision.message if decision.action is Action.REJECT else ""
        return Offer(decision.nominated, decision.retry_at, given_up, self._settings.retry_after.seconds, rejection)

    def _worker(self, job: FleetJob, name: str, lost: frozenset[str], now: float) -> Worker:
        region = self._fleet.cluster(name).place
        return Worker(
            name=name,
            region=region,
            connected=name not in lost,
            problem="it cannot be reached" if name in lost else "",
            quota=self._quotas[name],
            prices=self._section.prices_in(region),
            waiting_seconds=self._waiting.seconds(name, job.record.cluster_queue, now),
            fits_later=self._later.may_fit(job.workload, job.record.cluster_queue, name),
        )

    def _catch_up(self) -> None:
        for name, keys in self._touched.items():
            workloads, quota = self._clusters[name].engine.workloads, self._quotas[name]
            for key in keys:
                if key in workloads:
                    quota.put(workloads[key].as_workload())
                else:
                    quota.drop(key)
        self._touched.clear()

    def touch(self, cluster: str, key: str) -> None:
        """Something happened to a workload on a worker."""
        if cluster in self._quotas:
            self._touched.setdefault(cluster, {})[key] = None

    def load(self, cluster: str, objects: Objects) -> None:
        """A cluster has other queues and quotas."""
        if cluster in self._quotas:
            self._quotas[cluster].load(objects)

    def admitted(self, job: FleetJob, worker: str, now: float) -> None:
        """The job is admitted on a worker."""
        key, since = job.record.key, job.offered_since
        self.decisions.pop(key, None)
        self._waiting.admitted(key, worker, job.record.cluster_queue, now, now - (now if since is None else since))
        for name in self._fleet.dispatch_workers(job.record.cluster_queue):
            if name != worker:
                self._quotas[name].forget(key)

    def withdrawn(self, job: FleetJob) -> None:
        """The job is no longer offered."""
        self._waiting.gone(job.record.key)
        for name in self._fleet.dispatch_workers(job.record.cluster_queue):
            self._quotas[name].forget(job.record.key)


def regions_of(fleet: FleetSpec, queue: str) -> Sequence[str]:
    """The regions of the workers of a queue."""
    return [fleet.cluster(name).place for name in fleet.dispatch_workers(queue)]
