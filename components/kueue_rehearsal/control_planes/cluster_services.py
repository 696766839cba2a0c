"""What runs beside every control plane of a rehearsal: the node agent, the simulated nodes, the simulated DWS."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.kube.answers import ApiError
from kueue_rehearsal.cloud.cluster_view import ClusterView
from kueue_rehearsal.cloud.dws import QueuedProvisioning, install_crd
from kueue_rehearsal.cloud.gke_crds import install_definition, install_gke_definitions
from kueue_rehearsal.cloud.gke_tolerations import install_tolerations
from kueue_rehearsal.cloud.job_crds import serve_job_kinds
from kueue_rehearsal.cloud.node_pool_rules import Reservation, refusals, reservation_end
from kueue_rehearsal.cloud.node_pool_store import NodePoolStore
from kueue_rehearsal.cloud.node_templates import Place
from kueue_rehearsal.cloud.nodes import NodeProvisioner
from kueue_rehearsal.cloud.pod_monitor_crd import POD_MONITORS
from kueue_rehearsal.cloud.region_stock import RegionStock
from kueue_rehearsal.cloud.warden import install_warden
from kueue_rehearsal.control_planes.cluster import WrongRequestError
from kueue_rehearsal.control_planes.control_plane import ClusterAccess, ClusterService
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi
from kueue_rehearsal.engines import ENGINES, EngineCache
from kueue_rehearsal.engines.catalogue import KUEUE_VISIBILITY_FLAG
from kueue_rehearsal.engines.discovery import program_place
from kueue_rehearsal.node_agent.agent import NodeAgent
from kueue_rehearsal.node_agent.programs import default_programs
from kueue_rehearsal.paths import RehearsalError, RehearsalPaths, engines_dir
from kueue_rehearsal.simulation_settings import SettingsFile

FIELD_MANAGER = "kueue-fleet-rehearsal"
"""Field manager of what the rehearsal itself writes."""

log = logging.getLogger(__name__)

_POOL_SECONDS = 60.0
_POLL_SECONDS = 0.1


def cluster_services(
    access: ClusterAccess, settings: Callable[[], RehearsalSection] | None = None, *, warden: bool = True
) -> tuple[ClusterService, ...]:
    """The services of a cluster. Each is a ClusterService, and prepares the cluster before it is reported to be up.

    `settings` is asked again and again; default: those of the rehearsal's state folder. `warden`: an Autopilot cluster
    refuses workloads as GKE does.
    """
    file = SettingsFile(_paths(access).simulation)
    return (SystemNode(access), SimulatedCapacity(access, settings or file.current, warden=warden))


def _api(access: ClusterAccess) -> ControlPlaneApi:
    return ControlPlaneApi(access.server, ca_file=access.ca_file, token=access.token, field_manager=FIELD_MANAGER)


def _paths(access: ClusterAccess) -> RehearsalPaths:
    return RehearsalPaths(access.workdir.parent.parent)


def _keeps_visibility_below_itself(access: ClusterAccess) -> bool:
    """Whether Kueue was built here with the flag that moves its visibility certificate from /visibility."""
    engine = next(engine for engine in ENGINES if engine.name == "kueue")
    return access.engines.programs["kueue"].origin == "cache" and KUEUE_VISIBILITY_FLAG in engine.extra_flags


class SystemNode:
    """The node agent as a service of a cluster."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._running: NodeAgent | None = None

    async def prepare(self) -> None:
        """Returns once the API server sends the pods of Kueue and JobSet to `system-0`."""
        async with _api(self._access) as api:
            await self._agent(api).prepare()

    async def run(self) -> None:
        """Runs the node `system-0` until cancelled."""
        async with _api(self._access) as api:
            self._running = self._agent(api)
            try:
                await self._running.run()
            finally:
                self._running = None

    async def refused_pods(self) -> list[dict[str, object]]:
        """The pods that cannot run here, each with what it belongs to and why."""
        try:
            return [] if self._running is None else await self._running.refused_pods()
        except ApiError as error:
            log.info("%s: cannot list its refused pods: %s", self._access.name, error)
            return []

    def late_pods(self) -> list[str]:
        """The pods that are not ready, each with why."""
        return [] if self._running is None else self._running.late_pods()

    def _agent(self, api: ControlPlaneApi) -> NodeAgent:
        access = self._access
        programs = default_programs(
            lambda name: program_place(access.engines, EngineCache(engines_dir()), name),
            _paths(access),
            kueue_visibility_directory=_keeps_visibility_below_itself(access),
        )
        return NodeAgent(api=api, folder=access.workdir / "system-0", spawn=access.spawn, programs=programs)


