"""What the rules share: the fleet, the paths of its entries, and what of the file could not be read.

In: a fleet, and from the parser the names and paths of what could not be read. Out: `Scope`. Where something could not
be read a stand-in is in its place; rules ask the scope before they say something that a stand-in could have caused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kueue_fleet.spec import suggest
from kueue_fleet.spec.base import SpecModel
from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.problem import Problem
from kueue_fleet.spec.wire.quotas import item_labels

SECTIONS: Final = {
    "clusters": "clusters",
    "nodePools": "node_pools",
    "reservations": "reservations",
    "futureReservations": "future_reservations",
    "commitments": "commitments",
    "flavors": "flavors",
    "topologies": "topologies",
    "cohorts": "cohorts",
    "clusterQueues": "cluster_queues",
    "admissionChecks": "admission_checks",
    "priorityClasses": "priority_classes",
    "workloadPriorityClasses": "workload_priority_classes",
    "teams": "teams",
    "localQueues": "local_queues",
}
"""The lists of named entries, in the order of the file's description; and their names in Python."""

NOUNS: Final = {
    "clusters": ("cluster", "clusters"),
    "nodePools": ("node pool", "node pools"),
    "reservations": ("reservation", "reservations"),
    "futureReservations": ("future reservation", "future reservations"),
    "commitments": ("commitment", "commitments"),
    "flavors": ("flavor", "flavors"),
    "topologies": ("topology", "topologies"),
    "cohorts": ("cohort", "cohorts"),
    "clusterQueues": ("queue", "queues"),
    "admissionChecks": ("check", "checks"),
    "priorityClasses": ("priority class", "priority classes"),
    "workloadPriorityClasses": ("workload priority class", "workload priority classes"),
    "teams": ("team", "teams"),
    "localQueues": ("LocalQueue", "LocalQueues"),
}
"""What messages call an entry of a list, and several."""

UNREAD: Final = "unread-"
"""How the names begin that stand in for names that could not be read."""
_ORDER: Final = (
    "name",
    "project",
    "deletionProtection",
    "labels",
    "network",
    "kueue",
    "jobSet",
    *SECTIONS,
    "multiKueue",
    "admissionController",
)


class Scope:
    """One fleet under check."""

    def __init__(
        self,
        fleet: FleetSpec,
        declared: Mapping[str, Sequence[str]] | None = None,
        unread: Iterable[str] = (),
    ) -> None:
        self.fleet = fleet
        self._declared = declared or {}
        self._unread = frozenset(unread)
        self._paths: dict[int, str] = {}
        for section in SECTIONS:
            entries = self.entries(section)
            labels = item_labels([entry.name for entry in entries])
            for entry, label in zip(entries, labels, strict=True):
                self._paths[id(entry)] = f"{section}[{label}]"

    def entries(self, section: str) -> Sequence[Any]:
        """The entries of a list of the file."""
        found: Sequence[Any] = getattr(self.fleet, SECTIONS[section])
        return found

    def path(self, entry: SpecModel) -> str:
        """Where an entry of the fleet is: `clusterQueues[dws]`."""
        return self._paths[id(entry)]

    def names(self, section: str) -> tuple[str, ...]:
        """Every name in a list of the file, of entries that could not be read too."""
        read = (entry.name for entry in self.entries(section) if not entry.name.startswith(UNREAD))
        return tuple(dict.fromkeys([*read, *self._declared.get(section, ())]))

    def is_unread(self, *prefixes: str) -> bool:
        """Whether anything at or below one of the paths, or a whole they are in, could not be read."""
        return any(
            unread == prefix or unread.startswith((f"{prefix}.", f"{prefix}[")) or prefix.startswith(f"{unread}[")
            for prefix in prefixes
            for unread in self._unread
        )

    def is_unread_field(self, section: str, field: str) -> bool:
        """Whether `field` of any entry of the list, or the list itself, could not be read."""
        pattern = re.compile(rf"{re.escape(section)}(\[[^]]*\]\.{re.escape(field)})?")
        return any(pattern.fullmatch(unread) for unread in self._unread)

    def is_about_unread(self, problem: Problem) -> bool:
        """Whether a problem is about an object in which something could not be read, or about a stand-in's name."""
        return (
            f"[{UNREAD}" in problem.path
            or (bool(self._unread) and (UNREAD in problem.wrong or UNREAD in problem.fix))
            or any(_inside(problem.path, _parent(unread)) for unread in self._unread if _parent(unread))
        )

    def unknown(self, section: str, name: str, path: str, also: Iterable[str] = ()) -> Iterator[Problem]:
        """The problem of a name at `path` that no entry of the list has, and that is not in `also`."""
        known = (*self.names(section), *also)
        if name in known or self.is_unread_field(section, "name"):
            return
        noun, nouns = NOUNS[section]
        yield Problem(path, f"there is no {noun} {name}", suggest.instead(name, known, nouns))

    def unknown_clusters(self, names: Iterable[str] | None, path: str) -> Iterator[Problem]:
        """The problems of a list of clusters at `path`: unknown ones, and those listed twice."""
        listed = tuple(names or ())
        for index, name in enumerate(listed):
            yield from self.unknown("clusters", name, f"{path}[{index}]")
            if name in listed[:index]:
                yield Problem(f"{path}[{index}]", f"{name} is listed twice", "list each cluster once")

    def in_file_order(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems section by section; within a section, entry by entry."""
        entries = {path: index for index, path in enumerate(self._paths.values())}

        def place(problem: Problem) -> tuple[int, int]:
            section = re.split(r"[.\[]", problem.path, maxsplit=1)[0]
            entry = problem.path[: problem.path.find("]") + 1]
            order = _ORDER.index(section) if section in _ORDER else -1
            return order, entries.get(entry, -1)

        return sorted(problems, key=place)


def _parent(path: str) -> str:
    """The object that a field is in."""
    return path[: max(path.rfind("."), path.rfind("["))] if "." in path or "[" in path else ""


def _inside(path: str, base: str) -> bool:
    return path == base or path.startswith((f"{base}.", f"{base}["))
