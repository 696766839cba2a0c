"""What is different between two fleets, in the words of those who use them: which team gains or loses what, and where.

In: two checked fleets. Out: sentences, each with the path of what changed. Quotas and node pools are compared as they
end up on each cluster, so a change in one place of the file shows on every cluster it reaches; the rest is compared
field by field, with items of lists by their name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.placement import queue_on
from kueue_fleet.spec.pools import ResolvedNodePool
from kueue_fleet.spec.quantity import ZERO, Quantity
from kueue_fleet.spec.wire import ResourceQuota

Area = Literal["clusters", "capacity", "quota", "settings"]
"""Under which heading a difference is told."""

_UNLIMITED: Final = "no limit"
_DRAIN: Final = "docs/tasks/drain-a-worker.md"
# What a team may use, lend or borrow is told as it ends up on each cluster.
_QUOTA_FIELDS: Final = frozenset({"nominalQuota", "borrowingLimit", "lendingLimit", "perCluster"})
_POOL_SIZES: Final = frozenset({"nodeCount", "autoscaling", "machineType", "accelerator", "perCluster", "zones"})
_LONGEST_VALUE: Final = 120


@dataclass(frozen=True, slots=True)
class Difference:
    """One change."""

    area: Area
    """clusters; capacity (node pools); quota; settings (all the rest)."""
    path: str
    """Where it is in the file, as in error messages."""
    text: str
    """What changes, for people."""

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


def compare_fleets(old: FleetSpec, new: FleetSpec) -> list[Difference]:
    """Every difference between two fleets, those of clusters first; none if and only if they are equal."""
    found = [*_clusters(old, new), *_drains(old, new), *_capacity(old, new), *_quotas(old, new)]
    told = {difference.path for difference in found}
    found += [each for each in _settings(old.wire(), new.wire(), "") if each.path not in told]
    if not found and old != new:
        found.append(Difference("settings", "", "written in another way, with the same effect"))
    return found


def _clusters(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    before, after = set(old.cluster_names), set(new.cluster_names)
    for name in old.cluster_names:
        if name not in after:
            entry = old.cluster(name)
            text = f"{entry.role} in {entry.region} goes, with all it runs"
            if entry.role == "worker":
                text += f"; drain it first: {_DRAIN}"
            if old.protects(name):
                text += "; it is protected: set its deletionProtection to false and apply that first"
            yield Difference("clusters", f"clusters[{name}]", text)
    for name in new.cluster_names:
        if name not in before:
            entry = new.cluster(name)
            yield Difference("clusters", f"clusters[{name}]", f"new {entry.role} in {entry.region}")


def _drains(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Workers that stay and lose queues: jobs of these queues that run there go on, and Kueue no longer sees them."""
    lost: dict[str, list[str]] = {}
    for queue in old.cluster_queues:
        after = new.dispatch_workers(queue.name)
        for worker in old.dispatch_workers(queue.name):
            if worker not in after and worker in new.cluster_names:
                lost.setdefault(worker, []).append(queue.name)
    for worker, queues in lost.items():
        text = f"gets no more jobs of {_listed(queues)}; drain it first: {_DRAIN}"
        yield Difference("clusters", f"clusters[{worker}]", text)


