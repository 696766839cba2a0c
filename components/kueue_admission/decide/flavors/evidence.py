"""Why a flavor was not taken, in numbers; `sentence` is what Kueue writes for it.

Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/{flavorassigner,tas_flavorassigner}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kueue_admission.decide.amounts import format_amount, format_request
from kueue_admission.decide.pods import Taint


class ResourceUnavailable(NamedTuple):
    """No resource group of the ClusterQueue covers `resource`."""

    resource: str


class FlavorNotFound(NamedTuple):
    """The ClusterQueue names a flavor that does not exist."""

    flavor: str


class UntoleratedTaint(NamedTuple):
    """Neither the pods nor the flavor tolerate a taint of the flavor's nodes."""

    flavor: str
    taint: Taint


class AffinityMismatch(NamedTuple):
    """The pods' node selector or affinity excludes the flavor's node labels."""

    flavor: str


class ExceedsCapacity(NamedTuple):
    """`assumed` (earlier pod sets) plus `request` is more than the ClusterQueue could ever have of it."""

    flavor: str
    resource: str
    assumed: int
    request: int
    capacity: int


class InsufficientQuota(NamedTuple):
    """`needed` more is needed than is unused now: `requested` less `free`."""

    flavor: str
    resource: str
    requested: int
    free: int

    @property
    def needed(self) -> int:
        """How much more would have to be free."""
        return self.requested - self.free


class NotNominated(NamedTuple):
    """A second look within a cycle stays with the flavors of the first one."""

    flavor: str
    resource: str


class FlavorNotAllowed(NamedTuple):
    """The workload's annotation names other flavors only."""

    flavor: str


class SliceElsewhere(NamedTuple):
    """The slice that the workload replaces has `original`, and its successor gets no other flavor."""

    flavor: str
    original: str


class FlavorLacksResource(NamedTuple):
    """Seen for another resource of the workload, the flavor cannot be chosen for this one."""

    flavor: str
    resource: str


class TopologyMismatch(NamedTuple):
    """The flavor and the pods disagree about topology-aware scheduling."""

    flavor: str
    complaint: str


class TopologyPlacement(NamedTuple):
    """Quota would do, but the pods cannot be placed in the topology."""

    flavor: str
    explanation: str


Evidence = (
    ResourceUnavailable
    | FlavorNotFound
    | UntoleratedTaint
    | AffinityMismatch
    | ExceedsCapacity
    | InsufficientQuota
    | NotNominated
    | FlavorNotAllowed
    | SliceElsewhere
    | FlavorLacksResource
    | TopologyMismatch
    | TopologyPlacement
)
"""Anything that was found out while a workload was looked at."""


_SENTENCES: Final[Mapping[type, str]] = {
    ResourceUnavailable: "resource {resource} unavailable in ClusterQueue",
    FlavorNotFound: "flavor {flavor} not found",
    UntoleratedTaint: "untolerated taint {taint} in flavor {flavor}",
    AffinityMismatch: "flavor {flavor} doesn't match node affinity",
    NotNominated: "skipping flavor {flavor} as it is not found in the nomination mapping for resource {resource}",
    FlavorNotAllowed: "skipping flavor {flavor} due to WorkloadAllowedResourceFlavorAnnotation annotation",
    SliceElsewhere: "could not assign {flavor} flavor since the original workload is assigned: {original}",
    FlavorLacksResource: "flavor {flavor} does not provide resource {resource}",
    TopologyMismatch: 'Flavor "{flavor}" {complaint}',
    TopologyPlacement: "{explanation}",
}
"""Kueue's sentences, but for those with amounts."""


def sentence(evidence: Evidence) -> str:
    """Kueue's sentence for it."""
    match evidence:
        case ExceedsCapacity(flavor, resource, assumed, request, capacity):
            return (
                f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests "
                f"({format_amount(resource, assumed)}) + current podset request "
                f"({format_request(resource, request)}) > maximum capacity ({format_amount(resource, capacity)})"
            )
        case InsufficientQuota(flavor, resource):
            needed_amount = format_amount(resource, evidence.needed)
            return f"insufficient unused quota for {resource} in flavor {flavor}, {needed_amount} more needed"
        case _:
            return _SENTENCES[type(evidence)].format(**evidence._asdict())
