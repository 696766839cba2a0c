"""Faults of real control planes: nothing that was accepted is lost, and no process is left."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import psutil
import pytest

from bare_lab import BareCluster, BareLab, bare_lab, until
from kueue_rehearsal.processes.supervisor_client import start_supervisor

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareLab]:
    with bare_lab(tmp_path_factory.mktemp("faults")) as lab:
        yield lab


@pytest.fixture
def cluster(lab: BareLab) -> BareCluster:
    return lab.cluster("worker")


def remember(cluster: BareCluster, name: str) -> None:
    cluster.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})


def test_a_killed_api_server_comes_back_with_everything(lab: BareLab, cluster: BareCluster) -> None:
    remember(cluster, "before-api-server")
    lab.client.kill("worker", "kube-apiserver")
    until(lambda: lab.client.get_cluster("worker")["state"] == "failed", "the death to be reported")
    assert lab.cluster("worker") == cluster
    assert "before-api-server" in cluster.names(CONFIG_MAPS)


def test_a_killed_etcd_comes_back_with_everything(lab: BareLab, cluster: BareCluster) -> None:
    remember(cluster, "before-etcd")
    lab.client.kill(None, "etcd")
    until(lambda: lab.client.health()["status"] == "failed", "the death to be reported")
    assert lab.cluster("worker") == cluster
    assert "before-etcd" in cluster.names(CONFIG_MAPS)


def test_a_killed_controller_goes_on_with_its_work(lab: BareLab, cluster: BareCluster) -> None:
    lab.client.kill("worker", "kube-controller-manager")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "after-controllers"}}
    cluster.create("/api/v1/namespaces", namespace)
    accounts = "/api/v1/namespaces/after-controllers/serviceaccounts"
    until(lambda: "default" in cluster.names(accounts), "the account that the restarted controller makes")


def test_a_kept_lab_survives_its_supervisor_and_goes_when_it_is_told(lab: BareLab, cluster: BareCluster) -> None:
    """The last test: it is gone."""
    remember(cluster, "before-restart")
    lab.client.keep()
    lab.running.process.send_signal(signal.SIGTERM)
    assert lab.running.process.wait(60) == 0
    with start_supervisor(lab.running.paths, keep=True, services="none") as running:
        assert BareLab(running).cluster("worker") == cluster
        assert "before-restart" in cluster.names(CONFIG_MAPS)
        pids = [row["pid"] for row in running.client.processes()]
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert sorted(path.name for path in lab.running.paths.root.iterdir()) == ["supervisor.lock", "supervisor.log"]
