"""Streams as callers leave them: a pipe without a reader, a full disk, closed; and Ctrl-C at any time."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from forked_command import IMPORTED
from kueue_fleet.cli import COMMANDS

ROOT = Path(__file__).parents[2]
FLEET = "stacks/Pulumi.dws-multikueue.yaml"
WITHOUT_WARNINGS = "stacks/Pulumi.batch-platform.yaml"
LOAD = "examples/dws-multikueue/workload.yaml"
PROGRAM = str(Path(sys.executable).with_name("kueue-fleet"))
CLUSTERS = ("manager-europe-west4", "worker-europe-west4", "worker-us-east4", "worker-asia-southeast1")

IMPORT = "--name x --project my-project --region us-central1 --mode Autopilot --default-kueue"
PRINTING = {
    "": ("--help", 0),
    "init": ("init first --project my-project --region us-central1 --yes --force -C {folder}", 0),
    "check": (f"check {WITHOUT_WARNINGS}", 0),
    "schema": ("schema", 0),
    "render": (f"render {FLEET}", 0),
    "rehearse": ("rehearse down --stack nothing", 0),
    "simulate": (f"simulate fleet {FLEET} -w {LOAD} --seed 7", 0),
    "explain": (f"explain detector-3 --stack {FLEET} -w {LOAD} --second 600", 0),
    "controller": ("controller --help", 0),
    "import": (f"import a={{folder}}/queues.yaml {IMPORT}", 0),
    "diff": (f"diff {FLEET} stacks/Pulumi.prod.yaml --exit-code", 1),
    "cost": (f"cost {FLEET}", 0),
    "upgrade": (f"upgrade {FLEET} --to 0.19.2", 0),
    "preflight": (f"preflight --page {FLEET}", 0),
    "status": (f"status {FLEET} --kubeconfig {{folder}}/kubeconfig", 1),
    **{name: (f"{name} --help", 0) for name in ("top", "describe", "logs", "exec", "cancel", "when", "rotate")},
    **{name: (f"{name} --help", 0) for name in ("evidence", "plan", "record", "replay", "submit")},
}
"""A call of each command that prints on stdout, and its usual exit code."""

QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
spec: {nodeLabels: {cloud.google.com/gke-accelerator: nvidia-l4}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory, ephemeral-storage, nvidia.com/gpu]
      flavors:
        - name: f
          resources:
            - {name: cpu, nominalQuota: 1}
            - {name: memory, nominalQuota: 1Gi}
            - {name: ephemeral-storage, nominalQuota: 1Gi}
            - {name: nvidia.com/gpu, nominalQuota: 1}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: q, namespace: default}
spec: {clusterQueue: q}
"""

