"""Node pools as a limit on what runs: quota may promise more than there are nodes.

Where a flavor leads to none of the fleet's pools, nodes are GKE's to make, without limit. Pools grow and shrink at
once; which of two pods came first to a node is not modelled. DWS makes the nodes of a ProvisioningRequest for that
request alone; other pods of the same job may be on them too. Queued pools grow for requests only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from kueue_admission.api import ResourceFlavorSpec
from kueue_admission.decide.amounts import format_amount, format_request
from kueue_admission.decide.pods import PodSet
from kueue_admission.simulate.agenda import Agenda
from kueue_fleet.fleet_file import Calendar, FleetSpec
from kueue_fleet.fleet_file.model.counted_requests import not_dispatched
from kueue_fleet.fleet_file.model.flavor_nodes import leads_to
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.jobs.check.nodes import NO_FLAVOR, nowhere_on
from kueue_fleet.jobs.fleet_job import FleetJob
from kueue_fleet.jobs.workload_file import WorkloadFile

_MEBIBYTE: Final = 1 << 20


@dataclass(slots=True)
class _Node:
    """What is free on a node that is in use; `owner` is the only workload that may be on it, empty: any."""

    free: dict[str, int]
    owner: str


@dataclass(slots=True)
class _Pool:
    """`nodes` are those in use; `ends_at` is when its calendar reservation ends. `queued`: only requests get more."""

    name: str
    least: int
    most: int
    allocatable: Mapping[str, int]
    ends_at: float | None = None
    queued: bool = False
    nodes: list[_Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    pool: _Pool
    node: _Node
    requests: tuple[tuple[str, int], ...]


class Nodes:
    """The nodes of one cluster, who is on them and who waits for some; a flavor that is out of stock gets none."""

    def __init__(self, fleet: FleetSpec, cluster: str, file: WorkloadFile) -> None:
        self._fleet = fleet
        self._kept: dict[tuple[object, ...], str] = {}
        pools = {pool.name: _pool(pool, file.begin) for pool in fleet.nodes_on(cluster)}
        self._pools: dict[str, tuple[_Pool, ...]] = {}
        for flavor in fleet.flavors:
            leads_to = [pools[pool.name] for pool in fleet.flavor_nodes(flavor, cluster)]
            if leads_to:
                self._pools[flavor.name] = tuple(leads_to)
        self._together: dict[tuple[str, ...], list[_Pool]] = {}
        self._places: dict[str, dict[str, list[_Place]]] = {}
        self._waiting: dict[str, Callable[[float], bool]] = {}
        self._cluster = cluster
        self._stock_outs = [stock_out for stock_out in file.stock_outs if stock_out.cluster in (None, cluster)]

    def place(self, job: FleetJob, now: float, requested_names: Collection[str] = ()) -> str:
        """Give the pods their places, all or none, but for pod sets that have theirs. Empty, or why not.

        `requested_names`: only these pod sets, which DWS was asked for, on new nodes of their own.
        """
        if not self._fleet.cluster(self._cluster).runs_jobs:
            return not_dispatched(self._fleet, job.record.cluster_queue)
        if job.kept_apart:
            return job.kept_apart
        out = {
            stock_out.flavor
            for stock_out in self._stock_outs
            if stock_out.at <= now < stock_out.at + stock_out.seconds and not job.runs_on
        }
        have = self._places.setdefault(job.record.key, {})
        places: dict[str, list[_Place]] = {}
        by_name = {pod_set.name: pod_set for pod_set in job.workload.pod_sets}
        for assignment in job.admissions[self._cluster].pod_sets:
            if assignment.name in have or (requested_names and assignment.name not in requested_names):
                continue
            flavors = {flavor for _, flavor in assignment.flavors}
            pools = self._pools_of(flavors)
            place_list = places[assignment.name] = []
            pods = by_name[assignment.name]
            why = self._kept_away(pods, job.record.cluster_queue, frozenset(flavors))
            if why:
                why = f"pod set {assignment.name} {why}"
            elif pools is None:
                why = "its pods have no nodes" if flavors & out else ""
            else:
                requests = (*by_name[assignment.name].node_requests, ("pods", 1))
                for _ in range(assignment.count):
                    place = _find(
                        pools, requests, job.record.key, requested=bool(requested_names), grows=not flavors & out
                    )
                    if place is None:
                        why = _why_not(pools, requests, sorted(flavors))
                        break
                    place_list.append(place)
            if why:
                _take_back(place for place_there in places.values() for place in place_there)
                none = ", ".join(sorted(flavors & out))
                return f"{why}, and there are no more of {none} now" if none else why
        have |= places
        return ""

    def _kept_away(self, pods: PodSet, queue: str, flavors: Collection[str]) -> str:
        """Why no node of their flavors takes the pods, by labels that they choose, taints of node pools or shared GPUs.

        Empty where one may.

        Kueue looks at the labels and taints of flavors alone: it admits such a job, and its pods stay pending.
        """
        shape = (queue, flavors, pods.node_selector, pods.affinity, pods.tolerations, pods.requests, pods.in_container)
        if shape not in self._kept:
            entry = self._fleet.queue(queue)
            fault = nowhere_on(self._fleet, entry, pods, self._cluster, flavors) if entry is not None else None
            self._kept[shape] = fault.wrong if fault is not None and fault is not NO_FLAVOR else ""
        return self._kept[shape]

    def wait(self, job: FleetJob, seek: Callable[[float], bool]) -> None:
        """Call `seek` whenever there is room or stock again, until it returns True or the job leaves."""
        attempt = job.attempt(self._cluster)
        self._waiting[job.record.key] = lambda now: job.attempt(self._cluster) != attempt or seek(now)

    def give(self, now: float) -> None:
        """There may be room or stock for those that wait."""
        for key, seek in list(self._waiting.items()):
            if self._waiting.get(key) is seek and seek(now):
                self._waiting.pop(key, None)

    def plan(self, agenda: Agenda, lose: Callable[[str, Mapping[str, int], float], None]) -> None:
        """Plan what changes at a known time.

        `lose` is called at the end of a calendar reservation with the pool, and how many pods of which workloads were
        on its nodes. It is for them to leave.
        """
        for out in self._stock_outs:
            agenda.plan(out.at + out.seconds, self.give)
            agenda.progress(out.at + out.seconds)
        pools = {pool.name: pool for leads_to in self._pools.values() for pool in leads_to}
        for pool in pools.values():
            if pool.ends_at is not None:
                agenda.plan(pool.ends_at, partial(self._plan_end, pool, agenda, lose))
                agenda.progress(pool.ends_at)

    def _plan_end(
        self, pool: _Pool, agenda: Agenda, lose: Callable[[str, Mapping[str, int], float], None], now: float
    ) -> None:
        """After everything else that happens at this moment, such as the end of a job."""
        agenda.plan(now, lambda time: lose(pool.name, self._end(pool), time))

    def _end(self, pool: _Pool) -> Mapping[str, int]:
        pool.most = 0
        places = {
            key: [place for places_there in pods.values() for place in places_there]
            for key, pods in self._places.items()
        }
        lost = {key: sum(place.pool is pool for place in places_there) for key, places_there in places.items()}
        return {key: count for key, count in lost.items() if count}

    @property
    def standing(self) -> Mapping[str, int]:
        """How many nodes each pool has: those in use, and at least its minimum."""
        pools = {pool.name: pool for leads_to in self._pools.values() for pool in leads_to}
        return {name: max(len(pool.nodes), min(pool.least, pool.most)) for name, pool in pools.items()}

    def has(self, flavor: str) -> bool:
        """Whether the flavor leads to a node pool of the fleet."""
        return flavor in self._pools

    def leave(self, key: str, now: float) -> None:
        """Take the workload's pods away; it waits no longer, and others get its room."""
        self._waiting.pop(key, None)
        places = [place for places_there in self._places.pop(key, {}).values() for place in places_there]
        _take_back(places)
        if places:
            self.give(now)

    def _pools_of(self, flavors: set[str]) -> Sequence[_Pool] | None:
        """Pools to which the flavors that lead to any lead together; None if no flavor does."""
        limited = tuple(flavor for flavor in sorted(flavors) if flavor in self._pools)
        if len(limited) < 2:
            return self._pools[limited[0]] if limited else None
        if limited not in self._together:
            pools = {pool.name: pool for flavor in limited for pool in self._pools[flavor]}
            together = pools_by_label(self._fleet, self._cluster, limited).values()
            names = {pool.name for pools_there in together for pool in pools_there}
            self._together[limited] = [pool for name, pool in pools.items() if name in names]
        return self._together[limited]


