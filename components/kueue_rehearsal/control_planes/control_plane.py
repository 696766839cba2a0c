"""One cluster's control plane: its processes as data, and what the services of a running cluster may use.

`ProcessSpec`s, to be started in this order: kube-apiserver; then, once it is ready, kube-controller-manager and
kube-scheduler. `clusters` starts and stops them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from kueue_fleet.kube.new_kubeconfig import render_kubeconfig
from kueue_rehearsal.cloud.node_pool_rules import Reservation
from kueue_rehearsal.control_planes.certificates import KeyPair
from kueue_rehearsal.control_planes.ports import HOST
from kueue_rehearsal.engines import Engines
from kueue_rehearsal.private_files import write_private
from kueue_rehearsal.processes.child_process import ProcessSpec, Spawn


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
    """Work that runs beside a cluster for as long as it exists: made with its ClusterAccess, run as one asyncio task.

    When the cluster goes, the task is cancelled; processes it has spawned are stopped by the supervisor after that.
    A `run` that raises, or returns, is logged as an error and shown in `GET /clusters`. The supervisor has one thread:
    nothing may block the event loop, and processes are started with `ClusterAccess.spawn` only.
    """

    async def run(self) -> None:
        """Works until cancelled."""
        ...


@runtime_checkable
class PreparesCluster(Protocol):
    """A service with something that must be there before the cluster is reported to be up, such as a CRD."""

    async def prepare(self) -> None:
        """Called once, before `run`; the cluster is not up when it raises."""
        ...


@runtime_checkable
class PodRunner(Protocol):
    """The service that runs pods."""

    async def refused_pods(self) -> list[dict[str, object]]:
        """The pods that it will never run: kind, namespace, name, labels, message, since, and the Helm release."""
        ...

    def late_pods(self) -> list[str]:
        """The pods that are not ready, each with why, in words."""
        ...


@runtime_checkable
class NodePoolHost(Protocol):
    """The service that answers for a cluster's nodes."""

    async def put_inputs(self, body: Mapping[str, object]) -> None:
        """Takes what the cluster is asked to be."""
        ...

    def inputs(self) -> Mapping[str, object]:
        """What it was last asked to be, `cluster`, and its pools, `nodePools`, by name."""
        ...

    async def put_node_pool(
        self, pool: str, body: Mapping[str, object], reservations: Sequence[Reservation]
    ) -> dict[str, object]:
        """Makes the pool, or changes it to `body`; returns what the provider may show."""
        ...

    async def delete_node_pool(self, pool: str) -> None:
        """Removes the pool and its nodes; nothing happens when there is none."""
        ...

    async def reclaim_spot(self, pool: str | None, count: int) -> list[str]:
        """Takes up to `count` Spot nodes away, of one pool if it is given; returns their names."""
        ...


API_SERVER = "kube-apiserver"
"""Name of the process."""
CONTROLLER_MANAGER = "kube-controller-manager"
"""Name of the process."""
SCHEDULER = "kube-scheduler"
"""Name of the process."""

# The hosts a GKE control plane is addressed by, and those of this machine.
SERVER_HOSTS = (
    HOST,
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.96.0.1",
)
"""Names and addresses in the API server's certificate."""
SERVICE_RANGE = "10.96.0.0/16"
"""Addresses of Services; nothing answers there."""
# What batch workloads, Deployments, a lost node and claims need; nothing is mounted. No certificates, no
# cloud, and no EndpointSlices, which may not hold the loopback addresses of pods here.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
    "validatingadmissionpolicy-status-controller",
)
"""Which of kube-controller-manager's controllers run."""
# Four clusters share two cores: more threads than cores gain nothing.
_GO_RUNTIME = {"GOMAXPROCS": "2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlanePlan:
    """Everything that decides how a control plane runs."""

    name: str
    folder: Path
    programs: Engines
    port: int
    node_port: int
    """Where the simulated nodes answer for their kubelets."""
    etcd_endpoint: str
    etcd_client: KeyPair
    server: KeyPair
    front_proxy: KeyPair
    ca_file: Path
    service_account_key: Path
    admin_token: str = field(repr=False)
    token_webhook: Path | None = None
    """Kubeconfig of what knows tokens of Google accounts; None: no such token is taken."""

    @property
    def url(self) -> str:
        """The API server's."""
        return f"https://{HOST}:{self.port}"

    @property
    def etcd_prefix(self) -> str:
        """The keys of this cluster begin so; it ends with a slash, so no other cluster's do."""
        return f"/clusters/{self.name}/"

    @property
    def admin_kubeconfig(self) -> Path:
        """For the cluster's own controllers."""
        return self.folder / "admin.kubeconfig"

    def process(self, name: str, *flags: str) -> ProcessSpec:
        """The program `name` with these flags; it logs into the cluster's folder, and has 2 s to stop."""
        return ProcessSpec(
            name=name,
            argv=(str(self.programs.binary(name)), *flags),
            env=_GO_RUNTIME | {"HOME": str(self.folder)},
            log=self.folder / f"{name}.log",
            stop_seconds=2,
        )


def write_control_plane_files(plan: ControlPlanePlan) -> None:
    """The files the programs read: token list, kubeconfig, scheduler configuration; all mode 0600."""
    write_private(plan.folder / "tokens.csv", f'{plan.admin_token},admin,admin,"system:masters"\n'.encode())
    server = {"server": plan.url, "certificate-authority": str(plan.ca_file)}
    admin = render_kubeconfig(plan.name, server, {"token": plan.admin_token}, user_name="admin")
    scheduler = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 2,
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(plan.admin_kubeconfig), "qps": 100, "burst": 200},
        "enableProfiling": False,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 5,
    }
    write_private(plan.admin_kubeconfig, json.dumps(admin, indent=1).encode())
    write_private(plan.folder / "scheduler.json", json.dumps(scheduler, indent=1).encode())


