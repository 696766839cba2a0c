"""Walks up the cohort tree by names: every cohort above one, and the root.

`parents` maps a cohort to the one above it, None for a root; a name that is not in it is a root too.
"""

from __future__ import annotations

from collections.abc import Mapping

Parents = Mapping[str, str | None]
"""The cohort above each cohort."""


def with_ancestors(cohort: str | None, parents: Parents) -> list[str]:
    """`cohort` and all cohorts above it, nearest first, each once: in a cycle the walk ends after one round."""
    names: dict[str, None] = {}
    while cohort and cohort not in names:
        names[cohort] = None
        cohort = parents.get(cohort)
    return list(names)


def root_of(cohort: str | None, parents: Parents) -> str | None:
    """The topmost cohort above `cohort`, or `cohort` itself; None where there is no cohort."""
    walk = with_ancestors(cohort, parents)
    return walk[-1] if walk else None


def roots_of(queues: Parents, parents: Parents) -> dict[str, str]:
    """For each ClusterQueue, given with its cohort, what its tree is called: by the root cohort or, alone, itself."""
    roots = {queue: root_of(cohort, parents) for queue, cohort in queues.items()}
    return {queue: f"cohort {root}" if root else f"queue {queue}" for queue, root in roots.items()}


def is_below_cycle(cohort: str, parents: Parents) -> bool:
    """Whether the cohort is in a cycle, or below one."""
    return bool(parents.get(with_ancestors(cohort, parents)[-1]))
