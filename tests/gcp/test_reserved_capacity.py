from __future__ import annotations

from typing import Any

import pytest

import pulumi_mocks
from company_fleet import company_data
from kueue_fleet import ReservedCapacity
from kueue_fleet.fleet_file import CommitmentEntry, FutureReservationEntry, ReservationEntry
from kueue_fleet.fleet_file.model.capacity import AttachedAccelerator
from kueue_fleet.google.answers import COMPUTE_API
from pulumi_mocks import Recording

RESERVATIONS = [ReservationEntry.model_validate(entry) for entry in company_data()["reservations"]]
FUTURE = [FutureReservationEntry.model_validate(entry) for entry in company_data()["futureReservations"]]
COMMITMENTS = [CommitmentEntry.model_validate(entry) for entry in company_data()["commitments"]]


def declare(**arguments: Any) -> ReservedCapacity:
    given: dict[str, Any] = {"reservations": RESERVATIONS, "future_reservations": FUTURE, "commitments": COMMITMENTS}
    return ReservedCapacity("capacity", project="lab-project", **{**given, **arguments})


def run(**arguments: Any) -> Recording:
    return pulumi_mocks.run(lambda: declare(**arguments))


def test_a_reservation_is_for_those_who_name_it() -> None:
    assert run().one("Reservation", "capacity/l4-us-east4").inputs == {
        "project": "lab-project",
        "zone": "us-east4-c",
        "name": "l4-us-east4",
        "description": "Machines of a GPU batch fleet, managed by kueue-fleet",
        "specificReservationRequired": True,
        "specificReservation": {"count": 4, "instanceProperties": {"machineType": "g2-standard-24"}},
        "shareSettings": {"shareType": "LOCAL"},
    }


def test_a_reservation_may_have_ssds_and_be_shared() -> None:
    inputs = run().one("Reservation", "capacity/l4-backup").inputs
    assert (
        inputs["specificReservation"]["instanceProperties"]["localSsds"]
        == [{"interface": "NVME", "diskSizeGb": 375}] * 2
    )
    assert inputs["shareSettings"] == {
        "shareType": "SPECIFIC_PROJECTS",
        "projectMaps": [{"id": "123456789012", "projectId": "123456789012"}],
    }


def test_n1_machines_are_reserved_with_the_gpus_that_are_attached_to_them() -> None:
    gpus = {"machine_type": "n1-standard-8", "accelerator": AttachedAccelerator(type="nvidia-tesla-t4", count=2)}
    reservation = run(reservations=[RESERVATIONS[0].model_copy(update=gpus)], commitments=[]).one("Reservation")
    assert reservation.inputs["specificReservation"]["instanceProperties"] == {
        "machineType": "n1-standard-8",
        "guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2}],
    }
    assert "specificReservation.instanceProperties.guestAccelerators" in reservation.ignore_changes


def test_a_calendar_request_turns_into_a_reservation_of_its_name() -> None:
    assert run().one("FutureReservation").inputs == {
        "project": "lab-project",
        "zone": "us-east4-c",
        "name": "h100-december",
        "description": "DWS Calendar, managed by kueue-fleet",
        "reservationMode": "CALENDAR",
        "deploymentType": "DENSE",
        "reservationName": "h100-december",
        "planningStatus": "SUBMITTED",
        "specificReservationRequired": True,
        "autoDeleteAutoCreatedReservations": True,
        "timeWindow": {"startTime": "2026-12-01T00:00:00Z", "endTime": "2026-12-15T00:00:00Z"},
        "specificSkuProperties": {"totalCount": "2", "instanceProperties": {"machineType": "a3-highgpu-8g"}},
    }


def test_a_calendar_request_may_be_shared() -> None:
    shared = FUTURE[0].model_copy(update={"shared_with": ("123456789012",)})
    assert run(future_reservations=[shared]).one("FutureReservation").inputs["shareSettings"] == {
        "shareType": "SPECIFIC_PROJECTS",
        "projectMaps": [{"id": "123456789012", "projectId": "123456789012"}],
    }


GPUS, DISKS = "guestAccelerators", "localSsds"


