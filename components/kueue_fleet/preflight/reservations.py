"""Whether a reservation that exists is what a fleet says of it.

Sources: https://cloud.google.com/compute/docs/instances/reservations-consume (a specific reservation, the same machines
and GPUs) and https://cloud.google.com/compute/docs/instances/reservations-shared (shares).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.rules.commands import RESERVATION_CHANGES, RESERVATION_THERE
from kueue_fleet.preflight.facts import Reservation
from kueue_fleet.preflight.needs import ReservationNeed


def reservation_problems(
    need: ReservationNeed, there: Sequence[Reservation], project_number: str
) -> list[Problem] | None:
    """What is wrong with the reservations THERE of the needed name; None where the file makes it and there is none.

    `project_number` is that of the fleet's project, "" where nothing depends on it.
    """
    if need.own:
        there = [reservation for reservation in there if reservation.zone in need.zones]
        if not there:
            return None
    used_reservations = [reservation for reservation in there if not need.zones or reservation.zone in need.zones]
    problems = [*_missing(need, there)]
    for reservation in used_reservations:
        problems += [*_machines(need, reservation), *_use(need, reservation, project_number)]
    total = sum(reservation.machines for reservation in used_reservations)
    if used_reservations and not need.own and total < need.nodes:
        wrong = f"it has {total} machines, but pools grow to {need.nodes} nodes"
        problems.append(
            RESERVATION_THERE.at(need.path, wrong, f"lower their limits to {total} nodes in all, or have it enlarged")
        )
    return problems


def _missing(need: ReservationNeed, there: Sequence[Reservation]) -> Iterator[Problem]:
    zones = [reservation.zone for reservation in there]
    elsewhere = f"it is in {listed(zones)}" if zones else f"{need.project} has no reservation {need.name}"
    if not zones and not need.zones:
        yield RESERVATION_THERE.at(need.path, elsewhere, f"name one that exists in {need.path}, or have it made")
    for zone in need.zones:
        if zone not in zones:
            fix = f"take a zone where it is, or another reservation, in {need.path}"
            yield RESERVATION_THERE.at(need.path, f"it is not in {zone}; {elsewhere}", fix)


def _machines(need: ReservationNeed, there: Reservation) -> Iterator[Problem]:
    if there.machine_type != need.machine_type:
        wrong = f"its machines in {there.zone} are {there.machine_type}, not {need.machine_type}"
        yield RESERVATION_THERE.at(need.path, wrong, f"write the same type in {need.path}")
    # The API reports GPUs of machines that come with them too; they follow from the type.
    if need.accelerator is not None and there.accelerators != (need.accelerator,):
        has = listed([f"{count} {kind}" for kind, count in there.accelerators]) if there.accelerators else "none"
        kind, count = need.accelerator
        wrong = f"GPUs of its machines in {there.zone}: {has}, not {count} {kind}"
        yield RESERVATION_THERE.at(need.path, wrong, f"write the same GPUs in {need.path}")
    if need.own and there.machines != need.machines:
        wrong = f"it has {there.machines} machines in {there.zone}, not {need.machines}"
        yield RESERVATION_CHANGES.at(need.path, wrong, f"`pulumi up` changes that; or write {there.machines}")


def _use(need: ReservationNeed, there: Reservation, project_number: str) -> Iterator[Problem]:
    if not there.specific:
        wrong = f"it is not specific in {there.zone}, so that any machine may take its place"
        yield RESERVATION_THERE.at(need.path, wrong, "have it made with specificReservationRequired")
    if there.status != "READY":
        yield RESERVATION_THERE.at(need.path, f"it is {there.status} in {there.zone}", "wait until it is READY")
    missing_projects = [project for project in need.shared_with if not _is_shared(need, project, there, project_number)]
    if missing_projects:
        wrong = f"it is not shared with {listed(missing_projects)} in {there.zone}"
        yield RESERVATION_THERE.at(need.path, wrong, f"have it shared with {listed(missing_projects)}")


def _is_shared(need: ReservationNeed, project: str, there: Reservation, project_number: str) -> bool:
    names = {project} if need.own else {project, project_number}
    return there.share_type == "ORGANIZATION" or bool(names & there.shared_with)
