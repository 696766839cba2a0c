from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.rehearsal.node_pool_rules import Reservation, refusals

ZONES = ("europe-west4-a", "europe-west4-b", "europe-west4-c")
A = ["europe-west4-a"]
NONE = {"consumeReservationType": "NO_RESERVATION"}
MINE = {
    "consumeReservationType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["mine"],
}
QUEUED = {"queuedProvisioning": {"enabled": True}}
SCALED = {"autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 4}}
NO_REPAIR = {"management": {"autoRepair": False}}


def refused(body: dict[str, Any], *reservations: Reservation, name: str = "pool", **config: Any) -> list[str]:
    inputs = {**body, "nodeConfig": {"machineType": "g2-standard-24", **config}}
    return refusals(name, inputs, "europe-west4", ZONES, reservations)


@pytest.mark.parametrize(
    ("body", "config"),
    [
        ({"nodeCount": 4, "nodeLocations": A}, {}),
        ({**SCALED, "initialNodeCount": 1}, {}),
        ({**SCALED, **QUEUED, **NO_REPAIR}, {"flexStart": True, "reservationAffinity": NONE}),
        ({**SCALED, **QUEUED}, {"reservationAffinity": NONE}),
        ({**SCALED, **NO_REPAIR}, {"flexStart": True, "reservationAffinity": NONE, "maxRunDuration": "604800s"}),
        (SCALED, {"spot": True, "reservationAffinity": NONE}),
        ({**SCALED, "placementPolicy": {"type": "COMPACT"}, "nodeLocations": A}, {}),
        (
            {"nodeCount": 1},
            {"machineType": "n1-standard-2", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}]},
        ),
    ],
)
def test_what_gke_takes(body: dict[str, Any], config: dict[str, Any]) -> None:
    assert refused(body, **config) == []


