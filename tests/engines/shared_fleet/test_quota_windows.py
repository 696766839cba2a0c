"""Quotas by time on the real Kueue: a job waits for the window and runs in it, and the next one waits again."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime, timedelta

import pytest

from controller_faults import Replicas
from controller_lab import ControllerLab, apply_object, job, python_path, queue_data
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.controller.capacity import CAPACITY_MANAGER
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.quota_windows import fleet_in
from kueue_fleet.objects import render_cluster
from one_cluster import KUEUE, Json, condition, wait_until
from two_regions import data

QUEUE, WINDOW = "by-time", "night"
GPUS = 1
"""Of each worker in the window; outside of it there are none."""


def by_time() -> Json:
    """A queue whose window is in half an hour, for an hour."""
    result, queue = data(), queue_data(QUEUE, "l4", 0)
    queue["resourceGroups"][0]["flavors"][0]["resources"][0]["during"] = {WINDOW: {"nominalQuota": GPUS}}
    result["clusterQueues"].append(queue)
    result["localQueues"].append({"namespace": "team", "name": QUEUE, "clusterQueue": QUEUE})
    start = datetime.fromtimestamp(time.time(), UTC) + timedelta(minutes=30)
    window = {"name": WINDOW, "start": f"{start:%Y-%m-%dT%H:%M:%SZ}", "duration": "1h"}
    result["controller"]["quotaWindows"] = [window]
    return result


def groups_of(found: Manifest) -> list[tuple[str, str, str]]:
    return [
        (flavor["name"], quota["name"], str(quota["nominalQuota"]))
        for group in found["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for quota in flavor["resources"]
    ]


def has_quotas(lab: ControllerLab, *windows: str) -> bool:
    """Whether every cluster has those of the file while these windows are open, and the controller wrote them."""
    fleet = fleet_in(lab.fleet, frozenset(windows))
    for name, cluster in lab.clusters.items():
        [expected] = [
            item
            for item in render_cluster(fleet, name)
            if item["kind"] == "ClusterQueue" and item["metadata"]["name"] == QUEUE
        ]
        result = cluster.get(f"{KUEUE}/clusterqueues/{QUEUE}")
        assert groups_of(result) == groups_of(expected)
        assert any(entry["manager"] == CAPACITY_MANAGER for entry in result["metadata"]["managedFields"])
    return True


def waits(lab: ControllerLab, name: str) -> bool:
    """Kueue has looked at it, and there is no quota for it."""
    workload = lab.workload(name) or {}
    output = {item["type"]: item["message"] for item in workload.get("status", {}).get("conditions", ())}
    return condition(workload, "QuotaReserved") == "False" and "insufficient quota" in output["QuotaReserved"]


def test_a_window_opens_and_closes(lab: ControllerLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller's clock jumps an hour, twice: into the window, and out of it."""
    for replica in lab.replicas:
        replica.stop()
    lab.clear()
    monkeypatch.setattr(lab, "fleet", parse_fleet(by_time()))
    for name, cluster in lab.clusters.items():
        for manifest in render_cluster(lab.fleet, name):
            if manifest["metadata"]["name"] == QUEUE:
                apply_object(cluster, manifest)
    forks = Replicas(python_path())
    try:
        replica = lab.start_faulty(forks, "by-time", {})
        lab.submit(job("early", queue=QUEUE, seconds=1))
        wait_until(lambda: has_quotas(lab))
        wait_until(lambda: waits(lab, "early"))

        replica.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: has_quotas(lab, WINDOW))
        wait_until(lambda: condition(lab.workload("early") or {}, "Finished") == "True")

        replica.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: has_quotas(lab))
        lab.submit(job("late", queue=QUEUE, seconds=1))
        wait_until(lambda: waits(lab, "late"))
        assert replica.runs
        assert replica.lines("no decision") == []
    finally:
        forks.close()
        lab.clear()
        for cluster in lab.clusters.values():
            cluster.delete(f"{KUEUE}/namespaces/team/localqueues/{QUEUE}")
            cluster.delete(f"{KUEUE}/clusterqueues/{QUEUE}")
