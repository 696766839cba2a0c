"""The rules of the fleet file on one entry without its fleet, as a component of its own takes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kueue_admission.forms.base import SpecModel
from kueue_admission.forms.form_rules import UNKNOWN_NAME
from kueue_admission.forms.problem import Problem
from kueue_fleet.fleet_file.check import check_scope
from kueue_fleet.fleet_file.check.scope import SECTIONS, Scope
from kueue_fleet.fleet_file.fleet_rules import UNUSED
from kueue_fleet.fleet_file.model.fleet import FleetSpec

_OF_OTHERS: Final = frozenset({UNKNOWN_NAME, UNUSED})
"""Rules that ask what else there is."""


def check_alone(section: str, *entries: SpecModel, **others: tuple[SpecModel, ...]) -> Iterator[Problem]:
    """What is wrong with entries of a list of the file, whatever else there is; `others` are lists that they need.

    `others` are by the names of fields of a FleetSpec.
    """
    lists: dict[str, Any] = {"clusters": (), **others, SECTIONS[section].field: entries}
    scope = Scope(FleetSpec.model_construct(name="alone", project="alone-project", **lists))
    paths = tuple(map(scope.path, entries))
    for problem in check_scope(scope):
        if problem.path.startswith(paths) and problem.rule not in _OF_OTHERS:
            yield problem
