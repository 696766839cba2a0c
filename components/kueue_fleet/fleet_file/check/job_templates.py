"""Templates of jobs against the queues, priorities and quotas of their team: that a job made of one can be admitted.

Source: https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/ (quota), and what `submit` takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from kueue_admission.api.quotas import unit_problems
from kueue_admission.kernel import suggest
from kueue_admission.kernel.form_rules import UNKNOWN_NAME, FaultError
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import ZERO, Quantity
from kueue_fleet.fleet_file.check.pool_quotas import amount_text
from kueue_fleet.fleet_file.check.quota_amounts import most_quota
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, FlavorEntry
from kueue_fleet.fleet_file.model.per_cluster import cluster_queue_of
from kueue_fleet.fleet_file.model.team_priorities import allowed_priority_classes
from kueue_fleet.fleet_file.model.teams import JobTemplate, TeamEntry
from kueue_fleet.fleet_file.rules.teams import TEMPLATE
from kueue_fleet.gke.labels import GPU_RESOURCE


@entry_check("teams")
def _templates(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    for template in team.job_templates:
        at = f"{scope.path(team)}.jobTemplates[{template.name}]"
        yield from _queue(scope, team, template, at)
        yield from _priority(scope, team, template, at)
        yield from _sizes(scope, team, template, at)
        yield from _units(template, at)


@where_read
def _queue(scope: Scope, team: TeamEntry, template: JobTemplate, at: str) -> Iterator[Problem]:
    namespace = team.namespace_names[0]
    own = [key.partition("/")[2] for key in cluster_queue_of(scope.fleet) if key.startswith(f"{namespace}/")]
    if template.queue is not None and template.queue not in own:
        wrong = f"there is no LocalQueue {template.queue} in namespace {namespace}"
        yield UNKNOWN_NAME.at(f"{at}.queue", wrong, suggest.instead(template.queue, own, "LocalQueues"))


@where_read
def _priority(scope: Scope, team: TeamEntry, template: JobTemplate, at: str) -> Iterator[Problem]:
    name, allowed_classes = template.priority, allowed_priority_classes(scope.fleet, team)
    classes = [workload_priority_class.name for workload_priority_class in scope.fleet.workload_priority_classes]
    if name is not None and (name not in classes or name not in allowed_classes):
        there = [class_name for class_name in classes if class_name in allowed_classes]
        wrong = f"there is no WorkloadPriorityClass {name}" if name not in classes else f"the team may not use {name}"
        fix = suggest.instead(name, there, "classes") if there else "remove it"
        yield UNKNOWN_NAME.at(f"{at}.priority", wrong, fix)


@where_read
def _sizes(scope: Scope, team: TeamEntry, template: JobTemplate, at: str) -> Iterator[Problem]:
    """What fits none of the queues that the template may be used for."""
    namespace, queues = team.namespace_names[0], cluster_queue_of(scope.fleet)
    keys = [key for key in queues if key.startswith(f"{namespace}/")]
    names = [queues.get(f"{namespace}/{template.queue}", "")] if template.queue else [queues[key] for key in keys]
    entries = [queue for queue in map(scope.fleet.queue, names) if queue is not None]
    problems = [list(_too_large(scope, queue, template, at)) for queue in entries]
    if problems and all(problems):
        yield from problems[0]


def _too_large(scope: Scope, queue: ClusterQueueEntry, template: JobTemplate, at: str) -> Iterator[Problem]:
    """Pods that run together get quota of one flavor on one cluster."""
    fleet, gpus = scope.fleet, template.gpus or 0
    if queue.windows or _transforms(scope):
        return
    gpus_needed = gpus * (template.nodes or 1)
    clusters = [cluster for cluster in fleet.clusters_of(queue) if cluster in fleet.job_clusters]
    amounts = [most_quota(fleet, cluster).get(queue.name, {}).get(GPU_RESOURCE, ZERO) for cluster in clusters]
    is_closed = any(fleet.is_closed(flavor, cluster) for cluster in clusters for flavor in queue.flavor_names)
    if gpus and amounts and not is_closed and max(amounts) < Quantity(gpus_needed):
        yield TEMPLATE.at(
            f"{at}.gpus",
            f"{gpus_needed} {GPU_RESOURCE} in all, and queue {queue.name} can have at most {max(amounts).plain} of one "
            "flavor, so that no such job ever runs",
            "write less, or name another queue",
        )
    pools_of = [
        fleet.flavor_nodes(flavor, cluster) for cluster in clusters for flavor in _flavors(scope, queue, cluster)
    ]
    pools = [pool for of in pools_of for pool in of] if all(pools_of) else []
    known = all(pool.machine is not None for pool in pools)
    for field, resource, amount in _amounts(template):
        largest = max((pool.amount_on_node(resource) for pool in pools), default=0)
        if pools and (known or field == "gpus") and amount.counted(resource) > largest:
            yield TEMPLATE.at(
                f"{at}.{field}",
                f"{amount.plain} {resource} in each pod, and the largest node of queue {queue.name} has "
                f"{amount_text(resource, largest)}, so that no such job ever runs",
                "write less, and more nodes, or name another queue",
            )


@where_read
def _units(template: JobTemplate, at: str) -> Iterator[Problem]:
    for field, resource, amount in _amounts(template):
        yield from unit_problems(resource, amount, f"{at}.{field}")


def _amounts(template: JobTemplate) -> Iterator[tuple[str, str, Quantity]]:
    """What each pod asks for, as far as it can be read: by field and resource."""
    texts = {"gpus": str(template.gpus or 0), "cpu": template.cpu, "memory": template.memory}
    for (field, text), resource in zip(texts.items(), (GPU_RESOURCE, "cpu", "memory"), strict=True):
        with suppress(FaultError):
            yield field, resource, Quantity(text or 0)


def _flavors(scope: Scope, queue: ClusterQueueEntry, cluster: str) -> list[FlavorEntry]:
    """The flavors that the queue has there."""
    flavors = (scope.fleet.flavor(name) for name in dict.fromkeys(queue.flavor_names))
    return [flavor for flavor in flavors if flavor is not None and cluster in scope.fleet.clusters_of(flavor)]


def _transforms(scope: Scope) -> bool:
    """Whether Kueue may count GPUs under another name."""
    resources = scope.fleet.kueue.configuration.resources
    return resources is not None and bool(resources.transformations)