@pytest.mark.parametrize(
    ("body", "config", "reason"),
    [
        ({**QUEUED, "nodeCount": 1}, {"reservationAffinity": NONE}, "needs autoscaling, the pool has a fixed size"),
        (
            {**QUEUED, "autoscaling": {"totalMinNodeCount": 1, "totalMaxNodeCount": 2}},
            {"reservationAffinity": NONE},
            "the minimum number of nodes must be 0",
        ),
        (
            {**QUEUED, "autoscaling": {"totalMaxNodeCount": 2, "locationPolicy": "BALANCED"}},
            {"reservationAffinity": NONE},
            "locationPolicy must be ANY",
        ),
        ({**QUEUED, **SCALED}, {}, "consumeReservationType must be NO_RESERVATION"),
        ({**QUEUED, **SCALED}, {"reservationAffinity": NONE, "spot": True}, "does not go with spot"),
        (SCALED, {"flexStart": True, "reservationAffinity": NONE}, "auto-repair must be off"),
        ({"nodeCount": 1, **NO_REPAIR}, {"flexStart": True, "reservationAffinity": NONE}, "the pool has a fixed size"),
        ({**SCALED, **NO_REPAIR}, {"flexStart": True}, "must be NO_RESERVATION"),
        (
            {**SCALED, **NO_REPAIR},
            {"flexStart": True, "reservationAffinity": NONE, "spot": True},
            "flexStart: does not go with spot",
        ),
        (
            {**SCALED, **NO_REPAIR},
            {"flexStart": True, "reservationAffinity": NONE, "maxRunDuration": "604801s"},
            "is not between 1s and 604800s, 7 days",
        ),
        (SCALED, {"maxRunDuration": "7d"}, "write seconds"),
        ({"nodeCount": 1}, {"spot": True, "reservationAffinity": MINE}, "Spot VMs cannot consume reservations"),
        ({"nodeCount": 1}, {"reservationAffinity": {**NONE, "values": ["x"]}}, "takes no reservation name"),
        ({"nodeCount": 1}, {"reservationAffinity": {**MINE, "values": ["a", "b"]}}, "takes exactly one name"),
        ({"nodeCount": 1, "initialNodeCount": 1}, {}, "cannot set both initial_node_count and node_count"),
        ({**SCALED, "initialNodeCount": 2}, {}, "is not within autoscaling's limits, 0 to 4"),
        ({"autoscaling": {"totalMaxNodeCount": 4, "maxNodeCount": 4}}, {}, "use total or per-zone limits, not both"),
        ({"autoscaling": {"totalMinNodeCount": 5, "totalMaxNodeCount": 4}}, {}, "5, is greater than the maximum, 4"),
        ({"autoscaling": {"totalMaxNodeCount": 0}}, {}, "the maximum must be at least 1"),
        ({"nodeCount": 1, "upgradeSettings": {"maxSurge": 0, "maxUnavailable": 0}}, {}, "cannot both be 0"),
        ({"nodeCount": 1, "placementPolicy": {"type": "COMPACT"}}, {}, "needs exactly one zone, the pool has 3"),
        (
            {"nodeCount": 1, "nodeLocations": A, "placementPolicy": {"type": "COMPACT"},
             "upgradeSettings": {"strategy": "BLUE_GREEN"}},
            {},
            "does not go with blue-green upgrades",
        ),
        (
            {**SCALED, **QUEUED, "nodeLocations": A, "placementPolicy": {"type": "COMPACT"}},
            {"reservationAffinity": NONE},
            "does not go with queued provisioning",
        ),
        (
            {**SCALED, **NO_REPAIR, "nodeLocations": A, "placementPolicy": {"type": "COMPACT"}},
            {"flexStart": True, "reservationAffinity": NONE},
            "with flex-start is not offered on g2-standard-24",
        ),
        ({"nodeCount": 1, "nodeLocations": ["us-east4-a"]}, {}, "us-east4-a is not in region europe-west4"),
        ({"nodeCount": 1}, {"machineType": "z9-huge"}, "the rehearsal does not know z9-huge"),
        (
            {"nodeCount": 1},
            {"guestAccelerators": [{"type": "nvidia-l4", "count": 4}]},
            "g2-standard-24 has 2 nvidia-l4, not 4 nvidia-l4",
        ),
        (
            {"nodeCount": 1},
            {"machineType": "e2-standard-4", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}]},
            "GPUs cannot be attached to e2-standard-4",
        ),
        (
            {"nodeCount": 1},
            {"machineType": "n1-standard-4", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 3}]},
            "3 nvidia-tesla-t4: use 1, 2, 4",
        ),
        (
            {"nodeCount": 1},
            {"machineType": "n1-standard-96", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}]},
            "go with at most 48 vCPUs, n1-standard-96 has 96",
        ),
        (
            {"nodeCount": 1},
            {"ephemeralStorageLocalSsdConfig": {"localSsdCount": 1}, "localNvmeSsdBlockConfig": {"localSsdCount": 1}},
            "exclude each other",
        ),
    ],
)  # fmt: skip
def test_what_gke_refuses(body: dict[str, Any], config: dict[str, Any], reason: str) -> None:
    assert [text for text in refused(body, **config) if reason in text], refused(body, **config)


def test_a_name_that_is_none() -> None:
    assert refused({"nodeCount": 1}, name="Pool_1")[0].startswith("name: 'Pool_1'")


ROOM = Reservation("mine", "europe-west4-a", "g2-standard-24", 4)


@pytest.mark.parametrize(
    ("reservation", "body", "reason"),
    [
        (ROOM, {"nodeCount": 4, "nodeLocations": A}, None),
        (ROOM, {"nodeCount": 5, "nodeLocations": A}, "has 4 machines, the pool asks for 5"),
        (ROOM, {"nodeCount": 1}, "is in europe-west4-a, not in europe-west4-b, europe-west4-c of the pool"),
        (
            Reservation("mine", "europe-west4-a", "g2-standard-48", 4),
            {"nodeCount": 4, "nodeLocations": A},
            "has g2-standard-48, the pool has g2-standard-24",
        ),
        (Reservation("other", "us-east4-a", "a2-highgpu-1g", 1), {"nodeCount": 9}, None),
        (
            Reservation("mine", "europe-west4-a", "g2-standard-24", 4, active=False),
            {"nodeCount": 1, "nodeLocations": A},
            "has not begun: the pool must have no nodes",
        ),
        (
            Reservation("mine", "europe-west4-a", "g2-standard-24", 4, active=False),
            {"nodeCount": 0, "nodeLocations": A},
            None,
        ),
    ],
)
def test_a_reservation_has_to_suit_the_pool(reservation: Reservation, body: dict[str, Any], reason: str | None) -> None:
    found = refused(body, reservation, reservationAffinity=MINE)
    assert (reason is None) == (found == [])
    assert all(reason in text for text in found if reason), found
