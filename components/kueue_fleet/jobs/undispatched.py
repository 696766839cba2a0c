"""Jobs that Kueue admits without a flavor, as it counts nothing of what they request; a manager without a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Final

from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.job_rules import JOB_NEVER_STARTS
from kueue_admission.kernel.names import ACCELERATOR_RESOURCES
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.suggest import nearest
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
from kueue_fleet.jobs.queued_job import job_fault

_NEAR: Final = 0.92
"""Names of one vendor's resources are alike: nvidia.com/gpumem is not nvidia.com/gpu."""


def warn_of_undispatched(fleet: FleetSpec, jobs: Iterable[FleetJob]) -> Iterator[Problem]:
    """The first of those that are alike; one whose other requests Kueue does not ignore waits instead."""
    seen_keys = set()
    for job in jobs:
        name, requested_amounts = job.record.cluster_queue, dict(job.workload.requests)
        alike = (name, *sorted(requested_amounts))
        if alike not in seen_keys and (fault := uncounted(fleet, name, requested_amounts)):
            seen_keys.add(alike)
            path = f"workload {job.record.namespace}/{job.record.name}"
            yield fault.rule.at(path, fault.wrong, fault.fix, severity="warning")


def respelt(fleet: FleetSpec, queue: str, requested_names: Set[str]) -> str:
    """What its containers may mean by a resource that its queue does not count; empty: no such name is near one."""
    entry = fleet.queue(queue)
    resources = covered_on(fleet, entry, fleet.home) if entry is not None else ()
    known_names = dict.fromkeys((*resources, *ACCELERATOR_RESOURCES))
    for name in sorted(requested_names - known_names.keys()):
        near = nearest(name, known_names, likeness=_NEAR)
        if near is not None and near not in requested_names:
            return f"did you mean {near} for {name}?"
    return ""


def uncounted(fleet: FleetSpec, queue: str, requests: Mapping[str, int]) -> Fault | None:
    """What becomes of a job with these requests where it is submitted; None: something of it counts, or it waits.

    Source of a cluster that runs its own jobs: https://github.com/kubernetes-sigs/kueue/issues/891.
    """
    entry, home = fleet.queue(queue), fleet.home
    resources = covered_on(fleet, entry, home) if entry is not None else ()
    waits = any(requests.values()) and not ignores_undeclared(fleet, home)
    counts = EVERY_POD in resources or not requests.keys().isdisjoint(resources)
    if not resources or waits or counts or may_be_added(fleet, queue):
        return None
    fix = respelt(fleet, queue, requests.keys()) or f"request {' or '.join(sorted(resources))} in its containers"
    if needs_a_counted_request(fleet, home):
        return Fault(not_dispatched(fleet, queue), fix, JOB_NEVER_STARTS)
    if not fleet.cluster(home).runs_jobs:
        return None
    wrong = (
        f"requests nothing that queue {queue} counts ({' or '.join(resources)}), so that Kueue admits any number of "
        "such jobs, gives them no flavor, and their pods run on any node"
    )
    return job_fault(wrong, f"{fix}, or cover {EVERY_POD} in the queue")
