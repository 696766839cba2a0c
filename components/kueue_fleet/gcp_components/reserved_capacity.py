"""Capacity that is reserved or paid for ahead: reservations, DWS Calendar, commitments.

The resources, by name, for node pools to wait for. What protects them: `google.reserved_capacity`.
"""

from collections.abc import Sequence

import pulumi

from kueue_fleet.component import Component, judge, today
from kueue_fleet.fleet_file.alone import check_alone
from kueue_fleet.fleet_file.model.capacity import CommitmentEntry, FutureReservationEntry, ReservationEntry
from kueue_fleet.fleet_file.model.gcp_names import ProjectId
from kueue_fleet.gcp_components.declare import declare
from kueue_fleet.gcp_components.sdk import gcp
from kueue_fleet.google.reserved_capacity import reserved_capacity


class ReservedCapacity(Component):
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
        project: pulumi.Input[ProjectId],
        reservations: Sequence[ReservationEntry] = (),
        future_reservations: Sequence[FutureReservationEntry] = (),
        commitments: Sequence[CommitmentEntry] = (),
        deletion_protection: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare them.

        Raises:
            SpecError: an entry breaks rules of the fleet file.
            ValueError: a commitment names a reservation that is not among `reservations`, or more than one.
        """
        judge(
            (
                problem
                for section, entries in (
                    ("reservations", reservations),
                    ("futureReservations", future_reservations),
                    ("commitments", commitments),
                )
                for problem in check_alone(section, *entries, reservations=tuple(reservations), today=today())
            ),
            opts,
        )
        super().__init__(name, opts)
        rendered_resources = reserved_capacity(
            name,
            project=project,
            reservations=reservations,
            future_reservations=future_reservations,
            commitments=commitments,
            deletion_protection=deletion_protection,
        )
        resources = iter(declare(self, rendered_resources).values())
        self.reservations = {entry.name: next(resources) for entry in reservations}
        self.future_reservations = {entry.name: next(resources) for entry in future_reservations}
        self.commitments = {entry.name: next(resources) for entry in commitments}
        self._give_out()

    @property
    def self_links(self) -> dict[str, pulumi.Output[str]]:
        """Self link of each reservation, once it is there."""
        return {name: reservation.self_link for name, reservation in self.reservations.items()}

    def named(self, reservation: str) -> list[pulumi.Resource]:
        """The reservation or future reservation of that name if it is made here, for a node pool to depend on."""
        reservation_there = self.reservations.get(reservation) or self.future_reservations.get(reservation)
        return [reservation_there] if reservation_there else []
