"""A command of release 0.1 that has subcommands now, and for a release still takes what it took without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typer.core import TyperGroup

from kueue_admission.cli import console


class Former(TyperGroup):
    """The subcommands; arguments without one are taken too, with a warning."""

    former: ClassVar[Mapping[str, str]]
    """Options of release 0.1, and the subcommand that each is now: what it needs, was the option's value."""
    usual: ClassVar[str]
    """The subcommand where none of these options is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What the arguments say."""
        said = args[0] in (*self.commands, "-h", "--help") if args else self.no_args_is_help
        if not said and not ctx.resilient_parsing:
            option, args = self._as_subcommand(args)
            now, before = f"{ctx.info_name} {args[0]}", f"{ctx.info_name} {option}".rstrip()
            console.warning(f"{ctx.info_name}: takes a subcommand now; write {now} in the place of `{before}`")
        return super().parse_args(ctx, args)

    def _as_subcommand(self, args: list[str]) -> tuple[str, list[str]]:
        """The option that was a subcommand, and the arguments with that subcommand."""
        for number, each in enumerate(args):
            option, given, value = each.partition("=")
            if option not in self.former:
                continue
            name, rest = self.former[option], args[number + 1 :]
            values = [value] if given else []
            if not given and any(parameter.required for parameter in self.commands[name].params):
                values, rest = rest[:1], rest[1:]
            return option, [name, *values, *args[:number], *rest]
        return "", [self.usual, *args]
