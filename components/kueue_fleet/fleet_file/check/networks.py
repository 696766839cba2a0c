"""Ranges of the network: none overlaps another.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/alias-ips
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations

from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.gke.regions import REGION_RANGES, default_pod_range
from kueue_fleet.kueue_api.problem import Problem, rule


def check_network(scope: Scope) -> Iterator[Problem]:
    """Ranges of nodes, pods and Services of the fleet's regions are apart; none is for a region without a cluster.

    A range of Services is for one cluster: GKE does not let two share one that is named.
    """
    network = scope.fleet.network
    regions = Counter(cluster.region for cluster in scope.fleet.clusters)
    pods = {region: text for region in regions if (text := default_pod_range(region))}
    used: dict[str, str] = {}
    sections: tuple[tuple[str, Mapping[str, str]], ...] = (
        ("ranges", {**REGION_RANGES, **network.ranges}),
        ("podRanges", pods | dict(network.pod_ranges)),
        ("serviceRanges", network.service_ranges),
    )
    for field, ranges in sections:
        for region, text in ranges.items():
            if region in regions:
                used[f"network.{field}[{region}]"] = text
            elif field != "ranges":
                yield Problem(
                    f"network.{field}[{region}]", f"no cluster is in {region}", "remove it, or add a cluster", "warning"
                )
    yield from _one_cluster(scope, regions)
    for (first, one), (second, other) in combinations(used.items(), 2):
        if ipaddress.IPv4Network(one).overlaps(ipaddress.IPv4Network(other)):
            yield Problem(second, f"{other} overlaps {one} of {first}", "use a range of its own")


@rule
def _one_cluster(scope: Scope, regions: Counter[str]) -> Iterator[Problem]:
    for region in scope.fleet.network.service_ranges:
        if regions[region] > 1:
            yield Problem(
                f"network.serviceRanges[{region}]",
                f"{regions[region]} clusters are in {region}, but a range of Services is for one",
                "remove it; GKE's own range is good for every cluster",
            )
