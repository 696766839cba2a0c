"""A field that is taken away returns to its default: an update leads to what a new resource would be."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

import google_cloud
from google_cloud import created, planned, updated
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL
from pulumi_mocks import Recorded

KEY = "projects/keys-1/locations/us-central1/keyRings/r/cryptoKeys/k"
WINDOW = {"start": "2026-01-03T00:00:00Z", "end": "2026-01-04T00:00:00Z", "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU"}
FREEZE = {"name": "year-end", "start": "2026-12-20T00:00:00Z", "end": "2027-01-04T00:00:00Z"}
LIMITS = [{"resourceType": "cpu", "maximum": 1000}, {"resourceType": "memory", "maximum": 4000}]

OF_CLUSTERS: dict[str, Any] = {
    "zones": ["us-central1-a", "us-central1-f"],
    "releaseChannel": "RAPID",
    "minMasterVersion": "1.34",
    "deletionProtection": False,
    "systemPool": {"machineType": "n2-standard-4", "spot": False, "totalMaxNodeCount": 9, "diskSizeGb": 200},
    "nodeAutoProvisioning": {"resourceLimits": LIMITS, "zones": ["us-central1-f"], "autoscalingProfile": "BALANCED"},
    "maintenance": {**WINDOW, "exclusions": [FREEZE]},
    "databaseEncryptionKey": KEY,
    "binaryAuthorization": True,
    "costAllocation": False,
    "multiNetworking": True,
    "imageStreaming": False,
    "storageDrivers": ["GcsFuse"],
}
STAYS = {
    "rbacSecurityGroup": "the group stays until gcloud removes it",
    "fleetMembership": "the provider has no way back",
    "diskEncryptionKey": "replaces pools",
    "sliceController": "the controller stays until gcloud turns it off",
    "nodeServiceAccount": "replaces pools",
}
ELSEWHERE = {"name", "role", "region", "project", "mode", "kueue", "existing", "upsertExistingObjects"} | {
    *("kubernetes", "location", "nodes", "podMonitors")
}
"""What Google's provider is not told, what makes another cluster, and what only clusters outside GKE have."""
OF_POOLS: dict[str, Any] = {
    "zones": ["us-central1-a"],
    "diskSizeGb": 200,
    "diskType": "pd-ssd",
    "labels": {"company.test/a": "b"},
    "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
    "management": {"autoRepair": True},
    "kubeletConfig": {
        "cpuManagerPolicy": "static",
        "topologyManager": {"policy": "restricted", "scope": "pod"},
        "memoryManager": {"policy": "Static"},
        "podPidsLimit": 4096,
    },
    "upgrade": {"maxSurge": 2, "maxUnavailable": 1},
}
REPLACES: dict[str, Any] = {
    "accelerator": {"type": "nvidia-tesla-t4", "count": 1},
    "maxPodsPerNode": 32,
    "localSsdCount": 2,
    "secondaryBootDisks": [{"diskImage": "global/images/weights"}],
    "capacity": {"type": "spot"},
}
"""Fields of pools that replace them, both ways."""
ELSEWHERE_IN_POOLS = {
    "acceleratorNetworkProfile",
    "acceleratorNetworks",
    "acceleratorTopologyMode",
    "autoscaling",
    "clusters",
    "compactPlacement",
    "existing",
    "fastSocket",
    "initialNodeCount",
    "machineType",
    "name",
    "ncclPlugin",
    "nodeCount",
    "perCluster",
    "tpuTopology",
}
OF_PULUMI = {"deletionProtection"}


def lab(cluster: dict[str, Any], pool: dict[str, Any], network: dict[str, Any] | None = None) -> FleetSpec:
    """A fleet of one cluster."""
    standalone = {"name": "batch", "role": "standalone", "region": "us-central1", "mode": "Standard", **cluster}
    nodes = {"name": "nodes", "machineType": "n1-standard-8", "autoscaling": {"totalMaxNodeCount": 3}, **pool}
    data = {"name": "lab", "project": "lab-project", "clusters": [standalone], "nodePools": [nodes]}
    return parse_fleet({**data, **({"network": network} if network else {})})


def declared(
    cluster: dict[str, Any], pool: dict[str, Any], network: dict[str, Any] | None = None
) -> dict[str, Recorded]:
    """Its clusters and pools; not to be changed."""
    return _declared(json.dumps([cluster, pool, network]))


@cache
def _declared(arguments: str) -> dict[str, Recorded]:
    spec = lab(*json.loads(arguments))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fleet, "_fill", lambda *_: None)
        recording = google_cloud.run(lambda: Fleet(spec.name, spec))
    return {item.place: item for item in recording if item.type in (CLUSTER, NODE_POOL)}


