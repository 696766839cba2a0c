"""The rules of the fleet file on a part of it without its fleet, as a component of its own takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any, Final, get_args

from kueue_admission.api import ClusterQueueSpec, ResourceFlavorSpec
from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.form_rules import UNKNOWN_NAME
from kueue_admission.kernel.model_problems import problems_in
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.read_model import read_stored
from kueue_fleet.fleet_file.check import check_scope
from kueue_fleet.fleet_file.check.dates import check_dates
from kueue_fleet.fleet_file.check.flavor_pools import misspelt_label, unknown_accelerator
from kueue_fleet.fleet_file.check.scope import FIELDS, SECTIONS, Scope
from kueue_fleet.fleet_file.check.teams import no_selector
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.rules.clusters import SYSTEM_POOL_TOO_SMALL
from kueue_fleet.fleet_file.rules.files import NO_EFFECT, UNUSED
from kueue_fleet.fleet_file.rules.queues import COHORT_ALONE, COHORT_UNDECLARED
from kueue_fleet.fleet_file.rules.teams import OPERATOR

_OF_OTHERS: Final = {
    True: (UNKNOWN_NAME, UNUSED, COHORT_ALONE, COHORT_UNDECLARED, NO_EFFECT, SYSTEM_POOL_TOO_SMALL),
    False: (OPERATOR,),
}
"""Rules that ask what else there is, of entries of a list and of other sections."""


def check_alone(section: str, *given: Any, today: date | None = None, **others: Any) -> Iterator[Problem]:
    """What is wrong with a part of the file, whatever else there is; `others` are parts that it needs.

    `given` are entries, if the section is a list of them, or the section itself; `others` are by the names of fields of
    a FleetSpec. With `today`, what is due on that day too.
    """
    is_list = section in SECTIONS
    own = {FIELDS[section]: given} if is_list else {section: given[0]}
    scope = Scope(FleetSpec.model_construct(name="alone", project="alone-project", **{"clusters": (), **others, **own}))
    paths = tuple(map(scope.path, given)) if is_list else (section,)
    due = check_dates(scope.fleet, today) if today else ()
    for problem in (*check_scope(scope), *due):
        if problem.path.startswith(paths) and problem.rule not in _OF_OTHERS[is_list]:
            yield problem


def check_object(spec: SpecModel, name: str, where: str) -> Iterator[Problem]:
    """The same of an object of Kubernetes; `where` begins the paths. Of one in a namespace, what it says by itself."""
    for section in SECTIONS:
        [entry, _] = get_args(FleetSpec.model_fields[FIELDS[section]].annotation)
        if issubclass(entry, type(spec)) and "namespace" not in entry.model_fields:
            entry_there = read_stored(entry, {"name": name, **spec.wire()}, where)
            for problem in check_alone(section, entry_there):
                yield replace(problem, path=where + problem.path.removeprefix(f"{section}[{name}]"))
            yield from _of_object(spec, where)
            return
    yield from problems_in(spec, where)


def _of_object(spec: SpecModel, where: str) -> Iterator[Problem]:
    """What a fleet knows by its clusters, pools and teams, and an object alone only as a likely mistake."""
    if isinstance(spec, ClusterQueueSpec) and spec.namespace_selector is None:
        yield replace(no_selector(f"{where}.namespaceSelector"), severity="warning")
    for key, value in spec.node_labels.items() if isinstance(spec, ResourceFlavorSpec) else ():
        at = f"{where}.nodeLabels[{key}]"
        yield from misspelt_label(at, key)
        if (unknown := unknown_accelerator(at, key, value)) is not None:
            yield unknown
