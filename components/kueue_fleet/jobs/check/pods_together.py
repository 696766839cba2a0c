"""Pods of a job that can never all run at once: how they are to lie beside each other, and the nodes that there are.

Kueue counts quota, and kube-scheduler places pods one by one: what is admitted stays in part pending, and
waitForPodsReady evicts it again and again. Sources:
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity,
https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/ (minDomains),
https://kubernetes.io/docs/concepts/services-networking/ (one pod of a node has a host port).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kueue_admission.decide.pods import PodSet, Requirement
from kueue_admission.kernel.manifest import Manifest, inside, maps_in
from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.labels import ZONE
from kueue_fleet.jobs.check import right_job_check
from kueue_fleet.jobs.check.nodes import pod_set_of, possible_flavors
from kueue_fleet.jobs.queued_job import PodSetTemplate, QueuedJob, job_fault, of_pod_set

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_JOB_NAMES: Final = {
    "Job": ("job-name", "batch.kubernetes.io/job-name"),
    "JobSet": ("jobset.sigs.k8s.io/jobset-name",),
}
"""Labels that the pods of a kind get, with the name of their job as value."""


class _Most(NamedTuple):
    """How many pods run at once, and why not more."""

    pods: int
    why: str


@right_job_check
def warn_of_pods_together(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Jobs of which some pods stay pending on each flavor that they may have; nothing where nodes are not known."""
    for template, kept_apart in _kept_apart(fleet, job):
        wrong = f"{kept_apart}: Kueue admits it, and its pods wait, until waitForPodsReady, if that is on, evicts it"
        fault = job_fault(wrong, "ask for less in its affinity, spread or ports, or run fewer pods")
        yield of_pod_set(job, template, fault, "warning")


def why_kept_apart(fleet: FleetSpec, job: QueuedJob) -> str:
    """Why the pods of a job never all run at once; empty: they may, or it is not known."""
    return next((f"pod set {template.name} {why}" for template, why in _kept_apart(fleet, job)), "")


def _kept_apart(fleet: FleetSpec, job: QueuedJob) -> Iterator[tuple[PodSetTemplate, str]]:
    queue = fleet.queue(job.queue)
    for template in job.pod_sets if queue is not None else ():
        if queue is None or template.count < 2:
            continue
        most = _most(fleet, queue, _names(job.data), template)
        if most is not None and most.pods < template.count:
            yield template, f"has {template.count} pods that never all run at once, at most {most.pods}, as {most.why}"


def _names(job: Manifest) -> dict[str, str]:
    name = str(job["metadata"].get("name"))
    return dict.fromkeys(_JOB_NAMES.get(str(job["kind"]), ()), name)


def _most(
    fleet: FleetSpec, queue: ClusterQueueEntry, names: Mapping[str, str], template: PodSetTemplate
) -> _Most | None:
    """On the flavor that takes most of the pods; None: all of them, or it is not known."""
    pod, pod_set = inside(template.template, "spec"), pod_set_of(template)
    labels = {**inside(template.template, "metadata", "labels"), **names}
    largest: list[_Most] = []
    for cluster in (cluster for cluster in fleet.clusters_of(queue) if cluster in fleet.job_clusters):
        for flavor, _ in possible_flavors(fleet, queue, pod_set, cluster):
            pools = fleet.flavor_nodes(flavor, cluster)
            if not pools or any(not pool.sized or pool.machine is None for pool in pools):
                return None
            bounds = list(_bounds(pod, pod_set, labels, pools))
            if not bounds:
                return None
            largest.append(min(bounds))
    return max(largest, default=None)


def _bounds(
    pod: Manifest, pod_set: PodSet, labels: Mapping[str, Any], pools: Sequence[ResolvedNodePool]
) -> Iterator[_Most]:
    """Each thing that keeps pods of a kind from running together on these nodes."""
    nodes = sum(pool.full_nodes for pool in pools)
    places = {
        HOSTNAME_LABEL: (nodes, f"{_listed(pools)} has {nodes} nodes"),
        ZONE: (
            len(zones := {zone for pool in pools for zone in pool.node_locations}),
            f"its nodes are in {len(zones)} zones",
        ),
    }
    if any(
        port.get("hostPort") for container in maps_in(pod.get("containers")) for port in maps_in(container.get("ports"))
    ):
        yield _Most(nodes, f"one pod of a node has its hostPort, and {places[HOSTNAME_LABEL][1]}")
    for term in _terms(pod, "podAntiAffinity"):
        key = str(term.get("topologyKey"))
        if key in places and _selects(term, labels):
            yield _Most(places[key][0], f"its podAntiAffinity puts one on each {key}, and {places[key][1]}")
    for term in _terms(pod, "podAffinity"):
        if term.get("topologyKey") == HOSTNAME_LABEL and _selects(term, labels):
            most = max(_on_one_node(pod_set, pool) for pool in pools)
            yield _Most(most, f"its podAffinity puts all on one node, and one of {_listed(pools)} takes {most}")
    for spread in maps_in(pod.get("topologySpreadConstraints")):
        key, least = str(spread.get("topologyKey")), spread.get("minDomains") or 0
        hard = spread.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        if hard and key in places and least > places[key][0] and _selects(spread, labels):
            most = int(spread.get("maxSkew", 1)) * places[key][0]
            yield _Most(most, f"it asks for {least} different {key} by minDomains, and {places[key][1]}")


def _on_one_node(pod_set: PodSet, pool: ResolvedNodePool) -> int:
    return min(
        (pool.allocatable.get(name, 0) // amount for name, amount in pod_set.node_requests if amount),
        default=pool.pods_per_node,
    )


def _listed(pools: Sequence[ResolvedNodePool]) -> str:
    return f"pool {pools[0].name}" if len(pools) == 1 else f"pools {', '.join(pool.name for pool in pools)} together"


def _terms(pod: Manifest, kind: str) -> list[Manifest]:
    """Those that are about pods of the own namespace."""
    terms = maps_in(inside(pod, "affinity", kind).get(_REQUIRED))
    return [term for term in terms if "namespaces" not in term and "namespaceSelector" not in term]


def _selects(term: Manifest, labels: Mapping[str, Any]) -> bool:
    """Whether the selector of a term matches the pods themselves; no selector matches none."""
    if term.get("labelSelector") is None:
        return False
    requirements = [
        Requirement(key, "In", (str(value),)) for key, value in inside(term, "labelSelector", "matchLabels").items()
    ]
    requirements += [
        Requirement(
            str(match_expression.get("key")),
            str(match_expression.get("operator")),
            tuple(map(str, match_expression.get("values") or ())),
        )
        for match_expression in maps_in(inside(term, "labelSelector").get("matchExpressions"))
    ]
    return all(requirement.matches(labels) for requirement in requirements)
