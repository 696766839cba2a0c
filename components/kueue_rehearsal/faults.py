"""Faults of control planes that run here, made from outside: those of `rehearse drill`, and of the tests."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from kueue_rehearsal.paths import RehearsalError, RehearsalPaths
from kueue_rehearsal.processes.supervisor_client import SupervisorClient

_LOOK_SECONDS: Final = 0.2
_PATIENCE_SECONDS: Final = 120.0
"""Within which processes end, and come again, on a busy machine."""
_API_SERVER: Final = "kube-apiserver"


def lose_api_server(client: SupervisorClient, cluster: str) -> None:
    """End the API server of a cluster as a crash would. What runs there goes on.

    Raises:
        RehearsalError: it does not run, or does not end.
    """
    client.kill(cluster, _API_SERVER)
    wait_for(lambda: not _answers(client.get_cluster(cluster)), f"{cluster}: its API server has not ended")


def repair_api_server(client: SupervisorClient, cluster: str) -> None:
    """Start it again, at the same address.

    Raises:
        RehearsalError: it does not start.
    """
    cluster_there = client.get_cluster(cluster)
    place = {key: cluster_there[key] for key in ("project", "location", "autopilot")}

    def is_there() -> bool:
        # Asked again: the supervisor may not have noticed yet that the process has ended.
        return _answers(client.put_cluster(cluster, **place))

    wait_for(is_there, f"{cluster}: its API server has not come again")


def _answers(cluster: Mapping[str, Any]) -> bool:
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["caCertificate"]).decode())
    try:
        urllib.request.urlopen(f"https://{cluster['endpoint']}/version", context=context, timeout=5).close()
    except urllib.error.HTTPError as refusal:
        refusal.close()  # It wants to know who asks.
    except OSError:
        return False
    return True


def wait_for(
    has_happened: Callable[[], bool], otherwise: str, seconds: float = _PATIENCE_SECONDS, fix: str = "see the logs"
) -> None:
    """Look again until something has happened.

    Raises:
        RehearsalError: it has not in so many seconds; the text is `otherwise`, and what to do.
    """
    deadline = time.monotonic() + seconds
    while not has_happened():
        if time.monotonic() > deadline:
            raise RehearsalError(f"{otherwise} in {seconds:.0f} s; {fix}")
        time.sleep(_LOOK_SECONDS)


def kill_processes(client: SupervisorClient, is_meant: Callable[[Mapping[str, Any]], bool]) -> set[str]:
    """Kill those of the clusters' processes that are meant, by their rows in `SupervisorClient.processes`.

    They are started again as a kubelet would. Returns the clusters that had any.
    """
    meant = [process for process in client.processes() if process["cluster"] and is_meant(process)]
    for item in meant:
        with suppress(ProcessLookupError):  # It may have ended since.
            os.kill(item["pid"], signal.SIGKILL)
    return {process["cluster"] for process in meant}


class EtcdBackup:
    """A backup of etcd, which all clusters share, to go back to."""

    def __init__(self, client: SupervisorClient, paths: RehearsalPaths) -> None:
        self._client = client
        self._data, self._backup = paths.etcd / "data", paths.root / "etcd-backup"

    def make(self) -> None:
        """Copy it as it is after a power cut: complete up to the last write. An earlier backup goes."""
        shutil.rmtree(self._backup, ignore_errors=True)
        [etcd] = [process["pid"] for process in self._client.processes() if process["name"] == "etcd"]
        os.kill(etcd, signal.SIGSTOP)
        try:
            shutil.copytree(self._data, self._backup)
        finally:
            os.kill(etcd, signal.SIGCONT)

    def restore(self) -> None:
        """Every cluster goes back to the backup, with lower resource versions, and what watches it is restarted.

        Watches from versions that are to come would stay silent until these versions are reached.
        Source: https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/.

        Raises:
            RehearsalError: a cluster does not come again, or has nothing that watched it.
        """
        clusters = [cluster["name"] for cluster in self._client.clusters()]
        for name in clusters:
            self._client.kill(name, _API_SERVER)
        self._client.kill(None, "etcd")
        time.sleep(1.0)
        shutil.rmtree(self._data)
        shutil.copytree(self._backup, self._data)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: repair_api_server(self._client, name), clusters))
        watched_processes = kill_processes(self._client, lambda each: each["name"] != _API_SERVER)
        if rest := set(clusters) - watched_processes:
            raise RehearsalError(f"{', '.join(sorted(rest))}: nothing there was restarted with etcd; see the logs")

    def remove(self) -> None:
        """Remove the backup."""
        shutil.rmtree(self._backup, ignore_errors=True)
