"""A command line: its list of commands, and how each ends, which is typer's application and an exit code.

A module is imported when one of its commands is called, so that `--help` and completion need none of them.
Exit codes: 0 done, 1 the input (or the run) has errors, 2 the command itself was mistyped, 3 jobs would wait too long,
130 interrupted, 141 the reader of the output has gone.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_group

from kueue_admission.cli import console
from kueue_admission.cli.interrupts import Interrupted
from kueue_admission.cli.options import typed_as
from kueue_admission.cli.streams import CannotWriteError

_PROGRAM = "command"
"""Name of the parameter of commands that run a program, whose own arguments may be empty."""


class Listed(NamedTuple):
    """A command: the module with its function or its application, its line in the list of commands, and the extra of
    the distribution that brings what it imports. The function has the command's name, with `_` where Python has that
    name; an application of subcommands is called `app`.
    """

    module: str
    help: str
    extra: str = ""
    group: str = "Commands"
    """Above it in `--help`; a command with an empty one is not there."""
    instead: str = ""
    """Of an old name: what to write. The old name works, with a warning."""


class Command(TyperCommand):
    """A command whose options are given once, unless they take several values: the last would count silently.

    None is given an empty value, as of a variable of a shell that is not set: an empty path would be this folder.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What the arguments say. Raises CommandError for an option with one value that is given again, for the name of
        an option where a value belongs, and for an empty value, but for a part of a program that is run."""
        self._refuse_options_as_values(_own(args))
        try:
            values, _, params = self.make_parser(ctx).parse_args(args=list(args))
        except typer.TyperException as mistyped:
            mistyped.ctx = ctx  # type: ignore[attr-defined] # The parser does not know the command.
            raise
        for argument in dict.fromkeys(params):
            value = values.get(argument.name)
            is_empty = value == "" or (isinstance(value, list | tuple) and "" in value)
            if is_empty and argument.name != _PROGRAM:
                fix = "give a value" if argument.required else "give a value, or leave the option out"
                raise console.mistyped(f"{typed_as(argument)}: is empty; {fix}")
        for option in (option for option in params if isinstance(option, TyperOption)):
            if not option.multiple and not option.is_flag and params.count(option) > 1:
                path = ctx.command_path.partition(" ")[2]
                raise console.mistyped(
                    f"{path}: {typed_as(option)} is given {params.count(option)} times; give it once"
                )
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the command's name: what is optional in brackets, and nothing else in any."""
        arguments = (param for param in self.get_params(ctx) if param.param_type_name == "argument")
        return [self.options_metavar or "", *map(_usage_of, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options, each with a word for its value, where typer has its type in Python."""
        params: list[Any] = self.get_params(ctx)
        for kind in ("argument", "option"):
            own = (param for param in params if param.param_type_name == kind)
            rows = [(_spelling(param), record[1]) for param in own if (record := param.get_help_record(ctx))]
            if rows:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(rows)

    def _refuse_options_as_values(self, args: list[str]) -> None:
        """Raises CommandError where the value of an option was forgotten, so that the next option became its value."""
        spellings = {spelling for option in self.params for spelling in option.opts}
        takes_value = {
            spelling
            for option in self.params
            if isinstance(option, TyperOption) and not option.is_flag
            for spelling in option.opts
        }
        for argument, value in pairwise(args):
            if argument in takes_value and (value in spellings or value.startswith("--")):
                raise console.mistyped(
                    f"{argument}: has no value before {value}; give one, or write {argument}={value}"
                )


class Commands(TyperGroup):
    """The commands of a list, each imported when it is asked for."""

    listed: ClassVar[Mapping[str, Listed]]
    """In the order of `--help`."""
    distribution: ClassVar[str]
    """What `pip install` calls it, and what the command is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the list."""
        return list(self.listed)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None."""
        return load_command(cmd_name, self.listed[cmd_name]) if cmd_name in self.listed else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name.

        Raises:
            CommandError: there is none, with the nearest name; or two files are to be read from standard input.
        """
        if args and args[0] not in self.listed and not args[0].startswith("-"):
            from kueue_admission.kernel.suggest import instead

            fix = instead(args[0], self.listed, "commands")
            if args[0] == "help":
                fix = f"write {self.distribution} --help"
            raise console.mistyped(f"there is no command {args[0]}; {fix}")
        if (
            sum(argument == "-" or (argument.startswith("--") and argument.endswith("=-")) for argument in _own(args))
            > 1
        ):
            raise console.mistyped(f"{args[0]}: `-` is given twice; only one can be read from stdin")
        if args and args[0] in self.listed and (new := self.listed[args[0]].instead):
            console.warning(f"{args[0]}: is an old name, which the next release does not have; write {new}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises CommandError if its extra is not installed."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as missing:
            extra = self.listed[ctx.invoked_subcommand].extra if ctx.invoked_subcommand in self.listed else ""
            if not extra or (missing.name or "").startswith("kueue_fleet"):
                raise
            raise console.CommandError(
                f"{ctx.invoked_subcommand}: needs {missing.name}, which is not installed; "
                f"run: pip install '{self.distribution}[{extra}]'"
            ) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, from their lines alone."""
        for group in dict.fromkeys(command.group for command in self.listed.values() if command.group):
            with formatter.section(group):
                formatter.write_dl([(name, value.help) for name, value in self.listed.items() if value.group == group])


@cache
def load_command(name: str, listed: Listed) -> Any:
    """The command of this name, imported."""
    module = import_module(listed.module)
    own = getattr(module, "app", None)
    if own is None:
        own = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
        own.command(name, cls=Command, short_help=listed.help)(
            getattr(module, name, None) or getattr(module, f"{name}_")
        )
        return get_group(own).commands[name]
    group = get_group(own)
    group.name = name
    return group


def _usage_of(argument: Any) -> str:
    """An argument in the line of usage."""
    name = str(argument.display_name_raw)
    name = name if argument.required or name.startswith("[") else f"[{name}]"
    return f"{name}..." if argument.nargs != 1 and not name.endswith("...") else name


def _spelling(param: Any) -> str:
    """How an argument or an option is written, with a word for its value."""
    if param.param_type_name == "argument":
        return str(param.display_name_raw)
    spellings = ", ".join(sorted(param.opts, key=len))
    if param.secondary_opts:
        return f"{spellings} / {', '.join(param.secondary_opts)}"
    return spellings if param.is_flag else f"{spellings} {_word(param)}"


def _word(option: Any) -> str:
    """What stands for the value of an option: what its command says, the choices, a unit, or else its own name."""
    value = option.type_descriptor
    if option.metavar is not None:
        return str(option.metavar)
    if value.is_choice:
        return "|".join(str(getattr(choice, "value", choice)) for choice in value.choices or ())
    if value.is_datetime:
        return "TIME"
    if value.is_path:
        return "PATH"
    if value.annotation is int:
        return "N"
    return "SECONDS" if value.annotation is float else str(max(option.opts, key=len)).strip("-").upper()


def _own(args: list[str]) -> list[str]:
    """The arguments of the command itself, without those of a command that `exec` runs."""
    return args[: args.index("--")] if "--" in args else args


def application(distribution: str, listed: Mapping[str, Listed], about: str, epilog: str) -> typer.Typer:
    """The command line of a distribution, as typer knows it; `about` is what its help begins with."""
    app = typer.Typer(
        name=distribution,
        cls=type("Listing", (Commands,), {"listed": listed, "distribution": distribution}),
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=epilog,
    )

    def print_version(wanted: bool) -> None:
        if wanted:
            from importlib.metadata import version  # It takes a tenth of the time in which other commands start.

            typer.echo(f"{distribution} {version(distribution)}")
            raise typer.Exit

    @app.callback(help=about)
    def root(
        version: Annotated[
            bool, typer.Option("--version", help="Print the version and exit.", callback=print_version, is_eager=True)
        ] = False,
    ) -> None: ...

    return app


def run(app: typer.Typer) -> int:
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
        if what.startswith("Usage: "):
            typer.echo(what, err=True)
            return mistyped.exit_code
        console.error(f"{name}{': ' if name else ''}{what}; see {command} --help")
        return mistyped.exit_code
