"""A process that has imported what its calls need, and forks one of its own for each: importing is most of a start.

A call is a process with the standard streams, the folder and the environment that it is given. Not for tests of
imports, or of what Python does when it starts and ends.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ANSWER_BYTES = 8
"""The server answers twice: with the process id once the call has begun, and with the exit code; below 0: a signal."""
_CALL = f"""
import _signal, _socket, os, sys

def call(address):
    "Have a fork do what this process was asked to do; it gets the signals of this one, and ends this one as it ends."
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(address)
    environment = [name + b"=" + value for name, value in os.environb.items()]
    said = [os.getcwdb(), b"%d" % len(sys.argv), *map(os.fsencode, sys.argv), *environment]
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    server.sendmsg([b"\\0".join(said)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    server.shutdown(_socket.SHUT_WR)
    pid = int(server.recv({ANSWER_BYTES}))

    def pass_on(number, frame):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        _signal.signal(number, pass_on)
    code = int(server.recv({ANSWER_BYTES}) or b"125")
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
"""
"""What a program does that is run in place of the real one."""
_SERVER = f"""
import contextlib, gc, os, select, socket, sys

gc.freeze()

def work(said, streams):
    folder, count, *rest = said.split(b"\\0")
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(each.split(b"=", 1) for each in rest[int(count):])
    try:
        code = run([os.fsdecode(each) for each in rest[:int(count)]])
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
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(OSError):
        call.sendall(b"%{ANSWER_BYTES}d" % pid)
    ends = select.poll()
    ends.register(os.pidfd_open(pid))
    ends.register(call, 0)  # who asked is gone
    if call.fileno() in dict(ends.poll()):
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        call.sendall(b"%{ANSWER_BYTES}d" % code)
    os._exit(0)

server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(16)
print(flush=True)
asked = select.poll()
asked.register(server, select.POLLIN)
asked.register(0, 0)  # who started it is gone
while 0 not in dict(asked.poll()):
    call, _ = server.accept()
    if not os.fork():
        answer(call)
    call.close()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
"""


def start_fork_server(prepare: str) -> Path:
    """The socket of a server, in a folder of its own; both are there until these tests end, or are killed.

    `prepare` is source that imports what calls need, and defines `run(arguments)`, which returns the exit code.

    A caller sends the three streams with the folder, the number of arguments, these, and the environment as NAME=VALUE,
    with zero bytes between, and then ends its side; see ANSWER_BYTES.
    """
    folder = Path(tempfile.mkdtemp(prefix="kueue-fleet-"))
    address = folder / "socket"
    # What is installed in the environment may be another working tree than the one of these tests.
    root, given = Path(__file__).parents[2], os.environ.get("PYTHONPATH")
    folders = [*([given] if given else []), *(str(root / name) for name in ("components", "policies", "offline"))]
    server = subprocess.Popen(
        [sys.executable, "-c", f"{prepare}\n{_SERVER}", str(address)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(shutil.rmtree, folder)
    atexit.register(server.wait)
    atexit.register(server.kill)
    assert server.stdout is not None
    assert server.stdout.readline(), "the server does not start"
    return address


def write_program(path: Path, script: str) -> str:
    """A small program in Python without its libraries, in which `call(address)` is there; it starts in 10 ms."""
    path.write_text(f"#!{sys.executable} -IS\n{_CALL}\n{script}\n")
    path.chmod(0o755)
    return str(path)
