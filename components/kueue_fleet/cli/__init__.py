"""The `kueue-fleet` command: one module per group of subcommands, all printing through `console`.

Exit codes: 0 done, 1 the fleet (or the run) has errors, 2 the command itself was mistyped, 130 interrupted.
"""

from __future__ import annotations

import sys

import typer

from kueue_fleet.cli import adopt, console, controller, diff, explain, init, rehearse, simulate, spec_commands, status

app = typer.Typer(
    name="kueue-fleet",
    help="One description of a GPU batch fleet: checked, rendered, rehearsed on real control planes, applied.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
init.register(app)
spec_commands.register(app)
rehearse.register(app)
simulate.register(app)
explain.register(app)
controller.register(app)
adopt.register(app)
diff.register(app)
status.register(app)


def main() -> None:
    """Run the command line; every expected failure ends as one plain message on stderr and a non-zero exit."""
    try:
        app()
    except console.CommandError as failure:
        console.error(str(failure))
        sys.exit(failure.exit_code)
    except KeyboardInterrupt:
        console.error("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        # `kueue-fleet render f.yaml | head` is no failure; stdout is gone, so nothing may be flushed to it at exit.
        sys.stderr.close()
        sys.exit(141)
