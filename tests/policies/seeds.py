"""One violation for every rule: a program in which exactly that rule is broken, once."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.policies.declared import (
    KUEUE,
    PROJECT,
    QUEUED,
    REGION,
    Declared,
    Ref,
    Seed,
    auto_provisioning,
    autopilot,
    check,
    cluster,
    container_change,
    flavor,
    kube,
    local_queue,
    pool,
    provider,
    queue,
    release,
    with_checks,
    workload,
)

from kueue_fleet_policies.resource import KUBERNETES_PROVIDER

RBAC = "rbac.authorization.k8s.io/v1"
TOKEN = "ghp_" + "a1B2" * 9
"""Looks like a token of GitHub, and is none."""
POD = "template.spec"
NODE_POOL_LABEL = "cloud.google.com/gke-nodepool"
ACCELERATOR_LABEL = "cloud.google.com/gke-accelerator"


NO_GPUS = {"nodeConfig.machineType": "e2-standard-4", "nodeConfig.guestAccelerators": None}


def _one(rule: str, declared: Declared, says: str = "", config: Mapping[str, Any] | None = None) -> Seed:
    return Seed(rule, (declared,), declared.name, dict(config or {}), says)


def _cluster(rule: str, says: str, config: Mapping[str, Any] | None = None, **changes: Any) -> Seed:
    return _one(rule, cluster(rule, {key.replace("__", "."): value for key, value in changes.items()}), says, config)


def _pool(rule: str, says: str, changes: Mapping[str, Any], **settings: Any) -> Seed:
    return _one(rule, pool(rule, changes), says, settings)


def _queued(rule: str, says: str, changes: Mapping[str, Any]) -> Seed:
    return _pool(rule, says, {**QUEUED, **changes})


def _gcp(rule: str, says: str, type_: str, props: Mapping[str, Any], *, protect: bool = False, **settings: Any) -> Seed:
    return _one(rule, Declared(f"gcp:{type_}", rule, {"project": PROJECT, **props}, protect), says, settings)


def _on_cluster(
    rule: str, *declared: Declared, at: str, says: str, by: Declared | None = None, **settings: Any
) -> Seed:
    """Kubernetes objects on a Standard cluster of their own, by its provider."""
    owner = by or cluster(f"{rule}/cluster")
    pools = tuple(one for one in declared if one.type.startswith("gcp:"))
    rest = tuple(one for one in declared if not one.type.startswith("gcp:"))
    resources = (owner, *pools, provider(f"{rule}/provider", owner.name), *rest)
    return Seed(rule, resources, f"{rule}/{at}", dict(settings), says)


def _object(rule: str, says: str, kind: str, props: Mapping[str, Any], **metadata: str) -> Seed:
    declared = kube(kind, f"{rule}/object", props, by=f"{rule}/provider", **metadata)
    return _on_cluster(rule, declared, at="object", says=says)


def _workload(rule: str, says: str, changes: Mapping[str, Any], kind: str = "Deployment") -> Seed:
    return _on_cluster(
        rule, workload(f"{rule}/object", changes, by=f"{rule}/provider", kind=kind), at="object", says=says
    )


def _clusters() -> Iterator[Seed]:
    yield _cluster("gke-workload-identity", "workloadPool", workloadIdentityConfig=None)
    yield _cluster("gke-release-channel", "is UNSPECIFIED", releaseChannel__channel="UNSPECIFIED")
    yield _cluster("gke-shielded-nodes", "enableShieldedNodes", enableShieldedNodes=False)
    yield _cluster("gke-intranode-visibility", "set it to true", enableIntranodeVisibility=False)
    yield _cluster("gke-vpc-native", "ROUTES", networkingMode="ROUTES")
    yield _cluster("gke-network-policy", "ADVANCED_DATAPATH", datapathProvider="LEGACY_DATAPATH")
    yield _cluster("gke-logging", "SYSTEM_COMPONENTS", loggingConfig={"enableComponents": ["WORKLOADS"]})
    yield _cluster("gke-monitoring", "none", monitoringService="none")
    yield _cluster(
        "gke-no-client-certificate",
        "cannot be revoked",
        masterAuth={"clientCertificateConfig": {"issueClientCertificate": True}},
    )
    yield _cluster("gke-groups-rbac", "gke-security-groups@", authenticatorGroupsConfig=None)
    yield _cluster("gke-no-legacy-abac", "RBAC", enableLegacyAbac=True)
    yield _cluster(
        "gke-no-insecure-bindings",
        "system:unauthenticated",
        rbacBindingConfig={"enableInsecureBindingSystemUnauthenticated": True},
    )
    yield _cluster("gke-secrets-cmek", "Cloud KMS", databaseEncryption={"state": "DECRYPTED"})
    yield _cluster("gke-binary-authorization", "any image", binaryAuthorization__evaluationMode="DISABLED")
    yield _cluster("gke-no-alpha", "30 days", enableKubernetesAlpha=True)
    yield _cluster("gke-separate-node-pools", "is not true", removeDefaultNodePool=False)
    yield _one(
        "gke-autopilot-without-nodes",
        autopilot("gke-autopilot-without-nodes", {"nodeVersion": "1.36.3-gke.1"}),
        "every update",
    )
    yield _cluster("gke-security-posture", "is DISABLED", securityPostureConfig={"mode": "DISABLED"})
    yield _cluster("gke-labels", "whose cluster", resourceLabels={})
    yield _cluster("gke-cost-allocation", "namespaces", costManagementConfig=None)
    yield _cluster("gke-maintenance-window", "no window", maintenancePolicy=None)
    yield _cluster("gke-regional", "region europe-west4", location=f"{REGION}-b")
    nap = auto_provisioning()
    nap["autoProvisioningDefaults"] = {**nap["autoProvisioningDefaults"], "shieldedInstanceConfig": {}}
    yield _cluster("gke-auto-provisioning-shielded", "enableSecureBoot", clusterAutoscaling=nap)
    nap = auto_provisioning()
    nap["autoProvisioningDefaults"] = {**nap["autoProvisioningDefaults"], "management": {"autoUpgrade": False}}
    yield _cluster("gke-auto-provisioning-management", "autoUpgrade", clusterAutoscaling=nap)
    nap = auto_provisioning()
    nap["resourceLimits"] = nap["resourceLimits"][:1]
    yield _cluster("gke-auto-provisioning-limits", "memory", clusterAutoscaling=nap)
    nap = auto_provisioning()
    del nap["autoProvisioningDefaults"]["serviceAccount"]
    yield _cluster("gke-auto-provisioning-service-account", "default account", clusterAutoscaling=nap)
    public = {"controlPlaneEndpointsConfig": None}
    yield _cluster("gke-authorized-networks", "whole internet", **public)
    yield _cluster(
        "gke-private-endpoint",
        "public address",
        masterAuthorizedNetworksConfig={"cidrBlocks": [{"cidrBlock": "192.0.2.0/24"}]},
        **public,
    )
    yield _cluster(
        "gke-dns-endpoint-credentials",
        "service account's token",
        controlPlaneEndpointsConfig__dnsEndpointConfig={"allowExternalTraffic": True, "enableK8sTokensViaDns": True},
    )
    yield _cluster(
        "gke-reachable-endpoint", "IAM", controlPlaneEndpointsConfig={"ipEndpointsConfig": {"enabled": False}}
    )
    yield _cluster("gke-private-nodes", "Cloud NAT", privateClusterConfig__enablePrivateNodes=False)
    yield _one("protect-clusters", cluster("protect-clusters", {"deletionProtection": False}), "disposable=true")


def _pools() -> Iterator[Seed]:
    config = "nodeConfig."
    yield _pool("gke-pool-private-nodes", "public addresses", {"networkConfig": {"enablePrivateNodes": False}})
    yield _pool(
        "gke-node-service-account",
        "Editor",
        {f"{config}serviceAccount": "123456789-compute@developer.gserviceaccount.com"},
    )
    yield _pool("gke-metadata-server", "GKE_METADATA", {f"{config}workloadMetadataConfig": {"mode": "GCE_METADATA"}})
    yield _pool("gke-no-legacy-metadata", "is false", {f"{config}metadata": {"disable-legacy-endpoints": "false"}})
    yield _pool("gke-container-optimized-os", "UBUNTU", {f"{config}imageType": "UBUNTU_CONTAINERD"})
    yield _pool("gke-auto-repair", "set it to true", {"management.autoRepair": False})
    yield _pool("gke-auto-upgrade", "set it to true", {"management.autoUpgrade": False})
    yield _pool(
        "gke-integrity-monitoring", "is false", {f"{config}shieldedInstanceConfig.enableIntegrityMonitoring": False}
    )
    yield _pool("gke-secure-boot", "is not true", {f"{config}shieldedInstanceConfig.enableSecureBoot": False})
    yield _pool("gke-boot-disk-cmek", "cryptoKeys", {f"{config}bootDiskKmsKey": None})
    yield _pool(
        "gke-no-kubelet-read-only-port",
        "10255",
        {f"{config}kubeletConfig": {"insecureKubeletReadonlyPortEnabled": "TRUE"}},
    )
    yield _pool("gke-gpu-driver", "DEFAULT", {f"{config}guestAccelerators": [{"type": "nvidia-l4", "count": 2}]})
    yield _queued(
        "dws-from-zero",
        "is 2",
        {
            "autoscaling.totalMinNodeCount": 2,
            "nodeConfig.machineType": "e2-standard-4",
            "nodeConfig.guestAccelerators": None,
        },
    )
    yield _queued("dws-autoscaling", "a fixed size", {"autoscaling": None, "nodeCount": 0})
    yield _queued("dws-no-reservation", "is missing", {f"{config}reservationAffinity": None})
    yield _queued("dws-not-spot", "not Spot VMs", {f"{config}spot": True})
    yield _queued("dws-any-location", "BALANCED", {"autoscaling.locationPolicy": "BALANCED"})
    yield _queued("dws-no-auto-repair", "cannot be repaired", {"management.autoRepair": True})
    yield _queued("dws-run-duration", "1209600s", {f"{config}maxRunDuration": "1209600s"})
    yield _pool(
        "spot-no-reservation",
        "ANY_RESERVATION",
        {f"{config}spot": True, f"{config}reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"}},
    )
    yield _pool(
        "reservation-named",
        "one name",
        {f"{config}reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}},
    )
    yield _pool("pool-one-size", "autoscaling is set too", {"nodeCount": 0})
    yield _pool("pool-limits", "more than the maximum, 4", {"autoscaling.totalMinNodeCount": 5, **NO_GPUS})
    yield _pool(
        "pool-compact-placement",
        "blue-green",
        {
            "placementPolicy": {"type": "COMPACT"},
            "nodeLocations": [f"{REGION}-b"],
            "upgradeSettings": {"strategy": "BLUE_GREEN"},
        },
    )
    yield _pool(
        "pool-upgradable", "no node can ever be upgraded", {"upgradeSettings": {"maxSurge": 0, "maxUnavailable": 0}}
    )
    yield _pool(
        "pool-gpus",
        "comes with 2",
        {
            f"{config}guestAccelerators": [
                {"type": "nvidia-l4", "count": 4, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
            ]
        },
    )
    slices = {
        f"{config}machineType": "ct6e-standard-4t",
        f"{config}guestAccelerators": None,
        f"{config}diskType": "hyperdisk-balanced",
        "nodeLocations": [f"{REGION}-b"],
    }
    for rule, says, topology in (("tpu-topology", "does not have", "4x6"), ("tpu-slice", "set it to 16", "8x8")):
        yield _pool(rule, says, {**slices, "placementPolicy": {"type": "COMPACT", "tpuTopology": topology}})
    profile = {"networkConfig": {"acceleratorNetworkProfile": "auto"}}
    yield _pool("accelerator-network", "no network beside that of the node", profile)
    a4 = {
        f"{config}machineType": "a4-highgpu-8g",
        f"{config}guestAccelerators": None,
        f"{config}diskType": "hyperdisk-balanced",
        "nodeLocations": [f"{REGION}-b"],
    }
    one_card = {"networkConfig": {"additionalNodeNetworkConfigs": [{"network": "gpus", "subnetwork": "gpus"}]}}
    yield _pool("accelerator-network-cards", "has 9 network cards", {**a4, **one_card})
    label = {f"{config}labels": {"cloud.google.com/gke-networking-dra-driver": "true"}}
    yield _pool("dranet", "DRANET does not support g2", label)
    yield _pool(
        "pool-boot-disk",
        "Hyperdisk only",
        {f"{config}machineType": "a4-highgpu-8g", f"{config}guestAccelerators": None, f"{config}diskType": "pd-ssd"},
    )
    yield _pool(
        "pool-local-ssds",
        "takes none",
        {**NO_GPUS, f"{config}ephemeralStorageLocalSsdConfig": {"localSsdCount": 1}},
    )
    disks = {f"{config}secondaryBootDisks": [{"diskImage": "weights"}]}
    yield _pool("pool-secondary-disks", "not the path of a disk image", disks)
    yield _pool("pool-fast-socket", "has no GPUs", {**NO_GPUS, f"{config}fastSocket": {"enabled": True}})
    by_turns = {"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}}
    l4 = {"type": "nvidia-l4", "count": 2, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
    yield _pool(
        "pool-gpu-sharing",
        "GKE does not divide",
        {f"{config}guestAccelerators": [{**l4, "gpuPartitionSize": "1g.5gb"}]},
    )
    own_plugin = {f"{config}labels": {"gke-no-default-nvidia-gpu-device-plugin": "true"}}
    yield _pool("gpu-device-plugin", "which does it", {f"{config}guestAccelerators": [l4 | by_turns], **own_plugin})
    yield _pool("pool-zones", "does not exist", {"nodeLocations": [f"{REGION}-z"]})
    yield _pool("pool-labels", "reserves", {f"{config}labels": {"node.kubernetes.io/class": "gpu"}})
    taint = {"key": "team", "value": "vision", "effect": "NO_SCHEDULE"}
    yield _pool("pool-taints", "list each pair", {f"{config}taints": [taint, {**taint, "value": "speech"}]})
    for rule, says, changes in (
        ("pool-initial-size", "0 and 4", {"initialNodeCount": 2}),
        ("pool-compact-zone", "one zone", {"placementPolicy": {"type": "COMPACT"}}),
        (
            "accelerator-network-zone",
            "make a pool for each",
            {**profile, **a4, "nodeLocations": None},
        ),
    ):
        one = pool(f"{rule}/pool", changes, of=f"{rule}/cluster")
        yield Seed(rule, (cluster(f"{rule}/cluster"), one), one.name, {}, says)
    yield _pool("spend-pool-gpus", "400 GPUs", {"autoscaling.totalMaxNodeCount": 200})
    yield _pool("spend-idle-gpus", "without a job", {"autoscaling.totalMinNodeCount": 1})
    yield _pool(
        "secret-not-in-node-metadata", "every pod", {f"{config}metadata": {"registry-password": "hunter2-swordfish"}}
    )


def _cloud() -> Iterator[Seed]:
    yield _gcp(
        "network-custom-subnets",
        "every region",
        "compute/network:Network",
        {"name": "auto", "autoCreateSubnetworks": True},
    )
    subnet = {
        "name": "subnet",
        "network": "fleet",
        "region": REGION,
        "ipCidrRange": "10.0.0.0/20",
        "privateIpGoogleAccess": True,
        "logConfig": {"flowSampling": 0.5},
    }
    kind = "compute/subnetwork:Subnetwork"
    yield _gcp(
        "subnet-private-google-access", "set it to true", kind, subnet | {"name": "a", "privateIpGoogleAccess": False}
    )
    yield _gcp(
        "subnet-flow-logs", "flowSampling", kind, {k: v for k, v in subnet.items() if k != "logConfig"} | {"name": "b"}
    )
    yield _gcp(
        "firewall-not-open",
        "opens 22",
        "compute/firewall:Firewall",
        {
            "name": "ssh",
            "network": "fleet",
            "sourceRanges": ["0.0.0.0/0"],
            "allows": [{"protocol": "tcp", "ports": ["22"]}],
        },
    )
    yield _gcp(
        "region-allowed",
        "us-east4",
        "compute/address:Address",
        {"name": "far", "region": "us-east4"},
        regions=[REGION],
    )
    yield _gcp(
        "project-allowed",
        "is other-project",
        "compute/address:Address",
        {"name": "elsewhere", "project": "other-project"},
        projects=[PROJECT],
    )
    member, someone = "projects/iAMMember:IAMMember", f"serviceAccount:job@{PROJECT}.iam.gserviceaccount.com"
    yield _gcp("iam-no-basic-roles", "every service", member, {"role": "roles/editor", "member": someone})
    yield _gcp(
        "iam-no-project-impersonation",
        "whole project",
        member,
        {"role": "roles/iam.serviceAccountUser", "member": someone},
    )
    yield _gcp("iam-no-public-members", "allUsers", member, {"role": "roles/viewer", "member": "allUsers"})
    yield _gcp(
        "iam-no-default-service-account",
        "developer.gserviceaccount.com",
        member,
        {"role": "roles/logging.logWriter", "member": "serviceAccount:1234-compute@developer.gserviceaccount.com"},
    )
    yield _gcp("iam-additive", "every grant", "projects/iAMPolicy:IAMPolicy", {"policyData": "{}"})
    yield _one(
        "iam-no-service-account-keys",
        Declared("gcp:serviceaccount/key:Key", "iam-no-service-account-keys", {"serviceAccountId": "job"}),
        "never expires",
    )
    yield _one(
        "iam-workload-identity-member",
        Declared(
            "gcp:serviceaccount/iAMMember:IAMMember",
            "iam-workload-identity-member",
            {
                "serviceAccountId": f"projects/{PROJECT}/serviceAccounts/job@{PROJECT}.iam.gserviceaccount.com",
                "role": "roles/iam.workloadIdentityUser",
                "member": "serviceAccount:.svc.id.goog[team-a/job]",
            },
        ),
        "not a Kubernetes service account",
    )
    machines = {"count": 4, "instanceProperties": {"machineType": "g2-standard-24"}}
    yield _gcp(
        "protect-capacity",
        "Reservation",
        "compute/reservation:Reservation",
        {"name": "l4", "zone": f"{REGION}-b", "specificReservation": machines},
    )
    yield _gcp(
        "spend-commitments",
        "three years",
        "compute/regionCommitment:RegionCommitment",
        {"name": "big", "region": REGION, "plan": "THIRTY_SIX_MONTH", "resources": [{"type": "VCPU", "amount": "96"}]},
        protect=True,
    )


def _objects() -> Iterator[Seed]:
    admin = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}
    group = {"kind": "Group", "name": "platform@example.com", "apiGroup": "rbac.authorization.k8s.io"}
    yield _object("kube-no-cluster-admin", "everything", f"{RBAC}:ClusterRoleBinding", {**admin, "subjects": [group]})
    yield _object(
        "kube-no-wildcard-roles",
        "rules[0].verbs",
        f"{RBAC}:Role",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]},
    )
    view = {"roleRef": {**admin["roleRef"], "name": "view"}}
    yield _object(
        "kube-no-public-bindings",
        "every Google account",
        f"{RBAC}:RoleBinding",
        {**view, "subjects": [{**group, "name": "system:authenticated"}]},
    )
    yield _workload(
        "kube-workload-service-account", "automountServiceAccountToken", {f"{POD}.serviceAccountName": None}
    )
    yield _workload("kube-not-privileged", "node's root", container_change(securityContext={"privileged": True}))
    yield _workload("kube-no-host-namespaces", "hostPID", {f"{POD}.hostPID": True})
    host = {"name": "host", "hostPath": {"path": "/var/lib/kubelet"}}
    yield _workload("kube-no-host-path", "/var/lib/kubelet of the node", {f"{POD}.volumes": [host]})
    for rule, context, says in (
        ("kube-no-added-capabilities", {"capabilities": {"add": ["SYS_ADMIN"]}}, "SYS_ADMIN"),
        ("kube-kernel-protection", {"procMount": "Unmasked"}, "Unmasked"),
        ("kube-not-root", {"runAsUser": 0}, "root on the node too"),
        ("kube-no-privilege-escalation", {"allowPrivilegeEscalation": True}, "sudo"),
    ):
        yield _workload(rule, says, container_change(securityContext=context))
    core = {"apiGroups": [""]}
    for rule, given, says in (
        ("kube-secret-access", {**core, "resources": ["secrets"], "verbs": ["list"]}, "every secret of the cluster"),
        ("kube-no-escalation", {**core, "resources": ["users"], "verbs": ["impersonate"]}, "hold impersonate"),
        ("kube-no-indirect-access", {**core, "resources": ["nodes/proxy"], "verbs": ["get"]}, "every kubelet"),
    ):
        yield _object(rule, says, f"{RBAC}:ClusterRole", {"rules": [given]})
    masters = {**view, "subjects": [{**group, "name": "system:masters"}]}
    yield _object("kube-no-masters", "pass every check", f"{RBAC}:ClusterRoleBinding", masters)
    account = {"metadata": {"annotations": {"kubernetes.io/service-account.name": "job"}}}
    yield _object(
        "kube-no-token-secrets",
        "never expires",
        "core/v1:Secret",
        {**account, "type": "kubernetes.io/service-account-token"},
    )
    yield _object("kube-namespace-pod-security", "baseline or restricted", "core/v1:Namespace", {})
    yield _object(
        "kube-no-public-load-balancer", "the internet reaches", "core/v1:Service", {"spec": {"type": "LoadBalancer"}}
    )
    yield _object("kube-no-external-ips", "whosever", "core/v1:Service", {"spec": {"externalIPs": ["192.0.2.1"]}})
    yield _object("kube-no-public-ingress", "the internet reaches", "networking.k8s.io/v1:Ingress", {"spec": {}})
    yield _object(
        "kube-no-default-namespace", "default", "core/v1:ConfigMap", {"data": {"a": "b"}}, namespace="default"
    )
    yield _object("kube-own-type", "declare each", "core/v1:ConfigMapList", {"items": [{"data": {"a": "b"}}]})
    token = {"projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 10**8}}]}}
    yield _workload("kube-token-lifetime", "100000000 s", {f"{POD}.volumes": [{"name": "token", **token}]})
    yield _workload("kube-image-version", "can change", container_change(image="registry.k8s.io/pause:latest"))
    yield _workload("kube-image-registry", "not allowed", container_change(image="docker.io/library/python:3.13"))
    yield _workload(
        "kube-gpu-requests", "add cpu and memory", container_change(resources={"limits": {"nvidia.com/gpu": 1}})
    )
    for rule, changes, says in (
        ("helm-version", {"version": ">=0.19.0"}, "one version"),
        ("helm-await", {"skipAwait": True}, "before the chart serves"),
        ("secret-chart-values-encrypted", {"values": {"adminPassword": "hunter2-swordfish"}}, ""),
    ):
        declared = release(f"{rule}/object", changes, by=f"{rule}/provider")
        yield _on_cluster(rule, declared, at="object", says=says)
    yield _on_cluster(
        "protect-kueue",
        release("protect-kueue/object", by="protect-kueue/provider", protect=False),
        at="object",
        says="retainOnDelete",
    )
    yield _object(
        "secret-not-in-config-map", "data[api-key]", "core/v1:ConfigMap", {"data": {"api-key": "s3cr3t-value"}}
    )
    yield _workload(
        "secret-not-in-environment",
        "DB_PASSWORD",
        container_change(env=[{"name": "DB_PASSWORD", "value": "hunter2-swordfish"}]),
    )
    yield _object(
        "secret-not-in-annotations",
        "example.com/token",
        "core/v1:ServiceAccount",
        {"metadata": {"annotations": {"example.com/token": "hunter2-swordfish"}}},
    )
    encoded = base64.b64encode(b"hunter2-swordfish").decode()
    yield _object("secret-encrypted-in-state", "", "core/v1:Secret", {"data": {"password": encoded}})
    kubeconfig = {"users": [{"name": "u", "user": {"token": "hunter2-swordfish"}}]}
    rule = "secret-not-in-kubeconfig"
    yield _one(
        rule, Declared(KUBERNETES_PROVIDER, rule, {"kubeconfig": json.dumps(kubeconfig)}), "gke-gcloud-auth-plugin"
    )
    yield _object(
        "iam-workload-identity-annotation",
        "not the address",
        "core/v1:ServiceAccount",
        {"metadata": {"annotations": {"iam.gke.io/gcp-service-account": "job@.iam.gserviceaccount.com"}}},
    )
    rule = "kueue-limits-need-cohort"
    limited = queue(f"{rule}/object", {"l4": 4}, by=f"{rule}/provider")
    limited.props["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = 4
    yield _on_cluster(rule, limited, at="object", says="cohortName")
    rule = "kueue-covers-cpu-and-memory"
    narrow = queue(f"{rule}/object", {"l4": 4}, by=f"{rule}/provider")
    entry = narrow.props["spec"]["resourceGroups"][0]
    entry["coveredResources"], entry["flavors"][0]["resources"] = (
        ["nvidia.com/gpu"],
        entry["flavors"][0]["resources"][:1],
    )
    yield _on_cluster(rule, narrow, at="object", says="cpu, memory")
    rule = "kueue-queue-admits"
    yield _on_cluster(
        rule,
        queue(f"{rule}/object", {"l4": 0}, by=f"{rule}/provider"),
        at="object",
        says="no job that asks for nvidia.com/gpu",
    )
    yield _object(
        "kube-disk-key",
        "disk-encryption-kms-key",
        "storage.k8s.io/v1:StorageClass",
        {"provisioner": "pd.csi.storage.gke.io", "parameters": {"type": "pd-balanced"}},
    )


def _fleets() -> Iterator[Seed]:
    l4, a100 = {"l4": {NODE_POOL_LABEL: "nodes"}}, {"a100": {ACCELERATOR_LABEL: "nvidia-tesla-a100"}}
    for rule, flavors, quotas, at, says in (
        ("kueue-queue-references", l4, {"l4": 4, "h100": 4}, "gpu", "no such ResourceFlavor"),
        ("kueue-flavor-has-nodes", l4 | a100, {"l4": 4, "a100": 4}, "a100", "stay pending"),
        ("kueue-quota-within-capacity", l4, {"l4": 16}, "l4", "promise 16 nvidia.com/gpu"),
    ):
        by = f"{rule}/provider"
        yield _on_cluster(
            rule,
            pool(f"{rule}/nodes", of=f"{rule}/cluster"),
            *(flavor(f"{rule}/{name}", labels, by=by) for name, labels in flavors.items()),
            queue(f"{rule}/gpu", quotas, by=by),
            at=at,
            says=says,
        )
    rule = "kueue-flavor-tolerates-nodes"
    tainted = {"nodeConfig.taints": [{"key": "team", "value": "vision", "effect": "NO_SCHEDULE"}]}
    yield _on_cluster(
        rule,
        pool(f"{rule}/pool", tainted, of=f"{rule}/cluster"),
        flavor(f"{rule}/l4", {NODE_POOL_LABEL: "pool"}, by=f"{rule}/provider"),
        queue(f"{rule}/gpu", {"l4": 4}, by=f"{rule}/provider"),
        at="l4",
        says="team=vision:NoSchedule",
    )
    rule = "kueue-dws-check"
    yield _on_cluster(
        rule,
        pool(f"{rule}/dws", QUEUED, of=f"{rule}/cluster"),
        flavor(f"{rule}/l4", {NODE_POOL_LABEL: "dws"}, by=f"{rule}/provider"),
        queue(f"{rule}/gpu", {"l4": 4}, by=f"{rule}/provider"),
        at="gpu",
        says="ProvisioningRequest",
    )
    rule = "kueue-pool-has-flavor"
    yield _on_cluster(
        rule,
        pool(f"{rule}/used", of=f"{rule}/cluster"),
        pool(f"{rule}/forgotten", of=f"{rule}/cluster"),
        flavor(f"{rule}/l4", {NODE_POOL_LABEL: "used"}, by=f"{rule}/provider"),
        queue(f"{rule}/gpu", {"l4": 4}, by=f"{rule}/provider"),
        at="forgotten",
        says="gke-nodepool: forgotten",
    )
    rule = "kueue-local-queue-reference"
    yield _on_cluster(
        rule,
        queue(f"{rule}/gpu", {"l4": 4}, by=f"{rule}/provider"),
        local_queue(f"{rule}/team", "gpus", by=f"{rule}/provider"),
        at="team",
        says="no such ClusterQueue",
    )
    rule = "spend-quota"
    yield _on_cluster(
        rule,
        queue(f"{rule}/gpu", {"l4": 4000}, by=f"{rule}/provider"),
        by=autopilot(f"{rule}/cluster"),
        at="gpu",
        says="4000 GPUs",
    )
    rule = "spend-stack-gpus"
    nap = auto_provisioning(nvidia_l4=3000)
    yield Seed(rule, (cluster(rule, {"clusterAutoscaling": nap}),), None, {}, "spend-stack-gpus 3000")
    rule = "kueue-multikueue-local-queues"
    manager, worker = f"{rule}/manager", f"{rule}/worker"
    yield Seed(
        rule,
        (
            autopilot(f"{rule}/a"),
            autopilot(f"{rule}/b"),
            provider(manager, f"{rule}/a"),
            provider(worker, f"{rule}/b"),
            check(f"{rule}/multikueue", "multikueue", by=manager),
            queue(f"{rule}/sent", {"l4": 4}, by=manager, admissionChecksStrategy=with_checks("multikueue")),
            local_queue(f"{rule}/training", "sent", by=manager),
            queue(f"{rule}/run", {"l4": 4}, by=worker),
            local_queue(f"{rule}/inference", "run", by=worker),
        ),
        f"{rule}/training",
        {},
        "no worker",
    )


SEEDS: tuple[Seed, ...] = (*_clusters(), *_pools(), *_cloud(), *_objects(), *_fleets())
__all__ = ["KUEUE", "SEEDS", "Ref"]
