"""What Kueue's releases decide differently, where no feature gate says which: one name for each behaviour.

A `Behaviours` value is passed with the gates. What a gate turns on or off is a field of `Gates` alone: a release that
does not have the gate yet decides as with the gate off.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Self

from kueue_admission.kernel.versions import numbers_of
from kueue_admission.releases import DEFAULT_VERSION


def _since(version: str, source: str) -> Any:
    default = numbers_of(version) <= numbers_of(DEFAULT_VERSION)
    return field(default=default, metadata={"since": version, "source": source})


@dataclass(frozen=True, slots=True)
class Behaviours:
    """Each is on from the release in its metadata, `since`; by default as in Kueue 0.19.2.

    Which release has one first was read in the modules v0.17.0 to v0.19.2; `source` is the pull request or the file.
    """

    refuses_pods_without_topology_flavor: bool = _since("0.18.0", "pkg/scheduler/flavorassigner psError")
    """A job with a pod set for which no flavor of a topology is found does not fit. Before, it was admitted without a
    place for those pods."""
    needs_no_checks_without_flavors: bool = _since("0.18.0", "kueue#10316")
    """A job that asks for nothing needs none of its ClusterQueue's admission checks. Before, it needed all of them."""
    tolerates_taints_by_flavor: bool = _since("0.18.0", "kueue#11185")
    """A node fails by a taint that neither its pods nor their flavor tolerate. Before, the flavor did not count."""
    evaluates_device_selectors: bool = _since("0.18.0", "pkg/dra/claims.go")
    """Claims of devices may have selectors. Before, such a workload was in no queue."""
    looks_at_own_labels_of_flavor: bool = _since("0.18.2", "kueue#12449")
    """Of a pod's node selector and affinity, only keys count that the flavor itself has as labels. Before, those of
    every flavor of the resource group did."""
    waits_for_pods_ready_by_default: bool = _since("0.19.0", "apis/config/v1beta2/defaults.go")
    """Without `waitForPodsReady` in the Configuration, jobs whose pods are not ready for 30 minutes are evicted.
    Before, they never were."""
    waits_for_pods_of_unready_nodes: bool = _since("0.19.0", "pkg/controller/tas/node_controller.go Reconcile")
    """A node that is not ready is replaced once no pods run there. Before, after 30 s in any case, as with the gate
    TASReplaceNodeDueToNotReadyOverFixedTime."""
    prefers_flavors_with_candidates: bool = _since("0.19.1", "kueue#13616")
    """A flavor in which nothing can be preempted ranks below those in which the workload can get quota, whatever
    `flavorFungibility.preference` says. Before, `PreemptionOverBorrowing` compared what would be borrowed first."""
    places_pods_without_requests: bool = _since("0.19.1", "pkg/scheduler/flavorassigner resolvePodSetFlavors")
    """A pod set that asks for nothing, such as the leader of a LeaderWorkerSet, is placed on the flavor of its topology
    group. Before, its job found no flavor."""

    counts_usage_in_billionths: bool = _since("0.19.1", "pkg/util/resource MulByFloat")
    """Admission fair sharing rounds what a LocalQueue has used down to billionths. Before, to thousandths: with a
    half-life of a week a sample of five minutes, and the penalty of a job of two cores, were 0."""
    counts_each_admission_once: bool = _since("0.19.1", "kueue#12539")
    """Admission fair sharing takes back a job's whole penalty when it is admitted. Before, it took back what the job
    got, which can be fewer pods than it asked for, and nothing behind admission checks. The rest stayed until Kueue
    restarted, and made it sample the LocalQueue all the time; that is not modelled, and refused."""
    queues_of_weight_zero_come_last: bool = _since("0.19.1", "pkg/util/admissionfairsharing CalculateUsage")
    """LocalQueues of weight 0 come last in admission fair sharing. Before, they came first until they had used
    something, since 0/0 sorts before every number."""
    counts_places_of_replaced_nodes: bool = _since("0.19.2", "pkg/scheduler/flavorassigner ComputeTASNetUsage")
    """The place that pods get for that on a failed node has to be free still when their turn comes in the cycle, and
    counts for the heads after it. Before, heads of one cycle could be given the same place."""
    places_by_alpha_gates: bool = _since("0.19.2", "pkg/cache/scheduler/tas_{elastic_workloads,balanced_placement}.go")
    """Topologies with an alpha gate: places of elastic jobs, balanced ones, those on nodes that pods prefer. Before,
    leaders went elsewhere, among others. That is not modelled, and refused."""
    counts_from_the_reservation: bool = _since("0.20.0", "kueue#15000")
    """Admission fair sharing counts from the quota reservation on. Not modelled, and refused."""

    @classmethod
    def of(cls, version: str) -> Self:
        """Those of a release, such as `0.18.3`."""
        return cls(
            **{
                behaviour.name: numbers_of(version) >= numbers_of(behaviour.metadata["since"])
                for behaviour in fields(cls)
            }
        )
