"""A month of a fleet as its clusters print it: Workloads of the manager, and their copies on workers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from unittest.mock import patch

from kueue_admission.decide.decisions import Decision, QuotaReserved
from kueue_admission.history.events import Place
from kueue_admission.history.recorder import Known, Recorder
from kueue_admission.history.schema import Event
from kueue_admission.simulate.clock import drive
from kueue_admission.simulate.delays import Delays
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_simulation.fleet import fleet_run
from kueue_fleet.fleet_simulation.fleet_run import FleetRun
from kueue_fleet.jobs.fleet_job import FleetJob
from kueue_fleet.jobs.workload_file import WorkloadFile

Json = dict[str, Any]
BEGIN = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


class Printed(NamedTuple):
    """A Workload as a cluster printed it last; `lost_at` is when it was deleted before its end."""

    cluster: str
    workload: Json
    lost_at: float | None = None


class _Watched(FleetRun):
    """Also knows when each copy had quota, and when it was deleted."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.reserved: dict[tuple[str, str], float] = {}
        self.copies: list[tuple[FleetJob, str, float, float | None]] = []

    def _hear_worker(self, job: FleetJob, worker: str, decision: Decision, at: float) -> None:
        if isinstance(decision, QuotaReserved):
            self.reserved[job.record.key, worker] = at
        super()._hear_worker(job, worker, decision, at)

    def _take_copy(self, job: FleetJob, worker: str, now: float) -> None:
        if (at := self.reserved.pop((job.record.key, worker), None)) is not None:
            self.copies.append((job, worker, at, now))
        super()._take_copy(job, worker, now)


def busy_month(fleet: FleetSpec, jobs: int, seed: int = 7) -> list[Printed]:
    """The DWS stack, which two teams use well; one of its regions is quick, and the others are slow."""
    entry = {"queue": "gpu", "count": jobs // 2, "requests": {"cpu": "1", "nvidia.com/gpu": 1}}
    entry |= {"interval": "exponential(345)", "runSeconds": "exponential(900)"}
    teams = [{**entry, "name": "a", "namespace": "team-vision"}, {**entry, "name": "b", "namespace": "team-language"}]
    waits = [{"check": "dws", "cluster": "worker-us-east4", "seconds": "uniform(60, 300)"}]
    waits.append({"check": "dws", "seconds": "uniform(120, 600)"})
    file = WorkloadFile.model_validate({"jobs": teams, "waits": waits})
    with patch("kueue_fleet.fleet_simulation.fleet.FleetRun", _Watched):
        run = fleet_run(fleet, file, Delays(), seed=seed)
    assert isinstance(run, _Watched)
    drive(run.agenda, list(run.clusters.values()), 0.0, None)
    result = []
    for job in run.jobs.values():
        record, where = job.record, job.record.cluster
        assert where is not None
        run.copies.append((job, where, run.reserved[record.key, where], None))
        result.append(Printed(fleet.home, _workload(fleet.home, job, record.reserved_at or 0.0, place=where)))
    for job, worker, reserved, lost_at in run.copies:
        won = lost_at is None
        result.append(Printed(worker, _workload(worker, job, reserved, is_copy=True, won=won), lost_at))
    return result


def recorded(fleet: FleetSpec, printed: Iterable[Printed], known: Known) -> list[Event]:
    """What a recorder that watched everything writes of it."""
    recorders = {
        name: Recorder(Place(name, fleet.cluster(name).region, fleet.team_of), known) for name in fleet.cluster_names
    }
    for number, (cluster, workload, lost_at) in enumerate(printed):
        recorders[cluster].see(str(number), workload)
        if lost_at is not None:
            recorders[cluster].lose(str(number), BEGIN + lost_at)
    return [event for recorder in recorders.values() for event in recorder.take()]


def _workload(
    cluster: str, job: FleetJob, reserved: float, *, place: str = "", is_copy: bool = False, won: bool = True
) -> Json:
    record = job.record
    assert record.admission is not None
    container = {
        "name": "main",
        "image": "train:1",
        "env": [{"name": "TOKEN", "value": "of-the-team"}],
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}},
    }
    times = [("QuotaReserved", "QuotaReserved", reserved)]
    if won:
        times += [
            ("Admitted", "Admitted", record.admitted_at or 0.0),
            ("Finished", "Succeeded", record.finished_at or 0.0),
        ]
    check = {"name": "dws", "state": "Ready" if won else "Pending"}
    check["lastTransitionTime"] = time_text((record.admitted_at or 0.0) if won else reserved)
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": f"job-{record.name}",
            "namespace": record.namespace,
            "uid": f"{cluster}-{record.key}-{reserved:.0f}",
            "creationTimestamp": time_text(record.arrived_at),
            "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"} if is_copy else {},
        },
        "spec": {
            "queueName": "gpu",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
        },
        "status": {
            "admission": {
                "clusterQueue": record.cluster_queue,
                "podSetAssignments": [
                    {"name": item.name, "count": item.count, "flavors": dict(item.flavors)}
                    for item in record.admission.pod_sets
                ],
            },
            "conditions": [
                {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": time_text(at)}
                for kind, reason, at in times
            ],
            "admissionChecks": [check] if is_copy else [],
            "clusterName": place,
        },
    }


def time_text(seconds: float) -> str:
    """A time of the simulation, as Kubernetes writes it."""
    return datetime.fromtimestamp(round(BEGIN + seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
