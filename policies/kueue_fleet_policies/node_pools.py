"""Rules about node pools: what GKE refuses when it makes one, or what leaves jobs waiting.

The rules are `kueue_fleet.gke.pool_rules`, which the fleet file's check and the rehearsal use too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.if_known import if_known
from kueue_fleet.gke.pool import Pool, property_path
from kueue_fleet.gke.pool_rules import FLEX_START_MAX_SECONDS, POOL_RULES, PoolRule, is_dws
from kueue_fleet.google.resource_types import NODE_POOL
from kueue_fleet_policies.estate import Estate
from kueue_fleet_policies.pool import view_of
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rule import Breach, Option, ResourceRule, Settings, StackRule

_GROUP: Final = "Node pools"
_WITH_CLUSTER: Final = ("pool-initial-size", "pool-compact-zone", "accelerator-network-zone")
"""Rules that need the zones of the cluster."""
_ELSEWHERE: Final = ("pool-managed",)
"""Rules that are policies of their own, by the numbers of the CIS benchmark: gke-auto-upgrade and gke-auto-repair."""
_MAX_SECONDS: Final[Option] = {
    "type": "integer",
    "minimum": 1,
    "maximum": FLEX_START_MAX_SECONDS,
    "description": "Longest run of a DWS node that is allowed, in seconds.",
    "default": FLEX_START_MAX_SECONDS,
}


def _problems(rule: PoolRule, view: Pool) -> Iterator[Breach]:
    for breach in rule.breaches(view):
        yield Breach(property_path(view, breach), breach.wrong, breach.fix)


def _of_pool(rule: PoolRule) -> ResourceRule:
    def check(pool: Resource, settings: Settings) -> Iterator[Breach]:
        view = view_of(pool)
        problems = list(_problems(rule, view))
        yield from problems
        if rule.name == "dws-run-duration" and not problems:
            yield from _longer_than(view, settings.whole("maxSeconds"))

    return ResourceRule(
        name=rule.name,
        asks=rule.asks,
        source=rule.source,
        group=_GROUP,
        types=(NODE_POOL,),
        check=check,
        options={"maxSeconds": _MAX_SECONDS} if rule.name == "dws-run-duration" else {},
    )


def _longer_than(view: Pool, most: int) -> Iterator[Breach]:
    if if_known(lambda: is_dws(view) and (view.max_run_seconds or 0) > most):
        yield Breach(
            "nodeConfig.maxRunDuration",
            f"is {view.max_run_duration}, but at most {most}s are allowed here",
            f"set it to at most {most}s, or raise the setting maxSeconds",
        )


def _with_cluster(rule: PoolRule) -> StackRule:
    def check(estate: Estate, _: Settings) -> Iterator[tuple[Resource, Breach]]:
        for cluster in estate.clusters:
            for pool in cluster.pools:
                for problem in _problems(rule, view_of(pool.resource, pool.cluster)):
                    yield pool.resource, problem

    return StackRule(name=rule.name, asks=rule.asks, source=rule.source, group=_GROUP, check=check)


RULES: Final = tuple(
    _with_cluster(rule) if rule.name in _WITH_CLUSTER else _of_pool(rule)
    for rule in POOL_RULES
    if rule.name not in _ELSEWHERE
)
"""The rules of this module."""
