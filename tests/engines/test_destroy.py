"""`pulumi destroy` of a fleet whose jobs run on several clusters that stay, ended in the middle, undone, and done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from fleet_in_rehearsal import FleetInRehearsal
from job_files import jobs_in
from kueue_fleet.cli import app
from kueue_rehearsal.jobs.submission import submit_jobs
from one_cluster import KUEUE, wait_until
from tests.engines.test_plain_clusters import (
    JOBS,
    MANAGER,
    PARIS,
    PATIENCE_SECONDS,
    QUOTA,
    example,
    jobs_on,
    lasting,
    up,
)

LYON = "lyon"
WORKERS = (PARIS, LYON)
WORKLOADS = f"{KUEUE}/namespaces/team-vision/workloads"


def outside_gke() -> dict[str, Any]:
    """The example, with another cluster as `paris` in the place of the worker of GKE, and a manager outside GKE."""
    fleet = example("fleet.yaml")
    [paris] = [item for item in fleet["clusters"] if item["name"] == PARIS]
    lyon = {**paris, "name": LYON, "kubernetes": {"server": "https://k8s.lyon.example.com:6443"}}
    fleet["clusters"] = [{"name": MANAGER, "role": "manager", "kubernetes": {}}, paris, lyon]
    fleet["multiKueue"]["workers"] = list(WORKERS)
    del fleet["nodePools"], fleet["project"], fleet["flavors"][0]["clusters"], fleet["flavors"][1:]
    [group] = fleet["clusterQueues"][0]["resourceGroups"]
    del group["flavors"][1:]
    return fleet


@contextmanager
def running(factory: pytest.TempPathFactory) -> Iterator[FleetInRehearsal]:
    """That fleet, up, and full of jobs that do not end."""
    with up(outside_gke(), factory) as lab:
        submit_jobs(lab.clients, MANAGER, lasting(jobs_in(JOBS)[:QUOTA], 3600))
        wait_until(lambda: all_run(lab), PATIENCE_SECONDS)
        yield lab


def all_run(lab: FleetInRehearsal) -> bool:
    active = [job for name in WORKERS for job in jobs_on(lab, name) if job.get("status", {}).get("active")]
    assert len(active) == QUOTA, len(active)
    return True


def copies(lab: FleetInRehearsal) -> list[str]:
    return [name for worker in WORKERS for name in lab.objects(worker, "workloads")]


def is_deleted(lab: FleetInRehearsal, cluster: str) -> bool:
    """Somebody has deleted its queue, which may be there still."""
    return (
        "deletionTimestamp"
        in lab.objects(cluster, "clusterqueues").get("gpu", {"metadata": "deletionTimestamp"})["metadata"]
    )


def set_active(lab: FleetInRehearsal, *, active: bool) -> None:
    for name in lab.objects(MANAGER, "workloads"):
        lab.clients.merge(MANAGER, f"{WORKLOADS}/{name}", {"spec": {"active": active}})


def test_it_waits_for_jobs_on_the_manager_first(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory) as lab:
        with lab.session.pulumi().destroy():
            wait_until(lambda: is_deleted(lab, MANAGER))
        lab.session.pulumi().recover()
        assert all_run(lab)
        assert not any(is_deleted(lab, worker) for worker in WORKERS)  # settled: the destroy has ended
        kubeconfig = str(lab.session.paths.kubeconfig)
        told = CliRunner().invoke(app, ["status", str(lab.stack_file), "--kubeconfig", kubeconfig, "-o", "json"])
        reasons = {queue["cluster"]: queue["reason"] for queue in json.loads(told.stdout)["queues"]}
        assert "it waits for jobs with quota, team-vision/" in reasons.pop(MANAGER)
        assert reasons == dict.fromkeys(WORKERS, "")
        set_active(lab, active=False)
        wait_until(lambda: not lab.objects(MANAGER, "clusterqueues") and not copies(lab), PATIENCE_SECONDS)
        # The fleet is to stay after all.
        lab.run(lambda project: project._start("up", "--refresh", "--skip-preview"))
        assert {step.op for step in lab.steps} <= {"refresh", "create", "same"}, lab.touched()
        set_active(lab, active=True)
        wait_until(lambda: all_run(lab), PATIENCE_SECONDS)
        # As docs/tasks/existing-clusters.md has it.
        lab.clients.merge(MANAGER, f"{KUEUE}/clusterqueues/gpu", {"spec": {"stopPolicy": "HoldAndDrain"}})
        wait_until(lambda: not copies(lab), PATIENCE_SECONDS)
        lab.run(lambda project: project.destroy())
        assert {cluster["name"] for cluster in lab.session.client.clusters()} == {MANAGER, *WORKERS}
