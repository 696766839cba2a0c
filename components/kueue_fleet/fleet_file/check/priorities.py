"""Both kinds of priority class, and which of them teams may use.

Source: kubernetes@v1.36 plugin/pkg/admission/priority: one global default.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel.form_rules import LISTED_TWICE
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.teams import TeamEntry


@entry_check("teams")
def _of_team(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    of_jobs = scope.names("workloadPriorityClasses")
    for index, name in enumerate(team.allowed_priority_classes or ()):
        yield from scope.unknown(
            "priorityClasses", name, f"{scope.path(team)}.allowedPriorityClasses[{index}]", of_jobs
        )


@fleet_check
def _defaults(scope: Scope) -> Iterator[Problem]:
    defaults = [item for item in scope.fleet.priority_classes if item.global_default]
    for item in defaults[1:]:
        yield LISTED_TWICE.at(
            f"{scope.path(item)}.globalDefault",
            f"true, but {defaults[0].name} is the global default already",
            "keep one global default",
        )
