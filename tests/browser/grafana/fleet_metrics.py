"""What a managed Prometheus would hold of seven hours of the example fleet `prod`: for pictures of its dashboard.

Its jobs run in a simulation, from which most follows. Drawn at random, from a seed, is what a simulation does not have:
how busy GPUs are, how long decisions take, and which workers were nominated beside the one that admitted a job.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

from kueue_admission.simulate.clock import drive
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.records import Phase, Record, Run
from kueue_fleet.fleet_file import FleetSpec, parse_fleet_text
from kueue_fleet.fleet_simulation.fleet import fleet_run
from kueue_fleet.jobs.workload_file import WorkloadFile
from promql import METRICS

STACK: Final = Path(__file__).parents[3] / "stacks" / "Pulumi.prod.yaml"
HOURS: Final = 7
"""The first of them is before what a dashboard shows, so that rates and waits are those of a fleet in use."""
END: Final = HOURS * 3600.0
SCRAPE: Final = 60
TEAMS: Final = ("vision", "language", "speech", "search", "ads", "maps")
RESERVED: Final = 24
"""GPUs on each worker that are reserved."""
GPU: Final = "nvidia.com/gpu"
GPU_MIB: Final = 23_034
"""Memory of an L4, and for simplicity of the H100 too."""
BUCKETS: Final = (1.0, *(2.5 * 2**power for power in range(13)))
"""Of Kueue's waits. Source: kueue@v0.19.2 pkg/metrics/metrics.go."""
SHORT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
Labels = tuple[tuple[str, str], ...]


def workload() -> WorkloadFile:
    """Jobs of six teams, more than what is reserved holds, and some that want H100."""
    jobs = [
        {
            "name": f"{team}-{gpus}",
            "namespace": team,
            "queue": "main",
            "count": round(HOURS * 3600 / (every * gpus)),
            "start": 60 * number,
            "interval": f"exponential({every * gpus})",
            "runSeconds": "uniform(900, 5400)",
            "priorityClass": "normal",
            "pods": gpus,
            "requests": {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "10Gi", GPU: "1"},
            "maxRunSeconds": 7200,
        }
        for number, team in enumerate(TEAMS)
        for every, gpus in ((300 + 120 * number, 1), (240 + 60 * number, 4))
    ]
    tiles = {**jobs[-1], "name": "tiles", "count": 60, "pods": 8, "start": 9000, "interval": 30}
    large = {"name": "model", "namespace": "vision", "queue": "foundation", "count": 6, "pods": 2, "start": 1800}
    large |= {"interval": "exponential(3600)", "runSeconds": "uniform(3600, 7200)", "maxRunSeconds": 7200}
    large |= {"requests": {"cpu": "100", "memory": "800Gi", "ephemeral-storage": "10Gi", GPU: "8"}}
    waits = [{"check": "dws", "seconds": "exponential(1800)"}]
    reclaims = [{"flavor": "l4-spot", "perHour": 0.3, "back": "exponential(600)"}]
    return WorkloadFile.model_validate({"jobs": [*jobs, tiles, large], "waits": waits, "reclaims": reclaims})


@dataclass
class Metrics:
    """Series as sums of what changed until then: of counters what happened, of gauges what came and went."""

    changes: dict[Labels, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, at: float, amount: float, metric: str, cluster: str, /, **labels: str) -> None:
        """It changes by so much."""
        own = {
            ("exported_" if key in ("cluster_", "namespace") else "") + key.rstrip("_"): item
            for key, item in labels.items()
        }
        known = METRICS.get(metric.removesuffix("_bucket"), {"labels": [*labels]})["labels"]
        asked = {key.rstrip("_") for key in labels} - {"le"}
        assert asked <= {*known}, (metric, asked, known)
        rest = {key: "" for key in known if key not in asked and key != "replica_role"}
        self.changes[tuple(sorted({"__name__": metric, "cluster": cluster, **rest, **own}.items()))].append(
            (at, amount)
        )

    def hold(self, begin: float, end: float, amount: float, metric: str, cluster: str, /, **labels: str) -> None:
        """It is higher by so much, from one time to another."""
        self.add(begin, amount, metric, cluster, **labels)
        self.add(end, -amount, metric, cluster, **labels)

    def observe(
        self, at: float, value: float, metric: str, cluster: str, limits: tuple[float, ...] = BUCKETS, /, **labels: str
    ) -> None:
        """A value of a histogram."""
        for limit in limits:
            self.add(at, float(value <= limit), f"{metric}_bucket", cluster, le=f"{limit:g}", **labels)
        self.add(at, 1.0, f"{metric}_bucket", cluster, le="+Inf", **labels)

    def series(self) -> Iterator[tuple[Labels, list[tuple[float, float | None]]]]:
        """Each with what it was at each scrape, from its first change on."""
        for labels, changes in self.changes.items():
            changes.sort()
            values, total, index = list[tuple[float, float | None]](), 0.0, 0
            for at in range(0, HOURS * 3600 + 1, SCRAPE):
                while index < len(changes) and changes[index][0] <= at:
                    total += changes[index][1]
                    index += 1
                if index and not (values and values[-1][1] is None):
                    values.append((at, None if math.isnan(total) else round(total, 6)))
            yield labels, values


