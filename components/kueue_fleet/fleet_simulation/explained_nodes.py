"""What GKE's nodes are to the pods of a workload that is explained, where Kueue counts what they ask for alike.

The nodes of a flavor say it by their labels: GPUs in shares, whose containers may request one, and compute classes,
whose priorities are GKE's own business. Sources: `gke.gpu_sharing`;
https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from kueue_admission.decide.amounts import format_amount
from kueue_admission.decide.model import ResourceFlavor, Snapshot, Workload
from kueue_admission.explain.answer import Explanation
from kueue_admission.kernel.if_known import if_known
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.check.pool_quotas import held_by, promises_on
from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.gke.gpu_sharing import GpuSharing, accelerators_of_node
from kueue_fleet.gke.labels import (
    ACCELERATOR_RESOURCES,
    COMPUTE_CLASS,
    FLEX_START,
    GPU_RESOURCE,
    GPU_SHARING_STRATEGY,
    PROVISIONING,
    accelerator_of,
)


def with_nodes(snapshot: Snapshot, explanation: Explanation) -> Explanation:
    """The explanation with what the nodes of its flavors are, and whether they refuse its pods."""
    workload = next((workload for workload in snapshot.workloads if workload.key == explanation.workload), None)
    names = {holding.flavor for holding in explanation.holdings or explanation.flavors}
    flavors = [flavor for flavor in snapshot.objects.flavors if flavor.name in names]
    if workload is None or not flavors:
        return explanation
    notes = [*explanation.nodes, *(note for flavor in flavors for note in _notes(snapshot, flavor, explanation))]
    refusals = [text for flavor in flavors for text in _refusals(snapshot, flavor, workload)]
    explanation = replace(explanation, nodes=(*notes, *(f"A node would refuse its pods: {text}" for text in refusals)))
    if explanation.state != "Admitted" or not refusals:
        return explanation
    return replace(
        explanation,
        headline=f"It is admitted, and its nodes refuse its pods (UnexpectedAdmissionError): {refusals[0]}.",
        nodes=tuple(notes),
        next_step=f"Submit it again with 1 {GPU_RESOURCE} for each container, in more pods if it needs more.",
    )


def room_for_quota(fleet: FleetSpec, snapshot: Snapshot, cluster: str) -> dict[tuple[str, str], int]:
    """How much more nominal quota the nodes of a flavor can hold, by flavor and resource, where the file tells.

    GPUs and TPUs count once any queue is promised them, as `check` counts; all else, which many promise freely, once
    workloads have it.
    """
    return {pair: max(0, have - taken) for pair, have, taken in _capacities(fleet, snapshot, cluster)}


def nodes_behind_quota(fleet: FleetSpec, snapshot: Snapshot, explanation: Explanation) -> Iterator[str]:
    """What the nodes of its flavors hold, where they hold no more of what it lacks."""
    missing_amounts = {
        (figures.flavor, item.resource): item.missing for figures in explanation.flavors for item in figures.resources
    }
    if not any(missing_amounts.values()):
        return
    for (flavor, resource), have, taken in _capacities(fleet, snapshot, explanation.cluster):
        if missing_amounts.get((flavor, resource), 0) > max(0, have - taken):
            is_promised = resource in ACCELERATOR_RESOURCES
            whose = "the nominalQuota of all queues is" if is_promised else "workloads use"
            yield (
                f"Flavor {flavor}: by the fleet file, its nodes on {explanation.cluster} hold "
                f"{format_amount(resource, have)} {resource}, and {whose} {format_amount(resource, taken)}: "
                "more quota needs more nodes first"
            )


def _capacities(fleet: FleetSpec, snapshot: Snapshot, cluster: str) -> Iterator[tuple[tuple[str, str], int, int]]:
    """Flavor and resource, what its nodes can ever hold, and how much of that is taken, see `room_for_quota`."""
    usage = _usage(snapshot)
    for name, by_resource in promises_on(Scope(fleet), cluster).items():
        flavor = fleet.flavor(name)
        pools = fleet.flavor_nodes(flavor, cluster) if flavor is not None else ()
        # What somebody else made may have nodes with these labels that the file does not tell of.
        if not pools or flavor is None or (flavor.node_pool is None and fleet.cluster(cluster).existing):
            continue
        for resource, by_entry in by_resource.items():
            if (have := held_by(pools, resource)) is not None:
                pair = name, resource
                yield pair, have, sum(by_entry.values()) if resource in ACCELERATOR_RESOURCES else usage[pair]


def _usage(snapshot: Snapshot) -> Counter[tuple[str, str]]:
    """What workloads have, by flavor and resource."""
    usage: Counter[tuple[str, str]] = Counter()
    for workload in snapshot.workloads:
        for pod_set in workload.status.admission.pod_sets if workload.status.admission is not None else ():
            flavors = dict(pod_set.flavors)
            usage.update({(flavors[name], name): amount for name, amount in pod_set.usage if name in flavors})
    return usage


def _notes(snapshot: Snapshot, flavor: ResourceFlavor, explanation: Explanation) -> Iterator[str]:
    labels = dict(flavor.node_labels)
    sharing, kind = GpuSharing.of_labels(labels), accelerator_of(labels) or "GPU"
    shares = if_known(lambda: sharing.shares(accelerator_of(labels)))
    gpus = sum(amount for request in explanation.requests for name, amount in request.amounts if name == GPU_RESOURCE)
    if gpus and sharing.labels:
        parts = [f"parts of {sharing.partition_size}"] if sharing.partition_size else []
        parts += [f"shared by {sharing.labels[GPU_SHARING_STRATEGY]}"] if sharing.strategy else []
        whole = "how many to a GPU is not known"
        if shares is not None:
            whole = f"{shares} to each {kind}: its {gpus} are {gpus / shares:.3g} of {kind}"
        yield f"Flavor {flavor.name}: quota counts a {GPU_RESOURCE} for each share ({', '.join(parts)}), {whole}"
    if (compute_class := labels.get(COMPUTE_CLASS)) is not None:
        ways = Counter(
            "flex-start" if node_labels.get(FLEX_START) == "true" else node_labels.get(PROVISIONING, "not known which")
            for node in snapshot.objects.nodes
            if (node_labels := dict(node.labels)).get(COMPUTE_CLASS) == compute_class
        )
        there = ", ".join(f"{count} {way}" for way, count in sorted(ways.items()))
        look = f"kubectl get nodes -l {COMPUTE_CLASS}={compute_class} -L {PROVISIONING}"
        yield (
            f"Flavor {flavor.name}: nodes of compute class {compute_class}; Kueue counts one quota for all priorities "
            f"of the class, and does not see which of them GKE takes, nor that its machines are out; "
            f"{f'nodes of it that are there: {there}' if there else f'see {look}'}"
        )


def _refusals(snapshot: Snapshot, flavor: ResourceFlavor, workload: Workload) -> Iterator[str]:
    """The pod sets that no node of the flavor takes, of those that have it or have none yet."""
    labels = dict(flavor.node_labels)
    sharing = GpuSharing.of_labels(labels)
    assignments = workload.status.admission.pod_sets if workload.status.admission is not None else ()
    gpus_by_node = {node.name: dict(node.flavors).get(GPU_RESOURCE) for node in assignments}
    nodes = [node for node in snapshot.objects.nodes if labels.items() <= dict(node.labels).items()]
    # Where no node is known: MPS gives a container more than one share on nodes with a single GPU.
    gpus = {accelerators_of_node(dict(node.allocatable), dict(node.labels)) for node in nodes} - {0} or {1}
    limits = {if_known(partial(sharing.most_in_container, accelerator_of(labels), count)) for count in gpus}
    most = max((limit for limit in limits if limit is not None), default=0)
    for pod_set in workload.pod_sets if None not in limits else ():
        chips = dict(pod_set.in_container).get(GPU_RESOURCE, 0)
        if gpus_by_node.get(pod_set.name, flavor.name) == flavor.name and chips > most:
            yield (
                f"a container of pod set {pod_set.name} requests {chips} {GPU_RESOURCE}, but those of flavor "
                f"{flavor.name} are shared, and a container gets at most {most}"
            )
