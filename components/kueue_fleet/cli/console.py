"""What the command line prints with, and the one exception that ends a command."""

from __future__ import annotations

import os

from rich.console import Console

# rich leaves bold face and cursor movement where NO_COLOR (no-color.org) is set; as no terminal, it writes plain text.
_FORCED = False if os.environ.get("NO_COLOR") else None

out = Console(highlight=False, force_terminal=_FORCED)
"""What a command is asked for goes here: stdout."""
err = Console(stderr=True, highlight=False, force_terminal=_FORCED)
"""Errors, warnings and progress go here: stderr."""


def interactive() -> bool:
    """Whether output can change in place: a terminal that moves its cursor."""
    return out.is_terminal and not out.is_dumb_terminal


class CommandError(Exception):
    """An expected failure of a command: its text is printed on stderr, without a traceback, and the process exits."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def error(message: str) -> None:
    """Print one failure on stderr, as it is: neither markup nor wrapping may change a path a user will copy."""
    err.print("error:", style="bold red", end=" ")
    err.print(message, markup=False, soft_wrap=True)


def warning(message: str) -> None:
    """Print one warning on stderr."""
    err.print("warning:", style="bold yellow", end=" ")
    err.print(message, markup=False, soft_wrap=True)


def count(number: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
