from __future__ import annotations

from typing import Any

import pytest

from kueue_rehearsal.cloud.node_pool_rules import Reservation, refusals

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
        (
            {**QUEUED, "nodeCount": 1},
            {"reservationAffinity": NONE},
            "nodeCount: is 1, a fixed size, but DWS nodes come and go",
        ),
        (
            {**QUEUED, "autoscaling": {"totalMinNodeCount": 1, "totalMaxNodeCount": 2}},
            {"reservationAffinity": NONE},
            "autoscaling.totalMinNodeCount: is 1, but nodes of queued provisioning come only",
        ),
        (
            {**QUEUED, "autoscaling": {"totalMaxNodeCount": 2, "locationPolicy": "BALANCED"}},
            {"reservationAffinity": NONE},
            "autoscaling.locationPolicy: is BALANCED",
        ),
        ({**QUEUED, **SCALED}, {}, "consumeReservationType: is missing, but DWS nodes come from no reservation"),
        (
            {**QUEUED, **SCALED},
            {"reservationAffinity": NONE, "spot": True},
            "nodeConfig.spot: is true, but DWS nodes are not Spot VMs",
        ),
        (
            SCALED,
            {"flexStart": True, "reservationAffinity": NONE},
            "management.autoRepair: is true, but flex-start nodes cannot be repaired",
        ),
        (
            {"nodeCount": 1, **NO_REPAIR},
            {"flexStart": True, "reservationAffinity": NONE},
            "nodeCount: is 1, a fixed size",
        ),
        ({**SCALED, **NO_REPAIR}, {"flexStart": True}, "set it to NO_RESERVATION"),
        (
            {**SCALED, **NO_REPAIR},
            {"flexStart": True, "reservationAffinity": NONE, "spot": True},
            "nodeConfig.spot: is true, but DWS nodes are not Spot VMs",
        ),
        (
            {**SCALED, **NO_REPAIR},
            {"flexStart": True, "reservationAffinity": NONE, "maxRunDuration": "604801s"},
            "maxRunDuration: is 604801s, but DWS nodes live for at most seven days",
        ),
        (SCALED, {"maxRunDuration": "7d"}, "maxRunDuration: is 7d, which is not whole seconds"),
        (
            {"nodeCount": 1},
            {"spot": True, "reservationAffinity": MINE},
            "is SPECIFIC_RESERVATION, but Spot VMs come from no reservation",
        ),
        (
            {"nodeCount": 1},
            {"reservationAffinity": {**NONE, "values": ["x"]}},
            "names a reservation, but the type is NO_RESERVATION",
        ),
        (
            {"nodeCount": 1},
            {"reservationAffinity": {**MINE, "values": ["a", "b"]}},
            "must be one name, as the type is SPECIFIC_RESERVATION",
        ),
        ({"nodeCount": 1, "initialNodeCount": 1}, {}, "initialNodeCount: is 1, but nodeCount fixes the size"),
        (
            {**SCALED, "initialNodeCount": 2},
            {},
            "is 2 in each of 3 zones, not between the limits of autoscaling, 0 and 4",
        ),
        (
            {"autoscaling": {"totalMaxNodeCount": 4, "maxNodeCount": 4}},
            {},
            "is set for all zones together and for each zone",
        ),
        (
            {"autoscaling": {"totalMinNodeCount": 5, "totalMaxNodeCount": 4}},
            {},
            "totalMinNodeCount: is 5, more than the maximum, 4",
        ),
        ({"autoscaling": {"totalMaxNodeCount": 0}}, {}, "totalMaxNodeCount: is less than 1"),
        (
            {"nodeCount": 1, "upgradeSettings": {"maxSurge": 0, "maxUnavailable": 0}},
            {},
            "maxSurge: is 0, and so is maxUnavailable",
        ),
        ({"nodeCount": 1, "placementPolicy": {"type": "COMPACT"}}, {}, "but compact placement is within one zone"),
        (
            {
                "nodeCount": 1,
                "nodeLocations": A,
                "placementPolicy": {"type": "COMPACT"},
                "upgradeSettings": {"strategy": "BLUE_GREEN"},
            },
            {},
            "blue-green upgrades do not keep nodes together",
        ),
        (
            {**SCALED, **QUEUED, "nodeLocations": A, "placementPolicy": {"type": "COMPACT"}},
            {"reservationAffinity": NONE},
            "placementPolicy.type: is set, but queued provisioning takes nodes wherever",
        ),
        (
            {**SCALED, **NO_REPAIR, "nodeLocations": A, "placementPolicy": {"type": "COMPACT"}},
            {"flexStart": True, "reservationAffinity": NONE},
            "GKE does not place g2-standard-24 machines of flex-start",
        ),
        ({"nodeCount": 1, "nodeLocations": ["europe-west4-z"]}, {}, "is europe-west4-z, which does not exist"),
        (
            {"nodeCount": 1, "nodeLocations": ["us-east4-a"]},
            {},
            "nodeLocations[0]: is us-east4-a, which is not in europe-west4",
        ),
        ({"nodeCount": 1}, {"machineType": "z9-huge"}, "the rehearsal does not know z9-huge"),
        (
            {"nodeCount": 1},
            {"guestAccelerators": [{"type": "nvidia-l4", "count": 4}]},
            "guestAccelerators[0].count: is 4, but g2-standard-24 comes with 2",
        ),
        (
            {"nodeCount": 1},
            {"machineType": "e2-standard-4", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}]},
            "guestAccelerators[0]: is set, but e2-standard-4 takes no GPUs",
        ),
        (
            {"nodeCount": 1},
            {"machineType": "n1-standard-4", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 3}]},
            "is 3, a number of nvidia-tesla-t4 that is not offered; use 1, 2, 4",
        ),
        (
            {"nodeCount": 1},
            {"machineType": "n1-standard-96", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}]},
            "1 nvidia-tesla-t4 go with at most 48 vCPUs, and n1-standard-96 has 96",
        ),
        (
            {"nodeCount": 1},
            {"ephemeralStorageLocalSsdConfig": {"localSsdCount": 1}, "localNvmeSsdBlockConfig": {"localSsdCount": 1}},
            "is set, but so are raw block devices",
        ),
    ],
)
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
        (
            Reservation("mine", "europe-west4-a", "g2-standard-24", 4, active=False, ended=True),
            {"nodeCount": 1, "nodeLocations": A},
            "has ended: the pool must have no nodes",
        ),
    ],
)
def test_a_reservation_has_to_suit_the_pool(reservation: Reservation, body: dict[str, Any], reason: str | None) -> None:
    result = refused(body, reservation, reservationAffinity=MINE)
    assert (reason is None) == (result == [])
    assert all(reason in text for text in result if reason), result
