"""Options of clusters, maintenance, observability."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, problems
from tests.fleet_file.pool_builders import ACCELERATOR, NAMES, SPOT_LABEL, limits, nap, pools_data

WEEKENDS = {
    "start": "2026-01-03T02:00:00Z",
    "end": "2026-01-03T08:00:00Z",
    "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
}
REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "NAP rules": (
        nap(
            {
                "resourceLimits": [
                    {"resourceType": "cpu", "minimum": 5, "maximum": 4},
                    {"resourceType": "cpu", "maximum": 4},
                    {"resourceType": "nvidia-l4", "maximum": 100},
                    {"resourceType": "nvidia-l44", "maximum": 4},
                ],
                "zones": ["us-east1-b"],
            },
            nodeLabels={ACCELERATOR: "nvidia-l4", SPOT_LABEL: "true"},
        ),
        [
            (
                "clusters[batch].nodeAutoProvisioning.zones[0]: is us-east1-b, which is not in us-central1, "
                "the cluster's region; name zones of us-central1, or change region"
            ),
            "clusters[batch].nodeAutoProvisioning.resourceLimits[1]: cpu is listed twice; list each resource once",
            (
                "clusters[batch].nodeAutoProvisioning.resourceLimits: no limit for memory, which GKE wants; "
                "add it, with a maximum"
            ),
            (
                "clusters[batch].nodeAutoProvisioning.resourceLimits[0].minimum: 5 is more than maximum, 4; "
                "write a smaller minimum"
            ),
            (
                "clusters[batch].nodeAutoProvisioning.resourceLimits[3].resourceType: nvidia-l44 is not "
                "a resource that GKE limits; did you mean nvidia-l4?"
            ),
            (
                "warning: clusters[batch].nodeAutoProvisioning.resourceLimits: cpu 4, but queues may use 160; "
                "raise its maximum, or lower nominalQuota"
            ),
        ],
    ),
    "NAP limit of nothing": (
        {"clusters/0/nodeAutoProvisioning": limits(cpu=0)},
        ["clusters[batch].nodeAutoProvisioning.resourceLimits[0].maximum: 0 is too small; use at least 1"],
    ),
    "network without prefix": (
        {
            "network": {
                "controlPlaneAccess": "AuthorizedNetworks",
                "authorizedNetworks": [{"name": "office", "cidr": "203.0.113.7"}],
            }
        },
        [
            'network.authorizedNetworks[office].cidr: "203.0.113.7" has no prefix length; write 203.0.113.7/32',
        ],
    ),
    "autopilot fields": (
        {
            "clusters/0/mode": "Autopilot",
            "clusters/0/zones": REMOVED,
            "clusters/0/systemPool": {"spot": True},
            "clusters/0/nodeAutoProvisioning": limits(),
            "clusters/0/storageDrivers": ["GcsFuse"],
            "clusters/0/imageStreaming": False,
            "nodePools": [],
            "flavors": [{"name": n} for n in NAMES],
            "reservations": [],
            "futureReservations": [],
        },
        [
            "clusters[batch].systemPool: set, but mode is Autopilot; remove it or set mode to Standard",
            ("clusters[batch].nodeAutoProvisioning: set, but mode is Autopilot; remove it or set mode to Standard"),
            "clusters[batch].imageStreaming: set, but mode is Autopilot; remove it or set mode to Standard",
            "clusters[batch].storageDrivers: set, but mode is Autopilot; remove it or set mode to Standard",
            (
                "warning: clusterQueues[gpu].resourceGroups: no quota for ephemeral-storage, and a job that requests "
                "it is never admitted (Autopilot adds requests for it to every pod); cover ephemeral-storage too"
            ),
        ],
    ),
    "no key": (
        {"clusters/0/databaseEncryptionKey": "key"},
        [
            (
                'clusters[batch].databaseEncryptionKey: "key" is not the name of a key of Cloud KMS; write '
                "projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY"
            ),
        ],
    ),
    "keys": (
        {"clusters/0/diskEncryptionKey": "projects/p/locations/us-east1/keyRings/r/cryptoKeys/k"},
        [
            (
                "clusters[batch].diskEncryptionKey: the key is in us-east1, the cluster in us-central1; use a key of "
                "that region"
            ),
        ],
    ),
    "system pool": (
        {"clusters/0/systemPool": {"totalMinNodeCount": 4}},
        [
            (
                "clusters[batch].systemPool.totalMinNodeCount: 4 is more than totalMaxNodeCount, 3; write a smaller "
                "minimum"
            ),
        ],
    ),
    "maintenance": (
        {
            "clusters/0/maintenance": {
                "start": "2026-01-03T02:00:00Z",
                "end": "2026-01-03T02:00:00Z",
                "recurrence": "weekly",
                "exclusions": [
                    {"name": "a", "start": "2026-01-01", "end": "2026-03-01"},
                    {"name": "a", "start": "2026-01-01", "end": "2026-01-01"},
                    {"name": "b", "start": "2026-01-01", "end": "2026-01-02"},
                    {"name": "c", "start": "2026-01-01", "end": "2026-01-02"},
                ],
            }
        },
        [
            "clusters[batch].maintenance.end: is not within a day after start; write the end of one window",
            "clusters[batch].maintenance.exclusions[1].name: a is used twice; give it another name",
            (
                "clusters[batch].maintenance.exclusions: 4, of which 4 stop all upgrades; keep at most 20, and "
                "at most 3 of scope NO_UPGRADES"
            ),
            (
                "clusters[batch].maintenance.exclusions[0].end: 59 days without any upgrade, but GKE grants "
                "30; write an earlier end, or another scope"
            ),
            "clusters[batch].maintenance.exclusions[1].end: is not after start; write a later end",
        ],
    ),
    "window without a recurrence": (
        {"clusters/0/maintenance": {**WEEKENDS, "recurrence": "weekly"}},
        [
            'clusters[batch].maintenance.recurrence: "weekly" is not a recurrence; write one of RFC 5545, such as '
            "FREQ=WEEKLY;BYDAY=SA,SU",
        ],
    ),
    "window that ends": (
        {"clusters/0/maintenance": {**WEEKENDS, "recurrence": "FREQ=WEEKLY;COUNT=3"}},
        [
            'clusters[batch].maintenance.recurrence: "FREQ=WEEKLY;COUNT=3" ends by its COUNT, which leaves no time '
            "for maintenance; remove that part",
        ],
    ),
    "window too short": (
        {"clusters/0/maintenance": {**WEEKENDS, "recurrence": "FREQ=WEEKLY;BYDAY=SA"}},
        [
            "clusters[batch].maintenance.recurrence: leaves GKE 24 h of the 32 days from 2026-01-03 on, but it wants "
            "48 h, in stretches of at least 4 h; make the window longer, or let it come back more often",
        ],
    ),
    "window too short with exclusions": (
        {
            "clusters/0/maintenance": {
                **WEEKENDS,
                "exclusions": [{"name": "year-end", "start": "2026-12-20", "end": "2027-01-04"}],
            }
        },
        [
            "clusters[batch].maintenance.recurrence: leaves GKE 18 h of the 32 days from 2026-12-06 on, less the "
            "exclusions of all upgrades, but it wants 48 h, in stretches of at least 4 h; make the window longer, or "
            "let it come back more often, or the exclusion shorter",
        ],
    ),
    "windows of another time": (
        {"clusters/0/maintenance": {**WEEKENDS, "start": "9999-01-03T02:00:00Z"}},
        [
            'clusters[batch].maintenance.start: "9999-01-03T02:00:00Z" is in the year 9999; write a year from 1970 to '
            "2199"
        ],
    ),
    "ends of exclusions": (
        {
            "clusters/0/maintenance": {
                **WEEKENDS,
                "exclusions": [
                    {"name": "a", "start": "2026-12-20"},
                    {"name": "b", "start": "2026-12-20", "endTimeBehavior": "UNTIL_END_OF_SUPPORT"},
                    {
                        "name": "c",
                        "start": "2026-12-20",
                        "end": "2026-12-21",
                        "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
                        "scope": "NO_MINOR_UPGRADES",
                    },
                    {
                        "name": "d",
                        "start": "2026-12-20",
                        "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
                        "scope": "NO_MINOR_UPGRADES",
                    },
                ],
            }
        },
        [
            "clusters[batch].maintenance.exclusions[a].end: is not set; write when it ends, or endTimeBehavior: "
            "UNTIL_END_OF_SUPPORT",
            "clusters[batch].maintenance.exclusions[b].endTimeBehavior: UNTIL_END_OF_SUPPORT, but scope is "
            "NO_UPGRADES, which lasts at most 30 days; write an end, or scope: NO_MINOR_UPGRADES or "
            "NO_MINOR_OR_NODE_UPGRADES",
            "clusters[batch].maintenance.exclusions[c].end: is set, but so is endTimeBehavior: UNTIL_END_OF_SUPPORT; "
            "keep one of the two",
        ],
    ),
    "not a version": (
        {"clusters/0/minMasterVersion": "latest"},
        [
            'clusters[batch].minMasterVersion: "latest" is not a version of GKE; write one such as 1.34 or '
            "1.34.1-gke.1829001",
        ],
    ),
    "observability": (
        {
            "observability": {
                "managedPrometheus": False,
                "alerts": {"notificationChannels": ["me"], "provisioningTimeout": "0s"},
            }
        },
        [
            (
                "observability.dashboard: true, but without managedPrometheus there is nothing to show; set "
                "dashboard to false, or managedPrometheus to true"
            ),
            (
                "observability.alerts.enabled: true, but without managedPrometheus there is nothing to watch; "
                "set alerts.enabled to false, or managedPrometheus to true"
            ),
            (
                'observability.alerts.notificationChannels[0]: "me" is not a notification channel; write '
                "projects/PROJECT/notificationChannels/ID"
            ),
            "observability.alerts.provisioningTimeout: 0s is not longer than 0; write 30m or so",
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []


BY_PODS: dict[str, tuple[Any, str]] = {
    "capacity": ({"type": "spot"}, "for Spot VMs, select and tolerate cloud.google.com/gke-spot in the pods of jobs"),
    "secondaryBootDisks": (
        [{"diskImage": "global/images/cache"}],
        "list the image in a GCPResourceAllowlist on the cluster, and select cloud.google.com.node-restriction."
        "kubernetes.io/gke-secondary-boot-disk-NAME: CONTAINER_IMAGE_CACHE.PROJECT in the pods of jobs",
    ),
    "machineType": ("g2-standard-4", "select cloud.google.com/machine-family in the pods of jobs"),
}


@pytest.mark.parametrize("field", BY_PODS)
def test_fields_of_pools_say_what_gke_does_for_nodes_that_it_makes(field: str) -> None:
    value, instead = BY_PODS[field]
    wrong = "is a field of node pools, which GKE does not take for nodes that it makes by itself"
    result = problems(changed(pools_data(), nap({**limits(), field: value})))
    assert f"clusters[batch].nodeAutoProvisioning.{field}: {wrong}; {instead}" in result
