"""`kueue-fleet` as a program whose every call is forked by a `fork_server`. Not for tests of signals."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fork_server import start_fork_server, write_program

IMPORTED = f"""
import importlib, pkgutil
from kueue_fleet import cli
from kueue_fleet.fleet_file import parse_fleet_text

fleet = ("adopt", "cli", "dispatch", "fleet_file", "fleet_simulation", "objects", "status")
for name in ("kueue_admission", *(f"kueue_fleet.{{package}}" for package in fleet)):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{{name}}."):
        importlib.import_module(module.name)
# Models are built when they are first used.
parse_fleet_text(open({str(Path(__file__).parents[2] / "stacks" / "Pulumi.prod.yaml")!r}).read(), "prod")
"""
"""Source that has ready what commands import and build one after the other."""
_COMMANDS = f"""{IMPORTED}
def run(arguments):
    sys.argv = arguments
    cli.main()
"""


@cache
def program_folder(site: str = "") -> str:
    """The folder of the program, for PATH; it is there until these tests end.

    `site`: what Python is to run when it starts, the source of a sitecustomize.
    """
    address = start_fork_server(f"{site}\n{_COMMANDS}")
    folder = address.parent
    (folder / "sitecustomize.py").write_text(site)
    write_program(folder / "kueue-fleet", f"call({str(address)!r})")
    return str(folder)
