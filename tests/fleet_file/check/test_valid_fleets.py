"""Fleets that work: no rule refuses or warns of what Google and Kueue take."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kueue_fleet.fleet_file.parse import read_fleet

BASE = """
name: x
project: my-project
clusters: [{name: batch, role: standalone, region: us-central1, mode: Standard, zones: [us-central1-a]}]
nodePools: [{name: l4, machineType: g2-standard-24, autoscaling: {totalMinNodeCount: 0, totalMaxNodeCount: 8}}]
flavors: [{name: l4, nodePool: l4}]
clusterQueues:
  - name: gpu
    namespaceSelector: {}
    resourceGroups:
      - coveredResources: [nvidia.com/gpu, cpu, memory, ephemeral-storage]
        flavors:
          - name: l4
            resources:
              - {name: nvidia.com/gpu, nominalQuota: 8}
              - {name: cpu, nominalQuota: 90}
              - {name: memory, nominalQuota: 300Gi}
              - {name: ephemeral-storage, nominalQuota: 100Gi}
teams: [{name: t, googleServiceAccount: {}, localQueues: [{name: q, clusterQueue: gpu}]}]
"""
ENDLESS = """
nodePools:
  - name: l4
    machineType: g2-standard-24
    autoscaling: {totalMinNodeCount: 0, totalMaxNodeCount: 8}
    capacity: {type: flexStart, queuedProvisioning: true}
admissionChecks: [{name: dws, provisioningRequest: {provisioningClassName: queued-provisioning.gke.io}}]
clusterQueues:
  - name: gpu
    namespaceSelector: {}
    admissionChecksStrategy: {admissionChecks: [{name: dws}]}
    resourceGroups:
      - coveredResources: [nvidia.com/gpu, cpu, memory, ephemeral-storage]
        flavors:
          - name: l4
            resources:
              - {name: nvidia.com/gpu, nominalQuota: 1000000000}
              - {name: cpu, nominalQuota: 1000000000}
              - {name: memory, nominalQuota: 1000000000Gi}
              - {name: ephemeral-storage, nominalQuota: 1000000000Gi}
"""
RESERVED = """
nodePools: []
reservations: [{name: kept, zone: us-central1-a, machineType: g2-standard-24, count: 4}]
flavors:
  - name: l4
    computeClass:
      priorities:
        - {machineType: g2-standard-24, reservations: {affinity: Specific, specific: [{name: kept}]}}
        - {machineType: g2-standard-24, spot: true}
"""
AUTOPILOT = """
clusters: [{name: batch, role: standalone, region: us-central1, mode: Autopilot, storageDrivers: DRIVERS}]
nodePools: []
flavors: [{name: l4, nodeLabels: {cloud.google.com/gke-accelerator: nvidia-l4}}]
storage:
  - {name: scratch, teams: [t], volume: {type: lustre, capacityGib: 9000, zones: [us-central1-a]}}
  - {name: home, teams: [t], volume: {type: filestore, capacityGib: 1024}}
"""
IMPORTED = """
clusters:
  - {name: batch, role: standalone, region: us-central1, mode: Standard, zones: [us-central1-a],
     upsertExistingObjects: true}
nodePools: [{name: l4, existing: true, machineType: g2-standard-24, nodeCount: 4, zones: [us-central1-a]}]
"""
VALID = {
    "DWS quotas without a limit": ENDLESS,
    "a reservation of a ComputeClass": RESERVED,
    "Lustre and Filestore on Autopilot": AUTOPILOT.replace("DRIVERS", "[Lustre]"),
    "all of Autopilot's drivers by name": AUTOPILOT.replace("DRIVERS", "[PersistentDisk, Filestore, GcsFuse, Lustre]"),
    "a pool of its owner on an imported cluster": IMPORTED,
}


def said(text: str) -> list[str]:
    data: dict[str, Any] = yaml.safe_load(BASE) | yaml.safe_load(text)
    return [problem.coded for problem in read_fleet(data).problems]


@pytest.mark.parametrize("text", VALID.values(), ids=VALID)
def test_nothing_is_said_of_it(text: str) -> None:
    assert said(text) == []


def test_a_region_of_an_existing_cluster_is_no_region_without_one() -> None:
    clusters = "clusters: [{name: batch, role: standalone, region: us-central1, mode: Standard, existing: true}]"
    network = "network: {existing: {name: vpc, subnets: {us-central1: {name: sub}}}}"
    ours = "network.existing.subnets[us-central1]: batch exists, and keeps its own; remove it [KF524]"
    assert ours in said(f"{clusters}\n{network}")


def test_a_quota_without_a_limit_is_refused_where_nodes_come_by_themselves() -> None:
    always = ENDLESS.replace("    capacity: {type: flexStart, queuedProvisioning: true}\n", "")
    assert any("queues may use 1000000000 nvidia.com/gpu" in item for item in said(always))
