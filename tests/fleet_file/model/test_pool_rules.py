"""The rules of GKE for one node pool."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, problems
from tests.fleet_file.pool_builders import ZONES, pools_data, scaled


def p(index: int, field: str) -> str:
    """Path of a field of a pool."""
    return f"nodePools/{index}/{field}"


def mixed(name: str, gpus: int, kind: str) -> str:
    """The warning of a pool with larger nodes than the reserved ones, whose flavor comes first."""
    return (
        f"warning: clusterQueues[gpu].resourceGroups[0].flavors: a pod gets {gpus} nvidia.com/gpu of a node of "
        f"{name}, and 2 of one of reserved: one that asks for more than that can get the quota of reserved, where it "
        f"never starts; put reserved into a queue of its own, or let such pods select "
        f"cloud.google.com/gke-accelerator: {kind}"
    )


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "fixed and autoscaled": (
        {p(0, "autoscaling"): scaled(4)},
        [
            (
                "nodePools[reserved].nodeCount: is 4, but autoscaling is set too, and each update would undo what "
                "the autoscaler did; keep one of the two"
            ),
        ],
    ),
    "fixed and initial": (
        {p(0, "initialNodeCount"): 1},
        [
            ("nodePools[reserved].initialNodeCount: is 1, but nodeCount fixes the size; remove it, or nodeCount"),
        ],
    ),
    "no size": (
        {p(1, "autoscaling"): REMOVED},
        [
            "nodePools[on-demand].nodeCount: is missing, and so is autoscaling; set one of the two",
        ],
    ),
    "initial beyond limits": (
        {p(1, "initialNodeCount"): 9, p(1, "zones"): ZONES},
        [
            (
                "nodePools[on-demand].initialNodeCount: is 9 in each of 3 zones, not between the limits of "
                "autoscaling, 0 and 24; set a number within the limits, or remove it"
            ),
        ],
    ),
    "minimum above maximum": (
        {p(1, "autoscaling"): scaled(2, 3)},
        [
            (
                "nodePools[on-demand].autoscaling.totalMinNodeCount: is 3, more than the maximum, 2; set a smaller "
                "minimum"
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
            p(0, "nodeCount"): 1,
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
            (
                "nodePools[on-demand].capacity.reservation: is not a known field; remove it, or use one of affinity, "
                "type"
            ),
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
                "nodePools[flex].nodeCount: is 2, a fixed size, but DWS nodes come and go; set autoscaling with a "
                "maximum instead"
            ),
        ],
    ),
    "flex-start repaired": (
        {p(3, "management"): {"autoRepair": True}},
        [
            (
                "nodePools[flex].management.autoRepair: is true, but flex-start nodes cannot be repaired; set it to "
                "false"
            ),
        ],
    ),
    "flex-start too long": (
        {p(3, "capacity/maxRunDuration"): "169h"},
        [
            (
                "nodePools[flex].capacity.maxRunDuration: is 169h, but DWS nodes live for at most seven days; set it "
                "to at least 1s and at most 168h (604800s)"
            ),
        ],
    ),
    "flex-start part of a second": (
        {p(3, "capacity/maxRunDuration"): "90500ms"},
        [
            ("nodePools[flex].capacity.maxRunDuration: is 90500ms, which is not whole seconds; round it to seconds"),
        ],
    ),
    "queued from one": (
        {p(4, "autoscaling"): scaled(8, 1)},
        [
            (
                "nodePools[queued].autoscaling.totalMinNodeCount: is 1, but nodes of queued provisioning come only "
                "for ProvisioningRequests; set it to 0"
            ),
        ],
    ),
    "queued with initial nodes": (
        {p(4, "initialNodeCount"): 1},
        [
            (
                "nodePools[queued].initialNodeCount: is 1, but nodes of queued provisioning come only for "
                "ProvisioningRequests; set it to 0, or remove it"
            ),
        ],
    ),
    "queued balanced": (
        {p(4, "autoscaling"): scaled(8, locationPolicy="BALANCED")},
        [
            (
                "nodePools[queued].autoscaling.locationPolicy: is BALANCED, but queued provisioning takes nodes "
                "wherever there are any; set it to ANY"
            ),
        ],
    ),
    "compact in three zones": (
        {p(1, "compactPlacement"): True, p(1, "zones"): ZONES},
        [
            (
                "nodePools[on-demand].zones: are us-central1-a, us-central1-b, us-central1-c, but compact placement "
                "is within one zone; set exactly one zone"
            ),
        ],
    ),
    "compact in the cluster's zones": (
        {p(1, "compactPlacement"): True},
        [
            (
                "nodePools[on-demand].zones: are us-central1-a, us-central1-b, us-central1-c, but compact placement "
                "is within one zone (on batch); set exactly one zone, or give batch another value under "
                "perCluster"
            ),
        ],
    ),
    "compact and queued": (
        {p(4, "compactPlacement"): True, p(4, "zones"): ZONES[:1]},
        [
            (
                "nodePools[queued].compactPlacement: is set, but queued provisioning takes nodes wherever there are "
                "any; remove it, or turn queued provisioning off"
            ),
        ],
    ),
    "compact and flex-start": (
        {p(3, "compactPlacement"): True, p(3, "zones"): ZONES[:1]},
        [
            (
                "nodePools[flex].compactPlacement: is set, but GKE does not place g2-standard-24 machines of "
                "flex-start; remove it, or use A3 Ultra, A4 or H4D machines"
            ),
        ],
    ),
    "no surge": (
        {p(1, "upgrade"): {"maxSurge": 0}},
        [
            (
                "nodePools[on-demand].upgrade.maxSurge: is 0, and so is maxUnavailable, so no node can ever be "
                "upgraded; set one of them to 1"
            ),
        ],
    ),
    "no upgrades": (
        {p(1, "management"): {"autoUpgrade": False}},
        [
            (
                "nodePools[on-demand].management.autoUpgrade: is false, but the cluster is on a release channel, "
                "which upgrades its nodes; remove it, and set the cluster's maintenance window"
            ),
        ],
    ),
    "no repair": (
        {p(1, "management"): {"autoRepair": False}},
        [
            (
                "nodePools[on-demand].management.autoRepair: is false, but the cluster is on a release channel, "
                "which repairs its nodes; remove it"
            ),
        ],
    ),
    "other accelerator": (
        {p(1, "accelerator"): {"type": "nvidia-tesla-t4", "count": 4}},
        [
            (
                "nodePools[on-demand].accelerator.type: is nvidia-tesla-t4, but g2-standard-24 comes with nvidia-l4; "
                "set it to nvidia-l4, or remove it"
            ),
            (
                "nodePools[on-demand].accelerator.count: is 4, but g2-standard-24 comes with 2; set it to 2, or "
                "remove it"
            ),
        ],
    ),
    "GPUs on E2": (
        {p(1, "machineType"): "e2-standard-8", p(1, "accelerator"): {"type": "nvidia-tesla-t4", "count": 1}},
        [
            (
                "nodePools[on-demand].accelerator: is set, but e2-standard-8 takes no GPUs; remove it, or use a "
                "machine type with GPUs"
            ),
        ],
    ),
    "N1 without count": (
        {p(1, "machineType"): "n1-standard-8", p(1, "accelerator"): {"type": "nvidia-tesla-t4"}},
        [
            (
                "nodePools[on-demand].accelerator: has no type or no count, and n1-standard-8 has none of its own; "
                "set both, such as nvidia-tesla-t4 and 1"
            ),
            (
                "flavors[on-demand]: queues may use 4 nvidia.com/gpu of it on batch (gpu 4), but its nodes hold 0 "
                "(nodes: on-demand 24); lower nominalQuota to 0 in all, or use machines that have nvidia.com/gpu, or "
                "attach them to N1 machines"
            ),
        ],
    ),
    "N1 with L4": (
        {p(1, "machineType"): "n1-standard-8", p(1, "accelerator"): {"type": "nvidia-l4", "count": 1}},
        [
            (
                "nodePools[on-demand].accelerator.type: is nvidia-l4, which cannot be attached to n1-standard-8; use "
                "one of nvidia-tesla-t4, nvidia-tesla-p4, nvidia-tesla-p100, nvidia-tesla-v100, or a machine type "
                "that comes with it"
            ),
        ],
    ),
    "N1 with three": (
        {p(1, "machineType"): "n1-standard-8", p(1, "accelerator"): {"type": "nvidia-tesla-t4", "count": 3}},
        [
            (
                "nodePools[on-demand].accelerator.count: is 3, a number of nvidia-tesla-t4 that is not offered; use "
                "1, 2, 4"
            ),
            mixed("on-demand", 3, "nvidia-tesla-t4"),
        ],
    ),
    "N1 too large": (
        {p(1, "machineType"): "n1-standard-32", p(1, "accelerator"): {"type": "nvidia-tesla-v100", "count": 1}},
        [
            (
                "nodePools[on-demand].accelerator.count: is 1, but 1 nvidia-tesla-v100 go with at most 12 vCPUs, and "
                "n1-standard-32 has 32; set it to 4, or use a smaller machine type"
            ),
        ],
    ),
    "unknown machine": (
        {p(1, "machineType"): "g2-standart-24", p(1, "accelerator"): {"driverVersion": "LATEST"}},
        [
            (
                "nodePools[on-demand].accelerator: has no type or no count, and g2-standart-24 is not in the "
                "catalogue; set both, such as nvidia-tesla-t4 and 1"
            ),
            (
                "warning: nodePools[on-demand].machineType: g2-standart-24 is not in the catalogue, so its size is "
                "not checked; did you mean g2-standard-24?"
            ),
        ],
    ),
    "disk": (
        {p(2, "machineType"): "a3-ultragpu-8g", p(2, "diskType"): "pd-ssd"},
        [
            (
                "nodePools[spot].diskType: is pd-ssd, but a3-ultragpu-8g boots from Hyperdisk only; set it to "
                "hyperdisk-balanced, or remove it"
            ),
            (
                "warning: nodePools[spot].zones: a3-ultragpu-8g is not known to be offered in us-central1-a, "
                "us-central1-c; use us-central1-b, or make sure that it is"
            ),
            mixed("spot", 8, "nvidia-h200-141gb"),
        ],
    ),
    "local SSD on E2": (
        {p(1, "machineType"): "e2-standard-8", p(1, "localSsdCount"): 1},
        [
            "nodePools[on-demand].localSsdCount: is 1, but e2-standard-8 takes none; remove it",
            (
                "flavors[on-demand]: queues may use 4 nvidia.com/gpu of it on batch (gpu 4), but its nodes hold 0 "
                "(nodes: on-demand 24); lower nominalQuota to 0 in all, or use machines that have nvidia.com/gpu, or "
                "attach them to N1 machines"
            ),
        ],
    ),
    "local SSDs of the machine": (
        {p(1, "machineType"): "a3-highgpu-8g", p(1, "localSsdCount"): 2},
        [
            ("nodePools[on-demand].localSsdCount: is 2, but a3-highgpu-8g comes with 16; set it to 16, or remove it"),
            mixed("on-demand", 8, "nvidia-h100-80gb"),
        ],
    ),
    "taint twice": (
        {p(1, "taints"): [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]},
        [
            (
                "nodePools[on-demand].taints[1]: has the key a and the effect NoSchedule of one before it; list each "
                "pair of key and effect once"
            ),
        ],
    ),
    "label of Kubernetes": (
        {p(1, "labels"): {"node.kubernetes.io/x": "y"}},
        [
            (
                "nodePools[on-demand].labels[node.kubernetes.io/x]: is in a domain that Kubernetes reserves; use "
                "another domain"
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
            (
                "nodePools[on-demand].perCluster[batch].nodeCount: is 1, but autoscaling is set too, and each update "
                "would undo what the autoscaler did; keep one of the two"
            ),
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
