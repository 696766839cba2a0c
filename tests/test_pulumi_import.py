"""What `pulumi import` needs, and what the first `pulumi up` changes: from clusters as gcloud describes them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

import pulumi_mocks
from data_places import places, with_value
from drawn import some_of
from kueue_admission.kernel import SpecError
from kueue_fleet import Fleet
from kueue_fleet.adopt import Adopted, AdoptedCluster, Identity, adopt_fleet, description_problems, mode_of
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.parse import read_fleet
from kueue_fleet.pulumi_import import ImportPlan, take_over
from small_fleets import WORKER, fleet, one_pool_data
from tests.adopt.existing_platform import NODES, described_cluster

IDENTITY = Identity("lab", "lab-project", date(2999, 2, 1), date(2026, 11, 21), in_place=True, managed=True)
LABELS = ("resourceLabels.", "nodeConfig.resourceLabels.")
Change = Callable[[dict[str, Any]], None]


def standalone() -> FleetSpec:
    return parse_fleet(one_pool_data())


def taken_over(spec: FleetSpec, change: Change = lambda _: None) -> tuple[Adopted, ImportPlan]:
    """The platform that `spec` describes, with the last cluster's description changed."""
    clusters = [described_cluster(spec, name) for name in spec.cluster_names]
    change(clusters[-1].description)  # type: ignore[arg-type]
    pools = clusters[-1].description["nodePools"] if clusters[-1].node_pools else ()  # type: ignore[index]
    adopted, plan = take_over([*clusters[:-1], replace(clusters[-1], node_pools=pools)], IDENTITY)
    assert plan is not None, read_fleet(adopted.data).problems
    return adopted, plan


def put(path: str, value: Any) -> Change:
    """Sets a place of a description, or takes it away with None."""

    def change(description: dict[str, Any]) -> None:
        *parents, last = path.split("/")
        place: Any = description
        for parent in parents:
            place = place[int(parent)] if isinstance(place, list) else place.setdefault(parent, {})
        if value is None:
            del place[last]
        else:
            place[last] = value

    return change


@pytest.mark.parametrize("spec", [standalone(), fleet(WORKER)], ids=["standard", "autopilot"])
def test_clusters_that_are_set_up_as_a_fleets_are_get_labels_alone(spec: FleetSpec) -> None:
    adopted, plan = taken_over(spec)
    assert [item.path.partition("/")[0] for item in plan.adoptions if "/" not in item.path] == list(spec.cluster_names)
    others = [text for entry in plan.adoptions for text in entry.differences if not text.startswith(LABELS)]
    assert others == []
    assert not any(each.replacing for each in plan.adoptions)
    for cluster in adopted.data["clusters"]:
        assert cluster["upsertExistingObjects"]
        assert "existing" not in cluster
        assert cluster["nodeServiceAccount"] == NODES
        assert cluster["releaseChannel"] == "RAPID"
        assert cluster["maintenance"]["recurrence"] == "FREQ=WEEKLY;BYDAY=SA,SU"
    subnets = adopted.data["network"]["existing"]["subnets"]
    assert set(subnets) == {spec.cluster(name).region for name in spec.cluster_names}
    assert all(subnet == {"name": "gpus", "podRangeName": "pods"} for subnet in subnets.values())


