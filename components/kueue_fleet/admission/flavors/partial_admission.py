"""Partial admission: the largest number of pods, between `minCount` and `count`, for which there is room.

Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/podset_reducer.go (a binary search, as Go's sort.Search does it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kueue_fleet.admission.pods import PodSet

T = TypeVar("T")


def search_counts(pod_sets: tuple[PodSet, ...], fits: Callable[[list[int]], T | None]) -> T | None:
    """What `fits` gives for the fewest pods taken away; None if it never does.

    The pods are taken from all pod sets in proportion to how far each may shrink.
    """
    full = [ps.count for ps in pod_sets]
    deltas = [ps.count - (ps.count if ps.min_count is None else ps.min_count) for ps in pod_sets]
    total = sum(deltas)
    if total == 0:
        return None
    good_index, good = -1, None
    low, high = 0, total + 1
    while low < high:
        middle = (low + high) // 2
        found = fits([count - delta * middle // total for count, delta in zip(full, deltas, strict=True)])
        if found is None:
            low = middle + 1
        else:
            high = middle
            good_index, good = middle, found
    return good if low == good_index else None
