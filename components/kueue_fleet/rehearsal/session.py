"""One rehearsal of one stack, from the command's point of view.

In: a stack of a Pulumi project. Out: the steps that `kueue-fleet rehearse` shows: engines, supervisor and stand-ins,
`pulumi up`, jobs, what it used. A rehearsal kept by an earlier run is gone on with; `take_down` removes it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from kueue_fleet.rehearsal.engines import BuildProgress, EngineCache, Engines, build_engines
from kueue_fleet.rehearsal.job_views import JobView
from kueue_fleet.rehearsal.jobs import ClusterClients, follow_jobs, read_jobs, submit_jobs
from kueue_fleet.rehearsal.kubeconfig import lab_kubeconfig, write_kubeconfig
from kueue_fleet.rehearsal.paths import RehearsalError, RehearsalPaths, engines_dir, rehearsal_paths
from kueue_fleet.rehearsal.pulumi_cli import PulumiProject, pulumi_environment
from kueue_fleet.rehearsal.standins.gke_auth import STATE_VARIABLE
from kueue_fleet.rehearsal.standins.helm_command import HELM_VARIABLE
from kueue_fleet.rehearsal.standins.install import StandIn, find_real_parts, install_standins
from kueue_fleet.rehearsal.supervisor_client import (
    SOCKET_VARIABLE,
    RunningSupervisor,
    SupervisorClient,
    SupervisorGoneError,
    start_supervisor,
)
from kueue_fleet.spec import FleetSpec

_MIB = 1024**2
_CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
CHARTS_KEY = "kueue-fleet:charts"


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory of a rehearsal's processes in MiB: proportional set size, which counts a page that several share once."""

    control_planes_mib: int
    """etcd, API servers, controller managers, schedulers, and the Kueue on each."""
    all_mib: int
    """Every process that the supervisor owns, and itself."""


