"""Whether there are, or GKE can make, nodes for the pods of a job: Kueue counts quota, and looks at no nodes.

A label that GKE gives to nodes by itself, and that is not known of a pool, rules the pool out for no job.
Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/workload-separation (nodes with custom labels). What
Autopilot's admission says is from reports of its refusals: https://github.com/GoogleCloudPlatform/ai-on-gke/pull/983
(selectors, on a Job when it is created), https://github.com/GoogleCloudPlatform/k8s-stackdriver/issues/1079
(tolerations). Nodes with accelerators that GKE makes by itself have a taint, which pods tolerate by themselves if they
request some: https://cloud.google.com/kubernetes-engine/docs/concepts/gpus#gpu_quota and
https://cloud.google.com/kubernetes-engine/docs/concepts/tpus; those of a compute class too:
https://github.com/google/skills at 1af7795, gke-compute-classes. TPUs on Autopilot:
https://cloud.google.com/kubernetes-engine/docs/how-to/tpus-autopilot (both selectors).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from kueue_admission.decide.amounts import format_request
from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.pods import NodeSelectorTerm, PodSet, Requirement, ResourceRules, Taint, Toleration
from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.fields import Fields
from kueue_admission.read.pods import parse_pod_set, parse_toleration
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, FlavorEntry
from kueue_fleet.fleet_file.model.flavor_nodes import telling_label
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.gpu_sharing import GpuSharing
from kueue_fleet.gke.labels import (
    ACCELERATOR,
    ACCELERATOR_RESOURCES,
    COMPUTE_CLASS,
    GPU_RESOURCE,
    GPU_SHARING_STRATEGY,
    MAX_SHARED_CLIENTS,
    NODE_POOL,
    SYSTEM_LABEL,
    TOLERATED_BY_GKE,
    TPU_ACCELERATOR,
    TPU_RESOURCE,
    TPU_TOPOLOGY,
    ZONE,
    accelerator_of,
    accelerator_resource,
)
from kueue_fleet.gke.machines import tpus
from kueue_fleet.jobs.check import job_check, right_job_check
from kueue_fleet.jobs.not_known import is_label_known
from kueue_fleet.jobs.queued_job import PodSetTemplate, QueuedJob, job_fault, of_pod_set

_CREATED_AS_WRITTEN: Final = ("Job", "Pod")
"""Kinds that Autopilot judges when they are submitted, before Kueue adds the labels of a flavor."""


NO_FLAVOR: Final = job_fault("has no flavor that its pods may have", "change what they select")
"""Of pods for which Kueue has no flavor on a cluster."""


@dataclass(frozen=True, slots=True)
class ChosenPods:
    """The pods of a role with what a flavor adds to them."""

    labels: Mapping[str, str]
    terms: tuple[NodeSelectorTerm, ...] | None
    tolerations: tuple[Toleration, ...]
    resources: frozenset[str]
    gpus_in_container: int
    """The most that one container requests."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The labels by which they choose nodes."""
        terms = (requirement.key for term in self.terms or () for requirement in term.requirements)
        return tuple(dict.fromkeys((*self.labels, *terms)))


