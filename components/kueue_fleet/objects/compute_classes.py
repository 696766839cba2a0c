"""Compute classes, by which GKE makes nodes."""

from __future__ import annotations

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.compute_classes import CLASS_API
from kueue_fleet.fleet_file.model.fleet import FleetSpec


def render_compute_classes(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The ComputeClasses of flavors on a cluster where jobs run."""
    entry = fleet.cluster(cluster)
    return [
        manifest(
            CLASS_API, "ComputeClass", flavor.name, spec=compute_class.spec(autopilot=entry.platform == "Autopilot")
        )
        for flavor in fleet.flavors
        if entry.runs_jobs
        and cluster in fleet.clusters_of(flavor)
        and (compute_class := flavor.compute_class) is not None
    ]
