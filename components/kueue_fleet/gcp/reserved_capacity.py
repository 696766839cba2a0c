"""Capacity that is reserved or paid for ahead: reservations, DWS Calendar, commitments.

The resources, by name, for node pools to wait for. All of it costs money whether it is used or not, and cannot be had
again at will once it is given back: with deletion protection Pulumi refuses to delete it, and leaves it alone should
the refusal be lifted by hand. A commitment, and a request to DWS Calendar that was submitted, are never deleted, with
or without: Google Cloud does not take them back.
"""

from collections.abc import Sequence
from typing import Any

import pulumi

from kueue_fleet.fleet_file.model.capacity import CommitmentEntry, FutureReservationEntry, ReservationEntry
from kueue_fleet.gcp.resources import ComputeFutureReservation, ComputeRegionCommitment, ComputeReservation
from kueue_fleet.gke.machines import machine_type
from kueue_fleet.kueue_api.timestamp import timestamp_text

LOCAL_SSD_GB = 375
"""Size of every local SSD. Source: https://cloud.google.com/compute/docs/disks/local-ssd."""


class ReservedCapacity(pulumi.ComponentResource):
    """Reservations, future reservations and commitments of a project."""

    reservations: dict[str, ComputeReservation]
    """Reservations by name."""
    future_reservations: dict[str, ComputeFutureReservation]
    """Requests to DWS Calendar, by the name of the reservation that they turn into."""
    commitments: dict[str, ComputeRegionCommitment]
    """Commitments by name."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[str],
        reservations: Sequence[ReservationEntry] = (),
        future_reservations: Sequence[FutureReservationEntry] = (),
        commitments: Sequence[CommitmentEntry] = (),
        deletion_protection: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare them.

        Raises:
            ValueError: a commitment names a reservation that is not among `reservations`, or more than one.
        """
        super().__init__("kueue-fleet:index:ReservedCapacity", name, None, opts)
        self._protect = deletion_protection
        self.reservations = {
            entry.name: ComputeReservation(
                f"{name}/{entry.name}",
                _reservation(project, entry),
                # A new description would replace the reservation, and give its machines back.
                self._options(ignored=["description", *_answered_otherwise(entry, "specificReservation")]),
            )
            for entry in reservations
        }
        self.future_reservations = {
            entry.name: ComputeFutureReservation(
                f"{name}/{entry.name}",
                _future(project, entry),
                self._options(
                    always_retained=entry.planning_status == "SUBMITTED",
                    ignored=_answered_otherwise(entry, "specificSkuProperties"),
                ),
            )
            for entry in future_reservations
        }
        self.commitments = {entry.name: self._commitment(name, project, entry) for entry in commitments}
        self.register_outputs(
            {"reservations": [*self.reservations, *self.future_reservations], "commitments": list(self.commitments)}
        )

    def named(self, reservation: str) -> list[pulumi.Resource]:
        """The reservation or future reservation of that name if it is made here, for a node pool to depend on."""
        found = self.reservations.get(reservation) or self.future_reservations.get(reservation)
        return [found] if found else []

    def _options(self, *, always_retained: bool = False, ignored: Sequence[str] = ()) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            parent=self,
            ignore_changes=list(ignored),
            protect=self._protect,
            retain_on_delete=self._protect or always_retained,
        )

    def _commitment(self, name: str, project: pulumi.Input[str], entry: CommitmentEntry) -> ComputeRegionCommitment:
        missing = [reservation for reservation in entry.reservations if reservation not in self.reservations]
        if missing:
            raise ValueError(f"commitment {entry.name}: {', '.join(missing)} is not a reservation of this component")
        if len(entry.reservations) > 1:
            raise ValueError(f"commitment {entry.name}: pulumi-gcp takes one reservation; split the commitment")
        properties: dict[str, Any] = {
            "project": project,
            "region": entry.region,
            "name": entry.name,
            "plan": entry.plan,
            "type": entry.type,
            "category": "MACHINE",
            # Renewal is another year of cost without confirmation.
            "autoRenew": False,
            "resources": [
                {
                    "type": resource.type,
                    "amount": str(resource.amount),
                    **({"acceleratorType": resource.accelerator_type} if resource.accelerator_type else {}),
                }
                for resource in entry.resources
            ],
        }
        for reservation in entry.reservations:
            properties["existingReservations"] = self.reservations[reservation].output("selfLink")
        return ComputeRegionCommitment(f"{name}/{entry.name}", properties, self._options(always_retained=True))


def _answered_otherwise(entry: ReservationEntry | FutureReservationEntry, block: str) -> list[str]:
    """What Google answers otherwise than it was asked, so that every update would take it for a change.

    Google reports what comes with the machines without being asked for it, and projects by their numbers. Of a
    reservation the first would replace it; of a future reservation each would be an amendment.
    """
    machine = machine_type(entry.machine_type)
    comes_with = {
        # Those that are attached: whether they are answered as they were asked for is not known.
        "guestAccelerators": machine is None or machine.gpus > 0 or machine.family == "n1",
        "localSsds": machine is None or machine.local_ssds > 0,
    }
    ignored = [f"{block}.instanceProperties.{name}" for name, reported in comes_with.items() if reported]
    by_id = any(not project.isdigit() for project in entry.shared_with)
    return [*ignored, *(["shareSettings.projectMaps"] if by_id else [])]


def _shared(projects: Sequence[str]) -> dict[str, Any]:
    return {
        "shareType": "SPECIFIC_PROJECTS",
        "projectMaps": [{"id": project, "projectId": project} for project in projects],
    }


def _reservation(project: pulumi.Input[str], entry: ReservationEntry) -> dict[str, Any]:
    machine: dict[str, Any] = {"machineType": entry.machine_type}
    if entry.accelerator is not None:
        asked = {"acceleratorType": entry.accelerator.type, "acceleratorCount": entry.accelerator.count}
        machine["guestAccelerators"] = [asked]
    if entry.local_ssd_count:
        machine["localSsds"] = [{"interface": "NVME", "diskSizeGb": LOCAL_SSD_GB}] * entry.local_ssd_count
    return {
        "project": project,
        "zone": entry.zone,
        "name": entry.name,
        "description": "Machines of a GPU batch fleet, managed by kueue-fleet",
        # Only pools that name it get its machines.
        "specificReservationRequired": True,
        "specificReservation": {"count": entry.count, "instanceProperties": machine},
        "shareSettings": _shared(entry.shared_with) if entry.shared_with else {"shareType": "LOCAL"},
    }


def _future(project: pulumi.Input[str], entry: FutureReservationEntry) -> dict[str, Any]:
    """A request in calendar mode: Google makes a reservation of the same name of it, and deletes that at the end.

    Source: https://cloud.google.com/compute/docs/instances/create-future-reservations-calendar-mode.
    """
    return {
        "project": project,
        "zone": entry.zone,
        "name": entry.name,
        "description": "DWS Calendar, managed by kueue-fleet",
        "reservationMode": "CALENDAR",
        "deploymentType": "DENSE",
        "reservationName": entry.name,
        "planningStatus": entry.planning_status,
        "specificReservationRequired": True,
        "autoDeleteAutoCreatedReservations": True,
        "timeWindow": {
            "startTime": timestamp_text(entry.start),
            # The API takes a duration and never returns it.
            "endTime": timestamp_text(entry.end),
        },
        "specificSkuProperties": {
            "totalCount": str(entry.count),
            "instanceProperties": {"machineType": entry.machine_type},
        },
        # LOCAL, the default, is never returned, and would replace the request.
        **({"shareSettings": _shared(entry.shared_with)} if entry.shared_with else {}),
    }
