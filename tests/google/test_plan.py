"""What the Google provider would do with new inputs: nothing, an update, or the resource made again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from google_cloud import changes, created, updated
from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL

RESERVATION = "gcp:compute/reservation:Reservation"
FUTURE = "gcp:compute/futureReservation:FutureReservation"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
DASHBOARD = "gcp:monitoring/dashboard:Dashboard"
KEY = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
OTHER_KEY = f"{KEY}2"

NEEDED: dict[str, dict[str, Any]] = {
    CLUSTER: {"name": "batch", "initialNodeCount": 1, "removeDefaultNodePool": True},
    NODE_POOL: {"name": "pool", "cluster": "batch", "nodeCount": 1},
    RESERVATION: {
        "name": "kept",
        "zone": "europe-west4-a",
        "specificReservation": {"count": 2, "instanceProperties": {"machineType": "n2-standard-8"}},
    },
    FUTURE: {
        "name": "asked",
        "zone": "europe-west4-a",
        "timeWindow": {"startTime": "2027-01-01T00:00:00Z", "endTime": "2027-01-08T00:00:00Z"},
    },
    SUBNETWORK: {"name": "nodes", "network": "vpc", "ipCidrRange": "10.164.0.0/20"},
    POLICY: {"name": "close", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}},
}


def plan(token: str, before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    """What changes from one to the other; `None` in either takes a needed property away."""
    state = created(token, {**NEEDED[token], **before})
    return changes(token, state, {**NEEDED[token], **after})


def defaults(**more: Any) -> dict[str, Any]:
    limits = [{"resourceType": "cpu", "maximum": 10}]
    return {"clusterAutoscaling": {"enabled": True, "resourceLimits": limits, "autoProvisioningDefaults": more}}


@pytest.mark.parametrize(
    ("token", "before", "after", "expected"),
    [
        # Replaced, though it looks like an update.
        (
            CLUSTER,
            defaults(bootDiskKmsKey=KEY),
            defaults(bootDiskKmsKey=OTHER_KEY),
            {"clusterAutoscaling.autoProvisioningDefaults.bootDiskKmsKey": "UPDATE_REPLACE"},
        ),
        (
            CLUSTER,
            defaults(),
            defaults(bootDiskKmsKey=KEY),
            {"clusterAutoscaling.autoProvisioningDefaults.bootDiskKmsKey": "ADD_REPLACE"},
        ),
        (
            CLUSTER,
            {},
            defaults(bootDiskKmsKey=KEY),
            {
                "clusterAutoscaling.enabled": "UPDATE",
                "clusterAutoscaling.resourceLimits[0]": "ADD",
                "clusterAutoscaling.autoProvisioningDefaults.bootDiskKmsKey": "ADD_REPLACE",
            },
        ),
        (
            NODE_POOL,
            {"nodeConfig": {"bootDiskKmsKey": KEY}},
            {"nodeConfig": {"bootDiskKmsKey": OTHER_KEY}},
            {"nodeConfig.bootDiskKmsKey": "UPDATE_REPLACE"},
        ),
        (
            RESERVATION,
            {"shareSettings": {"shareType": "LOCAL"}},
            {
                "shareSettings": {
                    "shareType": "SPECIFIC_PROJECTS",
                    "projectMaps": [{"id": "12", "projectId": "12"}],
                }
            },
            {"shareSettings.shareType": "UPDATE_REPLACE", "shareSettings.projectMaps[0]": "ADD"},
        ),
        (SUBNETWORK, {}, {"ipCidrRange": "10.164.0.0/21"}, {"ipCidrRange": "UPDATE_REPLACE"}),
        (SUBNETWORK, {}, {"ipCidrRange": "10.164.0.0/19"}, {"ipCidrRange": "UPDATE"}),
        # An update, though it looks like more.
        (
            NODE_POOL,
            {"nodeConfig": {"gvnic": {"enabled": False}}},
            {"nodeConfig": {"gvnic": {"enabled": True}}},
            {"nodeConfig.gvnic.enabled": "UPDATE"},
        ),
        (
            NODE_POOL,
            {"placementPolicy": {"type": "COMPACT", "policyName": "a"}},
            {"placementPolicy": {"type": "SPREAD", "policyName": "a"}},
            {"placementPolicy.type": "UPDATE"},
        ),
        (NODE_POOL, {}, {"placementPolicy": {"type": "COMPACT"}}, {"placementPolicy": "ADD_REPLACE"}),
        (
            CLUSTER,
            {"privateClusterConfig": {"enablePrivateNodes": False}},
            {"privateClusterConfig": {"enablePrivateNodes": True}},
            {"privateClusterConfig.enablePrivateNodes": "UPDATE"},
        ),
        (
            CLUSTER,
            {"removeDefaultNodePool": True},
            {"removeDefaultNodePool": None},
            {"removeDefaultNodePool": "DELETE"},
        ),
        (
            CLUSTER,
            {"removeDefaultNodePool": None, "nodeConfig": {"workloadMetadataConfig": {"mode": "GCE_METADATA"}}},
            {"removeDefaultNodePool": None, "nodeConfig": {"workloadMetadataConfig": {"mode": "GKE_METADATA"}}},
            {"nodeConfig.workloadMetadataConfig.mode": "UPDATE"},
        ),
        (FUTURE, {"description": "a"}, {"description": "b"}, {"description": "UPDATE"}),
        (POLICY, {"description": "a"}, {"description": "b"}, {"description": "UPDATE"}),
        (POLICY, {}, {"name": "closer"}, {"name": "UPDATE"}),
        (
            POLICY,
            {},
            {"workloadPolicy": {"type": "HIGH_AVAILABILITY"}},
            {"workloadPolicy.type": "UPDATE_REPLACE"},
        ),
        # By the provider's code.
        (CLUSTER, {"enableFqdnNetworkPolicy": True}, {}, {"enableFqdnNetworkPolicy": "UPDATE_REPLACE"}),
        (CLUSTER, {}, {"enableFqdnNetworkPolicy": True}, {"enableFqdnNetworkPolicy": "UPDATE"}),
    ],
)
def test_what_replaces_and_what_updates(
    token: str, before: dict[str, Any], after: dict[str, Any], expected: dict[str, str]
) -> None:
    assert plan(token, before, after) == expected


@pytest.mark.parametrize(
    ("token", "before"),
    [
        (CLUSTER, {"databaseEncryption": {"state": "ENCRYPTED", "keyName": KEY}}),
        (CLUSTER, {"authenticatorGroupsConfig": {"securityGroup": "gke-security-groups@example.com"}}),
        (CLUSTER, {"nodeLocations": ["europe-west4-a"]}),
        (CLUSTER, {"ipAllocationPolicy": {"servicesSecondaryRangeName": "services"}}),
        (NODE_POOL, {"maxPodsPerNode": 32}),
        (NODE_POOL, {"nodeConfig": {"labels": {"a": "b"}}}),
        (NODE_POOL, {"upgradeSettings": {"maxSurge": 3, "maxUnavailable": 1}}),
    ],
)
def test_taking_away_what_google_has_a_value_of_its_own_for_does_nothing(token: str, before: dict[str, Any]) -> None:
    assert plan(token, before, {}) == {}
    state = created(token, {**NEEDED[token], **before})
    kept = updated(token, state, NEEDED[token])
    (name,) = before
    assert kept[name] == state[name], "it stays as it was"


def test_enforcement_outlives_its_block() -> None:
    on = {"binaryAuthorization": {"evaluationMode": "PROJECT_SINGLETON_POLICY_ENFORCE"}}
    off = {"binaryAuthorization": {"evaluationMode": "DISABLED"}}
    assert plan(CLUSTER, on, {}) == {}
    assert plan(CLUSTER, on, off) == {"binaryAuthorization.evaluationMode": "UPDATE"}


@pytest.mark.parametrize(
    ("token", "before", "after", "expected"),
    [
        (
            CLUSTER,
            {"databaseEncryption": {"state": "ENCRYPTED", "keyName": KEY}},
            {"databaseEncryption": {"state": "DECRYPTED"}},
            {"databaseEncryption.keyName": "DELETE", "databaseEncryption.state": "UPDATE"},
        ),
        (
            CLUSTER,
            {"authenticatorGroupsConfig": {"securityGroup": "gke-security-groups@example.com"}},
            {"authenticatorGroupsConfig": {"securityGroup": ""}},
            {"authenticatorGroupsConfig.securityGroup": "UPDATE"},
        ),
        (
            NODE_POOL,
            {"nodeConfig": {"labels": {"a": "b"}}},
            {"nodeConfig": {"labels": {}}},
            {"nodeConfig.labels.a": "DELETE"},
        ),
        (
            NODE_POOL,
            {"nodeConfig": {"taints": [{"key": "a", "value": "b", "effect": "NO_SCHEDULE"}]}},
            {"nodeConfig": {"taints": []}},
            {"nodeConfig.taints[0]": "DELETE"},
        ),
        (
            NODE_POOL,
            {"nodeConfig": {"spot": True, "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}},
            {"nodeConfig": {}},
            {"nodeConfig.spot": "UPDATE_REPLACE", "nodeConfig.reservationAffinity": "DELETE_REPLACE"},
        ),
        (CLUSTER, {"deletionProtection": False}, {}, {"deletionProtection": "UPDATE"}),
        (
            CLUSTER,
            {"resourceLabels": {"a": "1"}},
            {"resourceLabels": {"b": "1"}},
            {
                "resourceLabels.a": "DELETE",
                "resourceLabels.b": "ADD",
            },
        ),
        (CLUSTER, {}, {"nodeLocations": ["europe-west4-b", "europe-west4-a", "europe-west4-c"]}, {}),
        (CLUSTER, {}, {"nodeLocations": ["europe-west4-a"]}, {"nodeLocations": "UPDATE"}),
        (CLUSTER, {}, {"network": UNKNOWN}, {"network": "UPDATE_REPLACE"}),
    ],
)
def test_what_is_said_changes(
    token: str, before: dict[str, Any], after: dict[str, Any], expected: dict[str, str]
) -> None:
    assert plan(token, before, after) == expected


def test_gpus_of_which_there_are_none_take_gpus_away_and_are_no_change_otherwise() -> None:
    def n1(*gpus: int) -> dict[str, Any]:
        return {"nodeConfig": {"guestAccelerators": [{"type": "nvidia-tesla-t4", "count": count} for count in gpus]}}

    assert plan(NODE_POOL, n1(2), {"nodeConfig": {}}) == {}
    assert plan(NODE_POOL, n1(2), n1(0)) == {"nodeConfig.guestAccelerators[0].count": "UPDATE_REPLACE"}
    assert plan(NODE_POOL, n1(0), n1(0)) == {}
    assert plan(NODE_POOL, {}, n1(0)) == {}
    assert "guestAccelerators" not in created(NODE_POOL, {**NEEDED[NODE_POOL], **n1(0)})["nodeConfig"]


def test_false_is_a_change_where_google_reports_nothing() -> None:
    future = {**NEEDED[FUTURE], "shareSettings": {"shareType": "LOCAL"}}
    state = created(FUTURE, future)
    assert changes(FUTURE, state, {**NEEDED[FUTURE], "autoDeleteAutoCreatedReservations": False}) == {
        "autoDeleteAutoCreatedReservations": "ADD"
    }


def test_sets_have_no_order_and_lists_have() -> None:
    networks = [{"cidrBlock": "203.0.113.0/24", "displayName": "a"}, {"cidrBlock": "198.51.100.0/24"}]
    before = {"masterAuthorizedNetworksConfig": {"cidrBlocks": networks}}
    assert plan(CLUSTER, before, {"masterAuthorizedNetworksConfig": {"cidrBlocks": networks[::-1]}}) == {}
    path = "masterAuthorizedNetworksConfig.cidrBlocks[0]"
    assert plan(CLUSTER, before, {"masterAuthorizedNetworksConfig": {"cidrBlocks": networks[:1]}}) == {path: "DELETE"}
    disks = [{"diskSizeGb": size, "interface": "NVME"} for size in (375, 3000)]
    state = created(RESERVATION, _with_disks(disks))
    assert set(changes(RESERVATION, state, _with_disks(disks[::-1])).values()) == {"UPDATE_REPLACE"}


def _with_disks(disks: list[dict[str, Any]]) -> dict[str, Any]:
    machine = {"machineType": "n2-standard-8", "localSsds": disks}
    return {**NEEDED[RESERVATION], "specificReservation": {"count": 2, "instanceProperties": machine}}


def test_what_is_ignored_is_no_change() -> None:
    state = created(RESERVATION, {**NEEDED[RESERVATION], "description": "a"})
    asked = {**NEEDED[RESERVATION], "description": "b"}
    assert changes(RESERVATION, state, asked) == {"description": "UPDATE_REPLACE"}
    assert changes(RESERVATION, state, asked, ["description"]) == {}


@pytest.mark.parametrize(
    ("token", "before", "after"),
    [
        (
            CLUSTER,
            {"network": "https://www.googleapis.com/compute/v1/projects/my-project/global/networks/n"},
            {
                "network": "projects/my-project/global/networks/n",
            },
        ),
        (CLUSTER, {"network": "n"}, {"network": "projects/my-project/global/networks/n"}),
        (
            CLUSTER,
            {"databaseEncryption": {"state": "ENCRYPTED", "keyName": KEY}},
            {"databaseEncryption": {"state": "ENCRYPTED", "keyName": KEY}},
        ),
        (CLUSTER, {"fleet": {"project": "p"}}, {"fleet": {"project": "p"}}),
        (NODE_POOL, {"nodeConfig": {"imageType": "COS_CONTAINERD"}}, {"nodeConfig": {"imageType": "cos_containerd"}}),
        (NODE_POOL, {"nodeConfig": {"resourceLabels": {"a": "b"}}}, {"nodeConfig": {"resourceLabels": {"a": "b"}}}),
        (CLUSTER, {"privateClusterConfig": {"enablePrivateNodes": False}}, {}),
    ],
)
def test_spellings_of_the_same_are_no_change(token: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    assert plan(token, before, after) == {}


def test_a_network_of_another_project_is_another() -> None:
    links = ({"network": f"projects/{project}/global/networks/n"} for project in ("my-project", "host-project"))
    assert plan(CLUSTER, *links) == {"network": "UPDATE_REPLACE"}


def test_addresses_have_no_meaning_without_ip_endpoints() -> None:
    endpoints = {"controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": False}}}
    private = {"privateClusterConfig": {"enablePrivateNodes": True}}
    state = created(CLUSTER, {**NEEDED[CLUSTER], **endpoints, **private})
    assert state["privateClusterConfig"]["enablePrivateEndpoint"] is True
    assert changes(CLUSTER, state, {**NEEDED[CLUSTER], **endpoints, **private}) == {}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"displayName": "d"}, {}),
        ({"displayName": "e"}, {"dashboardJson": "UPDATE"}),
        ({"displayName": "d", "mosaicLayout": {"columns": 0}}, {"dashboardJson": "UPDATE"}),
    ],
)
def test_dashboards_are_compared_by_what_the_program_says(asked: dict[str, Any], found: dict[str, str]) -> None:
    state = created(DASHBOARD, {"dashboardJson": json.dumps({"displayName": "d"})})
    assert changes(DASHBOARD, state, {"dashboardJson": json.dumps(asked)}) == found


def test_networks_taken_off_a_pool_make_it_again() -> None:
    cards = [{"network": "a", "subnetwork": "a"}]
    before = {"networkConfig": {"enablePrivateNodes": True, "additionalNodeNetworkConfigs": cards}}
    after = {"networkConfig": {"enablePrivateNodes": True}}
    assert plan(NODE_POOL, before, after) == {"networkConfig.additionalNodeNetworkConfigs": "DELETE_REPLACE"}


def test_multi_networking_is_turned_off_in_place() -> None:
    result = plan(CLUSTER, {"enableMultiNetworking": True}, {})
    assert [change.endswith("REPLACE") for change in result.values()] == [False]
