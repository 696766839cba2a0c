"""`kueue-fleet` as a program whose every call is a process of its own, forked from one that has imported everything.

Importing takes most of the time of most commands. Not for tests of imports, of signals, or of what Python does when it
starts and ends.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_CALL = """#!{python} -IS
import _socket, os, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({address!r})
environment = [name + b"=" + value for name, value in os.environb.items()]
said = [os.getcwdb(), b"%d" % len(sys.argv), *map(os.fsencode, sys.argv), *environment]
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([b"\\0".join(said)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.shutdown(_socket.SHUT_WR)
os._exit(int(server.recv(9) or b"125"))
"""
_SERVER = """
import contextlib, gc, importlib, os, pkgutil, socket, sys
from kueue_fleet import cli

for module in pkgutil.iter_modules(cli.__path__, "kueue_fleet.cli."):
    importlib.import_module(module.name)
gc.freeze()

def work(said, streams):
    folder, count, *rest = said.split(b"\\0")
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(each.split(b"=", 1) for each in rest[int(count):])
    sys.argv = [os.fsdecode(each) for each in rest[:int(count)]]
    code = 0
    try:
        cli.main()
    except SystemExit as end:
        code = end.code if end.code is None or isinstance(end.code, int) else print(end.code, file=sys.stderr) or 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)

def answer(call):
    said, streams, _, _ = socket.recv_fds(call, 1 << 20, 3)
    while more := call.recv(1 << 20):
        said += more
    if not (pid := os.fork()):
        work(said, streams)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    call.sendall(b"%d" % (code if code >= 0 else 128 - code))
    os._exit(0)

server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(16)
print(flush=True)
while True:
    call, _ = server.accept()
    if not os.fork():
        answer(call)
    call.close()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
"""


@cache
def program_folder(site: str = "") -> str:
    """The folder of the program, for PATH; it is there until these tests end.

    `site`: what Python is to run when it starts, the source of a sitecustomize.
    """
    folder = Path(tempfile.mkdtemp(prefix="kueue-fleet-"))
    (folder / "sitecustomize.py").write_text(site)
    start = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2] / 'components')!r})"
    address = str(folder / "socket")
    server = subprocess.Popen(
        [sys.executable, "-c", f"{start}\n{site}\n{_SERVER}", address], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    atexit.register(shutil.rmtree, folder)
    atexit.register(server.wait)
    atexit.register(server.kill)
    assert server.stdout is not None
    assert server.stdout.readline(), "the server of commands does not start"
    program = folder / "kueue-fleet"
    program.write_text(_CALL.format(python=sys.executable, address=address))
    program.chmod(0o755)
    return str(folder)