def _webhook_flags(plan: ControlPlanePlan) -> tuple[str, ...]:
    if plan.token_webhook is None:
        return ()
    flags = {"config-file": plan.token_webhook, "version": "v1", "cache-ttl": "10s"}
    return tuple(f"--authentication-token-webhook-{name}={value}" for name, value in flags.items())


def api_server_process(plan: ControlPlanePlan) -> ProcessSpec:
    """kube-apiserver: loopback only, RBAC, the rehearsal's admin token, service-account tokens signed by its key."""
    issuer = "https://kubernetes.default.svc.cluster.local"
    return plan.process(
        API_SERVER,
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={plan.port}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--tls-cert-file={plan.server.certificate}",
        f"--tls-private-key-file={plan.server.key}",
        f"--client-ca-file={plan.ca_file}",
        f"--etcd-servers={plan.etcd_endpoint}",
        f"--etcd-prefix={plan.etcd_prefix.rstrip('/')}",
        f"--etcd-cafile={plan.ca_file}",
        f"--etcd-certfile={plan.etcd_client.certificate}",
        f"--etcd-keyfile={plan.etcd_client.key}",
        f"--token-auth-file={plan.folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        # As in GKE, where Pod Security Standards say who may run privileged pods.
        "--allow-privileged=true",
        "--anonymous-auth=false",
        f"--service-account-issuer={issuer}",
        f"--service-account-key-file={plan.service_account_key}",
        f"--service-account-signing-key-file={plan.service_account_key}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        # Aggregated APIs, such as Kueue's visibility, are called with this certificate.
        f"--requestheader-client-ca-file={plan.ca_file}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={plan.front_proxy.certificate}",
        f"--proxy-client-key-file={plan.front_proxy.key}",
        # A loopback address is not allowed in the endpoints of the Service `kubernetes`.
        "--endpoint-reconciler-type=none",
        "--enable-priority-and-fairness=false",
        "--profiling=false",
        *_webhook_flags(plan),
        "--shutdown-delay-duration=0s",
    )


def controller_manager_process(plan: ControlPlanePlan) -> ProcessSpec:
    """kube-controller-manager with the controllers of `CONTROLLERS`; it serves no port."""
    return plan.process(
        CONTROLLER_MANAGER,
        f"--kubeconfig={plan.admin_kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        # Each controller by its own account, as in GKE: policies tell controllers from people by it.
        "--use-service-account-credentials=true",
        "--secure-port=0",
        "--leader-elect=false",
        "--profiling=false",
        f"--service-account-private-key-file={plan.service_account_key}",
        f"--root-ca-file={plan.ca_file}",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
        # Simulated nodes send no heartbeats, and a laptop that slept has lost no node.
        "--node-monitor-grace-period=8760h",
        "--concurrent-gc-syncs=4",
        "--concurrent-namespace-syncs=4",
    )


def scheduler_process(plan: ControlPlanePlan) -> ProcessSpec:
    """kube-scheduler; it serves no port."""
    return plan.process(SCHEDULER, f"--config={plan.folder / 'scheduler.json'}", "--secure-port=0")
