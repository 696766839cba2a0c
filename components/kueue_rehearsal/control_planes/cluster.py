"""One cluster of a rehearsal while it lives: its control plane's processes and the services beside it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import aiohttp

from kueue_rehearsal.control_planes.control_plane import (
    API_SERVER,
    CONTROLLER_MANAGER,
    SCHEDULER,
    ClusterAccess,
    ClusterService,
    ControlPlanePlan,
    NodePoolHost,
    PodRunner,
    PreparesCluster,
    api_server_process,
    controller_manager_process,
    scheduler_process,
    write_control_plane_files,
)
from kueue_rehearsal.control_planes.kwok import kwok_process, write_kwok_files
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.processes.child_process import ChildProcess, log_tail
from kueue_rehearsal.processes.children import Children, describe_end

log = logging.getLogger(__name__)

READY_SECONDS = 120.0
"""Longest that a control plane takes to be ready."""
_POLL_SECONDS = 0.05
_PORT_TAKEN = "address already in use"
# https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters
_CLUSTER_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")

ServiceFactory = Callable[[ClusterAccess], Sequence[ClusterService]]
"""Makes the services of a cluster."""


class PortTakenError(RehearsalError):
    """Another program took the API server's port first."""


class WrongRequestError(RehearsalError):
    """The request itself is wrong."""


@dataclass(frozen=True, slots=True)
class ClusterParameters:
    """What makes a cluster another cluster when it differs."""

    project: str
    """Empty: it is not of GKE."""
    location: str
    autopilot: bool


def check_cluster_name(name: str) -> None:
    """Raises WrongRequestError when GKE would not take the name."""
    if not _CLUSTER_NAME.fullmatch(name):
        raise WrongRequestError(
            f"cluster {name!r}: not a GKE cluster name; use up to 40 lower case letters, digits and hyphens, "
            "beginning with a letter and not ending with a hyphen"
        )