def test_the_file_has_the_names_of_the_components_and_googles_ids() -> None:
    adopted, plan = taken_over(standalone())
    spec = parse_fleet(adopted.data)
    recording = pulumi_mocks.run(lambda: Fleet(spec.name, spec), preview=True)
    entries = {entry["name"]: entry for entry in plan.file["resources"]}
    assert len(entries) == len(plan.file["resources"]), "pulumi import finds parents by these names"

    def urn(entry: dict[str, Any]) -> str:
        types, above = [entry["type"]], entry
        while "parent" in above:
            above = entries[above["parent"]]
            types.append(above["type"])
        return f"{'$'.join(reversed(types))}::{entry['logicalName']}"

    declared = {resource.urn.partition("::kueue-fleet::")[2]: resource for resource in recording}
    assert {urn(entry) for entry in entries.values()} <= set(declared)
    ids = {entry["id"]: declared[urn(entry)] for entry in entries.values() if not entry.get("component")}
    cluster = f"projects/lab-project/locations/{spec.clusters[0].region}/clusters/{spec.clusters[0].name}"
    pools = [f"{cluster}/nodePools/{name}" for name in ("system", *(pool.name for pool in spec.node_pools))]
    assert sorted(ids) == sorted([cluster, *pools])
    assert {entry["version"] for entry in entries.values() if "id" in entry} == {ids[cluster].version}


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("securityPostureConfig/mode", "DISABLED", "securityPostureConfig.mode DISABLED -> BASIC"),
        ("shieldedNodes", None, "enableShieldedNodes false -> true"),
        ("shieldedNodes", {"enabled": False}, "enableShieldedNodes false -> true"),
        ("legacyAbac", {"enabled": True}, "enableLegacyAbac true -> false"),
        (
            "controlPlaneEndpointsConfig/ipEndpointsConfig",
            {"enabled": True},
            "controlPlaneEndpointsConfig.ipEndpointsConfig.enabled true -> false",
        ),
        (
            "loggingConfig/componentConfig/enableComponents",
            ["SYSTEM_COMPONENTS"],
            "loggingConfig.enableComponents [SYSTEM_COMPONENTS] -> [SYSTEM_COMPONENTS, WORKLOADS]",
        ),
        (
            "networkConfig/enableCiliumClusterwideNetworkPolicy",
            True,
            "enableCiliumClusterwideNetworkPolicy true -> nothing",
        ),
        ("networkConfig/disableL4LbFirewallReconciliation", True, "disableL4LbFirewallReconciliation true -> nothing"),
        (
            "networkConfig/inTransitEncryptionConfig",
            "IN_TRANSIT_ENCRYPTION_INTER_NODE_TRANSPARENT",
            "inTransitEncryptionConfig IN_TRANSIT_ENCRYPTION_INTER_NODE_TRANSPARENT -> nothing",
        ),
        (
            "autoscaling/defaultComputeClassConfig",
            {"enabled": True},
            "clusterAutoscaling.defaultComputeClassEnabled true -> nothing",
        ),
    ],
)
def test_what_pulumi_changes_in_place_is_listed(path: str, value: Any, text: str) -> None:
    _, plan = taken_over(standalone(), put(path, value))
    [cluster] = [entry for entry in plan.adoptions if "/" not in entry.path]
    assert [item for item in cluster.differences if not item.startswith(LABELS)] == [text]


def test_cloud_dns_stays_as_it_is() -> None:
    _, plan = taken_over(
        standalone(), put("networkConfig/dnsConfig", {"clusterDns": "CLOUD_DNS", "clusterDnsScope": "CLUSTER_SCOPE"})
    )
    [cluster] = [entry for entry in plan.adoptions if "/" not in entry.path]
    assert [item for item in cluster.differences if not item.startswith(LABELS)] == []


@pytest.mark.parametrize(
    ("network", "endpoints", "lost"),
    [
        ({"defaultEnablePrivateNodes": True}, {}, False),
        ({}, {}, True),
        (
            {"defaultEnablePrivateNodes": True},
            {"enabled": True, "enablePublicEndpoint": True, "globalAccess": True},
            False,
        ),
    ],
)
def test_a_description_without_a_private_cluster_has_what_the_provider_reads(
    network: dict[str, Any], endpoints: dict[str, Any], lost: bool
) -> None:
    def change(description: dict[str, Any]) -> None:
        del description["privateClusterConfig"]
        description["networkConfig"] |= network
        description["controlPlaneEndpointsConfig"]["ipEndpointsConfig"] = endpoints

    _, plan = taken_over(standalone(), change)
    [cluster] = [item for item in plan.adoptions if "/" not in item.path]
    texts = ["controlPlaneEndpointsConfig.ipEndpointsConfig.enabled true -> false"] if endpoints else []
    assert list(cluster.access) == texts, "the addresses of nodes are not the API server's"
    texts += ["privateClusterConfig.enablePrivateNodes false -> true"] if lost else []
    assert [item for item in cluster.differences if not item.startswith(LABELS)] == texts
    assert cluster.nodes_made_private is lost


def test_a_pool_whose_nodes_lose_their_addresses_is_said() -> None:
    _, plan = taken_over(standalone(), put("nodePools/1/networkConfig/enablePrivateNodes", False))
    assert [item.path for item in plan.adoptions if item.nodes_made_private] == ["batch/l4"]


