"""Kueue's feature gates, as far as they change a decision that the core makes.

A `Gates` value is passed to all that need one; nothing here is global. A gate of Kueue that is not a field either does
not touch admission (ignored) or is refused by `parse_gates` when it differs from its default.
Source: kueue@v0.19.2 pkg/features/kube_features.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from kueue_admission.decide.errors import NotModelledError


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates the core reads, with the defaults of Kueue 0.19.2."""

    partial_admission: bool = True
    flavor_fungibility: bool = True
    priority_sorting_within_cohort: bool = True
    fair_sharing_preempt_within_nominal: bool = True
    fair_sharing_prioritize_non_borrowing: bool = True
    topology_aware_scheduling: bool = True
    reclaimable_pods: bool = True
    scheduling_equivalence_hashing: bool = True
    admission_gated_by: bool = True
    quota_check_strategy: bool = True
    flavor_fungibility_preserve_scan_progress: bool = True
    tas_recompute_assignment_within_scheduling_cycle: bool = True
    # Off by default, and modelled.
    recompute_assignment_upon_preemption_targets_overlap: bool = False
    prioritize_preemptor_workloads: bool = False
    priority_boost: bool = False
    scheduler_timestamp_preemption_buffer: bool = False
    multi_kueue_orchestrated_preemption: bool = False
    concurrent_admission: bool = False
    """Of it: the flavors that a workload may use. A queue's concurrentAdmissionPolicy is refused."""


_FIELDS: Final = {field.name for field in fields(Gates)}

# Each with the value under which the core answers; with the other, admission changes in a way that is not modelled.
_REFUSED: Final[Mapping[str, bool]] = {
    "TASBalancedPlacement": False,
    "TASRespectNodeAffinityPreferred": False,
    "SchedulerLibraryIntegration": False,
    "ElasticJobsViaWorkloadSlicesWithTAS": False,
    "KueueDRAIntegrationConsumableCapacity": False,
    "TASProfileMixed": True,
    "TASHandleOverlappingFlavors": True,
    "VectorizedResourceRequests": True,
}

_ACRONYMS: Final = {"TASRecomputeAssignmentWithinSchedulingCycle": "tas_recompute_assignment_within_scheduling_cycle"}


def parse_gates(feature_gates: Mapping[str, bool]) -> Gates:
    """The gates that a Kueue Configuration's `featureGates` sets.

    Raises NotModelledError for a gate that changes admission in a way the core does not follow.
    """
    chosen: dict[str, bool] = {}
    for name, value in feature_gates.items():
        field = _ACRONYMS.get(name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        if field in _FIELDS:
            chosen[field] = value
        elif _REFUSED.get(name, value) != value:
            raise NotModelledError(f"feature gate {name}={str(value).lower()}", "featureGates")
    return Gates(**chosen)
