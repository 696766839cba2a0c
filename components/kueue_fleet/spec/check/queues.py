"""ClusterQueues against what is on their clusters.

What Kueue would report as Active=False is an error here: FlavorNotFound, AdmissionCheckNotFound,
MultipleMultiKueueAdmissionChecks, MultiKueueAdmissionCheckAppliedPerFlavor, MultiKueueWithProvisioningRequest.
Source: kueue@v0.19.2 pkg/cache/scheduler/clusterqueue.go (inactiveReason).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_fleet.spec.check.scope import Scope
from kueue_fleet.spec.dispatch import CHECK_CONTROLLER
from kueue_fleet.spec.entries import ClusterQueueEntry, CohortEntry, FleetResourceQuota
from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.placement import dispatch_groups
from kueue_fleet.spec.problem import Problem
from kueue_fleet.spec.wire.quotas import LimitRules, check_quota, item_labels

_COMMON: Final = ("cpu", "memory")


def check_queues(scope: Scope) -> Iterator[Problem]:
    """The rules of every queue, and of the amounts per cluster of every cohort."""
    for queue in scope.fleet.cluster_queues:
        yield from scope.unknown_clusters(queue.clusters, f"{scope.path(queue)}.clusters")
        yield from _flavors(scope, queue)
        yield from _checks(scope, queue)
        yield from _places(scope, queue)
        rules = LimitRules(queue.cohort_name, "cohortName", lending_within_nominal=True)
        yield from _per_cluster(scope, queue, scope.fleet.queue_clusters(queue), rules)
        yield from _coverage(scope, queue)
    for cohort in scope.fleet.cohorts:
        rules = LimitRules(cohort.parent_name, "parentName", lending_within_nominal=False)
        yield from _per_cluster(scope, cohort, scope.fleet.job_clusters, rules)


def _flavors(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """FlavorNotFound: flavors exist, and every group keeps one on every cluster of the queue."""
    fleet = scope.fleet
    for g, group in enumerate(queue.resource_groups):
        at = f"{scope.path(queue)}.resourceGroups[{g}].flavors"
        names = [flavor.name for flavor in group.flavors]
        for name, label in zip(names, item_labels(names), strict=True):
            yield from scope.unknown("flavors", name, f"{at}[{label}].name")
        if any(fleet.flavor(name) is None for name in names):
            continue
        for cluster in fleet.clusters_of(queue):
            if cluster in fleet.cluster_names and not fleet.flavors_on(cluster).intersection(names):
                which = names[0] if len(names) == 1 else f"none of {', '.join(names)}"
                verb = "does not exist" if len(names) == 1 else "exists"
                yield Problem(
                    at,
                    f"{which} {verb} on {cluster}, where the queue does",
                    f"add {cluster} to the clusters of a flavor, or leave it out of the queue's",
                )


def _checks(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """AdmissionCheckNotFound, and the three rules about MultiKueue."""
    fleet = scope.fleet
    strategy = queue.admission_checks_strategy
    made = {group.check_name for group in dispatch_groups(fleet)}
    for rule in strategy.admission_checks if strategy is not None else ():
        path = f"{scope.path(queue)}.admissionChecksStrategy.admissionChecks[{rule.name}]"
        check = fleet.check(rule.name)
        if rule.name in made and check is None:
            yield Problem(
                path,
                f"{rule.name} is the MultiKueue check, which the fleet adds to the manager's queues itself",
                "remove it here, and list dispatched queues in multiKueue.queues",
            )
            continue
        yield from scope.unknown("admissionChecks", rule.name, path)
        if check is None or scope.is_unread(f"admissionChecks[{rule.name}]"):
            continue
        where = fleet.clusters_of(check)
        for cluster in fleet.clusters_of(queue):
            needed = not rule.on_flavors or fleet.flavors_on(cluster).intersection(rule.on_flavors)
            elsewhere = check.controller_name == CHECK_CONTROLLER  # answered on the manager only
            if cluster not in where and cluster in fleet.cluster_names and needed and not elsewhere:
                yield Problem(
                    path,
                    f"check {rule.name} does not exist on {cluster}, where the queue does",
                    f"add {cluster} to admissionChecks[{rule.name}].clusters, or leave it out of the queue's",
                )
        manager = fleet.manager.name if fleet.manager is not None else None
        if check.provisioning_request is not None and manager in where and fleet.is_dispatched(queue.name):
            yield Problem(
                path,
                f"check {rule.name} asks for a ProvisioningRequest on {manager}, which dispatches this queue, "
                "and Kueue allows no queue both MultiKueue and a ProvisioningRequest",
                f"leave {manager} out of admissionChecks[{rule.name}].clusters: the workers ask for the capacity",
            )


def _places(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """Where the queue is: somewhere; not by hand on the manager that dispatches it."""
    fleet = scope.fleet
    path = scope.path(queue)
    if scope.is_unread("clusters", f"{path}.clusters"):
        return
    if not fleet.queue_clusters(queue) and fleet.clusters and queue.clusters is None:
        yield Problem(path, "is on no cluster, since no cluster runs jobs", "add clusters of role worker")
    manager = fleet.manager.name if fleet.manager is not None else None
    if fleet.is_dispatched(queue.name) and manager in (queue.clusters or ()):
        yield Problem(
            f"{path}.clusters[{(queue.clusters or ()).index(manager or '')}]",
            f"{manager} dispatches this queue, and its copy there is made of itself",
            f"remove {manager} here",
        )
    if queue.manager is not None and not fleet.is_dispatched(queue.name):
        yield Problem(
            f"{path}.manager",
            "quotas for the manager are set, but the queue is not dispatched",
            "add the queue to multiKueue.queues, or remove manager",
        )


def _per_cluster(
    scope: Scope, entry: ClusterQueueEntry | CohortEntry, clusters: tuple[str, ...], rules: LimitRules
) -> Iterator[Problem]:
    """Amounts per cluster: for clusters that have queue and flavor, and good quotas there."""
    for g, group in enumerate(entry.resource_groups):
        for flavor in group.flavors:
            labels = item_labels([quota.name for quota in flavor.resources])
            for quota, label in zip(flavor.resources, labels, strict=True):
                at = f"{scope.path(entry)}.resourceGroups[{g}].flavors[{flavor.name}].resources[{label}].perCluster"
                for cluster in quota.per_cluster:
                    yield from _one_cluster(scope, flavor.name, cluster, clusters, f"{at}[{cluster}]")
                    if cluster in scope.fleet.cluster_names:
                        yield from _amounts(quota, cluster, rules, f"{at}[{cluster}]")


def _one_cluster(scope: Scope, flavor: str, cluster: str, clusters: tuple[str, ...], path: str) -> Iterator[Problem]:
    fleet = scope.fleet
    if cluster not in scope.names("clusters"):
        yield from scope.unknown("clusters", cluster, path)
    elif cluster not in fleet.cluster_names or scope.is_unread("clusters"):
        return
    elif fleet.manager is not None and fleet.manager.name == cluster and cluster not in clusters:
        yield Problem(path, f"{cluster} is the manager, which runs no jobs", "remove it")
    elif fleet.manager is not None and fleet.manager.name == cluster:
        yield Problem(
            path,
            f"{cluster} is the manager, whose amounts are the sum of the workers'",
            "remove it, or write the manager's quotas under manager.resourceGroups",
        )
    elif cluster not in clusters:
        yield Problem(path, f"the queue is not on {cluster}", f"remove it, or add {cluster} to the queue's clusters")
    elif fleet.flavor(flavor) is not None and flavor not in fleet.flavors_on(cluster):
        yield Problem(
            path,
            f"flavor {flavor} does not exist on {cluster}",
            f"remove it, or add {cluster} to flavors[{flavor}].clusters",
        )


def _amounts(quota: FleetResourceQuota, cluster: str, rules: LimitRules, path: str) -> Iterator[Problem]:
    """The rules of a quota, for the amounts that are different on `cluster`."""
    own = quota.per_cluster[cluster]
    written = {
        "nominalQuota": own.nominal_quota is not None,
        "borrowingLimit": own.borrowing_limit is not None,
        "lendingLimit": own.lending_limit is not None or own.nominal_quota is not None,
    }
    before = {problem.wrong for problem in check_quota(quota, rules, "")}
    for problem in check_quota(quota.on(cluster), rules, path):
        field = problem.path.rpartition(".")[2]
        if written[field] and problem.wrong not in before:
            yield problem


def _coverage(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """A queue that covers GPUs but not what every pod asks for admits nothing."""
    path = f"{scope.path(queue)}.resourceGroups"
    if scope.is_unread(path):
        return
    covered = {name for group in queue.resource_groups for name in group.covered_resources}
    if not covered:
        yield Problem(path, "empty, so no job can ever be admitted", "add quotas", "warning")
        return
    if not any("/" in name for name in covered) or _ignores_undeclared(scope.fleet):
        return
    autopilot = any(scope.fleet.cluster(name).mode == "Autopilot" for name in scope.fleet.queue_clusters(queue))
    wanted = (*_COMMON, "ephemeral-storage") if autopilot else _COMMON
    missing = [name for name in wanted if name not in covered and not _excluded(scope.fleet, name)]
    if missing:
        yield Problem(
            path,
            f"no quota for {', '.join(missing)}, and a job that requests it is never admitted"
            + (" (Autopilot adds requests for it to every pod)" if autopilot else ""),
            f"cover {', '.join(missing)} too",
            "warning",
        )


def _ignores_undeclared(fleet: FleetSpec) -> bool:
    resources = fleet.kueue.configuration.resources
    return resources is not None and resources.quota_check_strategy == "IgnoreUndeclared"


def _excluded(fleet: FleetSpec, resource: str) -> bool:
    resources = fleet.kueue.configuration.resources
    return any(
        resource.startswith(prefix) for prefix in (resources.exclude_resource_prefixes or () if resources else ())
    )