@pytest.mark.parametrize(
    ("machine_type", "reported"),
    [
        ("n2-standard-8", []),
        ("g2-standard-24", [GPUS]),
        ("a3-highgpu-8g", [GPUS, DISKS]),
        ("z9-unknown-1", [GPUS, DISKS]),
    ],
)
def test_what_google_reports_of_machines_by_itself_is_no_change(machine_type: str, reported: list[str]) -> None:
    kept = RESERVATIONS[0].model_copy(update={"machine_type": machine_type})
    asked = FUTURE[0].model_copy(update={"machine_type": machine_type})
    recording = run(reservations=[kept], future_reservations=[asked], commitments=[])
    assert recording.one("Reservation").ignore_changes == (
        "description",
        *(f"specificReservation.instanceProperties.{name}" for name in reported),
    )
    assert recording.one("FutureReservation").ignore_changes == tuple(
        f"specificSkuProperties.instanceProperties.{name}" for name in reported
    )


def test_projects_by_id_are_asked_for_once_since_google_answers_with_numbers() -> None:
    ids = {"shared_with": ("123456789012", "company-research")}
    recording = run(
        reservations=[RESERVATIONS[1].model_copy(update=ids)],
        future_reservations=[FUTURE[0].model_copy(update=ids)],
        commitments=[],
    )
    for kind in ("Reservation", "FutureReservation"):
        assert "shareSettings.projectMaps" in recording.one(kind).ignore_changes
    assert "shareSettings.projectMaps" not in run().one("Reservation", "capacity/l4-backup").ignore_changes


def test_purpose_is_nothing_that_google_is_told_since_a_change_would_replace_the_reservation() -> None:
    entry = RESERVATIONS[0].model_copy(update={"purpose": "backup"})
    declared = [run(reservations=[item], commitments=[]).one("Reservation") for item in (RESERVATIONS[0], entry)]
    assert declared[0].inputs == declared[1].inputs


def test_a_commitment_pays_for_its_reservation_and_is_not_renewed() -> None:
    recording = run()
    commitment = recording.one("RegionCommitment")
    assert commitment.inputs == {
        "project": "lab-project",
        "region": "us-east4",
        "name": "l4-year",
        "plan": "TWELVE_MONTH",
        "type": "GRAPHICS_OPTIMIZED",
        "category": "MACHINE",
        "autoRenew": False,
        "resources": [
            {"type": "VCPU", "amount": "96"},
            {"type": "MEMORY", "amount": "393216"},
            {"type": "ACCELERATOR", "amount": "8", "acceleratorType": "nvidia-l4"},
        ],
        "existingReservations": f"{COMPUTE_API}/projects/lab-project/zones/us-east4-c/reservations/l4-us-east4",
    }
    assert recording.is_before(recording.one("Reservation", "capacity/l4-us-east4"), commitment)


@pytest.mark.parametrize("protection", [True, False])
def test_what_is_paid_for_is_not_destroyed_by_accident(protection: bool) -> None:
    recording = run(deletion_protection=protection)
    paid = [r for r in recording if r.custom]
    assert {r.protect for r in paid} == {protection}
    assert {r.name: r.retain_on_delete for r in paid} == {
        "capacity/l4-us-east4": protection,
        "capacity/l4-backup": protection,
        "capacity/h100-december": True,
        "capacity/l4-year": True,
    }


def test_a_draft_can_be_taken_back() -> None:
    draft = FUTURE[0].model_copy(update={"planning_status": "DRAFT"})
    result = run(future_reservations=[draft], deletion_protection=False).one("FutureReservation")
    assert result.inputs["planningStatus"] == "DRAFT"
    assert not result.retain_on_delete


def test_pools_can_wait_for_what_is_made_here_and_for_nothing_else() -> None:
    def program() -> None:
        result = declare()
        assert result.named("l4-us-east4") == [result.reservations["l4-us-east4"]]
        assert result.named("h100-december") == [result.future_reservations["h100-december"]]
        assert result.named("somebody-elses") == []

    pulumi_mocks.run(program)


def test_a_commitment_for_a_reservation_of_others_is_refused() -> None:
    with pytest.raises(ValueError, match="commitment l4-year: l4-us-east4 is not a reservation of this component"):
        run(reservations=[])


def test_a_commitment_takes_one_reservation() -> None:
    two = COMMITMENTS[0].model_copy(update={"reservations": ("l4-us-east4", "l4-backup")})
    with pytest.raises(ValueError, match="are 2, but Google's provider takes one for a commitment"):
        run(commitments=[two])