class Cluster:
    """A control plane and its services. `start` and `stop` are for one caller at a time."""

    def __init__(
        self, plan: ControlPlanePlan, parameters: ClusterParameters, services: ServiceFactory, version: str
    ) -> None:
        self.plan = plan
        self.parameters = parameters
        self.state = "starting"
        """`starting`, `running`, `stopping` or `failed`; why, is in `message`."""
        self.message = ""
        self._version = version
        self._factory = services
        self._children = Children(plan.name, self._child_died)
        self._services: dict[str, ClusterService] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._service_states: dict[str, str] = {}

    @property
    def name(self) -> str:
        """GKE's name of it."""
        return self.plan.name

    @property
    def children(self) -> Children:
        """Its processes, those of its services too."""
        return self._children

    @property
    def healthy(self) -> bool:
        """Whether there is nothing for `start` to do."""
        parts = (API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
        return (
            self.state == "running"
            and all(self._children.running(part) for part in parts)
            and all(state == "running" for state in self._service_states.values())
        )

    async def start(self) -> None:
        """Starts what does not run: API server, then controllers, scheduler and services.

        Returns once /readyz is ok and the services have prepared the cluster.
        Raises PortTakenError, or RehearsalError with the last line of the log; the state is then `failed`.
        """
        self.state, self.message = "starting", ""
        try:
            await self._start()
        except Exception as error:
            self.state, self.message = "failed", str(error)
            raise
        self.state = "running"
        log.info("%s: up on %s", self.name, self.plan.url)

    async def _start(self) -> None:
        plan, children = self.plan, self._children
        write_control_plane_files(plan)
        write_kwok_files(plan)
        child = children.running(API_SERVER) or children.spawn(api_server_process(plan))
        await self._wait_ready(child)
        for process in (controller_manager_process(plan), scheduler_process(plan), kwok_process(plan)):
            if children.running(process.name) is None:
                children.spawn(process, restart=True)
        if not self._services:
            access = self._access()
            self._services = {type(service).__name__: service for service in self._factory(access)}
        for name, service in self._services.items():
            task = self._tasks.get(name)
            if task is not None and not task.done():
                continue
            if isinstance(service, PreparesCluster):
                await service.prepare()
            self._service_states[name] = "running"
            self._tasks[name] = asyncio.create_task(self._run_service(name, service), name=f"{plan.name}/{name}")

    async def stop(self) -> None:
        """Stops services, then their processes and the controllers, then the API server. Never raises."""
        self.state = "stopping"
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._children.stop(API_SERVER)

    def node_pools(self) -> NodePoolHost | None:
        """The service that answers for node pools, if there is one."""
        return next((service for service in self._services.values() if isinstance(service, NodePoolHost)), None)

    async def refused_pods(self) -> list[dict[str, object]]:
        """The pods that its services will never run."""
        return [{"cluster": self.name, **row} for runner in self._runners() for row in await runner.refused_pods()]

    def late_pods(self) -> list[str]:
        """The pods of its services that are not ready, each with why."""
        return [f"{self.name}: {pod}" for runner in self._runners() for pod in runner.late_pods()]

    def _runners(self) -> list[PodRunner]:
        return [service for service in self._services.values() if isinstance(service, PodRunner)]

    def description(self) -> dict[str, object]:
        """The cluster as the stand-in provider gets it."""
        parameters, address = self.parameters, self.plan.url.removeprefix("https://")
        return {
            "name": self.name,
            **asdict(parameters),
            "endpoint": address,
            "caCertificate": base64.b64encode(self.plan.ca_file.read_bytes()).decode(),
            # A name under gke.goog would lead off this machine; the address answers for it.
            "dnsEndpoint": address,
            "version": self._version,
            "selfLink": (
                f"https://container.googleapis.com/v1/projects/{parameters.project}"
                f"/locations/{parameters.location}/clusters/{self.name}"
            ),
        }

    def status(self) -> dict[str, object]:
        """The description, and how it is: state, processes, services."""
        return {
            **self.description(),
            "state": self.state,
            "message": self.message,
            "workdir": str(self.plan.folder),
            "processes": self._children.status(),
            "services": dict(self._service_states),
        }

    def _access(self) -> ClusterAccess:
        return ClusterAccess(
            name=self.name,
            project=self.parameters.project,
            location=self.parameters.location,
            autopilot=self.parameters.autopilot,
            server=self.plan.url,
            ca_file=self.plan.ca_file,
            token=self.plan.admin_token,
            workdir=self.plan.folder,
            engines=self.plan.programs,
            spawn=self._children.spawn,
        )

    async def _wait_ready(self, child: ChildProcess) -> None:
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(self.plan.ca_file)))
        headers = {"Authorization": f"Bearer {self.plan.admin_token}"}
        response_text = ""
        try:
            async with (
                aiohttp.ClientSession(connector=connector, headers=headers) as session,
                asyncio.timeout(READY_SECONDS),
            ):
                while child.returncode is None:
                    with contextlib.suppress(aiohttp.ClientError, OSError):
                        async with session.get(f"{self.plan.url}/readyz") as response:
                            if response.status == 200:
                                return
                            response_text = (await response.text())[-300:]
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            failing = ", ".join(re.findall(r"\[-\](\S+)", response_text)) or "no answer"
            raise RehearsalError(
                f"cluster {self.name}: its API server is not ready after {READY_SECONDS:.0f} s ({failing}); "
                f"see {child.spec.log}, and give the machine more processors or fewer clusters"
            ) from None
        end = log_tail(child.spec.log, 40)
        if _PORT_TAKEN in end:
            raise PortTakenError(
                f"cluster {self.name}: port {self.plan.port} was taken by another program while it started; try again"
            )
        assert child.returncode is not None
        last = end.splitlines()[-1] if end else "it said nothing"
        raise RehearsalError(
            f"cluster {self.name}: its API server {describe_end(child.returncode)} ({last}); see {child.spec.log}"
        )

    async def _run_service(self, name: str, service: ClusterService) -> None:
        try:
            await service.run()
        except asyncio.CancelledError:
            self._service_states[name] = "stopped"
            raise
        except Exception as error:
            log.exception("%s: service %s has failed", self.name, name)
            self._service_states[name] = f"failed: {type(error).__name__}: {error}"
        else:
            log.error("%s: service %s has returned, it should run as long as the cluster", self.name, name)
            self._service_states[name] = "failed: it returned"

    def _child_died(self, child: ChildProcess) -> None:
        if child.spec.name == API_SERVER and self.state == "running":
            assert child.returncode is not None
            self.state = "failed"
            self.message = f"its API server {describe_end(child.returncode)}; see {child.spec.log}"


def parse_parameters(body: Mapping[str, object]) -> ClusterParameters:
    """The parameters in the body of `PUT /clusters/{name}`.

    Raises WrongRequestError.
    """
    texts: dict[str, str] = {}
    for key in ("project", "location"):
        value = body.get(key)
        if not isinstance(value, str) or not (value or key == "project"):
            raise WrongRequestError(f"{key}: must be a text that is not empty, is {value!r}")
        texts[key] = value
    autopilot = body.get("autopilot", False)
    if not isinstance(autopilot, bool):
        raise WrongRequestError(f"autopilot: must be true or false, is {autopilot!r}")
    return ClusterParameters(texts["project"], texts["location"], autopilot)
