"""Any fleet, imported from what it becomes, renders the same objects and node pools, or names what it left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from tests.adopt.existing_platform import existing_platform, printed_pool
from tests.fleet_file.builders import COVERED, REMOVED, changed, flavor_quotas, fleet_data
from tests.fleet_files import fleets

from drawn import examples
from kueue_admission.kernel.problem import SpecError, errors_of
from kueue_fleet.adopt import Adopted, Identity, adopt_fleet
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.parse import read_fleet
from kueue_fleet.objects import render_cluster

EXAMPLES = Path(__file__).parents[2] / "examples"


def adopt(fleet: FleetSpec) -> Adopted:
    return adopt_fleet(
        existing_platform(fleet), Identity(fleet.name, fleet.project, date(2999, 2, 1), date(2026, 11, 21))
    )


def objects_of(fleet: FleetSpec, cluster: str) -> Mapping[tuple[str, str], Any]:
    """The objects of a cluster by kind and name, Kueue's Configuration among them."""
    result = {}
    for item in render_cluster(fleet, cluster):
        metadata = item["metadata"]
        name = "/".join(metadata[part] for part in ("namespace", "name") if part in metadata)
        result[item["kind"], name] = item
    return {**result, ("Kueue's", "Configuration"): kueue_configuration(fleet, cluster)}


POOLS = [
    {"name": "l4", "machineType": "g2-standard-24", "autoscaling": {"totalMaxNodeCount": 40}},
    {"name": "t4", "clusters": ["worker-b"], "machineType": "n1-standard-8", "nodeCount": 1,
     "accelerator": {"type": "nvidia-tesla-t4", "count": 1}, "capacity": {"type": "spot"}},
]  # fmt: skip
EXPECTED = re.compile(
    r"node pool system of|of Google Cloud only node pools are read|"
    r"Cohort \S+ on manager would be changed: [^,]*\.nominalQuota|"
    r"ClusterQueue \S+ on \S+ would be changed: [^,]*admissionChecks|"
    r"(PersistentVolume(Claim)?|CheckpointConfiguration) .* left out"
)
"""What has to be named: what belongs to a cluster itself, or is not in Kubernetes, headroom in cohorts' quotas, a check
of the manager for a flavor that the queue has on no worker, as there is no name for the flavor, and volumes."""
OTHER_WORDS = re.compile(r"(ConfigMap|Deployment) \S+/kueue-fleet-controller on manager would be changed: ")
"""Where quotas follow capacity, the controller has the node pools in the words of the file, and `import` has others."""
CONTROLLER = {
    "multiKueue/dispatcher": "External",
    "multiKueue/external": {"name": "kueue-fleet.dev/dispatcher"},
    "controller": {"image": "example.com/controller:1.2", "replicas": 2, "dispatch": {"step": 2}},
}


def test_without_kueues_configuration_the_controller_says_that_it_dispatches() -> None:
    fleet = parse_fleet(changed(fleet_data(), CONTROLLER))
    given = [replace(item, objects=render_cluster(fleet, item.name)) for item in existing_platform(fleet)]
    identity = Identity(fleet.name, fleet.project, date(2999, 2, 1), date(2026, 11, 21), default_kueue=True)
    assert parse_fleet(adopt_fleet(given, identity).data) == fleet


