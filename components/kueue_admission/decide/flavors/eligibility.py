"""Which flavors a pod set may use at all: taints, node labels, topology.

Independent of quota and usage, so `Cache` keeps the answers.
Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/{flavorassigner,tas_flavorassigner}.go.
"""

from __future__ import annotations

from collections.abc import Set

from kueue_admission.decide.flavors.evidence import AffinityMismatch, Evidence, TopologyMismatch, UntoleratedTaint
from kueue_admission.decide.model import ResourceFlavor, Topology
from kueue_admission.decide.pods import NodeSelectorTerm, PodSet
from kueue_admission.decide.queue.cluster_queue import GroupLayout, QueueNode


def check_flavor(pod_set: PodSet, flavor: ResourceFlavor, keys: Set[str] | None = None) -> Evidence | None:
    """Why the pods may not run on the flavor's nodes; None if they may.

    Of the pods' node selector and affinity only label keys in `keys` are looked at; None: the flavor's own.
    """
    for taint in flavor.node_taints:
        if taint.effect not in ("NoSchedule", "NoExecute"):
            continue
        if not any(t.tolerates(taint) for t in (*pod_set.tolerations, *flavor.tolerations)):
            return UntoleratedTaint(flavor.name, taint)
    labels = dict(flavor.node_labels)
    keys = labels.keys() if keys is None else keys
    if any(labels.get(key) != value for key, value in pod_set.node_selector if key in keys):
        return AffinityMismatch(flavor.name)
    if pod_set.affinity is not None and not _affinity_matches(pod_set.affinity, labels, keys):
        return AffinityMismatch(flavor.name)
    return None


def _affinity_matches(terms: tuple[NodeSelectorTerm, ...], labels: dict[str, str], keys: Set[str]) -> bool:
    """Terms are alternatives; one without a requirement on the keys lets every flavor pass."""
    known_requirements = []
    for term in terms:
        requirements = tuple(r for r in term.requirements if r.key in keys)
        if not requirements:
            return True
        known_requirements.append(NodeSelectorTerm(requirements))
    return not known_requirements or any(term.matches(labels) for term in known_requirements)


def is_topology_requested(pod_set: PodSet, queue: QueueNode) -> bool:
    """Whether topology-aware scheduling applies: asked for, or all the queue's flavors are for it."""
    return queue.tas_only or (pod_set.topology is not None and pod_set.topology.is_explicit)


def is_topology_implied(pod_set: PodSet, queue: QueueNode) -> bool:
    """Whether only the queue's flavors make it topology-aware."""
    return queue.tas_only and not (pod_set.topology is not None and pod_set.topology.is_explicit)


def check_topology(
    pod_set: PodSet, flavor: ResourceFlavor, queue: QueueNode, group: GroupLayout, topology: Topology | None
) -> Evidence | None:
    """Why flavor and pods disagree about topology-aware scheduling; None if they do not."""
    if not is_topology_requested(pod_set, queue):
        if flavor.topology is not None:
            return TopologyMismatch(flavor.name, "supports only TopologyAwareScheduling")
        return None
    if is_topology_implied(pod_set, queue):
        return None
    if flavor.topology is None:
        if not any(resource in group.covered for resource, _ in pod_set.node_requests):
            return None
        return TopologyMismatch(flavor.name, "does not support TopologyAwareScheduling")
    if topology is None:
        return TopologyMismatch(flavor.name, "information missing in TAS cache")
    if not _has_levels(pod_set, topology):
        return TopologyMismatch(flavor.name, "does not contain the requested level")
    return None


def _has_levels(pod_set: PodSet, topology: Topology) -> bool:
    request = pod_set.topology
    if request is None:
        return False
    levels = [level for level in (request.required, request.preferred) if level]
    levels += [constraint.level for constraint in request.slices]
    return all(level in topology.levels for level in levels)