@pytest.mark.parametrize(
    ("path", "value", "field", "expected"),
    [
        ("binaryAuthorization/evaluationMode", "PROJECT_SINGLETON_POLICY_ENFORCE", "binaryAuthorization", True),
        ("authenticatorGroupsConfig/securityGroup", "gke-security-groups@a.example", "rbacSecurityGroup", None),
        ("fleet", None, "fleetMembership", False),
        ("costManagementConfig", None, "costAllocation", False),
        ("addonsConfig/gcsFuseCsiDriverConfig", None, "storageDrivers", ["PersistentDisk", "Filestore"]),
    ],
)
def test_what_the_file_can_say_is_in_the_file(path: str, value: Any, field: str, expected: Any) -> None:
    adopted, plan = taken_over(standalone(), put(path, value))
    assert adopted.data["clusters"][0][field] == (value if expected is None else expected)
    assert [text for item in plan.adoptions for text in item.differences if not text.startswith(LABELS)] == []


def test_a_cluster_that_would_be_replaced_stays_its_owners() -> None:
    adopted, plan = taken_over(standalone(), put("networkConfig/datapathProvider", "LEGACY_DATAPATH"))
    assert plan.adoptions == ()
    assert plan.file == {"resources": []}
    assert adopted.data["clusters"][0]["existing"]
    assert all(pool["existing"] for pool in adopted.data["nodePools"])
    name = adopted.data["clusters"][0]["name"]
    assert (
        f"{name} stays its owner's, with existing: true: `pulumi up` would replace {name} to change "
        "datapathProvider LEGACY_DATAPATH -> ADVANCED_DATAPATH"
    ) in adopted.notes


def test_a_cluster_with_fqdn_policies_stays_its_owners() -> None:
    adopted, plan = taken_over(standalone(), put("networkConfig/enableFqdnNetworkPolicy", True))
    assert plan.adoptions == ()
    assert any("to change enableFqdnNetworkPolicy true -> " in note for note in adopted.notes), adopted.notes


@pytest.mark.parametrize(("mode", "stays"), [("SCALE_OPTIMIZED", True), ("DISABLED", False)])
def test_a_cluster_of_the_mode_for_scale_stays_its_owners(mode: str, stays: bool) -> None:
    adopted, plan = taken_over(standalone(), put("networkConfig/dataplaneV2Config", {"scalabilityMode": mode}))
    assert (plan.adoptions == ()) == stays
    output = f"to change dataplaneOptimizationMode {mode} -> "
    assert any(output in note for note in adopted.notes) == stays, adopted.notes


def test_what_gke_refuses_of_a_new_pool_is_a_warning_of_one_that_stays_its_owners() -> None:
    def old(description: dict[str, Any]) -> None:
        [*_, pool] = description["nodePools"]
        pool["config"] |= {"machineType": "n4-standard-8", "diskType": "pd-balanced", "accelerators": []}
        pool["config"]["reservationAffinity"] = {"consumeReservationType": "NO_RESERVATION"}

    adopted, _ = taken_over(standalone(), old)
    reading = read_fleet(adopted.data)
    disk = [problem for problem in reading.problems if problem.rule.code == "KF658"]
    assert [problem.severity for problem in disk] == ["warning"]


def test_a_pool_that_would_be_replaced_stays_its_owners_and_its_cluster_is_taken_over() -> None:
    adopted, plan = taken_over(standalone(), put("nodePools/1/config/shieldedInstanceConfig/enableSecureBoot", False))
    pool = adopted.data["nodePools"][0]
    assert pool["existing"]
    assert "existing" not in adopted.data["clusters"][0]
    assert not any(item.path.endswith(f"/{pool['name']}") for item in plan.adoptions)
    assert any("enableSecureBoot false -> true" in note for note in adopted.notes)


def test_taints_that_gke_adds_are_no_change() -> None:
    """The provider reads back the taints that the program names, and leaves others alone."""
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    _, plan = taken_over(standalone(), put("nodePools/1/config/taints", [taint]))
    assert [text for item in plan.adoptions for text in item.differences if not text.startswith(LABELS)] == []


