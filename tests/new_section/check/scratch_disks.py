"""Scratch disks: that their team is there, and a cluster that can attach them."""

from collections.abc import Iterator

from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.scratch_disks import ScratchDiskEntry
from kueue_fleet.fleet_file.rules.teams import FAR_DISK
from kueue_fleet.gke.zones import region_of


@entry_check("scratchDisks")
def check_scratch_disk(scope: Scope, disk: ScratchDiskEntry) -> Iterator[Problem]:
    """Each disk is of a team, and in a region with a cluster."""
    path = scope.path(disk)
    yield from scope.unknown("teams", disk.team, f"{path}.team")
    if region_of(disk.zone) not in {cluster.region for cluster in scope.fleet.clusters}:
        yield FAR_DISK.at(f"{path}.zone", f"{disk.zone} is in no region of a cluster", "write a zone of one")
