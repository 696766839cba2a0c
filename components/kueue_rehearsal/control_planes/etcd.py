"""The one etcd of a rehearsal: a key prefix for each cluster. Its data need not survive the machine."""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from kueue_rehearsal.control_planes.certificates import KeyPair
from kueue_rehearsal.control_planes.ports import HOST
from kueue_rehearsal.processes.child_process import ChildProcess, ProcessSpec

READY_SECONDS = 60.0
"""Longest that etcd takes to be ready."""
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdPlan:
    """Everything that decides how etcd runs."""

    program: Path
    folder: Path
    client_port: int
    peer_port: int
    server: KeyPair
    client: KeyPair
    ca_file: Path

    @property
    def endpoint(self) -> str:
        """For clients, who need the client certificate."""
        return f"https://{HOST}:{self.client_port}"


def etcd_process(plan: EtcdPlan) -> ProcessSpec:
    """etcd as a process: loopback only, client certificates required on both ports.

    Nothing is synced to disk: this etcd survives a kill, but not a power failure, and is much faster for it.
    """
    peer = f"https://{HOST}:{plan.peer_port}"
    tls = ("cert-file", plan.server.certificate), ("key-file", plan.server.key), ("trusted-ca-file", plan.ca_file)
    return ProcessSpec(
        name="etcd",
        argv=(
            str(plan.program),
            "--name=rehearsal",
            f"--data-dir={plan.folder / 'data'}",
            f"--listen-client-urls={plan.endpoint}",
            f"--advertise-client-urls={plan.endpoint}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=rehearsal={peer}",
            "--client-cert-auth",
            "--peer-client-cert-auth",
            *(f"--{name}={value}" for name, value in tls),
            *(f"--peer-{name}={value}" for name, value in tls),
            "--unsafe-no-fsync",
            "--snapshot-count=10000",
            "--max-request-bytes=3145728",
            "--log-level=warn",
        ),
        env={"GOMAXPROCS": "2", "GOGC": "50"},
        log=plan.folder / "etcd.log",
        stop_seconds=5,
    )


class EtcdClient:
    """The two things a rehearsal asks of etcd: is it ready, and forget a cluster."""

    def __init__(self, plan: EtcdPlan) -> None:
        self._endpoint = plan.endpoint
        self._ssl = ssl.create_default_context(cafile=str(plan.ca_file))
        self._ssl.load_cert_chain(plan.client.certificate, plan.client.key)

    async def wait_ready(self, child: ChildProcess) -> bool:
        """True when etcd answers; False when its process has ended.

        Raises TimeoutError after 60 s.
        """
        async with self._session() as session, asyncio.timeout(READY_SECONDS):
            while child.returncode is None:
                try:
                    async with session.get(f"{self._endpoint}/readyz") as response:
                        if response.status == 200:
                            return True
                except (aiohttp.ClientError, OSError):
                    pass
                await asyncio.sleep(_POLL_SECONDS)
        return False

    async def delete_prefix(self, prefix: str) -> None:
        """Deletes every key that begins so.

        Raises aiohttp.ClientError when etcd does not answer.
        """
        begin = prefix.encode()
        end = begin[:-1] + bytes((begin[-1] + 1,))
        body = {"key": base64.b64encode(begin).decode(), "range_end": base64.b64encode(end).decode()}
        async with (
            self._session() as session,
            session.post(f"{self._endpoint}/v3/kv/deleterange", json=body) as response,
        ):
            response.raise_for_status()

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._ssl), timeout=aiohttp.ClientTimeout(total=30)
        )