class SimulatedCapacity:
    """Node pools, node auto-provisioning and DWS as one service: they share one picture of pods and nodes."""

    def __init__(self, access: ClusterAccess, settings: Callable[[], RehearsalSection], *, warden: bool) -> None:
        self._access = access
        self._warden = warden and access.autopilot
        self._settings = settings
        place = Place.of(access.name, access.location)
        self._store = NodePoolStore(access.workdir / "node-pools.json", place, autopilot=access.autopilot)
        self._provisioner: NodeProvisioner | None = None

    async def prepare(self) -> None:
        """Installs the CRD of PodMonitor, and what GKE has in every cluster: the CRDs of ProvisioningRequest and of
        managed Prometheus, and the tolerations its admission adds; on Autopilot, what its Warden refuses."""
        async with _api(self._access) as api:
            await install_definition(api, POD_MONITORS)
            if not self._access.project:
                return
            await install_tolerations(api)
            await install_gke_definitions(api)
            await install_crd(api, self._access)
            if self._warden:
                await install_warden(api)

    async def run(self) -> None:
        """Runs until cancelled."""
        access, settings = self._access, self._settings
        async with _api(access) as api:
            if not access.project:
                await serve_job_kinds(api, _paths(access).frameworks_elsewhere, access.name)
                return
            view = ClusterView(api)
            stock = RegionStock(self._store.place.region, settings, time.time())
            self._provisioner = NodeProvisioner(view, self._store, stock, settings)
            async with asyncio.TaskGroup() as group:
                group.create_task(view.run())
                group.create_task(QueuedProvisioning(view, self._store, stock, settings).run())
                group.create_task(self._provisioner.run())
                group.create_task(serve_job_kinds(api, _paths(access).frameworks_elsewhere, access.name))

    async def put_inputs(self, body: Mapping[str, object]) -> None:
        """Keeps what the cluster is asked to be."""
        self._store.put_inputs(body)
        self._running().wake()

    def inputs(self) -> Mapping[str, object]:
        """What the cluster and its pools were last asked to be."""
        return self._store.inputs

    async def put_node_pool(
        self, pool: str, body: Mapping[str, object], reservations: Sequence[Reservation]
    ) -> dict[str, object]:
        """Makes the pool, or changes it; returns once the nodes that it always has are ready, and none of another kind
        is left.

        Raises WrongRequestError for what GKE refuses.
        """
        place = self._store.place
        of_others = self._settings().reservations
        known_reservations = [
            *reservations,
            *(Reservation(one.name, one.zone, one.machine_type, one.count) for one in of_others),
        ]
        reasons = refusals(pool, body, place.region, place.zones, known_reservations)
        if reasons:
            raise WrongRequestError(f"node pool {pool} of {place.cluster}: {'; '.join(reasons)}")
        is_new = pool not in self._store.pools
        pool_there = self._store.put(pool, body, reservation_end(body, known_reservations))
        if is_new:
            await self._running().begin(pool_there)
        await self._settle(pool)
        return {"name": pool, "nodes": pool_there.view.min_nodes}

    async def delete_node_pool(self, pool: str) -> None:
        """Removes the pool and its nodes."""
        self._store.remove(pool)
        await self._settle(pool)

    async def reclaim_spot(self, pool: str | None, count: int) -> list[str]:
        """Takes up to `count` Spot nodes away; returns their names."""
        return await self._running().reclaim(pool, count)

    def _running(self) -> NodeProvisioner:
        if self._provisioner is None:
            raise RehearsalError(f"cluster {self._access.name}: its nodes are not simulated yet; try again")
        return self._provisioner

    async def _settle(self, pool: str) -> None:
        provisioner = self._running()
        try:
            async with asyncio.timeout(_POOL_SECONDS):
                provisioner.wake()
                while not provisioner.settled(pool):
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise RehearsalError(
                f"node pool {pool} of {self._access.name}: has not reached the requested state after "
                f"{_POOL_SECONDS:.0f} s; see the supervisor's log"
            ) from None
