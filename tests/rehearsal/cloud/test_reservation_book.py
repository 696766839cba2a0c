from __future__ import annotations

from pathlib import Path

from kueue_rehearsal.cloud.node_pool_rules import Reservation
from kueue_rehearsal.cloud.reservation_book import ReservationBook

ZONE = "europe-west4-a"
START = "2026-12-01T00:00:00Z"
START_SECONDS = 1796083200.0
RESERVATION = {
    "specificReservation": {
        "count": 4.0,
        "instanceProperties": {
            "machineType": "n1-standard-8",
            "guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}],
        },
    }
}
FUTURE = {
    "timeWindow": {"startTime": START},
    "specificSkuProperties": {"totalCount": "8", "instanceProperties": {"machineType": "a3-ultragpu-8g"}},
}


def test_a_reservation_is_known_until_it_is_given_up_also_after_a_restart(tmp_path: Path) -> None:
    book = ReservationBook(tmp_path / "book.json")
    book.put(ZONE, "mine", RESERVATION)
    book.put(ZONE, "gone", RESERVATION)
    book.remove(ZONE, "gone")
    book.remove(ZONE, "never")
    again = ReservationBook(tmp_path / "book.json")
    assert again.reservations(0) == (Reservation("mine", ZONE, "n1-standard-8", 4, "nvidia-tesla-t4"),)


def test_a_future_reservation_ends_at_its_time(tmp_path: Path) -> None:
    book = ReservationBook(tmp_path / "book.json")
    book.put(ZONE, "asked", FUTURE | {"timeWindow": {"startTime": START, "endTime": "2026-12-02T00:00:00Z"}})
    end = START_SECONDS + 86400
    (before,) = book.reservations(end - 1)
    assert (before.active, before.ends_at, before.ended) == (True, end, False)
    (after,) = book.reservations(end)
    assert (after.active, after.ended) == (False, True)


def test_a_future_reservation_begins_at_its_time(tmp_path: Path) -> None:
    book = ReservationBook(tmp_path / "book.json")
    book.put(ZONE, "asked", FUTURE | {"reservationName": "granted"})
    (before,) = book.reservations(START_SECONDS - 1)
    assert before == Reservation("granted", ZONE, "a3-ultragpu-8g", 8, active=False)
    (after,) = book.reservations(START_SECONDS)
    assert after.active
