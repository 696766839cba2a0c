"""Clusters, node pools, quotas and costs: which there are, and what each team gains or loses on each cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from kueue_admission.api import ResourceQuota
from kueue_admission.kernel.quantity import ZERO, Quantity
from kueue_fleet.diff.difference import Difference
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import queue_on
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.fleet_file.quota_windows import fleet_in
from kueue_fleet.gke.gpu_sharing import WHOLE
from kueue_fleet.gke.prices import HOURS_PER_MONTH, Prices
from kueue_fleet.google.cost import cost_of

_UNLIMITED: Final = "no limit"


def compare_clusters(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """The clusters that are new; what becomes of the others is a consequence, or a setting."""
    for name in new.cluster_names:
        if name not in old.cluster_names:
            entry = new.cluster(name)
            yield Difference(
                "clusters", f"clusters[{name}]", f"new {entry.role}{f' in {entry.place}' if entry.place else ''}"
            )


def compare_capacity(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Node pools that are new or gone, and how many nodes of which machine the others have."""
    pools = [_pools(old), _pools(new)]
    clusters: dict[tuple[str, str], list[str]] = {}
    for key in dict.fromkeys((*pools[0], *pools[1])):
        before, after = (side.get(key) for side in pools)
        cluster, name = key
        if before is None:
            clusters.setdefault((name, f"new: {_size(after)}"), []).append(cluster)
        elif after is None:
            clusters.setdefault((name, f"goes: {_size(before)}"), []).append(cluster)
        elif _size(before) != _size(after):
            clusters.setdefault((name, f"{_size(before)} -> {_size(after)}"), []).append(cluster)
    for (name, text), where in clusters.items():
        yield Difference("capacity", f"nodePools[{name}]", f"{text} on {listed(where)}")


def _pools(fleet: FleetSpec) -> dict[tuple[str, str], ResolvedNodePool]:
    return {(cluster, pool.name): pool for cluster in fleet.cluster_names for pool in fleet.node_pools_on(cluster)}


def _size(pool: ResolvedNodePool | None) -> str:
    if pool is None:
        return "nothing"
    is_fixed = pool.min_nodes == pool.max_nodes
    nodes = f"{pool.max_nodes}" if is_fixed else f"{pool.min_nodes} to {pool.max_nodes}"
    accelerators = pool.max_nodes * pool.accelerators_per_node
    shares = f" in {pool.max_nodes * pool.devices_per_node} shares" if pool.sharing != WHOLE else ""
    gpus = f" ({accelerators} {pool.accelerator}{shares})" if pool.accelerators_per_node else ""
    return f"{nodes} {pool.machine_type}{gpus}"


class _Place(NamedTuple):
    queue: str
    cluster: str
    flavor: str
    resource: str


