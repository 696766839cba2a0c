"""Which clusters there are, and the multiKueue section that joins them.

Source: kueue@v0.19.2 apis/kueue/v1beta2/multikueue_types.go; Google's regions: spec.regions.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.api.multi_kueue import MOST_CLUSTERS
from kueue_admission.kernel import suggest
from kueue_admission.kernel.form_rules import EXCLUDED, NEEDED, UNKNOWN_NAME, listed_twice
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.accounts import account_address
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.fleet import Placed
from kueue_fleet.fleet_file.rules.clusters import (
    ACCOUNT_ELSEWHERE,
    NO_WORKERS,
    ROLES,
    RUNS_NO_JOBS,
    TOO_MANY_WORKERS,
    UNLISTED_WORKER,
)
from kueue_fleet.fleet_file.rules.files import UNKNOWN_REGION, UNUSED
from kueue_fleet.fleet_file.worker_tokens import token_credentials

MAX_WORKERS = 100
"""The largest fleet that `make bench` measures; a queue is on at most MOST_CLUSTERS of the workers."""


def account_elsewhere(path: str, address: str | None, project: str) -> Iterator[Problem]:
    """What is likely wrong with the account of nodes in a project."""
    if address is not None and not address.endswith(account_address("", project)):
        theirs = address.partition("@")[2].partition(".iam.")[0]
        wrong = f"is an account of {theirs}, and the nodes are in {project}"
        yield ACCOUNT_ELSEWHERE.at(path, wrong, "name one of that project, or allow it to be used there")


@entry_check("clusters")
def _node_account(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    path = f"{scope.path(cluster)}.nodeServiceAccount"
    yield from account_elsewhere(path, cluster.node_service_account, scope.fleet.project_of(cluster.name))


@entry_check("clusters")
def _region(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    known_regions = scope.known_regions
    if not cluster.region or cluster.region in known_regions:
        return
    near = suggest.nearest(cluster.region, known_regions)
    yield UNKNOWN_REGION.at(
        f"{scope.path(cluster)}.region",
        f"{cluster.region} is not a known region",
        f"did you mean {near}? A newer region needs a range in network.ranges"
        if near
        else "use a region of Google Cloud; a newer one needs a range in network.ranges",
    )


@fleet_check
def _roles(scope: Scope) -> Iterator[Problem]:
    clusters = scope.fleet.clusters
    managers = [cluster for cluster in clusters if cluster.role == "manager"]
    workers = [cluster for cluster in clusters if cluster.role == "worker"]
    standalone = [cluster for cluster in clusters if cluster.role == "standalone"]
    if not clusters:
        yield ROLES.at("clusters", "there are none", "add a manager and its workers, or one cluster of role standalone")
    for cluster in managers[1:]:
        yield ROLES.at(
            f"{scope.path(cluster)}.role",
            f"a second manager, beside {managers[0].name}",
            "make it a worker, or describe it in a fleet of its own",
        )
    for cluster in standalone if len(clusters) > 1 else ():
        yield ROLES.at(
            f"{scope.path(cluster)}.role",
            "standalone, but it is not the only cluster",
            "make it a manager or a worker, or describe it in a fleet of its own",
        )
    if workers and not managers:
        alone = len(clusters) == 1
        yield ROLES.at(
            "clusters",
            "there is a worker but no manager"
            if len(workers) == 1
            else f"there are {len(workers)} workers but no manager",
            "give it role standalone, or add a cluster of role manager" if alone else "add a cluster of role manager",
        )
    if len(workers) > MAX_WORKERS:
        yield ROLES.at(
            "clusters", f"there are {len(workers)} workers; a fleet has at most {MAX_WORKERS}", "split the fleet in two"
        )
    if managers and not workers and not standalone:
        yield NO_WORKERS.at(
            "clusters", "there is a manager but no worker, so no job can run", "add clusters of role worker"
        )


@fleet_check
def _section(scope: Scope) -> Iterator[Problem]:
    fleet = scope.fleet
    workers = [cluster.name for cluster in fleet.clusters if cluster.role == "worker"]
    if workers and fleet.multi_kueue is None:
        yield NEEDED.at(
            "multiKueue",
            "is missing, but there are workers",
            "add it, with credentials: {type: ServiceAccountToken, rotation: ..., rotateBy: ...}",
        )
    if fleet.multi_kueue is not None and not workers:
        yield EXCLUDED.at("multiKueue", "is set, but there are no workers", "remove it, or add clusters of role worker")
    credentials = token_credentials(fleet)
    if credentials is not None and credentials.rotate_by is None and fleet.controller is None:
        yield NEEDED.at(
            "multiKueue.credentials.rotateBy",
            "is missing, but no controller renews the tokens",
            "add the day by which to renew them, such as rotateBy: 2027-02-01, or the section controller",
        )


@fleet_check
def _workers(scope: Scope) -> Iterator[Problem]:
    """multiKueue.workers: workers of the fleet."""
    settings = scope.fleet.multi_kueue
    worker_names = settings.workers if settings is not None else None
    for index, name in enumerate(worker_names or ()):
        yield from _worker_in_list(scope, name, f"multiKueue.workers[{index}]")


@where_read
def _worker_in_list(scope: Scope, name: str, path: str) -> Iterator[Problem]:
    if name not in scope.names("clusters"):
        yield UNKNOWN_NAME.at(
            path, f"there is no worker {name}", suggest.instead(name, scope.names("clusters"), "clusters")
        )
    role = next((cluster.role for cluster in scope.fleet.clusters if cluster.name == name), "worker")
    if role != "worker":
        yield RUNS_NO_JOBS.at(path, f"{name} is the {role}, not a worker", "list workers only")


@entry_check("clusters")
def _unlisted_worker(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    listed_names = scope.fleet.multi_kueue.workers if scope.fleet.multi_kueue is not None else None
    if listed_names is not None and cluster.role == "worker" and cluster.name not in listed_names:
        yield UNLISTED_WORKER.at(
            "multiKueue.workers",
            f"{cluster.name} is a worker, but not listed, so it gets no jobs from the manager",
            f"add {cluster.name}, or drain it (docs/tasks/drain-a-worker.md) and remove the cluster",
        )


@fleet_check
def _dispatched(scope: Scope) -> Iterator[Problem]:
    """multiKueue.queues: queues of the fleet, each on some worker; none on more than a MultiKueueConfig can name."""
    settings = scope.fleet.multi_kueue
    if settings is not None and settings.queues is not None and not settings.queues:
        wrong = "is empty, so that the manager dispatches no queue"
        yield UNUSED.at("multiKueue.queues", wrong, "name queues, or remove it for all that are on a worker")
    for index, name in enumerate(settings.queues or () if settings else ()):
        path = f"multiKueue.queues[{index}]"
        yield from scope.unknown("clusterQueues", name, path)
        yield from _on_a_worker(scope, name, path)


@entry_check("topologies", "flavors", "admissionChecks", "nodePools", "clusterQueues", "storage")
def _on_known_clusters(scope: Scope, entry: Placed) -> Iterator[Problem]:
    """The clusters that an entry names exist, and are named once."""
    cluster_names = entry.clusters or ()
    for index, name in enumerate(cluster_names):
        path = f"{scope.path(entry)}.clusters[{index}]"
        yield from scope.unknown("clusters", name, path)
        if name in cluster_names[:index]:
            yield listed_twice(path, name, "cluster")


@entry_check("clusterQueues")
def _on_few_workers(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """Source: kueue@v0.19.2 apis/kueue/v1beta2/multikueue_types.go, MultiKueueConfigSpec.Clusters."""
    workers = len(scope.fleet.dispatch_workers(queue.name))
    if workers > MOST_CLUSTERS:
        yield TOO_MANY_WORKERS.at(
            f"{scope.path(queue)}.clusters",
            f"its jobs are offered to {workers} workers, but a MultiKueueConfig names at most {MOST_CLUSTERS}",
            f"name at most {MOST_CLUSTERS} of them, such as those of one continent",
        )


@where_read
def _on_a_worker(scope: Scope, name: str, path: str) -> Iterator[Problem]:
    if scope.fleet.queue(name) is not None and not scope.fleet.dispatch_workers(name):
        yield RUNS_NO_JOBS.at(
            path,
            f"queue {name} is on no worker, so there is no worker to dispatch to",
            f"add a worker to clusterQueues[{name}].clusters, or remove it here",
        )
