"""GPUs that are shared or divided: what a node has of them, its labels, and what GKE takes."""

from __future__ import annotations

import pytest

from kueue_admission.kernel.unknown import UNKNOWN, NotKnownError
from kueue_fleet.gke.csv_tables import read_table
from kueue_fleet.gke.gpu_sharing import CLIENTS, GpuSharing, accelerators_of_node
from kueue_fleet.gke.labels import (
    ACCELERATOR,
    GPU_PARTITION_SIZE,
    GPU_SHARING_STRATEGY,
    MAX_SHARED_CLIENTS,
    SHARING_LABELS,
)
from kueue_fleet.gke.machines import gpus
from kueue_fleet.gke.pool import Gpus, Pool
from kueue_fleet.gke.pool_nodes import known_labels, node_labels

BY_TURNS = GpuSharing(strategy="TIME_SHARING", clients=5)
SEVENTHS = GpuSharing("1g.10gb")
BOTH = GpuSharing("2g.20gb", "MPS", 5)
A100 = "nvidia-a100-80gb"


@pytest.mark.parametrize(
    ("sharing", "devices"), [(GpuSharing(), 4), (BY_TURNS, 20), (SEVENTHS, 28), (BOTH, 60)], ids=str
)
def test_a_node_has_a_device_for_each_share(sharing: GpuSharing, devices: int) -> None:
    """The last is the example that GKE's own autoscaler gives: 4 GPUs, 3 partitions, 5 containers."""
    pool = Pool(machine_type="a2-ultragpu-4g", gpus=(Gpus(sharing=sharing),))
    assert pool.machine is not None
    assert (pool.machine.allocatable["nvidia.com/gpu"], pool.gpus_per_node) == (devices, 4)


def test_attached_gpus_are_shared_too() -> None:
    pool = Pool(machine_type="n1-standard-8", gpus=(Gpus("nvidia-tesla-t4", 2, BY_TURNS),))
    assert pool.machine is not None
    assert pool.machine.capacity["nvidia.com/gpu"] == 10


def test_labels_are_those_of_gke() -> None:
    pool = Pool(machine_type="a2-ultragpu-1g", gpus=(Gpus(sharing=BOTH),), region="us-central1", zone_count=1)
    result = {key: value for key, value in known_labels(pool).items() if key in SHARING_LABELS}
    assert result == {GPU_PARTITION_SIZE: "2g.20gb", GPU_SHARING_STRATEGY: "mps", MAX_SHARED_CLIENTS: "5"}


def test_labels_of_gpus_that_are_not_known_are_not_known() -> None:
    labels = node_labels(Pool(machine_type="a2-ultragpu-1g", gpus=UNKNOWN))  # type: ignore[arg-type]
    assert [labels[key] for key in SHARING_LABELS] == [UNKNOWN] * 3


@pytest.mark.parametrize("sharing", [BY_TURNS, SEVENTHS, BOTH, GpuSharing()], ids=str)
def test_labels_say_how_gpus_are_shared(sharing: GpuSharing) -> None:
    assert GpuSharing.of_labels(sharing.labels) == sharing


def test_auto_provisioning_has_defaults() -> None:
    assert GpuSharing.of_labels({GPU_SHARING_STRATEGY: "mps"}) == GpuSharing(None, "MPS", 2)
    assert GpuSharing.of_labels({MAX_SHARED_CLIENTS: "3"}) == GpuSharing(None, "TIME_SHARING", 3)


@pytest.mark.parametrize(
    ("sharing", "gpus_of_node", "most"),
    [
        (GpuSharing(), 2, None),
        (SEVENTHS, 1, None),
        (BY_TURNS, 1, 1),
        (BOTH, 1, 1),
        (GpuSharing(None, "MPS", 5), 1, 5),
        (GpuSharing(None, "MPS", 5), 2, 1),
        (GpuSharing("7g.80gb", "MPS", 5), 1, 5),
    ],
    ids=str,
)
def test_a_container_has_one_share_but_for_mps_on_one_device(
    sharing: GpuSharing, gpus_of_node: int, most: int | None
) -> None:
    assert sharing.most_in_container(A100, gpus_of_node) == most


def test_whole_gpus_of_a_node_are_counted_from_its_shares() -> None:
    labels = {ACCELERATOR: A100, **BOTH.labels}
    assert accelerators_of_node({"nvidia.com/gpu": 60, "cpu": 8}, labels) == 4


def test_partitions_of_gpus_that_are_not_known_are_not_known() -> None:
    with pytest.raises(NotKnownError):
        SEVENTHS.shares("nvidia-x100")
    assert list(SEVENTHS.faults("nvidia-x100")) == []


@pytest.mark.parametrize(
    ("sharing", "wrong"),
    [
        (GpuSharing("4g.40gb"), "is 4g.40gb, of which GKE makes none of nvidia-a100-80gb"),
        (GpuSharing(None, "time-slicing", 4), "is time-slicing, which is not a strategy of GKE"),
        (GpuSharing(None, "MPS", None), "is not a number, but between 2 and 48 containers share a GPU"),
    ],
    ids=str,
)
def test_what_gke_does_not_make_by_itself(sharing: GpuSharing, wrong: str) -> None:
    [result] = sharing.faults(A100, auto_provisioned=True)
    assert result.wrong == wrong


def test_partitions_are_of_gpus_of_the_catalogue_and_at_most_seven() -> None:
    for row in read_table("gpu_partitions"):
        assert row["accelerator"] in gpus(), row
        assert 1 <= int(row["count"]) <= 7, row
        assert row["autoProvisioned"] in ("yes", "no"), row
    assert (CLIENTS[0], CLIENTS[-1]) == (2, 48)
