"""ClusterQueues against what is on their clusters.

What Kueue would report as Active=False is an error here: FlavorNotFound, AdmissionCheckNotFound,
MultipleMultiKueueAdmissionChecks, MultiKueueAdmissionCheckAppliedPerFlavor, MultiKueueWithProvisioningRequest.
Source: kueue@v0.19.2 pkg/cache/scheduler/clusterqueue.go (inactiveReason).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Final

from kueue_admission.api import AdmissionCheckStrategyRule
from kueue_admission.api.quotas import LimitRules, check_quota
from kueue_admission.kernel import suggest
from kueue_admission.kernel.job_rules import CHECKS_EXCLUDE
from kueue_admission.kernel.problem import Problem, item_labels, where_read
from kueue_fleet.fleet_file.check.quota_amounts import some_queues
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.counted_requests import (
    EVERY_POD,
    counting_requests,
    derived_resources,
    ignores_undeclared,
    needs_a_counted_request,
)
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry, FlavorEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import dispatch_groups
from kueue_fleet.fleet_file.model.teams import CONTAINER_RESOURCES
from kueue_fleet.fleet_file.rules.clusters import RUNS_NO_JOBS
from kueue_fleet.fleet_file.rules.files import NO_EFFECT, NOT_THERE
from kueue_fleet.fleet_file.rules.queues import EMPTY_QUEUE, LABEL_CONFLICT, NOT_COVERED, QUEUE_PLACE
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES, accelerator_resource
from kueue_fleet.settings.dispatch import CHECK_CONTROLLER
from kueue_fleet.settings.quotas import FleetResourceQuota

_COMMON: Final = ("cpu", "memory")


@entry_check("clusterQueues")
def _known_flavors(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """FlavorNotFound: flavors exist."""
    for g, group in enumerate(queue.resource_groups):
        names = [flavor.name for flavor in group.flavors]
        for name, label in zip(names, item_labels(names), strict=True):
            path = f"{scope.path(queue)}.resourceGroups[{g}].flavors[{label}].name"
            yield from scope.unknown("flavors", name, path)


@entry_check("clusterQueues")
def _flavors_there(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """FlavorNotFound: every group keeps a flavor on every cluster of the queue."""
    fleet = scope.fleet
    for g, group in enumerate(queue.resource_groups):
        names = [flavor.name for flavor in group.flavors]
        if any(fleet.flavor(name) is None for name in names):
            continue
        without = [
            cluster
            for cluster in fleet.clusters_of(queue)
            if cluster in fleet.cluster_names and not fleet.flavors_on(cluster).intersection(names)
        ]
        if without:
            which = names[0] if len(names) == 1 else f"none of {', '.join(names)}"
            verb = "does not exist" if len(names) == 1 else "exists"
            flavor_names = ", ".join(without)
            yield NOT_THERE.at(
                f"{scope.path(queue)}.resourceGroups[{g}].flavors",
                f"{which} {verb} on {flavor_names}, where the queue does",
                f"add {flavor_names} to the clusters of a flavor, or leave it out of the queue's",
            )
            continue
        here = set(fleet.clusters_of(queue)).intersection(fleet.cluster_names)
        for flavor, label in zip(map(fleet.flavor, names), item_labels(names), strict=True):
            known_clusters = (
                [cluster for cluster in fleet.clusters_of(flavor) if cluster in fleet.cluster_names] if flavor else []
            )
            if here and known_clusters and not here.intersection(known_clusters):
                yield NO_EFFECT.at(
                    f"{scope.path(queue)}.resourceGroups[{g}].flavors[{label}]",
                    f"has no effect, since the flavor is on {', '.join(known_clusters)} only",
                    "add clusters of the queue to the flavor, or remove it here",
                )


@entry_check("clusterQueues")
def _last_acceptable_flavor_there(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """Kueue's webhook refuses a policy whose last flavor is not in the queue (pkg/webhooks/clusterqueue_webhook.go).

    The manager's copy of a dispatched queue has no such policy.
    """
    policy = queue.concurrent_admission_policy
    constraints = policy.migration.constraints if policy is not None else None
    name = constraints.last_acceptable_flavor_name if constraints is not None else None
    if name is None or name not in queue.flavor_names or scope.fleet.flavor(name) is None:
        return
    without = [
        cluster
        for cluster in scope.fleet.clusters_of(queue)
        if cluster in scope.fleet.cluster_names and name not in scope.fleet.flavors_on(cluster)
    ]
    if without:
        yield NOT_THERE.at(
            f"{scope.path(queue)}.concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName",
            f"{name} does not exist on {', '.join(without)}, where the queue does, and Kueue refuses the queue there",
            "name a flavor that is on each cluster of the queue, or add the clusters to the flavor",
        )


@entry_check("clusterQueues")
def _checks(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """AdmissionCheckNotFound, and the rules about MultiKueue."""
    for check_rule in queue.check_rules:
        path = f"{scope.path(queue)}.admissionChecksStrategy.admissionChecks[{check_rule.name}]"
        yield from _known_check(scope, check_rule, path)
        yield from _check_there(scope, queue, check_rule, path)
        yield from _check_of_manager(scope, queue, check_rule, path)


@where_read
def _known_check(scope: Scope, check_rule: AdmissionCheckStrategyRule, path: str) -> Iterator[Problem]:
    if scope.fleet.check(check_rule.name) is not None:
        return
    if check_rule.name in {group.check_name for group in dispatch_groups(scope.fleet)}:
        yield CHECKS_EXCLUDE.at(
            path,
            f"{check_rule.name} is the MultiKueue check, which the fleet adds to the manager's queues itself",
            "remove it here, and list dispatched queues in multiKueue.queues",
        )
        return
    yield from scope.unknown("admissionChecks", check_rule.name, path)


@where_read
def _check_there(
    scope: Scope, queue: ClusterQueueEntry, rule: AdmissionCheckStrategyRule, path: str
) -> Iterator[Problem]:
    """A check exists where the queue does; this fleet's own are answered on the manager only."""
    fleet, check = scope.fleet, scope.fleet.check(rule.name)
    if check is None or check.controller_name == CHECK_CONTROLLER:
        return
    where = fleet.clusters_of(check)
    for cluster in fleet.clusters_of(queue):
        is_needed = not rule.on_flavors or bool(fleet.flavors_on(cluster).intersection(rule.on_flavors))
        if cluster not in where and cluster in fleet.cluster_names and is_needed:
            yield NOT_THERE.at(
                path,
                f"check {rule.name} does not exist on {{cluster}}, where the queue does",
                f"add {{cluster}} to admissionChecks[{rule.name}].clusters, or leave {{cluster}} out of the queue's",
            ).on(cluster)