@job_check
def check_job_nodes(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """What keeps the pods of jobs from all nodes."""
    queue = fleet.queue(job.queue)
    for template in job.pod_sets:
        if queue is None or not template.count:
            continue
        if fault := nowhere(fleet, queue, template):
            yield of_pod_set(job, template, fault)


@right_job_check
def check_autopilot(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """What Autopilot refuses of jobs that have nodes, as their selectors may be all that is missing."""
    queue = fleet.queue(job.queue)
    for template in job.pod_sets:
        if queue is None or not template.count:
            continue
        here = [name for name in fleet.clusters_of(queue) if name in fleet.job_clusters]
        if fleet.is_dispatched(job.queue) and job.kind in _CREATED_AS_WRITTEN:
            here.insert(0, fleet.home)
        if fault := _refused(fleet, queue, job.kind, template, here):
            yield of_pod_set(job, template, fault)


@job_check
def warn_of_wrong_flavors(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Pods that choose the nodes of one flavor by a label that another does not have: Kueue may give it to them.

    Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go (flavorSelector: of a selector, only the labels
    that the flavor has count).
    """
    queue = fleet.queue(job.queue)
    for template in job.pod_sets if queue is not None else ():
        if template.count and queue is not None and (fault := wrong_flavor(fleet, queue, template)):
            yield of_pod_set(job, template, fault, "warning")


def wrong_flavor(fleet: FleetSpec, queue: ClusterQueueEntry, template: PodSetTemplate) -> Fault | None:
    """Why no node of a flavor that Kueue may give the pods takes them, where those of another do."""
    pod_set = pod_set_of(template)
    for cluster in fleet.clusters_of(queue):
        by_labels = Behaviours.of(fleet.kueue_on(cluster).version).looks_at_own_labels_of_flavor
        faults = {
            flavor.name: (
                flavor,
                _without_nodes(fleet, fleet.cluster(cluster), flavor, pods)
                if by_labels
                else _over_share(flavor, fleet.flavor_nodes(flavor, cluster), pods),
            )
            for flavor, pods in possible_flavors(fleet, queue, pod_set, cluster)
        }
        good = [flavor for flavor, fault in faults.values() if fault is None]
        for flavor, fault in faults.values() if good else ():
            if fault is not None:
                there, other = (fleet.flavor_on(item, cluster).node_labels for item in (good[0], flavor))
                apart = [f"{key}: {value}" for key, value in there.items() if other.get(key, value) != value]
                wrong = f"{fault.wrong}: Kueue may give it flavor {flavor.name} all the same, and its pods do not run"
                fix = f"let its pods select {apart[-1]} too" if apart else f"use a queue with {good[0].name} alone"
                return job_fault(wrong, fix)
    return None


def stays_pending(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Warnings of jobs that Kueue admits, as it looks at quota and the labels of flavors, and that no node takes."""
    queue = fleet.queue(job.queue)
    for template in job.pod_sets if queue is not None else ():
        if template.count and queue is not None and (fault := nowhere(fleet, queue, template)) is not None:
            reasons = of_pod_set(job, template, fault)
            wrong = f"{reasons.wrong}, so that Kueue admits it and its pods do not run"
            yield replace(reasons, severity="warning", wrong=wrong)


def pod_set_of(template: PodSetTemplate) -> PodSet:
    """The pods of a role as Kueue reads them."""
    fields = Fields(template.template, "", []).child("spec")
    return parse_pod_set(fields, template.name, template.count, None, None, ResourceRules())


def _with(pod_set: PodSet, labels: Mapping[str, str], tolerations: Iterable[Toleration]) -> ChosenPods:
    resources_asked = frozenset(name for name, amount in pod_set.requests if amount)
    return ChosenPods(
        {**labels, **dict(pod_set.node_selector)},
        pod_set.affinity,
        (*pod_set.tolerations, *tolerations),
        resources_asked,
        dict(pod_set.in_container).get(GPU_RESOURCE, 0),
    )


def possible_flavors(
    fleet: FleetSpec, queue: ClusterQueueEntry, pods: PodSet, cluster: str
) -> Iterator[tuple[FlavorEntry, ChosenPods]]:
    """The flavors that the pods may get on the cluster, those of devices where they ask for any, with what they add."""
    names = [name for name, amount in pods.requests if amount]
    flavor_names = [name for name in names if "/" in name] or names
    selector = dict(pods.node_selector)
    for group in queue.resource_groups:
        if not set(flavor_names) & set(group.covered_resources):
            continue
        for quotas in group.flavors:
            flavor = fleet.flavor(quotas.name)
            if flavor is None or cluster not in fleet.clusters_of(flavor):
                continue
            there = fleet.flavor_on(flavor, cluster)
            if all(selector.get(key, value) == value for key, value in there.node_labels.items()):
                added_tolerations = (
                    parse_toleration(Fields(toleration.wire(), "", [])) for toleration in there.tolerations
                )
                yield flavor, _with(pods, there.node_labels, added_tolerations)


def too_large(fleet: FleetSpec, queue: str, pods: PodSet) -> str:
    """What a pod asks for that none of its nodes has as much of; empty where one has, or it is not known."""
    pools = _known_pools(fleet, queue, pods)
    lacking = [
        [
            node_request
            for node_request in pods.node_requests
            if pool.allocatable.get(node_request[0], 0) < node_request[1]
        ]
        for pool in pools
    ]
    if not lacking or not all(lacking):
        return ""
    resource, amount = lacking[0][0]
    return f"{format_request(resource, amount)} {resource}"


def as_allocatable(fleet: FleetSpec, queue: str, pods: PodSet) -> PodSet | None:
    """The pods with what the first of their nodes allocates, where they ask for no more CPUs and memory than its
    machine has, as jobs of whole nodes do elsewhere; None: they ask for more than that, or for other things."""
    for pool in _known_pools(fleet, queue, pods):
        assert pool.machine is not None
        there = {"cpu": pool.machine.cpus * 1000, "memory": pool.machine.memory_bytes}
        over = {name: amount - pool.allocatable.get(name, 0) for name, amount in pods.node_requests}
        less = {name: more for name, more in over.items() if more > 0}
        if all(name in there and pool.allocatable[name] + more <= there[name] for name, more in less.items()):
            requests, on_node = (
                tuple((name, amount - less.get(name, 0)) for name, amount in amounts)
                for amounts in (pods.requests, pods.node_requests)
            )
            return replace(pods, requests=requests, node_requests=on_node)
    return None


def _known_pools(fleet: FleetSpec, queue: str, pods: PodSet) -> list[ResolvedNodePool]:
    """The node pools that they may get; none where one of them is not known."""
    entry, pools = fleet.queue(queue), list[ResolvedNodePool]()
    if entry is None:
        return []
    for cluster in (name for name in fleet.clusters_of(entry) if name in fleet.job_clusters):
        for flavor, _ in possible_flavors(fleet, entry, pods, cluster):
            flavor_pools = fleet.flavor_nodes(flavor, cluster)
            if not flavor_pools or any(pool.machine is None for pool in flavor_pools):
                return []
            pools += flavor_pools
    return pools


def roomier(fleet: FleetSpec, queue: str, template: PodSetTemplate) -> str:
    """A label of the nodes that hold a pod of this role, if those of other flavors do not; else empty."""
    entry, pods = fleet.queue(queue), pod_set_of(template)
    rooms: dict[bool, list[Mapping[str, str]]] = {True: [], False: []}
    for cluster in fleet.clusters_of(entry) if entry is not None else ():
        for flavor, _ in possible_flavors(fleet, entry, pods, cluster) if entry is not None else ():
            pools = [pool.known_allocatable for pool in fleet.flavor_nodes(flavor, cluster)]
            if pools and None not in pools:
                held = any(
                    all(of.get(name, 0) >= amount for name, amount in pods.node_requests)
                    for of in pools
                    if of is not None
                )
                rooms[held].append(fleet.flavor_on(flavor, cluster).node_labels)
    return telling_label(rooms[True][0], rooms[False]) if rooms[True] and rooms[False] else ""


def _refused(
    fleet: FleetSpec, queue: ClusterQueueEntry, kind: str, template: PodSetTemplate, clusters: Iterable[str]
) -> Fault | None:
    """What the admission of Autopilot refuses on one of the clusters, where the job or a copy of it is made."""
    pod_set = pod_set_of(template)
    for name in clusters:
        if fleet.cluster(name).platform != "Autopilot":
            continue
        choices_of_pods = [pods for _, pods in possible_flavors(fleet, queue, pod_set, name)]
        alone = _with(pod_set, {}, ())
        choices = [alone] if kind in _CREATED_AS_WRITTEN or not choices_of_pods else choices_of_pods
        refusals = [_autopilot(pods, name) for pods in choices]
        if all(refusals):
            return refusals[0]
    return None


def _autopilot(pods: ChosenPods, cluster: str) -> Fault | None:
    refuses = f"and Autopilot refuses that when it is made on {cluster}"
    if NODE_POOL in pods.keys:
        return job_fault(f"selects {NODE_POOL}, {refuses}", f"select {ACCELERATOR} or another label of GKE instead")
    if GPU_RESOURCE in pods.resources and not {ACCELERATOR, COMPUTE_CLASS} & set(pods.keys):
        return job_fault(
            f"requests {GPU_RESOURCE} and does not select {ACCELERATOR} or {COMPUTE_CLASS} itself, {refuses}",
            f"add nodeSelector {{{ACCELERATOR}: ...}} with the kind of GPU to its pods",
        )
    shared_keys = [key for key in (GPU_SHARING_STRATEGY, MAX_SHARED_CLIENTS) if key in pods.keys]
    if len(shared_keys) == 1:
        return job_fault(
            f"selects {shared_keys[0]} alone, {refuses}", f"select both {GPU_SHARING_STRATEGY} and {MAX_SHARED_CLIENTS}"
        )
    for toleration in pods.tolerations:
        if toleration.key in ACCELERATOR_RESOURCES and toleration.key not in pods.resources:
            return job_fault(f"tolerates {toleration.key} without requesting it, {refuses}", "remove the toleration")
    return _not_separated(pods, "and Autopilot makes no node for that")


def _not_separated(pods: ChosenPods, makes: str) -> Fault | None:
    """A custom label without the toleration of the same key and value."""
    for key, value in pods.labels.items():
        taint = Taint(key, value)
        if not SYSTEM_LABEL.search(key) and not any(toleration.tolerates(taint) for toleration in pods.tolerations):
            return job_fault(
                f"selects the custom label {key}={value} and does not tolerate the taint of the same name, {makes}",
                "add the toleration, or remove the label",
            )
    return None


def nowhere(fleet: FleetSpec, queue: ClusterQueueEntry, template: PodSetTemplate) -> Fault | None:
    """Why no cluster has, or makes, a node for the pods; None where one may."""
    return no_nodes_for(fleet, queue, pod_set_of(template))


def no_nodes_for(fleet: FleetSpec, queue: ClusterQueueEntry, pods: PodSet) -> Fault | None:
    """The same for the pods as Kueue reads them."""
    faults = [nowhere_on(fleet, queue, pods, name) for name in fleet.clusters_of(queue)]
    known_faults = [fault for fault in faults if fault is not NO_FLAVOR]
    return known_faults[0] if known_faults and all(known_faults) else None


def nowhere_on(
    fleet: FleetSpec, queue: ClusterQueueEntry, pods: PodSet, cluster: str, flavors: Collection[str] = ()
) -> Fault | None:
    """The same on one cluster; `NO_FLAVOR` where Kueue has none for the pods. `flavors`: they have these."""
    reasons = [
        _without_nodes(fleet, fleet.cluster(cluster), flavor, flavor_choice)
        for flavor, flavor_choice in possible_flavors(fleet, queue, pods, cluster)
        if not flavors or flavor.name in flavors
    ]
    return (reasons[0] if all(reasons) else None) if reasons else NO_FLAVOR


def _without_nodes(fleet: FleetSpec, cluster: ClusterEntry, flavor: FlavorEntry, pods: ChosenPods) -> Fault | None:
    pools = fleet.flavor_nodes(flavor, cluster.name)
    standard = cluster.platform != "Autopilot"
    if not pools and (fault := _over_share(flavor, pools, pods)):
        return fault
    if not pools and standard and cluster.node_auto_provisioning is None and flavor.compute_class is None:
        # Nodes that this file does not describe; `check` says where there are none.
        return None
    if not pools and (fault := _not_on_accelerators(flavor, pods, cluster)):
        return fault
    if not standard or (not pools and cluster.node_auto_provisioning is None):
        return None
    reasons = [
        _unfit(pod_labels, pool, pods) or _over_share(flavor, [pool], pods)
        for pool in pools
        for pod_labels in _labels_of(pool)
    ]
    if pools and not all(reasons):
        return None
    provisioning = cluster.node_auto_provisioning
    if provisioning is None:
        return reasons[0]
    kind = accelerator_of(pods.labels)
    if NODE_POOL in pods.labels or (kind is not None and not provisioning.limit(kind)):
        return reasons[0] if reasons else None
    return _not_separated(pods, f"and {cluster.name} makes no node for that by itself")


def _not_on_accelerators(flavor: FlavorEntry, pods: ChosenPods, cluster: ClusterEntry) -> Fault | None:
    """Pods that request no accelerator on nodes that GKE makes for some, or TPUs by half of their selectors."""
    device, of = accelerator_resource(pods.labels), f"{accelerator_of(pods.labels)}"
    nodes = flavor.compute_class
    if (
        nodes is not None
        and nodes.when_unsatisfiable == "DoNotScaleUp"
        and all(priority.accelerator for priority in nodes.priorities)
    ):
        of = " or ".join(nodes.accelerators)
        device = TPU_RESOURCE if tpus().issuperset(nodes.accelerators) else GPU_RESOURCE
    if device is not None and device not in pods.resources:
        taint = Taint(device, "present")
        if not any(toleration.tolerates(taint) for toleration in pods.tolerations):
            return job_fault(
                f"requests no {device}, and flavor {flavor.name} puts it on nodes with {of} on {cluster.name}, whose "
                f"taint {device} only pods that request it tolerate by themselves",
                f"request {device}, or use a queue with a flavor of nodes without",
            )
    keys = [key for key in (TPU_ACCELERATOR, TPU_TOPOLOGY) if key not in pods.keys]
    if cluster.platform == "Autopilot" and TPU_RESOURCE in pods.resources and keys and COMPUTE_CLASS not in pods.keys:
        return job_fault(
            f"requests {TPU_RESOURCE} and nothing selects {' or '.join(keys)}, without which GKE makes no node for "
            f"it on {cluster.name}",
            "add both to the nodeLabels of the flavor, or to its pods",
        )
    return None


def _over_share(flavor: FlavorEntry, pools: Iterable[ResolvedNodePool], pods: ChosenPods) -> Fault | None:
    """Why each of the nodes refuses a container of the pods, though Kueue admits them and GKE makes nodes for them.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus (a container has one share).
    """
    # Of nodes that GKE makes, the smallest have one GPU.
    nodes = [(pool.sharing, pool.accelerator, pool.gpus_per_node) for pool in pools] or [
        (GpuSharing.of_labels(pods.labels), accelerator_of(pods.labels), 1)
    ]
    limits = [if_known(partial(sharing.most_in_container, kind, gpus)) for sharing, kind, gpus in nodes]
    if pods.gpus_in_container < 2 or any(most is None or pods.gpus_in_container <= most for most in limits):
        return None
    return job_fault(
        f"has a container that requests {pods.gpus_in_container} {GPU_RESOURCE}, but the GPUs of flavor {flavor.name} "
        f"are shared, and a node there refuses a container of more than {limits[0]} (UnexpectedAdmissionError)",
        "request 1, in more pods if it needs more",
    )


def _labels_of(pool: ResolvedNodePool) -> list[Mapping[str, str]]:
    """The labels of the pool's nodes: one map for each of its zones."""
    return [{**pool.labels, ZONE: zone} for zone in pool.node_locations] or [pool.labels]


def _unfit(labels: Mapping[str, str], pool: ResolvedNodePool, pods: ChosenPods) -> Fault | None:
    """Why the pods do not go on a node with the labels; None where they do, as far as known."""
    here = f"node pool {pool.name} of {pool.cluster}"
    for key, value in pods.labels.items():
        if (key in labels or is_label_known(key, pool)) and labels.get(key) != value:
            has = f"has {labels[key]}" if key in labels else "does not have it"
            return job_fault(
                f"selects {key}={value}, and {here} {has}", "select what its nodes have, or label the pool"
            )
    if pods.terms is not None and not any(_may_match(term, labels, pool) for term in pods.terms):
        label_keys = ", ".join(
            dict.fromkeys(requirement.key for term in pods.terms for requirement in term.requirements)
        )
        return job_fault(
            f"has a node affinity ({label_keys}) that no node of {here} matches", "change it, or label the pool"
        )
    for item in pool.taints:
        taint = Taint(item.key, item.value or "", item.effect)
        by_gke = (
            taint.key in TOLERATED_BY_GKE
            and not pool.outside_gke
            and (taint.key not in ACCELERATOR_RESOURCES or taint.key in pods.resources)
        )
        kept_away = taint.effect != "PreferNoSchedule" and not by_gke
        if kept_away and not any(toleration.tolerates(taint) for toleration in pods.tolerations):
            return job_fault(
                f"does not tolerate {taint.key}={taint.value}:{taint.effect}, a taint of {here}",
                "add the toleration to its pods or to the flavor",
            )
    return None


def _may_match(term: NodeSelectorTerm, labels: Mapping[str, str], pool: ResolvedNodePool) -> bool:
    def met(requirement: Requirement) -> bool:
        key = requirement.key
        return requirement.matches(labels) or not (key in labels or is_label_known(key, pool))

    return bool(term.requirements) and all(map(met, term.requirements))
