"""A node pool of the file, which keeps the rules of GKE that concern one pool alone.

Its fields are in `pool_fields`. What a pool is on a cluster, with everything filled in, is
`resolved_pools.ResolvedNodePool`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.model.pool_fields import NodePoolFields
from kueue_fleet.fleet_file.model.pool_rules import pool_problems


class NodePoolEntry(NodePoolFields):
    """A pool of like nodes on Standard clusters."""

    def own_problems(self) -> Iterator[Problem]:
        """The rules of GKE for one pool, here and as it is on each cluster where it is different."""
        problems = list(pool_problems(self))
        yield from problems
        pairs = {(problem.path, problem.wrong) for problem in problems}
        for cluster in self.per_cluster:
            for problem in self._problems_on(cluster):
                if (problem.path, problem.wrong) not in pairs:
                    yield problem.at(f"perCluster[{cluster}]")

    @where_read
    def _problems_on(self, cluster: str) -> Iterator[Problem]:
        yield from pool_problems(self.on(cluster))
