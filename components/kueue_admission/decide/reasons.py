"""Kueue's own words for why a workload is where it is.

Source: kueue@v0.19.2 apis/kueue/v1beta2/workload_types.go and clusterqueue_types.go; keps/10852.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class QuotaReservedReason(StrEnum):
    """Reasons of the condition QuotaReserved=False.

    Kueue writes them only with the gate UnadmittedWorkloadsObservability, which is off in 0.19.2; without it the
    condition says `Pending` (or `Waiting`, for pods that are not ready).
    """

    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
    WAITING_FOR_PREEMPTED_WORKLOADS = "WaitingForPreemptedWorkloads"
    MISCONFIGURED = "Misconfigured"
    SUSPENDED = "Suspended"
    PENDING_EVALUATION = "PendingEvaluation"
    WAITING_FOR_PODS_READY = "WaitingForPodsReady"
    ADMISSION_GATED = "AdmissionGated"


LASTING: Final = frozenset(
    (
        QuotaReservedReason.EXCEEDS_MAX_QUOTA,
        QuotaReservedReason.NO_MATCHING_FLAVOR,
        QuotaReservedReason.MISCONFIGURED,
        QuotaReservedReason.SUSPENDED,
        QuotaReservedReason.ADMISSION_GATED,
    )
)
"""Reasons that no end of another workload changes: the cluster or the workload has to."""

SEVERITY: Final[dict[QuotaReservedReason | None, int]] = {
    None: 0,
    QuotaReservedReason.TOPOLOGY_PLACEMENT_FAILED: 1,
    QuotaReservedReason.WAITING_FOR_QUOTA: 2,
    QuotaReservedReason.EXCEEDS_MAX_QUOTA: 3,
    QuotaReservedReason.NO_MATCHING_FLAVOR: 4,
}
"""How bad a reason is: across resource groups and pod sets the worst names the whole."""


def most_severe(a: QuotaReservedReason | None, b: QuotaReservedReason | None) -> QuotaReservedReason | None:
    """The more severe of two reasons; the first when they are equally so."""
    return a if SEVERITY.get(a, 0) >= SEVERITY.get(b, 0) else b


class AdmittedReason(StrEnum):
    """Reasons of the condition Admitted=False."""

    NO_RESERVATION = "NoReservation"
    UNSATISFIED_ADMISSION_CHECKS = "UnsatisfiedAdmissionChecks"
    PENDING_DELAYED_TOPOLOGY_REQUESTS = "PendingDelayedTopologyRequests"


class PreemptionReason(StrEnum):
    """Reasons of the condition Preempted."""

    IN_CLUSTER_QUEUE = "InClusterQueue"
    IN_COHORT_RECLAMATION = "InCohortReclamation"
    IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
    IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


DEACTIVATED_BY_HAND: Final = "The workload is deactivated"
"""What Kueue says of a workload whose `spec.active` somebody set to false; where it did so itself, it says why too."""


class EvictionReason(StrEnum):
    """Reasons of the condition Evicted=True."""

    PREEMPTED = "Preempted"
    PODS_READY_TIMEOUT = "PodsReadyTimeout"
    ADMISSION_CHECK = "AdmissionCheck"
    CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped"
    LOCAL_QUEUE_STOPPED = "LocalQueueStopped"
    NODE_FAILURES = "NodeFailures"
    DEACTIVATED = "Deactivated"
    FLAVOR_MIGRATION = "FlavorMigration"
    VARIANT_EVICTED = "VariantEvicted"
    NO_VARIANT = "ConcurrentAdmission"


class RequeueReason(StrEnum):
    """Why the scheduler puts a workload back; decides whether it competes again at once."""

    GENERIC = ""
    FAILED_AFTER_NOMINATION = "FailedAfterNomination"
    NAMESPACE_MISMATCH = "NamespaceMismatch"
    PREEMPTION_GATED = "PreemptionGated"
    PENDING_PREEMPTION = "PendingPreemption"
    PENDING_MIGRATION = "PendingMigration"
    PREEMPTION_FAILED = "PreemptionFailed"
    NO_FIT = "NoFit"
    PREEMPTION_NO_CANDIDATES = "PreemptionNoCandidates"
    REFUSED = "Refused"
    """Ours: the API server refuses what Kueue writes. Kueue tries again at once, but other heads come between."""


class InactiveReason(StrEnum):
    """Reasons of a ClusterQueue's condition Active=False; `READY` when it is active."""

    READY = "Ready"
    TERMINATING = "Terminating"
    STOPPED = "Stopped"
    FLAVOR_NOT_FOUND = "FlavorNotFound"
    ADMISSION_CHECK_NOT_FOUND = "AdmissionCheckNotFound"
    ADMISSION_CHECK_INACTIVE = "AdmissionCheckInactive"
    MULTIPLE_MULTI_KUEUE_ADMISSION_CHECKS = "MultipleMultiKueueAdmissionChecks"
    MULTI_KUEUE_ADMISSION_CHECK_APPLIED_PER_FLAVOR = "MultiKueueAdmissionCheckAppliedPerFlavor"
    MULTI_KUEUE_WITH_PROVISIONING_REQUEST = "MultiKueueWithProvisioningRequest"
    TOPOLOGY_NOT_FOUND = "TopologyNotFound"
    COHORT_CYCLE = "HasCycle"
