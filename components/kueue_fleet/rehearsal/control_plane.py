"""One cluster's control plane: its processes as data, and what the services of a running cluster may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kueue_fleet.rehearsal.engines import Engines
from kueue_fleet.rehearsal.processes import Spawn


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """A cluster that is up, for the services that run beside its control plane."""

    name: str
    """The GKE cluster's name; unique in the rehearsal."""
    project: str
    location: str
    """The region, or the zone."""
    autopilot: bool
    server: str
    """`https://127.0.0.1:<port>`"""
    ca_file: Path
    """PEM of the certificate authority that signed the server's certificate."""
    token: str = field(repr=False)
    """Bearer token of a member of system:masters."""
    workdir: Path
    """The cluster's own folder in the state folder; it exists, and is removed with the cluster."""
    engines: Engines
    """`engines.binary("kueue")`, `engines.asset("provisioning-request-crd")`"""
    spawn: Spawn
    """Starts a process that the supervisor owns. Call it in the event loop, never from another thread."""


class ClusterService(Protocol):
    """Work that goes on beside a cluster as long as it lives: made with its ClusterAccess, run as one asyncio task.

    When the cluster goes, the task is cancelled; processes it has spawned are stopped by the supervisor after that.
    A `run` that raises, or returns, is logged as an error and shown in `GET /clusters`. The supervisor has one thread:
    nothing may block the event loop, and processes are started with `ClusterAccess.spawn` only.
    """

    async def run(self) -> None:
        """Works until cancelled."""
        ...


class PreparesCluster(Protocol):
    """A service with something that must be there before the cluster is reported to be up, such as a CRD."""

    async def prepare(self) -> None:
        """Called once, before `run`; the cluster is not up when it raises."""
        ...


class NodePoolHost(Protocol):
    """The service that answers for node pools (`PUT` and `DELETE /clusters/{name}/nodePools/{pool}`)."""

    async def put_node_pool(self, pool: str, body: dict[str, object]) -> dict[str, object]:
        """Makes the pool, or changes it to `body`; returns what the provider may show."""
        ...

    async def delete_node_pool(self, pool: str) -> None:
        """Removes the pool and its nodes; nothing happens when there is none."""
        ...
