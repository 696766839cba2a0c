"""The nodes of one topology-aware flavor: a tree of domains, and what is free in its leaves.

A leaf is a node where the lowest level is kubernetes.io/hostname, else all nodes with the same label values. The counts
in a domain are scratch of one search (`search`); what is used is counted in `usage`.
Source: kueue@v0.19.2 pkg/cache/scheduler/{tas_topology_tree,tas_flavor_snapshot}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kueue_admission.decide.gates import Gates
from kueue_admission.decide.model import DomainAssignment, Node, ResourceFlavor, Topology
from kueue_admission.decide.pods import PodSet
from kueue_admission.kernel.names import HOSTNAME_LABEL

MAX_INT32: Final = 2**31 - 1
"""More pods than any domain can take."""

Amounts = Mapping[str, int]
"""Amounts by resource."""

Domains = tuple[DomainAssignment, ...]
"""Places of a pod set."""


class Domain:
    """A domain: values of the levels down to it, and in a search how many pods and slices it can take.

    `…_with_leader` are the counts if the leader pod is placed here too, `leaders` is 1 if there is room for it. `score`
    says how much its nodes are preferred.
    """

    __slots__ = ("children", "leaders", "pods", "pods_with_leader", "score", "slices", "slices_with_leader", "values")

    def __init__(self, values: tuple[str, ...]) -> None:
        self.values = values
        self.children: list[Domain] = []
        self.pods = 0
        self.pods_with_leader = 0
        self.slices = 0
        self.slices_with_leader = 0
        self.leaders = 0
        self.score = 0

    def clear(self) -> None:
        """Forget the counts of an earlier search."""
        self.pods = self.pods_with_leader = self.slices = self.slices_with_leader = self.leaders = self.score = 0


class Leaf(Domain):
    """A domain without children. `node` is set where a leaf is one node; `used` may be shared between flavors."""

    __slots__ = ("capacity", "node", "used")

    def __init__(self, values: tuple[str, ...], node: Node | None, used_amounts: dict[str, int]) -> None:
        super().__init__(values)
        self.node = node
        self.capacity: dict[str, int] = {}
        self.used = used_amounts


class TopologyState:
    """The domains of one flavor, by level, and the usage of their leaves.

    `shared` has the usage by host name of all flavors whose leaves are hosts: they may select the same nodes.
    """

    def __init__(
        self,
        flavor: ResourceFlavor,
        topology: Topology,
        nodes: Iterable[Node],
        shared_amounts: dict[str, dict[str, int]],
        gates: Gates,
    ) -> None:
        self.flavor = flavor
        self.gates = gates
        self.scored: set[tuple[str, str]] = set()
        """Pod sets for which nodes were compared in this cycle."""
        self.name = topology.name
        self.levels = topology.levels
        self.by_host = topology.levels[-1] == HOSTNAME_LABEL
        self.leaves: dict[tuple[str, ...], Leaf] = {}
        for node in nodes:
            self._add(node, dict(flavor.node_labels), shared_amounts)
        self.domains: list[list[Domain]] = [[] for _ in self.levels]
        self._grow()

    def _add(self, node: Node, wanted_labels: Mapping[str, str], shared_amounts: dict[str, dict[str, int]]) -> None:
        labels = dict(node.labels)
        if (
            not node.ready
            or node.unschedulable
            or any(labels.get(key) != value for key, value in wanted_labels.items())
        ):
            return
        if any(level not in labels for level in self.levels):
            return
        values = tuple(labels[level] for level in self.levels)
        key = values[-1:] if self.by_host else values
        leaf = self.leaves.get(key)
        if leaf is None:
            used_amounts = shared_amounts.setdefault(values[-1], {}) if self.by_host else {}
            leaf = self.leaves[key] = Leaf(values, node if self.by_host else None, used_amounts)
        for resource, amount in node.allocatable:
            leaf.capacity[resource] = leaf.capacity.get(resource, 0) + amount
        for resource, amount in node.used:
            leaf.capacity[resource] = leaf.capacity.get(resource, 0) - amount

    def _grow(self) -> None:
        known_domains: dict[tuple[str, ...], Domain] = {}
        for leaf in self.leaves.values():
            self.domains[-1].append(leaf)
            child: Domain = leaf
            for depth in range(len(self.levels) - 1, 0, -1):
                values = leaf.values[:depth]
                parent = known_domains.get(values)
                if parent is not None:
                    parent.children.append(child)
                    break
                parent = known_domains[values] = Domain(values)
                parent.children.append(child)
                self.domains[depth - 1].append(parent)
                child = parent

    def use(self, domains: Iterable[DomainAssignment], per_pod: Iterable[tuple[str, int]], sign: int) -> None:
        """Add (`sign` 1) or subtract (-1) what pods in `domains` use. Domains that are gone are passed over."""
        amounts = tuple(per_pod)
        for domain in domains:
            leaf = self.leaves.get(domain.values)
            if leaf is None:
                continue
            used_amounts = leaf.used
            for resource, amount in amounts:
                used_amounts[resource] = used_amounts.get(resource, 0) + sign * amount * domain.count
            used_amounts["pods"] = used_amounts.get("pods", 0) + sign * domain.count

    def fits(self, domains: Iterable[DomainAssignment], per_pod: Amounts) -> bool:
        """Whether pods of this size fit where they were placed."""
        for domain in domains:
            leaf = self.leaves.get(domain.values)
            if leaf is None or count_in(per_pod, self.free(leaf, empty=False))[0] < domain.count:
                return False
        return True

    def looks_at_scores(self, owner: str, pod_set: PodSet) -> bool:
        """Whether a search for pods of a workload looks at which nodes they prefer.

        Kueue keeps the nodes that it found for a pod set until the cycle ends (TASCacheNodeMatchResults), and loses
        with the counts of the first search how much each is preferred.
        """
        if not self.gates.tas_respect_node_affinity_preferred or not pod_set.preferred or not self.by_host:
            return False
        is_first = (owner, pod_set.name) not in self.scored
        self.scored.add((owner, pod_set.name))
        return is_first or not self.gates.tas_cache_node_match_results

    def merged(self, domains: Domains) -> Domains:
        """The same places, each once, in their order."""
        counts: dict[tuple[str, ...], int] = {}
        for domain in domains:
            counts[domain.values] = counts.get(domain.values, 0) + domain.count
        ordered_values = sorted(counts, key=lambda values: self.leaves[values].values)
        return tuple(DomainAssignment(values, counts[values]) for values in ordered_values)

    def stale(self, domains: Domains) -> DomainAssignment | None:
        """The first place that is not there any more."""
        return next((domain for domain in domains if domain.values not in self.leaves), None)

    @staticmethod
    def free(leaf: Leaf, *, empty: bool) -> dict[str, int]:
        """What is free in a leaf; with `empty`, as if no workload were there."""
        free_amounts = dict(leaf.capacity)
        if not empty:
            for resource, amount in leaf.used.items():
                free_amounts[resource] = free_amounts.get(resource, 0) - amount
        return free_amounts


def count_in(requests: Amounts, capacity: Amounts) -> tuple[int, str]:
    """How many times `requests` fits, and the resource that limits it (the first by name, if several do)."""
    best, limiting = None, ""
    for resource, amount in requests.items():
        times = MAX_INT32 if amount == 0 else max(0, min(capacity.get(resource, 0) // amount, MAX_INT32))
        if best is None or times < best or (times == best and resource < limiting):
            best, limiting = times, resource
    return best or 0, limiting
