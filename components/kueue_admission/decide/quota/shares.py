"""Dominant resource shares: how much of what a cohort can lend a queue, or a child cohort, has borrowed.

Source: kueue@v0.19.2 pkg/cache/scheduler/fair_sharing.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf
from typing import NamedTuple

from kueue_admission.decide.amounts import MAX_INT64, to_int64
from kueue_admission.decide.quota.cohort_tree import FlavorResources, TreeNode


class Share(NamedTuple):
    """A dominant resource share.

    `ratio` is 1000 times borrowed by lendable of the `dominant` resource, before division by `weight`. A node may
    borrow with a ratio of 0, when nothing of the resource can be lent. `borrowed` lists its flavor-resources.
    """

    weight: float
    ratio: float = 0.0
    dominant: str = ""
    borrowed: tuple[int, ...] = ()

    @property
    def is_borrowing(self) -> bool:
        """Whether it uses more than its quota of anything."""
        return bool(self.borrowed)

    @property
    def is_infinite(self) -> bool:
        """Whether it borrows with a fair weight of 0."""
        return self.weight == 0 and self.ratio != 0

    @property
    def weighted(self) -> float:
        """The ratio divided by the weight; infinite for weight 0."""
        if self.ratio == 0:
            return 0.0
        return inf if self.weight == 0 else self.ratio / self.weight

    @property
    def rounded(self) -> int:
        """As in `status.fairSharing.weightedShare`: rounded up, the largest int64 for an infinite one."""
        return MAX_INT64 if self.is_infinite else ceil(self.weighted)

    @property
    def key(self) -> tuple[bool, float]:
        """Sorts shares: infinite ones above all others, and among themselves by their unweighted ratio."""
        return (True, self.ratio) if self.is_infinite else (False, self.weighted)

    def borrows_any(self, frs: Mapping[int, int]) -> bool:
        """Whether it borrows in a flavor-resource of which `frs` asks for more than 0."""
        return any(frs.get(fr, 0) > 0 for fr in self.borrowed)


def dominant_share(node: TreeNode, ids: FlavorResources, extra: Mapping[int, int] | None = None) -> Share:
    """The share of `node`, as if it used `extra` more. 0 for a node without a parent."""
    parent = node.parent
    weight = node.fair_weight
    if parent is None:
        return Share(weight)
    borrowed_shares: list[int] = []
    by_resource: dict[str, int] = {}
    usage = node.usage
    for fr, quota in node.subtree.items():
        used_amount = usage.get(fr, 0)
        if extra is not None:
            used_amount += extra.get(fr, 0)
        if used_amount > quota:
            borrowed_shares.append(fr)
            resource = ids.names[fr][1]
            by_resource[resource] = by_resource.get(resource, 0) + used_amount - quota
    if not borrowed_shares:
        return Share(weight)
    ratio, dominant = 0.0, ""
    for resource, amount in by_resource.items():
        lendable = parent.lendable.get(resource, 0)
        if lendable > 0:
            this = float(to_int64(amount)) * 1000.0 / float(to_int64(lendable))
            if this > ratio or (this == ratio and resource < dominant):
                ratio, dominant = this, resource
    return Share(weight, ratio, dominant, tuple(borrowed_shares))
