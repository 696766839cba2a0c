"""What each `Fleet` of a program declares, handed out to who runs the program: `kueue-fleet`, or a rehearsal.

The runner names a folder of its own by a variable of the environment; a `Fleet` writes a file there. Nothing is written
where the variable is not set, as in a plain `pulumi up`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from kueue_fleet.fleet_file import FleetSpec

FOLDER_VARIABLE: Final = "KUEUE_FLEET_HANDED_OUT"
"""Names the folder."""


class DeclaredFleet(NamedTuple):
    """A `Fleet` of a program."""

    name: str
    """Its Pulumi name."""
    spec: Any
    """Its spec as plain data, in the spelling of fleet files; the program may have given anything."""
    project: str | None
    """The project that the program gives beside the spec."""

    @property
    def data(self) -> Any:
        """The spec with that project."""
        return {**self.spec, "project": self.project} if self.project and isinstance(self.spec, Mapping) else self.spec


def hand_out(name: str, spec: FleetSpec | Mapping[str, Any], project: object) -> None:
    """Write what the `Fleet` of this name declares, if the runner asks for it."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    data: Any = spec
    if isinstance(spec, FleetSpec):
        data = spec.wire()
        if not spec.project:
            del data["project"]  # No cluster is of GKE, and no file has an empty id.
    fleet = {"name": name, "spec": data, "project": project if isinstance(project, str) else None}
    number = len(os.listdir(folder))
    part_file = Path(folder, f"{number:04}.part")
    part_file.write_text(json.dumps(fleet, default=str), encoding="utf-8")
    part_file.rename(part_file.with_suffix(".json"))


def handed_out(folder: Path) -> list[DeclaredFleet]:
    """The fleets in the folder, in the order of the program."""
    return [DeclaredFleet(**json.loads(file.read_text(encoding="utf-8"))) for file in sorted(folder.glob("*.json"))]


def first_difference(one: Any, other: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Path, first and second value of the first field in which two specs differ; items of lists go by their name."""
    if one == other:
        return None
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        pairs = [(f"{path}.{key}" if path else str(key), one.get(key), other.get(key)) for key in {**one, **other}]
    elif (mine := _by_name(one)) and (theirs := _by_name(other)):
        pairs = [(f"{path}[{name}]", mine.get(name), theirs.get(name)) for name in {**mine, **theirs}]
    else:
        return path, one, other
    return next(
        (difference for at, mine, theirs in pairs if (difference := first_difference(mine, theirs, at))),
        (path, one, other),
    )


def _by_name(items: Any) -> dict[str, Any] | None:
    has_names = isinstance(items, list) and all(isinstance(item, Mapping) and "name" in item for item in items)
    return {str(item["name"]): item for item in items} if has_names else None
