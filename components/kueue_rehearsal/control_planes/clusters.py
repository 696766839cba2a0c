"""All clusters of one rehearsal and the etcd they share.

What a restarted supervisor must know (names, parameters, ports) is in `clusters.json`, written before anything is
started and after anything is gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from kueue_rehearsal.control_planes.certificates import (
    RehearsalAuthority,
    admin_token,
    service_account_key,
)
from kueue_rehearsal.control_planes.cluster import (
    Cluster,
    ClusterParameters,
    PortTakenError,
    ServiceFactory,
    check_cluster_name,
)
from kueue_rehearsal.control_planes.control_plane import SERVER_HOSTS, ControlPlanePlan
from kueue_rehearsal.control_planes.etcd import READY_SECONDS, EtcdClient, EtcdPlan, etcd_process
from kueue_rehearsal.control_planes.ports import HOST, Ports
from kueue_rehearsal.control_planes.token_reviews import TokenReviews
from kueue_rehearsal.engines import Engines
from kueue_rehearsal.paths import RehearsalError, RehearsalPaths
from kueue_rehearsal.private_files import write_private
from kueue_rehearsal.processes.child_process import log_tail
from kueue_rehearsal.processes.children import Children, describe_end

log = logging.getLogger(__name__)

_FORMAT = 2
_PORT_ATTEMPTS = 3
_ETCD_HOSTS = (HOST, "localhost")


class ConflictError(RehearsalError):
    """The cluster is there, but is another one."""


class UnknownClusterError(RehearsalError):
    """There is no cluster of that name."""


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """What is remembered of a cluster."""

    parameters: ClusterParameters
    port: int
    node_port: int
    """Of kwok, which answers for the kubelets of its nodes."""


@dataclass(frozen=True, slots=True)
class ClustersRecord:
    """What is remembered of a rehearsal."""

    etcd_client_port: int
    etcd_peer_port: int
    clusters: dict[str, ClusterRecord] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Writes the record whole or not at all."""
        write_private(path, json.dumps({"format": _FORMAT, **asdict(self)}, indent=1).encode())

    @classmethod
    def read(cls, path: Path) -> ClustersRecord | None:
        """The record; None when there is none.

        Raises RehearsalError when the file cannot be understood.
        """
        try:
            content: dict[str, Any] = json.loads(path.read_text())
            if content["format"] != _FORMAT:
                raise ValueError(f"format {content['format']}, this version knows {_FORMAT}")
            clusters = {
                name: ClusterRecord(
                    ClusterParameters(**entry["parameters"]), int(entry["port"]), int(entry["node_port"])
                )
                for name, entry in content["clusters"].items()
            }
            return cls(int(content["etcd_client_port"]), int(content["etcd_peer_port"]), clusters)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RehearsalError(
                f"{path}: the record of the rehearsal cannot be read ({error}); run `rehearse down` and start it again"
            ) from error


