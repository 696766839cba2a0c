"""What a simulation and a rehearsal of the same stack say of the same jobs, side by side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.rows import JobRow, job_rows
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import read_workload_file

Told = tuple[tuple[str, tuple[str, ...], bool], ...]
"""Of one job, each place where it ran: cluster, flavors, and whether it was preempted there."""


def simulated(
    fleet: FleetSpec, jobs: Sequence[Mapping[str, Any]], until: float | None, **workload: Any
) -> list[JobRow]:
    """The rows of a simulation; `workload` are fields of the workload file."""
    file = read_workload_file(json.dumps(workload), "workload")
    documents = [Document(f"jobs[{number}]", job) for number, job in enumerate(jobs)]
    return job_rows(prepare_fleet(fleet, file, Delays(), manifests=documents, until=until).run().records)


def rehearsed_rows(job: str, cluster: str, flavors: Sequence[Sequence[str]], preempted: int) -> list[JobRow]:
    """The rows of a job that a rehearsal followed; `flavors` has those of each time it ran, one after the other."""
    if not flavors:
        return [JobRow(job, "", (), preempted=False, next="")]
    following = [*(" ".join((cluster, *after)) for after in flavors[1:]), ""]
    return [
        JobRow(job, cluster, tuple(item), preempted=number < preempted, next=after)
        for number, (item, after) in enumerate(zip(flavors, following, strict=True))
    ]


def stories(rows: Iterable[JobRow]) -> dict[str, Told]:
    """The rows by job."""
    result: dict[str, Told] = {}
    for row in rows:
        result[row.job] = (*result.get(row.job, ()), (row.cluster, row.flavors, row.preempted))
    return result


def table(simulation: Iterable[JobRow], rehearsal: Iterable[JobRow]) -> str:
    """Both, job by job; rows that differ are marked."""
    one, two = stories(simulation), stories(rehearsal)
    lines = [f"  {'job':<40} {'simulation':<44} rehearsal"]
    for job in sorted({*one, *two}):
        here, there = _shown(one.get(job, ())), _shown(two.get(job, ()))
        lines.append(f"{' ' if here == there else '!'} {job:<40} {here:<44} {there}")
    return "\n".join(lines)


def _shown(story: Told) -> str:
    places = [f"{' '.join((cluster, *flavors))}{' (preempted)' if gone else ''}" for cluster, flavors, gone in story]
    return ", then ".join(places) or "is not there"
