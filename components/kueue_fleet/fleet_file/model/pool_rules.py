"""GKE's rules for one node pool, in the words of the fleet file.

The rules are `gke.pool_rules`, and judge what `pool_properties` renders; those that need reservations, flavors or
queues are in `check`.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/node-pools
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kueue_admission.kernel.form_rules import NEEDED
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.model.capacity import FlexStart
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.pool_fields import NodePoolFields
from kueue_fleet.fleet_file.model.pool_properties import file_path, pool_view
from kueue_fleet.fleet_file.rules import POOL
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.gke.pool import Breach, Pool, property_path
from kueue_fleet.gke.pool_rules import PoolRule, breaches


def pool_problems(pool: NodePoolFields) -> Iterator[Problem]:
    """Every broken rule of one pool, whatever cluster it is on."""
    yield from _sized(pool)
    facts = pool_view(pool)
    for broken, breach in breaches(facts):
        yield _problem(pool, broken, facts, breach)


@where_read
def _sized(pool: NodePoolFields) -> Iterator[Problem]:
    if pool.node_count is None and pool.autoscaling is None and not isinstance(pool.capacity, FlexStart):
        yield NEEDED.at("nodeCount", "is missing, and so is autoscaling", "set one of the two")
    if pool.upgrade is not None and isinstance(pool.capacity, FlexStart):
        yield NO_EFFECT.at("upgrade", "is not used, as GKE upgrades flex-start nodes in its own way", "remove it")


def pool_problems_on(pool: NodePoolFields, cluster: ClusterEntry) -> Iterator[Problem]:
    """Every rule that the pool breaks only because of the cluster: its region, and its zones."""
    facts = pool_view(pool, cluster)
    all_problems = [*breaches(facts)]
    anywhere = {(broken.name, breach) for broken, breach in breaches(pool_view(pool))} if all_problems else ()
    for broken, breach in all_problems:
        of_cluster = breach.fact == "zones" and breach.index is not None and not pool.zones
        if (broken.name, breach) not in anywhere and not of_cluster:
            yield _problem(pool, broken, facts, breach)


def _problem(pool: NodePoolFields, broken: PoolRule, facts: Pool, breach: Breach) -> Problem:
    problem = POOL[broken.name].at(file_path(property_path(facts, breach)), breach.wrong, breach.fix)
    # GKE has taken a pool that exists; what the file says of it may be wrong, and is never asked for.
    return replace(problem, severity="warning") if pool.existing else problem
