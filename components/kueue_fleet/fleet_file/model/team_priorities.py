"""Which priorities the jobs of a team may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kueue_fleet.fleet_file.model.entries import PriorityClassEntry, WorkloadPriorityClassEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.teams import TeamEntry

_DEFAULT_CLASS: Final = "default"
"""The WorkloadPriorityClass that Kueue gives to jobs that name none, where its gate WorkloadPriorityClassDefaulting is
on (kueue@v0.19.2 pkg/controller/constants)."""


def allowed_priority_classes(fleet: FleetSpec, team: TeamEntry) -> tuple[str, ...]:
    """The classes that jobs of `team` may name: what its entry says, else all but the highest of each kind.

    A kind whose classes all have one value has no highest. What jobs get that name no class is always among them.
    """
    class_names = [item.name for item in fleet.priority_classes if item.global_default]
    class_names += [item.name for item in fleet.workload_priority_classes if item.name == _DEFAULT_CLASS]
    named = team.allowed_priority_classes
    if named is None:
        named = (*_all_but_the_highest(fleet.workload_priority_classes), *_all_but_the_highest(fleet.priority_classes))
    return tuple(dict.fromkeys((*named, *class_names)))


def _all_but_the_highest(classes: Sequence[PriorityClassEntry] | Sequence[WorkloadPriorityClassEntry]) -> list[str]:
    values = {item.value for item in classes}
    return [item.name for item in classes if len(values) == 1 or item.value < max(values)]
