"""GKE's rules for one node pool, in the words of the fleet file.

The rules are `gke.pool_rules`; those that need reservations, flavors or queues are in `check`.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/node-pools
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kueue_admission.forms.form_rules import NEEDED
from kueue_admission.forms.problem import NotReadError, Problem, rule
from kueue_fleet.fleet_file.fleet_rules import NO_EFFECT, POOL
from kueue_fleet.fleet_file.model.capacity import Calendar, FlexStart, Reserved, Spot
from kueue_fleet.gke.pool_facts import RESERVATION_KEY, Breach, Gpus, PoolFacts
from kueue_fleet.gke.pool_rules import PoolRule, breaches
from kueue_fleet.gke.tpu_slices import asked_topology
from kueue_fleet.gke.zones import DEFAULT_ZONES

if TYPE_CHECKING:
    from kueue_fleet.fleet_file.model.clusters import ClusterEntry
    from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry

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
    "tpu_topology": "tpuTopology",
    "network_profile": "acceleratorNetworkProfile",
    "max_surge": "upgrade.maxSurge",
    "auto_repair": "management.autoRepair",
    "auto_upgrade": "management.autoUpgrade",
    "disk_type": "diskType",
    "ephemeral_local_ssds": "localSsdCount",
}
"""The field of each fact that the file has."""


def pool_problems(pool: NodePoolEntry) -> Iterator[Problem]:
    """Every broken rule of one pool, whatever cluster it is on."""
    yield from _sized(pool)
    facts = pool_facts(pool)
    for broken, breach in breaches(facts):
        yield _problem(broken, facts, breach)


@rule
def _sized(pool: NodePoolEntry) -> Iterator[Problem]:
    if pool.node_count is None and pool.autoscaling is None and not isinstance(pool.capacity, FlexStart):
        yield NEEDED.at("nodeCount", "is missing, and so is autoscaling", "set one of the two")
    if pool.upgrade is not None and isinstance(pool.capacity, FlexStart):
        yield NO_EFFECT.at("upgrade", "is not used, as GKE upgrades flex-start nodes in its own way", "remove it")


def pool_problems_on(pool: NodePoolEntry, cluster: ClusterEntry) -> Iterator[Problem]:
    """Every rule that the pool breaks only because of the cluster: its region, and its zones."""
    facts = pool_facts(pool, cluster)
    found = [*breaches(facts)]
    anywhere = {(broken.name, breach) for broken, breach in breaches(pool_facts(pool))} if found else ()
    for broken, breach in found:
        of_cluster = breach.fact == "zones" and breach.index is not None and not pool.zones
        if (broken.name, breach) not in anywhere and not of_cluster:
            yield _problem(broken, facts, breach)


def _problem(broken: PoolRule, facts: PoolFacts, breach: Breach) -> Problem:
    field = f"labels[{facts.labels[breach.index or 0]}]" if breach.fact == "labels" else _FIELDS.get(breach.fact)
    if field is None:
        field = f"taints[{breach.index}]"
    elif breach.fact == "zones" and breach.index is not None:
        field = f"zones[{breach.index}]"
    return POOL[broken.name].at(field, breach.wrong, breach.fix)


def pool_facts(pool: NodePoolEntry, cluster: ClusterEntry | None = None) -> PoolFacts:
    """What GKE would be asked for, on `cluster`; without one, what depends on it is not known.

    Nor is what could not be read of the file.
    """
    facts: dict[str, Any] = {}
    unknown: set[str] = set()
    for names, read in _FACTS.items():
        try:
            facts.update(zip(names, read(pool), strict=True))
        except NotReadError:
            unknown.update(names)
    try:
        facts["zones"] = zones = pool.zones or (cluster.zones if cluster else ())
        facts["zone_count"] = len(zones) or DEFAULT_ZONES
        facts["region"] = cluster.region if cluster else ""
        unknown |= set() if cluster else {"region"} if zones else {"region", "zones", "zone_count"}
    except NotReadError:
        unknown |= {"region", "zones", "zone_count"}
    return PoolFacts(
        **{name: value for name, value in facts.items() if name not in unknown}, unknown=frozenset(unknown)
    )


def _reservation(pool: NodePoolEntry) -> tuple[str | None, str | None, tuple[str, ...]]:
    capacity = pool.capacity
    if isinstance(capacity, Reserved | Calendar):
        return "SPECIFIC_RESERVATION", RESERVATION_KEY, (capacity.reservation,)
    return ("NO_RESERVATION" if isinstance(capacity, FlexStart | Spot) else None), None, ()


def _max_run(pool: NodePoolEntry) -> tuple[str | None, float | None]:
    if not isinstance(pool.capacity, FlexStart):
        return None, None
    longest = pool.capacity.max_run_duration
    return str(longest), longest.nanoseconds / 10**9


def _surge(pool: NodePoolEntry) -> tuple[int | None, int | None]:
    upgrades = pool.upgrades
    return (upgrades.max_surge, upgrades.max_unavailable) if upgrades else (None, None)


def _placed(pool: NodePoolEntry) -> tuple[bool, str | None]:
    """Nodes of a multi-host TPU slice stand together; the topology of a single node is not asked for."""
    topology = asked_topology(pool.machine_type, pool.tpu_topology)
    return pool.compact_placement or topology is not None, topology


_FACTS: Final[Mapping[tuple[str, ...], Callable[[NodePoolEntry], tuple[Any, ...]]]] = {
    ("machine_type",): lambda pool: (pool.machine_type,),
    ("gpus",): lambda pool: ((Gpus(pool.accelerator.type, pool.accelerator.count),) if pool.accelerator else (),),
    ("node_count",): lambda pool: (pool.node_count,),
    ("initial_node_count",): lambda pool: (pool.initial_node_count,),
    ("autoscaling", "limits_in_total"): lambda pool: (pool.autoscaling is not None,) * 2,
    ("least_nodes",): lambda pool: (pool.autoscaling.total_min_node_count if pool.autoscaling else 0,),
    ("most_nodes",): lambda pool: (pool.autoscaling.total_max_node_count if pool.autoscaling else 0,),
    ("location_policy",): lambda pool: (pool.autoscaling.location_policy if pool.autoscaling else None,),
    ("spot",): lambda pool: (isinstance(pool.capacity, Spot),),
    ("flex_start",): lambda pool: (isinstance(pool.capacity, FlexStart),),
    ("queued",): lambda pool: (isinstance(pool.capacity, FlexStart) and pool.capacity.queued_provisioning,),
    ("reservation_type", "reservation_key", "reservations"): _reservation,
    ("max_run_duration", "max_run_seconds"): _max_run,
    ("compact", "tpu_topology"): _placed,
    ("max_surge", "max_unavailable"): _surge,
    ("network_profile",): lambda pool: (pool.accelerator_network_profile,),
    ("auto_repair",): lambda pool: (pool.repairs,),
    ("auto_upgrade",): lambda pool: (pool.management.auto_upgrade,),
    ("disk_type",): lambda pool: (pool.disk_type,),
    ("ephemeral_local_ssds",): lambda pool: (pool.local_ssd_count,),
    ("labels",): lambda pool: (tuple(pool.labels),),
    ("taints",): lambda pool: (tuple((taint.key, taint.effect) for taint in pool.taints),),
}
"""How facts are read from a pool of the file."""
