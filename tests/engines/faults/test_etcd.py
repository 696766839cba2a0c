"""An etcd that goes back to its backup under load: no job is lost or run elsewhere."""

from __future__ import annotations

from controller_lab import JOBS
from faulty_fleet import Fleet
from kueue_rehearsal.faults import EtcdBackup
from one_cluster import wait_until


def test_etcd_is_restored_from_a_backup(fleet: Fleet) -> None:
    """Kueue and Kubernetes' own controllers are restarted; the fleet's controller, outside of the clusters, is not."""
    backup = EtcdBackup(fleet.lab.supervisor.client, fleet.lab.supervisor.paths)

    def restore() -> None:
        # Something has happened since the backup.
        wait_until(lambda: [job for worker in fleet.lab.workers.values() for job in worker.items(JOBS)])
        backup.restore()

    # What ran when the backup was made would run again on any worker, before the witnesses see that it is gone.
    fleet.settle()
    backup.make()
    fleet.survive(restore, restarts=True, forgets=True)
