"""When GKE may change a cluster by itself.

In: `maintenance` of a cluster. Out: a frozen model with the rules of GKE's windows and exclusions.
Source: https://cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from kueue_fleet.spec.base import RuledModel, Text
from kueue_fleet.spec.instant import Instant
from kueue_fleet.spec.problem import Problem, rule

LONGEST_STOP: Final = timedelta(days=30)
"""Longest exclusion of all upgrades."""
MOST_EXCLUSIONS: Final = 20
"""Exclusions that a cluster has at most."""
MOST_STOPS: Final = 3
"""Exclusions of all upgrades that a cluster has at most."""
_RECURRENCE: Final = re.compile(r"FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;[A-Z]+=[-+A-Z0-9,]+)*")


class MaintenanceExclusion(RuledModel):
    """A time in which GKE changes less, or nothing."""

    name: Annotated[Text, Field(min_length=1)]
    """What it is called in the console."""
    start: Instant
    """When it begins."""
    end: Instant
    """When it ends."""
    scope: Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"] = "NO_UPGRADES"
    """NO_UPGRADES (default) lasts at most 30 days."""

    def own_problems(self) -> Iterator[Problem]:
        """Some time, and not too much."""
        if self.end <= self.start:
            yield Problem("end", "is not after start", "write a later end")
        elif self.scope == "NO_UPGRADES" and self.end - self.start > LONGEST_STOP:
            yield Problem(
                "end",
                f"{(self.end - self.start).days} days without any upgrade, but GKE grants 30",
                "write an earlier end, or another scope",
            )


class Maintenance(RuledModel):
    """A window that comes back, such as the nights of weekends."""

    start: Instant
    """Begin of the first window."""
    end: Instant
    """End of the first window."""
    recurrence: Text
    """When it comes back, as RFC 5545 has it: FREQ=WEEKLY;BYDAY=SA,SU."""
    exclusions: tuple[MaintenanceExclusion, ...] = ()
    """Times without changes."""

    def own_problems(self) -> Iterator[Problem]:
        """A window of a day at most; a recurrence that GKE reads; names once."""
        yield from self._window()
        yield from self._exclusions()
        if not _RECURRENCE.fullmatch(self.recurrence):
            yield Problem(
                "recurrence",
                f'"{self.recurrence}" is no recurrence',
                "write one of RFC 5545, such as FREQ=WEEKLY;BYDAY=SA,SU",
            )

    @rule
    def _window(self) -> Iterator[Problem]:
        if not timedelta(0) < self.end - self.start <= timedelta(days=1):
            yield Problem("end", "is not within a day after start", "write the end of one window")

    @rule
    def _exclusions(self) -> Iterator[Problem]:
        names = [exclusion.name for exclusion in self.exclusions]
        for index, exclusion in enumerate(self.exclusions):
            if exclusion.name in names[:index]:
                yield Problem(f"exclusions[{index}].name", f"{exclusion.name} is used twice", "give it another name")
        stops = sum(exclusion.scope == "NO_UPGRADES" for exclusion in self.exclusions)
        if stops > MOST_STOPS or len(names) > MOST_EXCLUSIONS:
            yield Problem(
                "exclusions",
                f"{len(names)}, of which {stops} stop all upgrades",
                f"keep at most {MOST_EXCLUSIONS}, and at most {MOST_STOPS} of scope NO_UPGRADES",
            )
