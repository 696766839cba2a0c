"""One rehearsal of one stack, from the command's point of view.

The steps that `kueue-fleet rehearse run` shows: engines, supervisor and stand-ins, `pulumi up`, jobs, what it used. A
rehearsal kept by an earlier run is resumed; `take_down` removes it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from kueue_admission.api.job_kinds import enabled_kinds
from kueue_fleet.fleet_file import ClusterEntry, FleetSpec, kueue_configuration
from kueue_fleet.fleet_file.charts import CHARTS_KEY
from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.fleet_file.parse import AS_PUBLISHED_KEY, KUBERNETES_KEY, PULUMI_KEY, REHEARSAL_KEY
from kueue_rehearsal.cloud.dws_limits import beyond_stock
from kueue_rehearsal.engines import (
    ENGINES,
    KUEUE_ENGINES,
    OPERATOR_ENGINES,
    BuildProgress,
    EngineCache,
    Engines,
    build_engines,
    expected_build_seconds,
)
from kueue_rehearsal.jobs.kinds import JOB_KINDS
from kueue_rehearsal.jobs.refused_pods import RefusedPods
from kueue_rehearsal.jobs.submission import Watch, follow_jobs, submit_jobs, unfinished_jobs
from kueue_rehearsal.jobs.views import JobView
from kueue_rehearsal.kubeconfig import rehearsal_kubeconfig, write_kubeconfig
from kueue_rehearsal.machine import check_machine
from kueue_rehearsal.paths import RehearsalPaths, engines_dir, rehearsal_paths, state_dir
from kueue_rehearsal.plain_clusters import connections
from kueue_rehearsal.private_files import write_private
from kueue_rehearsal.processes.supervisor_client import (
    SOCKET_VARIABLE,
    RunningSupervisor,
    SupervisorClient,
    SupervisorGoneError,
    start_supervisor,
)
from kueue_rehearsal.pulumi_cli import ONE_CHECKPOINT, PATCH_FORCE, PulumiProject, end_pulumi, pulumi_environment
from kueue_rehearsal.simulation_settings import parse_settings
from kueue_rehearsal.standins.executables import (
    KUBERNETES,
    Part,
    find_real_parts,
    install_standins,
    missing_parts,
)
from kueue_rehearsal.standins.gke_auth import STATE_VARIABLE
from kueue_rehearsal.state_folder import (
    exclusive,
    is_kept,
    logs,
    mark_kept,
    remove_state,
    supervisor,
    wait_for_end,
)

if TYPE_CHECKING:
    from kueue_rehearsal.jobs.clients import ClusterClients

_MIB = 1024**2
_THEIR_POOL = "default-pool"
# In the place of Grafana's chart, which is not here.
_NO_GRAFANA = Path(__file__).parent / "standins" / "grafana-chart"
_CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
# An orderly end of four clusters takes a few seconds; on a busy machine, more.
_END_SECONDS = 60.0
_ORPHAN_SECONDS = 30.0


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
    fleet_file: Path | None = None
    """A fleet's own file, in the place of a stack of the project."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """The fleet that the program declares, as plain data, where no file holds it."""
    as_published: bool = False
    """Whether the program only warns of the defects of the batch platform as it is published."""
    aftermath: str = ""
    """What is left of the rehearsal after a failure, in words for the user; empty while nothing has been started."""
    _engines: Engines | None = field(default=None, repr=False)

    @classmethod
    def for_stack(cls, stack: str, project_dir: Path) -> Session:
        """The session of STACK of the Pulumi project in `project_dir`.

        Raises:
            RehearsalError: the stack's name cannot be a folder's.
        """
        return cls(stack, project_dir, rehearsal_paths(stack))

    @property
    def stack_file(self) -> Path:
        """The user's own file with the stack's config, or with the fleet alone."""
        return self._project.stack_file(self.project_dir)

    @property
    def engines(self) -> Engines:
        """The programs of the rehearsal. Raises RuntimeError before `prepare_engines`."""
        if self._engines is None:
            raise RuntimeError("prepare_engines has not been called")
        return self._engines

    @property
    def client(self) -> SupervisorClient:
        """The supervisor of this rehearsal."""
        return SupervisorClient(self.paths.socket)

    @property
    def kept(self) -> bool:
        """Whether the rehearsal outlives its command."""
        return is_kept(self.paths)

    @cached_property
    def refused_pods(self) -> RefusedPods:
        """The pods that nothing here can run; to watch over `pulumi up`."""
        return RefusedPods(self.client)

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the right to change this rehearsal: see `state_folder.exclusive`."""
        return exclusive(self.paths, self.stack)

    def expected_build_seconds(self, more: Collection[str] = ()) -> float:
        """About how long `prepare_engines` builds, in seconds; 0 where it finds everything."""
        return expected_build_seconds(EngineCache(engines_dir()), self._needed(more))

    def prepare_engines(self, say: Callable[[str], None], more: Collection[str] = ()) -> str:
        """Find the engines, and build those that are missing; returns a line that names them.

        SAY is called with what is being built, and in parentheses how far all of it is. MORE are the engines that not
        every fleet needs: see `fleet_engines`.

        Raises:
            RehearsalError: no toolchain, no disk, or a build that failed.
        """

        def report(progress: BuildProgress) -> None:
            say(f"building, once: {progress.engines} {progress.phase} ({progress.fraction:.0%} of all)")

        self._engines = build_engines(EngineCache(engines_dir()), report, self._needed(more))
        names = ("pulumi", "kube-apiserver", "etcd", "kueue", "jobset", *more)
        return ", ".join(f"{name} {self._engines.programs[name].version.removeprefix('v')}" for name in names)

    def _needed(self, more: Collection[str]) -> list[str]:
        own = self._real_parts.keys()
        needed_engines = [
            engine.name for engine in ENGINES if engine.for_rehearsal and not dict(engine.binaries).keys() <= own
        ]
        return [*needed_engines, *more]

    @contextmanager
    def running(self, *, keep: bool, fleet: FleetSpec | None = None) -> Iterator[None]:
        """Run a supervisor for this block or, with KEEP, from now on. `prepare_engines` has been called.

        A rehearsal that was kept earlier is resumed, whatever happens in the block; its processes are started
        again where they are gone. Any other is removed at the end, and when the block fails only its logs stay.

        Raises:
            RehearsalError: the supervisor or one of the kept clusters cannot be started, or this machine has too
                little room for FLEET, if one is given.
        """
        was_kept = self.kept
        running_supervisor: RunningSupervisor | None = None
        try:
            if was_kept:
                self._resume()
            else:
                running_supervisor = self._start(fleet)
            yield
            if running_supervisor and keep:
                mark_kept(self.paths)
                running_supervisor.leave()
            elif running_supervisor:
                running_supervisor.stop()
                remove_state(self.paths)
        except BaseException:
            self._after_failure(running_supervisor, was_kept)
            raise

    def _start(self, fleet: FleetSpec | None) -> RunningSupervisor:
        # After a command that was killed, its supervisor and its Pulumi are still ending.
        _end_all(self.paths, _ORPHAN_SECONDS)
        if fleet is not None:
            check_machine(self.paths, fleet)
        return start_supervisor(self.paths)

    def _after_failure(self, running_supervisor: RunningSupervisor | None, was_kept: bool) -> None:
        if was_kept:
            self.aftermath = f"the kept rehearsal of {self.stack} is still there"
            return
        if running_supervisor:
            running_supervisor.stop(keep_logs=True)
        else:
            _end_begun(self.paths)
        log_texts = logs(self.paths)
        remove_state(self.paths, but=log_texts)
        self.aftermath = "everything is taken down"
        if log_texts:
            self.aftermath += f", the logs are in {self.paths.root}"

    def _resume(self) -> None:
        """Start again what has ended of a kept rehearsal, and wait until its clusters are ready."""
        if not self._answers():
            start_supervisor(self.paths, keep=True).leave()
        for cluster in self.client.clusters():
            parameters = {key: cluster[key] for key in ("project", "location", "autopilot")}
            self.client.put_cluster(cluster["name"], **parameters)

    def _answers(self) -> bool:
        try:
            self.client.health()
        except SupervisorGoneError:
            return False
        return True

    def missing_parts(self) -> list[str]:
        """What Pulumi needs and does not have here, neither for real nor a stand-in; one line for each."""
        return missing_parts(self._real_parts)

    def stand_ins(self) -> list[Part]:
        """Install what stands in for the parts that are absent here, and return it. Follows `prepare_engines`."""
        present, provider = self._real_parts, KUBERNETES.executable
        if provider not in present:
            present = {**present, provider: self.engines.binary(provider)}
        return install_standins(self.paths.bin, Path(sys.executable), present=present)

    @cached_property
    def _real_parts(self) -> dict[str, Path]:
        pulumi_home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
        return find_real_parts(os.environ.get("PATH", ""), pulumi_home)

    @cached_property
    def _project(self) -> PulumiProject:
        return PulumiProject(self.stack, self.paths, self.fleet_file)

    def pulumi(self) -> PulumiProject:
        """The stack in the rehearsal's own backend, on a fresh copy of its config, ready for `up` and `destroy`.

        Raises:
            RehearsalError: the project or the stack is not there, or Pulumi refuses its state.
        """
        project = self._project
        self.write_settings()
        engines = {"kueue": "kueue", "jobSet": "jobset", **OPERATOR_ENGINES}
        # A chart that the stack names by its folder is used as it is; others would have to be fetched.
        own = {name: chart for name, chart in (self._config(CHARTS_KEY) or {}).items() if Path(chart).is_dir()}
        if "kueue" not in own:
            engines |= {name: name for name in KUEUE_ENGINES.values()}
        there = self.engines.assets
        charts = {name: str(there[asset]) for name, engine in engines.items() if (asset := f"{engine}-chart") in there}
        charts |= own | {"grafana": str(_NO_GRAFANA)}
        published_key = {AS_PUBLISHED_KEY: True} if self.as_published else {}
        plain = {cluster["name"]: cluster for cluster in self.client.clusters() if not cluster["project"]}
        elsewhere = {KUBERNETES_KEY: connections(plain)} if plain else {}
        project.write(self.project_dir, {CHARTS_KEY: charts, **published_key, **elsewhere})
        pulumi = self.engines.binary("pulumi")
        environment = pulumi_environment(
            self.paths,
            os.environ,
            [self.paths.bin, pulumi.parent],
            {
                SOCKET_VARIABLE: str(self.paths.socket),
                STATE_VARIABLE: str(self.paths.root),
                **({"KUBECONFIG": str(self.paths.kubeconfig)} if plain else {}),
                # What is not kept yet goes when this command fails, and its state with it.
                **({} if self.kept else ONE_CHECKPOINT),
                # Release 4.25 of the Kubernetes provider does not know the provider's own setting yet.
                **({PATCH_FORCE: "true"} if self._takes_over() else {}),
            },
        )
        project.use(pulumi, environment, self.refused_pods.late)
        project.recover()
        project.select()
        return project

    def _takes_over(self) -> bool:
        clusters = self._fleet.get("clusters") or ()
        return any(cluster.get("upsertExistingObjects") for cluster in clusters)

    @property
    def _fleet(self) -> Mapping[str, Any]:
        return self._config(PULUMI_KEY) or self.declared

    def _config(self, key: str) -> Any:
        settings = self._project.stack_settings(self.project_dir)
        return (settings.get("config") or {}).get(key)

    @property
    def settings(self) -> RehearsalSection:
        """What the stack's config says now about the simulated cloud.

        Raises:
            RehearsalError: with every problem of it.
        """
        return parse_settings(self._config(REHEARSAL_KEY), str(self.stack_file))

    def write_settings(self) -> None:
        """Let the simulated cloud behave, and have operators, as the stack's config says, from now on.

        Raises:
            RehearsalError: as `settings`.
        """
        data = self._config(REHEARSAL_KEY)
        parse_settings(data, str(self.stack_file))
        operators = self._fleet.get("operators") or {}
        for file, content in (
            (self.paths.simulation, {} if data is None else data),
            (self.paths.frameworks_elsewhere, operators.get("installedElsewhere") or []),
        ):
            write_private(file, json.dumps(content).encode())

    def make_existing_clusters(self, fleet: FleetSpec) -> list[str]:
        """Make the clusters that FLEET expects to exist, with nodes of their own, and return their names.

        That includes every cluster with an existing node pool.

        Raises:
            RehearsalError: one of them cannot be started.
        """
        with_pools = {name for pool in fleet.node_pools if pool.existing for name in fleet.clusters_of(pool)}
        there = [cluster for cluster in fleet.gke_clusters if cluster.existing or cluster.name in with_pools]
        for entry in there:
            autopilot = entry.mode == "Autopilot"
            place = {"project": fleet.project, "location": entry.region}
            self.client.put_cluster(entry.name, **place, autopilot=autopilot)
            if not autopilot:
                nodes = {"cluster": entry.name, "nodeCount": 1, "nodeConfig": {"machineType": "e2-standard-4"}}
                pool = {**place, "name": _THEIR_POOL, "nodeLocations": list(entry.node_locations), **nodes}
                self.client.put_node_pool(entry.name, _THEIR_POOL, pool)
            self._make_existing_pools(fleet, entry)
        self._make_plain_clusters(fleet)
        return [*(entry.name for entry in there), *fleet.plain_clusters]

    def _make_plain_clusters(self, fleet: FleetSpec) -> None:
        from kueue_rehearsal.plain_clusters import PLACE_UNKNOWN, make_nodes

        names = fleet.plain_clusters
        if not names:
            return
        for name in names:
            place = fleet.cluster(name).place or PLACE_UNKNOWN
            self.client.put_cluster(name, project="", location=place, autopilot=False)
        self._write_kubeconfig(names)
        clients = self._clients(names)
        for name in names:
            make_nodes(clients.client(name), fleet, name)

    def _make_existing_pools(self, fleet: FleetSpec, cluster: ClusterEntry) -> None:
        from kueue_fleet.google.node_pools import node_pool_properties

        for pool in fleet.node_pools_on(cluster.name):
            if pool.entry.existing:
                nodes = node_pool_properties(
                    pool,
                    service_account="",
                    disk_encryption_key=None,
                    image_streaming=cluster.image_streaming,
                    labels={},
                )
                whole = {**nodes, "project": fleet.project, "cluster": cluster.name}
                self.client.put_node_pool(cluster.name, pool.name, whole)

    def write_kubeconfig(self, fleet: FleetSpec) -> None:
        """Write the kubeconfig whose contexts are named as the fleet's clusters."""
        self._write_kubeconfig(fleet.cluster_names, fleet.home)

    def _write_kubeconfig(self, names: Sequence[str], current: str = "") -> None:
        cluster_by_name = {cluster["name"]: cluster for cluster in self.client.clusters()}
        token = self.paths.admin_token.read_text().strip()
        cluster_list = [cluster_by_name[name] for name in names]
        write_kubeconfig(self.paths.kubeconfig, rehearsal_kubeconfig(cluster_list, token, current or names[0]))

    def clients(self, fleet: FleetSpec) -> ClusterClients:
        """The API servers of the fleet's clusters."""
        return self._clients(fleet.cluster_names)

    def _clients(self, names: Sequence[str]) -> ClusterClients:
        from kueue_rehearsal.jobs.clients import ClusterClients

        return ClusterClients(self.paths.kubeconfig, names)

    def run_jobs(
        self,
        fleet: FleetSpec,
        documents: Sequence[Mapping[str, Any]],
        timeout_seconds: float,
        file: Path | None = None,
        watch: Watch | None = None,
    ) -> Iterator[list[JobView]]:
        """Submit jobs, those of FILE if it is given, and follow them: see `jobs.submission.follow_jobs`."""
        jobs: list[dict[str, Any]] = []

        def submit() -> None:
            submit_jobs(self.clients(fleet), fleet.home, documents, jobs)
            if file is not None:
                with self.paths.submitted.open("a") as submitted_file:
                    submitted_file.write(f"{file.absolute()}\n")

        with ThreadPoolExecutor(1) as thread:
            yield from self.follow_jobs(fleet, jobs, timeout_seconds, watch, thread.submit(submit))

    def unfinished_jobs(self, fleet: FleetSpec) -> list[dict[str, Any]]:
        """See `jobs.submission.unfinished_jobs`."""
        managed_kinds = enabled_kinds(kueue_configuration(fleet, fleet.home))
        return unfinished_jobs(
            self.clients(fleet), fleet.home, [kind for kind in managed_kinds if kind.kind in JOB_KINDS]
        )

    def follow_jobs(
        self,
        fleet: FleetSpec,
        jobs: Sequence[Mapping[str, Any]],
        timeout_seconds: float,
        watch: Watch | None = None,
        submission: Future[None] | None = None,
    ) -> Iterator[list[JobView]]:
        """Follow jobs that are submitted: see `jobs.submission.follow_jobs`."""
        beyond = partial(beyond_stock, fleet, self.settings)
        yield from follow_jobs(self.clients(fleet), fleet.home, jobs, timeout_seconds, beyond, watch, submission)

    def list_quotas(self, fleet: FleetSpec) -> dict[str, list[dict[str, Any]]]:
        """The ClusterQueues and Cohorts of each cluster that runs jobs, by its name."""
        clients, kinds = self.clients(fleet), ("clusterqueues", "cohorts")
        return {
            name: [item for kind in kinds for item in clients.list(name, "kueue.x-k8s.io", "v1beta2", kind)]
            for name in fleet.job_clusters
        }

    def has_submitted(self, jobs: Path) -> bool:
        """Whether a run of this rehearsal has submitted the jobs of that file."""
        submitted_file = self.paths.submitted
        return submitted_file.is_file() and str(jobs.absolute()) in submitted_file.read_text().splitlines()

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
        RehearsalError: another command is using it.
    """
    session = Session.for_stack(stack, Path())
    if not session.paths.root.is_dir():
        return False
    with session.exclusive():
        patience = _END_SECONDS
        try:
            session.client.shutdown()
        except SupervisorGoneError:
            patience = 0.0
        _end_all(session.paths, patience)
    return True


def _end_all(paths: RehearsalPaths, patience_seconds: float) -> None:
    """Remove the state of a rehearsal, once neither its supervisor nor its Pulumi can write to it any more."""
    if process := supervisor(paths):
        wait_for_end(process, patience_seconds)
    end_pulumi(paths)
    remove_state(paths)


def _end_begun(paths: RehearsalPaths) -> None:
    """End a supervisor that this process does not know of, since Ctrl-C came just as it had begun."""
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if str(paths.root) in _command_line(child):
                child.terminate()
                wait_for_end(child, _END_SECONDS)


def _command_line(child: psutil.Process) -> list[str]:
    """Its arguments, which Linux has not yet for a moment after Popen has returned: a new program's files are closed
    before its arguments are in place. Empty: it has none after a second."""
    for _ in range(100):
        if command_line := child.cmdline():
            return command_line
        time.sleep(0.01)
    return []


def rehearsals() -> list[str]:
    """The stacks of which there is a rehearsal, or its logs."""
    folder = state_dir() / "rehearsals"
    return sorted(place.name for place in folder.iterdir() if place.is_dir()) if folder.is_dir() else []
