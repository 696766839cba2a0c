"""What Google answers otherwise than it was asked, and that a second update shows it."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

import pytest

from google_cloud import CONTROL_PLANE, answer, changes, created, resource_id, updated
from kueue_fleet.google.answers import project_number, without_zeros
from kueue_fleet.google.gke_answers import cluster_answer, node_pool_answer
from kueue_fleet.google.provider_facts import load_facts
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL

RESERVATION = "gcp:compute/reservation:Reservation"
FUTURE = "gcp:compute/futureReservation:FutureReservation"
DASHBOARD = "gcp:monitoring/dashboard:Dashboard"
H100 = {"machineType": "a3-highgpu-8g"}
WINDOW = {"startTime": "2027-01-01T00:00:00Z"}
EIGHT = {"localSsdCount": 16}


def again(token: str, inputs: dict[str, Any], ignored: tuple[str, ...] = ()) -> dict[str, str]:
    """What a second `pulumi up` changes, and a third just as much."""
    state = created(token, inputs)
    second = changes(token, state, inputs, ignored)
    assert changes(token, updated(token, state, inputs), inputs, ignored) == second, "it never ends"
    return second


def pool(config: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "pool", "cluster": "batch", "nodeConfig": config, **more}


def reservation(machine: dict[str, Any]) -> dict[str, Any]:
    block = {"count": 1, "instanceProperties": machine}
    return {"name": "kept", "zone": "europe-west4-a", "specificReservation": block}


def future(**more: Any) -> dict[str, Any]:
    return {
        "name": "asked",
        "zone": "europe-west4-a",
        "timeWindow": {**WINDOW, "endTime": "2027-01-08T00:00:00Z"},
        **more,
    }


class TestWhatNeverEnds:
    """Declarations that differ from Google's answer on every update."""

    def test_a_pool_of_machines_with_disks_of_their_own(self) -> None:
        silent = pool({**H100})
        assert again(NODE_POOL, silent) == {"nodeConfig.ephemeralStorageLocalSsdConfig": "DELETE_REPLACE"}
        assert again(NODE_POOL, pool({**H100, "ephemeralStorageLocalSsdConfig": EIGHT})) == {}

    def test_a_future_reservation_that_is_local(self) -> None:
        assert again(FUTURE, future(shareSettings={"shareType": "LOCAL"})) == {"shareSettings": "ADD_REPLACE"}
        assert again(FUTURE, future()) == {}

    def test_a_future_reservation_with_a_duration(self) -> None:
        asked = future(timeWindow={**WINDOW, "duration": {"seconds": "604800"}})
        assert again(FUTURE, asked) == {"timeWindow.duration": "ADD", "timeWindow.endTime": "DELETE"}
        assert created(FUTURE, asked)["timeWindow"]["endTime"] == "2027-01-08T00:00:00Z"

    def test_a_reservation_of_machines_with_gpus_and_disks(self) -> None:
        block = "specificReservation.instanceProperties"
        result = again(RESERVATION, reservation(H100))
        assert set(result.values()) == {"DELETE_REPLACE"}
        assert {path.partition("[")[0] for path in result} == {f"{block}.guestAccelerators", f"{block}.localSsds"}
        assert again(RESERVATION, reservation(H100), (f"{block}.guestAccelerators", f"{block}.localSsds")) == {}
        assert again(RESERVATION, reservation({"machineType": "n2-standard-8"})) == {}

    @pytest.mark.parametrize(
        "more", [{}, {"queuedProvisioning": {"enabled": True}, "autoscaling": {"totalMaxNodeCount": 4}}]
    )
    def test_upgrades_of_flex_start(self, more: dict[str, Any]) -> None:
        surge = {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0}
        config = {"flexStart": True, "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}
        result = again(NODE_POOL, pool(config, upgradeSettings=surge, **more))
        assert result == {"upgradeSettings.strategy": "UPDATE", "upgradeSettings.maxSurge": "UPDATE"}
        assert again(NODE_POOL, pool(config, **more)) == {}
        assert again(NODE_POOL, pool({"spot": True}, upgradeSettings=surge)) == {}

    def test_dashboards_with_zeros(self) -> None:
        def dashboard(tile: dict[str, Any]) -> dict[str, Any]:
            content = {"displayName": "d", "mosaicLayout": {"columns": 48, "tiles": [tile]}}
            return {"dashboardJson": json.dumps(content)}

        assert again(DASHBOARD, dashboard({"xPos": 0, "yPos": 0, "width": 24})) == {"dashboardJson": "UPDATE"}
        assert again(DASHBOARD, dashboard({"width": 24})) == {}

    @pytest.mark.parametrize(("token", "ignored"), [(RESERVATION, ()), (FUTURE, ())])
    def test_projects_by_their_id(self, token: str, ignored: tuple[str, ...]) -> None:
        def shared(project: str) -> dict[str, Any]:
            settings = {"shareType": "SPECIFIC_PROJECTS", "projectMaps": [{"id": project, "projectId": project}]}
            machines = reservation({"machineType": "n2-standard-8"}) if token == RESERVATION else future()
            return {**machines, "shareSettings": settings}

        assert set(again(token, shared("team-a"), ignored).values()) == {"UPDATE"}
        assert again(token, shared(project_number("team-a")), ignored) == {}

    def test_settings_of_nodes_on_autopilot(self) -> None:
        autopilot = {"name": "batch", "enableAutopilot": True}
        assert again(CLUSTER, {**autopilot, "nodeConfig": {"spot": True}}) == {"nodeConfig": "ADD_REPLACE"}
        assert again(CLUSTER, autopilot) == {}


def test_a_standard_cluster_has_no_settings_of_the_default_pool_that_was_removed() -> None:
    cluster = {"name": "batch", "initialNodeCount": 1, "nodeConfig": {"spot": True}}
    assert again(CLUSTER, {**cluster, "removeDefaultNodePool": True}) == {"nodeConfig": "ADD_REPLACE"}
    assert again(CLUSTER, {**cluster, "removeDefaultNodePool": True}, ("nodeConfig",)) == {}
    assert again(CLUSTER, cluster) == {}


def test_auto_provisioning_without_defaults_or_zones_is_answered_with_gkes() -> None:
    limits = [{"resourceType": "cpu", "maximum": 10}]
    asked = {"name": "batch", "clusterAutoscaling": {"enabled": True, "resourceLimits": limits}}
    answered = created(CLUSTER, asked)["clusterAutoscaling"]
    assert answered["autoProvisioningDefaults"]["management"] == {"autoRepair": True, "autoUpgrade": True}
    assert answered["autoProvisioningLocations"] == ["europe-west4-a", "europe-west4-b", "europe-west4-c"]
    assert again(CLUSTER, asked) == {}


class TestRecorded:
    """What Google's API was recorded to answer where nothing was asked."""

    ASKED: ClassVar = {"project": "p", "location": "europe-west4", "name": "batch"}

    def cluster(self, version: str) -> dict[str, Any]:
        return cluster_answer(self.ASKED, {**CONTROL_PLANE, "version": version})

    def pool(self, config: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
        asked = {"project": "p", "location": "europe-west4", "cluster": "batch", "name": "a"}
        return node_pool_answer({**asked, "nodeConfig": config or {}}, {**CONTROL_PLANE, "asked": cluster})

    @pytest.mark.parametrize(
        ("version", "on"), [("1.34.7-gke.100", False), ("1.34.8-gke.1278000", True), ("v1.36.3", True)]
    )
    def test_the_dns_cache_is_on_in_new_versions(self, version: str, on: bool) -> None:
        assert self.cluster(version)["addonsConfig"]["dnsCacheConfig"] == {"enabled": on}

    def test_defaults_of_auto_provisioning_are_answered_without_it(self) -> None:
        off = {"enabled": False, "autoscalingProfile": "BALANCED", "defaultComputeClassEnabled": False}
        assert self.cluster("1.33.4-gke.1")["clusterAutoscaling"] == off
        answered = self.cluster("1.33.5-gke.1")["clusterAutoscaling"]
        defaults = answered.pop("autoProvisioningDefaults")
        assert answered == off
        assert len(defaults.pop("oauthScopes")) == 6
        management = {"autoRepair": True, "autoUpgrade": True}
        assert defaults == {"imageType": "COS_CONTAINERD", "serviceAccount": "default", "management": management}

    def test_vulnerabilities_are_not_looked_for(self) -> None:
        assert self.cluster("1.36")["securityPostureConfig"]["vulnerabilityMode"] == "VULNERABILITY_MODE_UNSPECIFIED"

    def test_pods_of_a_pool_have_the_range_of_the_cluster(self) -> None:
        result = self.cluster("1.36")["ipAllocationPolicy"]["clusterSecondaryRangeName"]
        assert re.fullmatch("gke-batch-pods-[0-9a-f]{8}", result)
        assert self.pool()["networkConfig"]["podRange"] == result
        named = {"ipAllocationPolicy": {"clusterSecondaryRangeName": "pods"}}
        assert self.pool(**named)["networkConfig"]["podRange"] == "pods"

    def test_nodes_have_six_scopes(self) -> None:
        scopes = self.pool()["nodeConfig"]["oauthScopes"]
        names = "devstorage.read_only logging.write monitoring service.management.readonly servicecontrol trace.append"
        assert scopes == [f"https://www.googleapis.com/auth/{name}" for name in names.split()]

    def test_metadata_are_gkes_only_with_workload_identity(self) -> None:
        assert "workloadMetadataConfig" not in self.pool()["nodeConfig"]
        with_identity = self.pool(workloadIdentityConfig={"workloadPool": "p.svc.id.goog"})
        assert with_identity["nodeConfig"]["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}

    @pytest.mark.parametrize(
        ("config", "pulls"),
        [({}, 2), (EIGHT, 3), ({"machineType": "a3-highgpu-8g"}, 3), ({"machineType": "g2-standard-4"}, 2)],
    )
    def test_nodes_with_local_ssds_pull_more_images_at_once(self, config: dict[str, Any], pulls: int) -> None:
        asked = {"ephemeralStorageLocalSsdConfig": config} if config == EIGHT else config
        assert self.pool(asked)["nodeConfig"]["kubeletConfig"]["maxParallelImagePulls"] == pulls

    def test_nodes_are_balanced_over_zones_and_queued_ones_are_anywhere(self) -> None:
        limits = {"totalMaxNodeCount": 4}
        assert created(NODE_POOL, pool({}, autoscaling=limits))["autoscaling"]["locationPolicy"] == "BALANCED"
        queued = pool({}, autoscaling=limits, queuedProvisioning={"enabled": True})
        assert created(NODE_POOL, queued)["autoscaling"]["locationPolicy"] == "ANY"

    def test_whether_reservations_go_with_their_request_is_what_was_asked_since_it_is_never_answered(self) -> None:
        asked = future(autoDeleteAutoCreatedReservations=True)
        assert again(FUTURE, asked) == {}
        kept = {**asked, "autoDeleteAutoCreatedReservations": False}
        assert changes(FUTURE, created(FUTURE, asked), kept) == {"autoDeleteAutoCreatedReservations": "UPDATE"}


def test_secrets_are_encrypted_with_everything_else_from_1_35_on() -> None:
    asked = {
        "project": "p",
        "location": "europe-west4",
        "name": "batch",
        "databaseEncryption": {"state": "ENCRYPTED", "keyName": "k"},
    }
    states = [
        cluster_answer(asked, {**CONTROL_PLANE, "version": version})["databaseEncryption"]["state"]
        for version in ("1.34.1-gke.5", "1.35.0-gke.1", "v1.36.3")
    ]
    assert states == ["ENCRYPTED", "ALL_OBJECTS_ENCRYPTION_ENABLED", "ALL_OBJECTS_ENCRYPTION_ENABLED"]


def test_a_cluster_has_an_endpoint_a_certificate_and_a_secret_key() -> None:
    asked = {"project": "p", "location": "europe-west4", "name": "batch", "enableAutopilot": True}
    state = cluster_answer(asked, CONTROL_PLANE)
    assert state["endpoint"] == "192.0.2.10"
    assert state["masterAuth"]["clusterCaCertificate"] == CONTROL_PLANE["caCertificate"]
    assert state["masterAuth"]["clientKey"] == ""
    assert state["workloadIdentityConfig"] == {"workloadPool": "p.svc.id.goog"}
    assert state["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"] == "gke-1.europe-west4.gke.goog"
    assert state["network"] == "projects/p/global/networks/default"
    assert state["subnetwork"] == "projects/p/regions/europe-west4/subnetworks/default"


def test_an_exclusion_without_a_scope_is_of_all_upgrades() -> None:
    exclusion = {
        "exclusionName": "e",
        "startTime": "2027-01-01T00:00:00Z",
        "endTime": "2027-01-02T00:00:00Z",
    }
    policy = {"dailyMaintenanceWindow": {"startTime": "03:00"}, "maintenanceExclusions": [exclusion]}
    state = created(CLUSTER, {"name": "batch", "maintenancePolicy": policy})
    assert state["maintenancePolicy"]["maintenanceExclusions"][0]["exclusionOptions"] == {"scope": "NO_UPGRADES"}


def test_nodes_have_the_taints_that_gke_adds_and_the_labels_of_their_machines() -> None:
    taint = {"key": "a", "value": "b", "effect": "NO_EXECUTE"}
    queued = pool({"machineType": "g2-standard-4", "taints": [taint]}, queuedProvisioning={"enabled": True})
    config = created(NODE_POOL, queued)["nodeConfig"]
    assert config["taints"] == [taint]
    assert [item["key"] for item in config["effectiveTaints"]] == [
        "a",
        "nvidia.com/gpu",
        "cloud.google.com/gke-queued",
    ]
    assert config["resourceLabels"] == {"goog-gke-node-pool-provisioning-model": "on-demand"}


def test_a_router_lies_in_a_network_by_its_link_and_members_are_written_small() -> None:
    state = created("gcp:compute/router:Router", {"name": "r", "network": "vpc"})
    assert state["network"] == "https://www.googleapis.com/compute/v1/projects/my-project/global/networks/vpc"
    member = {"project": "p", "role": "roles/viewer", "member": "user:Ada@Example.com"}
    assert created("gcp:projects/iAMMember:IAMMember", member)["member"] == "user:ada@example.com"
    assert again("gcp:projects/iAMMember:IAMMember", member) == {}
    pods = {**member, "member": "principal://iam.googleapis.com/Projects/1"}
    assert created("gcp:projects/iAMMember:IAMMember", pods)["member"] == pods["member"]


def test_zeros_are_dropped_at_any_depth_and_empty_objects_stay() -> None:
    assert without_zeros({"a": 0, "b": [{"c": False, "d": {}}], "e": [], "f": "", "g": 1}) == {
        "b": [{"d": {}}],
        "g": 1,
    }


MEMBER = {"role": "roles/viewer", "member": "user:ada@example.com"}
NAMED = {"name": "some-name"}
LEAST: dict[str, dict[str, Any]] = {
    "gcp:compute/disk:Disk": NAMED,
    "gcp:compute/globalAddress:GlobalAddress": NAMED,
    "gcp:filestore/instance:Instance": {
        **NAMED,
        "tier": "ZONAL",
        "fileShares": {"name": "data", "capacityGb": 1024},
        "networks": [{"network": "vpc", "modes": ["MODE_IPV4"]}],
    },
    "gcp:lustre/instance:Instance": {
        "instanceId": "data",
        "location": "us-central1-a",
        "filesystem": "data",
        "capacityGib": "9000",
        "network": "projects/p/global/networks/vpc",
    },
    "gcp:servicenetworking/connection:Connection": {
        "network": "projects/p/global/networks/vpc",
        "service": "servicenetworking.googleapis.com",
        "reservedPeeringRanges": ["data"],
    },
    "gcp:storage/bucket:Bucket": {**NAMED, "location": "EU"},
    "gcp:storage/bucketIAMMember:BucketIAMMember": {**MEMBER, "bucket": "data"},
    "gcp:artifactregistry/repository:Repository": {"repositoryId": "images", "format": "DOCKER"},
    "gcp:compute/address:Address": NAMED,
    "gcp:compute/firewall:Firewall": {**NAMED, "network": "vpc", "allows": [{"protocol": "TCP"}]},
    FUTURE: future(specificSkuProperties={"totalCount": "8"}),
    "gcp:compute/network:Network": NAMED,
    "gcp:compute/regionCommitment:RegionCommitment": {**NAMED, "plan": "TWELVE_MONTH"},
    RESERVATION: reservation({"machineType": "n2-standard-8"}),
    "gcp:compute/resourcePolicy:ResourcePolicy": NAMED,
    "gcp:compute/router:Router": {**NAMED, "network": "vpc"},
    "gcp:compute/routerNat:RouterNat": {
        **NAMED,
        "router": "r",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    },
    "gcp:compute/subnetwork:Subnetwork": {
        **NAMED,
        "network": "vpc",
        "ipCidrRange": "10.164.0.0/20",
        "logConfig": {
            "flowSampling": 1,
        },
    },
    CLUSTER: NAMED,
    NODE_POOL: {**NAMED, "cluster": "batch"},
    "gcp:gkehub/feature:Feature": {**NAMED, "location": "global"},
    "gcp:gkehub/fleet:Fleet": {},
    "gcp:gkehub/membership:Membership": {"membershipId": "batch"},
    "gcp:kms/cryptoKey:CryptoKey": {**NAMED, "keyRing": "projects/p/locations/l/keyRings/r"},
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": {**MEMBER, "cryptoKeyId": "projects/p/locations/l/k"},
    "gcp:kms/keyRing:KeyRing": NAMED,
    "gcp:monitoring/alertPolicy:AlertPolicy": {
        "displayName": "a",
        "combiner": "OR",
        "conditions": [{"displayName": "c", "conditionPrometheusQueryLanguage": {"query": "up", "duration": "60s"}}],
    },
    DASHBOARD: {"dashboardJson": "{}"},
    "gcp:monitoring/notificationChannel:NotificationChannel": {"type": "email"},
    "gcp:projects/iAMCustomRole:IAMCustomRole": {
        "project": "p",
        "roleId": "members",
        "title": "Members",
        "permissions": ["container.clusters.connect"],
    },
    "gcp:projects/iAMMember:IAMMember": {**MEMBER, "project": "p"},
    "gcp:projects/service:Service": {"service": "compute.googleapis.com"},
    "gcp:serviceaccount/account:Account": {"accountId": "gke-batch"},
    "gcp:serviceaccount/iAMMember:IAMMember": {**MEMBER, "serviceAccountId": "projects/p/serviceAccounts/a"},
}


@pytest.mark.parametrize("token", sorted(load_facts().resources))
def test_googles_own_choices_are_no_change(token: str) -> None:
    """A resource of which as little as possible is said; and a refresh finds nothing new."""
    assert again(token, LEAST[token]) == {}
    state = created(token, LEAST[token])
    assert answer(token, state, resource_id(token, LEAST[token])) == state


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (CLUSTER, {"name": "batch", "enableAutopilot": True}),
        (NODE_POOL, pool(H100)),
        (RESERVATION, reservation(H100)),
        (FUTURE, future(shareSettings={"shareType": "SPECIFIC_PROJECTS", "projectMaps": [{"id": "team-a"}]})),
    ],
)
def test_what_is_answered_once_is_answered_the_same_again(token: str, inputs: dict[str, Any]) -> None:
    state = created(token, inputs)
    assert answer(token, state, resource_id(token, inputs)) == state
