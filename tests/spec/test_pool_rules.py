"""The rules of GKE for one node pool."""

from __future__ import annotations

from typing import Any

import pytest

from spec.builders import REMOVED, changed, problems
from spec.pool_builders import ZONES, pools_data, scaled


def p(index: int, field: str) -> str:
    """Path of a field of a pool."""
    return f"nodePools/{index}/{field}"


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "fixed and autoscaled": (
        {p(0, "autoscaling"): scaled(4)},
        [
            "nodePools[reserved].nodeCount: 4 is set, but so is autoscaling; keep one of the two",
        ],
    ),
    "fixed and initial": (
        {p(0, "initialNodeCount"): 1},
        [
            (
                "nodePools[reserved].initialNodeCount: 1 is set, but nodeCount fixes the size; remove "
                "initialNodeCount, or use autoscaling instead of nodeCount"
            ),
        ],
    ),
    "no size": (
        {p(1, "autoscaling"): REMOVED},
        [
            ("nodePools[on-demand].nodeCount: neither it nor autoscaling is set; write how many nodes the pool has"),
        ],
    ),
    "initial beyond limits": (
        {p(1, "initialNodeCount"): 9, p(1, "zones"): ZONES},
        [
            (
                "nodePools[on-demand].initialNodeCount: 9 in each of 3 zones is not between the limits of "
                "autoscaling, 0 and 24; write a number within the limits, or remove it"
            ),
        ],
    ),
    "minimum above maximum": (
        {p(1, "autoscaling"): scaled(2, 3)},
        [
            (
                "nodePools[on-demand].autoscaling.totalMinNodeCount: 3 is more than totalMaxNodeCount, 2; write a "
                "smaller minimum"
            ),
        ],
    ),
    "sub-block without block": (
        {p(0, "capacity"): {"type": "reserved", "reservation": "l4", "subBlock": "s"}},
        [
            ("nodePools[reserved].capacity.subBlock: s is set, but no block; set block too, or remove subBlock"),
        ],
    ),
    "block without zones": (
        {
            p(0, "capacity"): {"type": "reserved", "reservation": "other", "block": "b"},
            p(0, "zones"): REMOVED,
            "reservations": [],
        },
        [
            (
                "nodePools[reserved].zones: not set, but block b of the reservation is in one zone; name the zone of "
                "the reservation"
            ),
        ],
    ),
    "spot with reservation": (
        {p(2, "capacity"): {"type": "spot", "reservation": "l4"}},
        [
            "nodePools[spot].capacity.reservation: is not a known field; remove it, or use one of type",
        ],
    ),
    "flex-start with reservation": (
        {p(3, "capacity"): {"type": "flexStart", "reservation": "l4"}},
        [
            (
                "nodePools[flex].capacity.reservation: is not a known field; remove it, or use one of "
                "maxRunDuration, queuedProvisioning, type"
            ),
            (
                "clusterQueues[gpu].admissionChecksStrategy: no check asks for nodes of flex on batch, which come "
                "only when asked for, so jobs on flavor flex never start; add an admission check with "
                "provisioningRequest of class queued-provisioning.gke.io, onFlavors [flex]"
            ),
        ],
    ),
    "on demand with reservation": (
        {p(1, "capacity"): {"type": "onDemand", "reservation": "l4"}},
        [
            ("nodePools[on-demand].capacity.reservation: is not a known field; remove it, or use one of type"),
        ],
    ),
    "reserved without name": (
        {p(0, "capacity"): {"type": "reserved"}},
        [
            "nodePools[reserved].capacity.reservation: is missing; add reservation",
        ],
    ),
    "unknown capacity": (
        {p(0, "capacity"): {"type": "flexstart"}},
        [
            (
                'nodePools[reserved].capacity.type: "flexstart" is not allowed; did you mean flexStart? Allowed: '
                "reserved, onDemand, spot, flexStart, calendar"
            ),
        ],
    ),
    "flex-start fixed": (
        {p(3, "autoscaling"): REMOVED, p(3, "nodeCount"): 2},
        [
            (
                "nodePools[flex].nodeCount: 2 is fixed, but flex-start nodes come and go; write autoscaling: "
                "{totalMaxNodeCount: ...} instead"
            ),
        ],
    ),
    "flex-start repaired": (
        {p(3, "management"): {"autoRepair": True}},
        [
            (
                "nodePools[flex].management.autoRepair: true, but flex-start has no repair; remove it, or set it to "
                "false"
            ),
        ],
    ),
    "flex-start too long": (
        {p(3, "capacity/maxRunDuration"): "169h"},
        [
            (
                "nodePools[flex].capacity.maxRunDuration: 169h is no run time that DWS grants; write between 1s and "
                "168h, which is seven days"
            ),
        ],
    ),
    "flex-start part of a second": (
        {p(3, "capacity/maxRunDuration"): "90500ms"},
        [
            "nodePools[flex].capacity.maxRunDuration: 90500ms is not whole seconds; round it to seconds",
        ],
    ),
    "queued from one": (
        {p(4, "autoscaling"): scaled(8, 1)},
        [
            (
                "nodePools[queued].autoscaling.totalMinNodeCount: 1, but nodes of queued provisioning come only when "
                "asked for; set it to 0"
            ),
        ],
    ),
    "queued with initial nodes": (
        {p(4, "initialNodeCount"): 1},
        [
            (
                "nodePools[queued].initialNodeCount: 1, but nodes of queued provisioning come only when asked for; "
                "remove it"
            ),
        ],
    ),
    "queued balanced": (
        {p(4, "autoscaling"): scaled(8, locationPolicy="BALANCED")},
        [
            (
                "nodePools[queued].autoscaling.locationPolicy: BALANCED, but queued provisioning takes all nodes "
                "where they are; set it to ANY, or remove it"
            ),
        ],
    ),
    "compact in three zones": (
        {p(1, "compactPlacement"): True, p(1, "zones"): ZONES},
        [
            (
                "nodePools[on-demand].zones: us-central1-a, us-central1-b, us-central1-c are 3, but nodes stand "
                "close together in one zone only; name exactly one zone"
            ),
        ],
    ),
    "compact in the cluster's zones": (
        {p(1, "compactPlacement"): True},
        [
            (
                "nodePools[on-demand].zones: none are named, and cluster batch has more than one, but nodes stand "
                "close together in one zone only; name exactly one zone"
            ),
        ],
    ),
    "compact and queued": (
        {p(4, "compactPlacement"): True, p(4, "zones"): ZONES[:1]},
        [
            (
                "nodePools[queued].compactPlacement: true, but queued provisioning takes nodes where they are; "
                "remove it, or set capacity.queuedProvisioning to false"
            ),
        ],
    ),
    "compact and flex-start": (
        {p(3, "compactPlacement"): True, p(3, "zones"): ZONES[:1]},
        [
            (
                "nodePools[flex].compactPlacement: true, but flex-start places g2-standard-24 nowhere in particular; "
                "remove it, or use A3 Ultra, A4 or H4D machines"
            ),
        ],
    ),
    "no surge": (
        {p(1, "upgrade"): {"maxSurge": 0}},
        [
            (
                "nodePools[on-demand].upgrade.maxSurge: maxSurge and maxUnavailable are both 0; set at least one of "
                "them to 1"
            ),
        ],
    ),
    "no upgrades": (
        {p(1, "management"): {"autoUpgrade": False}},
        [
            (
                "nodePools[on-demand].management.autoUpgrade: false, but the cluster is on a release channel, which "
                "upgrades its nodes; remove it, and say when with the cluster's maintenance"
            ),
        ],
    ),
    "no repair": (
        {p(1, "management"): {"autoRepair": False}},
        [
            (
                "nodePools[on-demand].management.autoRepair: false, but the cluster is on a release channel, which "
                "repairs its nodes; remove it"
            ),
        ],
    ),
    "other accelerator": (
        {p(1, "accelerator"): {"type": "nvidia-tesla-t4", "count": 4}},
        [
            (
                "nodePools[on-demand].accelerator.type: nvidia-tesla-t4, but g2-standard-24 comes with nvidia-l4; "
                "write nvidia-l4, or remove it"
            ),
            ("nodePools[on-demand].accelerator.count: 4, but g2-standard-24 comes with 2; write 2, or remove it"),
        ],
    ),
    "GPUs on E2": (
        {p(1, "machineType"): "e2-standard-8", p(1, "accelerator"): {"type": "nvidia-tesla-t4", "count": 1}},
        [
            (
                "nodePools[on-demand].accelerator: set, but e2-standard-8 takes no GPUs; remove it, or use a machine "
                "with GPUs"
            ),
        ],
    ),
    "N1 without count": (
        {p(1, "machineType"): "n1-standard-8", p(1, "accelerator"): {"type": "nvidia-tesla-t4"}},
        [
            (
                "nodePools[on-demand].accelerator: type or count is missing, and n1-standard-8 has none of its own; "
                "write both, such as {type: nvidia-tesla-t4, count: 1}"
            ),
            (
                "flavors[on-demand]: queues may use 4 nvidia.com/gpu of it on batch (gpu 4), but its nodes hold 0 "
                "(nodes: on-demand 24); lower nominalQuota to 0 in all, or add nodes"
            ),
        ],
    ),
    "N1 with L4": (
        {p(1, "machineType"): "n1-standard-8", p(1, "accelerator"): {"type": "nvidia-l4", "count": 1}},
        [
            (
                "nodePools[on-demand].accelerator.type: nvidia-l4 cannot be attached to n1-standard-8; use one of "
                "nvidia-tesla-t4, nvidia-tesla-p4, nvidia-tesla-p100, nvidia-tesla-v100, or a machine type that "
                "comes with it"
            ),
        ],
    ),
    "N1 with three": (
        {p(1, "machineType"): "n1-standard-8", p(1, "accelerator"): {"type": "nvidia-tesla-t4", "count": 3}},
        [
            ("nodePools[on-demand].accelerator.count: 3 nvidia-tesla-t4 is not offered; write one of 1, 2, 4"),
        ],
    ),
    "N1 too large": (
        {p(1, "machineType"): "n1-standard-32", p(1, "accelerator"): {"type": "nvidia-tesla-v100", "count": 1}},
        [
            (
                "nodePools[on-demand].accelerator.count: 1 nvidia-tesla-v100 go with at most 12 vCPUs, but "
                "n1-standard-32 has 32; write 4, or use a smaller machine type"
            ),
        ],
    ),
    "unknown machine": (
        {p(1, "machineType"): "g2-standart-24", p(1, "accelerator"): {"driverVersion": "LATEST"}},
        [
            (
                "nodePools[on-demand].accelerator: type or count is missing, and g2-standart-24 is not in the "
                "catalogue; write accelerator: {type: ..., count: ...}"
            ),
            (
                "warning: nodePools[on-demand].machineType: g2-standart-24 is not in the catalogue, so its size is "
                "not checked; did you mean g2-standard-24?"
            ),
        ],
    ),
    "disk": (
        {p(1, "machineType"): "a3-ultragpu-8g", p(1, "diskType"): "pd-ssd"},
        [
            (
                "nodePools[on-demand].diskType: pd-ssd, but a3-ultragpu-8g boots from Hyperdisk only; remove it, or "
                "write hyperdisk-balanced"
            ),
            (
                "warning: nodePools[on-demand].zones: a3-ultragpu-8g is not known to be offered in us-central1-a, "
                "us-central1-c; use us-central1-b, or make sure that it is"
            ),
        ],
    ),
    "local SSD on E2": (
        {p(1, "machineType"): "e2-standard-8", p(1, "localSsdCount"): 1},
        [
            "nodePools[on-demand].localSsdCount: 1, but e2-standard-8 takes none; remove it",
            (
                "flavors[on-demand]: queues may use 4 nvidia.com/gpu of it on batch (gpu 4), but its nodes hold 0 "
                "(nodes: on-demand 24); lower nominalQuota to 0 in all, or add nodes"
            ),
        ],
    ),
    "local SSDs of the machine": (
        {p(1, "machineType"): "a3-highgpu-8g", p(1, "localSsdCount"): 2},
        [
            ("nodePools[on-demand].localSsdCount: 2, but a3-highgpu-8g comes with 16; remove it, or write 16"),
        ],
    ),
    "taint twice": (
        {p(1, "taints"): [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]},
        [
            (
                "nodePools[on-demand].taints[1]: a with effect NoSchedule is listed twice; list each pair of key and "
                "effect once"
            ),
        ],
    ),
    "label of Kubernetes": (
        {p(1, "labels"): {"node.kubernetes.io/x": "y"}},
        [
            (
                "nodePools[on-demand].labels[node.kubernetes.io/x]: node.kubernetes.io/x is in a domain that "
                "Kubernetes keeps to itself; use another domain"
            ),
        ],
    ),
    "label of GKE": (
        {p(1, "labels"): {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-nodepool": "x"}},
        [
            (
                'nodePools[on-demand].labels[cloud.google.com/gke-nodepool]: "x", but GKE sets it to "on-demand"; '
                "remove it, or use another key"
            ),
        ],
    ),
    "per cluster": (
        {p(1, "perCluster"): {"batch": {"nodeCount": 1, "autoscaling": scaled(1)}}},
        [
            ("nodePools[on-demand].perCluster[batch].nodeCount: 1 is set, but so is autoscaling; keep one of the two"),
            (
                "flavors[on-demand]: queues may use 4 nvidia.com/gpu of it on batch (gpu 4), but its nodes hold 2 "
                "(nodes: on-demand 1); lower nominalQuota to 2 in all, or add nodes"
            ),
            (
                "warning: flavors[on-demand]: queues may use 40 cpu of it on batch (gpu 40), but its nodes hold "
                "23870m (nodes: on-demand 1); lower nominalQuota to 23870m in all, or add nodes"
            ),
            (
                "warning: flavors[on-demand]: queues may use 150Gi memory of it on batch (gpu 150Gi), but its nodes "
                "hold 88Gi (nodes: on-demand 1); lower nominalQuota to 88Gi in all, or add nodes"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []
