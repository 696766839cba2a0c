"""In which order the heads of the queues are taken in a cycle.

Classical: borrowers last, then priority, then time. With fair sharing a tournament in every cohort tree: at each
cohort the child whose share would be lowest with its head admitted goes first, and it is held again after each head.
Kueue leaves the order of equal heads, and of separate trees, to chance; here it is by uid and by name.
Source: kueue@v0.19.2 pkg/scheduler/scheduler.go (makeClassicalIterator), pkg/scheduler/fair_sharing_iterator.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kueue_admission.decide.quota.cohort_tree import TreeNode, add_all, remove_all
from kueue_admission.decide.quota.shares import dominant_share

if TYPE_CHECKING:
    from kueue_admission.decide.scheduler.cache import Cache
    from kueue_admission.decide.scheduler.entry import Entry

_Rank = tuple[bool, bool, tuple[bool, float], int, float, str]


def classical_order(entries: list[Entry], cache: Cache) -> Iterator[Entry]:
    """Entries with a reservation, then by borrow level, priority and queue time."""
    if len(entries) < 2:
        return iter(entries)
    by_preemptor = cache.gates.prioritize_preemptor_workloads
    by_priority = cache.gates.priority_sorting_within_cohort

    def key(entry: Entry) -> tuple[bool, bool, int, int, float, str]:
        info = entry.info
        return (
            not info.is_reserved,
            by_preemptor and not entry.is_preemptor,
            entry.assignment.borrowing,
            -info.priority if by_priority else 0,
            info.queue_time,
            info.uid,
        )

    return iter(sorted(entries, key=key))


def fair_order(entries: list[Entry], cache: Cache) -> Iterator[Entry]:
    """Tournament winners, tree after tree. Usage may change between two of them; the next tournament sees it."""
    roots: dict[int, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.queue.name):
        if entry.queue.parent is None:
            yield entry
        else:
            roots.setdefault(id(entry.queue.root()), []).append(entry)
    for members in roots.values():
        yield from _tournaments(members, cache)


def _tournaments(members: list[Entry], cache: Cache) -> Iterator[Entry]:
    entries_left = {id(entry.queue): entry for entry in members}
    root = members[0].queue.root()
    ranks: dict[tuple[int, int], _Rank] = {}
    stale = list(members)
    while entries_left:
        for entry in stale:
            _rank(entry, cache, ranks)
        winner = _winner(root, entries_left, ranks)
        if winner is None:
            return
        del entries_left[id(winner.queue)]
        yield winner
        touched_nodes = {id(node) for node in winner.queue.path() if node is not root}
        stale = [
            entry
            for entry in entries_left.values()
            if entry.queue is winner.queue or not touched_nodes.isdisjoint(id(node) for node in entry.queue.path())
        ]


def _rank(entry: Entry, cache: Cache, ranks: dict[tuple[int, int], _Rank]) -> None:
    """Rank the entry at every cohort above its queue, as if it were admitted."""
    usage = entry.usage()
    add_all(entry.queue, usage)
    requested_usage = dict(usage)
    info = entry.info
    node: TreeNode = entry.queue
    while node.parent is not None:
        share = dominant_share(node, cache.ids)
        ranks[(id(node.parent), id(entry))] = (
            cache.gates.prioritize_preemptor_workloads and not entry.is_preemptor,
            cache.gates.fair_sharing_prioritize_non_borrowing and share.borrows_any(requested_usage),
            share.key,
            -info.priority if cache.gates.priority_sorting_within_cohort else 0,
            info.queue_time,
            info.uid,
        )
        node = node.parent
    remove_all(entry.queue, usage)


def _winner(cohort: TreeNode, entries: dict[int, Entry], ranks: dict[tuple[int, int], _Rank]) -> Entry | None:
    candidates = [winner for child in cohort.cohorts if (winner := _winner(child, entries, ranks)) is not None]
    candidates += [entries[id(queue)] for queue in cohort.queues if id(queue) in entries]
    if not candidates:
        return None
    here = id(cohort)
    return min(candidates, key=lambda entry: ranks[(here, id(entry))])
