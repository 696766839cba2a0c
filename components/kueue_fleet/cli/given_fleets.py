"""What a command's FILE names: a file with a fleet, or a Pulumi program and a `Fleet` in it.

`platform` is a folder with a program, `platform/Pulumi.dev.yaml` one of its stacks where that file holds no fleet, and
`platform::research` the `Fleet` of that name where the program declares several.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kueue_admission.cli import console
from kueue_admission.cli.input_files import UnreadableError, is_there, read_text
from kueue_admission.kernel import errors_of
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.yaml_text import load_document
from kueue_fleet.fleet_file import Reading, read_fleet_text
from kueue_fleet.fleet_file.parse import PULUMI_KEY, fleet_part, read_fleet

if TYPE_CHECKING:
    from kueue_fleet.program.handed_out import DeclaredFleet
    from kueue_fleet.program.project import Project, ProjectError

_SEPARATOR: Final = "::"
_NO_STACK: Final = "dev"
"""The stack of a program that has no file of a stack."""


class ProgramError(UnreadableError):
    """A program cannot be run, or ended with an error; what it printed is below the message."""

    def __init__(self, name: str, wrong: str, fix: str, lines: tuple[str, ...] = ()) -> None:
        super().__init__(name, wrong, fix)
        self.problems = lines


@dataclass(frozen=True, slots=True)
class GivenFleet:
    """The fleet that a command was given, not yet read."""

    source: str
    """What messages call it."""
    text: str = ""
    """Of a file."""
    declared: DeclaredFleet | None = None
    """Of a program."""
    failure: ProgramError | None = None
    """How the program ended after it had declared the fleet, if that was an error."""

    def reading(self, at: datetime, *, as_published: bool = False) -> Reading:
        """The fleet as it is then, with every problem.

        Raises:
            ProgramError: the program failed, and not because of the fleet.
        """
        if self.declared is None:
            return read_fleet_text(self.text, self.source, at, as_published=as_published)
        fleet = read_fleet(self.declared.data, at, as_published=as_published)
        if self.failure is not None and not errors_of(fleet.problems):
            raise self.failure
        return Reading(fleet.fleet, tuple(replace(problem, source=self.source) for problem in fleet.problems))

    def data(self) -> Any:
        """The fleet as plain data, of what can be read."""
        if self.declared is not None:
            return self.declared.data
        return fleet_part(load_document(self.text, self.source)).data

    def placed(self, problems: Iterable[Problem]) -> list[Problem]:
        """Problems of the fleet that were found without its text, with the source and, of a file, the line."""
        part = None if self.declared is not None else fleet_part(load_document(self.text, self.source))
        return [
            replace(problem, source=self.source, line=None if part is None else part.line_of(problem.path))
            for problem in problems
        ]


def given_fleet(file: Path) -> GivenFleet:
    """What FILE names.

    Raises:
        UnreadableError: there is no such file, or the program cannot be run.
    """
    place, separator, fleet = str(file).partition(_SEPARATOR)
    if is_there(file) or not separator:
        place, fleet = str(file), ""
    from kueue_fleet.program.project import PROJECT_FILE, Project, ProjectError

    path = Path(place)
    folder = path.parent if path.name == PROJECT_FILE and is_there(path) else path
    try:
        if is_there(folder / PROJECT_FILE):
            return _of_folder(folder, str(file), fleet)
        text = read_text(path)
        if path.suffix == ".py":
            project = Project.above(path)
            of = f", {project.folder}" if project is not None else " with a Pulumi.yaml, or the file of a fleet"
            raise UnreadableError(place, "is a program", f"give its folder{of}")
        of_stack = _stack_without_fleet(path, text, named=bool(fleet))
        if of_stack is not None:
            return of_program(*of_stack, str(file), fleet)
    except ProjectError as wrong:
        raise as_program_error(wrong) from None
    if fleet:
        raise UnreadableError(place, "is a file with one fleet", f"leave out {_SEPARATOR}{fleet}")
    return GivenFleet(console.source_name(file), text)


def as_program_error(wrong: ProjectError) -> ProgramError:
    """The same, as a command ends with it."""
    return ProgramError(wrong.source, wrong.wrong, wrong.fix, wrong.printed)


def _of_folder(folder: Path, source: str, fleet: str) -> GivenFleet:
    from kueue_fleet.program.project import Project

    project = Project.read(folder)
    stacks = project.stacks
    if len(stacks) > 1:
        some = ", ".join(str(project.stack_file(name)) for name in stacks[:3])
        more = f" or {len(stacks) - 3} more" if len(stacks) > 3 else ""
        raise UnreadableError(source, f"has {len(stacks)} stacks", f"give the file of one: {some}{more}")
    return of_program(project, stacks[0] if stacks else _NO_STACK, source, fleet)


def _stack_without_fleet(file: Path, text: str, *, named: bool) -> tuple[Project, str] | None:
    """The project and the stack, where FILE is the file of a stack and holds no fleet, or a `Fleet` is NAMED."""
    from kueue_fleet.program.project import Project

    if not file.match("Pulumi.*.yaml") or (PULUMI_KEY in text and not named):
        return None
    project = Project.above(file)
    stack = project and project.stack_of(file)
    return (project, stack) if project and stack and project.program.is_file() else None


def of_program(project: Project, stack: str, source: str, fleet: str = "", python: Path | None = None) -> GivenFleet:
    """The `Fleet` that the program declares for a stack: the one of the name FLEET, or the only one.

    `python` runs it, by default the project's.

    Raises:
        ProjectError: the program cannot be run, or failed before it had declared a fleet.
        UnreadableError: it declares no fleet, several, or one that differs from the stack's file.
    """
    from kueue_fleet.program.run import ProgramFailedError, fleets_of

    failure, file = None, project.stack_file(stack)
    try:
        fleets = fleets_of(project, stack, python)
    except ProgramFailedError as failed:
        fleets, failure = list(failed.fleets), as_program_error(failed)
    config = project.stack_settings(stack).get("config") or {}
    if failure is not None and not fleets:
        in_file = GivenFleet(str(file), file.read_text(encoding="utf-8")) if PULUMI_KEY in config else None
        if in_file is not None and errors_of(in_file.reading(_ANY_DAY).problems):
            return in_file
        raise failure
    fleet_there = _only(fleets, source, fleet)
    if PULUMI_KEY in config and (len(fleets) == 1 or fleet_there.name == config[PULUMI_KEY].get("name")):
        check_same(file, config[PULUMI_KEY], fleet_there)
    return GivenFleet(source, declared=fleet_there, failure=failure)


_ANY_DAY: Final = datetime(2026, 1, 1).astimezone()
"""The form of a fleet does not depend on the day."""


def _only(fleets: list[DeclaredFleet], source: str, name: str) -> DeclaredFleet:
    """The fleet of that name; without one, the only fleet."""
    place = source.partition(_SEPARATOR)[0]
    names = ", ".join(f"{place}{_SEPARATOR}{fleet.name}" for fleet in fleets)
    if not fleets:
        raise UnreadableError(place, "the program declares no Fleet", "add one, or give the file of a fleet")
    if name:
        fleets_there = [fleet for fleet in fleets if fleet.name == name]
        if not fleets_there:
            raise UnreadableError(place, f"the program declares no Fleet {name}", f"give {names}")
        return fleets_there[0]
    if len(fleets) > 1:
        raise UnreadableError(place, f"the program declares {len(fleets)} fleets", f"name one: {names}")
    return fleets[0]


def check_same(file: Path, in_file: Mapping[str, Any], declared_fleet: DeclaredFleet) -> None:
    """Raises UnreadableError, with the first difference, where the program's fleet is not the file's."""
    from kueue_fleet.program.handed_out import first_difference

    one, other = (read_fleet(data, as_published=True).fleet for data in (in_file, declared_fleet.spec))
    if one is None or other is None:
        return  # What is wrong with either is said where it is read.
    differs = first_difference(one.wire(), other.wire())
    if differs is not None:
        path, here, there = differs
        wrong = f"{path}: is {_text_of(here)}, but in the program's Fleet {declared_fleet.name} {_text_of(there)}"
        raise UnreadableError(str(file), wrong, f"write the same in both, or remove {PULUMI_KEY} from the file")


def _text_of(value: Any) -> str:
    if value is None:
        return "not there"
    return (
        f"a value with {console.count(len(value), 'part')}" if isinstance(value, list | Mapping) else json.dumps(value)
    )