def after(before: dict[str, Recorded], then: dict[str, Recorded]) -> dict[str, dict[str, str]]:
    """What changes of each resource; nothing of those that come or go. An update leads to what a new one would be."""
    plans = {}
    for name, new in then.items():
        old = before[name]
        state = created(old.type, old.inputs)
        plans[name] = planned(new, state)
        if not any(change.endswith("REPLACE") for change in plans[name].values()):
            reached, expected = updated(new.type, state, new.inputs), created(new.type, new.inputs)
            assert _effective(reached) == _effective(expected)
    return {name: plan for name, plan in plans.items() if plan}


def _effective(state: dict[str, Any]) -> dict[str, Any]:
    """Settings of pools that GKE makes mean nothing where it makes none."""
    makes = (state.get("clusterAutoscaling") or {}).get("enabled") is True
    return {name: value for name, value in state.items() if makes or name != "nodePoolAutoConfig"}


@pytest.mark.parametrize("field", OF_CLUSTERS)
def test_a_field_of_a_cluster_that_is_taken_away_returns_to_its_default(field: str) -> None:
    base, changed = declared({}, {}), declared({field: OF_CLUSTERS[field]}, {})
    for one, other in ((changed, base), (base, changed)):
        plans = after(one, other)
        assert plans
        assert not any(change.endswith("REPLACE") for plan in plans.values() for change in plan.values())


@pytest.mark.parametrize("field", OF_POOLS)
def test_a_field_of_a_pool_that_is_taken_away_returns_to_its_default(field: str) -> None:
    base, changed = declared({}, {}), declared({}, {field: OF_POOLS[field]})
    for one, other in ((changed, base), (base, changed)):
        plans = after(one, other)
        assert set(plans) == ({"batch/nodes"} if field != "management" else set())
        assert not any(change.endswith("REPLACE") for plan in plans.values() for change in plan.values())


@pytest.mark.parametrize("field", REPLACES)
def test_a_field_that_makes_the_pool_again_does_so_when_it_is_taken_away_too(field: str) -> None:
    zone = {"zones": ["us-central1-a"]}
    base, changed = declared({}, zone), declared({}, {**zone, field: REPLACES[field]})
    for one, other in ((changed, base), (base, changed)):
        assert any(change.endswith("REPLACE") for change in after(one, other)["batch/nodes"].values())


def test_every_field_is_looked_at() -> None:
    cluster_fields = {field.alias or name for name, field in ClusterEntry.model_fields.items()}
    assert cluster_fields == {*OF_CLUSTERS, *STAYS, *ELSEWHERE}
    pool_fields = {field.alias or name for name, field in NodePoolEntry.model_fields.items()}
    assert pool_fields == {*OF_POOLS, *REPLACES, *ELSEWHERE_IN_POOLS, *OF_PULUMI}


def test_the_security_group_stays() -> None:
    group = {"rbacSecurityGroup": "gke-security-groups@example.com"}
    with_group, without = declared(group, {})["batch"], declared({}, {})["batch"]
    assert planned(without, created(CLUSTER, with_group.inputs)) == {}


def test_zones_that_are_not_named_are_the_first_three_of_the_region() -> None:
    cluster = declared({"nodeAutoProvisioning": {"resourceLimits": LIMITS}}, {})
    zones = ["us-central1-a", "us-central1-b", "us-central1-c"]
    assert cluster["batch"].inputs["nodeLocations"] == zones
    assert cluster["batch/nodes"].inputs["nodeLocations"] == zones
    assert cluster["batch"].inputs["clusterAutoscaling"]["autoProvisioningLocations"] == zones


def test_the_way_to_the_control_plane_changes_in_both_directions_and_stays() -> None:
    """From the DNS name to addresses and back: nothing of the other way is left."""
    office = [{"name": "office", "cidr": "203.0.113.0/24"}]
    by_name = declared({}, {})["batch"]
    by_address = declared({}, {}, {"controlPlaneAccess": "AuthorizedNetworks", "authorizedNetworks": office})["batch"]
    for one, other in ((by_name, by_address), (by_address, by_name)):
        state = created(CLUSTER, one.inputs)
        plan = planned(other, state)
        assert plan
        assert not [path for path, change in plan.items() if change.endswith("REPLACE")]
        reached = updated(CLUSTER, state, other.inputs)
        endpoints, expected = reached["controlPlaneEndpointsConfig"], created(CLUSTER, other.inputs)
        assert endpoints == expected["controlPlaneEndpointsConfig"]
        assert planned(other, reached) == {}, "the difference ends"


def test_the_provider_waits_as_long_as_it_does_by_itself() -> None:
    """Two hours for a pool and ninety minutes for a cluster: less would give GKE up while it still works."""
    assert [item.short for item in declared({}, {}).values() if item.timeouts] == []
