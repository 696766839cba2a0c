"""Finds a job of a live fleet: its Workload where it was submitted, and its copies and pods on workers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kueue_admission.api.resources import CONFIG_MAP, KUEUE_NAMESPACE, RESOURCES
from kueue_admission.cli import console
from kueue_admission.kernel import syntax
from kueue_admission.kernel.names import KUEUE_API, MULTIKUEUE_CONTROLLER, ORIGIN_LABEL
from kueue_admission.kernel.suggest import instead
from kueue_admission.read.printed import PrintedWorkload
from kueue_admission.read.printed_pods import PrintedPod
from kueue_fleet.cli.contexts import check_readable, connect, context_of
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.beside import beside
from kueue_fleet.kube.lists import list_of
from kueue_fleet.kube.requests import READ_SECONDS, api_path, read_log, request
from kueue_fleet.status.conditions import NOT_DISPATCHED, why_not_dispatched
from kueue_fleet.status.job import (
    PODS_SELECTOR,
    JobName,
    JobStatus,
    job_status,
    jobs_called,
    latest_event,
    owner_of,
    parse_job_name,
    pods_of,
    runs_on,
)

if TYPE_CHECKING:
    from kueue_admission.explain import Explanation
    from kueue_fleet.fleet_file import FleetSpec

_EXPLAINED: Final = {
    f"/apis/{KUEUE_API}": (
        "ResourceFlavor",
        "Cohort",
        "ClusterQueue",
        "LocalQueue",
        "AdmissionCheck",
        "Topology",
        "Workload",
    ),
    "/api/v1": ("Namespace", "Node", "LimitRange"),
    "/apis/node.k8s.io/v1": ("RuntimeClass",),
}
"""What matters to an explanation, by API."""
_CONFIGURATION: Final = f"/api/v1/namespaces/{KUEUE_NAMESPACE}/configmaps/{CONFIG_MAP}"
_MOST_LOGS: Final = 8
_MOST_EVENTS: Final = 3
_LOG_END: Final = {"tailLines": "200", "limitBytes": "100000"}
_FIXES: Final = {
    0: "check that you reach the cluster",
    401: "log in again",
    403: "ask for the rights of a member of the team (docs/teams.md)",
    404: "give --context with the cluster that jobs are submitted to",
}
"""What to do where Workloads cannot be read, by the status of the answer."""


class Clusters:
    """The clusters of a kubeconfig, each through its context, with the rights of its user.

    Without a fleet the contexts have the names of the clusters.
    """

    def __init__(self, command: str, kubeconfig: Path | None, fleet: FleetSpec | None = None) -> None:
        check_readable(kubeconfig)
        self._command, self.kubeconfig, self._fleet = command, kubeconfig, fleet
        self._clients: dict[str, Any] = {}

    def ask(self, cluster: str, path: str, params: Mapping[str, str] | None = None) -> Json:
        """What is at `path`. Raises ApiError; CommandError if there is no such context."""
        return request(self._client(cluster), "GET", path, params=params, seconds=READ_SECONDS)

    def listed(self, cluster: str, path: str, params: Mapping[str, str] | None = None) -> list[Json]:
        """The objects in the list at `path`. Raises as `ask` does."""
        return list_of(self.ask(cluster, path, params))

    def read(self, cluster: str, path: str, what: str, params: Mapping[str, str] | None = None) -> list[Json]:
        """The same. Raises CommandError where WHAT cannot be read."""
        try:
            return self.listed(cluster, path, params)
        except ApiError as failed:
            fix = _FIXES.get(failed.status, "try again")
            if failed.status == 403 and "/namespaces/" not in path:
                fix = f"ask for the right to list {path.rpartition('/')[2]} in all namespaces"
            raise console.CommandError(f"{cluster}: {what} cannot be read: {failed}; {fix}") from None

    def admission_objects(self, cluster: str) -> list[Json]:
        """What Kueue's decisions on a cluster go by. Raises as `ask` does."""
        objects: list[Json] = []
        for api, kinds in _EXPLAINED.items():
            for kind in kinds:
                # What a list has does not say its kind.
                items = self.listed(cluster, f"{api}/{RESOURCES[kind]}")
                objects += ({"apiVersion": api.split("/", 2)[-1], "kind": kind, **item} for item in items)
        with suppress(ApiError):  # Members of teams may not read it; then --fair-sharing says what it has.
            objects.append({"apiVersion": "v1", "kind": "ConfigMap", **self.ask(cluster, _CONFIGURATION)})
        return objects

    def log(self, cluster: str, path: str, params: Mapping[str, str]) -> str:
        """The log at `path`. Raises as `ask` does."""
        return read_log(self._client(cluster), path, params, READ_SECONDS)

    def create(self, cluster: str, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """Create an object in the collection at `path`; with `dry_run` only have it checked, webhooks and misspelt
        fields included. Raises as `ask` does."""
        params = {"dryRun": "All", "fieldValidation": "Strict"} if dry_run else None
        return request(self._client(cluster), "POST", path, body, params)

    def delete(self, cluster: str, path: str, uid: str) -> None:
        """Delete what is at `path` if it still is the object `uid`, and what it owns. Raises ApiError."""
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        request(self._client(cluster), "DELETE", path, body)

    def _client(self, cluster: str) -> Any:
        if cluster not in self._clients:
            self._clients[cluster] = connect(self._command, cluster, self.kubeconfig, self._fleet)
        return self._clients[cluster]


@dataclass
class LiveJob:
    """A job that was found. `home` is the cluster it was submitted to, `workload` its Workload there."""

    clusters: Clusters
    home: str
    workload: PrintedWorkload
    problems: list[str] = field(default_factory=list)
    """What could not be read of it."""
    _pods: list[PrintedPod] | None = None

    @property
    def namespace(self) -> str:
        """Its namespace, which is the same on each cluster."""
        return self.workload.namespace

    @property
    def where(self) -> str:
        """The cluster with its pods; empty: none yet."""
        return runs_on(self.home, self.workload)

    @property
    def is_copy(self) -> bool:
        """Whether MultiKueue made it here, so that it was submitted elsewhere."""
        return ORIGIN_LABEL in self.workload.labels

    def pods(self) -> list[PrintedPod]:
        """Its pods where it runs, read once. Raises ApiError, or CommandError if there is no such context."""
        if self._pods is None:
            path = f"/api/v1/namespaces/{self.namespace}/pods"
            pods = self.clusters.listed(self.where, path, {"labelSelector": PODS_SELECTOR}) if self.where else []
            self._pods = pods_of(self.workload, map(PrintedPod.of, pods))
        return self._pods

    def log_ends(self) -> str:
        """The last lines of each of its pods, of the first ones where there are many. Raises as `pods` does."""
        answers = {}
        for pod in self.pods()[:_MOST_LOGS]:
            path = f"/api/v1/namespaces/{self.namespace}/pods/{pod.name}/log"
            answers[pod.name] = beside(partial(self.clusters.log, self.where, path, _LOG_END))
        parts = []
        for name, answer in answers.items():
            try:
                text = answer.result()
            except ApiError as failed:
                text = f"Not known: {failed}"
            parts.append(f"{name} on {self.where}:\n{text.rstrip() or 'nothing yet'}\n")
        if len(self.pods()) > _MOST_LOGS:
            parts.append(f"and {len(self.pods()) - _MOST_LOGS} more pods; kueue-fleet logs has them")
        return "\n".join(parts) or "It has no pods now."

    def delete(self) -> None:
        """Delete the job, or each pod of a group of pods; a Workload without any is deleted itself. Raises ApiError."""
        owners = self.workload.owners
        for owner in owners:
            path = collection_of(owner.api_version, owner.kind, self.namespace)
            self.clusters.delete(self.home, f"{path}/{owner.name}", owner.uid)
        if not owners:
            self.clusters.delete(self.home, self._path(), self.workload.uid)

    def status(self) -> JobStatus:
        """How it is; what cannot be read is among `problems`."""
        copies, pods = {}, []
        path = self._path()
        answers = {name: beside(partial(self.clusters.ask, name, path)) for name in self.workload.nominated}
        for worker, answer in answers.items():
            try:
                copies[worker] = PrintedWorkload.of(answer.result())
            except (ApiError, console.CommandError) as failed:
                if not (isinstance(failed, ApiError) and failed.is_not_found):
                    self.problems.append(f"{worker}: {failed}")
        events: dict[str, str] = {}
        try:
            pods = self.pods()
            events = self._events(pods)
        except (ApiError, console.CommandError) as failed:
            self.problems.append(f"{self.where}: {failed}")
        job_state = job_status(self.home, self.workload, copies, pods, events)
        if why := why_not_dispatched(self.workload) if not pods and self._is_dispatched() else "":
            return replace(job_state, reasons={self.home: (NOT_DISPATCHED, why)})
        return job_state

    def _is_dispatched(self) -> bool:
        """Whether its job says that MultiKueue runs it elsewhere."""
        for owner in self.workload.owners:
            with suppress(ApiError):  # Members may read jobs; of others nothing is said.
                path = collection_of(owner.api_version, owner.kind, self.namespace)
                job = self.clusters.ask(self.home, f"{path}/{owner.name}")
                return bool(job.get("spec", {}).get("managedBy") == MULTIKUEUE_CONTROLLER)
        return False

    def _events(self, pods: Sequence[PrintedPod]) -> dict[str, str]:
        """The latest event of the first pods that are Pending, by their names; of the job where it has no pod yet."""
        if not self.workload.is_true("Admitted") or self.workload.is_true("Finished"):
            return {}
        waiting = [("Pod", pod.name) for pod in pods if pod.phase == "Pending"]
        events = {}
        for kind, name in waiting[:_MOST_EVENTS] if pods else [owner_of(self.workload)]:
            selector = {"fieldSelector": f"involvedObject.kind={kind},involvedObject.name={name}"}
            event_list = self.clusters.listed(self.where, f"/api/v1/namespaces/{self.namespace}/events", selector)
            if event_list:
                events[name] = latest_event(event_list)
        return events

    def _path(self) -> str:
        return f"/apis/{KUEUE_API}/namespaces/{self.namespace}/workloads/{self.workload.name}"

    def explanations(self, *, fair_sharing: bool) -> list[Explanation]:
        """Why it waits, by Kueue's rules on the objects of every cluster that may take it.

        Raises ApiError if its user may not list the queues, and CommandError.
        """
        from kueue_admission.cli.dumps import Listed
        from kueue_admission.cli.explain import explain_clusters
        from kueue_admission.decide.errors import AdmissionError
        from kueue_fleet.fleet_simulation.explained_nodes import with_nodes

        now = time.time()
        clusters = (self.home, *self.workload.nominated)
        answers = {name: beside(partial(self.clusters.admission_objects, name)) for name in clusters}
        listings = [Listed(self.home, answers.pop(self.home).result(), now, fair_sharing=fair_sharing)]
        for worker, answer in answers.items():
            try:
                listings.append(Listed(worker, answer.result(), now, fair_sharing=fair_sharing))
            except (ApiError, console.CommandError) as failed:
                if (problem := f"{worker}: {failed}") not in self.problems:
                    self.problems.append(problem)
        try:
            return explain_clusters(listings, self.workload.key, with_nodes=with_nodes)
        except AdmissionError as refused:
            raise console.CommandError(str(refused)) from None


def collection_of(api_version: str, kind: str, namespace: str) -> str:
    """The API path of the objects of a kind in a namespace."""
    from kueue_admission.api.job_kinds import plural_of

    return f"{api_path(api_version)}/namespaces/{namespace}/{plural_of(kind)}"


def find_job(command: str, text: str, context: str | None, namespace: str | None, kubeconfig: Path | None) -> LiveJob:
    """The job that a user calls TEXT. Raises CommandError if there is none, or more than one."""
    job = parse_job(text, namespace)
    clusters = Clusters(command, kubeconfig)
    home, usual = context_of(kubeconfig, context)
    return job_on(clusters, home, job._replace(namespace=job.namespace or usual))


def job_on(clusters: Clusters, home: str, job: JobName) -> LiveJob:
    """The job on the cluster that it was submitted to. Raises CommandError if there is none, or more than one."""
    space = job.namespace
    path = f"/apis/{KUEUE_API}/namespaces/{space}/workloads"
    workloads = [PrintedWorkload.of(manifest) for manifest in clusters.read(home, path, f"the Workloads of {space}")]
    jobs = jobs_called(job, workloads)
    if not jobs:
        raise _missing(clusters, home, space, job, workloads)
    kinds = {owner_of(workload) for workload in jobs}
    if len(kinds) > 1:
        names = ", ".join(sorted(f"{kind.lower()}/{name}" for kind, name in kinds))
        raise console.mistyped(f"{job.name}: may be {names}; name one with its kind")
    return LiveJob(clusters, home, jobs[0])


def parse_job(text: str, namespace: str | None) -> JobName:
    """The name, with the namespace that the option gives. Raises CommandError."""
    try:
        job_name = parse_job_name(text)
    except ValueError as refused:
        raise console.mistyped(f"JOB {text!r}: {refused}") from None
    if namespace is None:
        return job_name
    if wrong := syntax.dns_label(namespace):
        raise console.mistyped(f"--namespace {namespace!r}: {wrong}")
    if job_name.namespace not in ("", namespace):
        raise console.mistyped(f"{text} and --namespace {namespace}: are two; leave one out")
    return job_name._replace(namespace=namespace)


def _missing(
    clusters: Clusters, home: str, space: str, job_name: JobName, workloads: Iterable[PrintedWorkload]
) -> console.CommandError:
    """What to say of a job that has no Workload: Kueue may not manage it."""
    from kueue_admission.explain.unmanaged import explain_unmanaged

    for kind, path in (("Job", "/apis/batch/v1"), ("JobSet", "/apis/jobset.x-k8s.io/v1alpha2")):
        if job_name.kind not in ("", kind):
            continue
        try:
            job = clusters.ask(home, f"{path}/namespaces/{space}/{kind.lower()}s/{job_name.name}")
        except ApiError:
            continue  # Not there, or not to be read: what follows is true of it.
        unmanaged_job = explain_unmanaged([{"kind": kind, **job}], f"{space}/{job_name.name}")
        if unmanaged_job is not None:
            return console.CommandError(
                f"{kind} {space}/{job_name.name}: {unmanaged_job.headline}; {unmanaged_job.next_step}"
            )
    known_owners = [owner_of(workload)[1] for workload in workloads]
    fix = instead(job_name.name, known_owners, "jobs") if known_owners else "give its namespace with --namespace"
    return console.CommandError(f"{home}: there is no job {job_name.name} in namespace {space}; {fix}")