@where_read
def _check_of_manager(
    scope: Scope, queue: ClusterQueueEntry, check_rule: AdmissionCheckStrategyRule, path: str
) -> Iterator[Problem]:
    fleet, check = scope.fleet, scope.fleet.check(check_rule.name)
    manager = fleet.manager_name
    if check is None or check.provisioning_request is None or manager not in fleet.clusters_of(check):
        return
    if fleet.is_dispatched(queue.name):
        yield CHECKS_EXCLUDE.at(
            path,
            f"check {check_rule.name} asks for a ProvisioningRequest on {manager}, which dispatches this queue, "
            "and Kueue allows no queue both MultiKueue and a ProvisioningRequest",
            f"leave {manager} out of admissionChecks[{check_rule.name}].clusters: the workers ask for the capacity",
        )


@entry_check("clusterQueues")
def _places(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """Where the queue is: somewhere; not by hand on the manager that dispatches it."""
    fleet = scope.fleet
    path = scope.path(queue)
    if not fleet.queue_clusters(queue) and fleet.clusters and queue.clusters is None:
        yield RUNS_NO_JOBS.at(path, "is on no cluster, since no cluster runs jobs", "add clusters of role worker")
    manager, settings = fleet.manager_name, fleet.multi_kueue
    dispatched = (settings.queues if settings is not None else None) or ()
    if fleet.is_dispatched(queue.name) and manager in (queue.clusters or ()):
        yield QUEUE_PLACE.at(
            f"{path}.clusters[{(queue.clusters or ()).index(manager or '')}]",
            f"{manager} dispatches this queue, and its copy there is derived",
            f"remove {manager} here",
        )
    elif manager in (queue.clusters or ()) and queue.name not in dispatched:
        wrong = f"{manager} is the manager, where Kueue runs the queue's jobs, but no answer here knows its nodes"
        index = (queue.clusters or ()).index(manager or "")
        yield RUNS_NO_JOBS.at(f"{path}.clusters[{index}]", wrong, "name workers", "warning")
    if queue.manager is not None and not fleet.is_dispatched(queue.name):
        yield QUEUE_PLACE.at(
            f"{path}.manager",
            "quotas for the manager are set, but the queue is not dispatched",
            "add the queue to multiKueue.queues, or remove manager",
        )


@entry_check("clusterQueues", "cohorts")
def _per_cluster(scope: Scope, entry: ClusterQueueEntry | CohortEntry) -> Iterator[Problem]:
    """Amounts per cluster: for clusters that have queue and flavor, and good quotas there."""
    rules = LimitRules(entry, "cohortName" if isinstance(entry, ClusterQueueEntry) else "parentName")
    for g, group in enumerate(entry.resource_groups):
        for flavor in group.flavors:
            labels = item_labels([quota.name for quota in flavor.resources])
            for quota, label in zip(flavor.resources, labels, strict=True):
                at = f"{scope.path(entry)}.resourceGroups[{g}].flavors[{flavor.name}].resources[{label}].perCluster"
                for cluster in quota.per_cluster:
                    yield from _one_cluster(scope, entry, flavor.name, cluster, f"{at}[{cluster}]")
                    yield from _amounts(scope, quota, cluster, rules, f"{at}[{cluster}]")


@where_read
def _one_cluster(
    scope: Scope, entry: ClusterQueueEntry | CohortEntry, flavor: str, cluster: str, path: str
) -> Iterator[Problem]:
    fleet = scope.fleet
    if cluster not in scope.names("clusters"):
        yield from scope.unknown("clusters", cluster, path)
        return
    clusters = fleet.queue_clusters(entry) if isinstance(entry, ClusterQueueEntry) else fleet.job_clusters
    if cluster == fleet.manager_name and cluster not in clusters:
        yield RUNS_NO_JOBS.at(path, f"{cluster} is the manager, which runs no jobs", "remove it")
    elif cluster == fleet.manager_name:
        yield QUEUE_PLACE.at(
            path,
            f"{cluster} is the manager, whose amounts are the sum of the workers'",
            "remove it, or write the manager's quotas under manager.resourceGroups",
        )
    elif cluster not in clusters:
        yield QUEUE_PLACE.at(
            path, f"the queue is not on {cluster}", f"remove it, or add {cluster} to the queue's clusters"
        )
    elif fleet.flavor(flavor) is not None and flavor not in fleet.flavors_on(cluster):
        yield NOT_THERE.at(
            path,
            f"flavor {flavor} does not exist on {cluster}",
            f"remove it, or add {cluster} to flavors[{flavor}].clusters",
        )


@where_read
def _amounts(scope: Scope, quota: FleetResourceQuota, cluster: str, rules: LimitRules, path: str) -> Iterator[Problem]:
    """The rules of a quota, for the amounts that are different on `cluster`."""
    if cluster not in scope.fleet.cluster_names:
        return
    own = quota.per_cluster[cluster]
    limits = {
        "nominalQuota": own.nominal_quota is not None,
        "borrowingLimit": own.borrowing_limit is not None,
        "lendingLimit": own.lending_limit is not None or own.nominal_quota is not None,
    }
    before = {problem.wrong for problem in check_quota(quota, rules, "")}
    for problem in check_quota(quota.on(cluster), rules, path):
        field = problem.path.rpartition(".")[2]
        if limits[field] and problem.wrong not in before:
            yield problem


@entry_check("clusterQueues")
def _coverage(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """A queue that covers GPUs but not what every pod asks for admits nothing."""
    path = f"{scope.path(queue)}.resourceGroups"
    covered_names = {name for group in queue.resource_groups for name in group.covered_resources}
    if not covered_names:
        yield EMPTY_QUEUE.at(path, "empty, so no job can ever be admitted", "add quotas")
        return
    if not any("/" in name for name in covered_names):
        return
    autopilot = any(scope.fleet.cluster(name).platform == "Autopilot" for name in scope.fleet.queue_clusters(queue))
    names = (*_COMMON, "ephemeral-storage") if autopilot else _COMMON
    missing_names = [name for name in names if name not in covered_names and _is_counted(scope.fleet, name)]
    if missing_names and not _ignores(scope.fleet, queue):
        yield NOT_COVERED.at(
            path,
            f"no quota for {', '.join(missing_names)}, and a job that requests it is never admitted"
            + (" (Autopilot adds requests for it to every pod)" if autopilot else ""),
            f"cover {', '.join(missing_names)} too",
        )


@entry_check("clusterQueues", "cohorts")
def _requestable(scope: Scope, entry: ClusterQueueEntry | CohortEntry) -> Iterator[Problem]:
    """Pods can request each resource: a name without a domain is Kubernetes' own, or what Kueue makes of others.

    Source: kubernetes@v1.36 pkg/apis/core/validation (validateContainerResourceName).
    """
    resources_there = derived_resources(scope.fleet)
    for g, group in enumerate(entry.resource_groups):
        for index, name in enumerate(group.covered_resources):
            is_known = name in (*CONTAINER_RESOURCES, "pods", *resources_there) or name.startswith("hugepages-")
            if "/" not in name and not is_known:
                meant = [resource for resource in ACCELERATOR_RESOURCES if resource.endswith(f"/{name}")]
                yield NO_EFFECT.at(
                    f"{scope.path(entry)}.resourceGroups[{g}].coveredResources[{index}]",
                    f"the quota for {name} has no effect, since no pod can request a resource without a domain but "
                    "Kubernetes' own",
                    suggest.instead(name, meant or (*CONTAINER_RESOURCES, "pods"), "resources"),
                )


@entry_check("clusterQueues")
def _accelerators(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """A queue covers the GPUs and TPUs of its flavors' nodes if it covers devices at all, or Kueue ignores the rest."""
    fleet, ignored_prefixes = scope.fleet, _ignores(scope.fleet, queue)
    covered_names = [name for group in queue.resource_groups for name in group.covered_resources]
    if not ignored_prefixes and not any("/" in name for name in covered_names):
        return
    flavors = [flavor for flavor in fleet.flavors if flavor.name in queue.flavor_names]
    there: dict[str | None, FlavorEntry] = {}
    for flavor in flavors:
        for cluster in fleet.queue_clusters(queue):
            pools = fleet.flavor_nodes(flavor, cluster)
            named = [accelerator_resource(labels) for labels in [pool.labels for pool in pools] or [flavor.node_labels]]
            # Nodes outside GKE have other labels.
            counted = [name for name in ACCELERATOR_RESOURCES if any(pool.amount_on_node(name) for pool in pools)]
            there = dict.fromkeys((*named, *counted), flavor) | there
    for resource, flavor in there.items():
        if resource is not None and resource not in covered_names and _is_counted(fleet, resource):
            near = suggest.nearest(resource, covered_names)
            then = (
                "is never admitted"
                if not ignored_prefixes
                else "gets any number of them, as Kueue ignores what is not covered"
            )
            yield NOT_COVERED.at(
                f"{scope.path(queue)}.resourceGroups",
                f"no quota for {resource}, which nodes of flavor {flavor.name} have, and a job that requests it {then}",
                f"write {resource} for {near}" if near else f"cover {resource} too",
            )


@fleet_check
def _undispatched(scope: Scope) -> Iterator[Problem]:
    """Queues of a manager that count neither CPU nor memory, which hardly a job does not request."""
    fleet, home = scope.fleet, scope.fleet.manager
    if home is None or not (ignores_undeclared(fleet, home.name) and needs_a_counted_request(fleet, home.name)):
        return
    requests = {queue.name: counting_requests(fleet, queue, home.name) for queue in fleet.cluster_queues}
    names = [name for name in fleet.dispatched if (counted := requests.get(name)) and counted.isdisjoint(_COMMON)]
    if names:
        resources = home.kueue.configuration.resources
        own = resources is not None and resources.quota_check_strategy is not None
        outside = [
            f"{entry.namespace}/{entry.name}"
            for entry in fleet.local_queues
            if entry.cluster_queue in names and entry.namespace not in fleet.team_of
        ]
        but = f", but nothing does in {suggest.either(outside)}" if outside else ""
        yield NOT_COVERED.at(
            f"{scope.path(home) + '.' if own else ''}kueue.configuration.resources.quotaCheckStrategy",
            f"IgnoreUndeclared, so that {home.name} admits a job of {some_queues(names)} that requests nothing "
            f"that its queue covers, such as {min(requests[names[0]] or ())}, without a worker, and it never runs "
            f"(policies of teams refuse such jobs{but})",
            f"cover {EVERY_POD}, of which each pod requests one, or cpu and memory",
        )


@entry_check("clusterQueues")
def _outputs(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """What Kueue makes of a resource that the queue covers is covered too."""
    resources = scope.fleet.kueue.configuration.resources
    covered_names = {name for group in queue.resource_groups for name in group.covered_resources}
    counted_names = {*covered_names, "pods"}  # An output of that name is refused elsewhere.
    for transformation in (resources.transformations or ()) if resources is not None else ():
        lacking = [name for name in transformation.outputs or () if name not in counted_names]
        if lacking and transformation.input in covered_names and not _ignores(scope.fleet, queue):
            yield NOT_COVERED.at(
                f"{scope.path(queue)}.resourceGroups",
                f"no quota for {', '.join(lacking)}, which Kueue makes of {transformation.input}, and a job that "
                "requests it is never admitted",
                f"cover {', '.join(lacking)} too, or remove the transformation",
            )


def _ignores(fleet: FleetSpec, queue: ClusterQueueEntry) -> bool:
    """Whether Kueue ignores what the queue does not cover, on each of its clusters."""
    return all(ignores_undeclared(fleet, name) for name in fleet.queue_clusters(queue))


@entry_check("clusterQueues")
def _one_value_of_each_label(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """A pod gets the node labels of one flavor of each group that it asks of: they must not contradict each other.

    Source: kueue@v0.19.2 pkg/podset/podset.go (FromAssignment copies them in the random order of a map),
    https://github.com/kubernetes-sigs/kueue/issues/14409.
    """
    for one, other in combinations(queue.resource_groups, 2):
        resources = (*one.covered_resources, *other.covered_resources)
        # Hardly a pod asks for devices of two kinds.
        if all("/" in name for name in resources):
            continue
        for first, second in product(one.flavors, other.flavors):
            differs = next(_contradictions(scope.fleet, queue, first.name, second.name), None)
            if differs is not None:
                key, *values = differs
                yield LABEL_CONFLICT.at(
                    f"{scope.path(queue)}.resourceGroups",
                    f"flavors {first.name} and {second.name} have different values of the node label {key}, "
                    f"{' and '.join(values)}, and Kueue gives a pod that asks for {one.covered_resources[0]} and "
                    f"{other.covered_resources[0]} one of them at random",
                    "cover these resources in one group, or give the label to one of the flavors only",
                )
                break


def _contradictions(
    fleet: FleetSpec, queue: ClusterQueueEntry, first: str, second: str
) -> Iterator[tuple[str, str, str]]:
    """Labels to which two flavors give different values on a cluster of the queue, with the values."""
    one, other = fleet.flavor(first), fleet.flavor(second)
    if one is None or other is None:
        return
    for cluster in fleet.clusters_of(queue):
        if cluster in fleet.clusters_of(one) and cluster in fleet.clusters_of(other):
            labels, others = fleet.flavor_on(one, cluster).node_labels, fleet.flavor_on(other, cluster).node_labels
            yield from (
                (key, labels[key], others[key]) for key in labels if labels[key] != others.get(key, labels[key])
            )


def _is_counted(fleet: FleetSpec, resource: str) -> bool:
    """Whether a job needs quota for a resource that it requests, under the resource's own name."""
    resources = fleet.kueue.configuration.resources
    if resources is None:
        return True
    is_renamed = any(transformation.input == resource for transformation in resources.transformations or ()) or (
        resource in ACCELERATOR_RESOURCES and bool(resources.device_class_mappings)
    )
    is_excluded = resource.startswith(tuple(resources.exclude_resource_prefixes or ()))
    return not is_renamed and not is_excluded
