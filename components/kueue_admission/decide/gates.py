"""Kueue's feature gates, as far as they change a decision that the core makes.

A `Gates` value is passed to all that need one; nothing here is global. A gate of Kueue that is not a field either does
not touch admission (ignored) or is refused by `parse_gates` when it differs from its default.
Source: kueue@v0.19.2 pkg/features/kube_features.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from kueue_admission.decide.behaviours import Behaviours
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
    elastic_jobs_via_workload_slices: bool = True
    tas_failed_node_replacement: bool = True
    tas_failed_node_replacement_fail_fast: bool = True
    tas_replace_node_on_node_taints: bool = True
    tas_replace_node_on_pod_termination: bool = True
    skip_reassignment_for_pod_owned_workloads: bool = True
    tas_handle_overlapping_flavors: bool = True
    """Without it, flavors of topologies that share nodes are refused."""
    tas_profile_mixed: bool = True
    tas_cache_node_match_results: bool = True
    # Off by default, and modelled.
    tas_replace_node_due_to_not_ready_over_fixed_time: bool = False
    tas_respect_node_affinity_preferred: bool = False
    tas_balanced_placement: bool = False
    recompute_assignment_upon_preemption_targets_overlap: bool = False
    prioritize_preemptor_workloads: bool = False
    priority_boost: bool = False
    scheduler_timestamp_preemption_buffer: bool = False
    multi_kueue_orchestrated_preemption: bool = False
    elastic_jobs_via_workload_slices_with_tas: bool = False
    tas_node_feasibility_for_all_levels: bool = False
    """With it, topologies above single nodes are refused."""
    tas_partial_slices: bool = False
    """With it, pod sets that their slices do not divide are refused."""
    tas_grouped_pod_set_slicing: bool = False
    """With it, slices in a pod set group are refused."""
    concurrent_admission: bool = False
    """The flavors that a workload may use, and queues whose jobs wait for all flavors at once."""
    behaviours: Behaviours = field(default_factory=Behaviours)
    """What releases do differently and no feature gate decides."""


_FIELDS: Final = {
    gate.name: "".join("TAS" if word == "tas" else word.capitalize() for word in gate.name.split("_"))
    for gate in fields(Gates)
    if isinstance(gate.default, bool)
}
"""Kueue's name of each gate, by the field."""

# Each with the value under which the core answers; with the other, admission changes in a way that is not modelled.
_REFUSED: Final[Mapping[str, bool]] = {
    "SchedulerLibraryIntegration": False,
    "KueueDRAIntegrationConsumableCapacity": False,
    "VectorizedResourceRequests": True,
}

_ALPHA_PLACEMENTS: Final = (
    "ElasticJobsViaWorkloadSlicesWithTAS",
    "TASBalancedPlacement",
    "TASRespectNodeAffinityPreferred",
)


def parse_gates(feature_gates: Mapping[str, bool], defaults: Mapping[str, bool], behaviours: Behaviours) -> Gates:
    """The gates that a Kueue Configuration's `featureGates` sets, over the `defaults` of its release.

    A gate that the release does not have is off: what it is for came later. Raises NotModelledError for a gate that
    changes admission in a way the core does not follow.
    """
    for name, value in feature_gates.items():
        if _REFUSED.get(name, value) != value:
            raise NotModelledError(f"feature gate {name}={str(value).lower()}", "featureGates")
    gates_on = {**defaults, **feature_gates}
    for name in _ALPHA_PLACEMENTS:
        if gates_on.get(name) and not behaviours.places_by_alpha_gates:
            raise NotModelledError(f"{name} before Kueue 0.19.2", "featureGates")
    return Gates(**{field: gates_on.get(name, False) for field, name in _FIELDS.items()}, behaviours=behaviours)
