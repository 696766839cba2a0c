"""How much of each quota a fleet takes up, at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import fleet_data, standalone_data
from tests.preflight import projects
from tests.preflight.google_api import description

from company_fleet import company_data
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.gke.machines import gpus
from kueue_fleet.google.resources import resources_on
from kueue_fleet.preflight.needs import Needs, needs_of
from kueue_fleet.preflight.quotas import Metric, quota_needs

EXAMPLES = Path(__file__).parents[2] / "examples"
STORAGE = {
    Metric("HDML_TOTAL_GB", "us-central1"): 200,
    Metric("EnterpriseStorageGibPerRegion", "us-central1", unread="file.googleapis.com"): 1024,
    Metric("capacity", "us-central1", unread="lustre.googleapis.com"): 9000,
}
METRICS = description("compute", "v1")["schemas"]["Quota"]["properties"]["metric"]["enum"]


def amounts(data: dict[str, Any]) -> dict[str, int]:
    return {
        f"{need.metric} {need.metric.region}".strip(): need.amount
        for need in quota_needs(parse_fleet(data), data["project"])
    }


def of_pool(**fields: Any) -> dict[str, int]:
    """What a pool of up to 3 nodes takes up beside the system pool, in us-central1."""
    data = projects.fleet_data()
    bare = amounts(data | {"nodePools": [], "reservations": []})
    with_pool = amounts(data | {"nodePools": [projects.pool("pool", 3, **fields)], "reservations": []})
    return {
        name.removesuffix(" us-central1"): amount - bare.get(name, 0)
        for name, amount in with_pool.items()
        if amount != bare.get(name, 0)
    }


DISKS = {"INSTANCES": 3, "SSD_TOTAL_GB": 300}
HYPERDISKS = {"INSTANCES": 3, "HDB_TOTAL_GB": 300, "HDB_TOTAL_IOPS": 1800, "HDB_TOTAL_THROUGHPUT": 450}


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ({}, {**DISKS, "NVIDIA_L4_GPUS": 6, "GPUS_ALL_REGIONS": 6}),
        ({"capacity": {"type": "spot"}}, {**DISKS, "PREEMPTIBLE_NVIDIA_L4_GPUS": 6, "GPUS_ALL_REGIONS": 6}),
        ({"capacity": {"type": "flexStart"}}, {**DISKS, "PREEMPTIBLE_NVIDIA_L4_GPUS": 6, "GPUS_ALL_REGIONS": 6}),
        (
            {"machineType": "a3-highgpu-8g", "capacity": {"type": "spot"}},
            {**DISKS, "PREEMPTIBLE_NVIDIA_H100_GPUS": 24, "GPUS_ALL_REGIONS": 24},
        ),
        (
            {"machineType": "a3-highgpu-8g"},
            {**DISKS, "GPUS_PER_GPU_FAMILY NVIDIA_H100": 24, "GPUS_ALL_REGIONS": 24},
        ),
        ({"machineType": "e2-standard-4"}, {**DISKS, "CPUS": 12, "CPUS_ALL_REGIONS": 12}),
        (
            {"machineType": "n2-standard-4", "capacity": {"type": "spot"}},
            {**DISKS, "PREEMPTIBLE_CPUS": 12, "CPUS_ALL_REGIONS": 12},
        ),
        (
            {"machineType": "ct5lp-hightpu-4t", "capacity": {"type": "spot"}},
            {**DISKS, "PREEMPTIBLE_TPU_LITE_PODSLICE_V5": 12},
        ),
        (
            {"machineType": "ct5p-hightpu-4t"},
            {**DISKS, "TPU_V5P": 12},
        ),
        ({"machineType": "ct5p-hightpu-4t", "capacity": {"type": "spot"}}, {**DISKS, "PREEMPTIBLE_TPU_V5P": 12}),
        ({"machineType": "ct6e-standard-4t"}, {**HYPERDISKS, "TPUS_PER_TPU_FAMILY CT6E": 12}),
        ({"machineType": "tpu7x-standard-4t"}, {**HYPERDISKS, "TPUS_PER_TPU_FAMILY tpu7x": 12}),
        (
            {"machineType": "tpu7x-standard-4t", "capacity": {"type": "flexStart"}},
            {**HYPERDISKS, "PREEMPTIBLE_TPU7X": 12},
        ),
        ({"machineType": "n2-standard-4"}, {**DISKS, "N2_CPUS": 12, "CPUS_ALL_REGIONS": 12}),
        (
            {"machineType": "n1-standard-4", "accelerator": {"type": "nvidia-tesla-t4", "count": 2}},
            {**DISKS, "CPUS": 12, "CPUS_ALL_REGIONS": 12, "NVIDIA_T4_GPUS": 6, "GPUS_ALL_REGIONS": 6},
        ),
        (
            {"machineType": "n2-standard-4", "localSsdCount": 2, "diskType": "pd-standard", "diskSizeGb": 50},
            {
                "INSTANCES": 3,
                "DISKS_TOTAL_GB": 150,
                "LOCAL_SSD_TOTAL_GB": 2250,
                "N2_CPUS": 12,
                "CPUS_ALL_REGIONS": 12,
            },
        ),
        (
            {"localSsdCount": 2, "capacity": {"type": "spot"}},
            {**DISKS, "PREEMPTIBLE_LOCAL_SSD_GB": 2250, "PREEMPTIBLE_NVIDIA_L4_GPUS": 6, "GPUS_ALL_REGIONS": 6},
        ),
        (
            {"capacity": {"type": "reserved", "reservation": "r", "project": "their-project"}},
            {**DISKS, "NVIDIA_L4_GPUS": 6, "GPUS_ALL_REGIONS": 6},
        ),
        ({"capacity": {"type": "reserved", "reservation": "r"}}, DISKS),
        ({"capacity": {"type": "reserved", "reservation": "r", "project": "my-project"}}, DISKS),
        (
            {"machineType": "x9-standard-4", "accelerator": {"type": "nvidia-l4", "count": 1}},
            {**DISKS, "NVIDIA_L4_GPUS": 3, "GPUS_ALL_REGIONS": 3},
        ),
    ],
)
def test_what_a_pool_takes_up(fields: dict[str, Any], taken: dict[str, int]) -> None:
    assert of_pool(**fields) == taken


def test_a_reservation_takes_up_what_its_machines_do() -> None:
    gpus = {"type": "nvidia-tesla-t4", "count": 4}
    entry = {"name": "r", "zone": "us-central1-a", "machineType": "n1-standard-4", "count": 3, "accelerator": gpus}
    data = projects.fleet_data() | {"nodePools": [], "reservations": [{**entry, "localSsdCount": 1}]}
    result = amounts(data)
    assert result["NVIDIA_T4_GPUS us-central1"] == result["GPUS_ALL_REGIONS"] == 12
    assert result["CPUS us-central1"] == 3 * 4 + 3 * 4, "and the system pool"
    assert (result["LOCAL_SSD_TOTAL_GB us-central1"], result["RESERVATIONS us-central1"]) == (1125, 1)


def test_flavors_without_pools_take_up_what_queues_may_use() -> None:
    result = amounts(fleet_data())
    assert result["NVIDIA_L4_GPUS us-east4"] == result["NVIDIA_L4_GPUS europe-west4"] == 12
    assert result["PREEMPTIBLE_NVIDIA_T4_GPUS europe-west4"] == 2, "its jobs get nodes by DWS"
    assert result["GPUS_ALL_REGIONS"] == 26
    spot = standalone_data()
    spot["flavors"][0]["nodeLabels"]["cloud.google.com/gke-spot"] = "true"
    assert amounts(spot)["PREEMPTIBLE_NVIDIA_L4_GPUS us-central1"] == 4


def test_preemptible_amounts_know_what_they_count_as_without_such_a_quota() -> None:
    result = {need.metric: need for need in quota_needs(projects.fleet(), "my-project")}
    spot = result[Metric("PREEMPTIBLE_NVIDIA_L4_GPUS", "us-central1")]
    assert (spot.amount, spot.standard) == (16, Metric("NVIDIA_L4_GPUS", "us-central1"))
    assert spot.reasons == {"only/l4-spot": 16}
    h100 = result[Metric("PREEMPTIBLE_NVIDIA_H100_GPUS", "us-central1")]
    assert h100.standard == Metric("GPUS_PER_GPU_FAMILY", "us-central1", "NVIDIA_H100")


def test_networks_and_commitments() -> None:
    data = company_data()
    result = amounts(data)
    assert (result["NETWORKS"], result["SUBNETWORKS"], result["ROUTERS"]) == (1, 3, 3)
    for entry in data["commitments"]:
        assert result[f"COMMITMENTS {entry['region']}"] >= 1


def test_what_is_made_for_storage_counts_and_what_exists_does_not() -> None:
    data = yaml.safe_load((EXAMPLES / "data" / "fleet.yaml").read_text())
    there = {item.metric: item.amount for item in quota_needs(parse_fleet(data), data["project"])}
    of_storage = {metric: amount for metric, amount in there.items() if metric.unread or "HDML" in metric.name}
    assert of_storage == STORAGE


def test_networks_for_gpus_count_beside_those_of_the_fleet() -> None:
    data = yaml.safe_load((EXAMPLES / "gpu-networks" / "fleet.yaml").read_text())
    fleet = parse_fleet(data)
    results = {need.metric.name: need.reasons for need in quota_needs(fleet, fleet.project)}
    result = list(resources_on(fleet))
    for metric, kind in (("NETWORKS", "network:Network"), ("SUBNETWORKS", "subnetwork:Subnetwork")):
        assert sum(results[metric].values()) == sum(item.type == f"gcp:compute/{kind}" for item in result)
    assert len(results["NETWORKS"]) > 1


def test_metrics_are_those_of_the_api() -> None:
    for kind in sorted(gpus()):
        for capacity in ({"type": "onDemand"}, {"type": "spot"}):
            gpu = {"type": kind, "count": 1}
            for name in of_pool(machineType="x9-standard-4", accelerator=gpu, capacity=capacity):
                if name.startswith("GPUS_PER_GPU_FAMILY NVIDIA_"):
                    continue
                # Later kinds of GPU have such a quota too, but the description does not list them.
                assert name in METRICS or name.startswith("PREEMPTIBLE_NVIDIA_"), (kind, name)


def test_a_cluster_that_exists_asks_for_no_network() -> None:
    data = projects.fleet_data()
    result, there = (
        needs_of(parse_fleet(data | {"clusters": [{**data["clusters"][0], **more}]}))[0]
        for more in ({}, {"existing": True})
    )

    def asked(needs: Needs) -> tuple[set[str], int, set[str]]:
        permissions = {permission for need in needs.roles for permission in need.permissions}
        network = {need.metric.name for need in needs.quotas} & {"NETWORKS", "SUBNETWORKS", "ROUTERS"}
        creates = {"container.clusters.create", "compute.networks.create", "compute.subnetworks.create"}
        return network, len(needs.ranges), permissions & creates

    assert all(asked(result))
    assert not any(asked(there))
