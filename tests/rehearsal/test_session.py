"""A rehearsal from its command's point of view: what it goes on with, and what it leaves. On stand-ins for engines."""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.rehearsal.fake_engines import FakeEngines

from kueue_rehearsal import state_folder
from kueue_rehearsal.engines import Engines, Program
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.processes import supervisor_client
from kueue_rehearsal.processes.ends import still_running
from kueue_rehearsal.processes.supervisor_client import RunningSupervisor, SupervisorGoneError, start_supervisor
from kueue_rehearsal.pulumi_cli import ONE_CHECKPOINT, PulumiProject
from kueue_rehearsal.session import Session, rehearsals, take_down
from process_ends import ends, gone
from small_fleets import SECOND_WORKER, WORKER, fleet

# A supervisor that goes on without its command is still running when the object that started it is collected.
pytestmark = pytest.mark.filterwarnings("ignore:.*Popen.__del__:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_supervisors: None) -> Iterator[Session]:
    engines = FakeEngines(tmp_path / "engines")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(engines.folder))
    monkeypatch.setenv("KUEUE_FLEET_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path / "s"))
    result = Session.for_stack("dev", tmp_path)
    yield result
    take_down("dev")


def pid(session: Session) -> int:
    return int(session.client.health()["pid"])


def keep(session: Session) -> int:
    """A kept rehearsal; returns the process of its supervisor."""
    with session.exclusive(), session.running(keep=True):
        return pid(session)


def fail(session: Session) -> None:
    """A command that is interrupted while it works."""
    with pytest.raises(KeyboardInterrupt), session.exclusive(), session.running(keep=False):
        raise KeyboardInterrupt


def kill(supervisor: int) -> None:
    """What it has started is killed with it, a moment later, and releases its ports then."""
    process = psutil.Process(supervisor)
    started = process.children(recursive=True)
    process.kill()
    assert still_running([process, *started], 30) == []


@contextmanager
def listening(port: int) -> Iterator[None]:
    """Take the port as soon as the process that was killed has let go of it."""
    deadline = time.monotonic() + 10
    with socket.socket() as other:
        while other.connect_ex(("127.0.0.1", port)) == 0:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        yield


def files(session: Session) -> set[str]:
    return {str(file.relative_to(session.paths.root)) for file in session.paths.root.rglob("*") if file.is_file()}


def test_a_rehearsal_ends_with_its_block_and_leaves_nothing(session: Session) -> None:
    with session.exclusive(), session.running(keep=False):
        supervisor = pid(session)
    assert ends(supervisor)
    assert not session.paths.root.exists()
    assert rehearsals() == []
    assert session.aftermath == ""


def test_a_failure_leaves_the_logs_and_says_where_and_the_next_one_removes_them(session: Session) -> None:
    fail(session)
    left = files(session)
    assert "supervisor.log" in left
    assert {file for file in left if not file.endswith(".log")} == {"command.lock"}
    assert session.aftermath == f"everything is taken down, the logs are in {session.paths.root}"
    with session.exclusive(), session.running(keep=False):
        pass
    assert not session.paths.root.exists()


def test_a_kept_rehearsal_is_gone_on_with_and_outlives_failures(session: Session) -> None:
    supervisor = keep(session)
    assert session.kept
    assert rehearsals() == ["dev"]
    with session.exclusive(), session.running(keep=False):
        assert pid(session) == supervisor
    fail(session)
    assert pid(session) == supervisor
    assert session.aftermath == "the kept rehearsal of dev is still there"
    assert take_down("dev")
    assert ends(supervisor)
    assert not session.paths.root.exists()
    assert not take_down("dev")


def test_a_failure_of_the_run_that_was_to_be_kept_keeps_nothing(session: Session) -> None:
    with pytest.raises(KeyboardInterrupt), session.exclusive(), session.running(keep=True):
        raise KeyboardInterrupt
    assert state_folder.supervisor(session.paths) is None
    assert not session.kept


@pytest.mark.parametrize("looks_without_arguments", [0, 2])
def test_ctrl_c_just_as_the_supervisor_has_begun_leaves_nothing(
    session: Session, monkeypatch: pytest.MonkeyPatch, looks_without_arguments: int
) -> None:
    begun: list[psutil.Process] = []
    cmdline, looks = psutil.Process.cmdline, iter(range(looks_without_arguments))

    def shown(process: psutil.Process) -> list[str]:
        """Linux shows no arguments of a program that has just begun."""
        return [] if process in begun and next(looks, None) is not None else cmdline(process)

    def interrupted(paths: object, process: subprocess.Popen[bytes]) -> None:
        begun.append(psutil.Process(process.pid))
        assert process.stdin is not None
        process.stdin.close()  # as Popen does when it is interrupted
        raise KeyboardInterrupt

    monkeypatch.setattr(supervisor_client, "subprocess", subprocess)  # a child of this process, as of the command
    monkeypatch.setattr(supervisor_client, "RunningSupervisor", interrupted)
    monkeypatch.setattr(psutil.Process, "cmdline", shown)
    with pytest.raises(KeyboardInterrupt), session.exclusive(), session.running(keep=False):
        pytest.fail("it has been interrupted before")
    assert still_running(begun, 30) == []
    assert files(session) <= {"command.lock", "supervisor.log"}


def test_pulumi_writes_its_state_after_every_step_of_what_is_kept_and_else_once(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("{name: mine, runtime: python}")
    (tmp_path / "Pulumi.dev.yaml").write_text("{}")
    monkeypatch.setattr(PulumiProject, "recover", lambda project: None)
    monkeypatch.setattr(PulumiProject, "select", lambda project: None)
    programs = {name: Program(name, tmp_path / name, "1", "PATH") for name in ("pulumi",)}
    session._engines = Engines(programs, {f"{name}-chart": tmp_path for name in ("kueue", "jobset")})

    def written_once() -> bool:
        return session.pulumi()._environment.items() >= ONE_CHECKPOINT.items()

    with session.exclusive(), session.running(keep=True):
        assert written_once()
    with session.exclusive(), session.running(keep=False):
        assert not written_once()


def test_a_kept_rehearsal_whose_processes_are_gone_is_resumed(session: Session) -> None:
    supervisor = keep(session)
    kill(supervisor)
    lab = session.paths.clusters_file.read_text()
    with session.exclusive(), session.running(keep=False):
        assert pid(session) != supervisor
    assert session.client.health()["keep"] is True
    assert session.paths.clusters_file.read_text() == lab


def test_a_kept_rehearsal_that_cannot_be_resumed_stays_as_it_is(session: Session) -> None:
    kill(keep(session))
    port = json.loads(session.paths.clusters_file.read_text())["etcd_client_port"]
    with (
        listening(port),
        pytest.raises(RehearsalError, match=rf"{port}"),
        session.exclusive(),
        session.running(keep=False),
    ):
        pytest.fail("it cannot have been resumed")
    with session.exclusive(), session.running(keep=False):
        assert session.client.health()["status"] == "ok"


def test_a_rehearsal_that_was_not_to_be_kept_is_never_resumed(session: Session) -> None:
    with session.exclusive():
        killed = start_supervisor(session.paths)
        killed.process.kill()
        killed.stop()
    (session.paths.root / "pulumi").mkdir()
    (session.paths.root / "pulumi" / "old-state.json").touch()
    assert session.paths.clusters_file.exists()
    with session.exclusive(), session.running(keep=False):
        assert "pulumi/old-state.json" not in files(session)
    assert not session.paths.root.exists()


@pytest.mark.parametrize("how", [RunningSupervisor.stop, RunningSupervisor._close_stdin])
def test_the_supervisor_of_a_killed_command_is_waited_for(
    session: Session, how: Callable[[RunningSupervisor], None]
) -> None:
    with session.exclusive():
        orphan = start_supervisor(session.paths)
        how(orphan)
    with session.exclusive(), session.running(keep=False):
        assert pid(session) != orphan.process.pid
    orphan.process.wait(10)


def test_the_pulumi_of_a_killed_command_ends_before_its_state_is_removed(session: Session, tmp_path: Path) -> None:
    state = session.paths.pulumi_backend / ".pulumi" / "stacks" / "dev.json"
    program = tmp_path / "pulumi"
    program.write_text(
        "#!/bin/bash\n"
        "trap 'sleep 0.5; mkdir -p $(dirname $1); echo late >$1; exit' TERM\n"
        "echo ready\n"
        "while :; do sleep 0.05; done\n"
    )
    program.chmod(0o755)
    with subprocess.Popen([program, state], stdout=subprocess.PIPE) as pulumi:
        assert pulumi.stdout is not None
        assert pulumi.stdout.readline() == b"ready\n"
        locks = session.paths.pulumi_backend / ".pulumi" / "locks"
        locks.mkdir(parents=True)
        (locks / "c0ffee.json").write_text(json.dumps({"pid": pulumi.pid}))
        # The kernel tells it that the command is gone.
        pulumi.terminate()
        with session.exclusive(), session.running(keep=False):
            pulumi.wait(10)
            assert not state.exists()


def test_a_supervisor_that_does_not_end_is_killed(session: Session) -> None:
    with session.exclusive():
        orphan = start_supervisor(session.paths)
        orphan.process.send_signal(signal.SIGSTOP)
        process = state_folder.supervisor(session.paths)
        assert process is not None
        state_folder.wait_for_end(process, patience_seconds=0.2)
        assert gone(orphan.process.pid)
        assert state_folder.supervisor(session.paths) is None
    orphan.stop()


def test_a_supervisor_that_stays_as_a_zombie_has_ended() -> None:
    """As one whose command is gone does in a container whose first process is not an init."""
    parent = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as careless:
        assert careless.stdout is not None
        process = psutil.Process(int(careless.stdout.readline()))
        state_folder.wait_for_end(process, patience_seconds=0.0)
        assert process.status() == psutil.STATUS_ZOMBIE
        careless.kill()


def test_without_engines_nothing_is_started(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "")
    with (
        pytest.raises(RehearsalError, match=r"^etcd: not found on this machine and not built; run `python -m"),
        session.exclusive(),
        session.running(keep=False),
    ):
        pytest.fail("it cannot have been started")
    with pytest.raises(SupervisorGoneError):
        session.client.health()
    assert {file for file in files(session) if not file.endswith(".log")} == {"command.lock"}


def test_a_full_disk_is_noticed_before_anything_is_started(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage(session.project_dir)._replace(free=100 * 1024**2)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with (
        pytest.raises(
            RehearsalError,
            match=r"/dev: a rehearsal of 4 clusters needs about 500 MiB of disk, 100 MiB are free; free some",
        ),
        session.exclusive(),
        session.running(keep=False, fleet=fleet(WORKER, SECOND_WORKER, "worker-us-west1")),
    ):
        pytest.fail("it cannot have been started")
    assert session.aftermath == "everything is taken down"
    assert not session.paths.root.exists()


def test_one_command_at_a_time(session: Session) -> None:
    with session.exclusive():
        for attempt in (lambda: take_down("dev"), lambda: session.exclusive().__enter__()):
            with pytest.raises(RehearsalError, match=r"^another command is using the rehearsal of dev; wait for"):
                attempt()
    with session.exclusive():
        pass
    assert not session.paths.root.exists()


def test_the_lock_of_a_folder_that_was_removed_meanwhile_is_not_held(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock
    calls: list[int] = []

    def flock(file: Any, how: int) -> None:
        if not calls:
            session.paths.command_lock.unlink()
        calls.append(how)
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with session.exclusive():
        assert len(calls) == 2
        assert session.paths.command_lock.exists()


def test_a_state_folder_that_cannot_be_written_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("s")  # short: a socket's path may have 107 characters
    (folder / "file").touch()
    monkeypatch.setenv("KUEUE_FLEET_STATE_DIR", str(folder / "file"))
    with (
        pytest.raises(
            RehearsalError, match=r"/dev: cannot be written \(Not a directory\); set KUEUE_FLEET_STATE_DIR to"
        ),
        Session.for_stack("dev", folder).exclusive(),
    ):
        pytest.fail("it cannot be held")


def test_usage_counts_every_process_of_the_rehearsal(session: Session) -> None:
    with session.exclusive(), session.running(keep=False):
        usage = session.usage()
    assert 0 < usage.control_planes_mib < usage.all_mib
