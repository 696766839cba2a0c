"""Node pools and their clusters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, problems
from tests.fleet_file.pool_builders import pool, pools_data, scaled


def p(index: int, field: str) -> str:
    """Path of a field of a pool."""
    return f"nodePools/{index}/{field}"


NO_ADDRESSES = (
    "warning: network.podRanges[us-central1]: 10.0.0.0/15 has 131072 addresses, but the pods of {nodes} nodes that may "
    "come take {addresses}; write a larger range, lower maxPodsPerNode, or let the pools have fewer nodes"
)

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "networks of GPUs that have none": (
        {p(1, "acceleratorNetworkProfile"): "auto"},
        [
            "nodePools[on-demand].acceleratorNetworkProfile: is auto, but g2-standard-24 has no network beside that of "
            "the node; remove it",
            "nodePools[on-demand].zones: are us-central1-a, us-central1-b, us-central1-c, but the networks of "
            "acceleratorNetworkProfile are within one zone (on batch); set exactly one zone, and make a pool for "
            "each, or give batch another value under perCluster",
        ],
    ),
    "a pool that exists on a cluster that does not": (
        {p(1, "existing"): True},
        [
            "warning: nodePools[on-demand].existing: true, but the fleet makes batch, on which it is, so that no "
            "pool is there; remove it, or set existing on the cluster too"
        ],
    ),
    "compact in the cluster's zones": (
        {p(1, "compactPlacement"): True},
        [
            (
                "nodePools[on-demand].zones: are us-central1-a, us-central1-b, us-central1-c, but compact placement "
                "is within one zone (on batch); set exactly one zone, or give batch another value under "
                "perCluster"
            ),
        ],
    ),
    "block without zones": (
        {
            p(0, "capacity"): {"type": "reserved", "reservation": "other", "block": "b"},
            p(0, "zones"): REMOVED,
            p(0, "nodeCount"): 1,
            "reservations": [],
        },
        [
            (
                "nodePools[reserved].zones: not set, but block b of the reservation is in one zone; name the zone of "
                "the reservation"
            ),
        ],
    ),
    "per unknown cluster": (
        {p(1, "perCluster"): {"bach": {"nodeCount": 1}}},
        [
            "nodePools[on-demand].perCluster[bach]: there is no cluster bach; did you mean batch?",
        ],
    ),
    "unknown cluster": (
        {p(1, "clusters"): ["bach"]},
        [
            "nodePools[on-demand].clusters[0]: there is no cluster bach; did you mean batch?",
        ],
    ),
    "Autopilot": (
        {"clusters/0/mode": "Autopilot", "clusters/0/zones": REMOVED, "nodePools/1/clusters": ["batch"]},
        [
            ("nodePools[reserved]: is on no cluster, since no Standard cluster runs jobs; set mode: Standard on one"),
            (
                "nodePools[on-demand].clusters[0]: batch is an Autopilot cluster, which makes its own nodes; remove "
                "it here, or set its mode to Standard"
            ),
            ("nodePools[spot]: is on no cluster, since no Standard cluster runs jobs; set mode: Standard on one"),
            ("nodePools[flex]: is on no cluster, since no Standard cluster runs jobs; set mode: Standard on one"),
            ("nodePools[queued]: is on no cluster, since no Standard cluster runs jobs; set mode: Standard on one"),
            ("nodePools[calendar]: is on no cluster, since no Standard cluster runs jobs; set mode: Standard on one"),
            (
                "warning: reservations[l4]: no pool uses this reservation, which costs what its machines cost; name "
                "it in the capacity of a pool, or share it with other projects"
            ),
            (
                "warning: futureReservations[december]: no pool uses this future reservation; name it in the "
                "capacity of a pool of type calendar, or remove it"
            ),
            (
                "warning: clusterQueues[gpu].resourceGroups: no quota for ephemeral-storage, and a job that requests "
                "it is never admitted (Autopilot adds requests for it to every pod); cover ephemeral-storage too"
            ),
        ],
    ),
    "zone elsewhere": (
        {p(1, "zones"): ["us-east1-b", "us-central1-a", "us-central1-a"]},
        [
            (
                "nodePools[on-demand].zones[0]: is us-east1-b, which is not in us-central1, the cluster's "
                "region (on batch); name zones there, or give batch another value under perCluster"
            ),
            "nodePools[on-demand].zones[2]: us-central1-a is listed twice; list each zone once",
        ],
    ),
    "system": (
        {p(1, "name"): "system", "flavors/1/nodePool": "system"},
        [
            "nodePools[system].name: system is the pool that every cluster has for Kueue; use another name",
        ],
    ),
    "not offered in zone": (
        {p(1, "machineType"): "a2-ultragpu-1g"},
        [
            (
                "warning: nodePools[on-demand].zones: a2-ultragpu-1g is not known to be offered in us-central1-b; "
                "use us-central1-a, us-central1-c, or make sure that it is"
            ),
        ],
    ),
    "not offered in region": (
        {
            "clusters/0/region": "europe-west3",
            "clusters/0/zones": REMOVED,
            p(1, "machineType"): "a2-ultragpu-1g",
            p(0, "zones"): ["europe-west3-a"],
            p(5, "zones"): ["europe-west3-b"],
            "reservations/0/zone": "europe-west3-a",
            "futureReservations/0/zone": "europe-west3-b",
        },
        [
            (
                "warning: nodePools[on-demand].machineType: a2-ultragpu-1g is not known to be offered in "
                "europe-west3; use one of asia-southeast1, europe-west4, us-central1, "
                "us-east4, us-east5, or make sure that it is"
            ),
        ],
    ),
    "system machine": (
        {"clusters/0/systemPool": {"machineType": "e2-standart-4"}},
        [
            (
                "warning: clusters[batch].systemPool.machineType: e2-standart-4 is not in the catalogue; did you "
                "mean e2-standard-4?"
            ),
        ],
    ),
    "system machine of a family without a catalogue": (
        {"clusters/0/systemPool": {"machineType": "m3-ultramem-32"}},
        [
            "warning: clusters[batch].systemPool.machineType: m3-ultramem-32 is not in the catalogue; make sure that "
            "it exists",
        ],
    ),
    "system machine that is too small for Kueue": (
        {
            "clusters/0/systemPool": {"machineType": "e2-micro"},
            "kueue": {"resources": {"requests": {"cpu": "941m", "memory": "1Gi"}}},
        },
        [
            "clusters[batch].systemPool.machineType: e2-micro leaves pods 940m of cpu, and each of Kueue's asks for "
            "941m; write a larger machine, or request less in kueue.resources",
            "clusters[batch].systemPool.machineType: e2-micro leaves pods 668Mi of memory, and each of Kueue's asks "
            "for 1Gi; write a larger machine, or request less in kueue.resources",
        ],
    ),
    "system machine that is just enough": (
        {
            "clusters/0/systemPool": {"machineType": "e2-micro"},
            "kueue": {"resources": {"requests": {"cpu": "940m", "memory": "668Mi"}}},
        },
        [],
    ),
    "boot disks that there are not": (
        {p(1, "diskSizeGb"): 70_000, "clusters/0/systemPool": {"diskSizeGb": 70_000}},
        [
            "clusters[batch].systemPool.diskSizeGb: 70000 is too large; use at most 65536",
            "nodePools[on-demand].diskSizeGb: 70000 is too large; use at most 65536",
        ],
    ),
    "too many nodes": (
        {"nodePools/1/autoscaling": scaled(3001)},
        [
            NO_ADDRESSES.format(nodes=3062, addresses=3062 * 256),
            (
                "nodePools[on-demand].autoscaling.totalMaxNodeCount: 3001 nodes in 3 zones, but a pool has at mo"
                "st 1,000 in each; write a smaller number, or split the pool"
            ),
        ],
    ),
    "too many nodes in a zone": (
        {"nodePools/0/nodeCount": 1001, "reservations/0/count": 1001},
        [
            NO_ADDRESSES.format(nodes=1082, addresses=1082 * 256),
            (
                "nodePools[reserved].nodeCount: 1001 nodes in 1 zone, but a pool has at most 1,000 in each; writ"
                "e a smaller number, or split the pool"
            ),
            "warning: flavors[reserved]: queues may use 4 nvidia.com/gpu of it on batch, but its reserved nodes "
            "hold 2002, so that 1998 are paid for and no job gets them; raise nominalQuota by 1998, in a queue "
            "or its cohort",
        ],
    ),
    "name twice": (
        {"nodePools/+": pool("spot", autoscaling=scaled(1))},
        [
            ("nodePools[6].name: spot is already the name of nodePools[2]; give each node pool a unique name"),
        ],
    ),
    "what cannot be read hides nothing else": (
        {
            "reservations/0/count": "four",
            "futureReservations/0/start": "soon",
            "nodePools/1/capacity": {"type": "spott"},
            "nodePools/2/autoscaling": 3,
            "nodePools/3/machineType": 5,
        },
        [
            (
                'nodePools[on-demand].capacity.type: "spott" is not allowed; did you mean spot? Allowed: reserve'
                "d, onDemand, spot, flexStart, calendar"
            ),
            (
                "nodePools[spot].autoscaling: 3 is given where a map is needed; write its fields as 'name: value"
                "', one on each line"
            ),
            'nodePools[flex].machineType: 5 is given where text is needed; put it in quotes: "5"',
            'reservations[l4].count: "four" is given where a whole number is needed; write a whole number',
            (
                'futureReservations[december].start: "soon" is not a valid time; write UTC such as "2026-12-01T0'
                '0:00:00Z"'
            ),
        ],
    ),
    "without a type": (
        {"nodePools/1/capacity": {"tyep": "spot"}, "nodePools/2/capacity": {"type": None}},
        [
            "nodePools[on-demand].capacity.tyep: is not a known field; did you mean type?",
            (
                "nodePools[spot].capacity.type: is missing; set it to one of reserved, onDemand, spot, flexStart, "
                "calendar"
            ),
        ],
    ),
    "nor in lists": (
        {
            "clusters/0/nodeAutoProvisioning": {"resourceLimits": [{"resourceType": 5, "maximum": "x"}]},
            "teams/0/members": "me",
            "nodePools/0": "x",
        },
        [
            (
                "clusters[batch].nodeAutoProvisioning.resourceLimits[0].resourceType: 5 is given where text is "
                'needed; put it in quotes: "5"'
            ),
            (
                'clusters[batch].nodeAutoProvisioning.resourceLimits[0].maximum: "x" is given where a whole '
                "number is needed; write a whole number"
            ),
            "nodePools[0]: \"x\" is given where a map is needed; write its fields as 'name: value', one on each line",
            (
                'teams[team-a].members: "me" is given where a list is needed; write each item on its own '
                "line, beginning with '- '"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []


@pytest.mark.parametrize(
    ("machine_type", "capacity", "fix"),
    [
        ("a4-highgpu-8g", "onDemand", "use one of spot, flexStart, calendar, reserved"),
        ("a3-highgpu-2g", "onDemand", "use one of spot, flexStart, reserved"),
        ("a4x-highgpu-4g", "onDemand", "use one of reserved"),
        ("a4x-highgpu-4g", "spot", "use one of reserved"),
        ("a4x-highgpu-4g", "flexStart", "use one of reserved"),
        ("a4-highgpu-8g", "spot", None),
        ("a3-highgpu-8g", "onDemand", None),
        ("a4x-highgpu-4g", "reserved", None),
    ],
)
def test_the_largest_machines_are_not_to_be_had_in_every_way(machine_type: str, capacity: str, fix: str | None) -> None:
    source = {"type": capacity, **({"reservation": "mine"} if capacity == "reserved" else {})}
    added = pool("large", source, machineType=machine_type, autoscaling=scaled(4))
    result = [text for text in problems(changed(pools_data(), {"nodePools/+": added})) if "does not offer" in text]
    wrong = f"is {capacity}, but Google does not offer {machine_type} so"
    assert result == ([f"nodePools[large].capacity: {wrong}; {fix}"] if fix else [])


@pytest.mark.parametrize(("zone", "said"), [("us-central1-b", True), ("us-central1-a", False)])
def test_dws_calendar_has_tpus_in_few_zones(zone: str, said: bool) -> None:
    source = {"type": "calendar", "reservation": "mine", "start": "2027-01-01T00:00:00Z", "duration": "24h"}
    added = pool("large", source, machineType="ct5lp-hightpu-4t", nodeCount=1, zones=[zone])
    result = [text for text in problems(changed(pools_data(), {"nodePools/+": added})) if "offered so" in text]
    wrong = f"is calendar, but ct5lp-hightpu-4t is not known to be offered so in {zone}"
    fix = "use us-west4-a, us-central1-a, or make sure that it is"
    assert result == ([f"warning: nodePools[large].capacity: {wrong}; {fix}"] if said else [])
