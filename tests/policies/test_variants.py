"""Ways to break or keep a rule that its seed does not show."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE
from tests.policies.declared import (
    QUEUED,
    REGION,
    Declared,
    auto_provisioning,
    autopilot,
    check,
    cluster,
    container_change,
    flavor,
    kube,
    pool,
    provider,
    queue,
    release,
    with_checks,
    workload,
)
from tests.policies.judged import gcp, says, stack_says

NODE_POOL = "cloud.google.com/gke-nodepool"
ACCELERATOR = "cloud.google.com/gke-accelerator"
OPEN = {"cidrBlocks": [{"cidrBlock": "10.0.0.0/8"}, {"cidrBlock": "0.0.0.0/0"}]}
ACCOUNT = "nodeConfig.serviceAccount"
DRIVERS = {"template.spec.nodeSelector": {ACCELERATOR: "nvidia-l4"}}
PRIVILEGED = container_change(securityContext={"privileged": True})
NOT_DEFAULT = {"template.spec.serviceAccountName": "default"}


MEMBER, KSA = "projects/iAMMember:IAMMember", "serviceaccount/iAMMember:IAMMember"
WORKLOAD = "roles/iam.workloadIdentityUser"
PUBLIC_POLICY = json.dumps({"bindings": [{"role": "r", "members": ["user:a@b.c", "allUsers"]}]})
GITHUB_TOKEN = "ghp_" + "a1B2" * 9
SCRIPT = f"git clone https://x:{GITHUB_TOKEN}@example.com/a/b"
POOLS = "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools"
BROKEN: list[tuple[str, Declared]] = [
    (
        "gke-authorized-networks",
        cluster("x", {"controlPlaneEndpointsConfig": None, "masterAuthorizedNetworksConfig": OPEN}),
    ),
    ("gke-release-channel", cluster("x", {"releaseChannel": None})),
    ("gke-vpc-native", cluster("x", {"ipAllocationPolicy": None})),
    ("gke-logging", cluster("x", {"loggingService": "none"})),
    ("gke-secrets-cmek", cluster("x", {"databaseEncryption": None})),
    ("gke-autopilot-without-nodes", autopilot("x", {"nodeConfig": {"tags": ["a"]}})),
    ("gke-node-service-account", pool("x", {ACCOUNT: "default"})),
    ("gke-node-service-account", pool("x", {ACCOUNT: None})),
    ("gke-node-service-account", cluster("x", {ACCOUNT: "default"})),
    ("gke-auto-provisioning-service-account", autopilot("x", {"clusterAutoscaling": None})),
    ("gke-metadata-server", pool("x", {"nodeConfig.workloadMetadataConfig": None})),
    ("gke-secure-boot", pool("x", {"nodeConfig.shieldedInstanceConfig": None})),
    ("gke-auto-repair", pool("x", {"management": {"autoRepair": "false"}})),
    (
        "gke-container-optimized-os",
        cluster("x", {"clusterAutoscaling": {"enabled": True, "autoProvisioningDefaults": {"imageType": "UBUNTU"}}}),
    ),
    ("dws-autoscaling", pool("x", {**QUEUED, "autoscaling": None})),
    ("dws-no-auto-repair", pool("x", {**QUEUED, "management": None})),
    (
        "pool-compact-placement",
        pool(
            "x",
            {
                "placementPolicy": {"type": "COMPACT"},
                "nodeConfig.flexStart": True,
                "nodeConfig.machineType": "a4x-highgpu-4g",
                "nodeConfig.guestAccelerators": None,
            },
        ),
    ),
    ("dws-not-spot", pool("x", {**QUEUED, "nodeConfig.preemptible": True})),
    ("dws-run-duration", pool("x", {**QUEUED, "nodeConfig.maxRunDuration": "604801s"})),
    (
        "reservation-named",
        pool("x", {"nodeConfig.reservationAffinity": {"consumeReservationType": "NO_RESERVATION", "key": "k"}}),
    ),
    (
        "pool-compact-placement",
        pool("x", {**QUEUED, "placementPolicy": {"type": "COMPACT"}, "nodeLocations": [f"{REGION}-a"]}),
    ),
    (
        "pool-compact-placement",
        pool(
            "x",
            {"placementPolicy": {"type": "COMPACT"}, "nodeLocations": [f"{REGION}-a"], "nodeConfig.flexStart": True},
        ),
    ),
    ("network-custom-subnets", gcp("compute/network:Network", name="n")),
    ("firewall-not-open", gcp("compute/firewall:Firewall", sourceRanges=["0.0.0.0/0"], allows=[{"protocol": "all"}])),
    ("iam-no-basic-roles", gcp("projects/iAMBinding:IAMBinding", role="roles/owner", members=["user:a@b.c"])),
    (
        "iam-no-public-members",
        gcp("projects/iAMBinding:IAMBinding", role="roles/viewer", members=["allAuthenticatedUsers"]),
    ),
    ("iam-no-default-service-account", gcp(MEMBER, role="r", member="serviceAccount:p@appspot.gserviceaccount.com")),
    ("iam-workload-identity-member", gcp(KSA, role=WORKLOAD, member="serviceAccount:lab-project.svc.id.goog[team-a]")),
    ("iam-no-public-members", gcp(KSA, role=WORKLOAD, member="allUsers")),
    ("iam-no-public-members", gcp("storage/bucketIAMMember:BucketIAMMember", bucket="b", role="r", member="allUsers")),
    ("iam-no-public-members", gcp("artifactregistry/repositoryIamBinding:RepositoryIamBinding", members=["allUsers"])),
    ("iam-no-public-members", gcp("storage/bucketIAMPolicy:BucketIAMPolicy", policyData=PUBLIC_POLICY)),
    ("iam-no-public-members", gcp("storage/bucketAccessControl:BucketAccessControl", entity="allUsers")),
    ("iam-no-public-members", gcp("storage/bucketACL:BucketACL", roleEntities=["OWNER:user-a@b.c", "READER:allUsers"])),
    ("iam-no-public-members", gcp("storage/bucketACL:BucketACL", predefinedAcl="publicRead")),
    ("iam-no-public-members", gcp("bigquery/datasetAccess:DatasetAccess", specialGroup="allAuthenticatedUsers")),
    ("iam-no-public-members", gcp("bigquery/dataset:Dataset", accesses=[{"iamMember": "allUsers"}])),
    ("secret-not-in-node-metadata", gcp("compute/instance:Instance", metadata={"API_TOKEN": GITHUB_TOKEN})),
    ("secret-not-in-node-metadata", gcp("compute/instanceTemplate:InstanceTemplate", metadataStartupScript=SCRIPT)),
    (
        "secret-not-in-node-metadata",
        gcp("compute/projectMetadataItem:ProjectMetadataItem", key="pwd", value="hunter2x"),
    ),
    ("protect-clusters", cluster("x", protect=False)),
    ("kube-not-privileged", workload("x", PRIVILEGED | DRIVERS, by="p")),
    ("kube-not-privileged", workload("x", PRIVILEGED, by="p", kind="DaemonSet")),
    ("kube-workload-service-account", workload("x", NOT_DEFAULT, by="p")),
    ("kube-image-version", workload("x", container_change(image="localhost:5000/job"), by="p")),
    ("helm-version", release("x", {"version": None}, by="p")),
    ("secret-not-in-environment", workload("x", container_change(args=["--api-key=abcdefgh"]), by="p")),
    ("kueue-limits-need-cohort", queue("x", {"l4": 1}, by="p", cohortName="")),
]
for _rule, _one in BROKEN:
    if _rule == "kueue-limits-need-cohort":
        _one.props["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = 1

KEPT: list[tuple[str, Declared]] = [
    (
        "gke-authorized-networks",
        cluster("x", {"controlPlaneEndpointsConfig": None, "masterAuthorizedNetworksConfig": {}}),
    ),
    (
        "gke-authorized-networks",
        cluster("x", {"controlPlaneEndpointsConfig": None, "privateClusterConfig": {"enablePrivateEndpoint": True}}),
    ),
    ("gke-network-policy", cluster("x", {"datapathProvider": None, "networkPolicy": {"enabled": True}})),
    ("gke-vpc-native", cluster("x", {"ipAllocationPolicy": None, "networkingMode": "VPC_NATIVE"})),
    ("gke-auto-repair", pool("x", {"management.autoRepair": False, "nodeConfig.flexStart": True})),
    # terraform-provider-google 8 sets both to true where they are left out.
    ("gke-auto-repair", pool("x", {"management": None})),
    ("gke-auto-upgrade", pool("x", {"management": {"autoRepair": True}})),
    # The limit of seven days is that of DWS.
    ("dws-run-duration", pool("x", {"nodeConfig.maxRunDuration": "1209600s"})),
    (
        "gke-secure-boot",
        pool(
            "x",
            {
                "nodeConfig.shieldedInstanceConfig": None,
                "nodeConfig.guestAccelerators": [
                    {
                        "type": "nvidia-l4",
                        "count": 1,
                        "gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"},
                    }
                ],
            },
        ),
    ),
    ("gke-container-optimized-os", pool("x", {"nodeConfig.imageType": "cos_containerd"})),
    ("gke-no-legacy-metadata", pool("x", {"nodeConfig.metadata": {"disable-legacy-endpoints": "true"}})),
    ("dws-run-duration", pool("x", {**QUEUED, "nodeConfig.maxRunDuration": "604800s"})),
    ("pool-compact-placement", pool("x", {"placementPolicy": {"type": "COMPACT"}, "location": f"{REGION}-a"})),
    (
        "pool-compact-placement",
        pool(
            "x",
            {
                "placementPolicy": {"type": "COMPACT"},
                "nodeLocations": [f"{REGION}-a"],
                "nodeConfig.flexStart": True,
                "nodeConfig.machineType": "a4-highgpu-8g",
            },
        ),
    ),
    ("subnet-flow-logs", gcp("compute/subnetwork:Subnetwork", purpose="REGIONAL_MANAGED_PROXY")),
    (
        "firewall-not-open",
        gcp("compute/firewall:Firewall", sourceRanges=["0.0.0.0/0"], direction="EGRESS", allows=[{"protocol": "all"}]),
    ),
    (
        "firewall-not-open",
        gcp("compute/firewall:Firewall", sourceRanges=["10.0.0.0/8"], allows=[{"protocol": "tcp", "ports": ["22"]}]),
    ),
    (
        "iam-workload-identity-member",
        gcp(KSA, role=WORKLOAD, member="serviceAccount:lab-project.svc.id.goog[team-a/job]"),
    ),
    (
        "iam-workload-identity-member",
        gcp(
            KSA,
            role=WORKLOAD,
            member=f"{POOLS}/lab-project.svc.id.goog/subject/ns/a/sa/b",
        ),
    ),
    ("iam-no-public-members", gcp(MEMBER, role="r", member="group:a@b.c")),
    ("iam-no-public-members", gcp("storage/bucketIAMPolicy:BucketIAMPolicy", policyData="not JSON")),
    ("iam-no-public-members", gcp("storage/bucketACL:BucketACL", predefinedAcl="projectPrivate")),
    ("secret-not-in-node-metadata", gcp("compute/instance:Instance", metadata={"enable-oslogin": "TRUE"})),
    (
        "kube-disk-key",
        kube("storage.k8s.io/v1:StorageClass", "x", {"provisioner": "filestore.csi.storage.gke.io"}, by="p"),
    ),
    (
        "protect-clusters",
        cluster("x", {"deletionProtection": False, "resourceLabels": {"disposable": "true"}}, protect=False),
    ),
    ("kube-not-privileged", workload("x", PRIVILEGED | DRIVERS, by="p", kind="DaemonSet")),
    (
        "kube-workload-service-account",
        workload(
            "x", {"template.spec.serviceAccountName": None, "template.spec.automountServiceAccountToken": False}, by="p"
        ),
    ),
    ("kube-image-version", workload("x", container_change(image="localhost:5000/job@sha256:0123"), by="p")),
    ("kube-image-registry", workload("x", container_change(image="europe-docker.pkg.dev/p/r/job:1"), by="p")),
    ("helm-version", release("x", {"version": None, "chart": "/charts/kueue"}, by="p")),
    (
        "kube-gpu-requests",
        workload("x", container_change(resources={"limits": {"nvidia.com/gpu": 1, "cpu": 1, "memory": "1Gi"}}), by="p"),
    ),
    (
        "secret-not-in-environment",
        workload(
            "x",
            container_change(env=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]),
            by="p",
        ),
    ),
]


@pytest.mark.parametrize(("rule", "declared"), BROKEN, ids=[f"{i}-{rule}" for i, (rule, _) in enumerate(BROKEN)])
def test_broken(rule: str, declared: Declared) -> None:
    assert says(rule, declared) != []


@pytest.mark.parametrize(("rule", "declared"), KEPT, ids=[f"{i}-{rule}" for i, (rule, _) in enumerate(KEPT)])
def test_kept(rule: str, declared: Declared) -> None:
    assert says(rule, declared) == []


def test_regions_are_those_of_zones_and_of_locations_too() -> None:
    allowed = {"regions": [REGION]}
    assert says("region-allowed", cluster("x"), **allowed) == []
    assert says("region-allowed", cluster("x", {"location": "us-east4"}), **allowed) != []
    assert says("region-allowed", cluster("x", {"location": "us-east4-b"}), **allowed) != []
    assert says("region-allowed", pool("x", {"nodeLocations": ["us-east4-b"]}), **allowed) != []
    assert says("region-allowed", gcp("compute/reservation:Reservation", zone="us-east4-a"), **allowed) != []
    assert says("region-allowed", gcp("storage/bucket:Bucket", location="EU"), **allowed) == []
    assert says("region-allowed", cluster("x", {"location": "us-east4"})) == []


def test_projects_of_the_fleet_are_allowed_and_no_other() -> None:
    allowed = {"projects": ["acme-batch", "acme-gpus-us"]}
    assert says("project-allowed", cluster("x", {"project": "acme-gpus-us"}), **allowed) == []
    assert says("project-allowed", cluster("x", {"project": "acme-gpus"}), **allowed) == [
        "project: is acme-gpus, outside the allowed projects; use one of acme-batch, acme-gpus-us, or add acme-gpus to "
        "the setting projects"
    ]
    member = gcp("projects/iAMMember:IAMMember", project="projects/acme-gpus-us")
    assert says("project-allowed", member, **allowed) == []
    assert says("project-allowed", cluster("x", {"project": "acme-gpus"})) == []


def test_a_shorter_run_can_be_asked_for() -> None:
    day = {"maxSeconds": 86_400}
    assert says("dws-run-duration", pool("x", {**QUEUED, "nodeConfig.maxRunDuration": "86400s"}), **day) == []
    assert "86401s" in says("dws-run-duration", pool("x", {**QUEUED, "nodeConfig.maxRunDuration": "86401s"}), **day)[0]
    assert says("dws-run-duration", pool("x", {"nodeConfig.maxRunDuration": "86401s"}), **day) == []


def test_a_commitment_that_was_agreed_to_passes() -> None:
    commitment = gcp("compute/regionCommitment:RegionCommitment", name="gpus", plan="TWELVE_MONTH")
    assert says("spend-commitments", commitment, commitments=["gpus"]) == []
    assert "one year" in says("spend-commitments", commitment)[0]


# --- flavors and nodes ------------------------------------------------------------------------------------------------


def l4(**labels: str) -> Declared:
    return flavor("l4", labels or {NODE_POOL: "nodes"}, by="p")


NODES = pool("nodes", of="c")
TAINT = {"key": "team", "value": "vision", "effect": "NO_SCHEDULE"}


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "team", "operator": "Exists"},
        {"key": "team", "value": "vision"},
        {"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"},
        {"operator": "Exists"},
    ],
)
def test_a_toleration_in_any_of_its_forms_is_enough(toleration: dict[str, str]) -> None:
    tainted = pool("nodes", {"nodeConfig.taints": [TAINT]}, of="c")
    tolerant = flavor("l4", {NODE_POOL: "nodes"}, by="p", tolerations=[toleration])
    rule = "kueue-flavor-tolerates-nodes"
    assert stack_says(rule, tainted, tolerant, queue("q", {"l4": 2}, by="p")) == []
    wrong = flavor("l4", {NODE_POOL: "nodes"}, by="p", tolerations=[{"key": "team", "value": "speech"}])
    assert stack_says(rule, tainted, wrong, queue("q", {"l4": 2}, by="p")) != []
    declared = flavor("l4", {NODE_POOL: "nodes"}, by="p", nodeTaints=[TAINT])
    assert stack_says(rule, tainted, declared, queue("q", {"l4": 2}, by="p")) == []


def test_quotas_of_all_queues_are_summed() -> None:
    rule = "kueue-quota-within-capacity"
    assert stack_says(rule, NODES, l4(), queue("a", {"l4": 4}, by="p"), queue("b", {"l4": 4}, by="p")) == []
    assert (
        "promise 9 nvidia.com/gpu"
        in stack_says(rule, NODES, l4(), queue("a", {"l4": 4}, by="p"), queue("b", {"l4": "5"}, by="p"))[0]
    )


def test_auto_provisioning_makes_nodes_within_its_limits() -> None:
    owner = cluster("c", {"clusterAutoscaling": auto_provisioning(nvidia_tesla_a100=16)})
    a100 = flavor("a100", {ACCELERATOR: "nvidia-tesla-a100"}, by="p")
    for rule in ("kueue-flavor-has-nodes", "kueue-quota-within-capacity"):
        assert stack_says(rule, a100, queue("q", {"a100": 16}, by="p"), owner=owner) == []
    assert stack_says("kueue-quota-within-capacity", a100, queue("q", {"a100": 17}, by="p"), owner=owner) != []
    h100 = flavor("h100", {ACCELERATOR: "nvidia-h100-80gb"}, by="p")
    assert stack_says("kueue-flavor-has-nodes", h100, queue("q", {"h100": 1}, by="p"), owner=owner) != []
    named = flavor("l4", {NODE_POOL: "no-such-pool"}, by="p")
    assert stack_says("kueue-flavor-has-nodes", named, queue("q", {"l4": 1}, by="p"), owner=owner) != []


def test_a_manager_and_an_autopilot_cluster_need_no_nodes_for_their_flavors() -> None:
    lost = flavor("l4", {NODE_POOL: "no-such-pool"}, by="p")
    sent = queue("q", {"l4": 99}, by="p", admissionChecksStrategy=with_checks("multikueue"))
    manager = (NODES, lost, sent, check("multikueue", "multikueue", by="p"))
    for rule in ("kueue-flavor-has-nodes", "kueue-quota-within-capacity", "spend-quota"):
        assert stack_says(rule, *manager) == []
        assert stack_says(rule, lost, queue("q", {"l4": 99}, by="p"), owner=autopilot("c")) == []


@pytest.mark.parametrize(
    ("checks", "fine"),
    [
        ({"admissionChecks": [{"name": "dws"}]}, True),
        ({"admissionChecks": [{"name": "dws", "onFlavors": ["l4"]}]}, True),
        ({"admissionChecks": [{"name": "dws", "onFlavors": ["other"]}]}, False),
        ({"admissionChecks": [{"name": "budget"}]}, False),
        ({"admissionChecks": [{"name": "declared-elsewhere"}]}, True),
    ],
)
def test_a_queued_pool_needs_a_provisioning_check_on_its_flavor(checks: dict[str, Any], fine: bool) -> None:
    result = stack_says(
        "kueue-dws-check",
        pool("nodes", QUEUED, of="c"),
        l4(),
        check("dws", "provisioning-request", by="p"),
        check("budget", "budget", by="p"),
        queue("q", {"l4": 2}, by="p", admissionChecksStrategy=checks),
    )
    assert (result == []) is fine


def cohort(name: str, parent: str) -> Declared:
    return kube(
        "kueue.x-k8s.io/v1beta2:Cohort", name, {"metadata": {"name": name}, "spec": {"parentName": parent}}, by="p"
    )


@pytest.mark.parametrize(
    ("spec", "says_of_it"),
    [
        ({}, ""),
        ({"namespaceSelector": None}, "spec.namespaceSelector: is missing, which selects no namespace"),
        ({"resourceGroups": []}, "spec.resourceGroups: are missing or empty"),
        ({"cohortName": "team"}, ""),
        ({"cohortName": "a"}, "spec.cohortName: leads to cohorts in a cycle (a < b < a)"),
        ({"cohortName": "below"}, "spec.cohortName: leads to cohorts in a cycle (a < b < a)"),
    ],
)
def test_a_queue_that_admits_nothing_is_named(spec: dict[str, Any], says_of_it: str) -> None:
    cohorts = (cohort("a", "b"), cohort("b", "a"), cohort("below", "a"), cohort("team", "company"))
    result = stack_says("kueue-queue-admits", queue("q", {"l4": 2}, by="p", **spec), *cohorts)
    assert [one[: len(says_of_it)] for one in result] == ([says_of_it] if says_of_it else [])


def test_a_queue_without_quota_may_borrow() -> None:
    assert stack_says("kueue-queue-admits", queue("q", {"l4": 0}, by="p", cohortName="all")) == []
    assert stack_says("kueue-queue-admits", queue("q", {"l4": 0}, by="p")) != []


def test_quota_of_a_flavor_that_is_not_known_may_be_more_than_0() -> None:
    assert stack_says("kueue-queue-admits", queue("q", {"l4": 0, "h100": UNKNOWN_STRING_VALUE}, by="p")) == []


def test_a_queue_in_another_cluster_is_no_reference() -> None:
    elsewhere = (cluster("other"), provider("po", "other"), flavor("h100", {}, by="po"))
    rule = "kueue-queue-references"
    assert stack_says(rule, l4(), queue("q", {"l4": 1, "h100": 1}, by="p"), *elsewhere) != []
    assert stack_says(rule, queue("q", {"h100": 1}, by="p"), *elsewhere) == []


def test_kubernetes_objects_without_anything_are_left_alone() -> None:
    empty = kube("core/v1:ConfigMap", "x", {}, by="p")
    assert says("secret-not-in-config-map", empty) == []