@dataclass
class Machines:
    """Which GPUs the jobs of a cluster hold."""

    cluster: str
    metrics: Metrics
    draw: Random
    held: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    nodes: set[str] = field(default_factory=set)
    made: int = 0

    def __post_init__(self) -> None:
        """Nodes that are reserved are there from the beginning."""
        for number in range(RESERVED):
            self._gpu("l4-reserved", number, 0.0)

    def use(self, flavor: str, gpus: int, begin: float, end: float) -> None:
        """Give a job GPUs that are reserved, or nodes that come for it and go with it."""
        busy, mib = self.draw.choice((5.0, 55.0, 75.0, 90.0)), self.draw.uniform(0.2, 0.9) * GPU_MIB
        held = self.held[flavor]
        for _ in range(gpus):
            number = next((number for number in range(RESERVED) if held[number] <= begin), RESERVED)
            if flavor != "l4-reserved":
                self.made += 1
                number = self.made
                self._gpu(flavor, number, begin, end)
            held[number] = end
            for at, sign in ((begin, 1), (end, -1)):
                self._change(flavor, number, at, GPU_UTIL=sign * busy, FB_USED=sign * mib, FB_FREE=-sign * mib)

    def _gpu(self, flavor: str, number: int, begin: float, end: float = math.inf) -> None:
        """It is there from one time to another, and its node."""
        self._change(flavor, number, begin, GPU_UTIL=0.0, FB_USED=0.0, FB_FREE=GPU_MIB)
        self._change(flavor, number, end, GPU_UTIL=math.nan, FB_USED=math.nan, FB_FREE=math.nan)
        node = f"{flavor}-{number // (8 if flavor.startswith('h100') else 2)}"
        if node not in self.nodes:
            self.nodes.add(node)
            self.metrics.add(begin, 1, "kube_node_info", self.cluster, node=node)
            self.metrics.add(end, math.nan, "kube_node_info", self.cluster, node=node)

    def _change(self, flavor: str, number: int, at: float, **changes: float) -> None:
        kind, item = ("NVIDIA H100 80GB HBM3", 8) if flavor.startswith("h100") else ("NVIDIA L4", 2)
        labels = {"modelName": kind, "Hostname": f"{flavor}-{number // item}", "gpu": str(number % item)}
        for name, amount in changes.items():
            self.metrics.add(at, amount, f"DCGM_FI_DEV_{name}", self.cluster, **labels)


def fleet_metrics(seed: int = 7) -> tuple[FleetSpec, Metrics]:
    """The fleet, and its metrics."""
    fleet = parse_fleet_text(STACK.read_text(), str(STACK))
    run = fleet_run(fleet, workload(), Delays(), seed=seed)
    drive(run.agenda, list(run.clusters.values()), 0.0, END)
    metrics, draw = Metrics(), Random(seed)
    for name, cluster in run.clusters.items():
        metrics.add(0, 1, "kueue_build_info", name)
        for node in range(3):
            metrics.add(0, 1, "kube_node_info", name, node=f"system-{node}")
        for queue in cluster.engine.objects.cluster_queues:
            metrics.add(0, 1, "kueue_cluster_queue_status", name, cluster_queue=queue.name, status="active")
            for flavor in (flavor for group in queue.groups for flavor in group.flavors):
                labels = {"cluster_queue": queue.name, "flavor": flavor.flavor, "resource": GPU}
                metrics.add(0, dict(flavor.quotas)[GPU].nominal, "kueue_cluster_queue_nominal_quota", name, **labels)
    for worker in fleet.job_clusters:
        metrics.add(0, 1, "kueue_fleet_worker_followed", fleet.home, cluster_=worker)
    machines = {name: Machines(name, metrics, draw) for name in fleet.job_clusters}
    records = [job.record for job in run.jobs.values()]
    for record in records:
        _waits(fleet, metrics, record, draw)
    for record, job in sorted(((r, j) for r in records for j in r.runs), key=lambda pair: pair[1].admitted_at):
        _runs(fleet.home, metrics, machines, record, job)
    return fleet, metrics


