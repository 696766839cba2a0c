"""What the command line prints with, and the one exception that ends a command."""

from __future__ import annotations

from rich.console import Console

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


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
