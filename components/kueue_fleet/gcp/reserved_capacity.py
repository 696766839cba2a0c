"""Capacity that is reserved or paid for ahead: reservations, DWS Calendar, commitments.

The resources, by name, for node pools to wait for. All of it costs money whether it is used or not, and may not be
available again once it is given back: with deletion protection Pulumi refuses to delete it, and leaves it alone should
the refusal be lifted by hand. A commitment, and a request to DWS Calendar that was submitted, are never deleted, with
or without: Google Cloud does not take them back.
"""

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from kueue_fleet.fleet_file.model.capacity import CommitmentEntry, FutureReservationEntry, ReservationEntry
from kueue_fleet.gke.machines import LOCAL_SSD_GB, machine_type
from kueue_fleet.kueue_api.timestamp import timestamp_text


class ReservedCapacity(pulumi.ComponentResource):
    """Reservations, future reservations and commitments of a project."""

    reservations: "dict[str, gcp.compute.Reservation]"
    """Reservations by name."""
    future_reservations: "dict[str, gcp.compute.FutureReservation]"
    """Requests to DWS Calendar, by the name of the reservation that they turn into."""
    commitments: "dict[str, gcp.compute.RegionCommitment]"
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
            entry.name: gcp.compute.Reservation(
                f"{name}/{entry.name}",
                _reservation(project, entry),
                # A new description would replace the reservation, and give its machines back.
                self._options(ignored=["description", *_answered_otherwise(entry, "specificReservation")]),
            )
            for entry in reservations
        }
        self.future_reservations = {
            entry.name: gcp.compute.FutureReservation(
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

    def _commitment(
        self, name: str, project: pulumi.Input[str], entry: CommitmentEntry
    ) -> "gcp.compute.RegionCommitment":
        missing = [reservation for reservation in entry.reservations if reservation not in self.reservations]
        if missing:
            raise ValueError(f"commitment {entry.name}: {', '.join(missing)} is not a reservation of this component")
        if len(entry.reservations) > 1:
            raise ValueError(f"commitment {entry.name}: pulumi-gcp takes one reservation; split the commitment")
        reservation = self.reservations[entry.reservations[0]].self_link if entry.reservations else None
        return gcp.compute.RegionCommitment(
            f"{name}/{entry.name}",
            project=project,
            region=entry.region,
            name=entry.name,
            plan=entry.plan,
            type=entry.type,
            category="MACHINE",
            # Renewal is another year of cost without confirmation.
            auto_renew=False,
            resources=[
                gcp.compute.RegionCommitmentResourceArgs(
                    type=resource.type,
                    amount=str(resource.amount),
                    accelerator_type=resource.accelerator_type or None,
                )
                for resource in entry.resources
            ],
            existing_reservations=reservation,
            opts=self._options(always_retained=True),
        )


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


def _reservation(project: pulumi.Input[str], entry: ReservationEntry) -> "gcp.compute.ReservationArgs":
    asked, shared = entry.accelerator, entry.shared_with
    return gcp.compute.ReservationArgs(
        project=project,
        zone=entry.zone,
        name=entry.name,
        description="Machines of a GPU batch fleet, managed by kueue-fleet",
        # Only pools that name it get its machines.
        specific_reservation_required=True,
        specific_reservation=gcp.compute.ReservationSpecificReservationArgs(
            count=entry.count,
            instance_properties=gcp.compute.ReservationSpecificReservationInstancePropertiesArgs(
                machine_type=entry.machine_type,
                guest_accelerators=[
                    gcp.compute.ReservationSpecificReservationInstancePropertiesGuestAcceleratorArgs(
                        accelerator_type=asked.type, accelerator_count=asked.count
                    )
                ]
                if asked
                else None,
                local_ssds=[
                    gcp.compute.ReservationSpecificReservationInstancePropertiesLocalSsdArgs(
                        interface="NVME", disk_size_gb=LOCAL_SSD_GB
                    )
                ]
                * entry.local_ssd_count
                or None,
            ),
        ),
        share_settings=gcp.compute.ReservationShareSettingsArgs(
            share_type="SPECIFIC_PROJECTS" if shared else "LOCAL",
            project_maps=[
                gcp.compute.ReservationShareSettingsProjectMapArgs(id=each, project_id=each) for each in shared
            ]
            or None,
        ),
    )


def _future(project: pulumi.Input[str], entry: FutureReservationEntry) -> "gcp.compute.FutureReservationArgs":
    """A request in calendar mode: Google makes a reservation of the same name of it, and deletes that at the end.

    Source: https://cloud.google.com/compute/docs/instances/create-future-reservations-calendar-mode.
    """
    shared = gcp.compute.FutureReservationShareSettingsArgs(
        share_type="SPECIFIC_PROJECTS",
        project_maps=[
            gcp.compute.FutureReservationShareSettingsProjectMapArgs(id=each, project_id=each)
            for each in entry.shared_with
        ],
    )
    return gcp.compute.FutureReservationArgs(
        project=project,
        zone=entry.zone,
        name=entry.name,
        description="DWS Calendar, managed by kueue-fleet",
        reservation_mode="CALENDAR",
        deployment_type="DENSE",
        reservation_name=entry.name,
        planning_status=entry.planning_status,
        specific_reservation_required=True,
        auto_delete_auto_created_reservations=True,
        time_window=gcp.compute.FutureReservationTimeWindowArgs(
            start_time=timestamp_text(entry.start),
            # The API takes a duration and never returns it.
            end_time=timestamp_text(entry.end),
        ),
        specific_sku_properties=gcp.compute.FutureReservationSpecificSkuPropertiesArgs(
            total_count=str(entry.count),
            instance_properties=gcp.compute.FutureReservationSpecificSkuPropertiesInstancePropertiesArgs(
                machine_type=entry.machine_type
            ),
        ),
        # LOCAL, the default, is never returned, and would replace the request.
        share_settings=shared if entry.shared_with else None,
    )
