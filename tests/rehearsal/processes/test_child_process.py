"""Child processes: their end is noticed, and they do not outlive whoever started them."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest

import kueue_fleet
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.processes.child_process import (
    ProcessSpec,
    child_environment,
    log_tail,
    start_process,
)
from process_ends import gone

DEADLINE_SECONDS = 20.0


def shell(folder: Path, script: str, name: str = "child", stop_seconds: float = 5.0, **env: str) -> ProcessSpec:
    return ProcessSpec(
        name=name,
        argv=("/bin/sh", "-c", script),
        log=folder / f"{name}.log",
        env=env,
        stop_seconds=stop_seconds,
    )


async def said(spec: ProcessSpec, text: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while text not in log_tail(spec.log, 100):
            await asyncio.sleep(0.01)


def wait_gone(*pids: int) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not all(map(gone, pids)):
        assert time.monotonic() < deadline, [pid for pid in pids if not gone(pid)]
        time.sleep(0.02)


async def test_exit_code_and_output(tmp_path: Path) -> None:
    child = start_process(shell(tmp_path, "echo out; echo err >&2; exit 3"))
    assert await child.wait() == 3
    assert sorted(log_tail(child.spec.log).splitlines()) == ["err", "out"]
    assert stat.S_IMODE(child.spec.log.stat().st_mode) == 0o600
    assert child.usage() is None


async def test_grpc_leaves_children_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of the tests themselves: see `GRPC_ENABLE_FORK_SUPPORT` in conftest.py. gRPC's fork handlers write to stderr."""
    server = grpc.server(ThreadPoolExecutor(1))
    server.start()
    try:
        assert await start_process(shell(tmp_path, "exit 3")).wait() == 3
    finally:
        server.stop(None)
    assert "fork" not in capfd.readouterr().err


async def test_a_log_is_appended_to(tmp_path: Path) -> None:
    for text in ("one", "two"):
        await start_process(shell(tmp_path, f"echo {text}")).wait()
    assert log_tail(tmp_path / "child.log").splitlines() == ["one", "two"]


async def test_listeners_hear_of_the_end_once_and_late_ones_too(tmp_path: Path) -> None:
    heard: list[str] = []
    child = start_process(shell(tmp_path, "exit 0"))
    child.on_exit(lambda ended: heard.append("early"))
    await child.wait()
    child.on_exit(lambda ended: heard.append("late"))
    await asyncio.sleep(0)
    assert heard == ["early", "late"]


async def test_stop_asks_first(tmp_path: Path) -> None:
    child = start_process(shell(tmp_path, "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done"))
    await said(child.spec, "up")
    assert await child.stop() == 7
    assert child.stopping


async def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    spec = shell(tmp_path, "trap '' TERM; echo up; while :; do sleep 0.05; done", stop_seconds=0.3)
    child = start_process(spec)
    await said(spec, "up")
    assert await child.stop() == -signal.SIGKILL


async def test_what_is_left_of_the_group_ends_with_its_leader(tmp_path: Path) -> None:
    spec = shell(tmp_path, "sleep 600 & echo pid $!; exit 0")
    await start_process(spec).wait()
    grandchild = int(log_tail(spec.log).split()[-1])
    await asyncio.to_thread(wait_gone, grandchild)


async def test_usage_of_a_living_process(tmp_path: Path) -> None:
    child = start_process(shell(tmp_path, "echo up; sleep 600"))
    await said(child.spec, "up")
    usage = child.usage()
    await child.stop()
    assert usage is not None
    assert usage.rss_bytes > 100_000
    assert usage.cpu_seconds >= 0


async def test_a_program_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    spec = ProcessSpec(name="etcd", argv=("/nowhere/etcd",), log=tmp_path / "etcd.log")
    with pytest.raises(RehearsalError, match=r"etcd: /nowhere/etcd cannot be started \(No such file"):
        start_process(spec)


async def test_children_get_no_proxies_and_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "HTTPS_PROXY", "GOOGLE_APPLICATION_CREDENTIALS", "GOFLAGS"):
        monkeypatch.setenv(name, "surprise")
    child = start_process(shell(tmp_path, "env", EXTRA="here"))
    await child.wait()
    output = log_tail(child.spec.log, 100)
    assert "EXTRA=here" in output
    assert "surprise" not in output
    assert child_environment({"PATH": "/mine"})["PATH"] == "/mine"


def test_children_die_when_their_owner_is_killed(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, sys
        from pathlib import Path
        from kueue_rehearsal.processes.child_process import ProcessSpec, start_process
        async def main():
            folder = Path(sys.argv[1])
            children = [
                start_process(ProcessSpec(name=f"c{n}", argv=("/bin/sleep", "600"), log=folder / f"c{n}.log"))
                for n in range(3)
            ]
            print(*(child.pid for child in children), flush=True)
            await asyncio.sleep(600)
        asyncio.run(main())
    """)
    environ = {**os.environ, "PYTHONPATH": str(Path(kueue_fleet.__path__[0]).parent)}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environ
    ) as owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 3
        assert not any(map(gone, pids))
        owner.kill()
        owner.wait()
    wait_gone(*pids)


def test_log_tail_of_no_log_is_empty(tmp_path: Path) -> None:
    assert log_tail(tmp_path / "none") == ""
