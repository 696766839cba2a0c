"""The reservations that the rehearsed stack has made, for all clusters of the rehearsal.

`Reservation`s, also after the supervisor has been started again: they are in a file of the state folder.
"""

from __future__ import annotations

import json
from pathlib import Path

from kueue_admission.kernel.manifest import Manifest
from kueue_rehearsal.cloud.node_pool_rules import Reservation
from kueue_rehearsal.node_agent.status import parse_timestamp
from kueue_rehearsal.private_files import write_private


class ReservationBook:
    """Reservations by zone and name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, Manifest] = json.loads(path.read_text()) if path.is_file() else {}

    def put(self, zone: str, name: str, body: Manifest) -> None:
        """Keeps a reservation."""
        self._entries[f"{zone}/{name}"] = {**body, "zone": zone, "name": name}
        self._write()

    def remove(self, zone: str, name: str) -> None:
        """Forgets it; nothing happens when there is none."""
        if self._entries.pop(f"{zone}/{name}", None) is not None:
            self._write()

    def reservations(self, now: float) -> tuple[Reservation, ...]:
        """All of them; a future one has begun and ended when its times have. `now` in seconds since the epoch."""
        return tuple(_parse(entry, now) for entry in self._entries.values())

    def _write(self) -> None:
        write_private(self._path, json.dumps(self._entries, indent=1).encode())


def _parse(entry: Manifest, now: float) -> Reservation:
    future = entry.get("specificSkuProperties")
    specific: Manifest = future or entry.get("specificReservation") or {}
    properties: Manifest = specific.get("instanceProperties") or {}
    gpus = properties.get("guestAccelerators") or [{}]
    window: Manifest = entry.get("timeWindow") or {}
    start, end = (parse_timestamp(window[at]) if window.get(at) else None for at in ("startTime", "endTime"))
    has_ended = end is not None and end <= now
    name = entry.get("reservationName") if future else None
    return Reservation(
        name=str(name or entry["name"]),
        zone=str(entry["zone"]),
        machine_type=str(properties.get("machineType") or ""),
        count=int(specific.get("totalCount") or specific.get("count") or 0),
        accelerator=gpus[0].get("acceleratorType"),
        active=(start is None or start <= now) and not has_ended,
        ends_at=end,
        ended=has_ended,
    )
