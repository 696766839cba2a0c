"""The cohort tree: quotas, usage and borrowing of ClusterQueues and cohorts.

Nodes are mutable scratch, owned by one `cache.Cache`; decisions change their usage and undo it. Flavor-resources are
small integers (`FlavorResources`), so that a node's usage is plain dicts of integers. What depends on quotas only
(subtree and local quota, potential, lendable, height) is computed once per change of the objects, by `seal`.

Invariant: a cohort's usage is the sum over its children of what each uses beyond its own local quota.

Why sums suffice: a node keeps `local`, its subtree quota less its lending limit, to itself, and uses that first. Only
max(0, usage - local) reaches its parent, so a cohort needs to know neither who uses its quota nor in which order it
came: the usage of a whole tree is a function of the usage of its queues. Adding an amount to a queue and removing it
again, with anything in between, therefore ends where it began, and both touch the path to the root alone. What a node
could use more is asked the same way: its own unused local quota, and of its parent's answer what the borrowing limit
lets through. The recursion takes the least over all levels, in time of the depth, not of the number of queues.

Source: kueue@v0.19.2 pkg/cache/scheduler/resource_node.go,
pkg/scheduler/preemption/classical/hierarchical_preemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from kueue_admission.decide.amounts import MAX_INT64, UNLIMITED
from kueue_admission.decide.model import ResourceGroup, ResourceQuota

Usage = tuple[tuple[int, int], ...]
"""Pairs of flavor-resource and amount."""


class FlavorResources:
    """Numbers the pairs of flavor and resource, in the order in which they are first seen."""

    __slots__ = ("_ids", "names")

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], int] = {}
        self.names: list[tuple[str, str]] = []

    def id(self, flavor: str, resource: str) -> int:
        """The number of a pair; a new one if it was not seen before."""
        key = (flavor, resource)
        number = self._ids.get(key)
        if number is None:
            number = self._ids[key] = len(self.names)
            self.names.append(key)
        return number


class TreeNode:
    """A ClusterQueue or a cohort, as far as quota goes.

    `queues` and `cohorts` are the children that take part (inactive ClusterQueues do not, but their quota and usage
    still count in `subtree` and `usage` of the cohort); `members` has all of them. `local` holds only what is above 0.
    """

    is_queue: ClassVar[bool] = False

    __slots__ = (
        "borrowing_limit",
        "cohorts",
        "fair_weight",
        "height",
        "lendable",
        "lending_limit",
        "local",
        "members",
        "name",
        "nominal",
        "parent",
        "potential",
        "queues",
        "subtree",
        "usage",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.parent: TreeNode | None = None
        self.members: list[TreeNode] = []
        self.cohorts: list[TreeNode] = []
        self.queues: list[TreeNode] = []
        self.nominal: dict[int, int] = {}
        self.borrowing_limit: dict[int, int] = {}
        self.lending_limit: dict[int, int] = {}
        self.subtree: dict[int, int] = {}
        self.local: dict[int, int] = {}
        self.potential: dict[int, int] = {}
        self.lendable: dict[str, int] = {}
        self.usage: dict[int, int] = {}
        self.fair_weight = 1.0
        self.height = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def set_quotas(self, groups: Iterable[ResourceGroup], ids: FlavorResources) -> None:
        """Replace the node's own quotas. `seal` the whole tree afterwards."""
        self.nominal, self.borrowing_limit, self.lending_limit = {}, {}, {}
        for group in groups:
            for flavor in group.flavors:
                for resource, quota in flavor.quotas:
                    self._set_quota(ids.id(flavor.flavor, resource), quota)

    def _set_quota(self, fr: int, quota: ResourceQuota) -> None:
        self.nominal[fr] = quota.nominal
        if quota.borrowing_limit is not None:
            self.borrowing_limit[fr] = quota.borrowing_limit
        if quota.lending_limit is not None:
            self.lending_limit[fr] = quota.lending_limit

    def path(self) -> Iterator[TreeNode]:
        """The cohorts above this node, from the parent to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def root(self) -> TreeNode:
        """The topmost node above this one, or this one."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node


def local_available(node: TreeNode, fr: int) -> int:
    """What this node keeps to itself by its lending limit and does not use."""
    local = node.local.get(fr, 0)
    return max(0, local - node.usage.get(fr, 0)) if local else 0


def raw_available(node: TreeNode, fr: int) -> int:
    """How much more the node could use now; negative when it, or its cohort, uses more than there is."""
    usage = node.usage.get(fr, 0)
    subtree = node.subtree.get(fr, 0)
    parent = node.parent
    if parent is None:
        return subtree - usage
    above = raw_available(parent, fr)
    local = node.local.get(fr, 0)
    limit = node.borrowing_limit.get(fr)
    if limit is not None:
        used_above = usage - local
        capped_amount = subtree - local - (used_above if used_above > 0 else 0) + limit
        if capped_amount < above:
            above = capped_amount
    return above + (local - usage) if local > usage else above


def available(node: TreeNode, fr: int) -> int:
    """How much more a ClusterQueue could use without preempting any workload; 0 rather than negative."""
    amount = raw_available(node, fr)
    return amount if amount > 0 else 0


