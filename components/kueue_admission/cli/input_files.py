"""Reading what commands are given: text, and Kubernetes objects; and how they print what comes of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO

import typer

from kueue_admission.cli import console

if TYPE_CHECKING:
    from kueue_admission.kernel.problem import Problem
    from kueue_admission.simulate.documents import Document


class Output(StrEnum):
    """How the result is printed."""

    text = "text"
    json = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="`json` prints one document, schemaVersion 1.")]
"""The option of commands that print a document for programs."""
_MOST_FILES: Final = 100_000
"""Files and folders below a folder of objects."""
_MOST_CHARACTERS: Final = 2**30
"""Of a file: more than the largest dump has, and fewer than fill the memory."""
_FLEET: Final = "a Pulumi.<env>.yaml or a fleet YAML"


def is_there(path: Path | str) -> bool:
    """Whether there is a file or folder of this name. Path.exists raises an error for a name that is too long."""
    return os.path.exists(path)


class UnreadableError(console.CommandError):
    """A file cannot be read, for the reason that `problem` gives."""

    def __init__(self, name: str, wrong: str, fix: str) -> None:
        from kueue_admission.kernel.form_rules import UNREADABLE_FILE

        self.problem = UNREADABLE_FILE.at("", wrong, fix, source=name)
        super().__init__(str(self.problem))


def read_text(file: Path, what: str = _FLEET) -> str:
    """The text of FILE, or of standard input for `-`, without a byte order mark; `what` says what should be in it.

    Raises:
        UnreadableError: there is no such file, it cannot be read, has no end, or is not UTF-8 text.
    """
    name = console.source_name(file)
    try:
        with nullcontext(_stdin()) if str(file) == "-" else file.open(encoding="utf-8-sig") as stream:
            text = stream.read(_MOST_CHARACTERS + 1)
    except FileNotFoundError:
        raise UnreadableError(name, "no such file", _instead(file, what)) from None
    except IsADirectoryError:
        raise UnreadableError(name, "is a folder", f"give {what}") from None
    except UnicodeDecodeError as wrong:
        raise UnreadableError(name, f"is not UTF-8 text (byte {wrong.start})", "save it as UTF-8") from None
    except OSError as wrong:
        fix = "check its permissions" if isinstance(wrong, PermissionError) else f"give {what}"
        raise UnreadableError(name, f"cannot be read: {wrong.strerror}", fix) from None
    if len(text) > _MOST_CHARACTERS:
        raise UnreadableError(name, f"has more than {_MOST_CHARACTERS:,} characters", f"give {what}")
    return text


def read_yaml(file: Path, what: str) -> Any:
    """The one YAML document in FILE, which should hold WANTED. Raises CommandError where there is none."""
    from kueue_admission.kernel.problem import SpecError
    from kueue_admission.kernel.yaml_text import load_yaml

    try:
        return load_yaml(read_text(file, what), console.source_name(file))
    except SpecError as refused:
        raise console.wrong_input(file, refused.problems) from None


def _stdin() -> TextIO:
    if sys.stdin is None:
        raise UnreadableError("<stdin>", "is closed", "give a file, or pipe one in")
    sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict")  # type: ignore[union-attr]  # A test's may be another.
    return sys.stdin


def _instead(file: Path, what: str) -> str:
    """What to give in the place of a file that is not there: a stack may be known by its name alone."""
    for candidate in (Path(f"Pulumi.{file}.yaml"), Path("stacks") / f"Pulumi.{file}.yaml", Path("stacks") / file):
        if what == _FLEET and "/" not in str(file) and candidate.is_file():
            return f"did you mean {candidate}?"
    return f"give {what}"


def write_text(file: Path, text: str) -> None:
    """Write FILE, and the folder that it is in. A file that was there is replaced when the new one is whole.

    Raises:
        CommandError: it cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if is_there(file) and not file.is_file():
            # A device or a pipe stays what it is: replaced by root, /dev/null would be a file for every program.
            file.write_text(text, encoding="utf-8")
        else:
            _replace(file.resolve(), text)
    except FileExistsError:
        raise console.CommandError(f"{file}: {file.parent} is not a folder; name another file") from None
    except OSError as wrong:
        raise console.CommandError(f"{file}: cannot be written: {wrong.strerror}; name another file") from None


def _replace(file: Path, text: str) -> None:
    from tempfile import NamedTemporaryFile  # What it needs takes longer to import than `--help` has.

    mode = file.stat().st_mode if file.exists() else 0o666 & ~_umask()
    with NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, delete=False) as file_object:
        temporary = Path(file_object.name)
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(mode)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _files_below(folder: Path) -> Iterator[Path]:
    """The YAML and JSON files of a folder. Raises CommandError for more folders and files than a dump has."""
    entries_seen = 0
    for where, folders, names in os.walk(folder):
        entries_seen += len(folders) + len(names)
        if entries_seen > _MOST_FILES:
            raise console.CommandError(
                f"{folder}: has more than {_MOST_FILES:,} files; give a folder with objects only"
            )
        yield from (Path(where, name) for name in names if Path(name).suffix in (".yaml", ".yml", ".json", ".jsonl"))


@contextmanager
def well_formed(source: object = None) -> Iterator[None]:
    """Raises CommandError with the problems of SOURCE, a file or folder, that a SimulationError in this block has.

    None: there are several, and the problems say of which they are.
    """
    from kueue_admission.simulate.errors import SimulationError

    try:
        yield
    except SimulationError as refused:
        if source is None and len(refused.problems) == 1:
            raise console.CommandError(str(refused.problems[0])) from None
        raise console.wrong_input(source or "the input", refused.problems) from None


def read_objects(path: Path, *, may_be_empty: bool = False, left_out: list[Problem] | None = None) -> list[Document]:
    """The Kubernetes objects in a file, in the YAML and JSON files of a folder, or on standard input for `-`.

    `may_be_empty`: no object is an answer too. `left_out` takes what is wrong with whatever cannot be read, where
    other objects can.

    Raises:
        CommandError: there is nothing to read.
        SimulationError: what there is holds no objects; without `left_out`, something that is none.
    """
    from kueue_admission.simulate.documents import read_documents
    from kueue_admission.simulate.errors import SimulationError

    files = [path]
    if str(path) != "-" and not is_there(path):
        raise console.CommandError(f"{path}: no such file or folder; give one with Kubernetes objects")
    if path.is_dir():
        files = sorted(_files_below(path))
        if not files:
            raise console.CommandError(f"{path}: has no .yaml, .yml or .json file; give a folder with objects")
    documents: list[Document] = []
    problems: list[Problem] = []
    for file in files:
        try:
            text, name = read_text(file, "one with Kubernetes objects"), console.source_name(file)
            documents += read_documents(text, name, problems)
        except SimulationError as refused:
            problems += refused.problems
    if problems and (left_out is None or not documents):
        raise SimulationError(problems)
    if left_out is not None:
        left_out += problems
    if not documents and not may_be_empty:
        raise console.CommandError(
            f"{console.source_name(path)}: holds no objects; write Kueue's objects and jobs into it"
        )
    return documents


def read_what_can_be(path: Path, *, may_be_empty: bool = False) -> list[Document]:
    """As `read_objects`, with a warning of what cannot be read where other objects can."""
    from kueue_admission.read.readable import notes_of_problems

    left_out: list[Problem] = []
    documents = read_objects(path, may_be_empty=may_be_empty, left_out=left_out)
    for note in notes_of_problems(left_out):
        console.warning(note)
    return documents
