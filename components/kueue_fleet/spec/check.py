"""Rules between the entries of a fleet."""

from __future__ import annotations

from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.problem import Problem


def check_fleet(fleet: FleetSpec) -> list[Problem]:
    """Every problem of `fleet`, warnings too."""
    return [
        problem.at(f"clusterQueues[{queue.name}]") for queue in fleet.cluster_queues for problem in queue.own_problems()
    ]
