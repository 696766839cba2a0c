"""The `kueue-fleet` command as a process."""

from kueue_admission.cli import run_process

TYPE_CHECKING = False
"""As typing has it, whose import takes longer than all else before `main`."""
if TYPE_CHECKING:
    from typing import Any

    from kueue_fleet.cli.commands import COMMANDS, app

__all__ = ["COMMANDS", "app", "main"]


def main() -> None:
    """Run the command line, and exit: see `commands` for the codes."""
    run_process(_run)


def _run() -> int:
    from kueue_fleet.cli.commands import run

    return run()


def __getattr__(name: str) -> "Any":
    """The application and its commands, for tests and pages, imported when they are asked for."""
    if name in ("COMMANDS", "app"):
        from kueue_fleet.cli import commands

        return getattr(commands, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
