"""What is asked of a topology, and why it cannot be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kueue_admission.decide.pods import PodSet, SliceConstraint
from kueue_admission.decide.topology.domains import Domains


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A pod set to place: how many pods, of which size; `implied` if only its queue makes it topology-aware.

    `previous` has the places of its pods in the slice of the elastic job that its workload replaces, if they stay.
    `owner` is its workload.
    """

    pod_set: PodSet
    count: int
    implied: bool = False
    previous: Domains | None = None
    owner: str = ""

    @property
    def per_pod(self) -> dict[str, int]:
        """What one pod takes from a node, itself included."""
        amounts = dict(self.pod_set.node_requests)
        amounts["pods"] = amounts.get("pods", 0) + 1
        return amounts

    @property
    def constraints(self) -> tuple[SliceConstraint, ...]:
        """The slices its pods must come in, from the largest."""
        return self.pod_set.topology.slices if self.pod_set.topology is not None else ()


class Failure(NamedTuple):
    """Pods that cannot be placed, and why."""

    pod_set: str
    reason: str


class Stats:
    """Why leaves were left out."""

    def __init__(self) -> None:
        self.nodes = 0
        self.excluded: dict[str, int] = {}

    def count(self, reason: str) -> None:
        """One leaf more."""
        self.excluded[reason] = self.excluded.get(reason, 0) + 1

    @property
    def text(self) -> str:
        """What Kueue appends to its message."""
        if not self.excluded:
            return ""
        parts = ", ".join(sorted(f"{reason}: {number}" for reason, number in self.excluded.items()))
        return f". Total nodes: {self.nodes}; excluded: {parts}"
