"""What queues promise against what nodes hold."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, problems
from tests.fleet_file.pool_builders import (
    ACCELERATOR,
    FLAVORS,
    GPU,
    IN_TURN,
    SPOT_LABEL,
    flavor_quota,
    limits,
    nap,
    pools_data,
)

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "GPUs beyond nodes": (
        {FLAVORS + "/0": flavor_quota("reserved", 9)},
        [
            (
                "flavors[reserved]: queues may use 9 nvidia.com/gpu of it on batch (gpu 9), but its nodes hold 8 "
                "(nodes: reserved 4); lower nominalQuota to 8 in all, or add nodes"
            ),
        ],
    ),
    "CPU beyond nodes": (
        {FLAVORS + "/0/resources/1/nominalQuota": 96, FLAVORS + "/0/resources/2/nominalQuota": "1Ti"},
        [
            (
                "warning: flavors[reserved]: queues may use 96 cpu of it on batch (gpu 96), but its nodes hold "
                "95480m (nodes: reserved 4); lower nominalQuota to 95480m in all, or add nodes"
            ),
            (
                "warning: flavors[reserved]: queues may use 1024Gi memory of it on batch (gpu 1024Gi), but its nodes "
                "hold 354Gi (nodes: reserved 4); lower nominalQuota to 354Gi in all, or add nodes"
            ),
        ],
    ),
    "two queues beyond nodes": (
        {
            "clusterQueues/+": {
                "name": "more",
                "namespaceSelector": {},
                "resourceGroups": [
                    {"coveredResources": [GPU, "cpu", "memory"], "flavors": [flavor_quota("reserved", 5)]}
                ],
            },
            "teams/0/localQueues/+": {"name": "m", "clusterQueue": "more"},
        },
        [
            (
                "flavors[reserved]: queues may use 9 nvidia.com/gpu of it on batch (gpu 4, more 5), but its nodes "
                "hold 8 (nodes: reserved 4); lower nominalQuota to 8 in all, or add nodes"
            ),
        ],
    ),
    "cohort beyond nodes": (
        {
            "cohorts": [
                {
                    "name": "all",
                    "resourceGroups": [
                        {
                            "coveredResources": [GPU],
                            "flavors": [{"name": "reserved", "resources": [{"name": GPU, "nominalQuota": 5}]}],
                        }
                    ],
                }
            ],
            "clusterQueues/0/cohortName": "all",
        },
        [
            (
                "flavors[reserved]: queues may use 9 nvidia.com/gpu of it on batch (gpu 4, all 5), but its nodes "
                "hold 8 (nodes: reserved 4); lower nominalQuota to 8 in all, or add nodes"
            ),
        ],
    ),
    "calendar beyond nodes": (
        {FLAVORS + "/4": flavor_quota("calendar", 5)},
        [
            (
                "flavors[calendar]: queues may use 5 nvidia.com/gpu of it on batch (gpu 5), but its nodes hold 4 "
                "(nodes: calendar 2); lower nominalQuota to 4 in all, or add nodes"
            ),
        ],
    ),
    "nodes that another flavor counts": (
        {
            "flavors/+": {"name": "any-l4", "nodeLabels": {ACCELERATOR: "nvidia-l4"}},
            FLAVORS: [flavor_quota("any-l4", 2), *map(flavor_quota, IN_TURN)],
        },
        [
            (
                "warning: flavors[any-l4].nodeLabels: lead on batch to the nodes of reserved, on-demand, spot, "
                "flex, queued, calendar too, so that its jobs can take nodes that those flavors' quota counts; "
                "write nodePool instead of nodeLabels, or add labels that only its own nodes have"
            )
        ],
    ),
    "no nodes at all": (
        {"nodePools/0/nodeCount": 0},
        [
            "nodePools[reserved].nodeCount: is 0, but queues may use 4 nvidia.com/gpu of flavor reserved on batch (gpu "
            "4); write 2, or autoscaling with a maximum instead, or lower nominalQuota to 0",
        ],
    ),
    "CPUs of another unit": (
        {FLAVORS + "/0/resources/1/nominalQuota": "400m"},
        [
            "warning: clusterQueues[gpu].resourceGroups[0].flavors[reserved].resources[cpu].nominalQuota: 400m cpu is "
            "less than a hundredth of what nodes with 4 nvidia.com/gpu have, 47, so that jobs that ask for as much as "
            "a node has leave most of these without use; check the unit; for all of them, write 47",
        ],
    ),
    "memory of another unit on one cluster": (
        {FLAVORS + "/0/resources/2/perCluster": {"batch": {"nominalQuota": "150Mi"}}},
        [
            "warning: clusterQueues[gpu].resourceGroups[0].flavors[reserved].resources[memory].perCluster[batch]."
            "nominalQuota: 150Mi memory is less than a hundredth of what nodes with 4 nvidia.com/gpu have, 177Gi, so "
            "that jobs that ask for as much as a node has leave most of these without use; check the unit; for all of "
            "them, write 177Gi",
        ],
    ),
    "GPUs of machines that have none": (
        {"nodePools/1/machineType": "e2-standard-16"},
        [
            "flavors[on-demand]: queues may use 4 nvidia.com/gpu of it on batch (gpu 4), but its nodes hold 0 (nodes: "
            "on-demand 24); lower nominalQuota to 0 in all, or use machines that have nvidia.com/gpu, or attach them "
            "to N1 machines",
        ],
    ),
    "shared nodes": (
        {
            "flavors/+": {
                "name": "any-l4",
                "nodeLabels": {ACCELERATOR: "nvidia-l4", "cloud.google.com/gke-provisioning": "spot"},
            },
            FLAVORS: [flavor_quota("reserved"), flavor_quota("any-l4", 70), *map(flavor_quota, IN_TURN[1:])],
        },
        [
            (
                "warning: flavors[any-l4]: flavors spot, any-l4 share nodes on batch, and queues may use 74 "
                "nvidia.com/gpu of them, but the nodes hold 72; give each flavor a node pool of its own, or "
                "lower nominalQuota"
            )
        ],
    ),
    "NAP too small": (
        nap(limits(nvidia_l4=15), nodeLabels={ACCELERATOR: "nvidia-l4", SPOT_LABEL: "true"}),
        [
            (
                "warning: clusters[batch].nodeAutoProvisioning.resourceLimits: nvidia-l4 15, but queues may use 16; "
                "set its maximum to 16, or lower nominalQuota"
            ),
        ],
    ),
    "NAP cpu": (
        nap(limits(cpu=100, memory=400), nodeLabels={ACCELERATOR: "nvidia-l4", SPOT_LABEL: "true"}),
        [
            (
                "warning: clusters[batch].nodeAutoProvisioning.resourceLimits: cpu 100, but queues may use 160; "
                "raise its maximum, or lower nominalQuota"
            ),
            (
                "warning: clusters[batch].nodeAutoProvisioning.resourceLimits: memory 400, but queues may use 600Gi; "
                "raise its maximum, or lower nominalQuota"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_quota_of_two_flavors_of_one_name_is_compared_with_neither() -> None:
    """Pool spot holds the quota, pool reserved does not."""
    twice = {"flavors/1": {"name": "spot", "nodePool": "reserved"}, FLAVORS: [flavor_quota("spot", 60)]}
    assert not [text for text in problems(changed(pools_data(), twice)) if "queues may use" in text]


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []
