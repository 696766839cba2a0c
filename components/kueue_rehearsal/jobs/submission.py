"""Submitting jobs to a rehearsal, and following them until they are settled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from kueue_admission.api.job_kinds import JobKind
from kueue_admission.api.resources import WORKLOADS
from kueue_admission.kernel.names import QUEUE_LABEL
from kueue_admission.read.printed import Printed, PrintedJob, PrintedWorkload
from kueue_rehearsal.jobs.kinds import JOB_KINDS, USED_KINDS
from kueue_rehearsal.jobs.views import (
    Beyond,
    JobView,
    Placement,
    admitted_placements,
    all_have_workloads,
    in_vain,
    only_wait_for_each_other,
    view_jobs,
)
from kueue_rehearsal.paths import RehearsalError

if TYPE_CHECKING:
    from kueue_rehearsal.jobs.clients import ClusterClients

_PODS_KIND = ("", "v1", "pods")
_REPLICA_SETS = ("apps", "v1", "replicasets")
_POLL_SECONDS = 0.5
QUIET_SECONDS = 10.0
"""How long nothing changes before jobs count as waiting for each other: Kueue looks at all of them again within it."""

Watch = Callable[[Mapping[str, Sequence[Mapping[str, Any]]], Mapping[str, Sequence[Mapping[str, Any]]]], None]
"""Takes the Workloads and the pods of each cluster, by its name."""


def submit_jobs(
    clients: ClusterClients,
    home: str,
    documents: Sequence[Mapping[str, Any]],
    submissions: list[dict[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """Create jobs in the cluster `home`, all in order, or none; before that, in every cluster, what they use.

    MultiKueue copies only the jobs. What they use are the objects of `USED_KINDS`.

    Returns the jobs as the API server keeps them, in SUBMITTED if it is given, where each is as soon as it is created.

    Raises:
        RehearsalError: with the reason of each object that the cluster refuses; no job has been created then.
    """
    jobs = [document for document in documents if document["kind"] in JOB_KINDS]
    refusals = []
    # What jobs use is there when they are checked: Trainer refuses a TrainJob without its runtime.
    used_appliers = (
        partial(clients.apply, cluster, document)
        for document in documents
        if document["kind"] in USED_KINDS
        for cluster in clients.names
    )
    for write in chain(used_appliers, (partial(clients.create, home, job, dry_run=True) for job in jobs)):
        try:
            write()
        except RehearsalError as refused:
            refusals.append(str(refused))
    if refusals:
        raise RehearsalError("\n".join([*refusals, "no job has been submitted; correct these and run it again"]))
    submissions = [] if submissions is None else submissions
    for job in jobs:
        submissions.append({**clients.create(home, job), "kind": job["kind"]})
    return submissions


def unfinished_jobs(clients: ClusterClients, home: str, kinds: Iterable[JobKind]) -> list[dict[str, Any]]:
    """The queued jobs of KINDS that were submitted to `home` and have not ended."""
    over = {
        owner.uid
        for workload in map(PrintedWorkload.of, clients.list(home, *WORKLOADS))
        if workload.is_true("Finished")
        for owner in workload.owners
    }
    jobs = []
    for kind in kinds:
        for item in clients.list(home, kind.group, kind.version, kind.plural):
            job = PrintedJob.of(item)
            has_ended = job.uid in over or job.ended_at is not None
            if QUEUE_LABEL in job.labels and not job.owners and not has_ended:
                jobs.append({**item, "kind": kind.kind})
    return sorted(jobs, key=lambda job: (job["metadata"]["creationTimestamp"], job["metadata"]["name"]))


def follow_jobs(
    clients: ClusterClients,
    home: str,
    jobs: Sequence[Mapping[str, Any]],
    timeout_seconds: float,
    beyond: Beyond = lambda cluster, workload: None,
    watch: Watch | None = None,
    submission: Future[None] | None = None,
) -> Iterator[list[JobView]]:
    """A view of every job, twice a second, until all are settled or `timeout_seconds` have passed.

    Jobs that wait for each other alone are settled when nothing has changed for some seconds. `watch` gets each time
    what there is of Workloads and pods. `submission` is what still adds to JOBS: the first may end before the last is
    submitted. The time counts from its end, and what it raises is raised.
    """
    deadline = time.monotonic() + timeout_seconds
    placements: dict[str, Placement] = {}
    seen_views: list[object] = []
    change_time = time.monotonic()
    while True:
        if submission is not None and submission.done():
            submission.result()
            submission, deadline = None, time.monotonic() + timeout_seconds
        complete = submission is None
        submitted_jobs = [Printed.of(job) for job in tuple(jobs)]
        listed_workloads = {name: clients.list(name, *WORKLOADS) for name in clients.names}
        workloads = {
            name: [PrintedWorkload.of(manifest) for manifest in manifests]
            for name, manifests in listed_workloads.items()
        }
        placements |= admitted_placements(workloads, home)
        now = datetime.now(UTC)  # noqa: TID251 - the edge has the clock
        if watch is not None:
            watch(listed_workloads, {name: clients.list(name, *_PODS_KIND) for name in clients.names})
        owners = _owners(clients, home) if any(job.kind == "Deployment" for job in submitted_jobs) else {}
        views = view_jobs(submitted_jobs, home, workloads, placements, now, beyond, owners)
        if seen_views != (seen_views := [replace(view, waited_seconds=0.0) for view in views]):
            change_time = time.monotonic()
        # Kueue may not have seen a job that has no Workload yet.
        quiet = time.monotonic() - change_time > QUIET_SECONDS and all_have_workloads(
            submitted_jobs, workloads[home], owners
        )
        if complete and quiet and only_wait_for_each_other(workloads, home, beyond):
            views = [in_vain(view) for view in views]
        if submitted_jobs or complete:
            yield views
        if complete and (all(view.settled for view in views) or time.monotonic() > deadline):
            return
        time.sleep(_POLL_SECONDS)


def _owners(clients: ClusterClients, home: str) -> dict[str, str]:
    """The uid of what owns a pod or ReplicaSet, by its own: Kueue makes a Workload for each pod of a Deployment."""
    items = map(Printed.of, chain(clients.list(home, *_PODS_KIND), clients.list(home, *_REPLICA_SETS)))
    return {item.uid: owner.uid for item in items for owner in item.owners[:1]}
