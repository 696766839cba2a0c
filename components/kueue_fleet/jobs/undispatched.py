"""Jobs that a manager admits without a worker, as Kueue counts nothing of what they request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kueue_admission.forms.form_rules import JOB_NEVER_STARTS
from kueue_admission.forms.problem import Problem
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.counted_requests import (
    EVERY_POD,
    covered_on,
    ignores_undeclared,
    may_be_added,
    needs_a_counted_request,
    not_dispatched,
)
from kueue_fleet.jobs.fleet_job import FleetJob


def warn_of_undispatched(fleet: FleetSpec, jobs: Iterable[FleetJob]) -> Iterator[Problem]:
    """The first of those that are alike; one whose other requests Kueue does not ignore waits instead."""
    if not needs_a_counted_request(fleet, fleet.home):
        return
    waits = not ignores_undeclared(fleet, fleet.home)
    covered = {queue.name: {*covered_on(fleet, queue, fleet.home)} for queue in fleet.queues_on(fleet.home)}
    seen = set()
    for job in jobs:
        name, requested = job.record.cluster_queue, dict(job.workload.requests)
        counted, alike = covered.get(name, {EVERY_POD}), (name, *sorted(requested))
        other = EVERY_POD in counted or not counted.isdisjoint(requested) or (waits and any(requested.values()))
        if other or alike in seen or may_be_added(fleet, name):
            continue
        seen.add(alike)
        path = f"workload {job.record.namespace}/{job.record.name}"
        fix = f"request {' or '.join(sorted(counted))} in its containers"
        yield JOB_NEVER_STARTS.at(path, not_dispatched(fleet, name), fix, severity="warning")
