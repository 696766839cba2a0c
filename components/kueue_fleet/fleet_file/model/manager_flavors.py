"""The names of the flavors that derived quotas of the manager are on.

A queue of the manager has quota on one flavor, which stands for all of its flavors on the workers. Kueue lends quota
within a cohort tree by flavor, so two queues of a tree may have the same flavor on the manager only where they can use
the same capacity: they are in one group where both have a flavor on the same worker, or where other queues of the tree
connect them in this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

Place = tuple[str, str]
"""A worker, and a flavor there."""


def name_flavors(
    name: str, queues: Iterable[Set[Place]], flavors: Sequence[str], workers: Sequence[str]
) -> Mapping[Place, str]:
    """The manager's flavor for each place where queues of one cohort tree have quota.

    The only group of a tree has `name`. Of several, each adds the first of its flavors, in the order of the file: so a
    name stays as it is when workers, or queues of other groups, come or go, and also when its own queues change what
    they have beside this flavor. Where another group has the flavor on other workers, the first of the group's workers
    tells the two apart.

    Args:
        name: `multiKueue.managerFlavorName`.
        queues: the places of each queue of the tree.
        flavors: all flavors, in the order of the file.
        workers: all workers, in the order of the file.
    """
    groups = _connected(queues)
    if len(groups) < 2:
        return dict.fromkeys((place for group in groups for place in group), name)
    first = (
        {flavor_set: rank for rank, flavor_set in enumerate(flavors)},
        {flavor_set: rank for rank, flavor_set in enumerate(workers)},
    )
    flavor_names: dict[Place, str] = {}
    for group in groups:
        worker, flavor = min(group, key=lambda place: (first[0][place[1]], first[1][place[0]]))
        elsewhere = any(place[1] == flavor for other in groups if other is not group for place in other)
        flavor_names |= dict.fromkeys(group, f"{name}-{flavor}-{worker}" if elsewhere else f"{name}-{flavor}")
    return flavor_names


def not_adjacent(queues: Mapping[str, Set[Place]], flavor_of: Mapping[Place, str]) -> frozenset[str]:
    """The queues of one tree that share no place with another of their group; `flavor_of` is of `name_flavors`."""
    flavors = {queue: flavor_of[next(iter(places))] for queue, places in queues.items() if places}
    return frozenset(
        queue
        for queue, flavor in flavors.items()
        if any(flavor == flavors[other] and queues[queue].isdisjoint(queues[other]) for other in flavors)
    )


def _connected(parts: Iterable[Set[Place]]) -> list[frozenset[Place]]:
    """The unions of all parts that have a place in common, directly or by way of others."""
    groups: list[frozenset[Place]] = []
    for part in filter(None, parts):
        touched_groups = [group for group in groups if not group.isdisjoint(part)]
        groups = [group for group in groups if group not in touched_groups] + [frozenset(part).union(*touched_groups)]
    return groups
