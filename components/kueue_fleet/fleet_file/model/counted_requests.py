"""Which requests of pods count against the quota of a queue.

Since 0.18, Kueue gives a job that requests nothing of it no flavor, hence no admission check: on a manager it is
admitted without a worker, and never runs. With `quotaCheckStrategy: IgnoreUndeclared` that is each job that requests
other resources alone. Source: https://github.com/kubernetes-sigs/kueue/issues/10316; kueue@v0.19.2
pkg/workload/workload.go (admissionChecksForAdmission), pkg/scheduler/flavorassigner/flavorassigner.go (assignFlavors).
"""

from __future__ import annotations

from typing import Final

from kueue_admission.releases import ADMITS_UNCOUNTED
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.per_cluster import quotas_on

EVERY_POD: Final = "pods"
"""Name of the resource of which each pod requests one."""
_ADDED: Final = frozenset(("cpu", "memory", "ephemeral-storage"))


def ignores_undeclared(fleet: FleetSpec, cluster: str) -> bool:
    """Whether Kueue on `cluster` admits jobs whatever else they request than its queues cover."""
    configurations = (fleet.cluster(cluster).kueue.configuration, fleet.kueue.configuration)
    strategies = (
        configuration.resources.quota_check_strategy
        for configuration in configurations
        if configuration.resources is not None
    )
    gates = {
        name: on
        for configuration in reversed(configurations)
        for name, on in (configuration.feature_gates or {}).items()
    }
    release = fleet.kueue_on(cluster).release
    return next(filter(None, strategies), None) == "IgnoreUndeclared" and release.gate_is_on(
        "QuotaCheckStrategy", gates
    )


def covered_on(fleet: FleetSpec, queue: ClusterQueueEntry, cluster: str) -> tuple[str, ...]:
    """The resources that the queue has quota for on `cluster`, each once."""
    return tuple(dict.fromkeys(name for group in quotas_on(fleet, queue, cluster) for name in group.covered_resources))


def needs_a_counted_request(fleet: FleetSpec, cluster: str) -> bool:
    """Whether a job has to request something that its queue covers, to run if it is submitted to `cluster`."""
    release = fleet.kueue_on(cluster).release
    return fleet.cluster(cluster).role == "manager" and release.behaviours[ADMITS_UNCOUNTED] == "yes"


def counting_requests(fleet: FleetSpec, queue: ClusterQueueEntry, cluster: str) -> frozenset[str] | None:
    """The requests of pods, by resource, of which the queue on `cluster` counts something; None: it counts every pod.

    Claims of devices are not among them.
    """
    covered_names = covered_on(fleet, queue, cluster)
    if EVERY_POD in covered_names:
        return None
    resources = kueue_configuration(fleet, cluster).get("resources") or {}
    left_out = tuple(resources.get("excludeResourcePrefixes") or ())
    resources_counted = {name for name in covered_names if not left_out or not name.startswith(left_out)}
    own_transformations = (
        transformation
        for transformation in resources.get("transformations") or ()
        if not resources_counted.isdisjoint(transformation.get("outputs") or ())
    )
    return frozenset(resources_counted | {transformation["input"] for transformation in own_transformations})


def derived_resources(fleet: FleetSpec) -> frozenset[str]:
    """The resources that no pod requests, since Kueue makes them of others, or of claims of devices."""
    resources = fleet.kueue.configuration.resources
    if resources is None:
        return frozenset()
    made = (name for transformation in resources.transformations or () for name in transformation.outputs or ())
    return frozenset((*resources.counted_classes.values(), *made))


def may_be_added(fleet: FleetSpec, queue: str) -> bool:
    """Whether Autopilot may give pods a request that counts when their job is submitted.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-resource-requests.
    """
    entry = fleet.queue(queue)
    if entry is None or fleet.cluster(fleet.home).platform != "Autopilot":
        return False
    return not _ADDED.isdisjoint(counting_requests(fleet, entry, fleet.home) or ())


def not_dispatched(fleet: FleetSpec, name: str) -> str:
    """What becomes of a job of queue `name` on the manager that requests nothing of the kind."""
    queue = fleet.queue(name)
    if not fleet.is_dispatched(name):
        return f"is in queue {name} on {fleet.home}, a manager, whose nodes are not known"
    names = " or ".join(covered_on(fleet, queue, fleet.home)) if queue is not None else ""
    return (
        f"requests nothing that queue {name} counts{f' ({names})' if names else ''}, so that Kueue gives it no "
        f"flavor and no MultiKueue check, and admits it on {fleet.home}, where no pod runs"
    )
