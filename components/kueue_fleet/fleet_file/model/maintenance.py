"""When GKE may change a cluster by itself.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from kueue_admission.kernel.base import RuledModel, Text
from kueue_admission.kernel.form_rules import EXCLUDED, LISTED_TWICE, NEEDED, WRONG_ORDER
from kueue_admission.kernel.given import NOT_GIVEN, ListOf
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.timestamp import OptionalTimestampField, TimestampField
from kueue_fleet.fleet_file.rules.clusters import MAINTENANCE
from kueue_fleet.gke.maintenance import RecurrenceError, Stretch, shortage

LONGEST_STOP: Final = timedelta(days=30)
"""Longest exclusion of all upgrades."""
MOST_EXCLUSIONS: Final = 20
"""Exclusions that a cluster has at most."""
MOST_STOPS: Final = 3
"""Exclusions of all upgrades that a cluster has at most."""


class MaintenanceExclusion(RuledModel):
    """A time in which GKE changes less, or nothing."""

    name: Annotated[Text, Field(min_length=1)] = Field(kw_only=False)
    """Name in the console."""
    start: TimestampField
    """When it begins."""
    end: OptionalTimestampField = NOT_GIVEN
    """When it ends; left out with endTimeBehavior."""
    end_time_behavior: Literal["UNTIL_END_OF_SUPPORT"] | None = None
    """UNTIL_END_OF_SUPPORT: as long as GKE supports the cluster's minor version, and moves with that."""
    scope: Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"] = "NO_UPGRADES"
    """NO_UPGRADES (default) lasts at most 30 days."""

    def own_problems(self) -> Iterator[Problem]:
        """One end; some time, and not too much."""
        if self.end is None and self.end_time_behavior is None:
            yield NEEDED.at("end", "is not set", "write when it ends, or endTimeBehavior: UNTIL_END_OF_SUPPORT")
        elif self.end is not None and self.end_time_behavior is not None:
            yield EXCLUDED.at(
                "end", f"is set, but so is endTimeBehavior: {self.end_time_behavior}", "keep one of the two"
            )
        elif self.end_time_behavior is not None and self.scope == "NO_UPGRADES":
            yield MAINTENANCE.at(
                "endTimeBehavior",
                f"{self.end_time_behavior}, but scope is NO_UPGRADES, which lasts at most {LONGEST_STOP.days} days",
                "write an end, or scope: NO_MINOR_UPGRADES or NO_MINOR_OR_NODE_UPGRADES",
            )
        elif self.end is None:
            return
        elif self.end <= self.start:
            yield WRONG_ORDER.at("end", "is not after start", "write a later end")
        elif self.scope == "NO_UPGRADES" and self.end - self.start > LONGEST_STOP:
            yield MAINTENANCE.at(
                "end",
                f"{(self.end - self.start).days} days without any upgrade, but GKE grants 30",
                "write an earlier end, or another scope",
            )


class Maintenance(RuledModel):
    """A recurring window, such as the nights of weekends."""

    start: TimestampField
    """Begin of the first window."""
    end: TimestampField
    """End of the first window."""
    recurrence: Text
    """Recurrence as in RFC 5545: FREQ=WEEKLY;BYDAY=SA,SU."""
    exclusions: ListOf[MaintenanceExclusion] = ()
    """Times without changes."""

    def own_problems(self) -> Iterator[Problem]:
        """A window of a day at most, which leaves GKE enough time; names once."""
        yield from self._window()
        yield from self._exclusions()

    @where_read
    def _window(self) -> Iterator[Problem]:
        if not timedelta(0) < self.end - self.start <= timedelta(days=1):
            yield MAINTENANCE.at("end", "is not within a day after start", "write the end of one window")
        else:
            yield from self._shortage()

    @where_read
    def _exclusions(self) -> Iterator[Problem]:
        names = [exclusion.name for exclusion in self.exclusions]
        for index, exclusion in enumerate(self.exclusions):
            if exclusion.name in names[:index]:
                yield LISTED_TWICE.at(
                    f"exclusions[{index}].name", f"{exclusion.name} is used twice", "give it another name"
                )
        stops = sum(exclusion.scope == "NO_UPGRADES" for exclusion in self.exclusions)
        if stops > MOST_STOPS or len(names) > MOST_EXCLUSIONS:
            yield MAINTENANCE.at(
                "exclusions",
                f"{len(names)}, of which {stops} stop all upgrades",
                f"keep at most {MOST_EXCLUSIONS}, and at most {MOST_STOPS} of scope NO_UPGRADES",
            )

    def _shortage(self) -> Iterator[Problem]:
        """GKE gets the time that it wants; what excludes all upgrades is taken as not available."""
        stops = tuple(
            Stretch(exclusion.start, exclusion.end)
            for exclusion in self.exclusions
            if exclusion.scope == "NO_UPGRADES" and exclusion.end is not None and exclusion.start < exclusion.end
        )
        window = Stretch(self.start, self.end)
        try:
            alone = shortage(window, self.recurrence)
            shortage_there = alone or shortage(window, self.recurrence, stops)
        except RecurrenceError as error:
            yield MAINTENANCE.at("recurrence", f'"{self.recurrence}" {error.wrong}', error.fix)
            return
        if shortage_there is not None:
            hours = shortage_there.available.total_seconds() / 3600
            less = "" if alone else ", less the exclusions of all upgrades"
            yield MAINTENANCE.at(
                "recurrence",
                f"leaves GKE {hours:g} h of the 32 days from {shortage_there.start.date()} on{less}, but it wants "
                "48 h, in stretches of at least 4 h",
                "make the window longer, or let it come back more often"
                + ("" if alone else ", or the exclusion shorter"),
            )
