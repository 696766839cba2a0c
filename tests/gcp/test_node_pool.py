from __future__ import annotations

from typing import Any

import pulumi
import pytest

import google_cloud
import pulumi_mocks
from kueue_admission.kernel import SpecError
from kueue_fleet import NodePool
from kueue_fleet.fleet_file import ClusterEntry, NodePoolEntry
from pulumi_mocks import Recorded

CLUSTER = ClusterEntry(name="worker", role="worker", region="us-east4", mode="Standard", zones=("us-east4-c",))


def declare(opts: pulumi.ResourceOptions | None = None, *, deletion_protection: bool = True, **fields: Any) -> NodePool:
    entry = NodePoolEntry.model_validate(
        {"name": "l4", "machineType": "g2-standard-24", "autoscaling": {"totalMaxNodeCount": 8}, **fields}
    )
    return NodePool(
        "pool",
        entry,
        cluster_spec=CLUSTER,
        project="lab-project",
        cluster="worker",
        service_account="gke-nodes@lab-project.iam.gserviceaccount.com",
        deletion_protection=deletion_protection,
        labels={"kueue-fleet": "lab"},
        opts=opts,
    )


def pool(**fields: Any) -> Recorded:
    return pulumi_mocks.run(lambda: declare(**fields)).one("gcp:container/nodePool:NodePool")


