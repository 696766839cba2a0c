"""Objects of running jobs are deleted, on the manager and on workers, as anybody with the right to may do it.

Each job ends all the same, once and where it may be; but for what was deleted by its user, which leaves nothing behind.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from controller_faults import no_worker_recorded
from controller_lab import JOBS, MANAGER, apply_object
from faulty_fleet import EU, REGIONS, Fleet
from kueue_fleet.dispatch.rescue import LOST_JOB
from one_cluster import KUEUE, Json, OneCluster, condition, wait_until

QUEUE = f"{KUEUE}/namespaces/team/localqueues/gpu"
BACKGROUND = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}


@dataclass
class Running:
    """A job whose pods run, as the manager's Job says too."""

    name: str
    workload: str
    worker: OneCluster

    def delete(self, what: str, fleet: Fleet) -> None:
        """`what` is an object of the manager in the plural of its kind, or one of the worker after `remote`."""
        paths = {
            "workloads": f"{KUEUE}/namespaces/team/workloads/{self.workload}",
            "jobs": f"{JOBS}/{self.name}",
            "pods": f"/api/v1/namespaces/team/pods?labelSelector=job-name%3D{self.name}",
        }
        place, _, plural = what.rpartition(" ")
        if what == "jobs":
            fleet.forgotten.add(self.name)
        delete(self.worker if place else fleet.lab.manager, paths[plural])


def running(fleet: Fleet, but: set[str]) -> Running:
    """Waits for one of this round; submits another where all have ended before the manager said that they run."""

    def look() -> Running | None:
        there = {item["metadata"]["name"]: item for item in fleet.lab.manager.items(JOBS)}
        jobs = {name: there[name] for name in there.keys() - but if name.startswith(f"r{fleet.rounds}-")}
        if all(condition(item, "Complete") == "True" for item in jobs.values()):
            fleet.submit(f"r{fleet.rounds}-more-{len(fleet.bound)}")
        for name, item in sorted(jobs.items()):
            if not item.get("status", {}).get("active"):
                continue
            workload = fleet.lab.workload(name)
            where = (workload or {}).get("status", {}).get("clusterName")
            if workload and where:
                return Running(name, workload["metadata"]["name"], fleet.lab.workers[where])
        return None

    return wait_until(look)


def delete(cluster: OneCluster, path: str) -> None:
    cluster.request("DELETE", path, BACKGROUND)


def over(fleet: Fleet, name: str, namespace: str = "team") -> bool:
    """It has ended; or `status` says that it never will, and its user deletes it: docs/found-in-kueue.md, 13."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"
    there = fleet.lab.manager.find(path)
    if there is not None and name in [item.name for item in fleet.held.stuck() if item.why == LOST_JOB]:
        fleet.forgotten.add(name)
        fleet.lab.manager.delete(path)
    return there is None or condition(there, "Complete") == "True"


@pytest.mark.parametrize(
    "objects",
    [("workloads", "jobs"), ("remote workloads", "remote jobs", "remote pods")],
    ids=["the manager's", "a worker's"],
)
def test_objects_of_running_jobs_are_deleted(fleet: Fleet, objects: tuple[str, ...]) -> None:
    struck: set[str] = set()

    def strike() -> None:
        for what in objects:
            one = running(fleet, struck)
            struck.add(one.name)
            one.delete(what, fleet)
        fleet.restarted |= fleet.bound.keys()

    def settle() -> None:
        wait_until(lambda: all(over(fleet, name) for name in struck))

    fleet.survive(strike, settle, restarts=True)


def test_the_queues_of_running_jobs_are_deleted(fleet: Fleet) -> None:
    kept: list[tuple[OneCluster, Json]] = []

    def strike() -> None:
        for cluster in (fleet.lab.manager, running(fleet, set()).worker):
            result = cluster.get(QUEUE)
            metadata = {name: result["metadata"][name] for name in ("name", "namespace")}
            kept.append((cluster, {**result, "metadata": metadata, "status": {}}))
            delete(cluster, QUEUE)

    def again() -> None:
        for cluster, item in kept:
            wait_until(lambda cluster=cluster: cluster.find(QUEUE) is None)  # type: ignore[misc]
            apply_object(cluster, item)

    fleet.survive(strike, again)


def test_the_namespaces_of_running_jobs_are_deleted(fleet: Fleet) -> None:
    """On the manager with all that its team had there; on a worker only what is to start again once it is back."""
    on_worker = f"{EU}-{fleet.rounds}"
    places = {f"{MANAGER}-{fleet.rounds}": fleet.lab.manager, on_worker: fleet.lab.workers[EU]}

    def make(cluster: OneCluster, name: str) -> None:
        label = {"kueue-fleet.dev/regions": REGIONS[EU]}
        metadata: Json = {"name": name, "labels": label if cluster is fleet.lab.manager else {}}
        apply_object(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        queue = {"name": "gpu", "namespace": name}
        local = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": queue}
        apply_object(cluster, {**local, "spec": {"clusterQueue": "gpu"}})

    def strike() -> None:
        for name, place in places.items():
            for cluster in fleet.lab.clusters.values():
                make(cluster, name)
            fleet.submit(name, namespace=name, place=EU)
            job = f"/apis/batch/v1/namespaces/{name}/jobs/{name}"
            wait_until(lambda job=job: fleet.lab.manager.get(job).get("status", {}).get("active"))  # type: ignore[misc]
            (fleet.forgotten if place is fleet.lab.manager else fleet.restarted).add(name)
            delete(place, f"/api/v1/namespaces/{name}")

    def again() -> None:
        wait_until(lambda: fleet.lab.workers[EU].find(f"/api/v1/namespaces/{on_worker}") is None)
        make(fleet.lab.workers[EU], on_worker)
        wait_until(lambda: over(fleet, on_worker, on_worker))

    fleet.survive(strike, again)


def test_jobs_end_before_kueue_has_recorded_their_worker(fleet: Fleet) -> None:
    """Whatever keeps the manager's Kueue from writing; here the API server refuses."""
    name = f"unrecorded-{fleet.rounds}"

    def refuse() -> None:
        refused.enter_context(no_worker_recorded(fleet.lab.manager))
        fleet.submit(name)

    def allow() -> None:
        wait_until(lambda: condition(fleet.lab.manager.get(f"{JOBS}/{name}"), "Complete") == "True")
        refused.close()

    with ExitStack() as refused:
        fleet.survive(refuse, allow)