@dataclass
class Session:
    """A rehearsal while its command runs."""

    stack: str
    project_dir: Path
    paths: RehearsalPaths
    first_admission_seconds: float | None = None
    _engines: Engines | None = field(default=None, repr=False)
    _running: RunningSupervisor | None = field(default=None, repr=False)

    @classmethod
    def for_stack(cls, stack: str, project_dir: Path) -> Session:
        """The session of STACK of the Pulumi project in `project_dir`.

        Raises:
            RehearsalError: the stack's name cannot be a folder's.
        """
        return cls(stack, project_dir, rehearsal_paths(stack))

    @property
    def stack_file(self) -> Path:
        """The user's own file with the stack's config."""
        return self._project.stack_file(self.project_dir)

    @property
    def engines(self) -> Engines:
        """The programs of the rehearsal; `prepare_engines` comes first."""
        if self._engines is None:
            raise RuntimeError("prepare_engines has not been called")
        return self._engines

    @property
    def client(self) -> SupervisorClient:
        """The supervisor of this rehearsal."""
        return SupervisorClient(self.paths.socket)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the right to change this rehearsal.

        Raises:
            RehearsalError: another command has it.
        """
        self.paths.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self.paths.command_lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RehearsalError(
                    f"another command is at work on the rehearsal of {self.stack}; wait for it to end"
                ) from None
            yield

    def prepare_engines(self, say: Callable[[str], None]) -> str:
        """Find the engines, and build those that are missing; returns a line that names them.

        Raises:
            RehearsalError: no toolchain, no disk, or a build that failed.
        """

        def report(progress: BuildProgress) -> None:
            say(f"building, once: {progress.engine} {progress.phase} ({progress.fraction:.0%} of all)")

        self._engines = build_engines(EngineCache(engines_dir()), report)
        shown = ("pulumi", "kube-apiserver", "etcd", "kueue", "jobset")
        return ", ".join(f"{name} {self._engines.programs[name].version.removeprefix('v')}" for name in shown)

    @contextmanager
    def running(self, *, keep: bool) -> Iterator[None]:
        """Have a supervisor, for this block alone or, with KEEP, from now on.

        A rehearsal that was kept earlier is used as it is. One that this block started is removed when the block
        fails, so that nothing half made stays.
        """
        started = None if self._answers() else self._start()
        try:
            yield
        except BaseException:
            if started:
                started.stop(keep_logs=True)
                _remove_state(self.paths, but=(self.paths.command_lock, *_logs(self.paths)))
            raise
        if started is None:
            return
        if keep:
            started.leave()
        else:
            started.stop()
            _remove_state(self.paths)

    def _start(self) -> RunningSupervisor:
        # A kept rehearsal whose supervisor was ended, by a reboot perhaps, goes on with the same clusters.
        resumed = self.paths.lab_file.exists()
        if not resumed:
            _remove_state(self.paths, but=(self.paths.command_lock,))
        return start_supervisor(self.paths, keep=resumed)

    def _answers(self) -> bool:
        try:
            self.client.health()
        except SupervisorGoneError:
            return False
        return True

    def stand_ins(self) -> list[StandIn]:
        """Install what stands in for the parts that are absent here, and return it."""
        pulumi_home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
        present = find_real_parts(os.environ.get("PATH", ""), pulumi_home)
        return install_standins(self.paths.bin, Path(sys.executable), present=present)

    @cached_property
    def _project(self) -> PulumiProject:
        return PulumiProject(self.stack, self.paths)

    def pulumi(self) -> PulumiProject:
        """The stack in the rehearsal's own backend, on a fresh copy of its config, ready for `up` and `destroy`.

        Raises:
            RehearsalError: the project or the stack is not there, or Pulumi refuses its state.
        """
        project = self._project
        charts = {"kueue": str(self.engines.asset("kueue-chart")), "jobSet": str(self.engines.asset("jobset-chart"))}
        project.write(self.project_dir, {CHARTS_KEY: charts})
        pulumi = self.engines.binary("pulumi")
        environment = pulumi_environment(
            self.paths,
            os.environ,
            [self.paths.bin, pulumi.parent],
            {
                SOCKET_VARIABLE: str(self.paths.socket),
                STATE_VARIABLE: str(self.paths.root),
                HELM_VARIABLE: str(self.engines.binary("helm")),
            },
        )
        project.use(pulumi, environment)
        project.select()
        return project

    def write_kubeconfig(self, fleet: FleetSpec) -> None:
        """Write the kubeconfig whose contexts are named as the fleet's clusters."""
        known = {cluster["name"]: cluster for cluster in self.client.clusters()}
        described = [known[name] for name in fleet.cluster_names]
        token = self.paths.admin_token.read_text().strip()
        write_kubeconfig(self.paths.kubeconfig, lab_kubeconfig(described, token, self.home(fleet)))

    @staticmethod
    def home(fleet: FleetSpec) -> str:
        """The cluster that jobs are submitted to: the manager, or the only one."""
        return fleet.manager.name if fleet.manager else fleet.cluster_names[0]

    @staticmethod
    def read_jobs(file: Path) -> list[dict[str, Any]]:
        """See `jobs.read_jobs`."""
        return read_jobs(file)

    def clients(self, fleet: FleetSpec) -> ClusterClients:
        """The API servers of the fleet's clusters."""
        return ClusterClients(self.paths.kubeconfig, fleet.cluster_names)

    def run_jobs(
        self, fleet: FleetSpec, documents: Sequence[Mapping[str, Any]], timeout_seconds: float
    ) -> Iterator[list[JobView]]:
        """Submit jobs and follow them: see `jobs.follow_jobs`."""
        clients = self.clients(fleet)
        home = self.home(fleet)
        yield from follow_jobs(clients, home, submit_jobs(clients, home, documents), timeout_seconds)

    def usage(self) -> Usage:
        """What the rehearsal's processes use now."""
        everything = control_planes = 0
        for row in self.client.processes():
            try:
                size = psutil.Process(row["pid"]).memory_full_info().pss
            except psutil.NoSuchProcess:
                continue
            everything += size
            if row["name"] in _CONTROL_PLANE or "kueue" in row["name"]:
                control_planes += size
        return Usage(control_planes // _MIB, everything // _MIB)


def take_down(stack: str) -> bool:
    """End the rehearsal of STACK and remove all of it; returns whether there was one.

    Raises:
        RehearsalError: another command is at work on it.
    """
    session = Session.for_stack(stack, Path())
    if not session.paths.root.is_dir():
        return False
    with session.exclusive():
        try:
            pid = session.client.health()["pid"]
            session.client.shutdown()
        except SupervisorGoneError:
            pass
        else:
            _wait_for_end(pid)
        _remove_state(session.paths)
    return True


def _wait_for_end(pid: int) -> None:
    try:
        psutil.Process(pid).wait(60)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired:
        raise RehearsalError(
            f"the supervisor (process {pid}) has not ended in 60 s; end it with `kill {pid}`"
        ) from None


def _logs(paths: RehearsalPaths) -> list[Path]:
    return [file for pattern in ("*.log", "*.events.json") for file in paths.root.rglob(pattern)]


def _remove_state(paths: RehearsalPaths, but: Sequence[Path] = ()) -> None:
    """Remove everything of a rehearsal but some files, the folder itself included where nothing stays in it."""
    kept = set(but)
    for place in sorted(paths.root.rglob("*"), reverse=True):
        if place.is_dir() and not place.is_symlink():
            if not any(place.iterdir()):
                place.rmdir()
        elif place not in kept:
            place.unlink(missing_ok=True)
    if not kept:
        paths.root.rmdir()
