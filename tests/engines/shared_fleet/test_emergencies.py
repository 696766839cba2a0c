"""What docs/tasks/break-glass.md tells people to do, tried on the real Kueue."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controller_faults import Gate
from controller_lab import (
    JOBS,
    MANAGER,
    ControllerLab,
    job,
    logged,
    restart_kueue,
    route,
    wait_until_connected,
)
from kueue_fleet.google.alerts import alert_policies
from one_cluster import KUEUE, OneCluster, condition, wait_until
from two_regions import EU, REGIONS

QUEUE = f"{KUEUE}/clusterqueues/gpu"
WORKLOADS = f"{KUEUE}/namespaces/team/workloads"
MERGE = "application/merge-patch+json"
LONG = 3600
"""Seconds: what runs so long does not end by itself."""


@pytest.fixture(scope="module", autouse=True)
def few_gpus(lab: ControllerLab) -> None:
    """One on each worker, and a manager that lets four times as many jobs in."""
    for replica in lab.replicas:
        replica.stop()
    lab.clear()
    for name, gpus in {MANAGER: 8, **dict.fromkeys(lab.workers, 1)}.items():
        lab.set_gpus(name, gpus)
    lab.start_controller("emergencies", dispatch={"widenAfter": "2s", "giveUpAfter": "24h"})


@pytest.fixture(scope="module")
def gates(lab: ControllerLab) -> Iterator[dict[str, Gate]]:
    """How the manager's Kueue reaches each worker."""
    result = {name: Gate(cluster.server) for name, cluster in lab.workers.items()}
    for name, gate in result.items():
        route(lab, name, gate.url)
    wait_until_connected(lab)
    yield result
    for gate in result.values():
        gate.close()


@contextmanager
def stopped(cluster: OneCluster, policy: str) -> Iterator[None]:
    """Its queue has this stopPolicy."""
    cluster.request("PATCH", QUEUE, {"spec": {"stopPolicy": policy}}, MERGE)
    yield
    cluster.request("PATCH", QUEUE, {"spec": {"stopPolicy": "None"}}, MERGE)


def running(cluster: OneCluster, name: str) -> str | None:
    """The uid of a Job of which a pod is active."""
    result = cluster.find(f"{JOBS}/{name}")
    return str(result["metadata"]["uid"]) if result and result.get("status", {}).get("active") else None


def runs_on(lab: ControllerLab, name: str) -> OneCluster:
    """Waits until a Job runs; the worker."""
    lab.submit(job(name, seconds=LONG))
    worker = lab.workers[lab.placed(name)]
    wait_until(lambda: running(worker, name))
    return worker


def copies(lab: ControllerLab, name: str) -> dict[str, str]:
    """The uid of the copies of a Job, by worker."""
    workload = lab.workload(name)
    path = f"{WORKLOADS}/{workload['metadata']['name']}" if workload else ""
    result = {where: cluster.find(path) for where, cluster in lab.workers.items()} if path else {}
    return {where: copy["metadata"]["uid"] for where, copy in result.items() if copy}


