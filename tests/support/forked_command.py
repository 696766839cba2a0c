"""`kueue-fleet` as a program whose every call is forked by a `fork_server`. Not for tests of signals."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from fork_server import CALL, start_fork_server

_COMMANDS = """
import importlib, pkgutil
from kueue_fleet import cli

for module in pkgutil.iter_modules(cli.__path__, "kueue_fleet.cli."):
    importlib.import_module(module.name)

def run(arguments):
    sys.argv = arguments
    cli.main()
"""


@cache
def program_folder(site: str = "") -> str:
    """The folder of the program, for PATH; it is there until these tests end.

    `site`: what Python is to run when it starts, the source of a sitecustomize.
    """
    start = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2] / 'components')!r})"
    address = start_fork_server(f"{start}\n{site}\n{_COMMANDS}")
    folder = address.parent
    (folder / "sitecustomize.py").write_text(site)
    program = folder / "kueue-fleet"
    program.write_text(f"#!{sys.executable} -IS\n{CALL}\ncall({str(address)!r})\n")
    program.chmod(0o755)
    return str(folder)