FORKING = f"""{IMPORTED}
import gc, json, os, sys, tempfile
gc.freeze()
"""
FORKING += """

def child(arguments, stdout, stderr):
    sys.argv = ["kueue-fleet", *arguments]
    sys.stdin = None
    for number in (0, 1, 2):
        os.close(number)
    # The lowest number that is free is taken.
    os.dup2(stderr, 2)
    if stdout is not None:
        os.dup2(stdout, 1)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False) if stdout is not None else None
    sys.stderr = sys.__stderr__ = open(2, "w", closefd=False)
    try:
        cli.main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        import traceback
        traceback.print_exc()
        code = "traceback"
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(99 if code == "traceback" else code or 0)

def run(arguments, way):
    stdout = None
    if way == "unread":
        read, stdout = os.pipe()
        os.close(read)
    elif way == "full":
        stdout = os.open("/dev/full", os.O_WRONLY)
    with tempfile.TemporaryFile() as said:
        if not (pid := os.fork()):
            child(arguments, stdout, said.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        said.seek(0)
        return code, said.read().decode()

print(json.dumps([run(*case) for case in json.load(sys.stdin)]))
"""
"""Runs commands in children that have everything imported: a fiftieth of the time of starting each."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("streams")
    (result / "queues.yaml").write_text(QUEUES)
    kubeconfig(result / "kubeconfig", "https://127.0.0.1:1")
    return result


def kubeconfig(file: Path, server: str) -> None:
    cluster = {"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in CLUSTERS]
    users = [{"name": "u", "user": {"token": "x"}}]
    file.write_text(yaml.safe_dump({"clusters": [cluster], "contexts": contexts, "users": users}))


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "KUEUE_FLEET_STATE_DIR": str(folder / "state"), **more}


WAYS = {"unread": 141, "full": 1, "closed": None}
FULL = "error: standard output: No space left on device; the output is not complete\n"


@pytest.fixture(scope="module")
def ended(folder: Path) -> dict[tuple[str, str], tuple[int, str]]:
    """Exit code and stderr of each command, by what its stdout was."""
    cases = [(command, way) for command in PRINTING for way in WAYS]
    calls = [(PRINTING[command][0].format(folder=folder).split(), way) for command, way in cases]
    completed = subprocess.run(
        [sys.executable, "-c", FORKING], cwd=ROOT, env=environment(folder), input=json.dumps(calls),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {case: tuple(result) for case, result in zip(cases, json.loads(completed.stdout), strict=True)}


def test_every_command_prints() -> None:
    assert set(PRINTING) == {"", *COMMANDS}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", PRINTING)
def test_output_that_goes_nowhere(ended: dict[tuple[str, str], tuple[int, str]], command: str, way: str) -> None:
    usual = PRINTING[command][1]
    code = {"unread": 141, "full": 1, "closed": usual}[way]
    result, output = ended[command, way]
    errors = "".join(line for line in output.splitlines(keepends=True) if not line.startswith("warning: "))
    assert (result, errors) == (code, FULL if way == "full" else "")


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("check F | true; echo ${PIPESTATUS[0]} >&2", 0, "141\n"),
        ("render FLEET | head -1; echo ${PIPESTATUS[0]} >&2", 0, "141\n"),
        ("schema > /dev/full", 1, FULL),
        ("check F >&-", 0, ""),
        ("check - <&-", 1, "error: <stdin>: is closed; give a file, or pipe one in [KF904]\n"),
        ("check nofile 2>&-", 1, ""),
        ("check nofile 2>/dev/full", 1, ""),
        ("check nofile 2>&1 | true; exit ${PIPESTATUS[0]}", 141, ""),
        ("check nofile <&- >&- 2>&-", 1, ""),
    ],
)  # fmt: skip
def test_in_a_shell(call: str, code: int, said: str) -> None:
    """What `test_output_that_goes_nowhere` does not see: how Python starts and ends."""
    line = f"{PROGRAM} {call}".replace(" FLEET ", f" {FLEET} ").replace(" F ", f" {WITHOUT_WARNINGS} ")
    result = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (code, said)


def test_text_that_stdin_cannot_decode() -> None:
    result = subprocess.run([PROGRAM, "check", "-"], cwd=ROOT, input=b"a: \xff", capture_output=True, check=False)
    assert result.returncode == 1
    assert b"is not UTF-8 text (byte 3); save it as UTF-8" in result.stderr


def test_text_that_stdout_cannot_encode(folder: Path) -> None:
    (folder / "größe.yaml").write_text("a: [")
    call = [PROGRAM, "check", f"{folder}/größe.yaml"]
    result = subprocess.run(
        call, env=environment(folder, PYTHONIOENCODING="ascii"), capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "gr\\xf6\\xdfe.yaml" in result.stderr


def start(arguments: str, **more: Any) -> subprocess.Popen[str]:
    """A command that says `begins` on stdout right before `main`."""
    program = "from kueue_fleet.cli import main\nprint('begins', flush=True)\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments.split()],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
    )  # fmt: skip


@pytest.mark.parametrize("milliseconds", [0, 15, 40, 80, 120, 200, 300, 400])
def test_ctrl_c_while_it_starts(milliseconds: int) -> None:
    with start("check -", stdin=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "begins\n"
        time.sleep(milliseconds / 1000)
        running.send_signal(signal.SIGINT)
        output = running.stderr.read()
    # Only before `main` has been imported, which takes a few milliseconds, is Python itself interrupted.
    if milliseconds or running.returncode == 130:
        assert (running.returncode, output) == (130, "")


@pytest.fixture
def silent(folder: Path) -> Iterator[Path]:
    """A kubeconfig of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        file = folder / "silent"
        kubeconfig(file, f"https://127.0.0.1:{server.getsockname()[1]}")
        yield file


@pytest.mark.parametrize(
    "arguments",
    [
        "render -",
        "simulate objects -",
        f"status {FLEET} --kubeconfig {{silent}}",
        f"status {FLEET} --kubeconfig {{silent}} --watch",
    ],
)
def test_ctrl_c_while_it_waits(arguments: str, silent: Path) -> None:
    with start(arguments.format(silent=silent), stdin=subprocess.PIPE) as running:
        wait_until_idle(running.pid)
        running.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert running.stderr is not None
        assert running.stderr.read() == ""
        try:
            running.wait(timeout=5)
        finally:
            running.kill()
    assert running.returncode == 130
    assert time.monotonic() - began < 5


def wait_until_idle(pid: int) -> None:
    """Until the process sleeps and has used no processor for a while, as it waits for its input."""
    seen = ("", "")
    while seen[0] != "S" or seen != look_at(pid):
        seen = look_at(pid)
        time.sleep(0.3)


def look_at(pid: int) -> tuple[str, str]:
    """The state of a process, and the processor time that it has used; on a busy machine one that waits for it runs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], " ".join(fields[11:13])


def test_ctrl_c_at_a_question(folder: Path) -> None:
    ours, its = pty.openpty()
    with subprocess.Popen(
        [PROGRAM, "init"], cwd=folder, env=environment(folder, TERM="xterm"), stdin=its, stdout=its, stderr=its
    ) as running:
        os.close(its)
        output = read_until(ours, "Name of the fleet")
        # Python does not hear a signal between its prompt and the call that waits, some microseconds, until a key.
        wait_until_idle(running.pid)
        running.send_signal(signal.SIGINT)
        try:
            running.wait(timeout=20)
        finally:
            running.kill()
    os.close(ours)
    assert running.returncode == 130
    assert "Traceback" not in output


def read_until(descriptor: int, text: str) -> str:
    output = ""
    while text not in output and select.select([descriptor], [], [], 30)[0]:
        output += os.read(descriptor, 4096).decode()
    assert text in output
    return output


def test_what_is_imported_before_ctrl_c_is_heeded() -> None:
    program = "import sys; import kueue_fleet.cli; print(*sorted(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-S", "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT / "components")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(result.stdout.split())
    assert "kueue_fleet.cli" in loaded
    assert not loaded & {"typing", "importlib", "typer", "rich", "kueue_fleet.cli.commands", "kueue_fleet.fleet_file"}
