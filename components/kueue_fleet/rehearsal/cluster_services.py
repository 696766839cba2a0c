"""What runs beside every control plane of a rehearsal: the node agent, kwok with its nodes, the simulated DWS.

In: a cluster that is up (`ClusterAccess`). Out: its services, for the supervisor to run until the cluster goes.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from kueue_fleet.rehearsal.control_plane import ClusterAccess, ClusterService
from kueue_fleet.rehearsal.dws import QueuedProvisioning, install_crd
from kueue_fleet.rehearsal.dws_decisions import DwsSettings
from kueue_fleet.rehearsal.engines import ENGINES
from kueue_fleet.rehearsal.engines.catalogue import KUEUE_VISIBILITY_FLAG
from kueue_fleet.rehearsal.kube_api import KubeApi
from kueue_fleet.rehearsal.kwok import keep_running, kwok_process, write_kwok_files
from kueue_fleet.rehearsal.node_agent import NodeAgent, default_programs
from kueue_fleet.rehearsal.node_planning import Place
from kueue_fleet.rehearsal.nodes import ClusterView, NodeProvisioner, NodeSettings, install_tolerations

FIELD_MANAGER = "kueue-fleet-rehearsal"


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How the simulated cloud behaves."""

    nodes: NodeSettings = field(default_factory=NodeSettings)
    dws: DwsSettings = field(default_factory=DwsSettings)


def cluster_services(access: ClusterAccess, settings: SimulationSettings | None = None) -> tuple[ClusterService, ...]:
    """The services of a cluster. Each is a ClusterService, and prepares the cluster before it is reported to be up."""
    return (SystemNode(access), SimulatedCapacity(access, settings or SimulationSettings()))


def _api(access: ClusterAccess) -> KubeApi:
    return KubeApi(access.server, ca_file=access.ca_file, token=access.token, field_manager=FIELD_MANAGER)


def _keeps_visibility_below_itself(access: ClusterAccess) -> bool:
    """Whether Kueue was built here with the flag that moves its visibility certificate from /visibility."""
    engine = next(engine for engine in ENGINES if engine.name == "kueue")
    return access.engines.programs["kueue"].origin == "cache" and KUEUE_VISIBILITY_FLAG in engine.extra_flags


class SystemNode:
    """The node agent as a service of a cluster."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access

    async def prepare(self) -> None:
        """Returns once the API server sends the pods of Kueue and JobSet to `system-0`."""
        async with _api(self._access) as api:
            await self._agent(api).prepare()

    async def run(self) -> None:
        """Runs the node `system-0` until cancelled."""
        async with _api(self._access) as api:
            await self._agent(api).run()

    def _agent(self, api: KubeApi) -> NodeAgent:
        access = self._access
        programs = default_programs(
            kueue=access.engines.binary("kueue"),
            jobset=access.engines.binary("jobset"),
            kueue_visibility_directory=_keeps_visibility_below_itself(access),
        )
        return NodeAgent(api=api, folder=access.workdir / "system-0", spawn=access.spawn, programs=programs)


class SimulatedCapacity:
    """kwok, node auto-provisioning and DWS as one service: they share one picture of pods and nodes."""

    def __init__(self, access: ClusterAccess, settings: SimulationSettings) -> None:
        self._access = access
        self._settings = settings

    async def prepare(self) -> None:
        """Installs what GKE has in every cluster: the ProvisioningRequest CRD, and the tolerations its admission
        adds."""
        async with _api(self._access) as api:
            await install_tolerations(api)
            await install_crd(api, self._access)

    async def run(self) -> None:
        """Runs until cancelled. Nodes are made without being asked for only in Autopilot clusters."""
        access, settings = self._access, self._settings
        folder = access.workdir / "kwok"
        write_kwok_files(folder, server=access.server, ca_file=access.ca_file, token=access.token)
        place = Place.of(access.name, access.location)
        async with _api(access) as api:
            view = ClusterView(api)
            async with asyncio.TaskGroup() as group:
                kwok = kwok_process(access.engines.binary("kwok"), folder)
                group.create_task(keep_running(kwok, access.spawn, view.release_leases))
                group.create_task(view.run())
                group.create_task(QueuedProvisioning(view, place, settings.dws, time.time()).run())
                if access.autopilot:
                    group.create_task(NodeProvisioner(view, place, settings.nodes).run())
