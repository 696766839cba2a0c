"""Both kinds of priority class.

Source: kubernetes@v1.36 plugin/pkg/admission/priority: one global default.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.kueue_api.problem import Problem


def check_priorities(scope: Scope) -> Iterator[Problem]:
    """At most one PriorityClass is the global default."""
    defaults = [item for item in scope.fleet.priority_classes if item.global_default]
    for item in defaults[1:]:
        yield Problem(
            f"{scope.path(item)}.globalDefault",
            f"true, but {defaults[0].name} is the global default already",
            "keep one global default",
        )
