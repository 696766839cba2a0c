"""What clusters are asked to be: settings of the CIS GKE Benchmark 1.9, and what the file adds."""

from __future__ import annotations

from typing import Any

import pytest

import pulumi_mocks
from kueue_fleet import WorkerCluster, testing
from kueue_fleet.fleet_file import ClusterEntry
from kueue_fleet.gcp_components.cluster import ControlPlaneAccess
from pulumi_mocks import Recording


def run(spec: dict[str, Any] | None = None, **arguments: Any) -> Recording:
    entry = ClusterEntry.model_validate({"name": "worker", "role": "worker", "region": "us-east4", **(spec or {})})
    return pulumi_mocks.run(
        lambda: WorkerCluster("worker", entry, project="lab-project", network="net", subnetwork="sub", **arguments)
    )


def cluster(spec: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    return run(spec, **arguments).one("gcp:container/cluster:Cluster").inputs


STANDARD = {"mode": "Standard", "zones": ["us-east4-a"]}
BOTH = pytest.mark.parametrize("mode", [{}, STANDARD], ids=["Autopilot", "Standard"])


@BOTH
def test_what_every_cluster_has(mode: dict[str, Any]) -> None:
    inputs = cluster(mode)
    assert inputs["costManagementConfig"] == {"enabled": True}
    assert inputs["fleet"] == {"project": "lab-project"}
    assert inputs["loggingConfig"] == {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}
    assert {"SYSTEM_COMPONENTS", "JOBSET", "DCGM"} <= set(inputs["monitoringConfig"]["enableComponents"])
    assert inputs["masterAuth"] == {"clientCertificateConfig": {"issueClientCertificate": False}}
    assert inputs["enableLegacyAbac"] is False
    assert inputs["securityPostureConfig"]["mode"] == "BASIC"
    assert not inputs.keys() & {"minMasterVersion", "authenticatorGroupsConfig", "masterAuthorizedNetworksConfig"}
    # At any time: said, as exclusions of a policy that is taken away would stay.
    assert inputs["maintenancePolicy"] == {
        "recurringWindow": {
            "startTime": "2026-01-01T00:00:00Z",
            "endTime": "2026-01-02T00:00:00Z",
            "recurrence": "FREQ=DAILY",
        }
    }


@BOTH
def test_what_is_off_is_said_since_a_field_that_is_left_out_changes_nothing(mode: dict[str, Any]) -> None:
    inputs = cluster(mode)
    assert inputs["databaseEncryption"] == {"state": "DECRYPTED"}
    assert inputs["binaryAuthorization"] == {"evaluationMode": "DISABLED"}


@BOTH
def test_by_default_there_is_a_dns_name_and_no_address(mode: dict[str, Any]) -> None:
    inputs = cluster(mode)
    assert inputs["controlPlaneEndpointsConfig"] == {
        "dnsEndpointConfig": {
            "allowExternalTraffic": True,
            "enableK8sTokensViaDns": False,
            "enableK8sCertsViaDns": False,
        },
        "ipEndpointsConfig": {"enabled": False},
    }
    assert inputs["privateClusterConfig"] == {"enablePrivateNodes": True}


def test_tokens_of_kubernetes_are_taken_over_the_dns_name_only_where_a_manager_needs_it() -> None:
    inputs = cluster(access=ControlPlaneAccess(kubernetes_tokens=True))
    assert inputs["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["enableK8sTokensViaDns"] is True


@BOTH
def test_addresses_are_for_the_networks_that_are_named(mode: dict[str, Any]) -> None:
    recording = run(mode, access=ControlPlaneAccess(dns=False, networks={"office": "203.0.113.0/24"}))
    inputs = recording.one("gcp:container/cluster:Cluster").inputs
    assert inputs["controlPlaneEndpointsConfig"] == {
        "dnsEndpointConfig": {
            "allowExternalTraffic": False,
            "enableK8sTokensViaDns": False,
            "enableK8sCertsViaDns": False,
        },
        "ipEndpointsConfig": {"enabled": True},
    }
    assert inputs["masterAuthorizedNetworksConfig"] == {
        "cidrBlocks": [{"displayName": "office", "cidrBlock": "203.0.113.0/24"}],
        "gcpPublicCidrsAccessEnabled": False,
        "privateEndpointEnforcementEnabled": True,
    }
    assert inputs["privateClusterConfig"] == {
        "enablePrivateNodes": True,
        "enablePrivateEndpoint": False,
        "masterGlobalAccessConfig": {"enabled": True},
    }


def test_outputs_follow_the_way_in() -> None:
    async def inspect(made: WorkerCluster, endpoint: str, internal: str, authority: str | None) -> None:
        assert str(await made.endpoint.future()).startswith(endpoint)
        assert str(await made.internal_endpoint.future()).startswith(internal)
        assert await made.ca_certificate.future() == authority

    entry = ClusterEntry(name="worker", role="worker", region="us-east4")

    def declare(access: ControlPlaneAccess) -> WorkerCluster:
        return WorkerCluster("worker", entry, project="lab-project", network="net", subnetwork="sub", access=access)

    name = "gke-worker.us-east4.gke.goog"
    pulumi_mocks.run(lambda: inspect(declare(ControlPlaneAccess()), name, name, None))
    pulumi_mocks.run(
        lambda: inspect(
            declare(ControlPlaneAccess(dns=False, networks={"office": "203.0.113.0/24"})),
            "192.0.2.",
            "198.51.100.",
            testing.CA_CERTIFICATE,
        )
    )


@BOTH
def test_keys_groups_and_binary_authorization_come_from_the_file(mode: dict[str, Any]) -> None:
    key = "projects/keys-1234/locations/us-east4/keyRings/gke/cryptoKeys/{}"
    recording = run(
        {
            **mode,
            "databaseEncryptionKey": key.format("etcd"),
            "diskEncryptionKey": key.format("disks"),
            "rbacSecurityGroup": "gke-security-groups@company.test",
            "binaryAuthorization": True,
            "fleetMembership": False,
            "costAllocation": False,
        }
    )
    inputs = recording.one("gcp:container/cluster:Cluster").inputs
    assert inputs["databaseEncryption"] == {"state": "ENCRYPTED", "keyName": key.format("etcd")}
    assert inputs["authenticatorGroupsConfig"] == {"securityGroup": "gke-security-groups@company.test"}
    assert inputs["binaryAuthorization"] == {"evaluationMode": "PROJECT_SINGLETON_POLICY_ENFORCE"}
    assert "fleet" not in inputs
    assert inputs["costManagementConfig"] == {"enabled": False}
    if mode:
        pool = recording.one("gcp:container/nodePool:NodePool").inputs
        disks = [inputs["nodeConfig"], pool["nodeConfig"]]
    else:
        disks = [inputs["clusterAutoscaling"]["autoProvisioningDefaults"]]
    assert [part["bootDiskKmsKey"] for part in disks] == [key.format("disks")] * len(disks)


def test_maintenance_windows_and_exclusions() -> None:
    inputs = cluster(
        {
            "maintenance": {
                "start": "2026-01-03T02:00:00Z",
                "end": "2026-01-03T08:00:00Z",
                "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
                "exclusions": [
                    {
                        "name": "year-end",
                        "start": "2026-12-20T00:00:00Z",
                        "end": "2027-01-04T00:00:00Z",
                        "scope": "NO_MINOR_UPGRADES",
                    },
                    {
                        "name": "version",
                        "start": "2026-12-20T00:00:00Z",
                        "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
                        "scope": "NO_MINOR_OR_NODE_UPGRADES",
                    },
                ],
            },
            "minMasterVersion": "1.34.1-gke.1829001",
        }
    )
    assert inputs["minMasterVersion"] == "1.34.1-gke.1829001"
    assert inputs["maintenancePolicy"] == {
        "recurringWindow": {
            "startTime": "2026-01-03T02:00:00Z",
            "endTime": "2026-01-03T08:00:00Z",
            "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
        },
        "maintenanceExclusions": [
            {
                "exclusionName": "year-end",
                "startTime": "2026-12-20T00:00:00Z",
                "endTime": "2027-01-04T00:00:00Z",
                "exclusionOptions": {"scope": "NO_MINOR_UPGRADES"},
            },
            {
                "exclusionName": "version",
                "startTime": "2026-12-20T00:00:00Z",
                "exclusionOptions": {
                    "scope": "NO_MINOR_OR_NODE_UPGRADES",
                    "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
                },
            },
        ],
    }


def test_a_standard_cluster_has_the_drivers_and_the_system_pool_that_the_file_says() -> None:
    recording = run(
        {
            **STANDARD,
            "storageDrivers": ["PersistentDisk", "GcsFuse"],
            "imageStreaming": False,
            "systemPool": {
                "machineType": "e2-small",
                "spot": True,
                "totalMinNodeCount": 2,
                "totalMaxNodeCount": 5,
                "diskSizeGb": 50,
            },
        }
    )
    inputs = recording.one("gcp:container/cluster:Cluster").inputs
    assert inputs["addonsConfig"] == {
        "gcePersistentDiskCsiDriverConfig": {"enabled": True},
        "gcpFilestoreCsiDriverConfig": {"enabled": False},
        "gcsFuseCsiDriverConfig": {"enabled": True},
    }
    assert inputs["nodePoolDefaults"]["nodeConfigDefaults"]["gcfsConfig"] == {"enabled": False}
    assert inputs["enableIntranodeVisibility"] is True
    assert inputs["datapathProvider"] == "ADVANCED_DATAPATH"
    assert inputs["clusterAutoscaling"]["enabled"] is False
    pool = recording.one("gcp:container/nodePool:NodePool").inputs
    assert pool["name"] == "system"
    assert pool["autoscaling"]["totalMinNodeCount"] == 2
    assert pool["autoscaling"]["totalMaxNodeCount"] == 5
    node = pool["nodeConfig"]
    assert (node["machineType"], node["spot"], node["diskSizeGb"]) == ("e2-small", True, 50)
    assert node["gcfsConfig"] == {"enabled": False}
    assert node["shieldedInstanceConfig"] == {"enableSecureBoot": True, "enableIntegrityMonitoring": True}


def test_node_auto_provisioning_keeps_to_its_limits_and_makes_nodes_like_the_pools() -> None:
    limits = [
        {"resourceType": "cpu", "minimum": 4, "maximum": 1000},
        {"resourceType": "memory", "maximum": 4000},
        {"resourceType": "nvidia-tesla-a100", "maximum": 16},
    ]
    expected = {"resourceLimits": limits, "zones": ["us-east4-c"], "autoscalingProfile": "BALANCED"}
    assert cluster({**STANDARD, "nodeAutoProvisioning": expected})["clusterAutoscaling"] == {
        "enabled": True,
        "autoscalingProfile": "BALANCED",
        "resourceLimits": [{"minimum": 0, **limit} for limit in limits],
        "autoProvisioningLocations": ["us-east4-c"],
        "autoProvisioningDefaults": {
            "serviceAccount": "gke-worker@lab-project.iam.gserviceaccount.com",
            "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
            "imageType": "COS_CONTAINERD",
            "diskType": "pd-balanced",
            "diskSize": 100,
            "management": {"autoRepair": True, "autoUpgrade": True},
            "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0},
            "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
        },
    }


def test_no_kubelet_has_a_port_without_authentication() -> None:
    closed = {"insecureKubeletReadonlyPortEnabled": "FALSE"}
    by_gke = {"nodeKubeletConfig": closed}
    assert cluster()["nodePoolAutoConfig"] == by_gke
    limits = [{"resourceType": name, "maximum": 10} for name in ("cpu", "memory")]
    provisioned = cluster({**STANDARD, "nodeAutoProvisioning": {"resourceLimits": limits}})
    assert provisioned["nodePoolAutoConfig"] == by_gke
    recording = run(STANDARD)
    standard = recording.one("gcp:container/cluster:Cluster").inputs
    assert "nodePoolAutoConfig" not in standard
    assert standard["nodePoolDefaults"]["nodeConfigDefaults"]["insecureKubeletReadonlyPortEnabled"] == "FALSE"
    assert recording.one("gcp:container/nodePool:NodePool").inputs["nodeConfig"]["kubeletConfig"] == closed


def test_ranges_of_the_subnet_are_used_where_they_are_named() -> None:
    assert cluster()["ipAllocationPolicy"] == {}
    assert cluster(pod_range_name="pods", service_range_name="services")["ipAllocationPolicy"] == {
        "clusterSecondaryRangeName": "pods",
        "servicesSecondaryRangeName": "services",
    }


def test_managed_prometheus_can_be_off_but_not_on_autopilot() -> None:
    assert cluster(STANDARD, managed_prometheus=False)["monitoringConfig"]["managedPrometheus"] == {"enabled": False}
    assert cluster(managed_prometheus=False)["monitoringConfig"]["managedPrometheus"] == {"enabled": True}