def test_the_image_of_the_plugin_is_asked_for_where_no_deployment_has_it() -> None:
    credentials = {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}
    fleet = parse_fleet(changed(fleet_data(), {"multiKueue/credentials": credentials}))
    assert adopt(fleet).data["multiKueue"]["credentials"] == credentials
    given = [
        replace(entry, objects=[item for item in entry.objects if item["kind"] != "Deployment"])
        for entry in existing_platform(fleet)
    ]
    identity = Identity(fleet.name, fleet.project, date(2999, 2, 1), date(2026, 11, 21))
    with pytest.raises(SpecError) as refused:
        adopt_fleet(given, identity)
    assert [str(problem) for problem in refused.value.problems] == [
        "multiKueue.credentials.pluginImage: is not known: no Deployment whose pods have gcp-auth-plugin is among the "
        "objects; add the Deployment kueue-controller-manager of the manager to them"
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"multiKueue/dispatcher": "Incremental", "multiKueue/incremental": {"stepSize": 2}},
        {"multiKueue/dispatcher": "External", "multiKueue/external": {"name": "example.com/dispatcher"}},
        CONTROLLER,
        {**CONTROLLER, "teams/0/allowedRegions": ["us-east4"]},
        {**CONTROLLER, "teams/0/budget": {"gpuHours": 100, "per": "week", "enforce": "interruptibleOnly"}},
        {**CONTROLLER, "fleetPage": {}},
        {**CONTROLLER, "fleetPage": {"iap": {"host": "jobs.example.com"}}},
        {**CONTROLLER, "multiKueue/credentials/rotateBy": REMOVED, "multiKueue/credentials/lifetime": "24h"},
        {"multiKueue/gcInterval": "2m", "multiKueue/origin": "europe", "multiKueue/workerLostTimeout": "30m"},
        {"kueue": {"version": "0.19.1", "namespace": "kueue"}},
        {"kueue": {"configuration": {"featureGates": {"ConcurrentAdmission": True}}}},
        {"clusters/1/kueue": {"configuration": {"waitForPodsReady": {"timeout": "10m"}}}},
        {"jobSet": {"enabled": False}, "teams/0/members": ["group:vision@example.com"]},
        {"teams/0/resourceQuota": {"count/jobs.batch": 500}, "teams/0/podSecurity": "restricted"},
        {"teams/0/limitRange": {"default": {"cpu": 2, "memory": "4Gi"}, "defaultRequest": {"cpu": "500m"}}},
        {"teams/0/existingGoogleServiceAccount": "team-jobs@other-project.iam.gserviceaccount.com"},
    ],
)  # fmt: skip
def test_it_is_the_same_fleet_again(change: dict[str, Any]) -> None:
    fleet = parse_fleet(changed(fleet_data(), change))
    assert parse_fleet(adopt(fleet).data) == fleet


def test_the_managers_flavors_have_the_names_again_that_they_have() -> None:
    """One is named after the first flavor of its queues, which may not be the first by name."""
    of_p4 = [{"coveredResources": list(COVERED), "flavors": [flavor_quotas("p4", 2)]}]
    speech = {"name": "speech", "cohortName": "research", "namespaceSelector": {}, "resourceGroups": of_p4}
    data = changed(fleet_data(), {"teams/0/localQueues/+": {"name": "speech", "clusterQueue": "speech"}})
    p4 = {"name": "p4", "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-tesla-p4"}}
    data |= {"flavors": [*reversed(data["flavors"]), p4], "clusterQueues": [*data["clusterQueues"], speech]}
    adopted = adopt(parse_fleet(data))
    assert [note for note in adopted.notes if note.endswith(" is new")] == []
    assert not any("manager" in queue for queue in adopted.data["clusterQueues"])


def test_data_of_teams_is_kept_as_what_exists() -> None:
    """What the fleet made of file servers is left out: their volumes are named by what was not known yet."""
    data = yaml.safe_load((EXAMPLES / "data" / "fleet.yaml").read_text())
    server = {"name": "nfs", "location": "us-central1-a", "address": "10.1.2.3", "share": "vol1"}
    theirs = {"name": "theirs", "teams": ["research"], "volume": {"type": "filestore"}, "readOnly": True}
    data["storage"].append(changed(theirs, {"volume/existing": {"us-central1": server}}))
    data["storage"][0]["mountOptions"] = []
    fleet = parse_fleet(data)
    adopted = adopt(fleet)
    kept = {entry["name"]: entry["volume"]["existing"]["us-central1"] for entry in adopted.data["storage"]}
    disk, bucket = f"{fleet.name}-weights", f"{fleet.project}-{fleet.name}-datasets-us-central1"
    assert kept == {"datasets": bucket, "weights": disk, "theirs": server}
    again = parse_fleet(adopted.data)
    objects = [objects_of(item, item.cluster_names[0]) for item in (fleet, again)]
    volumes = [{key: each[key] for key in each if key[0].startswith("PersistentVolume")} for each in objects]
    assert {
        name.rpartition("/")[2] for kind, name in volumes[0].keys() - volumes[1].keys() if kind.endswith("Claim")
    } == {
        "scratch",
        "home",
    }
    assert volumes[1].items() <= volumes[0].items()