def _waits(fleet: FleetSpec, metrics: Metrics, record: Record, draw: Random) -> None:
    """What Kueue and the controller measure of a job until it is admitted, and of its evictions."""
    home, queue, team = (
        fleet.home,
        {"cluster_queue": record.cluster_queue},
        {"name": "main", "namespace": record.namespace},
    )
    gpus = dict(record.requests)[GPU]
    phases = [(record.arrived_at, Phase.QUOTA), *record.phases, (END, Phase.OVER)]
    for (begin, phase), (end, _) in pairwise(phases):
        if phase is Phase.QUOTA:
            metrics.hold(begin, end, 1, "kueue_pending_workloads", home, **queue, status="inadmissible")
            metrics.hold(begin, end, 1, "kueue_unadmitted_workloads", home, **queue, reason="WaitingForQuota")
            metrics.hold(begin, end, gpus, "kueue_cluster_queue_resource_pending", home, **queue, resource=GPU)
            metrics.hold(begin, end, 1, "kueue_local_queue_pending_workloads", home, **team, status="inadmissible")
        if phase is Phase.CHECKS:
            metrics.hold(
                begin, end, 1, "kueue_unadmitted_workloads", home, **queue, reason="UnsatisfiedAdmissionChecks"
            )
            metrics.observe(
                begin, draw.lognormvariate(-5, 0.8), "kueue_admission_attempt_duration_seconds", home, SHORT
            )
            metrics.observe(begin, draw.lognormvariate(-2, 0.8), "kueue_fleet_nominate_seconds", home, SHORT)
            for worker in fleet.job_clusters:
                if worker == record.cluster or draw.random() < 0.4:
                    metrics.add(begin, 1, "kueue_fleet_nominations_total", home, cluster_=worker)
                    metrics.add(begin, 1, "multikueue_workloads_dispatched_total", home, **queue, cluster_=worker)
                else:
                    metrics.add(begin, 1, "kueue_fleet_filtered_total", home, cluster_=worker, reason="CannotFit")
    for eviction in record.evictions:
        for cluster in (home, record.cluster or home):
            metrics.add(eviction.time, 1, "kueue_evicted_workloads_total", cluster, **queue, reason=eviction.reason)
        metrics.add(eviction.time, 1, "kueue_fleet_given_up_total", home, cluster_=record.cluster or home)


def _runs(home: str, metrics: Metrics, machines: Mapping[str, Machines], record: Record, run: Run) -> None:
    """What is measured of a job that is admitted, on the manager and on its worker."""
    worker, queue, team = (
        run.cluster or home,
        {"cluster_queue": record.cluster_queue},
        {"name": "main", "namespace": record.namespace},
    )
    flavor, gpus = next((flavor, amount) for (flavor, resource), amount in run.usage.items() if resource == GPU)
    begin, end = run.admitted_at, END if run.ended_at is None else run.ended_at
    asked = max((at for at, phase in record.phases if phase is Phase.CHECKS and at <= begin), default=begin)
    metrics.add(begin, 1, "multikueue_workloads_admitted_total", home, **queue, cluster_=worker)
    for cluster, used in ((home, "multikueue"), (worker, flavor)):
        metrics.hold(begin, end, 1, "kueue_admitted_active_workloads", cluster, **queue)
        metrics.add(begin, 1, "kueue_admitted_workloads_total", cluster, **queue)
        metrics.add(begin, 1, "kueue_local_queue_admitted_workloads_total", cluster, **team)
        metrics.observe(begin, begin - record.arrived_at, "kueue_admission_wait_time_seconds", cluster, **queue)
        amount = {"flavor": used, "resource": GPU}
        metrics.hold(begin, end, gpus, "kueue_cluster_queue_resource_usage", cluster, **queue, **amount)
        metrics.hold(begin, end, gpus, "kueue_local_queue_resource_usage", cluster, **team, **amount)
    metrics.observe(begin, begin - asked, "kueue_admission_checks_wait_time_seconds", worker, **queue)
    if run.started_at is not None:
        waited = run.started_at - begin
        metrics.observe(run.started_at, waited, "kueue_admitted_until_ready_wait_time_seconds", worker, **queue)
        machines[worker].use(flavor, gpus, run.started_at, end)
