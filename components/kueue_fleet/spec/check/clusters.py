"""Which clusters there are, and the multiKueue section that joins them.

Source: kueue@v0.19.2 apis/kueue/v1beta2/multikueue_types.go; Google's regions: spec.regions.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_fleet.gke.regions import REGION_RANGES
from kueue_fleet.spec import suggest
from kueue_fleet.spec.check.scope import Scope
from kueue_fleet.spec.problem import Problem

MAX_WORKERS = 20
"""MultiKueueConfig.spec.clusters holds at most 20 (kueue@v0.19.2 apis/kueue/v1beta2/multikueue_types.go)."""


def check_clusters(scope: Scope) -> Iterator[Problem]:
    """One manager and up to 20 workers, or one standalone cluster; the multiKueue section fits them."""
    if not scope.is_unread_field("clusters", "role"):
        yield from _roles(scope)
        yield from _section(scope)
    yield from _regions(scope)
    yield from _workers(scope)
    yield from _dispatched(scope)


def _regions(scope: Scope) -> Iterator[Problem]:
    known = {**REGION_RANGES, **scope.fleet.network.ranges}
    for cluster in scope.fleet.clusters:
        if not scope.is_unread(f"{scope.path(cluster)}.region") and cluster.region not in known:
            near = suggest.nearest(cluster.region, known)
            yield Problem(
                f"{scope.path(cluster)}.region",
                f"{cluster.region} is no region that is known here",
                f"did you mean {near}? A newer region needs a range in network.ranges"
                if near
                else "use a region of Google Cloud; a newer one needs a range in network.ranges",
            )


def _roles(scope: Scope) -> Iterator[Problem]:
    clusters = scope.fleet.clusters
    managers = [cluster for cluster in clusters if cluster.role == "manager"]
    workers = [cluster for cluster in clusters if cluster.role == "worker"]
    standalone = [cluster for cluster in clusters if cluster.role == "standalone"]
    if not clusters:
        yield Problem("clusters", "there are none", "add a manager and its workers, or one cluster of role standalone")
    for cluster in managers[1:]:
        yield Problem(
            f"{scope.path(cluster)}.role",
            f"a second manager, beside {managers[0].name}",
            "make it a worker, or describe it in a fleet of its own",
        )
    for cluster in standalone if len(clusters) > 1 else ():
        yield Problem(
            f"{scope.path(cluster)}.role",
            "standalone, but it is not the only cluster",
            "make it a manager or a worker, or describe it in a fleet of its own",
        )
    if workers and not managers:
        alone = len(clusters) == 1
        yield Problem(
            "clusters",
            "there is a worker but no manager"
            if len(workers) == 1
            else f"there are {len(workers)} workers but no manager",
            "give it role standalone, or add a cluster of role manager" if alone else "add a cluster of role manager",
        )
    if len(workers) > MAX_WORKERS:
        yield Problem(
            "clusters",
            f"there are {len(workers)} workers, but MultiKueue takes at most {MAX_WORKERS}",
            "split the fleet in two",
        )
    if managers and not workers and not standalone:
        yield Problem(
            "clusters", "there is a manager but no worker, so no job can run", "add clusters of role worker", "warning"
        )


def _section(scope: Scope) -> Iterator[Problem]:
    fleet = scope.fleet
    workers = [cluster.name for cluster in fleet.clusters if cluster.role == "worker"]
    if workers and fleet.multi_kueue is None and not scope.is_unread("multiKueue"):
        yield Problem(
            "multiKueue",
            "is missing, but there are workers",
            "add it, with credentials: {type: ServiceAccountToken, rotation: ..., rotateBy: ...}",
        )
    if fleet.multi_kueue is not None and not workers:
        yield Problem("multiKueue", "is set, but there are no workers", "remove it, or add clusters of role worker")


def _workers(scope: Scope) -> Iterator[Problem]:
    """multiKueue.workers: workers of the fleet, and all of them."""
    settings = scope.fleet.multi_kueue
    if settings is None or settings.workers is None:
        return
    roles = {cluster.name: cluster.role for cluster in scope.fleet.clusters}
    workers = [name for name, role in roles.items() if role == "worker"]
    for index, name in enumerate(settings.workers):
        if name not in scope.names("clusters"):
            yield from (
                Problem(problem.path, f"there is no worker {name}", suggest.instead(name, workers, "workers"))
                for problem in scope.unknown("clusters", name, f"multiKueue.workers[{index}]")
            )
        elif name in roles and roles[name] != "worker" and not scope.is_unread(f"clusters[{name}]"):
            yield Problem(
                f"multiKueue.workers[{index}]", f"{name} is the {roles[name]}, not a worker", "list workers only"
            )
    for name in workers:
        if name not in settings.workers:
            yield Problem(
                "multiKueue.workers",
                f"{name} is a worker, but not listed, so it gets no jobs from the manager",
                f"add {name}, or drain it (docs/tasks/drain-a-worker.md) and remove the cluster",
                "warning",
            )


def _dispatched(scope: Scope) -> Iterator[Problem]:
    """multiKueue.queues: queues of the fleet, each on some worker."""
    settings = scope.fleet.multi_kueue
    for index, name in enumerate(settings.queues or () if settings else ()):
        path = f"multiKueue.queues[{index}]"
        yield from scope.unknown("clusterQueues", name, path)
        queue = scope.fleet.queue(name)
        if queue is not None and not scope.fleet.dispatch_workers(name) and not scope.is_unread("clusters"):
            yield Problem(
                path,
                f"queue {name} is on no worker, so there is nobody to dispatch to",
                f"add a worker to clusterQueues[{name}].clusters, or remove it here",
            )
