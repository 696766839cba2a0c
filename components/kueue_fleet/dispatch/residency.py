"""Where a workload's data may be: regions from labels and from the team, of which every one must agree.

Anything that cannot be understood allows nothing: a workload that is bound to somewhere never runs elsewhere because
of a typing error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kueue_admission.kernel.names import REGIONS_LABEL

SEPARATOR: Final = "_"
"""Between several regions in a label."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One rule: only these regions, and who says so."""

    regions: frozenset[str]
    source: str

    @property
    def text(self) -> str:
        """The rule in words."""
        return f"{self.source} allows only {', '.join(sorted(self.regions)) or 'no region'}"


@dataclass(frozen=True, slots=True)
class Residency:
    """All rules about one workload; without any, every region is allowed."""

    bounds: tuple[Bound, ...] = ()

    def forbids(self, region: str) -> Bound | None:
        """The first rule that forbids the region; None when it is allowed."""
        return next((bound for bound in self.bounds if region not in bound.regions), None)

    def allowed(self, regions: Iterable[str]) -> tuple[str, ...]:
        """Those of the regions that every rule allows."""
        return tuple(region for region in regions if self.forbids(region) is None)


def parse_regions(value: str, groups: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """The regions that a label's value names; `groups` are names for several of them.

    A word that is neither a group nor a region stays as it is, and matches no cluster.
    """
    regions: set[str] = set()
    for word in value.split(SEPARATOR):
        regions.update(groups.get(word, [word] if word else []))
    return frozenset(regions)


def read_residency(
    workload_label: str | None,
    namespace_label: str | None,
    team_regions: Iterable[str] | None,
    groups: Mapping[str, Iterable[str]],
) -> Residency:
    """The rules about a workload; an argument that is None is not a rule."""
    bounds = []
    for label, where in ((workload_label, "the workload"), (namespace_label, "its namespace")):
        if label is not None:
            bounds.append(Bound(parse_regions(label, groups), f"label {REGIONS_LABEL} of {where}"))
    if team_regions is not None:
        bounds.append(Bound(frozenset(team_regions), "the team's allowedRegions"))
    return Residency(tuple(bounds))
