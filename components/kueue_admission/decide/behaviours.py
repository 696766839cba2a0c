"""What Kueue's releases decide differently, where no feature gate says which: one name for each behaviour.

A `Behaviours` value is passed with the gates. What a gate turns on or off is a field of `Gates` alone: a release that
does not have the gate yet decides as with the gate off.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Self

from kueue_admission.forms.versions import numbers_of
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
    looks_at_own_labels_of_flavor: bool = _since("0.18.2", "kueue#12449")
    """Of a pod's node selector and affinity, only keys count that the flavor itself has as labels. Before, those of
    every flavor of the resource group did."""
    waits_for_pods_ready_by_default: bool = _since("0.19.0", "apis/config/v1beta2/defaults.go")
    """Without `waitForPodsReady` in the Configuration, jobs whose pods are not ready for 30 minutes are evicted.
    Before, they never were."""
    prefers_flavors_with_candidates: bool = _since("0.19.1", "kueue#13616")
    """A flavor in which nothing can be preempted ranks below those in which the workload can get quota, whatever
    `flavorFungibility.preference` says. Before, `PreemptionOverBorrowing` compared what would be borrowed first."""
    places_pods_without_requests: bool = _since("0.19.1", "pkg/scheduler/flavorassigner resolvePodSetFlavors")
    """A pod set that asks for nothing, such as the leader of a LeaderWorkerSet, is placed on the flavor of its topology
    group. Before, its job found no flavor."""

    counts_each_admission_once: bool = _since("0.19.1", "pkg/scheduler/scheduler.go shouldApplyEntryPenalty")
    """Admission fair sharing adds a job's penalty once, and only in queues that are ordered by usage. Before, a second
    pass added it again, and other queues kept it until Kueue restarted; that is not modelled, and refused."""
    counts_from_the_reservation: bool = _since("0.20.0", "kueue#15000")
    """Admission fair sharing counts from the quota reservation on. Not modelled, and refused."""

    @classmethod
    def of(cls, version: str) -> Self:
        """Those of a release, such as `0.18.3`."""
        return cls(**{each.name: numbers_of(version) >= numbers_of(each.metadata["since"]) for each in fields(cls)})