def add_usage(node: TreeNode, fr: int, amount: int) -> None:
    """Add to the node, and to the cohorts above what exceeds the node's local quota."""
    current: TreeNode | None = node
    while current is not None:
        usage = current.usage
        before = usage.get(fr, 0)
        usage[fr] = before + amount
        local = current.local.get(fr, 0)
        if local > before:
            amount -= local - before
            if amount <= 0:
                return
        current = current.parent


def remove_usage(node: TreeNode, fr: int, amount: int) -> None:
    """The inverse of `add_usage`."""
    current: TreeNode | None = node
    while current is not None:
        usage = current.usage
        before = usage.get(fr, 0)
        usage[fr] = before - amount
        stored_amount = before - current.local.get(fr, 0)
        if stored_amount <= 0:
            return
        if stored_amount < amount:
            amount = stored_amount
        current = current.parent


def add_all(node: TreeNode, usage: Usage) -> None:
    """`add_usage` for every pair."""
    for fr, amount in usage:
        add_usage(node, fr, amount)


def remove_all(node: TreeNode, usage: Usage) -> None:
    """`remove_usage` for every pair."""
    for fr, amount in usage:
        remove_usage(node, fr, amount)


def borrows_with(queue: TreeNode, fr: int, amount: int) -> bool:
    """Whether a ClusterQueue would use more than its nominal quota with `amount` more."""
    return queue.nominal.get(fr, 0) < queue.usage.get(fr, 0) + amount


def within_nominal(node: TreeNode, frs: Iterable[int]) -> bool:
    """Whether the node uses no more than its subtree quota in any of `frs`."""
    subtree, usage = node.subtree, node.usage
    for fr in frs:  # noqa: SIM110 - called for every candidate; a generator takes three times as long
        if subtree.get(fr, 0) < usage.get(fr, 0):
            return False
    return True


def borrow_level(queue: TreeNode, fr: int, amount: int) -> tuple[int, bool]:
    """How far up quota for `amount` more must be borrowed, and whether there is a level above that.

    0 is the ClusterQueue itself; higher numbers are heights of cohorts, the root's height if nothing fits.
    """
    parent = queue.parent
    if parent is None:
        return 0, False
    if not borrows_with(queue, fr, amount):
        return 0, True
    rest = amount - local_available(queue, fr)
    node = parent
    while True:
        if node.subtree.get(fr, 0) >= node.usage.get(fr, 0) + rest:
            return node.height, node.parent is not None
        rest -= local_available(node, fr)
        if node.parent is None:
            return node.height, False
        node = node.parent


def fits_in_quota(node: TreeNode, requests: Usage) -> tuple[bool, Usage]:
    """Whether `requests` fit in the node's own quota, and what is left to ask its parent for."""
    fits = True
    rest = []
    for fr, amount in requests:
        if node.subtree.get(fr, 0) < node.usage.get(fr, 0) + amount:
            fits = False
        rest.append((fr, max(0, amount - local_available(node, fr))))
    return fits, tuple(rest)


def seal(root: TreeNode, ids: FlavorResources) -> None:
    """Compute what follows from the quotas in the tree of `root`, and the cohorts' usage from that of the queues."""
    _sum_up(root)
    _look_down(root, tuple(root.subtree), ids)


def _sum_up(node: TreeNode) -> None:
    subtree = dict(node.nominal)
    usage: dict[int, int] = {}
    for child in node.members:
        _sum_up(child)
        for fr, quota in child.subtree.items():
            subtree[fr] = subtree.get(fr, 0) + quota - child.local.get(fr, 0)
        for fr, used_amount in child.usage.items():
            usage[fr] = usage.get(fr, 0) + max(0, used_amount - child.local.get(fr, 0))
    node.subtree = {fr: UNLIMITED if quota >= MAX_INT64 else quota for fr, quota in subtree.items()}
    node.local = {
        fr: node.subtree[fr] - limit for fr, limit in node.lending_limit.items() if node.subtree.get(fr, 0) > limit
    }
    if not node.is_queue:
        node.usage = usage
        highest = min(len(node.cohorts) + len(node.queues), 1)
        node.height = max([highest, *(child.height + 1 for child in node.cohorts)])


def _look_down(node: TreeNode, frs: tuple[int, ...], ids: FlavorResources) -> None:
    parent = node.parent
    if parent is None:
        node.potential = dict(node.subtree)
    else:
        node.potential = {fr: _potential(node, parent, fr) for fr in frs}
    if node.is_queue:
        return
    node.lendable = {}
    for fr in frs:
        resource = ids.names[fr][1]
        node.lendable[resource] = node.lendable.get(resource, 0) + node.potential.get(fr, 0)
    for child in node.members:
        _look_down(child, frs, ids)


def _potential(node: TreeNode, parent: TreeNode, fr: int) -> int:
    most = node.local.get(fr, 0) + parent.potential.get(fr, 0)
    limit = node.borrowing_limit.get(fr)
    return most if limit is None else min(most, node.subtree.get(fr, 0) + limit)