def pools_by_label(fleet: FleetSpec, cluster: str, flavors: Sequence[str]) -> Mapping[str, list[ResolvedNodePool]]:
    """The pools to which flavors of one pod lead together, by the flavor whose node labels it gets first.

    Kueue takes the flavors at random, and keeps the first value of each label; they differ only where values do.

    Source: kueue@v0.19.2 pkg/podset/podset.go (FromAssignment).
    """
    entries = [entry for name in flavors if (entry := fleet.flavor(name)) is not None]
    labels = {entry.name: fleet.flavor_on(entry, cluster).node_labels for entry in entries}
    return {
        entry.name: [pool for pool in fleet.flavor_nodes(entry, cluster) if _leads_there(entry.name, labels, pool)]
        for entry in entries
    }


def _leads_there(first: str, labels: Mapping[str, Mapping[str, str]], pool: ResolvedNodePool) -> bool:
    """Whether some order of the flavors, from `first` on, leads to the pool.

    One can be next where its labels do that no flavor before it has. Each flavor leaves fewer of them to the others, so
    that it does not matter which of several comes first.
    """
    covered: set[str] = set()

    def can_be_next(flavor: str) -> bool:
        own_labels = {key: value for key, value in labels[flavor].items() if key not in covered}
        return leads_to(ResourceFlavorSpec.model_construct(node_labels=own_labels), pool)

    following: str | None = first if can_be_next(first) else None
    left = dict.fromkeys(labels)
    while following is not None:
        covered |= labels[following].keys()
        del left[following]
        following = next(filter(can_be_next, left), None)
    return not left


