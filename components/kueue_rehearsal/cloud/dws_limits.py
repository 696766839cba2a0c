"""What the simulated DWS can never give out, so that a rehearsal does not wait for it."""

from __future__ import annotations

from collections.abc import Mapping

from kueue_admission.read.printed import PrintedWorkload
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES, accelerator_of
from kueue_rehearsal.cloud.dws_decisions import stock_range


def beyond_stock(fleet: FleetSpec, settings: RehearsalSection, cluster: str, workload: PrintedWorkload) -> str | None:
    """Why DWS never has the GPUs for which the Workload has quota on the cluster; None if it may have them.

    DWS gives out whole nodes, which have at least the GPUs that are asked for. A flavor of the queue's `fallback` does
    not count: the job moves on to another flavor.
    """
    checks = {check.name for check in fleet.admission_checks if check.provisioning_request is not None}
    if not any(check.text("name") in checks and check.text("state") != "Ready" for check in workload.checks):
        return None
    region = fleet.cluster(cluster).region
    queue = fleet.queue(workload.cluster_queue)
    patient = {entry.flavor for entry in queue.fallback} if queue is not None else ()
    kinds = {
        flavor.name: accelerator_of(fleet.flavor_on(flavor, cluster).node_labels) or ""
        for flavor in fleet.flavors
        if flavor.name not in patient
    }
    for kind, count in _accelerators(workload, kinds).items():
        most = stock_range(settings, region, kind)[1]
        if count > most:
            return f"asks for {count} {kind}, and the simulated DWS never has more than {most} in {region}"
    return None


def _accelerators(workload: PrintedWorkload, kinds: Mapping[str, str]) -> dict[str, int]:
    """GPUs and TPU chips of each kind for which it has quota."""
    totals: dict[str, int] = {}
    for assignment in workload.assignments:
        for resource in ACCELERATOR_RESOURCES:
            kind = kinds.get(assignment.child("flavors").text(resource))
            amount = str(assignment.child("resourceUsage").data.get(resource, ""))
            if kind and amount.isdigit():
                totals[kind] = totals.get(kind, 0) + int(amount)
    return totals
