"""Submitting a file of jobs to a rehearsal, and following them until nothing more will happen by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kueue_fleet.kueue_api import syntax
from kueue_fleet.kueue_api.names import QUEUE_LABEL
from kueue_fleet.rehearsal.jobs.kinds import JOB_KINDS, USED_KINDS
from kueue_fleet.rehearsal.jobs.views import (
    Beyond,
    JobView,
    Placement,
    admitted_placements,
    in_vain,
    only_wait_for_each_other,
    view_jobs,
)
from kueue_fleet.rehearsal.paths import RehearsalError
from kueue_fleet.rehearsal.user_files import read_documents

if TYPE_CHECKING:
    from kueue_fleet.rehearsal.jobs.clients import ClusterClients

_PODS = {"Job": ("spec", "template", "spec", "containers"), "JobSet": ("spec", "replicatedJobs")}
"""Where each kind has the list of what runs: the API server, which knows all of the form, is asked much later."""
_WORKLOADS = ("kueue.x-k8s.io", "v1beta2", "workloads")
_PODS_KIND = ("", "v1", "pods")
_POLL_SECONDS = 0.5
QUIET_SECONDS = 10.0
"""How long nothing changes before jobs count as waiting for each other: Kueue looks at all of them again within it."""
_ENDED = {"Complete", "Completed", "Failed"}

Watch = Callable[[Mapping[str, Sequence[Mapping[str, Any]]], Mapping[str, Sequence[Mapping[str, Any]]]], None]
"""Takes the Workloads and the pods of each cluster, by its name."""


def read_jobs(file: Path) -> list[dict[str, Any]]:
    """The Jobs and JobSets in FILE, with the ConfigMaps, Secrets and Services beside them, which they use.

    Raises:
        RehearsalError: the file cannot be read, or a job or an object is wrong; every problem of the file is in it.
    """
    loaded = read_documents(file, "name a YAML file of Jobs and JobSets with --jobs")
    documents = [item for document in loaded for item in _items(document.data)]
    problems = [problem for number, document in enumerate(documents) for problem in _job_problems(number, document)]
    if not problems and not any(document["kind"] in JOB_KINDS for document in documents):
        problems = ["has no jobs; put Jobs or JobSets in it, or leave --jobs out"]
    if problems:
        raise RehearsalError("\n".join(f"{file}: {problem}" for problem in problems))
    return documents


def _items(document: Any) -> list[Any]:
    if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]


def _job_problems(number: int, document: object) -> Iterator[str]:
    kinds = " or ".join(JOB_KINDS)
    if not isinstance(document, dict):
        yield f"jobs[{number}]: is not a Kubernetes object; write a {kinds}"
        return
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in JOB_KINDS | USED_KINDS:
        wrong = "is missing" if kind is None else f"{kind!r} cannot be submitted"
        yield f"jobs[{number}].kind: {wrong}; use {kinds}"
        return
    metadata = document.get("metadata") or {}
    if not isinstance(metadata, dict) or not isinstance(metadata.get("labels") or {}, dict):
        yield f"jobs[{number}].metadata: it or its labels are not a map; write their fields as 'name: value'"
        return
    if kind in USED_KINDS:
        if not isinstance(metadata.get("name"), str):
            yield f"jobs[{number}].metadata.name: is missing; give the {kind} the name that the job uses"
        return
    yield from (f"jobs[{number}].{problem}" for problem in _spec_problems(document, _PODS[kind]))
    if not (metadata.get("name") or metadata.get("generateName")):
        yield f"jobs[{number}].metadata.name: is missing; give the {document['kind']} a name or a generateName"
    elif reason := syntax.job_name(str(metadata.get("name") or f"{metadata['generateName']}xxxxx")):
        yield f'jobs[{number}].metadata.name: "{metadata.get("name") or metadata["generateName"]}" {reason}'
    if not (metadata.get("labels") or {}).get(QUEUE_LABEL):
        yield f"jobs[{number}].metadata.labels: no {QUEUE_LABEL}; name the LocalQueue it waits in"


def _spec_problems(document: Mapping[str, Any], path: Sequence[str]) -> Iterator[str]:
    value: Any = document
    for depth, field in enumerate(path, 1):
        value, last = value.get(field), depth == len(path)
        if not isinstance(value, list if last else dict) or not value:
            wrong = "is missing or empty" if not value else f"is not a {'list' if last else 'map'}"
            yield f"{'.'.join(path[:depth])}: {wrong}; write {'a list of them' if last else 'its fields below it'}"
            return


def submit_jobs(clients: ClusterClients, home: str, documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Create what `read_jobs` has read in the cluster `home`: what jobs use, then the jobs in order, all or nothing.

    Returns the jobs as the API server keeps them.

    Raises:
        RehearsalError: with the reason of each object that the cluster would refuse; none has been created then.
    """
    jobs = [document for document in documents if document["kind"] in JOB_KINDS]
    writes = [(clients.apply, document) for document in documents if document["kind"] in USED_KINDS]
    refusals = []
    for write, document in (*writes, *((clients.create, job) for job in jobs)):
        try:
            write(home, document, dry_run=True)
        except RehearsalError as refused:
            refusals.append(str(refused))
    if refusals:
        raise RehearsalError("\n".join([*refusals, "no job has been submitted; correct these and run it again"]))
    for write, document in writes:
        write(home, document)
    return [{**clients.create(home, job), "kind": job["kind"]} for job in jobs]


