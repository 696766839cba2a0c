"""Kueue's feature gates at 0.19.2: which there are, and which are on.

Source: kueue@v0.19.2 pkg/features/kube_features.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KUEUE_VERSION: Final = "0.19.2"
"""The version of Kueue that the rules of this package are taken from."""

_ON: Final = """
AdmissionFairSharing AdmissionGatedBy AssignQueueLabelsForPods CleanupProvisioningRequestsOnEviction
DeferRayServiceFinalizationForRedisCleanup ElasticJobsViaWorkloadSlices FairSharingPreemptWithinNominal
FairSharingPrioritizeNonBorrowing FinishOrphanedWorkloads FlavorFungibility FlavorFungibilityPreserveScanProgress
KueueDRAIntegration KueueDRAIntegrationExtendedResource KueueDRAIntegrationPartitionableDevices
KueueDRARejectWorkloadsWhenDRADisabled LWSImmutableGroupSize LocalQueueMetrics MetricForWorkloadCreationLatency
MetricsForCohorts MultiKueue MultiKueueAdaptersForCustomJobs MultiKueueIncrementalDispatcherConfig
MultiKueueIncrementalDispatcherRespectConfigOrder MultiKueueRemoteSpecSync PartialAdmission
PodIntegrationValidateGroupOwner PrioritySortingWithinCohort QuotaCheckStrategy ReclaimablePods
RemoveFinalizersWithStrictPatch SchedulingEquivalenceHashing SkipAncestorCheckForDeletedWorkloads
SkipReassignmentForPodOwnedWorkloads TASAssignmentsEncodingByHostnamePrefix TASCacheNodeMatchResults
TASCachingRemainingResources TASFailedNodeReplacement TASFailedNodeReplacementFailFast TASHandleOverlappingFlavors
TASMultiLayerTopology TASProfileMixed TASRecomputeAssignmentWithinSchedulingCycle TASReplaceNodeOnNodeTaints
TASReplaceNodeOnPodTermination TASValidateWorkloadSliceSize TLSOptions TopologyAwareScheduling
ValidateRayAndSparkJobUpdates VectorizedResourceRequests VisibilityOnDemand WorkloadIdentifierAnnotations
WorkloadValidateResourcesAreNonNegative WorkloadValidationForPodSetMetadata
"""
_OFF: Final = """
AllAlpha AllBeta ConcurrentAdmission CustomMetricLabels DisableWaitForPodsReady ElasticJobsViaWorkloadSlicesWithTAS
FailureRecoveryPolicy FastQuotaReleaseInPodIntegration KueueDRAIntegrationConsumableCapacity MultiKueueClusterProfile
MultiKueueKubeConfigPathValidation MultiKueueManagerQuotaAutomation MultiKueueOrchestratedPreemption
PrioritizePreemptorWorkloads PriorityBoost RecomputeAssignmentUponPreemptionTargetsOverlap
RejectUpdatesToCQWithInvalidOnFlavors SchedulerLibraryIntegration SchedulerLongRequeueInterval
SchedulerTimestampPreemptionBuffer ShortWorkloadNames SparkApplicationIntegration TASBalancedPlacement
TASCacheTopologyTree TASReplaceNodeDueToNotReadyOverFixedTime TASRespectNodeAffinityPreferred
UnadmittedWorkloadsExplicitStatus UnadmittedWorkloadsObservability WorkloadPriorityClassDefaulting
WorkloadRequestUseMergePatch
"""
LOCKED: Final[Mapping[str, bool]] = {
    "HierarchicalCohorts": True,
    "ManagedJobsNamespaceSelectorAlwaysRespected": True,
    "MultiKueueAllowInsecureKubeconfigs": False,
    "MultiKueueRedoAdmissionOnEvictionInWorker": True,
    "MultiKueueWaitForWorkloadAdmitted": True,
    "ObjectRetentionPolicies": True,
    "PropagateBatchJobLabelsToWorkload": True,
    "SkipFinalizersForPodsSuspendedByParent": True,
}
"""Gates that can only be set to the value they have."""

DEFAULTS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(_ON.split(), True),
    **dict.fromkeys(_OFF.split(), False),
    **LOCKED,
}
"""Every gate, and whether it is on by default."""

REQUIRES: Final[Mapping[str, tuple[str, ...]]] = {
    "TASProfileMixed": ("TopologyAwareScheduling",),
    "TASHandleOverlappingFlavors": ("TopologyAwareScheduling",),
    "TASFailedNodeReplacement": ("TopologyAwareScheduling",),
    "TASFailedNodeReplacementFailFast": ("TopologyAwareScheduling", "TASFailedNodeReplacement"),
    "TASReplaceNodeOnPodTermination": ("TopologyAwareScheduling", "TASFailedNodeReplacement"),
    "TASReplaceNodeDueToNotReadyOverFixedTime": ("TopologyAwareScheduling", "TASFailedNodeReplacement"),
    "TASBalancedPlacement": ("TopologyAwareScheduling",),
    "TASReplaceNodeOnNodeTaints": ("TopologyAwareScheduling",),
    "TASMultiLayerTopology": ("TopologyAwareScheduling",),
    "TASRespectNodeAffinityPreferred": ("TopologyAwareScheduling",),
    "TASRecomputeAssignmentWithinSchedulingCycle": ("TopologyAwareScheduling",),
    "UnadmittedWorkloadsExplicitStatus": ("UnadmittedWorkloadsObservability",),
    "ElasticJobsViaWorkloadSlicesWithTAS": ("ElasticJobsViaWorkloadSlices", "TopologyAwareScheduling"),
    "KueueDRAIntegrationExtendedResource": ("KueueDRAIntegration",),
    "KueueDRAIntegrationPartitionableDevices": ("KueueDRAIntegration",),
    "KueueDRAIntegrationConsumableCapacity": ("KueueDRAIntegration",),
}
"""Gates that mean nothing without others (pkg/config/validation.go, LoadAndValidateFeatureGates)."""


def is_on(gate: str, overrides: Mapping[str, bool] | None) -> bool:
    """Whether `gate` is on. Raises KeyError for a gate that Kueue 0.19.2 does not have."""
    return (overrides or {}).get(gate, DEFAULTS[gate])