def test_what_is_off_there_and_in_the_file_is_no_change() -> None:
    def flex(description: dict[str, Any]) -> None:
        [*_, pool] = description["nodePools"]
        pool["config"] |= {"flexStart": True, "maxRunDuration": "86400s"}
        pool["config"]["reservationAffinity"] = {"consumeReservationType": "NO_RESERVATION"}
        pool |= {"management": {"autoUpgrade": True}, "upgradeSettings": {"strategy": "SHORT_LIVED"}}

    adopted, plan = taken_over(standalone(), flex)
    assert adopted.data["nodePools"][0]["management"]["autoRepair"] is False
    [pool] = [item for item in plan.adoptions if item.path.endswith(adopted.data["nodePools"][0]["name"])]
    assert [text for text in pool.differences if not text.startswith(LABELS)] == []


@pytest.mark.parametrize(("name", "done"), [("autoUpgrade", "upgrades"), ("autoRepair", "repairs")])
def test_what_a_release_channel_does_by_itself_is_left_to_it(name: str, done: str) -> None:
    adopted, plan = taken_over(standalone(), put(f"nodePools/1/management/{name}", None))
    assert name not in adopted.data["nodePools"][0].get("management", {})
    assert not any(problem.severity == "error" for problem in read_fleet(adopted.data).problems)
    why = f"clusters of a fleet are on a release channel, which {done} their nodes"
    assert f"node pool l4: management.{name} false is left out: {why}" in adopted.notes
    assert f"management.{name} false -> true" in plan.adoptions[-1].differences


def test_a_pool_that_stays_its_owners_is_as_it_is() -> None:
    def change(description: dict[str, Any]) -> None:
        description["nodePools"][1]["config"]["shieldedInstanceConfig"]["enableSecureBoot"] = False
        del description["nodePools"][1]["management"]["autoUpgrade"]

    adopted, _ = taken_over(standalone(), change)
    assert adopted.data["nodePools"][0]["management"]["autoUpgrade"] is False


def test_nodes_of_another_account_keep_it_with_their_pool() -> None:
    """No file can name it: the account of a project that is used by default."""
    adopted, _ = taken_over(standalone(), put("nodePools/1/config/serviceAccount", "default"))
    assert adopted.data["nodePools"][0]["existing"]
    assert "nodeServiceAccount" not in adopted.data["clusters"][0]


@pytest.mark.parametrize("managed", [True, False])
@pytest.mark.parametrize("spec", [standalone(), fleet(WORKER)], ids=["standalone", "manager"])
def test_another_project_than_that_of_the_fleets_own_cluster_is_refused(spec: FleetSpec, managed: bool) -> None:
    clusters = [described_cluster(spec, name) for name in spec.cluster_names]
    first, role = clusters[0].name, spec.clusters[0].role
    with pytest.raises(SpecError) as refused:
        adopt_fleet(clusters, replace(IDENTITY, project="elsewhere", managed=managed))
    assert [str(problem) for problem in refused.value.problems] == [
        f"project: elsewhere, but {first} is in lab-project, and a {role} is in the fleet's project; "
        "give --project lab-project"
    ]


def test_clusters_to_be_made_are_in_the_project_that_is_given() -> None:
    clusters = [described_cluster(standalone(), name) for name in standalone().cluster_names]
    adopted = adopt_fleet(clusters, replace(IDENTITY, project="elsewhere", managed=False, in_place=False))
    assert adopted.data["project"] == "elsewhere"
    assert "project" not in adopted.data["clusters"][0]


def test_a_cluster_in_another_network_stays_its_owners() -> None:
    adopted, plan = taken_over(fleet(WORKER), put("networkConfig/network", "projects/lab-project/global/networks/b"))
    assert [cluster.get("existing", False) for cluster in adopted.data["clusters"]] == [False, True]
    assert len(plan.adoptions) == 1
    assert any("it is in the network b, others are in another one" in note for note in adopted.notes)


def test_a_shared_vpc_is_named_with_its_project() -> None:
    def shared(description: dict[str, Any]) -> None:
        description["networkConfig"] |= {
            "network": "projects/network-host/global/networks/theirs",
            "subnetwork": "projects/network-host/regions/us-central1/subnetworks/gpus",
        }

    adopted, plan = taken_over(standalone(), shared)
    assert adopted.data["network"]["existing"]["project"] == "network-host"
    assert len(plan.adoptions) > 0


