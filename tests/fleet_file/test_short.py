"""The short constructors: what they make, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kueue_fleet as kf

UNTYPED: Any = kf.Worker
"""Without what a type checker refuses already."""
GPU_POOL: dict[str, Any] = {"name": "h100", "machine_type": "a3-highgpu-8g"}


@pytest.mark.parametrize(
    ("short", "entry"),
    [
        (kf.Manager("m", "us-central1"), kf.ClusterEntry(name="m", role="manager", region="us-central1")),
        (
            kf.Worker("std", "us-central1", mode="Standard"),
            kf.ClusterEntry(name="std", role="worker", region="us-central1", mode="Standard"),
        ),
        (kf.Standalone("one", "us-central1"), kf.ClusterEntry(name="one", role="standalone", region="us-central1")),
        (
            kf.Pool("h100", "a3-highgpu-8g", nodes=1, capacity=kf.Reserved("block-1")),
            kf.NodePoolEntry(**GPU_POOL, node_count=1, capacity=kf.Reserved(type="reserved", reservation="block-1")),
        ),
        (
            kf.Pool("h100", "a3-highgpu-8g", max_nodes=4, capacity=kf.FlexStart(max_run_duration="72h")),
            kf.NodePoolEntry(
                **GPU_POOL,
                autoscaling=kf.PoolAutoscaling(total_max_node_count=4),
                capacity=kf.FlexStart(type="flexStart", max_run_duration=kf.Duration("72h")),
            ),
        ),
        (
            kf.Flavor("l4", gpu="nvidia-l4", spot=True),
            kf.FlavorEntry(
                name="l4",
                node_labels={"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-spot": "true"},
            ),
        ),
    ],
)
def test_it_makes_the_entry(short: object, entry: object) -> None:
    assert short == entry
    assert type(short) is type(entry)


def test_a_quota_limits_what_is_borrowed_of_gpus() -> None:
    gpu, cpu, memory = kf.Quota(gpu=4, cpu=36, memory="160Gi", borrow=4)
    assert gpu == kf.FleetResourceQuota(name="nvidia.com/gpu", nominal_quota=4, borrowing_limit=4)
    assert cpu == kf.FleetResourceQuota(name="cpu", nominal_quota=36)
    assert memory == kf.FleetResourceQuota(name="memory", nominal_quota="160Gi")


def test_a_queue_covers_what_its_flavors_have() -> None:
    queue = kf.Queue("prod", {"h100": kf.Quota(gpu=4, cpu=36), "l4": kf.Quota(gpu=2, cpu=9)}, checks={"dws": ["h100"]})
    [group] = queue.resource_groups
    assert list(group.covered_resources) == ["nvidia.com/gpu", "cpu"]
    assert [(rule.name, tuple(rule.on_flavors)) for rule in queue.check_rules] == [("dws", ("h100",))]
    assert queue.namespace_selector == kf.LabelSelector()


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: UNTYPED("std"), "ClusterEntry.region: is missing"),
        (lambda: kf.Pool(**GPU_POOL, min_nodes=1), "total_max_node_count"),
        (lambda: kf.Quota(cpu=1, borrow=1), "limits of gpu and tpu"),
        (lambda: kf.Queue("q", {"a": kf.Quota(gpu=1), "b": kf.Quota(cpu=1)}), "no quota for"),
    ],
)
def test_mistakes_are_refused(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(kf.SpecError, match=said):
        mistake()
