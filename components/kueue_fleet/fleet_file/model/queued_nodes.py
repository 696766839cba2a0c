"""Which queues lead to nodes that GKE creates for a ProvisioningRequest, and what of a pod asks for such nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_fleet.fleet_file.model.entries import AdmissionCheckEntry, ClusterQueueEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.gke.labels import QUEUED, RESIZE_REQUEST

QUEUED_LABELS: Final = (QUEUED, RESIZE_REQUEST)
"""Labels of such nodes, by which pods can select them."""


def leads_to_queued_nodes(fleet: FleetSpec, queue: ClusterQueueEntry) -> bool:
    """Whether jobs of a queue may select such nodes: where it is, its checks ask for them, or a flavor has their label.

    A check of a flavor that is on none of the queue's clusters asks for nothing.
    """
    flavors = {flavor for _, flavor in fleet.places_of(queue, fleet.clusters_of(queue))}
    rules = (rule for rule in queue.check_rules if not rule.on_flavors or flavors.intersection(rule.on_flavors))
    checks = (fleet.check(rule.name) for rule in rules)
    entries = (fleet.flavor(name) for name in flavors)
    return any(check is not None and check.provisioning_request is not None for check in checks) or any(
        flavor is not None and QUEUED in flavor.node_labels for flavor in entries
    )


def requesting_checks(
    fleet: FleetSpec, queue: ClusterQueueEntry, flavor: str, cluster: str
) -> Iterator[AdmissionCheckEntry]:
    """The checks that make a ProvisioningRequest for a job of the queue that is on the flavor, on a cluster."""
    for rule in queue.check_rules:
        check = fleet.check(rule.name)
        if check is None or check.provisioning_request is None or cluster not in fleet.clusters_of(check):
            continue
        if not rule.on_flavors or flavor in rule.on_flavors:
            yield check
