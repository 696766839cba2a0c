"""The commands, and how each ends: typer's application, and the exit code of what was typed.

A module is imported when one of its commands is called, so that `--help` and completion need none of them.
Exit codes: 0 done, 1 the fleet (or the run) has errors, 2 the command itself was mistyped, 3 jobs would wait too long,
130 interrupted, 141 the reader of the output has gone.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group

from kueue_admission.cli import console
from kueue_admission.cli.interrupts import Interrupted
from kueue_admission.cli.streams import CannotWriteError


class _Listed(NamedTuple):
    """A command: the module below this one with its function, its line in the list of commands, and the extra of this
    distribution that brings what it imports. The function has the command's name, with `_` where Python has that name.
    """

    module: str
    help: str
    extra: str = ""


COMMANDS: Final = {
    "init": _Listed("init", "Write a first fleet file that works."),
    "check": _Listed("check", "Check fleet files against every rule, no cluster needed."),
    "schema": _Listed("spec_commands", "Print the JSON schema of a stack file, for editors."),
    "render": _Listed("spec_commands", "Print every Kubernetes object of a fleet as YAML."),
    "rehearse": _Listed("rehearse", "Bring a stack up on real control planes here, and run jobs.", "rehearsal"),
    "simulate": _Listed("simulate", "Show when and where jobs would run, without a cluster."),
    "explain": _Listed("explain", "Say why a workload is pending, and what would change it."),
    "controller": _Listed("controller", "Run the fleet's own dispatcher, checks and watchdog.", "controller"),
    "import": _Listed("adopt", "Write a fleet file from the objects of existing clusters."),
    "diff": _Listed("diff", "Say what is different between two fleet files, team by team."),
    "preflight": _Listed("preflight", "Say whether a fleet fits into its Google Cloud project.", "preflight"),
    "cost": _Listed("cost", "Say what a fleet costs, used or not, by hour and month."),
    "status": _Listed("status", "Show a live fleet: queues, what waits and why, workers, DWS."),
    "top": _Listed("top", "Show who uses the GPUs now, and what each team used this week."),
    "describe": _Listed("jobs", "Show one job: where it runs, its pods, or why it waits."),
    "logs": _Listed("jobs", "Print the logs of a job, from the cluster that runs it."),
    "exec": _Listed("jobs", "Run a command in a pod of a job, wherever it runs."),
    "cancel": _Listed("jobs", "Delete a job where it was submitted, and so everywhere."),
    "when": _Listed("when", "Estimate when a job starts that waits, or is not submitted yet."),
    "rotate": _Listed("rotate", "Replace the tokens by which the manager reaches the workers.", "controller"),
}
"""The commands, in the order of `--help`."""


class _Commands(TyperGroup):
    """The commands of COMMANDS, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the list."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, or None if there is none of this name."""
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name.

        Raises:
            CommandError: there is none, with the nearest name; or two files are to be read from standard input.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from kueue_admission.forms.suggest import instead

            fix = "write kueue-fleet --help" if args[0] == "help" else instead(args[0], COMMANDS, "commands")
            raise console.mistyped(f"there is no command {args[0]}; {fix}")
        if sum(each == "-" or (each.startswith("--") and each.endswith("=-")) for each in _own(args)) > 1:
            raise console.mistyped(f"{args[0]}: `-` is given twice; only one can be read from stdin")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises CommandError if its extra is not installed."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as missing:
            extra = COMMANDS[ctx.invoked_subcommand].extra if ctx.invoked_subcommand in COMMANDS else ""
            if not extra or (missing.name or "").startswith("kueue_fleet"):
                raise
            raise console.CommandError(
                f"{ctx.invoked_subcommand}: needs {missing.name}, which is not installed; "
                f"run: pip install 'kueue-fleet[{extra}]'"
            ) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, from COMMANDS alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.help) for name, listed in COMMANDS.items()])


@cache
def _command(name: str) -> Any:
    module = import_module(f"{__package__}.{COMMANDS[name].module}")
    own = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    own.command(name, short_help=COMMANDS[name].help)(getattr(module, name, None) or getattr(module, f"{name}_"))
    return get_group(own).commands[name]


def _own(args: list[str]) -> list[str]:
    """The arguments of the command itself, without those of a command that `exec` runs."""
    return args[: args.index("--")] if "--" in args else args


app = typer.Typer(
    name="kueue-fleet",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 the fleet, its input or the run has errors, which are on stderr; 2 the command was "
    "mistyped; 3 jobs would wait longer than --max-wait; 130 interrupted. Output is plain text where NO_COLOR is set "
    "or it is not a terminal.",
)
"""The command line as typer knows it."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # It takes a tenth of the time in which every other command starts.

        typer.echo(f"kueue-fleet {version('kueue-fleet')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """One description of a GPU batch fleet: checked, rendered, rehearsed on real control planes, applied."""


def run() -> int:
    """Run the command that was typed, and return its exit code.

    Every expected failure ends as one plain message on stderr.

    Raises:
        OutputClosedError: of what it prints.
    """
    try:
        return app(standalone_mode=False) or 0
    except console.CommandError as failure:
        console.error(failure)
        return failure.exit_code
    except Interrupted as interrupted:
        return interrupted.exit_code
    except CannotWriteError as wrong:
        console.error(f"standard output: {wrong}; the output is not complete")
        return 1
    except typer.TyperException as mistyped:
        context = getattr(mistyped, "ctx", None)
        command = str(context.command_path if context else app.info.name)
        name = command.partition(" ")[2]
        what = mistyped.format_message().replace("Value error, ", "").rstrip(".")
        console.error(f"{name}{': ' if name else ''}{what}; see {command} --help")
        return mistyped.exit_code
