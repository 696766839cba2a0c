"""GKE's slice controller, and the pools of TPU7x that it joins to slices.

Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/use-gke-dynamic-slicing (requirements).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.check.google_cloud import cluster_since
from kueue_fleet.fleet_file.check.node_pools import path_on
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.capacity import Reserved
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.fleet_file.rules.teams import DYNAMIC_SLICES
from kueue_fleet.gke.tpu_slices import CUBE, WORKLOAD_POLICY_TPU

_SINCE: Final = "1.35.2-gke.1842000"
"""First version of GKE with the controller; slices smaller than a cube need 1.36.0-gke.3712000."""


@entry_check("clusters")
def _controller(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    if not cluster.slice_controller:
        return
    path = scope.path(cluster)
    if cluster.release_channel != "RAPID":
        wrong = f"{cluster.release_channel}, but GKE's slice controller is in the channel RAPID"
        yield DYNAMIC_SLICES.at(f"{path}.releaseChannel", wrong, "set it to RAPID, or remove sliceController")
    yield from cluster_since(scope, cluster, _SINCE, "sliceController")
    if not any(pool.entry.accelerator_topology_mode for pool in scope.fleet.node_pools_on(cluster.name)):
        wrong = "has no effect, since no pool is a cube, of which GKE's slice controller makes slices"
        fix = "remove it, or set acceleratorTopologyMode: PROVISION_ONLY on pools of TPU7x"
        yield NO_EFFECT.at(f"{path}.sliceController", wrong, fix)


@entry_check("clusters")
def _cubes(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    for pool in scope.fleet.node_pools_on(cluster.name):
        entry = scope.fleet.node_pool(pool.name)
        if entry is None or pool.entry.accelerator_topology_mode is None:
            continue
        at = path_on(scope, entry, cluster.name)
        if not pool.machine_type.startswith(WORKLOAD_POLICY_TPU) or pool.tpu_topology != CUBE:
            wrong = f"set, but GKE's slice controller takes pools of TPU7x with the topology {CUBE}"
            fix = f"use tpu7x-standard-4t with tpuTopology: {CUBE}, or remove it"
            yield DYNAMIC_SLICES.at(f"{at}.acceleratorTopologyMode", wrong, fix)
        if not isinstance(pool.capacity, Reserved) or pool.capacity.sub_block is None:
            wrong = "names no sub-block of a reservation, but GKE's slice controller takes each as a pool"
            fix = "set reservation, block and subBlock, of a reservation in All Capacity mode"
            yield DYNAMIC_SLICES.at(f"{at}.capacity", wrong, fix)
        if not cluster.existing and not cluster.slice_controller:
            wrong = "set, but GKE's slice controller is off on {cluster}"
            fix = "set sliceController: true on {cluster}"
            yield DYNAMIC_SLICES.at(f"{at}.acceleratorTopologyMode", wrong, fix).on(cluster.name)
