"""Queues whose jobs go on to other flavors where nodes do not come: who does it, and what comes next.

Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel import suggest
from kueue_admission.kernel.duration import Duration
from kueue_admission.kernel.form_rules import LISTED_TWICE, NO_QUOTA_ON_FLAVOR
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.rules.queues import FALLBACK, PATIENCE


@entry_check("clusterQueues")
def _flavors(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    last = {group.flavors[-1].name for group in queue.resource_groups}
    names = [entry.flavor for entry in queue.fallback]
    for index, name in enumerate(names):
        path = f"{scope.path(queue)}.fallback[{index}].flavor"
        if name not in queue.flavor_names:
            fix = suggest.instead(name, queue.flavor_names, "flavors of the queue")
            yield NO_QUOTA_ON_FLAVOR.at(path, f"the queue has no quota on flavor {name}", fix)
        elif name in names[:index]:
            yield LISTED_TWICE.at(path, f"{name} is listed twice", "keep one of them")
        elif name in last:
            yield FALLBACK.at(
                path, f"{name} is the last flavor, and nothing comes after it", "remove it, or add a flavor"
            )


@entry_check("clusterQueues")
def _controller(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    if not queue.fallback:
        return
    path, home = f"{scope.path(queue)}.fallback", scope.fleet.controller_cluster
    if scope.fleet.controller is None:
        yield FALLBACK.at(path, "set, but only the fleet's controller takes jobs back", "add the section controller")
    elif not scope.fleet.is_dispatched(queue.name):
        away = [name for name in scope.fleet.clusters_of(queue) if name != home]
        if away:
            wrong = f"set, but jobs are submitted to the queue on {', '.join(away)}, and the controller is on {home}"
            yield FALLBACK.at(path, wrong, "remove it, or name the queue in multiKueue.queues")
    if queue.concurrent_admission_policy is not None:
        yield FALLBACK.at(
            f"{scope.path(queue)}.concurrentAdmissionPolicy",
            "admits a job to whichever flavor has quota first, and fallback waits for one after the other",
            "remove one of the two",
        )


@entry_check("clusterQueues")
def _manager(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """The manager's flavors stand for those of all workers: a job that gives one up would get no quota there."""
    if queue.manager is None:
        return
    patient = {entry.flavor for entry in queue.fallback}
    for number, group in enumerate(queue.manager.resource_groups):
        for flavor in (one.name for one in group.flavors if one.name in patient):
            path = f"{scope.path(queue)}.manager.resourceGroups[{number}].flavors[{flavor}]"
            yield FALLBACK.at(path, "is a flavor that jobs give up on the workers", "use a flavor of the manager's own")


@entry_check("clusterQueues")
def _gate(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    for path in without_gate(scope) if queue.fallback else ():
        wrong = f"false, and queue {queue.name} has fallback, which needs this feature gate"
        yield FALLBACK.at(path, wrong, "remove it, or remove fallback")


def without_gate(scope: Scope) -> Iterator[str]:
    """Where Kueue's Configuration turns the feature gate off by which jobs get some flavors only."""
    configurations = {"kueue": scope.fleet.kueue.configuration}
    configurations |= {f"{scope.path(cluster)}.kueue": cluster.kueue.configuration for cluster in scope.fleet.clusters}
    for path, configuration in configurations.items():
        if (configuration.feature_gates or {}).get("ConcurrentAdmission") is False:
            yield f"{path}.configuration.featureGates.ConcurrentAdmission"


@entry_check("clusterQueues")
def _pods_ready(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """Kueue evicts a job whose pods are not ready in time, and it may get the same flavor again.

    A job that waits for DWS is not admitted yet, so that this is not for it.
    """
    dws_rules = [
        check_rule
        for check_rule in queue.check_rules
        if (check := scope.fleet.check(check_rule.name)) is not None and check.provisioning_request is not None
    ]
    for index, entry in enumerate(queue.fallback):
        if any(not check_rule.on_flavors or entry.flavor in check_rule.on_flavors for check_rule in dws_rules):
            continue
        for name in scope.fleet.clusters_of(queue):
            timeout = _timeout(scope, name)
            if entry.patience.seconds >= timeout.seconds:
                yield PATIENCE.at(
                    f"{scope.path(queue)}.fallback[{index}].patience",
                    f"{entry.patience} is not shorter than waitForPodsReady.timeout on {name}, {timeout}, after which "
                    f"Kueue evicts a job without nodes, and may give it {entry.flavor} again",
                    "write less, or a longer timeout in Kueue's configuration",
                )
                break


def _timeout(scope: Scope, cluster: str) -> Duration:
    configurations = [scope.fleet.kueue.configuration.wait_for_pods_ready]
    if cluster in scope.fleet.cluster_names:
        configurations.insert(0, scope.fleet.cluster(cluster).kueue.configuration.wait_for_pods_ready)
    first_timeout = (
        one.timeout for one in configurations if one is not None and one.timeout is not None and one.timeout.seconds
    )
    return next(first_timeout, Duration("30m"))