def test_nothing_is_imported_of_what_is_not_described() -> None:
    clusters = [described_cluster(standalone(), name) for name in standalone().cluster_names]
    alone = [AdoptedCluster(item.name, item.region, item.objects, item.node_pools, item.mode) for item in clusters]
    adopted, plan = take_over(alone, IDENTITY)
    assert plan is not None
    assert plan.adoptions == ()
    assert adopted.data["clusters"][0]["existing"]


WRONG: tuple[Any, ...] = ("x", 5, None, ["x"], {"x": 1}, [{}])
CHANGES = [
    (place, value)
    for place in places(described_cluster(standalone(), standalone().cluster_names[0]).description)
    for value in WRONG
]


def test_a_description_of_another_form_is_refused_or_read_without_it() -> None:
    spec = standalone()
    [result] = (described_cluster(spec, name) for name in spec.cluster_names)
    planned = 0
    for place, value in some_of(some_of(CHANGES, "descriptions"), "of a quarter"):
        description = with_value(result.description, place, value)
        if description_problems(result.name, description):
            continue
        pools = list(description.get("nodePools") or ()) if mode_of(description) == "Standard" else []
        with suppress(SpecError):
            planned += take_over([replace(result, description=description, node_pools=pools)], IDENTITY)[1] is not None
    assert planned > len(CHANGES) / 40


POOL = "nodePools/1/config"
LIMITS = [{"resourceType": kind, "maximum": "64"} for kind in ("cpu", "memory")]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{POOL}/kubeletConfig", {"podPidsLimit": "4096"}),
        (
            "autoscaling",
            {"enableNodeAutoprovisioning": True, "resourceLimits": LIMITS},
        ),
        ("nodePoolDefaults/nodeConfigDefaults/gcfsConfig", None),
        (f"{POOL}/accelerators/0/gpuDriverInstallationConfig", {"gpuDriverVersion": "GPU_DRIVER_VERSION_UNSPECIFIED"}),
    ],
)
def test_what_is_imported_is_not_refused(path: str, value: Any) -> None:
    adopted, plan = taken_over(standalone(), put(path, value))
    assert read_fleet(adopted.data).fleet is not None, read_fleet(adopted.data).problems
    assert len(plan.adoptions) > 1


def test_numbers_of_64_bits_are_numbers() -> None:
    adopted, _ = taken_over(standalone(), put(f"{POOL}/kubeletConfig", {"podPidsLimit": "4096"}))
    assert adopted.data["nodePools"][0]["kubeletConfig"] == {"podPidsLimit": 4096}


def test_image_streaming_of_some_pools_becomes_the_clusters() -> None:
    adopted, _ = taken_over(standalone(), put("nodePoolDefaults/nodeConfigDefaults/gcfsConfig", None))
    assert adopted.data["clusters"][0].get("imageStreaming", True)
    assert any("image streaming of" in note for note in adopted.notes)


def test_a_zonal_cluster_stays_its_owners() -> None:
    region = standalone().clusters[0].region
    adopted, plan = taken_over(standalone(), put("location", f"{region}-a"))
    cluster = adopted.data["clusters"][0]
    assert (cluster["region"], cluster["existing"]) == (region, True)
    assert any("is a zonal cluster, in" in note for note in adopted.notes)
    assert not any("/" not in item.path for item in plan.adoptions)


def test_a_pool_that_stays_its_owners_on_an_imported_cluster_is_no_mistake() -> None:
    adopted, _ = taken_over(
        standalone(), put(f"{POOL}/reservationAffinity", {"consumeReservationType": "NO_RESERVATION"})
    )
    assert adopted.data["nodePools"][0].get("existing"), adopted.notes
    assert "KF622" not in [problem.rule.code for problem in read_fleet(adopted.data).problems]


def test_an_autopilot_cluster_with_the_driver_of_lustre_keeps_it() -> None:
    adopted, _ = taken_over(fleet(WORKER), put("addonsConfig/lustreCsiDriverConfig", {"enabled": True}))
    assert adopted.data["clusters"][-1]["storageDrivers"] == ["Lustre"]
    assert read_fleet(adopted.data).fleet is not None
