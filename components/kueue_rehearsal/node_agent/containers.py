"""One container: started as a process, probed, restarted with back-off, stopped.

The process is spawned through the supervisor, so that it dies with it. What the container does is said to the pod's
worker as a `ContainerState`; the worker turns all of them into the Pod's status.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.kube.answers import ApiError
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi
from kueue_rehearsal.node_agent.mounts import SERVICE_ACCOUNT_PATH, PodVolumes, build_root, write_kubeconfig
from kueue_rehearsal.node_agent.pods import (
    HostFacts,
    PodError,
    Source,
    environment,
    environment_sources,
    expand,
    rewrite_paths,
)
from kueue_rehearsal.node_agent.probes import EAGER_SECONDS, ProbeSpec, parse_probe, run_probe
from kueue_rehearsal.node_agent.programs import (
    CertificateNeed,
    HostPlace,
    Program,
    adapt_arguments,
    adapt_configuration,
    find_program,
)
from kueue_rehearsal.node_agent.status import ContainerState, restart_delay_seconds, should_restart, terminated
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.private_files import write_private
from kueue_rehearsal.processes.child_process import ChildProcess, ProcessSpec, Spawn
from kueue_rehearsal.standins.gke_auth import ACCOUNT_VARIABLE

log = logging.getLogger(__name__)

_CONFIG_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PodNode:
    """What pods and their containers need from their node."""

    api: ControlPlaneApi
    name: str
    ip: str
    programs: Mapping[str, Program]
    spawn: Spawn
    client: aiohttp.ClientSession
    """For probes."""
    ensure_certificate: Callable[[str, CertificateNeed], Awaitable[None]]
    """Ensures that a Secret has a serving certificate before the container starts."""


@dataclass(frozen=True, slots=True)
class ContainerHost:
    """What a container needs from its pod and node."""

    node: PodNode
    pod: Mapping[str, Any]
    facts: HostFacts
    volumes: PodVolumes
    folder: Path
    """The pod's folder, 0700."""
    fetch: Callable[[Source], Awaitable[Mapping[str, bytes] | None]]
    """Reads a ConfigMap or Secret of the pod's namespace."""
    google_account: Callable[[], Awaitable[str]]
    """Address of the Google account that the pod acts as; empty for none."""