class ControlPlanes:
    """The clusters of one rehearsal."""

    def __init__(self, paths: RehearsalPaths, engines: Engines, services: ServiceFactory, now: datetime) -> None:
        self._paths = paths
        self._engines = engines
        self._services = services
        self.children = Children("rehearsal", self._child_died)
        """The processes that belong to no cluster: etcd."""
        self._locks: dict[str, asyncio.Lock] = {}
        self._etcd_lock = asyncio.Lock()
        self._resuming: dict[str, asyncio.Task[None]] = {}
        self._now = now
        self.clusters: dict[str, Cluster] = {}
        self.message = ""
        """What is wrong with the rehearsal itself; empty when nothing is."""

    async def open(self) -> None:
        """Starts etcd, and in the background the clusters that the record names.

        Raises RehearsalError.
        """
        self._authority = RehearsalAuthority.open(self._paths.pki, self._now)
        self._token = admin_token(self._paths.admin_token)
        self._token_reviews = TokenReviews(self._token)
        await self._token_reviews.start(self._paths.token_webhook)
        self._service_account_key = service_account_key(self._paths.pki)
        self._etcd_server = self._authority.server("etcd", _ETCD_HOSTS, self._now)
        self._etcd_client = self._authority.client("etcd-client", "kube-apiserver", (), self._now)
        self._api_server = self._authority.server("kube-apiserver", SERVER_HOSTS, self._now)
        self._front_proxy = self._authority.client("front-proxy", "front-proxy-client", (), self._now)
        recorded_clusters = ClustersRecord.read(self._paths.clusters_file)
        self._ports = (
            Ports(port for entry in recorded_clusters.clusters.values() for port in (entry.port, entry.node_port))
            if recorded_clusters
            else Ports()
        )
        self._record = recorded_clusters or ClustersRecord(self._ports.take(), self._ports.take())
        self._record.write(self._paths.clusters_file)
        await self._ensure_etcd()
        for name, entry in self._record.clusters.items():
            self.clusters[name] = self._cluster(name, entry)
            self._resuming[name] = asyncio.create_task(self._resume(name), name=f"resume {name}")

    async def close(self) -> None:
        """Stops everything: services, controllers, API servers, etcd. Nothing is removed."""
        for task in self._resuming.values():
            task.cancel()
        await asyncio.gather(*self._resuming.values(), return_exceptions=True)
        await asyncio.gather(*(cluster.stop() for cluster in self.clusters.values()))
        await self.children.stop()
        await self._token_reviews.stop()

    async def put_cluster(self, name: str, parameters: ClusterParameters) -> Cluster:
        """The cluster, once it is ready; made, or repaired, if need be.

        Raises ConflictError when a cluster of that name has other parameters, RehearsalError when it cannot be started;
        one that was not there before then leaves only its logs.
        """
        check_cluster_name(name)
        async with self._lock(name):
            cluster = self.clusters.get(name)
            if cluster is not None:
                if cluster.parameters != parameters:
                    raise ConflictError(_difference(name, cluster.parameters, parameters))
                etcd_was_down = await self._ensure_etcd()
                if etcd_was_down or not cluster.healthy:
                    log.info("cluster %s: mending it", name)
                    await cluster.start()
                return cluster
            return await self._create(name, parameters)

    async def delete_cluster(self, name: str) -> None:
        """Stops the cluster and removes all of it.

        Raises UnknownClusterError.
        """
        async with self._lock(name):
            cluster = self.cluster(name)
            await self._remove(cluster)
            shutil.rmtree(cluster.plan.folder, ignore_errors=True)

    def cluster(self, name: str) -> Cluster:
        """Raises UnknownClusterError."""
        try:
            return self.clusters[name]
        except KeyError:
            raise UnknownClusterError(f"cluster {name}: does not exist in this rehearsal") from None

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _create(self, name: str, parameters: ClusterParameters) -> Cluster:
        await self._ensure_etcd()
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            entry = ClusterRecord(parameters, self._ports.take(), self._ports.take())
            cluster = self._cluster(name, entry)
            self.clusters[name] = cluster
            self._remember(name, entry)
            try:
                await cluster.start()
            except PortTakenError:
                await self._remove(cluster)
                if attempt == _PORT_ATTEMPTS:
                    raise
            except BaseException:
                await self._remove(cluster)
                raise
            else:
                return cluster
        raise AssertionError("unreachable")

    async def _resume(self, name: str) -> None:
        cluster = self.clusters[name]
        async with self._lock(name):
            try:
                self._ports.claim(cluster.plan.port, f"the API server of cluster {name}")
                self._ports.claim(cluster.plan.node_port, f"the nodes of cluster {name}")
                await cluster.start()
            except RehearsalError as error:
                cluster.state, cluster.message = "failed", str(error)
                log.error("cluster %s cannot be resumed: %s", name, error)
            except Exception as error:
                cluster.state, cluster.message = "failed", f"{type(error).__name__}: {error}"
                log.exception("cluster %s cannot be resumed", name)

    async def _remove(self, cluster: Cluster) -> None:
        await cluster.stop()
        self._ports.release(cluster.plan.port)
        self._ports.release(cluster.plan.node_port)
        self.clusters.pop(cluster.name, None)
        try:
            await EtcdClient(self._etcd_plan()).delete_prefix(cluster.plan.etcd_prefix)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # Its keys would turn up in the next cluster of that name: the record stays, until the rehearsal goes.
            raise RehearsalError(
                f"cluster {cluster.name}: it is stopped, but its objects cannot be deleted from etcd ({error}); "
                "run `rehearse down`"
            ) from error
        self._remember(cluster.name, None)

    def _remember(self, name: str, entry: ClusterRecord | None) -> None:
        clusters = {key: value for key, value in self._record.clusters.items() if key != name}
        if entry is not None:
            clusters[name] = entry
        self._record = replace(self._record, clusters=clusters)
        self._record.write(self._paths.clusters_file)

    def _cluster(self, name: str, entry: ClusterRecord) -> Cluster:
        plan = ControlPlanePlan(
            name=name,
            folder=self._paths.cluster(name),
            programs=self._engines,
            port=entry.port,
            node_port=entry.node_port,
            etcd_endpoint=self._etcd_plan().endpoint,
            etcd_client=self._etcd_client,
            server=self._api_server,
            front_proxy=self._front_proxy,
            ca_file=self._authority.certificate_file,
            service_account_key=self._service_account_key,
            admin_token=self._token,
            token_webhook=self._paths.token_webhook,
        )
        version = f"{self._engines.programs['kube-apiserver'].version.removeprefix('v')}-gke.0"
        return Cluster(plan, entry.parameters, self._services, version)

    def _etcd_plan(self) -> EtcdPlan:
        return EtcdPlan(
            program=self._engines.binary("etcd"),
            folder=self._paths.etcd,
            client_port=self._record.etcd_client_port,
            peer_port=self._record.etcd_peer_port,
            server=self._etcd_server,
            client=self._etcd_client,
            ca_file=self._authority.certificate_file,
        )

    async def _ensure_etcd(self) -> bool:
        """Whether etcd had to be started."""
        async with self._etcd_lock:
            if self.children.running("etcd") is not None:
                return False
            plan = self._etcd_plan()
            for port in (plan.client_port, plan.peer_port):
                self._ports.claim(port, "etcd")
            child = self.children.spawn(etcd_process(plan))
            try:
                ready = await EtcdClient(plan).wait_ready(child)
            except TimeoutError:
                raise RehearsalError(f"etcd is not ready after {READY_SECONDS:.0f} s; see {child.spec.log}") from None
            if not ready:
                assert child.returncode is not None
                last = log_tail(child.spec.log, 1) or "it said nothing"
                raise RehearsalError(f"etcd {describe_end(child.returncode)} ({last}); see {child.spec.log}")
            self.message = ""
            return True

    def _child_died(self, child: object) -> None:
        self.message = "etcd has died: no cluster works; any `PUT /clusters/…` starts it again"


def _difference(name: str, have: ClusterParameters, want: ClusterParameters) -> str:
    mine, theirs = asdict(have), asdict(want)
    parts = [f"{key} is {mine[key]!r}, requested is {theirs[key]!r}" for key in mine if mine[key] != theirs[key]]
    return (
        f"cluster {name}: exists already with other parameters ({'; '.join(parts)}); "
        "delete it first, or give the other cluster another name"
    )