def compare_quotas(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """One sentence for all resources of a flavor that change in the same way, on all clusters where they do.

    Of each window, what changes otherwise while it is open.
    """
    differences = list(_compare_quotas(old, new))
    always = tuple(differences)
    for name in dict.fromkeys(name for fleet in (old, new) for queue in fleet.cluster_queues for name in queue.windows):
        during = _compare_quotas(*(fleet_in(fleet, frozenset({name})) for fleet in (old, new)))
        differences += [
            replace(difference, text=f"{difference.text} while {name} is open")
            for difference in during
            if difference not in always
        ]
    yield from differences
    paths = {difference.path for difference in differences}
    for queue in new.cluster_queues:
        was, path = old.queue(queue.name), f"clusterQueues[{queue.name}]"
        if was is None or path in paths or was.resource_groups == queue.resource_groups:
            continue
        if was.windows or queue.windows:
            names = (listed(list(queue_then.windows)) or "none" for queue_then in (was, queue))
            yield Difference("quota", path, f"windows of its quotas: {' -> '.join(names)}, with the same amounts")


def _compare_quotas(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    sides = _amounts(old), _amounts(new)
    changes: dict[tuple[str, str, str, str], dict[str, dict[str, None]]] = {}
    for place in dict.fromkeys((*sides[0], *sides[1])):
        before, after = (side.get(place) for side in sides)
        if before == after:
            continue
        who, plural = _users(old, new, place)
        for verb, amount in _gains(place.resource, before, after, plural=plural):
            of_verb = changes.setdefault((place.queue, place.flavor, who, verb), {})
            of_verb.setdefault(place.cluster, {})[amount] = None
    for (queue, flavor, who, verb), changes_there in changes.items():
        alike: dict[tuple[str, ...], list[str]] = {}
        for cluster, amounts_there in changes_there.items():
            alike.setdefault(tuple(amounts_there), []).append(cluster)
        for amounts, where in alike.items():
            text = f"{who} {verb} {', '.join(amounts)} of {flavor} on {listed(where)}"
            yield Difference("quota", f"clusterQueues[{queue}]", text)


def _users(old: FleetSpec, new: FleetSpec, place: _Place) -> tuple[str, bool]:
    """The teams whose jobs may use a queue on a cluster before or after, in words; and whether they are several."""
    own = dict.fromkeys(
        team.name
        for fleet in (old, new)
        for team in fleet.teams
        if any(queue.cluster_queue == place.queue for queue in team.local_queues)
        and place.cluster in fleet.cluster_names
        and _may_run(fleet, team, place.cluster)
    )
    return (listed(list(own)), len(own) > 1) if own else (f"queue {place.queue}", False)


def _may_run(fleet: FleetSpec, team: TeamEntry, cluster: str) -> bool:
    return not team.allowed_regions or fleet.cluster(cluster).place in fleet.allowed_regions(team)


def compare_regions(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """The queues that a team has before and after, on clusters to which its regions give or take it."""
    former = {team.name: team for team in old.teams}
    for team in new.teams:
        was = former.get(team.name, team)
        both = {queue.cluster_queue for queue in team.local_queues} & {
            local_queue.cluster_queue for local_queue in was.local_queues
        }
        for queue in new.cluster_queues:
            before = old.queue(queue.name)
            if queue.name not in both or before is None:
                continue
            stays = [cluster for cluster in new.clusters_of(queue) if cluster in old.clusters_of(before)]
            sides = {cluster: (_may_run(old, was, cluster), _may_run(new, team, cluster)) for cluster in stays}
            for change, words in (((False, True), "now"), ((True, False), "no longer")):
                if where := [cluster for cluster, side in sides.items() if side == change]:
                    text = f"jobs of {team.name} may run on {listed(where)} {words}"
                    yield Difference("quota", f"clusterQueues[{queue.name}]", text)


def _amounts(fleet: FleetSpec) -> dict[_Place, ResourceQuota]:
    return {
        _Place(queue.name, cluster, flavor.name, quota.name): quota
        for queue in fleet.cluster_queues
        for cluster in fleet.clusters_of(queue)
        for group in queue_on(fleet, queue, cluster).resource_groups
        for flavor in group.flavors
        for quota in flavor.resources
    }


def _gains(
    resource: str, before: ResourceQuota | None, after: ResourceQuota | None, *, plural: bool
) -> Iterator[tuple[str, str]]:
    """What changes, as a verb and an amount."""
    s = "" if plural else "s"
    old, new = (ZERO if side is None else side.nominal_quota for side in (before, after))
    if old != new:
        yield f"{_direction(old, new)}{s}", f"{_distance(old, new)} {resource} ({old} -> {new})"
    if before is None or after is None:
        return
    for field, kind in (("borrowing_limit", "borrowing"), ("lending_limit", "lending")):
        was, becomes = getattr(before, field), getattr(after, field)
        limits_text = " -> ".join(_UNLIMITED if limit is None else str(limit) for limit in (was, becomes))
        if was == becomes:
            continue
        if was is None:
            yield f"get{s} a limit on {kind}", f"{resource} ({limits_text})"
        elif becomes is None:
            yield f"ha{'ve' if plural else 's'} no limit any more on {kind}", f"{resource} ({limits_text})"
        else:
            yield f"{_direction(was, becomes)}{s} {kind} of", f"{_distance(was, becomes)} {resource} ({limits_text})"


def _direction(before: Quantity, after: Quantity) -> str:
    return "gain" if before < after else "lose"


def _distance(before: Quantity, after: Quantity) -> Quantity:
    return after - before if before < after else before - after


def compare_costs(old: FleetSpec, new: FleetSpec, prices: Prices) -> Iterator[Difference]:
    """What is paid by the hour on each cluster and for reservations, by the month in all, and what is not counted."""
    before, after = cost_of(old, prices), cost_of(new, prices)
    sides = [cost.by(lambda line: line.part_of) for cost in (before, after)]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        text = _change([side.get(name, (0.0, 0.0)) for side in sides], "an hour")
        if text:
            yield Difference("cost", name if name in ("reservations", "storage") else f"clusters[{name}]", text)
    totals = [(cost.always * HOURS_PER_MONTH, cost.in_use * HOURS_PER_MONTH) for cost in (before, after)]
    if text := _change(totals, "a month"):
        yield Difference("cost", "", f"in all {text}; prices of {prices.date}")
    changed_lines = [line for line in (*before.lines, *after.lines) if (line in before.lines) != (line in after.lines)]
    prices_of_changed = [f"the price of {machine}" for line in changed_lines if line.most for machine in line.missing]
    others = [unknown for unknown in after.unknown if unknown not in before.unknown]
    for unknown in dict.fromkeys((*prices_of_changed, *others)):
        yield Difference("cost", "", f"not in these sums: {unknown}")


def _change(sides: list[tuple[float, float]], span: str) -> str:
    words = ("used or not", "more while all nodes are in use")
    changes = [
        f"{was:,.2f} -> {becomes:,.2f} USD {span} {what}"
        for was, becomes, what in zip(*sides, words, strict=True)
        if round(was, 2) != round(becomes, 2)
    ]
    return ", ".join(changes)
