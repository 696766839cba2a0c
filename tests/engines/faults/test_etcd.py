"""An etcd that goes back to its backup under load: no job is lost or run elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from controller_lab import JOBS
from faulty_fleet import Fleet
from one_cluster import wait_until


def test_etcd_is_restored_from_a_backup(fleet: Fleet) -> None:
    """Every cluster goes back to an earlier state, with lower resource versions; the controller is not restarted.

    Kueue and Kubernetes' own controllers are: their watches, from versions that are to come, stay silent until these
    versions are reached. Source: https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/.
    """
    supervisor, paths = fleet.lab.supervisor.client, fleet.lab.supervisor.paths
    backup = paths.root / "etcd-backup"

    def restore() -> None:
        # Something has happened since the backup.
        wait_until(lambda: [job for worker in fleet.lab.workers.values() for job in worker.items(JOBS)])
        for name in fleet.lab.clusters:
            supervisor.kill(name, "kube-apiserver")
        supervisor.kill(None, "etcd")
        time.sleep(1.0)
        shutil.rmtree(paths.etcd / "data")
        shutil.copytree(backup, paths.etcd / "data")
        with ThreadPoolExecutor() as pool:
            list(pool.map(fleet.lab.mend_api_server, fleet.lab.clusters))
        watching = [each for each in supervisor.processes() if each["cluster"] and each["name"] != "kube-apiserver"]
        assert {each["cluster"] for each in watching} == set(fleet.lab.clusters)
        for each in watching:
            with suppress(ProcessLookupError):  # It may have ended with the API server.
                os.kill(each["pid"], signal.SIGKILL)

    # What ran when the backup was made would run again on any worker, before the witnesses see that it is gone.
    fleet.settle()
    shutil.rmtree(backup, ignore_errors=True)
    [etcd] = [each["pid"] for each in supervisor.processes() if each["name"] == "etcd"]
    os.kill(etcd, signal.SIGSTOP)
    try:
        # As after a power cut: complete up to the last write.
        shutil.copytree(paths.etcd / "data", backup)
    finally:
        os.kill(etcd, signal.SIGCONT)
    fleet.survive(restore, restarts=True, forgets=True)
