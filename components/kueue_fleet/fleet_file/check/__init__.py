"""Rules between the entries of a fleet: what Kueue would say only at run time, and what it never says.

One module per part of the file, each of which registers its checks; `scope` is what they share. Rules about one entry
alone are in the entry's model (`fleet_file.model`, `kueue_admission.api`) and are run from here, so that the parser
gets all of them in one list.

A check, and each function that is decorated with `where_read`, speaks only where all that it asks for was read, so that
the rules hold for a whole fleet and for what could be read of a file alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.model_problems import problems_in
from kueue_admission.kernel.problem import Problem, as_far_as_read
from kueue_fleet.fleet_file.check.scope import CHECKS, SECTIONS, Check, Scope
from kueue_fleet.fleet_file.model.fleet import FleetSpec


def check_fleet(fleet: FleetSpec) -> list[Problem]:
    """Every problem of `fleet`, errors and warnings, in the order of the file."""
    return check_scope(Scope(fleet))


def check_scope(scope: Scope) -> list[Problem]:
    """Every problem of what the scope has of a fleet, in the order of the file."""
    all_problems = [
        *_entry_problems(scope),
        *(problem for check in _checks() for problem in as_far_as_read(check(scope))),
    ]
    return scope.in_file_order(_as_one(all_problems))


class FirstProblem:
    """Finds a problem at less effort than all of them, in fleets that are much alike: what found the last one comes
    first."""

    def __init__(self) -> None:
        self._order: list[Check] = [_entry_problems, *_checks()]

    def of(self, scope: Scope, is_known: Callable[[Problem], bool]) -> Problem | None:
        """A problem that is not known already; None: there is none."""
        for index, check in enumerate(self._order):
            for problem in as_far_as_read(check(scope)):
                if not is_known(problem):
                    self._order.insert(0, self._order.pop(index))
                    return problem
        return None


@cache
def _checks() -> tuple[Check, ...]:
    """The checks of every module here, by the modules' names, whichever was imported first."""
    for module in iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
    return tuple(sorted(CHECKS, key=lambda check: check.__module__))


def _entry_problems(scope: Scope) -> Iterator[Problem]:
    """What the entries and sections say about themselves."""
    for section in SECTIONS:
        for entry in scope.entries(section):
            yield from problems_in(entry, scope.path(entry))
    for name, field in FleetSpec.model_fields.items():
        part = scope.fleet.__dict__.get(name)
        if isinstance(part, SpecModel):
            yield from problems_in(part, field.alias or name)


def _as_one(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, each once; those that differ in the cluster alone are one, of all these clusters."""
    paths_by_problem: dict[Problem, list[str]] = {}
    for problem in problems:
        key = replace(problem, wrong="", fix="", clusters=()) if problem.clusters else problem
        paths_by_problem.setdefault(key, []).extend(problem.clusters)
    return [key.on(*dict.fromkeys(names)) if names else key for key, names in paths_by_problem.items()]
