"""Reservations, future reservations, commitments, and who uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import REMOVED, changed, problems
from tests.fleet_file.pool_builders import pools_data


def p(index: int, field: str) -> str:
    """Path of a field of a pool."""
    return f"nodePools/{index}/{field}"


def backup(**fields: Any) -> dict[str, Any]:
    """A reservation that no pool of this project uses."""
    others = {"purpose": "backup", "sharedWith": ["1234567890"]}
    return {"name": "t4", "zone": "us-central1-a", "count": 1, **others, **fields}


T4 = {"type": "nvidia-tesla-t4", "count": 2}

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nodes that are placed by another policy": (
        {p(0, "compactPlacement"): True},
        [
            "warning: nodePools[reserved].compactPlacement: is set, and GKE places the nodes by a policy of its own, "
            "which reservation l4 does not have; remove it, as no nodes come so"
        ],
    ),
    "zones that do not exist": (
        {
            "reservations/+": {"name": "r-a", "zone": "us-central1-z", "machineType": "g2-standard-24", "count": 1},
            "futureReservations/0/zone": "us-central1-d",
        },
        [
            (
                "reservations[r-a].zone: is us-central1-z, which does not exist; use one of us-central1-a, "
                "us-central1-b, us-central1-c, us-central1-f"
            ),
            (
                "warning: reservations[r-a]: no pool uses this reservation, which costs what its machines "
                "cost; name it in the capacity of a pool, or share it with other projects"
            ),
            (
                "futureReservations[december].zone: is us-central1-d, which does not exist; use one of "
                "us-central1-a, us-central1-b, us-central1-c, us-central1-f"
            ),
        ],
    ),
    "a reservation of the other kind": (
        {
            p(0, "capacity/reservation"): "december",
            p(0, "nodeCount"): 2,
            p(5, "capacity/reservation"): "l4",
            p(5, "nodeCount"): 4,
        },
        [
            "warning: nodePools[reserved].capacity.type: reserved, but december is a future reservation of this file; "
            "write calendar",
            "warning: nodePools[calendar].capacity.type: calendar, but l4 is a reservation of this file; write "
            "reserved",
        ],
    ),
    "too long for DWS Calendar": (
        {"futureReservations/0/duration": "3360h", p(5, "capacity/duration"): "3360h"},
        [
            "warning: futureReservations[december].duration: 3360h, but DWS Calendar reserves for 1 to 90 days; write "
            "24h to 2160h, or make sure that Google grants it",
        ],
    ),
    "machines that the region is not known to offer": (
        {
            "reservations/+": {
                "name": "r-b",
                "zone": "asia-northeast1-a",
                "machineType": "a2-ultragpu-8g",
                "count": 1,
                "sharedWith": ["123456789012"],
            }
        },
        [
            "warning: reservations[r-b].zone: a2-ultragpu-8g is not known to be offered in asia-northeast1; use one of "
            "asia-southeast1, europe-west4, us-central1, us-east4, us-east5, or make sure that it is",
        ],
    ),
    "machines that the zone is not known to offer": (
        {"reservations/+": {"name": "r-b", "zone": "us-east1-c", "machineType": "a2-highgpu-1g", "count": 1}},
        [
            (
                "warning: reservations[r-b].zone: a2-highgpu-1g is not known to be offered in us-east1-c; use "
                "us-east1-b, or make sure that it is"
            ),
            (
                "warning: reservations[r-b]: no pool uses this reservation, which costs what its machines "
                "cost; name it in the capacity of a pool, or share it with other projects"
            ),
        ],
    ),
    "reservation in another zone": (
        {"reservations/0/zone": "us-central1-c"},
        [
            (
                "nodePools[reserved].zones: reservation l4 is in us-central1-c, not in us-central1-a; write "
                "[us-central1-c]"
            ),
        ],
    ),
    "reservation without zones": (
        {p(0, "zones"): REMOVED, p(0, "nodeCount"): 1},
        [
            (
                "nodePools[reserved].zones: reservation l4 is in us-central1-a, not in us-central1-b, us-central1-c; "
                "write [us-central1-a]"
            ),
        ],
    ),
    "reservation of other machines": (
        {"reservations/0/machineType": "g2-standard-12"},
        [
            (
                "nodePools[reserved].machineType: g2-standard-24, but reservation l4 is of g2-standard-12; write "
                "g2-standard-12, or change reservations[l4].machineType"
            ),
        ],
    ),
    "reservation SSDs": (
        {"reservations/0/localSsdCount": 2},
        [
            "nodePools[reserved].localSsdCount: 0, but reservation l4 has 2; write the same in both",
        ],
    ),
    "reservation without GPUs": (
        {
            p(0, "machineType"): "n1-standard-16",
            p(0, "accelerator"): T4,
            "reservations/0/machineType": "n1-standard-16",
        },
        [
            "reservations[l4].accelerator: not set, but pool reserved attaches 2 nvidia-tesla-t4 to its machines, and "
            "takes only machines that have the same; write {type: nvidia-tesla-t4, count: 2}, or change the pool's",
        ],
    ),
    "reservation with GPUs of its own": (
        {"reservations/0/accelerator": T4},
        [
            "reservations[l4].accelerator: is set, but g2-standard-24 comes with nvidia-l4; remove it",
        ],
    ),
    "reservation with GPUs that there are not": (
        {
            "reservations": [
                *pools_data()["reservations"],
                backup(machineType="n1-standard-96", accelerator={**T4, "count": 3}),
            ]
        },
        [
            "reservations[t4].accelerator.count: is 3, a number of nvidia-tesla-t4 that is not offered; use 1, 2, 4",
        ],
    ),
    "reservation of a machine that is too large": (
        {"reservations": [*pools_data()["reservations"], backup(machineType="n1-standard-64", accelerator=T4)]},
        [
            "reservations[t4].accelerator.count: is 2, but 2 nvidia-tesla-t4 go with at most 48 vCPUs, and "
            "n1-standard-64 has 64; set it to 4, or use a smaller machine type",
        ],
    ),
    "reservation without a machine to spare": (
        {p(0, "upgrade"): {"maxSurge": 1}},
        [
            "warning: nodePools[reserved].upgrade.maxUnavailable: 0, but its pools fill reservation l4, which has no "
            "machine for a node more, so no upgrade ever ends; write upgrade: {maxSurge: 0, maxUnavailable: 1}, or "
            "remove it",
        ],
    ),
    "reservation with a machine to spare": ({p(0, "upgrade"): {"maxSurge": 1}, "reservations/0/count": 5}, []),
    "reservation too small": (
        {"reservations/0/count": 3},
        [
            (
                "reservations[l4].count: 3 machines, but its pools may have 4 nodes: reserved on batch 4; reserve "
                "more, or make the pools smaller"
            ),
        ],
    ),
    "reservation too small for a pool that may grow": (
        {"reservations/0/count": 3, p(0, "nodeCount"): REMOVED, p(0, "autoscaling"): {"totalMaxNodeCount": 4}},
        [
            (
                "warning: reservations[l4].count: 3 machines, but its pools may have 4 nodes: reserved on batch 4; "
                "reserve more, or make the pools smaller"
            ),
        ],
    ),
    "reservation backup": (
        {"reservations/0/purpose": "backup"},
        [
            (
                "warning: clusterQueues[gpu].resourceGroups[0].flavors[0]: reserved is of a reservation that is kept "
                "as a backup, but comes first; put it after others, or set the reservation's purpose to primary"
            ),
        ],
    ),
    "reservation misspelt": (
        {p(0, "capacity/reservation"): "l-4"},
        [
            (
                "warning: nodePools[reserved].capacity.reservation: l-4 is not in reservations of this file; did you "
                "mean l4?"
            ),
            (
                "warning: reservations[l4]: no pool uses this reservation, which costs what its machines cost; name "
                "it in the capacity of a pool, or share it with other projects"
            ),
        ],
    ),
    "reservation twice": (
        {
            "reservations/+": {
                "name": "december",
                "zone": "us-central1-a",
                "machineType": "g2-standard-24",
                "count": 4,
                "purpose": "backup",
            }
        },
        [
            (
                "futureReservations[december].name: december is also in reservations, and Google makes a reservation "
                "of that name when it begins; give it another name"
            ),
        ],
    ),
    "reservation unused": (
        {"reservations/+": {"name": "extra", "zone": "us-central1-a", "machineType": "g2-standard-240", "count": 4}},
        [
            (
                "warning: reservations[extra].machineType: g2-standard-240 is not in the catalogue; did you mean "
                "g2-standard-24?"
            ),
            (
                "warning: reservations[extra]: no pool uses this reservation, which costs what its machines cost; "
                "name it in the capacity of a pool, or share it with other projects"
            ),
        ],
    ),
    "future unused": (
        {
            "futureReservations/+": {
                "name": "january",
                "zone": "us-central1-a",
                "machineType": "g2-standard-24",
                "count": 4,
                "start": "2027-01-01",
                "duration": "168h",
            }
        },
        [
            (
                "warning: futureReservations[january]: no pool uses this future reservation; name it in the capacity "
                "of a pool of type calendar, or remove it"
            ),
        ],
    ),
    "future other time": (
        {"futureReservations/0/start": "2026-12-02T00:00:00Z", "futureReservations/0/duration": "24h"},
        [
            (
                "nodePools[calendar].capacity.start: 2026-12-01T00:00:00Z is not that of future reservation "
                "december, 2026-12-02T00:00:00Z; write the same in both, here and in futureReservations[december]"
            ),
            (
                "nodePools[calendar].capacity.duration: 336h is not that of future reservation december, 24h; write "
                "the same in both, here and in futureReservations[december]"
            ),
        ],
    ),
    "future no time": (
        {"futureReservations/0/duration": "0s", p(5, "capacity/duration"): "0s"},
        [
            "futureReservations[december].duration: 0s is not longer than 0; write how long, such as 336h",
        ],
    ),
    "future no instant": (
        {"futureReservations/0/start": "soon"},
        [
            (
                'futureReservations[december].start: "soon" is not a valid time; write UTC such as '
                '"2026-12-01T00:00:00Z"'
            ),
        ],
    ),
    "future without zone": (
        {"futureReservations/0/start": "2026-12-01T00:00:00"},
        [
            (
                'futureReservations[december].start: "2026-12-01T00:00:00" does not say its time zone; write UTC '
                'such as "2026-12-01T00:00:00Z"'
            ),
        ],
    ),
    "shared twice": (
        {"reservations/0/sharedWith": ["123456789012", "123456789012"]},
        [
            "reservations[l4].sharedWith[1]: 123456789012 is listed twice; list each project once",
        ],
    ),
    "shared by id": (
        {"reservations/0/sharedWith": ["123456789012", "other-project"]},
        [
            "warning: reservations[l4].sharedWith[1]: other-project is an id, but Google answers with numbers: later "
            "changes of this list are not made; write the number: gcloud projects describe other-project "
            "--format='value(projectNumber)'",
        ],
    ),
    "commitment": (
        {
            "commitments": [
                {
                    "name": "c",
                    "region": "us-central1",
                    "plan": "TWELVE_MONTH",
                    "resources": [
                        {"type": "ACCELERATOR", "amount": 8},
                        {"type": "VCPU", "amount": 8, "acceleratorType": "x"},
                        {"type": "VCPU", "amount": 8},
                    ],
                }
            ]
        },
        [
            (
                "commitments[c].confirm: is missing, and a commitment cannot be cancelled; write confirm: "
                "I-accept-the-cost once whoever pays has agreed"
            ),
            (
                "commitments[c].reservations: none, but ACCELERATOR can be committed only together with a "
                "reservation of it; name the reservations that hold these machines"
            ),
            "commitments[c].resources[0].acceleratorType: not set, but type is ACCELERATOR; set it, such as nvidia-l4",
            "commitments[c].resources[1].acceleratorType: set, but type is VCPU; remove it, or set type to ACCELERATOR",
        ],
    ),
    "commitment refs": (
        {
            "commitments": [
                {
                    "name": "c",
                    "region": "us-east1",
                    "plan": "TWELVE_MONTH",
                    "confirm": "yes",
                    "reservations": ["l4", "l5"],
                    "resources": [{"type": "ACCELERATOR", "amount": 8, "acceleratorType": "nvidia-tesla-t4"}],
                }
            ]
        },
        [
            ('commitments[c].confirm: "yes" is given; write confirm: I-accept-the-cost once whoever pays has agreed'),
            "commitments[c].reservations: are 2, but Google's provider takes one for a commitment; split the "
            "commitment",
            (
                "commitments[c].reservations[0]: l4 is in us-central1-a, not in us-east1; name reservations of the "
                "commitment's region"
            ),
            (
                "commitments[c].reservations[0]: l4 is of nvidia-l4, to which the commitment does not commit; add "
                "{type: ACCELERATOR, acceleratorType: nvidia-l4, amount: ...}, or remove it"
            ),
            "commitments[c].reservations[1]: there is no reservation l5; use one of the reservations: l4",
            (
                "warning: commitments[c].region: no cluster of the fleet is in us-east1, so that nothing of the "
                "fleet uses it; write one of us-central1"
            ),
        ],
    ),
    "memory of a commitment in GB": (
        {
            "commitments": [
                {
                    "name": "c",
                    "region": "us-central1",
                    "plan": "TWELVE_MONTH",
                    "confirm": "I-accept-the-cost",
                    "resources": [{"type": "VCPU", "amount": 96}, {"type": "MEMORY", "amount": 384}],
                }
            ]
        },
        [
            (
                "warning: commitments[c].resources[1].amount: 384 is counted in MB, and machines with 96 vCPUs have "
                "more; write 393216 for 384 GB"
            )
        ],
    ),
    "reservation name twice": (
        {"reservations/+": pools_data()["reservations"][0]},
        [
            ("reservations[1].name: l4 is already the name of reservations[0]; give each reservation a unique name"),
        ],
    ),
    "future twice": (
        {"futureReservations/+": pools_data()["futureReservations"][0]},
        [
            (
                "futureReservations[1].name: december is already the name of futureReservations[0]; give each fu"
                "ture reservation a unique name"
            ),
        ],
    ),
    "what cannot be read": (
        {"commitments": [{"name": "x"}], "clusters/0/maintenance": {"start": 1}},
        [
            'clusters[batch].maintenance.start: 1 is not a valid time; write UTC such as "2026-12-01T00:00:00Z"',
            "clusters[batch].maintenance.end: is missing; add end",
            "clusters[batch].maintenance.recurrence: is missing; add recurrence",
            "commitments[x].region: is missing; add a region of Google Cloud, such as region: europe-west4",
            "commitments[x].plan: is missing; add plan",
            "commitments[x].resources: is missing; add resources",
            (
                "commitments[x].confirm: is missing, and a commitment cannot be cancelled; write confirm: "
                "I-accept-the-cost once whoever pays has agreed"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []


EXAMPLE = Path(__file__).parents[3] / "examples" / "fallback" / "backup.yaml"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        (
            {"clusterQueues/0/fallback": REMOVED, "controller": REMOVED},
            [
                "warning: clusterQueues[training].resourceGroups[0].flavors[1]: l4-backup is of a reservation that is "
                "kept as a backup, and jobs come there when the quota of l4-daily is used up, but not when its "
                "machines are out; add fallback with a patience for l4-daily"
            ],
        ),
        (
            {"nodePools/1": REMOVED, "flavors/1": REMOVED, "clusterQueues/0/resourceGroups/0/flavors/1": REMOVED}
            | {"clusterQueues/0/fallback": REMOVED, "controller": REMOVED},
            [
                "warning: reservations[l4-backup]: no pool uses this reservation, which costs what its machines cost; "
                "name it in the capacity of a pool whose flavor comes after others in its queues, or share it with "
                "other projects"
            ],
        ),
    ],
)
def test_a_backup_is_for_when_others_are_out(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(yaml.safe_load(EXAMPLE.read_text()), changes)) == expected


def test_the_reservation_that_is_meant_is_of_the_pools_machines_in_its_zone() -> None:
    other = {"name": "l4-uw", "zone": "us-central1-b", "machineType": "a3-highgpu-8g", "count": 1, "sharedWith": ["1"]}
    changes = {"reservations/0/name": "l4-wu", "reservations/+": other, p(0, "capacity/reservation"): "l4-uu"}
    [text] = [text for text in problems(changed(pools_data(), changes)) if "did you mean" in text]
    assert text.endswith("l4-uu is not in reservations of this file; did you mean l4-wu?")
