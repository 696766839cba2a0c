"""The names of scratch disks, where jobs of their teams read them."""

from collections.abc import Iterator

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.gke.zones import region_of


def render_scratch_disks(fleet: FleetSpec, cluster: str) -> Iterator[Manifest]:
    """A ConfigMap for each disk of the cluster's region, in each namespace of its team."""
    teams = {team.name: team for team in fleet.teams}
    for entry in fleet.scratch_disks:
        if region_of(entry.zone) == fleet.cluster(cluster).region:
            for namespace in teams[entry.team].namespace_names:
                yield manifest("v1", "ConfigMap", f"disk-{entry.name}", namespace, data={"zone": entry.zone})