NODE = {
    "serviceAccount": "gke-nodes@lab-project.iam.gserviceaccount.com",
    "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
    "imageType": "COS_CONTAINERD",
    "workloadMetadataConfig": {"mode": "GKE_METADATA"},
    "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
    "kubeletConfig": {"insecureKubeletReadonlyPortEnabled": "FALSE"},
    "metadata": {"disable-legacy-endpoints": "true"},
    "machineType": "g2-standard-24",
    "diskSizeGb": 100,
    "diskType": "pd-balanced",
    "gcfsConfig": {"enabled": True},
    "gvnic": {"enabled": True},
    "guestAccelerators": [
        {"type": "nvidia-l4", "count": 2, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
    ],
    "labels": {},
    "resourceLabels": {"kueue-fleet": "lab"},
}
NOWHERE = {"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}
AUTOSCALING = {"totalMinNodeCount": 0, "totalMaxNodeCount": 8, "locationPolicy": "ANY"}


def specific(path: str) -> dict[str, Any]:
    key = "compute.googleapis.com/reservation-name"
    return {
        "reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "key": key, "values": [path]},
    }


def test_every_argument_of_an_on_demand_pool() -> None:
    assert pool().inputs == {
        "name": "l4",
        "project": "lab-project",
        "location": "us-east4",
        "cluster": "worker",
        "nodeLocations": ["us-east4-c"],
        "autoscaling": AUTOSCALING,
        "management": {"autoRepair": True, "autoUpgrade": True},
        "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0},
        "maxPodsPerNode": 110,
        "networkConfig": {"enablePrivateNodes": True},
        "nodeConfig": NODE,
    }


@pytest.mark.parametrize(
    ("capacity", "node"),
    [
        ({"type": "onDemand"}, {}),
        ({"type": "spot"}, {"spot": True, **NOWHERE}),
        ({"type": "reserved", "reservation": "r"}, specific("r")),
        ({"type": "reserved", "reservation": "r", "project": "q-1234"}, specific("projects/q-1234/reservations/r")),
        ({"type": "reserved", "reservation": "r", "block": "b"}, specific("r/reservationBlocks/b")),
        (
            {"type": "reserved", "reservation": "r", "block": "b", "subBlock": "s"},
            specific("r/reservationBlocks/b/reservationSubBlocks/s"),
        ),
        (
            {"type": "calendar", "reservation": "r", "start": "2026-12-01", "duration": "336h", "active": True},
            specific("r"),
        ),
        (
            {"type": "flexStart", "queuedProvisioning": False},
            {"flexStart": True, "maxRunDuration": "604800s", **NOWHERE},
        ),
        (
            {"type": "flexStart", "maxRunDuration": "90m"},
            {
                "flexStart": True,
                "maxRunDuration": "5400s",
                # GKE puts the taint of this name on queued pools, and not the label.
                "labels": {"cloud.google.com/gke-queued": "true"},
                **NOWHERE,
            },
        ),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if "type" in value else "",
)
def test_where_nodes_come_from(capacity: dict[str, Any], node: dict[str, Any]) -> None:
    inputs = pool(capacity=capacity, zones=["us-east4-c"]).inputs
    assert inputs["nodeConfig"] == {**NODE, **node}
    assert inputs["autoscaling"] == AUTOSCALING
    flex = capacity["type"] == "flexStart"
    assert inputs["management"]["autoRepair"] is not flex
    assert ("upgradeSettings" in inputs) is not flex, "GKE upgrades flex-start nodes in a way of its own"
    assert inputs.get("queuedProvisioning") == (
        {"enabled": True} if flex and capacity.get("queuedProvisioning", True) else None
    )


def test_a_pool_whose_reservation_has_not_begun_has_no_nodes() -> None:
    capacity = {"type": "calendar", "reservation": "r", "start": "2026-12-01", "duration": "336h"}
    inputs = pool(capacity=capacity).inputs
    assert inputs["nodeCount"] == 0
    assert "autoscaling" not in inputs
    assert inputs["nodeConfig"]["reservationAffinity"]["values"] == ["r"]


def test_a_fixed_size_excludes_autoscaling() -> None:
    inputs = pool(nodeCount=4, autoscaling=None).inputs
    assert inputs["nodeCount"] == 4
    assert "autoscaling" not in inputs


def test_what_is_asked_for_beyond_gkes_own_reaches_the_pool() -> None:
    inputs = pool(
        machineType="n1-standard-8",
        accelerator={"type": "nvidia-tesla-t4", "count": 4, "driverVersion": "LATEST"},
        zones=["us-east4-a"],
        autoscaling={"totalMinNodeCount": 1, "totalMaxNodeCount": 4, "locationPolicy": "BALANCED"},
        initialNodeCount=1,
        diskSizeGb=200,
        diskType="pd-ssd",
        localSsdCount=2,
        maxPodsPerNode=32,
        labels={"company.test/a": "b"},
        taints=[{"key": "company.test/t", "value": "v", "effect": "NoExecute"}],
        upgrade={"maxSurge": 0, "maxUnavailable": 2},
    ).inputs
    assert inputs["autoscaling"] == {"totalMinNodeCount": 1, "totalMaxNodeCount": 4, "locationPolicy": "BALANCED"}
    assert inputs["initialNodeCount"] == 1
    assert inputs["nodeLocations"] == ["us-east4-a"]
    assert inputs["maxPodsPerNode"] == 32
    assert inputs["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 2}
    assert inputs["nodeConfig"] == {
        **NODE,
        "machineType": "n1-standard-8",
        "diskSizeGb": 200,
        "diskType": "pd-ssd",
        "ephemeralStorageLocalSsdConfig": {"localSsdCount": 2},
        "labels": {"company.test/a": "b"},
        "taints": [{"key": "company.test/t", "value": "v", "effect": "NO_EXECUTE"}],
        "guestAccelerators": [
            {"type": "nvidia-tesla-t4", "count": 4, "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"}}
        ],
    }


def test_nodes_close_together_take_gkes_own_policy() -> None:
    inputs = pool(machineType="n2-standard-8", zones=["us-east4-a"], compactPlacement=True).inputs
    assert inputs["placementPolicy"] == {"type": "COMPACT"}


@pytest.mark.parametrize(
    ("capacity", "surge"),
    [
        ({"type": "onDemand"}, (1, 0)),
        ({"type": "spot"}, (1, 0)),
        ({"type": "reserved", "reservation": "r"}, (0, 1)),
        (
            {
                "type": "calendar",
                "reservation": "r",
                "start": "2027-01-01T00:00:00Z",
                "duration": "336h",
                "active": True,
            },
            (0, 1),
        ),
        ({"type": "flexStart"}, None),
        ({"type": "flexStart", "queuedProvisioning": False}, None),
    ],
)
def test_nodes_are_upgraded_as_their_capacity_allows(capacity: dict[str, Any], surge: tuple[int, int] | None) -> None:
    zones = {"zones": ["us-east4-c"]}
    settings = pool(capacity=capacity, **zones).inputs.get("upgradeSettings")
    result = surge and {"strategy": "SURGE", "maxSurge": surge[0], "maxUnavailable": surge[1]}
    assert settings == result
    explicit = pool(capacity=capacity, upgrade={"maxSurge": 2}, **zones).inputs.get("upgradeSettings")
    assert explicit == (surge and {"strategy": "SURGE", "maxSurge": 2, "maxUnavailable": 0})


def test_the_largest_machines_stand_together_by_a_workload_policy() -> None:
    fields: dict[str, Any] = {"machineType": "a4-highgpu-8g", "zones": ["us-east4-b"], "compactPlacement": True}
    recording = pulumi_mocks.run(lambda: declare(**fields, capacity={"type": "spot"}))
    policy = recording.one("ResourcePolicy")
    assert policy.inputs["workloadPolicy"] == {"type": "HIGH_THROUGHPUT"}
    assert (policy.inputs["name"], policy.inputs["region"]) == ("worker-l4", "us-east4")
    result = recording.one("gcp:container/nodePool:NodePool")
    assert result.inputs["placementPolicy"] == {"type": "COMPACT", "policyName": "worker-l4"}
    assert recording.is_before(policy, result)


@pytest.mark.parametrize(
    ("machine_type", "disks"),
    [("a2-ultragpu-4g", 4), ("a3-highgpu-8g", 16), ("a3-megagpu-8g", 16), ("a4-highgpu-8g", 32), ("a2-highgpu-4g", 0)],
)
def test_local_ssds_that_come_with_the_machine_are_said(machine_type: str, disks: int) -> None:
    config = pool(machineType=machine_type, zones=["us-east4-c"], capacity={"type": "spot"}).inputs["nodeConfig"]
    assert config.get("ephemeralStorageLocalSsdConfig") == ({"localSsdCount": disks} if disks else None)


def test_gpus_get_networks_of_their_own_where_the_file_says_so() -> None:
    large: dict[str, Any] = {"machineType": "a3-ultragpu-8g", "zones": ["us-east4-b"], "capacity": {"type": "spot"}}
    without, asked = pool(**large), pool(**large, acceleratorNetworkProfile="auto")
    assert without.inputs["networkConfig"] == {"enablePrivateNodes": True}
    assert asked.inputs["networkConfig"] == {"enablePrivateNodes": True, "acceleratorNetworkProfile": "auto"}
    assert google_cloud.second_plan(asked) == {}
    for before, after, change in ((without, asked, "ADD_REPLACE"), (asked, without, "DELETE_REPLACE")):
        plan = google_cloud.planned(after, google_cloud.created(before.type, before.inputs))
        assert plan == {"networkConfig.acceleratorNetworkProfile": change}


def test_a_pool_without_gpus_says_so_since_those_of_its_former_machines_would_stay() -> None:
    without, gpus = pool(machineType="n2-standard-8"), pool()
    assert without.inputs["nodeConfig"]["guestAccelerators"] == [{"type": "nvidia-tesla-t4", "count": 0}]
    assert google_cloud.second_plan(without) == {}
    plan = google_cloud.planned(without, google_cloud.created(gpus.type, gpus.inputs))
    assert plan["nodeConfig.guestAccelerators[0].count"] == "UPDATE_REPLACE"


def test_a_pool_that_must_be_made_anew_keeps_its_name_so_the_old_one_goes_first() -> None:
    """Flavors select nodes by the pool's name; a second pool of another name would strand their jobs."""
    result = pool()
    assert result.delete_before_replace
    assert result.ignore_changes == ("initialNodeCount",)


@pytest.mark.parametrize(
    ("own", "argument", "protected"),
    [(None, True, True), (None, False, False), (False, True, False), (True, False, True)],
)
def test_a_pool_is_protected_as_its_entry_says_or_else_the_argument(
    own: bool | None, argument: bool, protected: bool
) -> None:
    fields: dict[str, Any] = {} if own is None else {"deletionProtection": own}
    recording = pulumi_mocks.run(lambda: declare(deletion_protection=argument, **fields))
    assert recording.one("gcp:container/nodePool:NodePool").protect is protected


def test_options_of_the_component_reach_only_what_they_are_for() -> None:
    def program() -> None:
        reservation = pulumi.ComponentResource("lab:index:Other", "other")
        declare(pulumi.ResourceOptions(depends_on=[reservation], aliases=[pulumi.Alias(name="old")]))

    recording = pulumi_mocks.run(program)
    component = recording.one("kueue-fleet:index:NodePool")
    result = recording.one("gcp:container/nodePool:NodePool")
    assert result.parent == component.urn
    assert not result.aliases
    identifier = "projects/lab-project/locations/us-east4/clusters/worker/nodePools/l4"
    known = {"name": "l4", "poolName": "l4", "identifier": identifier}
    assert component.outputs == {**known, "instanceGroupUrls": []}


def test_a_slice_of_tpu7x_takes_its_topology_from_a_workload_policy() -> None:
    fields: dict[str, Any] = {"machineType": "tpu7x-standard-4t", "tpuTopology": "2x2x2", "nodeCount": 2}
    recording = pulumi_mocks.run(lambda: declare(**fields, autoscaling=None))
    policy = recording.one("gcp:compute/resourcePolicy:ResourcePolicy")
    assert policy.inputs["workloadPolicy"] == {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "2x2x2"}
    result = recording.one("gcp:container/nodePool:NodePool")
    assert result.inputs["placementPolicy"] == {"type": "COMPACT", "policyName": policy.inputs["name"]}
    assert result.replace_with == (policy.urn,), "another topology is another policy, and another slice"


def test_another_topology_is_another_slice() -> None:
    fields: dict[str, Any] = {"machineType": "ct6e-standard-4t", "autoscaling": None}
    four = pool(**fields, nodeCount=4, tpuTopology="4x4")
    eight = pool(**fields, nodeCount=8, tpuTopology="4x8")
    plan = google_cloud.planned(eight, google_cloud.created(four.type, four.inputs))
    assert plan == {"nodeCount": "UPDATE", "placementPolicy.tpuTopology": "UPDATE_REPLACE"}


def test_a_pool_on_a_cluster_in_a_zone_is_there_too() -> None:
    entry = NodePoolEntry("l4", machine_type="g2-standard-24", node_count=1)
    recording = pulumi_mocks.run(
        lambda: (
            NodePool(
                "pool",
                entry,
                cluster_spec=CLUSTER,
                project="lab-project",
                cluster="worker",
                service_account="gke-nodes@lab-project.iam.gserviceaccount.com",
                location="us-east4-c",
            )
            and None
        )
    )
    assert recording.one("gcp:container/nodePool:NodePool").inputs["location"] == "us-east4-c"


def test_a_pool_that_exists_is_read() -> None:
    there = "projects/lab-project/locations/us-east4/clusters/worker/nodePools/l4"
    recording = pulumi_mocks.run(lambda: NodePool.get("pool", there).name)
    assert recording.read == (there,)
    assert not [result for result in recording if result.custom]


def test_a_pool_is_read_by_its_id_alone() -> None:
    with pytest.raises(SpecError, match=r"'l4' is not an id; write projects/P/locations/L/clusters/C/nodePools/N"):
        pulumi_mocks.run(lambda: NodePool.get("pool", "l4"))


def test_labels_may_be_known_later() -> None:
    recording = pulumi_mocks.run(
        lambda: (
            NodePool(
                "pool",
                NodePoolEntry("l4", machine_type="g2-standard-24", node_count=1),
                cluster_spec=CLUSTER,
                project="lab-project",
                cluster="worker",
                service_account="gke-nodes@lab-project.iam.gserviceaccount.com",
                labels={"team": pulumi.Output.from_input("vision")},
            )
            and None
        )
    )
    assert recording.one("gcp:container/nodePool:NodePool").inputs["nodeConfig"]["resourceLabels"] == {"team": "vision"}
