"""kwok for one cluster: its process as data. It plays the kubelets of the simulated nodes, and touches no other node.

The life of pods and nodes is in `kwok_stages.yaml`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path

import yaml

from kueue_fleet.kube.kubeconfig import render_kubeconfig
from kueue_fleet.rehearsal.cloud.node_templates import SIMULATED
from kueue_fleet.rehearsal.private_files import make_private, write_private
from kueue_fleet.rehearsal.processes.child_process import ChildProcess, ProcessSpec, Spawn

EXIT_CODE_ANNOTATION = "kueue-fleet.dev/exit-code"
"""On a pod: with which code it ends; default 0."""

_RESTART_SECONDS = 2.0
_HEALTHY_SECONDS = 60.0
_RESTART_LAST_SECONDS = 30.0

log = logging.getLogger(__name__)


def stages_path() -> Path:
    """The stages that kwok runs."""
    return Path(__file__).with_name("kwok_stages.yaml")


def kwok_process(binary: Path, folder: Path) -> ProcessSpec:
    """kwok with its configuration in `folder`; serves nothing, and listens nowhere."""
    return ProcessSpec(
        name="kwok",
        argv=(
            str(binary),
            f"--kubeconfig={folder / 'kubeconfig'}",
            f"--config={folder / 'kwok.yaml'}",
            f"--manage-nodes-with-label-selector={SIMULATED}=true",
            # With leases, kwok never runs a pod that is bound before its own watch shows it the node's lease:
            # sigs.k8s.io/kwok@v0.8.0 pkg/kwok/controllers/pod_controller.go, watchResources, "read only".
            "--node-lease-duration-seconds=0",
            "--v=WARN",
        ),
        env={"HOME": str(folder)},
        log=folder / "kwok.log",
    )


def write_kwok_files(folder: Path, *, server: str, ca_file: Path, token: str) -> None:
    """Writes kwok's stages and its kubeconfig, 0600, below `folder`."""
    make_private(folder)
    write_private(folder / "kwok.yaml", stages_path().read_bytes())
    cluster = {"server": server, "certificate-authority": str(ca_file.absolute())}
    document = render_kubeconfig("admin", cluster, {"token": token})
    write_private(folder / "kubeconfig", yaml.safe_dump(document).encode())


async def keep_running(spec: ProcessSpec, spawn: Spawn) -> None:
    """Runs the process until cancelled, and starts it again when it ends by itself.

    The delay grows from 2 s to 30 s, and starts over after a healthy minute.
    """
    delay = _RESTART_SECONDS
    loop = asyncio.get_running_loop()
    while True:
        started = loop.time()
        child = spawn(spec)
        try:
            code = await child.wait()
        except asyncio.CancelledError:
            await _stop(child)
            raise
        if loop.time() - started > _HEALTHY_SECONDS:
            delay = _RESTART_SECONDS
        log.error("%s ended with code %d; starting it again in %g s, see %s", spec.name, code, delay, spec.log)
        await asyncio.sleep(delay)
        delay = min(delay * 2, _RESTART_LAST_SECONDS)


async def _stop(child: ChildProcess) -> None:
    with contextlib.suppress(ProcessLookupError):
        await child.stop()
