"""The same fleet, used and changed as fleets are, and destroyed."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from fleet_in_rehearsal import FleetInRehearsal
from job_files import jobs_in
from kueue_rehearsal.fleet_engines import fleet_engines
from kueue_rehearsal.jobs.views import JobState
from kueue_rehearsal.paths import RehearsalError
from one_cluster import condition, wait_until
from side_by_side import simulated
from tests.engines.all_releases import releases_of
from tests.engines.dws_stack.conftest import JOBS, MANAGER, WORKERS, active, wait_until_nothing_is_held

JOBS_SECONDS = 240
NEW_WORKER = "worker-us-central1"
# The manager's sum of quotas, its list of workers, and the alerts that name every cluster.
OF_ALL_WORKERS = {
    ("update", f"{MANAGER}/dws"),
    ("update", f"{MANAGER}/multikueue/multikueue"),
    *(("update", alert) for alert in ("kueue-gone", "provisioning-stuck", "queue-inactive")),
}


def one_job(run_seconds: str, **annotations: str) -> list[dict[str, Any]]:
    (job, *_) = jobs_in(JOBS)
    job = copy.deepcopy(job)
    job["metadata"]["annotations"] |= {f"provreq.kueue.x-k8s.io/{key}": value for key, value in annotations.items()}
    job["spec"]["template"]["metadata"]["annotations"]["kueue-fleet.dev/run-seconds"] = run_seconds
    return [job]


def run_in_dws(lab: FleetInRehearsal, jobs: Sequence[dict[str, Any]] | None = None, **settings: Any) -> str:
    """One job while DWS behaves like this; returns where it ran, once the other workers have let go of all."""
    lab.simulate(dws=settings)
    lab.session.write_settings()
    for (view,) in lab.session.run_jobs(lab.fleet, jobs or one_job("8"), JOBS_SECONDS):
        if view.cluster:
            wait_until_nothing_is_held(lab, [worker for worker in WORKERS if worker != view.cluster])
        ran_on, state, name = view.cluster, view.state, view.name
    assert state is JobState.FINISHED, lab.why_unfinished([name], [MANAGER, *WORKERS])
    return ran_on


def test_the_region_that_gets_capacity_runs_the_job_and_the_others_let_go(lab: FleetInRehearsal) -> None:
    stock = {"us-east4": {"low": 4, "high": 4}}
    three_pods = jobs_in(JOBS.with_name("gpu-intensive-job.yaml"))
    assert run_in_dws(lab, three_pods, low=0, high=0, stock=stock) == "worker-us-east4"
    waits = [{"cluster": "worker-us-east4", "seconds": 3}, {"seconds": 100_000}]
    assert [row.cluster for row in simulated(lab.fleet, three_pods, 3600, waits=waits)] == ["worker-us-east4"]


def test_a_request_that_dws_fails_is_served_in_another_region(lab: FleetInRehearsal) -> None:
    failing = {"europe-west4": 100, "us-east4": 100}
    slow: dict[str, Any] = {"leastWaitSeconds": 6, "mostWaitSeconds": 6}
    assert run_in_dws(lab, low=8, high=8, failPercentIn=failing) == "worker-asia-southeast1"
    wait_until_nothing_is_held(lab, WORKERS)
    assert run_in_dws(lab, low=8, high=8, failPercentIn={"asia-southeast1": 100}, **slow) != "worker-asia-southeast1"


def test_a_job_of_more_than_seven_days_is_refused_at_once(lab: FleetInRehearsal) -> None:
    for seconds in ("604801", "0", "7d"):
        with pytest.raises(RehearsalError, match="DWS grants 1 to 604800 seconds, which is seven days"):
            list(lab.session.run_jobs(lab.fleet, one_job("1", maxRunDurationSeconds=seconds), 5))
    assert lab.session.clients(lab.fleet).create(MANAGER, one_job("1", maxRunDurationSeconds="604800")[0], dry_run=True)


def test_a_changed_quota_is_an_update_in_place_on_each_worker_and_of_the_managers_sum(lab: FleetInRehearsal) -> None:
    def more_gpus(fleet: dict[str, Any]) -> None:
        fleet["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 6

    lab.change(more_gpus)
    lab.up()
    assert lab.touched() == {("update", f"{cluster}/dws") for cluster in [MANAGER, *WORKERS]}
    [group] = lab.objects(MANAGER, "clusterqueues")["dws"]["spec"]["resourceGroups"]  # settled: `up` has ended
    quotas = {item["name"]: item["nominalQuota"] for item in group["flavors"][0]["resources"]}
    assert quotas["nvidia.com/gpu"] == "18"


def test_a_fourth_worker_touches_no_other_worker(lab: FleetInRehearsal) -> None:
    def fourth(fleet: dict[str, Any]) -> None:
        older = {"kueue": {"version": "0.18.3"}}
        fleet["clusters"].append({"name": NEW_WORKER, "role": "worker", "region": "us-central1", **older})
        fleet["multiKueue"]["workers"].append(NEW_WORKER)

    lab.change(fourth)
    lab.session.prepare_engines(print, fleet_engines(lab.fleet))
    lab.up()
    others = {(op, name) for op, name in lab.touched() if NEW_WORKER not in name and "us-central1" not in name}
    # Nothing else that was there before.
    assert others == OF_ALL_WORKERS
    assert active(lab.objects(MANAGER, "multikueueclusters")[NEW_WORKER])  # settled: `up` waits for it
    assert active(lab.objects(NEW_WORKER, "clusterqueues")["dws"])  # settled: `up` waits for it


def test_a_manager_dispatches_to_a_worker_of_an_older_release(lab: FleetInRehearsal) -> None:
    """`all_releases` has other mixes."""
    wait_until(lambda: releases_of(lab)[NEW_WORKER] == {"0.18.3"})
    assert run_in_dws(lab, low=0, high=0, stock={"us-central1": {"low": 4, "high": 4}}) == NEW_WORKER


def test_a_rotated_credential_replaces_only_tokens_and_the_manager_stays_connected(lab: FleetInRehearsal) -> None:
    lab.change(lambda fleet: fleet["multiKueue"]["credentials"].update(rotation="2027-01"))
    lab.up()
    replaced = [step for step in lab.steps if step.op != "update" and step.type != "pulumi:pulumi:Stack"]
    assert {step.name.split("/")[0] for step in replaced} == {MANAGER, *WORKERS, NEW_WORKER}
    assert {step.type for step in replaced} == {"kubernetes:core/v1:Secret"}

    def connected() -> bool:
        clusters = lab.objects(MANAGER, "multikueueclusters")
        assert all(active(item) for item in clusters.values()), clusters
        return True

    wait_until(connected)


def test_a_removed_worker_takes_its_own_things_along_and_nothing_else(lab: FleetInRehearsal) -> None:
    def without(fleet: dict[str, Any]) -> None:
        fleet["clusters"] = [cluster for cluster in fleet["clusters"] if cluster["name"] != NEW_WORKER]
        fleet["multiKueue"]["workers"].remove(NEW_WORKER)

    lab.change(without)
    lab.up()
    gone = {name for op, name in lab.touched() if op == "delete"}
    assert gone
    assert all(NEW_WORKER in name or "us-central1" in name for name in gone), gone
    assert {(op, name) for op, name in lab.touched() if op != "delete"} == OF_ALL_WORKERS
    assert NEW_WORKER not in {cluster["name"] for cluster in lab.session.client.clusters()}


def test_queues_that_become_two_groups_of_the_manager_lose_no_job(lab: FleetInRehearsal) -> None:
    """ADR 16: `up` gives each group a flavor of its own on the manager; what runs stays on the former one."""

    def two_groups(fleet: dict[str, Any]) -> None:
        [dws] = fleet["clusterQueues"]
        dws["cohortName"] = "company"
        other = copy.deepcopy(dws) | {"name": "l4"}
        other["resourceGroups"][0]["flavors"][0]["name"] = "l4-dws"
        fleet["clusterQueues"].append(other)
        labels = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
        fleet["flavors"].append({"name": "l4-dws", "nodeLabels": labels})

    lab.simulate(dws={"low": 8, "high": 8})
    lab.session.write_settings()
    before = submitted(lab, "20")
    wait_until(lambda: condition(workload_of(lab, before), "Admitted") == "True", JOBS_SECONDS)
    lab.change(two_groups)
    lab.up()
    after = submitted(lab, "1")
    for job, flavor in ((before, "multikueue"), (after, "multikueue-t4-dws")):
        ended = wait_until(partial(finished, lab, job), JOBS_SECONDS)
        assert condition(ended, "Evicted") is None, ended
        [assigned] = ended["status"]["admission"]["podSetAssignments"]
        assert set(assigned["flavors"].values()) == {flavor}


def submitted(lab: FleetInRehearsal, run_seconds: str) -> str:
    """The name of a job that is created on the manager."""
    [job] = one_job(run_seconds)
    result = lab.session.clients(lab.fleet).create(MANAGER, job)
    return str(result["metadata"]["name"])


def finished(lab: FleetInRehearsal, job: str) -> dict[str, Any] | None:
    """The Workload of a job that has ended."""
    result = workload_of(lab, job)
    return result if condition(result, "Finished") == "True" else None


def workload_of(lab: FleetInRehearsal, job: str) -> dict[str, Any]:
    """The Workload of a job on the manager; empty while there is none."""
    for workload in lab.objects(MANAGER, "workloads").values():
        if any(owner["name"] == job for owner in workload["metadata"].get("ownerReferences", ())):
            return workload
    return {}


def test_destroy_ends_clean_and_no_cluster_is_left(lab: FleetInRehearsal) -> None:
    began = time.monotonic()
    result = lab.run(lambda project: project.destroy())
    assert set(result.changes) == {"delete"}
    assert lab.session.client.clusters() == []
    print(f"destroyed {result.changes['delete']} resources in {time.monotonic() - began:.0f} s")
