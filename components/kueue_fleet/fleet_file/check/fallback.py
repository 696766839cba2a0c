"""Queues whose jobs go on to other flavors where nodes do not come: who does it, and what comes next.

Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go, pkg/controller/admissionchecks/multikueue.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.kueue_api import suggest
from kueue_fleet.kueue_api.problem import Problem, rule


def check_fallback(scope: Scope) -> Iterator[Problem]:
    """Every queue with `fallback` has a controller, an order, and something that comes next."""
    for queue in scope.entries("clusterQueues"):
        yield from _flavors(scope, queue)
        yield from _controller(scope, queue)
        yield from _gate(scope, queue)


@rule
def _flavors(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    last = {group.flavors[-1].name for group in queue.resource_groups}
    names = [entry.flavor for entry in queue.fallback]
    for index, name in enumerate(names):
        path = f"{scope.path(queue)}.fallback[{index}].flavor"
        if name not in queue.flavor_names:
            fix = suggest.instead(name, queue.flavor_names, "flavors of the queue")
            yield Problem(path, f"the queue has no quota on flavor {name}", fix)
        elif name in names[:index]:
            yield Problem(path, f"{name} is there twice", "keep one of them")
        elif name in last:
            yield Problem(path, f"{name} is the last flavor, and nothing comes after it", "remove it, or add a flavor")


@rule
def _controller(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    if not queue.fallback:
        return
    path = f"{scope.path(queue)}.fallback"
    if scope.fleet.is_dispatched(queue.name):
        # Kueue does not finish evicting a copy that has no job on the worker yet.
        yield Problem(
            path,
            "set, but MultiKueue sends the queue's jobs to workers, where Kueue 0.19 keeps the quota of what is taken "
            "back from a flavor",
            "remove it; admissionController.watchdog takes jobs back from a worker, and offers them to the next one",
        )
    elif scope.fleet.admission_controller is None:
        yield Problem(path, "set, but only the fleet's controller takes jobs back", "add admissionController")
    if queue.concurrent_admission_policy is not None:
        yield Problem(
            f"{scope.path(queue)}.concurrentAdmissionPolicy",
            "admits a job to whichever flavor has quota first, and fallback waits for one after the other",
            "remove one of the two",
        )


@rule
def _gate(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    written = {"kueue": scope.fleet.kueue.configuration}
    written |= {f"{scope.path(cluster)}.kueue": cluster.kueue.configuration for cluster in scope.fleet.clusters}
    for path, configuration in written.items() if queue.fallback else ():
        if (configuration.feature_gates or {}).get("ConcurrentAdmission") is False:
            yield Problem(
                f"{path}.configuration.featureGates.ConcurrentAdmission",
                f"false, and queue {queue.name} has fallback, which needs this feature gate",
                "remove it, or remove fallback",
            )
