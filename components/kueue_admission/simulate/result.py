"""The result of a simulation, as one versioned JSON document.

`schemaVersion` 1: `workloads[]` in order of arrival, each with namespace, name, clusterQueue, cluster (null where there
is only one), state, reason (Kueue's token), message, notKnown (why it is not known whether it starts, else null),
flavors {podSet: {resource: flavor}}, arrivedAt, quotaReservedAt, admittedAt, finishedAt (null for what has not
happened), evictions[] {time, reason, preemptor}, copiesThrownAway (copies with quota on workers that never ran) and
runs[] {cluster, flavors, admittedAt, startedAt, endedAt, end, reclaimedAt[]}. `rows[]`, without times: see `rows`.
Times are seconds; second 0 is the earliest creationTimestamp of the input, or the beginning of a workload file.
`end` is {reason, at}: see `clock.EndReason`. `contended[]` {cluster, preemptor, preempted, times}: see
`contention`. `budgets[]` {team, of, used, limit, per, begin}: see `UsedBudget`. `goals[]` {path, of, limit, quantile,
priorityClass, standing, found, why}: see `goals.Judged`. `snapshots[]` {at, queues {queue: {pending, admitted}}, nodes
{pool: number}}: see `Snapshot`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from kueue_admission.decide.amounts import is_unlimited
from kueue_admission.decide.model import Objects
from kueue_admission.read.goals import Judged
from kueue_admission.simulate.clock import End, EndReason
from kueue_admission.simulate.cluster import SimulatedCluster
from kueue_admission.simulate.contention import Contended
from kueue_admission.simulate.records import Record, Run
from kueue_admission.simulate.rows import job_rows

SCHEMA_VERSION: Final = 1
"""Of the JSON document; larger where a reader of the former would misread it."""

_OVER: Final = End(EndReason.NOTHING_MORE, 0.0)


class Quota(NamedTuple):
    """The nominal quota of a ClusterQueue, or with the queue "" of a Cohort."""

    cluster: str
    queue: str
    flavor: str
    resource: str
    nominal: int


def quotas_of(cluster: str, objects: Objects) -> Iterator[Quota]:
    """Every quota of a cluster's objects that has a limit. A manager's only sum up those of its workers."""
    owners = [(queue.name, queue.groups) for queue in objects.cluster_queues]
    for name, groups in [*owners, *(("", cohort.groups) for cohort in objects.cohorts)]:
        for flavors in (flavors for group in groups for flavors in group.flavors):
            for resource, quota in flavors.quotas:
                if not is_unlimited(quota.nominal):
                    yield Quota(cluster, name, flavors.flavor, resource, quota.nominal)


class UsedBudget(Protocol):
    """How far an amount of a team's budget is used up; as text, a sentence. Who runs fleets of teams makes these."""

    @property
    def percent(self) -> int:
        """How much of it."""

    @property
    def is_near(self) -> bool:
        """Whether it is nearly used up, or exceeded, or may be."""

    def to_dict(self) -> dict[str, object]:
        """Its fields, as in the result."""


