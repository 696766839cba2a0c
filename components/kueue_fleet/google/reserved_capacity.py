"""Capacity that is reserved or paid for ahead: reservations, DWS Calendar, commitments.

All of it costs money whether it is used or not, and may not be available again once it is given back: with deletion
protection Pulumi refuses to delete it, and leaves it alone should the refusal be lifted by hand. A commitment, and a
request to DWS Calendar that was submitted, are never deleted, with or without: Google Cloud does not take them back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kueue_admission.kernel.timestamp import timestamp_text
from kueue_fleet.fleet_file.model.capacity import CommitmentEntry, FutureReservationEntry, ReservationEntry
from kueue_fleet.gke.machines import LOCAL_SSD_GB, machine_type
from kueue_fleet.google.resource import CloudResource
from kueue_fleet.google.resource_kinds import RESERVATIONS
from kueue_fleet.google.resource_types import COMMITMENT


def reserved_capacity(
    name: str,
    *,
    project: Any,
    reservations: Sequence[ReservationEntry],
    future_reservations: Sequence[FutureReservationEntry],
    commitments: Sequence[CommitmentEntry],
    deletion_protection: bool,
) -> list[CloudResource]:
    """Reservations, then future reservations, then commitments.

    Raises:
        ValueError: a commitment names a reservation that is not among `reservations`, or more than one.
    """
    resources = [
        CloudResource(
            RESERVATIONS[0],
            f"{name}/{entry.name}",
            {"project": project, **_reservation(entry)},
            protect=deletion_protection,
            # A new description would replace the reservation, and give its machines back.
            ignore_changes=("description", *_answered_otherwise(entry, "specificReservation")),
            retain_on_delete=deletion_protection,
        )
        for entry in reservations
    ]
    reservations_by_name = {entry.name: resource for entry, resource in zip(reservations, resources, strict=True)}
    resources += [
        CloudResource(
            RESERVATIONS[1],
            f"{name}/{entry.name}",
            {"project": project, **_future(entry)},
            protect=deletion_protection,
            ignore_changes=_answered_otherwise(entry, "specificSkuProperties"),
            retain_on_delete=deletion_protection or entry.planning_status == "SUBMITTED",
        )
        for entry in future_reservations
    ]
    return resources + [
        CloudResource(
            COMMITMENT,
            f"{name}/{entry.name}",
            {"project": project, **_commitment(entry, reservations_by_name)},
            protect=deletion_protection,
            retain_on_delete=True,
        )
        for entry in commitments
    ]


def _answered_otherwise(entry: ReservationEntry | FutureReservationEntry, block: str) -> tuple[str, ...]:
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
    ignored_properties = [
        f"{block}.instanceProperties.{name}" for name, is_reported in comes_with.items() if is_reported
    ]
    by_id = any(not project.isdigit() for project in entry.shared_with)
    return (*ignored_properties, *(["shareSettings.projectMaps"] if by_id else []))


def _shared(entry: ReservationEntry | FutureReservationEntry) -> dict[str, Any]:
    maps = [{"id": project_shared, "projectId": project_shared} for project_shared in entry.shared_with]
    return {"shareType": "SPECIFIC_PROJECTS", "projectMaps": maps}


def _reservation(entry: ReservationEntry) -> dict[str, Any]:
    machines: dict[str, Any] = {"machineType": entry.machine_type}
    if accelerator := entry.accelerator:
        machines["guestAccelerators"] = [{"acceleratorType": accelerator.type, "acceleratorCount": accelerator.count}]
    if entry.local_ssd_count:
        machines["localSsds"] = [{"interface": "NVME", "diskSizeGb": LOCAL_SSD_GB}] * entry.local_ssd_count
    return {
        "zone": entry.zone,
        "name": entry.name,
        "description": "Machines of a GPU batch fleet, managed by kueue-fleet",
        # Only pools that name it get its machines.
        "specificReservationRequired": True,
        "specificReservation": {"count": entry.count, "instanceProperties": machines},
        "shareSettings": _shared(entry) if entry.shared_with else {"shareType": "LOCAL"},
    }


def _future(entry: FutureReservationEntry) -> dict[str, Any]:
    """A request in calendar mode: Google makes a reservation of the same name of it, and deletes that at the end.

    Source: https://cloud.google.com/compute/docs/instances/create-future-reservations-calendar-mode.
    """
    return {
        "zone": entry.zone,
        "name": entry.name,
        "description": "DWS Calendar, managed by kueue-fleet",
        "reservationMode": "CALENDAR",
        "deploymentType": "DENSE",
        "reservationName": entry.name,
        "planningStatus": entry.planning_status,
        "specificReservationRequired": True,
        "autoDeleteAutoCreatedReservations": True,
        # The API takes a duration and never returns it.
        "timeWindow": {"startTime": timestamp_text(entry.start), "endTime": timestamp_text(entry.end)},
        "specificSkuProperties": {
            "totalCount": str(entry.count),
            "instanceProperties": {"machineType": entry.machine_type},
        },
        # LOCAL, the default, is never returned, and would replace the request.
        **({"shareSettings": _shared(entry)} if entry.shared_with else {}),
    }


def _commitment(entry: CommitmentEntry, cloud_resources: Mapping[str, CloudResource]) -> dict[str, Any]:
    missing_reservations = [reservation for reservation in entry.reservations if reservation not in cloud_resources]
    if missing_reservations:
        raise ValueError(
            f"commitment {entry.name}: {', '.join(missing_reservations)} is not a reservation of this component"
        )
    if len(entry.reservations) > 1:
        raise ValueError(f"commitment {entry.name}: pulumi-gcp takes one reservation; split the commitment")
    return {
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
        **(
            {"existingReservations": cloud_resources[entry.reservations[0]].ref("selfLink")}
            if entry.reservations
            else {}
        ),
    }
