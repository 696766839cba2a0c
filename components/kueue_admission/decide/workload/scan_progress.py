"""Where the search through the flavors of a workload stopped."""

from __future__ import annotations

from typing import NamedTuple


class ScanProgress(NamedTuple):
    """Where the search through the flavors stopped, to continue there next time.

    `tried` has a mapping from resource to the index of the last flavor tried, per pod set. It is valid for the shape,
    and while the queue's generation stands (or for one cycle).
    """

    tried: tuple[dict[str, int], ...]
    generation: int
    cycle: int
    shape: int

    @property
    def has_pending_flavors(self) -> bool:
        """Whether some pod set has flavors it has not been tried with."""
        return any(index != -1 for tried_indexes in self.tried for index in tried_indexes.values())

    def next_index(self, pod_set: int, resource: str, flavors: int) -> int:
        """The index of the first flavor to try for a resource of a pod set; the first of all where no other is left."""
        if pod_set >= len(self.tried):
            return 0
        index = self.tried[pod_set].get(resource, -1) + 1
        return index if index < flavors else 0

    def is_outdated(self, generation: int, cycle: int, shape: int, *, preserve: bool) -> bool:
        """Whether it says nothing about the present any more (scheduler lastAssignmentOutdated)."""
        if preserve:
            if -1 not in (self.shape, shape) and self.shape != shape:
                return True
            if cycle - self.cycle <= 1:
                return False
        return generation > self.generation
