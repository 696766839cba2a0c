"""`kueue-fleet` as a program whose every call is forked by a `fork_server`. Not for tests of signals."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from fork_server import ANSWER_BYTES, start_fork_server

_CALL = """#!{python} -IS
import _socket, os, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({address!r})
environment = [name + b"=" + value for name, value in os.environb.items()]
said = [os.getcwdb(), b"%d" % len(sys.argv), *map(os.fsencode, sys.argv), *environment]
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([b"\\0".join(said)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.shutdown(_socket.SHUT_WR)
server.recv({size})
code = int(server.recv({size}) or b"125")
os._exit(code if code >= 0 else 128 - code)
"""
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
    program.write_text(_CALL.format(python=sys.executable, address=str(address), size=ANSWER_BYTES))
    program.chmod(0o755)
    return str(folder)
