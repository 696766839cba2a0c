"""What the rules share: the fleet, the paths of its entries, and the words for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Final, NamedTuple, get_args

from kueue_admission.kernel import suggest
from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.form_rules import UNKNOWN_NAME
from kueue_admission.kernel.problem import Problem, as_far_as_read, item_labels, where_read
from kueue_admission.kernel.unknown import NotKnownError
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.gke.zones import region_names


class Section(NamedTuple):
    """A list of named entries."""

    noun: str
    """What messages call one of its entries."""
    nouns: str
    """What they call several."""


FIELDS: Final = {field.alias or name: name for name, field in FleetSpec.model_fields.items()}
"""The name in Python of each field of the file, in the order of its description."""
_OTHER_NOUNS: Final = {
    "clusterQueues": Section("queue", "queues"),
    "admissionChecks": Section("check", "checks"),
    "localQueues": Section("LocalQueue", "LocalQueues"),
    "storage": Section("storage", "storage entries"),
}
"""The lists whose entries messages call otherwise than the list's name does."""


def _section(field: str) -> Section:
    nouns = FIELDS[field].replace("_", " ")
    return Section(re.sub(r"ies$", "y", nouns).removesuffix("es" if nouns.endswith("sses") else "s"), nouns)


SECTIONS: Final = {
    field: _OTHER_NOUNS.get(field) or _section(field)
    for field, name in FIELDS.items()
    if any("name" in getattr(kind, "model_fields", ()) for kind in get_args(FleetSpec.model_fields[name].annotation))
}
"""The lists of named entries by their name in the file, in the order of its description."""


class Scope:
    """One fleet under check: a whole one, or what could be read of a file.

    What could not be read is not there: asking for it raises NotKnownError, which ends the `rule` that asked.
    `data` is the file's own, where the entries have names that are not good enough for a fleet.
    """

    def __init__(self, fleet: FleetSpec, data: Any = None) -> None:
        self.fleet = fleet
        self.data = data
        self._paths: dict[int, str] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        for section in SECTIONS:
            entries = self.entries(section)
            items = data.get(section) if isinstance(data, Mapping) else None
            named_items = items if isinstance(items, Sequence) and len(items) == len(entries) else entries
            for entry, label in zip(entries, item_labels([_name(item) for item in named_items]), strict=True):
                self._paths[id(entry)] = f"{section}[{label}]"

    def entries(self, section: str) -> Sequence[Any]:
        """The entries of a list of the file, as far as they could be read; of a section that is no list, itself."""
        try:
            content = getattr(self.fleet, FIELDS[section])
        except NotKnownError:
            return ()
        return content if isinstance(content, Sequence) else () if content is None else (content,)

    def path(self, entry: object) -> str:
        """Where an entry of the fleet is: `clusterQueues[dws]`."""
        return self._paths[id(entry)]

    def names(self, section: str) -> tuple[str, ...]:
        """Every name in a list of the file. Raises NotKnownError if one of them could not be read."""
        if section not in self._names:
            entries: Sequence[Any] = getattr(self.fleet, FIELDS[section])
            self._names[section] = tuple(dict.fromkeys(entry.name for entry in entries))
        return self._names[section]

    @property
    def known_regions(self) -> Collection[str]:
        """Google's regions, and those that the file's network has a subnet or a range for."""
        return (*region_names(), *self.fleet.network.own_regions)

    @property
    def known_places(self) -> Collection[str]:
        """Those regions, and the locations of clusters that are not of GKE."""
        return (*self.known_regions, *(cluster.location for cluster in self.fleet.clusters if cluster.location))

    @where_read
    def unknown(self, section: str, name: str, path: str, also: Iterable[str] = ()) -> Iterator[Problem]:
        """The problem of a name at `path` that no entry of the list has, and that is not in `also`."""
        known_names = (*self.names(section), *also)
        if name not in known_names:
            kind = SECTIONS[section]
            yield UNKNOWN_NAME.at(
                path, f"there is no {kind.noun} {name}", suggest.instead(name, known_names, kind.nouns)
            )

    def in_file_order(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems section by section; within a section, entry by entry."""
        entries = {path: index for index, path in enumerate(self._paths.values())}
        fields = [*FIELDS]

        def place(problem: Problem) -> tuple[int, int]:
            section = re.split(r"[.\[]", problem.path, maxsplit=1)[0]
            entry = problem.path[: problem.path.find("]") + 1]
            order = fields.index(section) if section in fields else -1
            return order, entries.get(entry, -1)

        return sorted(problems, key=place)


Check = Callable[[Scope], Iterator[Problem]]
"""Yields the problems of a part of a fleet."""
EntryCheck = Callable[[Scope, Any], Iterator[Problem]]
"""Yields the problems of an entry of a list, or of a section."""
CHECKS: Final[list[Check]] = []
"""The checks of the modules that are imported."""


def fleet_check(check: Check) -> Check:
    """Registers a check of every fleet."""
    CHECKS.append(check)
    return check


def entry_check(*sections: str) -> Callable[[EntryCheck], EntryCheck]:
    """Registers a check of each of the `Scope.entries` of sections; one that cannot be read ends no other."""

    def registered(check: EntryCheck) -> EntryCheck:
        @wraps(check)
        def of_entries(scope: Scope) -> Iterator[Problem]:
            for section in sections:
                for entry in scope.entries(section):
                    yield from as_far_as_read(check(scope, entry))

        CHECKS.append(of_entries)
        return check

    return registered


def _name(item: Any) -> str | None:
    """The name of an entry, as text of the file or in the fleet; None if it has none, or none that fits a path."""
    fields = item.__dict__ if isinstance(item, SpecModel) else item
    name = fields.get("name") if isinstance(fields, Mapping) else None
    return name if isinstance(name, str) and len(name) <= 253 else None
