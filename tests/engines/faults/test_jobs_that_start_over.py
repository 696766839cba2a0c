"""Jobs that counted pods and start over: no counter of a Job goes back, and Kueue copies them all."""

from __future__ import annotations

from controller_lab import JOBS
from faulty_fleet import EU, US, Fleet
from one_cluster import KUEUE, wait_until

MERGE = "application/merge-patch+json"


def test_jobs_that_counted_pods_start_over(fleet: Fleet) -> None:
    """One a failed pod, the other one a succeeded pod."""
    failed, succeeded = f"failed-{fleet.rounds}", f"succeeded-{fleet.rounds}"

    def counts(name: str, counter: str) -> int:
        return int(fleet.lab.manager.get(f"{JOBS}/{name}").get("status", {}).get(counter) or 0)

    def stop_queues(policy: str) -> None:
        for worker in fleet.lab.workers.values():
            worker.request("PATCH", f"{KUEUE}/clusterqueues/gpu", {"spec": {"stopPolicy": policy}}, MERGE)

    def strike() -> None:
        fleet.submit(failed, place=US, seconds=15)
        fleet.submit(succeeded, place=EU, completions=4, parallelism=1)
        wait_until(lambda: counts(failed, "active"))
        fleet.lab.workers[US].delete(f"/api/v1/namespaces/team/pods?labelSelector=job-name%3D{failed}")
        wait_until(lambda: counts(failed, "failed") and counts(succeeded, "succeeded"))
        stop_queues("HoldAndDrain")
        for worker in (EU, US):
            fleet.wait_until_drained(worker)
        stop_queues("None")
        fleet.restarted |= fleet.bound.keys()

    fleet.survive(strike, restarts=True)