class Snapshot(NamedTuple):
    """What `kubectl get clusterqueues` and `kubectl get nodes` print at a time of the clock.

    `nodes` are those of node pools, by `cluster/pool` where several clusters have nodes. Where GKE makes pools itself
    the name is the flavor, and the number is that of its pods.
    """

    at: float
    queues: Mapping[str, Mapping[str, int]]
    nodes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Result:
    """What happened: the records, the second 0 of their clock, and `until` in seconds from it (None: to the end)."""

    records: tuple[Record, ...]
    origin: float = 0.0
    until: float | None = None
    seed: int = 0
    teams: Mapping[str, str] = field(default_factory=dict)
    """The team of each namespace that has one."""
    end: End = _OVER
    """Why it is over, and when."""
    contended: tuple[Contended, ...] = ()
    """Who was preempted for the same workload again and again."""
    budgets: tuple[UsedBudget, ...] = ()
    """How far teams' budgets are used up."""
    quotas: tuple[Quota, ...] = ()
    """Of the clusters that run jobs, from second 0 on."""
    later_quotas: tuple[tuple[float, tuple[Quota, ...]], ...] = ()
    """All of them again, from each second on at which some change."""
    begin: datetime | None = None
    """What time second 0 is; None: not known."""
    goals: tuple[Judged, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    accelerator_usd: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """What a GPU or TPU chip costs for an hour, by cluster and flavor, as far as it is known."""

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        end: End,
        clusters: Iterable[SimulatedCluster],
        *,
        origin: float = 0.0,
        until: float | None = None,
        seed: int = 0,
        teams: Mapping[str, str] | None = None,
        accelerator_usd: Mapping[tuple[str, str], float] | None = None,
        job_clusters: Collection[str] | None = None,
    ) -> Result:
        """What is known at the end of a run of these clusters: the records of all jobs that have come by then.

        `job_clusters` are those that run jobs; None: all.
        """
        all_came = end.reason is EndReason.NOTHING_MORE
        arrived_records = tuple(record for record in records if all_came or record.arrived_at <= end.at)
        clusters = list(clusters)
        contended_pairs = tuple(pair for cluster in clusters for pair in cluster.contended())
        quotas = tuple(
            quota
            for cluster in clusters
            if job_clusters is None or cluster.name in job_clusters
            for quota in quotas_of(cluster.name, cluster.engine.objects)
        )
        return cls(
            arrived_records,
            origin,
            until,
            seed,
            teams or {},
            end,
            contended_pairs,
            quotas=quotas,
            accelerator_usd=accelerator_usd or {},
        )

    def as_json(self) -> dict[str, Any]:
        """The document."""
        records = sorted(self.records, key=lambda record: (record.arrived_at, record.namespace, record.name))
        return {
            "schemaVersion": SCHEMA_VERSION,
            "seed": self.seed,
            "until": self.until,
            "workloads": [self._workload(record) for record in records],
            "rows": [row.as_json() for row in job_rows(self.records)],
            "end": {"reason": self.end.reason.value, "at": self.seconds(self.end.at)},
            "contended": [{**asdict(pair), "cluster": pair.cluster or None} for pair in self.contended],
            "budgets": [budget.to_dict() for budget in self.budgets],
            "goals": [goal.to_dict() for goal in self.goals],
            "snapshots": [snapshot._asdict() for snapshot in self.snapshots],
        }

    def _workload(self, record: Record) -> dict[str, Any]:
        return {
            "namespace": record.namespace,
            "name": record.name,
            "clusterQueue": record.cluster_queue or None,
            "cluster": record.cluster,
            "state": record.state.value,
            "reason": record.reason,
            "message": record.message,
            "notKnown": record.not_known or None,
            "flavors": record.flavors,
            "arrivedAt": self.seconds(record.arrived_at),
            "quotaReservedAt": self.seconds(record.reserved_at),
            "admittedAt": self.seconds(record.admitted_at),
            "finishedAt": self.seconds(record.finished_at),
            "evictions": [
                {
                    "time": self.seconds(eviction.time),
                    "reason": eviction.reason,
                    **({"preemptor": eviction.preemptor} if eviction.preemptor else {}),
                }
                for eviction in record.evictions
            ],
            "runs": [self._run(run) for run in record.runs],
            "copiesThrownAway": record.copies_thrown_away,
        }

    def _run(self, run: Run) -> dict[str, Any]:
        return {
            "cluster": run.cluster,
            "flavors": list(run.flavors),
            "admittedAt": self.seconds(run.admitted_at),
            "startedAt": self.seconds(run.started_at),
            "endedAt": self.seconds(run.ended_at),
            "end": run.end or None,
            "reclaimedAt": [self.seconds(time) for time in run.reclaimed],
        }

    def seconds(self, time: float | None) -> float | None:
        """A time of the records in seconds from second 0, to the millisecond."""
        return None if time is None else round(time - self.origin, 3)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long the workloads of one class waited: `Record.wait`, over those that have one."""

    name: str
    workloads: int
    admitted: int
    mean: float | None
    longest: float | None


def waiting_times(records: Iterable[Record]) -> list[Waiting]:
    """Waiting times by the records' label, or by ClusterQueue where they have none, sorted by name."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.group, []).append(record)
    return [_waiting(name, groups[name]) for name in sorted(groups)]


def _waiting(name: str, records: Sequence[Record]) -> Waiting:
    waits = [wait for record in records if (wait := record.wait) is not None]
    mean = math.fsum(waits) / len(waits) if waits else None
    return Waiting(name, len(records), len(waits), mean, max(waits, default=None))