def unfinished_jobs(clients: ClusterClients, home: str, *, job_sets: bool) -> list[dict[str, Any]]:
    """The queued Jobs, and JobSets where there are any, that were submitted to `home` and have not ended."""
    found = []
    for kind, of_kind in JOB_KINDS.items():
        if kind == "JobSet" and not job_sets:
            continue
        for job in clients.list(home, *of_kind):
            metadata, status = job["metadata"], job.get("status") or {}
            ended = {each["type"] for each in status.get("conditions") or () if each["status"] == "True"} & _ENDED
            if QUEUE_LABEL in (metadata.get("labels") or {}) and not metadata.get("ownerReferences") and not ended:
                found.append({**job, "kind": kind})
    return sorted(found, key=lambda job: (job["metadata"]["creationTimestamp"], job["metadata"]["name"]))


def follow_jobs(
    clients: ClusterClients,
    home: str,
    jobs: Sequence[Mapping[str, Any]],
    timeout_seconds: float,
    beyond: Beyond = lambda cluster, workload: None,
    watch: Watch | None = None,
) -> Iterator[list[JobView]]:
    """A view of every job, twice a second, until all are settled or `timeout_seconds` have passed.

    Jobs that wait for each other alone are settled when nothing has changed for some seconds. `watch` gets each time
    what there is of Workloads and pods.
    """
    deadline = time.monotonic() + timeout_seconds
    placements: dict[tuple[str, str], Placement] = {}
    seen: list[object] = []
    changed = time.monotonic()
    while True:
        workloads = {name: clients.list(name, *_WORKLOADS) for name in clients.names}
        placements |= admitted_placements(workloads, home)
        now = datetime.now(UTC)  # noqa: TID251 - the edge has the clock
        if watch is not None:
            watch(workloads, {name: clients.list(name, *_PODS_KIND) for name in clients.names})
        views = view_jobs(jobs, home, workloads, placements, now, beyond)
        if seen != (seen := [replace(view, waited_seconds=0.0) for view in views]):
            changed = time.monotonic()
        if time.monotonic() - changed > QUIET_SECONDS and only_wait_for_each_other(workloads, home, beyond):
            views = [in_vain(view) for view in views]
        yield views
        if all(view.settled for view in views) or time.monotonic() > deadline:
            return
        time.sleep(_POLL_SECONDS)
