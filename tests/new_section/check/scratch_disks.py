"""Scratch disks: that their team is there, and a cluster that can attach them."""

from collections.abc import Iterator

from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import Scope, fleet_check
from kueue_fleet.fleet_file.rules.teams import FAR_DISK
from kueue_fleet.gke.zones import region_of


@fleet_check
@where_read
def check_scratch_disks(scope: Scope) -> Iterator[Problem]:
    """Each disk is of a team, and in a region with a cluster."""
    regions = {cluster.region for cluster in scope.fleet.clusters}
    for entry in scope.entries("scratchDisks"):
        path = scope.path(entry)
        yield from scope.unknown("teams", entry.team, f"{path}.team")
        if region_of(entry.zone) not in regions:
            yield FAR_DISK.at(f"{path}.zone", f"{entry.zone} is in no region of a cluster", "write a zone of one")
