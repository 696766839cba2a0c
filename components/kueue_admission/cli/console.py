"""Prints for the commands: lines, tables and JSON on stdout, errors and warnings on stderr.

Every text from a file, the command line or a cluster is shown with `printable`: nothing in it acts on a terminal.
Where stdout is not a terminal, lines are plain and as long as they are.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from kueue_admission.kernel.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

_INDENT: Final = "  "
_LISTED: Final = 20
"""Problems of an input that are listed."""
_UNLIMITED: Final = 1_000_000
"""Columns of a pipe or a file: more than a table has."""


class Styled(NamedTuple):
    """A text, and a style of rich that it has on a terminal."""

    text: str
    style: str


Part = str | Styled
"""A piece of a line."""


class CommandError(Exception):
    """An expected failure of a command: its text is printed on stderr, without a traceback, and the process exits.

    `message` is one line, and each of `problems` one below it. What a stranger wrote cannot begin a line.
    """

    def __init__(self, message: str, exit_code: int = 1, problems: Iterable[object] = ()) -> None:
        self.message, self.exit_code = message, exit_code
        self.problems = tuple(str(problem) for problem in problems)
        super().__init__("\n".join([message, *(f"{_INDENT}{problem}" for problem in self.problems)]))


def mistyped(message: str, problems: Iterable[object] = ()) -> CommandError:
    """The failure that the command itself was mistyped: exit code 2."""
    return CommandError(message, 2, problems)


def source_name(file: object) -> str:
    """What messages call FILE."""
    return "<stdin>" if str(file) == "-" else str(file)


def wrong_input(source: object, problems: Sequence[object]) -> CommandError:
    """The failure that SOURCE, a file or folder, has these problems: the only one, or the first of them in a list."""
    name = source_name(source)
    if len(problems) == 1:
        only = str(problems[0])
        return CommandError(only if name in only else f"{name}: {only}")
    return CommandError(f"{name} has {count(len(problems), 'error')}:", problems=first_of(problems))


def first_of(problems: Sequence[object]) -> list[object]:
    """The problems that are listed, and how many more there are."""
    return [*problems[:_LISTED], *([f"and {len(problems) - _LISTED} more"] if len(problems) > _LISTED else [])]


def line(*parts: Part) -> None:
    """Print one line on stdout; on a terminal, too, it is neither cut nor broken, so that it can be copied."""
    sys.stdout.write(_assembled(sys.stdout, parts))


def paragraph(text: str) -> None:
    """Print TEXT on stdout, on a terminal on lines that are broken between words."""
    lines = broken(rich_text([text]), rich_console().width - len(_INDENT))
    sys.stdout.write(f"\n{_INDENT}".join(item.plain for item in lines) + "\n")


def text(block: str) -> None:
    """Print the lines of BLOCK, which ends with one, on stdout."""
    sys.stdout.write("\n".join(map(_tabbed, block.split("\n"))))


def json_document(document: object) -> None:
    """Print DOCUMENT as JSON, in ASCII, on stdout."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def show(*renderables: RenderableType) -> None:
    """Print what `tables` and rich make, as wide as the terminal; where there is none, as wide as it is."""
    console = rich_console()
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable, crop=False)
    rendered_text = capture.get()
    if not console.is_terminal:
        rendered_text = "".join(f"{item.rstrip()}\n" for item in rendered_text.splitlines())
    sys.stdout.write(rendered_text)


def error(failure: CommandError | str) -> None:
    """Print one failure on stderr."""
    command_error = failure if isinstance(failure, CommandError) else CommandError(failure)
    first = _assembled(sys.stderr, [Styled("error:", "bold red"), " ", command_error.message])
    sys.stderr.write(first)
    printed_by_others(command_error.problems)


def printed_by_others(lines: Iterable[str]) -> None:
    """Print on stderr the output of the program that a message is about."""
    sys.stderr.write("".join(f"{_INDENT}{_tabbed(str(item))}\n" for item in lines))


def _tabbed(item: str) -> str:
    """ITEM as it is shown, with the tabs of whoever printed it."""
    return "\t".join(map(printable, item.split("\t")))


def warning(message: str) -> None:
    """Print one warning on stderr."""
    sys.stderr.write(_assembled(sys.stderr, [Styled("warning:", "bold yellow"), " ", message]))


def count(number: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def interactive(stream: TextIO | None = None) -> bool:
    """Whether what STREAM, or stdout, shows can change in place: it is a terminal that moves its cursor, and NO_COLOR
    (no-color.org) is not set."""
    stream = stream or sys.stdout
    return stream.isatty() and _has_styles(stream)


def on_a_terminal() -> bool:
    """Whether the user can be asked: both stdin and stdout are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _has_styles(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    is_terminal = stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    return is_terminal or bool(os.environ.get("FORCE_COLOR"))


def rich_console(stream: TextIO | None = None) -> Console:
    """STREAM, or stdout, as rich writes to it: as wide as the terminal that it is, or without an end."""
    from rich.console import Console

    stream = stream or sys.stdout
    return Console(
        width=None if stream.isatty() else _UNLIMITED,
        force_terminal=_has_styles(stream),
        stderr=stream is sys.stderr,
        highlight=False,
    )


@contextmanager
def in_place(*, stays: bool) -> Iterator[Callable[..., None]]:
    """What shows renderables in the place of those before, for `interactive` output; the last ones STAY, or go."""
    from rich.console import Group
    from rich.live import Live

    with Live(console=rich_console(), auto_refresh=False, transient=not stays) as live:
        yield lambda *renderables: live.update(Group(*renderables), refresh=True)


def rich_text(parts: Iterable[Part]) -> Text:
    """What rich is given to show: no text of others reaches it in any other way."""
    from rich.text import Text

    pairs = [part if isinstance(part, Styled) else Styled(part, "") for part in parts]
    return Text.assemble(*((printable(part.text), part.style) for part in pairs))


def broken(sentence: Text, width: int) -> list[Text]:
    """The lines of a sentence that is broken between words; rich would also break words, or cut them."""
    from rich.cells import cell_len

    starts, column = [], 0
    for word in re.finditer(r"\S+\s*", sentence.plain):
        if column and column + cell_len(word[0].rstrip()) > width:
            starts.append(word.start())
            column = 0
        column += cell_len(word[0])
    lines = list(sentence.divide(starts))
    for line in lines:
        line.rstrip()
    return lines


def _assembled(stream: TextIO, parts: Iterable[Part]) -> str:
    if not _has_styles(stream):
        return "".join(printable(part if isinstance(part, str) else part.text) for part in parts) + "\n"
    console = rich_console(stream)
    with console.capture() as capture:
        console.print(rich_text(parts), soft_wrap=True)
    return capture.get()
