"""GKE's rules for one node pool, in the words of the fleet file.

In: a pool of the file, as it is for all clusters or on one of them. Out: problems with paths relative to the pool. The
rules are `gke.pool_rules`; those that need reservations, flavors or queues are in `check`.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/node-pools
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kueue_fleet.gke.pool_facts import RESERVATION_KEY, Breach, Gpus, PoolFacts
from kueue_fleet.gke.pool_rules import breaches
from kueue_fleet.gke.zones import DEFAULT_ZONES
from kueue_fleet.spec.capacity import Calendar, FlexStart, Reserved, Spot
from kueue_fleet.spec.problem import Problem

if TYPE_CHECKING:
    from kueue_fleet.spec.clusters import ClusterEntry
    from kueue_fleet.spec.node_pools import NodePoolEntry

_FIELDS: Final[Mapping[str, str]] = {
    "gpus": "accelerator",
    "gpus.type": "accelerator.type",
    "gpus.count": "accelerator.count",
    "zones": "zones",
    "node_count": "nodeCount",
    "initial_node_count": "initialNodeCount",
    "autoscaling": "autoscaling",
    "least_nodes": "autoscaling.totalMinNodeCount",
    "most_nodes": "autoscaling.totalMaxNodeCount",
    "location_policy": "autoscaling.locationPolicy",
    "max_run_duration": "capacity.maxRunDuration",
    "compact": "compactPlacement",
    "max_surge": "upgrade.maxSurge",
    "auto_repair": "management.autoRepair",
    "auto_upgrade": "management.autoUpgrade",
    "disk_type": "diskType",
    "ephemeral_local_ssds": "localSsdCount",
}
"""The field of each fact that the file has."""


def pool_problems(pool: NodePoolEntry) -> Iterator[Problem]:
    """Every broken rule of one pool, whatever cluster it is on."""
    if isinstance(pool.capacity, Reserved):
        for problem in pool.capacity.own_problems():
            yield problem.at("capacity")
    facts = pool_facts(pool)
    if pool.node_count is None and pool.autoscaling is None and not isinstance(pool.capacity, FlexStart):
        yield Problem("nodeCount", "is missing, and so is autoscaling", "set one of the two")
    for _, breach in breaches(facts):
        yield _problem(facts, breach)


def pool_problems_on(pool: NodePoolEntry, cluster: ClusterEntry) -> Iterator[Problem]:
    """Every rule that the pool breaks only because of the cluster: its region, and its zones."""
    anywhere = {(rule.name, breach) for rule, breach in breaches(pool_facts(pool))}
    facts = pool_facts(pool, cluster)
    for rule, breach in breaches(facts):
        if (rule.name, breach) not in anywhere:
            yield _problem(facts, breach)


def _problem(facts: PoolFacts, breach: Breach) -> Problem:
    field = f"labels[{facts.labels[breach.index or 0]}]" if breach.fact == "labels" else _FIELDS.get(breach.fact)
    if field is None:
        field = f"taints[{breach.index}]"
    elif breach.fact == "zones" and breach.index is not None:
        field = f"zones[{breach.index}]"
    return Problem(field, breach.wrong, breach.fix)


def pool_facts(pool: NodePoolEntry, cluster: ClusterEntry | None = None) -> PoolFacts:
    """What GKE would be asked for, on `cluster`; without one, what depends on it is not known."""
    capacity, scaling = pool.capacity, pool.autoscaling
    zones = pool.zones or (cluster.zones if cluster else ())
    unknown = set() if cluster else {"region"} if zones else {"region", "zones", "zone_count"}
    flex = isinstance(capacity, FlexStart)
    return PoolFacts(
        machine_type=pool.machine_type,
        gpus=(Gpus(pool.accelerator.type, pool.accelerator.count),) if pool.accelerator else (),
        region=cluster.region if cluster else "",
        zones=zones,
        zone_count=len(zones) or DEFAULT_ZONES,
        node_count=pool.node_count,
        initial_node_count=pool.initial_node_count,
        autoscaling=scaling is not None,
        limits_in_total=scaling is not None,
        least_nodes=scaling.total_min_node_count if scaling else 0,
        most_nodes=scaling.total_max_node_count if scaling else 0,
        location_policy=scaling.location_policy if scaling else None,
        spot=isinstance(capacity, Spot),
        compact=pool.compact_placement,
        max_surge=None if flex else pool.upgrade.max_surge,
        max_unavailable=None if flex else pool.upgrade.max_unavailable,
        auto_repair=not flex if pool.management.auto_repair is None else pool.management.auto_repair,
        auto_upgrade=pool.management.auto_upgrade,
        disk_type=pool.disk_type,
        ephemeral_local_ssds=pool.local_ssd_count,
        labels=tuple(pool.labels),
        taints=tuple((taint.key, taint.effect) for taint in pool.taints),
        unknown=frozenset(unknown),
        **_capacity(pool),
    )


def _capacity(pool: NodePoolEntry) -> dict[str, Any]:
    capacity = pool.capacity
    if isinstance(capacity, Reserved | Calendar):
        return {
            "reservation_type": "SPECIFIC_RESERVATION",
            "reservation_key": RESERVATION_KEY,
            "reservations": (capacity.reservation,),
        }
    if isinstance(capacity, FlexStart):
        return {
            "flex_start": True,
            "queued": capacity.queued_provisioning,
            "max_run_duration": str(capacity.max_run_duration),
            "max_run_seconds": capacity.max_run_duration.nanoseconds / 10**9,
            "reservation_type": "NO_RESERVATION",
        }
    return {"reservation_type": "NO_RESERVATION"} if isinstance(capacity, Spot) else {}


def is_closed(pool: NodePoolEntry) -> bool:
    """Whether the pool waits for its reservation to begin, and has no nodes until then."""
    return isinstance(pool.capacity, Calendar) and not pool.capacity.active