def test_flavors_of_node_pools_name_their_pool_again() -> None:
    of_pools = {
        "clusters/1/mode": "Standard",
        "clusters/2/mode": "Standard",
        "nodePools": POOLS,
        "flavors/0": {"name": "l4", "nodePool": "l4", "tolerations": [{"key": "slow", "operator": "Exists"}]},
        "flavors/1": {"name": "t4", "nodePool": "t4"},
        "clusterQueues/0/admissionChecksStrategy": REMOVED,
        "admissionChecks": REMOVED,
    }
    fleet = parse_fleet(changed(fleet_data(), of_pools))
    again = parse_fleet(adopt(fleet).data)
    assert (again.flavors, again.clusters) == (fleet.flavors, fleet.clusters)
    assert [(pool.name, pool.clusters) for pool in again.node_pools] == [("l4", None), ("t4", ("worker-b",))]


def test_a_check_for_flavors_that_no_worker_of_its_queue_has_is_named() -> None:
    """The clusters have the check without the name of its flavor, so that it would be for every flavor."""
    budget = {"name": "budget", "clusters": ["manager", "worker-a", "worker-b"], "controllerName": "example.com/budget"}
    change = {
        "admissionChecks": [budget],
        "clusterQueues/0/admissionChecksStrategy": {"admissionChecks": [{"name": "budget", "onFlavors": ["t4"]}]},
        "clusterQueues/0/clusters": ["worker-a"],
    }
    adopted = adopt(parse_fleet(changed(fleet_data(), change)))
    named = [note for note in adopted.notes if note.startswith("ClusterQueue vision on worker-a would be changed")]
    assert len(named) == 1
    assert "budget" in named[0]
    assert all(EXPECTED.match(note) for note in adopted.notes)


def test_the_example_of_networks_for_gpus_is_a_fleet_again() -> None:
    data = yaml.safe_load((EXAMPLES / "gpu-networks" / "fleet.yaml").read_text(encoding="utf-8"))
    fleet = parse_fleet(data)
    again = parse_fleet(adopt(fleet).data)
    assert again.cluster("gpus").multi_networking
    pools = [[len(pool.networks) for pool in item.node_pools_on("gpus")] for item in (fleet, again)]
    assert pools[0] == pools[1]


@settings(max_examples=examples(40), deadline=None)
@given(fleets())
def test_any_fleet_renders_the_same_or_names_what_it_left_out(fleet: FleetSpec) -> None:
    adopted = adopt(fleet)
    reading = read_fleet(adopted.data)
    if reading.fleet is None:  # What Google Cloud alone knows is asked for by check.
        no_nodes = re.compile(
            "add a node pool, or nodeAutoProvisioning to the cluster|"  # A calendar pool has no nodes before its start.
            r"write \d+, or autoscaling with a maximum instead, or lower nominalQuota to 0"
        )
        assert [str(item) for item in errors_of(reading.problems) if not no_nodes.fullmatch(item.fix)] == []
        return
    assert lost_unsaid(fleet, reading.fleet, adopted.notes) == []
    follows = any(queue.quota_follows == "capacity" or queue.windows for queue in fleet.cluster_queues)
    named = [note for note in adopted.notes if not EXPECTED.match(note)]
    assert [note for note in named if not (follows and OTHER_WORDS.match(note))] == []


def lost_unsaid(fleet: FleetSpec, again: FleetSpec, notes: Sequence[str]) -> list[str]:
    """Objects and node pools that are not the same in the imported fleet, and that no note names."""
    lost = []
    for cluster in fleet.cluster_names:
        objects = [objects_of(side, cluster) for side in (fleet, again)]
        pools = [{pool.name: printed_pool(pool) for pool in side.node_pools_on(cluster)} for side in (fleet, again)]
        for (kind, name), before, after in _changed(*objects):
            if not any(kind in note and name in note and cluster in note for note in notes):
                lost.append(f"{kind} {name} of {cluster}: {before} -> {after}")
        for name, before, after in _changed(*pools):
            if not any(f"node pool {name} of {cluster}" in note for note in notes):
                lost.append(f"node pool {name} of {cluster}: {before} -> {after}")
    return lost


def _changed(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for key in {**before, **after}:
        if before.get(key) != after.get(key):
            yield key, before.get(key), after.get(key)