def stays(worker: OneCluster, name: str, uid: str | None, seconds: float = 4.0) -> None:
    """The same run of the Job goes on for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert uid is not None
        assert running(worker, name) == uid
        time.sleep(0.5)


def test_hold_and_drain_on_the_manager(lab: ControllerLab) -> None:
    """Hold admits nothing new; HoldAndDrain ends what runs, too, and it starts again after that."""
    worker = runs_on(lab, "first")
    uid = running(worker, "first")  # settled: it runs
    with stopped(lab.manager, "Hold"):
        lab.submit(job("second"))
        stays(worker, "first", uid)
        assert condition(wait_until(lambda: lab.workload("second")), "QuotaReserved") != "True"
    assert lab.placed("second")
    with stopped(lab.manager, "HoldAndDrain"):
        wait_until(lambda: not any(cluster.find(f"{JOBS}/first") for cluster in lab.workers.values()))
        wait_until(lambda: condition(lab.workload("first") or {}, "Admitted") == "False")
    again = lab.workers[lab.placed("first")]
    assert wait_until(lambda: running(again, "first")) != uid
    lab.clear()


def test_hold_and_drain_on_a_worker(lab: ControllerLab) -> None:
    """Hold keeps new jobs away; HoldAndDrain sends what runs to another worker."""
    worker = runs_on(lab, "moves")
    [other] = [cluster for cluster in lab.workers.values() if cluster is not worker]
    uid = running(worker, "moves")
    with stopped(worker, "Hold"):
        stays(worker, "moves", uid)
    with stopped(worker, "HoldAndDrain"):
        wait_until(lambda: running(other, "moves") and running(worker, "moves") is None)
    lab.clear()


def test_a_copy_that_is_deleted_on_its_worker_is_made_again(lab: ControllerLab) -> None:
    for index in range(2):
        lab.submit(job(f"full-{index}", seconds=LONG))
    for index in range(2):
        lab.placed(f"full-{index}")
    lab.submit(job("waits", regions=REGIONS[EU]))
    before = wait_until(lambda: copies(lab, "waits"))
    workload = lab.workload("waits")  # settled: it has copies
    assert workload is not None
    lab.workers[EU].delete(f"{WORKLOADS}/{workload['metadata']['name']}")
    wait_until(lambda: copies(lab, "waits").get(EU, before[EU]) != before[EU])
    lab.clear()


def test_a_job_that_is_deleted_while_its_worker_is_out_of_reach_ends_once_that_is_back(
    lab: ControllerLab, gates: dict[str, Gate]
) -> None:
    """And the alert `worker-disconnected` finds what Kueue logs meanwhile."""
    worker = runs_on(lab, "deleted")
    uid = running(worker, "deleted")
    gates[worker.name].shut()
    wait_until(lambda: condition(lab.manager.get(f"{KUEUE}/multikueueclusters/{worker.name}"), "Active") == "False")
    lab.manager.delete(f"{JOBS}/deleted")
    stays(worker, "deleted", uid)
    wait_until(lambda: worker.name in alerted(lab))
    gates[worker.name].open()
    wait_until(lambda: worker.find(f"{JOBS}/deleted") is None)
    wait_until_connected(lab)
    lab.clear()


def alerted(lab: ControllerLab) -> set[str]:
    """The workers that the policy on the log of the manager's Kueue names."""
    policy = alert_policies(
        "lab",
        manager=MANAGER,
        job_clusters=[*REGIONS],
        kueue_namespace="kueue-system",
        provisioning_seconds=60,
    )["worker-disconnected"]
    match = policy["conditions"][0]["conditionMatchedLog"]
    logger = re.search(r'jsonPayload\.logger="([^"]+)"', match["filter"])
    messages = re.search(r"jsonPayload\.msg=\(([^)]+)\)", match["filter"])
    assert logger is not None
    assert messages is not None
    assert match["labelExtractors"] == {"worker": "EXTRACT(jsonPayload.name)"}
    expected = re.findall(r'"([^"]+)"', messages[1])
    result = set()
    for log in lab.supervisor.paths.root.rglob("kueue-system_*/manager.log"):
        lines = (entry for entry in logged(log) if entry.get("logger") == logger[1])
        result |= {item["name"] for item in lines if item["msg"] in expected}
    return result


def test_without_its_secret_a_worker_gets_nothing_and_what_runs_there_goes_on(lab: ControllerLab) -> None:
    worker = runs_on(lab, "keeps")
    [other] = [name for name, cluster in lab.workers.items() if cluster is not worker]
    uid = running(worker, "keeps")
    result = lab.manager.get(f"{KUEUE}/multikueueclusters/{worker.name}")
    path = "/api/v1/namespaces/kueue-system/secrets"
    secret = lab.manager.get(f"{path}/{result['spec']['clusterSource']['kubeConfig']['location']}")
    lab.manager.delete(f"{path}/{secret['metadata']['name']}")
    wait_until(lambda: condition(lab.manager.get(f"{KUEUE}/multikueueclusters/{worker.name}"), "Active") == "False")
    lab.submit(job("elsewhere"))
    assert lab.placed("elsewhere") == other
    stays(worker, "keeps", uid)
    secret["metadata"] = {"name": secret["metadata"]["name"], "namespace": "kueue-system"}
    lab.manager.create(path, secret)
    wait_until_connected(lab)
    stays(worker, "keeps", uid)
    lab.clear()


def test_a_new_manager_deletes_what_runs_unless_it_is_told_not_to(lab: ControllerLab) -> None:
    """The last test: the manager is destroyed with all that it knew."""
    worker = runs_on(lab, "survivor")
    uid = running(worker, "survivor")
    lab.replicas[-1].stop()

    lab.replace_manager(origin="second", gcInterval="1s")
    stays(worker, "survivor", uid)
    restart_kueue(lab, MANAGER, gcInterval="0s")
    wait_until_connected(lab)
    stays(worker, "survivor", uid)

    restart_kueue(lab, MANAGER, gcInterval="1s")
    wait_until(lambda: worker.find(f"{JOBS}/survivor") is None)
    wait_until(lambda: not worker.items(f"{KUEUE}/workloads"))