class Container:
    """One container of a pod, until `stop`."""

    def __init__(
        self,
        host: ContainerHost,
        container: Mapping[str, Any],
        restart_policy: str,
        on_change: Callable[[], None],
        restart_count: int = 0,
    ) -> None:
        self.state = ContainerState(container["name"], container["image"], restart_count=restart_count)
        self._host = host
        self._container = container
        self._restart_policy = restart_policy
        self._on_change = on_change
        self._child: ChildProcess | None = None
        self._grace_seconds = float(host.pod["spec"].get("terminationGracePeriodSeconds", 30))

    def _set(self, state: ContainerState) -> None:
        if state != self.state:
            self.state = state
            self._on_change()

    async def run(self) -> int:
        """Runs the container until it ends for good; returns its exit code. Cancel it, then `stop`, to end it
        earlier."""
        restarts_in_a_row = 0
        while True:
            code, ran_seconds = await self._run_once()
            if not should_restart(self._restart_policy, code):
                return code
            delay = restart_delay_seconds(restarts_in_a_row, ran_seconds)
            restarts_in_a_row = restarts_in_a_row + 1 if delay or not restarts_in_a_row else 1
            if delay:
                text = f"back-off {delay:g}s restarting failed container={self.state.name}"
                self._set(self.state.waiting("CrashLoopBackOff", text))
                await asyncio.sleep(delay)
            self._set(self.state.restarted())

    async def stop(self, grace_seconds: float | None = None) -> None:
        """SIGTERM, and SIGKILL after the grace period (default: the pod's own)."""
        child = self._child
        if child is None or child.returncode is not None:
            return
        child.stopping = True
        child.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._grace_seconds if grace_seconds is None else grace_seconds):
                await child.wait()
        except TimeoutError:
            child.send_signal(signal.SIGKILL)
            await child.wait()
        self._set(self.state.ended(terminated(child.returncode or 0, child.started_at, time.time())))

    async def _run_once(self) -> tuple[int, float]:
        """One life of the process: its exit code, and how long it ran."""
        while True:
            try:
                spec = await self._prepare()
                child = self._host.node.spawn(spec)
                break
            except (ApiError, PodError, RehearsalError) as error:
                # An API server that is unreachable comes back; a kubelet keeps trying too.
                reason = error.reason if isinstance(error, PodError) else "RunContainerError"
                self._set(self.state.waiting(reason, str(error)))
                await asyncio.sleep(_CONFIG_RETRY_SECONDS)
        self._child = child
        probes = {
            kind: parse_probe(self._container, kind, self._host.facts.pod_ip)
            for kind in ("startupProbe", "readinessProbe", "livenessProbe")
        }
        self._set(
            self.state.running(
                child.started_at,
                f"process://{child.pid}",
                has_startup_probe=probes["startupProbe"] is not None,
                has_readiness_probe=probes["readinessProbe"] is not None,
            )
        )
        # Probes that failed in themselves would leave the pod as it is; in the group they end the wait.
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(self._probe(child, probes))
            code = await child.wait()
            watcher.cancel()
        end = terminated(code, child.started_at, time.time())
        self._set(self.state.ended(end))
        return end.exit_code, end.finished_at - end.started_at

    async def _prepare(self) -> ProcessSpec:
        """Everything up to the start of the process. Raises ApiError and PodError."""
        host, container = self._host, self._container
        program = find_program(host.node.programs, container, host.pod["metadata"].get("labels"))
        if host.volumes.problem is not None:
            raise host.volumes.problem
        root = host.folder / "containers" / container["name"]
        places = build_root(container, host.volumes, root)
        place = HostPlace(host.facts.pod_ip, host.volumes.namespace, places, program)
        sources = {source: await host.fetch(source) for source in environment_sources(container)}
        variables = {
            name: rewrite_paths(value, places)
            for name, value in environment(host.pod, container, host.facts, sources).items()
        }
        arguments = [expand(one, variables) for one in container.get("args", ())]
        arguments = await self._adapt(place, adapt_arguments(arguments, place), root)
        arguments += (self._filled(one) for one in program.arguments)
        base = self._base_environment(root, places) | {ACCOUNT_VARIABLE: await host.google_account()}
        if program.kubeconfig_argument and "KUBECONFIG" in base:
            arguments.append(f"--kubeconfig={base['KUBECONFIG']}")
        return ProcessSpec(
            name=f"pod-{host.pod['metadata']['name']}-{container['name']}",
            argv=(*program.command, *arguments),
            env={**base, **{name: self._filled(value) for name, value in program.environment.items()}, **variables},
            workdir=root / container.get("workingDir", "/").lstrip("/"),
            log=host.folder / f"{container['name']}.log",
            stop_seconds=self._grace_seconds,
        )

    def _filled(self, text: str) -> str:
        """What a Program says, with the addresses of this place."""
        facts = self._host.facts
        here = {"pod_ip": facts.pod_ip, "host_ip": facts.host_ip, "namespace": self._host.volumes.namespace}
        for name, value in here.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    async def _adapt(self, place: HostPlace, arguments: list[str], root: Path) -> list[str]:
        """Replaces every known configuration file among the arguments by one that fits this machine."""
        groups = set()
        adapted_arguments = list(arguments)
        for mount, target in place.paths.items():
            position = next((i for i, one in enumerate(arguments) if one.endswith((f"={target}", target))), None)
            file = Path(target)
            if position is None or not file.is_file():
                continue
            adaptation = adapt_configuration(file.read_bytes(), place)
            if adaptation is None:
                continue
            groups.add(adaptation.group)
            for note in adaptation.notes:
                log.info("%s: %s: %s", self._host.pod["metadata"]["name"], mount, note)
            if adaptation.certificate is not None:
                await self._host.node.ensure_certificate(place.namespace, adaptation.certificate)
            here = root / "configuration" / file.name
            here.parent.mkdir(exist_ok=True, mode=0o700)
            write_private(here, adaptation.content)
            adapted_arguments[position] = arguments[position].replace(target, str(here))
        group = place.program.configuration_group
        if group is not None and group not in groups:
            raise PodError(
                f"container {self._container['name']} has no --config with a {group} Configuration from a mounted "
                "ConfigMap; without one it would listen on every address of this machine"
            )
        return adapted_arguments

    def _base_environment(self, root: Path, places: Mapping[str, str]) -> dict[str, str]:
        host = self._host
        variables = {"HOSTNAME": host.pod["metadata"]["name"], "TMPDIR": str(root / "tmp"), "HOME": str(root)}
        limit = (self._container.get("resources") or {}).get("limits", {}).get("memory")
        if limit is not None:
            # Go's collector keeps below the limit that a container would be killed at.
            variables["GOMEMLIMIT"] = str(Quantity(limit).value)
        account = places.get(SERVICE_ACCOUNT_PATH)
        if account is not None:
            kubeconfig = host.folder / "kubeconfig"
            write_kubeconfig(
                kubeconfig,
                server=host.node.api.server,
                ca_file=host.node.api.ca_file,
                token_file=f"{account}/token",
                namespace=host.volumes.namespace,
            )
            variables["KUBECONFIG"] = str(kubeconfig)
        return variables

    async def _probe(self, child: ChildProcess, probes: Mapping[str, ProbeSpec | None]) -> None:
        startup, readiness, liveness = (probes[kind] for kind in ("startupProbe", "readinessProbe", "livenessProbe"))
        if startup is not None:
            if not await self._until_started(child, startup):
                return
            self._set(replace(self.state, started=True, ready=readiness is None))
        async with asyncio.TaskGroup() as group:
            if readiness is not None:
                group.create_task(self._watch_readiness(child, readiness))
            if liveness is not None:
                group.create_task(self._watch_liveness(child, liveness))

    async def _until_started(self, child: ChildProcess, probe: ProbeSpec) -> bool:
        threshold = probe.threshold()
        next_count = child.started_at + probe.initial_delay_seconds
        while threshold.verdict is None:
            success = await run_probe(self._host.node.client, probe)
            if success or time.time() >= next_count:
                next_count = time.time() + probe.period_seconds
                threshold.observe(success)
            await asyncio.sleep(EAGER_SECONDS)
        if not threshold.verdict:
            await self._kill(child, "startup")
        return bool(threshold.verdict)

    async def _watch_readiness(self, child: ChildProcess, probe: ProbeSpec) -> None:
        threshold = probe.threshold()
        while True:
            success = await run_probe(self._host.node.client, probe)
            if threshold.observe(success) and child.returncode is None:
                self._set(replace(self.state, ready=bool(threshold.verdict)))
            await asyncio.sleep(probe.period_seconds if threshold.verdict else EAGER_SECONDS)

    async def _watch_liveness(self, child: ChildProcess, probe: ProbeSpec) -> None:
        threshold = probe.threshold()
        await asyncio.sleep(probe.initial_delay_seconds)
        while True:
            threshold.observe(await run_probe(self._host.node.client, probe))
            if threshold.verdict is False:
                await self._kill(child, "liveness")
                return
            await asyncio.sleep(probe.period_seconds)

    async def _kill(self, child: ChildProcess, probe: str) -> None:
        log.warning("%s: %s probe failed, restarting container %s", child.spec.name, probe, self.state.name)
        await child.stop()
