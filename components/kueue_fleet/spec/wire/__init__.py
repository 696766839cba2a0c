"""Kueue's own objects, field by field: the `spec` of every v1beta2 kind that the fleet writes.

In: plain data in Kubernetes' spelling. Out: frozen models that hold every rule of Kueue's CRD schemas, CEL rules and
webhooks that concerns one object alone. Rules between objects are in `check`; the fleet's own fields are added by
`entries`. Pinned to Kueue 0.19.2; each model names the Go file its rules come from.
"""

from __future__ import annotations

from kueue_fleet.spec.wire.checks import (
    AdmissionCheckSpec,
    NodeSelectorUpdate,
    ParametersReference,
    PodSetUpdates,
    ProvisioningRequestConfigSpec,
    RetryStrategy,
)
from kueue_fleet.spec.wire.clusterqueue import (
    AdmissionChecksStrategy,
    AdmissionCheckStrategyRule,
    AdmissionScope,
    BorrowWithinCohort,
    ClusterQueuePreemption,
    ClusterQueueSpec,
    ConcurrentAdmissionConstraints,
    ConcurrentAdmissionMigration,
    ConcurrentAdmissionPolicy,
    FlavorFungibility,
)
from kueue_fleet.spec.wire.cohort import CohortSpec
from kueue_fleet.spec.wire.flavor import ResourceFlavorSpec, Taint, Toleration
from kueue_fleet.spec.wire.localqueue import LocalQueueSpec
from kueue_fleet.spec.wire.multikueue import (
    ClusterProfileReference,
    ClusterSource,
    KubeConfig,
    MultiKueueClusterSpec,
    MultiKueueConfigSpec,
)
from kueue_fleet.spec.wire.priority import PriorityClassFields, WorkloadPriorityClassFields
from kueue_fleet.spec.wire.quotas import FairSharing, FlavorQuotas, ResourceGroup, ResourceQuota
from kueue_fleet.spec.wire.selector import LabelSelector, LabelSelectorRequirement
from kueue_fleet.spec.wire.topology import TopologyLevel, TopologySpec

__all__ = [
    "AdmissionCheckSpec",
    "AdmissionCheckStrategyRule",
    "AdmissionChecksStrategy",
    "AdmissionScope",
    "BorrowWithinCohort",
    "ClusterProfileReference",
    "ClusterQueuePreemption",
    "ClusterQueueSpec",
    "ClusterSource",
    "CohortSpec",
    "ConcurrentAdmissionConstraints",
    "ConcurrentAdmissionMigration",
    "ConcurrentAdmissionPolicy",
    "FairSharing",
    "FlavorFungibility",
    "FlavorQuotas",
    "KubeConfig",
    "LabelSelector",
    "LabelSelectorRequirement",
    "LocalQueueSpec",
    "MultiKueueClusterSpec",
    "MultiKueueConfigSpec",
    "NodeSelectorUpdate",
    "ParametersReference",
    "PodSetUpdates",
    "PriorityClassFields",
    "ProvisioningRequestConfigSpec",
    "ResourceFlavorSpec",
    "ResourceGroup",
    "ResourceQuota",
    "RetryStrategy",
    "Taint",
    "Toleration",
    "TopologyLevel",
    "TopologySpec",
    "WorkloadPriorityClassFields",
]
