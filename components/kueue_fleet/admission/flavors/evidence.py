"""Why a flavor was not taken, in numbers; `text` is the sentence Kueue writes for it.

Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/{flavorassigner,tas_flavorassigner}.go.
"""

from __future__ import annotations

from typing import NamedTuple

from kueue_fleet.admission.amounts import format_amount, format_request
from kueue_fleet.admission.pods import Taint


class ResourceUnavailable(NamedTuple):
    """No resource group of the ClusterQueue covers `resource`."""

    resource: str

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return f"resource {self.resource} unavailable in ClusterQueue"


class FlavorNotFound(NamedTuple):
    """The ClusterQueue names a flavor that does not exist."""

    flavor: str

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return f"flavor {self.flavor} not found"


class UntoleratedTaint(NamedTuple):
    """Neither the pods nor the flavor tolerate a taint of the flavor's nodes."""

    flavor: str
    taint: Taint

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return f"untolerated taint {self.taint} in flavor {self.flavor}"


class AffinityMismatch(NamedTuple):
    """The pods' node selector or affinity excludes the flavor's node labels."""

    flavor: str

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return f"flavor {self.flavor} doesn't match node affinity"


class ExceedsCapacity(NamedTuple):
    """`assumed` (earlier pod sets) plus `request` is more than the ClusterQueue could ever have of it."""

    flavor: str
    resource: str
    assumed: int
    request: int
    capacity: int

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return (
            f"insufficient quota for {self.resource} in flavor {self.flavor}, previously considered podsets requests "
            f"({format_amount(self.resource, self.assumed)}) + current podset request "
            f"({format_request(self.resource, self.request)}) > maximum capacity "
            f"({format_amount(self.resource, self.capacity)})"
        )


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

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return (
            f"insufficient unused quota for {self.resource} in flavor {self.flavor}, "
            f"{format_amount(self.resource, self.needed)} more needed"
        )


class NotNominated(NamedTuple):
    """A second look within a cycle stays with the flavors of the first one."""

    flavor: str
    resource: str

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return (
            f"skipping flavor {self.flavor} as it is not found in the nomination mapping for resource {self.resource}"
        )


class FlavorNotAllowed(NamedTuple):
    """The workload's annotation names other flavors only."""

    flavor: str

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return f"skipping flavor {self.flavor} due to WorkloadAllowedResourceFlavorAnnotation annotation"


class FlavorLacksResource(NamedTuple):
    """Seen for another resource of the workload, the flavor cannot be chosen for this one."""

    flavor: str
    resource: str

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return f"flavor {self.flavor} does not provide resource {self.resource}"


class TopologyMismatch(NamedTuple):
    """The flavor and the pods disagree about topology-aware scheduling."""

    flavor: str
    complaint: str

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return f'Flavor "{self.flavor}" {self.complaint}'


class TopologyPlacement(NamedTuple):
    """Quota would do, but the pods cannot be placed in the topology."""

    flavor: str
    explanation: str

    @property
    def text(self) -> str:
        """Kueue's sentence."""
        return self.explanation


Evidence = (
    ResourceUnavailable
    | FlavorNotFound
    | UntoleratedTaint
    | AffinityMismatch
    | ExceedsCapacity
    | InsufficientQuota
    | NotNominated
    | FlavorNotAllowed
    | FlavorLacksResource
    | TopologyMismatch
    | TopologyPlacement
)
"""Anything that was found out while a workload was looked at."""