def _pool(pool: ResolvedNodePool, begin: datetime | None) -> _Pool:
    new_pool = _Pool(pool.name, pool.min_nodes, pool.max_nodes, pool.known_allocatable or {}, queued=pool.queued)
    if begin is not None and isinstance(pool.capacity, Calendar):
        new_pool.ends_at = max(0.0, (pool.capacity.end - begin).total_seconds())
    return new_pool


def _find(
    pools: Sequence[_Pool], requests: Sequence[tuple[str, int]], key: str, *, requested: bool, grows: bool
) -> _Place | None:
    """The first node with room that a workload may be on, else a new one if the pools get any."""
    owners = {key} if requested else {key, ""}
    for pool in pools:
        node = next((node for node in pool.nodes if node.owner in owners and fits(node.free, requests)), None)
        more = grows and len(pool.nodes) < pool.most and (requested or not pool.queued)
        if node is None and more and fits(pool.allocatable, requests):
            node = _Node(dict(pool.allocatable), key if requested else "")
            pool.nodes.append(node)
        if node is not None:
            for resource, amount in requests:
                node.free[resource] -= amount
            return _Place(pool, node, tuple(requests))
    return None


def _why_not(pools: Sequence[_Pool], requests: Sequence[tuple[str, int]], flavors: Sequence[str]) -> str:
    if not pools:
        return f"no node pool is of all of its flavors {' and '.join(flavors)}"
    full = ", ".join(f"{pool.name} ({len(pool.nodes)} of {pool.most} nodes in use)" for pool in pools)
    small = [
        f"a pod asks for {format_request(resource, amount)} {resource}, and a node of {pool.name} has "
        f"{_whole(resource, pool.allocatable.get(resource, 0))}"
        for pool in pools
        for resource, amount in requests
        if pool.allocatable and pool.allocatable.get(resource, 0) < amount
    ]
    return f"its pods do not all fit on node pool {full}{f': {small[0]}' if small else ''}"


def _whole(resource: str, amount: int) -> str:
    """The amount; of bytes no more than whole mebibytes, as nodes never have a round number of them."""
    in_bytes = resource in ("memory", "ephemeral-storage") and amount >= _MEBIBYTE
    return format_amount(resource, amount // _MEBIBYTE * _MEBIBYTE if in_bytes else amount)


def fits(free: Mapping[str, int], requests: Sequence[tuple[str, int]]) -> bool:
    """Whether there is as much as a pod requests."""
    return all(free.get(resource, 0) >= amount for resource, amount in requests)


def _take_back(places: Iterable[_Place]) -> None:
    for place in places:
        for resource, amount in place.requests:
            place.node.free[resource] += amount
        if place.node.free == place.pool.allocatable:
            place.pool.nodes = [node for node in place.pool.nodes if node is not place.node]