def _capacity(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
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
        yield Difference("capacity", f"nodePools[{name}]", f"{text} on {_listed(where)}")


def _pools(fleet: FleetSpec) -> dict[tuple[str, str], ResolvedNodePool]:
    return {(cluster, pool.name): pool for cluster in fleet.cluster_names for pool in fleet.node_pools_on(cluster)}


def _size(pool: ResolvedNodePool | None) -> str:
    if pool is None:
        return "nothing"
    fixed = pool.min_nodes == pool.max_nodes
    nodes = f"{pool.max_nodes}" if fixed else f"{pool.min_nodes} to {pool.max_nodes}"
    gpus = f" ({pool.max_nodes * pool.gpus_per_node} {pool.accelerator})" if pool.gpus_per_node else ""
    return f"{nodes} {pool.machine_type}{gpus}"


class _Place(NamedTuple):
    queue: str
    cluster: str
    flavor: str
    resource: str


def _quotas(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """One sentence for all resources of a flavor that change in the same way, on all clusters where they do."""
    sides = _amounts(old), _amounts(new)
    users = {**_teams(old), **_teams(new)}
    changes: dict[tuple[str, str, str], dict[str, dict[str, None]]] = {}
    for place in dict.fromkeys((*sides[0], *sides[1])):
        before, after = (side.get(place) for side in sides)
        plural = len(users.get(place.queue, ())) > 1
        for verb, amount in _gains(place.resource, before, after, plural=plural):
            of_verb = changes.setdefault((place.queue, place.flavor, verb), {})
            of_verb.setdefault(place.cluster, {})[amount] = None
    for (queue, flavor, verb), found in changes.items():
        who = _listed(users[queue]) if queue in users else f"queue {queue}"
        alike: dict[tuple[str, ...], list[str]] = {}
        for cluster, amounts_there in found.items():
            alike.setdefault(tuple(amounts_there), []).append(cluster)
        for amounts, where in alike.items():
            text = f"{who} {verb} {', '.join(amounts)} of {flavor} on {_listed(where)}"
            yield Difference("quota", f"clusterQueues[{queue}]", text)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _amounts(fleet: FleetSpec) -> dict[_Place, ResourceQuota]:
    return {
        _Place(queue.name, cluster, flavor.name, quota.name): quota
        for queue in fleet.cluster_queues
        for cluster in fleet.clusters_of(queue)
        for group in queue_on(fleet, queue, cluster).resource_groups
        for flavor in group.flavors
        for quota in flavor.resources
    }


def _teams(fleet: FleetSpec) -> dict[str, Sequence[str]]:
    """The queues of teams, and whose they are."""
    users: dict[str, dict[str, None]] = {}
    for team in fleet.teams:
        for queue in team.local_queues:
            users.setdefault(queue.cluster_queue, {})[team.name] = None
    return {queue: list(teams) for queue, teams in users.items()}


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
        shown = " -> ".join(_UNLIMITED if limit is None else str(limit) for limit in (was, becomes))
        if was == becomes:
            continue
        if was is None:
            yield f"get{s} a limit on {kind}", f"{resource} ({shown})"
        elif becomes is None:
            yield f"ha{'ve' if plural else 's'} no limit any more on {kind}", f"{resource} ({shown})"
        else:
            yield f"{_direction(was, becomes)}{s} {kind} of", f"{_distance(was, becomes)} {resource} ({shown})"


def _direction(before: Quantity, after: Quantity) -> str:
    return "gain" if before < after else "lose"


def _distance(before: Quantity, after: Quantity) -> Quantity:
    return after - before if before < after else before - after


def _settings(old: Any, new: Any, path: str) -> Iterator[Difference]:
    """Field by field; items of lists are paired by name where they have one."""
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            if not _is_told(path, str(key)):
                yield from _settings(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
        return
    before, after = _named(old), _named(new)
    if before is not None and after is not None:
        for name in dict.fromkeys((*before, *after)):
            yield from _settings(before.get(name), after.get(name), f"{path}[{name}]")
        shared = [[name for name in side if name in other] for side, other in ((before, after), (after, before))]
        if shared[0] != shared[1]:
            yield Difference("settings", path, f"order: {', '.join(shared[0])} -> {', '.join(shared[1])}")
        return
    yield Difference("settings", path, _words(old, new))


def _is_told(path: str, key: str) -> bool:
    in_quota = key in _QUOTA_FIELDS and path.startswith("clusterQueues[") and ".manager" not in path
    return in_quota or (key in _POOL_SIZES and path.startswith("nodePools["))


def _named(side: Any) -> dict[str, Any] | None:
    """Maps of a list, by name or else by index; None for other values. A list that is not there is an empty one."""
    if side is None:
        return {}
    if not isinstance(side, Sequence) or isinstance(side, str) or not all(isinstance(item, Mapping) for item in side):
        return None
    return {str(item.get("name", number)): item for number, item in enumerate(side)}


def _words(old: Any, new: Any) -> str:
    if isinstance(old, list) and isinstance(new, list):
        added, removed = ([each for each in one if each not in other] for one, other in ((new, old), (old, new)))
        parts = [
            f"{verb} {', '.join(map(_short, items))}"
            for verb, items in (("adds", added), ("removes", removed))
            if items
        ]
        return " and ".join(parts) or f"order: {_short(old)} -> {_short(new)}"
    if old is None:
        return f"new: {_short(new)}"
    if new is None:
        return f"removed; it was {_short(old)}"
    return f"{_short(old)} -> {_short(new)}"


def _short(value: Any) -> str:
    if isinstance(value, Mapping) and "name" in value:
        value = {key: each for key, each in value.items() if key != "name" and each not in ({}, [])}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
