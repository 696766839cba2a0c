"""An etcd that goes back to its backup under load, with a fleet of its own: no job is lost or run elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from faulty_fleet import Fleet, Rounds


def test_etcd_is_restored_from_a_backup(fleet: Fleet, rounds: Rounds) -> None:
    """Every cluster goes back to an earlier state, with lower resource versions; the controller is not restarted.

    Kueue and Kubernetes' own controllers are: their watches, from versions that are to come, stay silent until these
    versions are reached. Source: https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/. They are
    when the backup is made too: after an outage they wait before they ask again, and in that time the scheduler gives
    pods to nodes that are gone.
    """
    supervisor, paths = fleet.lab.supervisor.client, fleet.lab.supervisor.paths
    backup = paths.root / "etcd-backup"

    def with_etcd_stopped(what: Callable[[], object]) -> None:
        for name in fleet.lab.clusters:
            supervisor.kill(name, "kube-apiserver")
        supervisor.kill(None, "etcd")
        time.sleep(1.0)
        what()
        for name in fleet.lab.clusters:
            fleet.lab.mend_api_server(name)
        watching = [each for each in supervisor.processes() if each["cluster"] and each["name"] != "kube-apiserver"]
        assert {each["cluster"] for each in watching} == set(fleet.lab.clusters)
        for each in watching:
            with suppress(ProcessLookupError):  # It may have ended with the API server.
                os.kill(each["pid"], signal.SIGKILL)

    def restore() -> None:
        shutil.rmtree(paths.etcd / "data")
        shutil.copytree(backup, paths.etcd / "data")

    def one_round() -> float:
        fleet.settle()
        shutil.rmtree(backup, ignore_errors=True)
        with_etcd_stopped(lambda: shutil.copytree(paths.etcd / "data", backup))
        before = set(fleet.bound)
        fleet.survive(lambda: None)
        fleet.settle()
        fleet.forgotten |= set(fleet.bound) - before
        return fleet.survive(lambda: with_etcd_stopped(restore), restarts=True, forgets=True)

    rounds(one_round)
