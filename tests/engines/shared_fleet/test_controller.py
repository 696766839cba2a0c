"""The fleet's controller with real Kueue on a manager and two workers: where jobs run, and what a crash leaves."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from controller_lab import (
    JOBS,
    MANAGER,
    ControllerLab,
    ControllerProcess,
    install_kueue,
    job,
    wait_until_connected,
    write_kubeconfig_for,
)
from kueue_admission.read.dispatch_report import DISPATCH_CONDITION, WAITING_CONDITION, dispatch_report
from kueue_admission.simulate.delays import Delays
from kueue_fleet.dispatch import Filtered, ParsedReport, Scored
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile
from kueue_rehearsal.jobs.witness import Witness, job_of
from needed_programs import KUBECTL, needed
from one_cluster import KUEUE, Json, condition, wait_until
from two_regions import DISPATCH, EU, RIVAL, US, WIDEN_SECONDS, data

RUN = {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "60"}


@pytest.fixture(scope="module")
def copies(lab: ControllerLab) -> Iterator[dict[str, Witness]]:
    """By worker: every copy it ever had."""
    result = {name: Witness(cluster, f"{KUEUE}/workloads") for name, cluster in lab.workers.items()}
    yield result
    for witness in result.values():
        witness.close()


@pytest.fixture(scope="module")
def states(lab: ControllerLab) -> Iterator[dict[str, list[Json]]]:
    """By cluster: every state of every Workload in turn, however short it was."""
    results: dict[str, list[Json]] = {name: [] for name in lab.clusters}
    result = [
        Witness(cluster, f"{KUEUE}/workloads", lambda item, _, name=name: results[name].append(item))  # type: ignore[misc]
        for name, cluster in lab.clusters.items()
    ]
    yield results
    for witness in result:
        witness.close()


def states_of(states: Iterable[Json], name: str) -> list[Json]:
    """Those of the Workload of a job, or of its copy, which has the same name."""
    return [item for item in list(states) if job_of(item["metadata"]["name"]) == name]


def was(states: Iterable[Json], name: str, kind: str) -> bool:
    """Whether a condition of the Workload of a job was ever true."""
    return any(condition(item, kind) == "True" for item in states_of(states, name))


def admissions(states: Iterable[Json], name: str) -> list[set[str]]:
    """The flavors that the copy of a job was admitted on, one after the other."""
    result: list[set[str]] = []
    for item in states_of(states, name):
        if condition(item, "Admitted") == "True":
            [assigned] = item["status"]["admission"]["podSetAssignments"]
            flavors = set(assigned["flavors"].values())
            result += [flavors] if result[-1:] != [flavors] else []
    return result


@pytest.fixture(scope="module")
def controller(lab: ControllerLab, copies: dict[str, Witness]) -> ControllerProcess:
    return lab.start_controller("first")


def report(lab: ControllerLab, name: str) -> Json:
    workload = lab.workload(name)  # settled: written before the nomination
    assert workload is not None
    result = [c for c in workload.get("status", {}).get("conditions", []) if c["type"] == DISPATCH_CONDITION]
    assert len(result) == 1
    return dict(result[0])


def decided(lab: ControllerLab, name: str) -> ParsedReport:
    result = dispatch_report(lab.workload(name) or {})  # settled: written before the nomination
    assert result is not None
    return result


def scores(lab: ControllerLab, name: str) -> dict[str, Scored]:
    return {one.cluster: one for one in decided(lab, name).verdicts if isinstance(one, Scored)}


def events(lab: ControllerLab, name: str) -> dict[str, str]:
    workload = lab.workload(name)
    assert workload is not None
    items = lab.manager.items("/api/v1/namespaces/team/events")
    mine = [item for item in items if item["involvedObject"].get("uid") == workload["metadata"]["uid"]]
    return {item["reason"]: item["message"] for item in mine if item["source"].get("component") == CONTROLLER}


def told(lab: ControllerLab, name: str, reason: str) -> str:
    """What an event about a job says; the controller writes events when it has nothing more important to do."""
    return wait_until(lambda: events(lab, name).get(reason))


CONTROLLER = "kueue-fleet-controller"


def check_state(lab: ControllerLab, name: str, check: str = "fleet") -> Json:
    workload = lab.workload(name)  # settled: written before the nomination
    assert workload is not None
    result = [c for c in workload.get("status", {}).get("admissionChecks", []) if c["name"] == check]
    assert len(result) == 1
    return dict(result[0])


@pytest.mark.usefixtures("controller")
def test_the_cheaper_region_wins_when_both_are_free(lab: ControllerLab) -> None:
    lab.submit(job("cheap"))
    assert lab.placed("cheap") == US
    assert told(lab, "cheap", "Nominated") == f"Nominated {US} of 2 clusters"
    # Not the score: how long jobs of tests before this one waited is in it.
    parts = {cluster: (score.price, score.free) for cluster, score in scores(lab, "cheap").items()}
    assert parts == {EU: (0.5, 1.0), US: (1.0, 1.0)}


@pytest.mark.usefixtures("controller")
def test_a_job_bound_to_a_region_runs_there_whatever_it_costs(lab: ControllerLab) -> None:
    for index in range(4):
        lab.submit(job(f"bound-{index}", regions="europe-west4"))
    assert {lab.placed(f"bound-{index}") for index in range(4)} == {EU}
    assert f"{US}: RegionNotAllowed: it is in us-east4" in report(lab, "bound-0")["message"]


@pytest.mark.usefixtures("controller")
def test_quota_is_never_counted_twice(lab: ControllerLab) -> None:
    """Four jobs of four GPUs at once, eight on each worker: two go to each."""
    lab.clear()
    names = [f"wide-{index}" for index in range(4)]
    for name in names:
        lab.submit(job(name, gpus=4, seconds=600))
    placed = [lab.placed(name) for name in names]
    assert sorted(placed) == [EU, EU, US, US]
    lab.clear()


def kubectl(lab: ControllerLab, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a member of the namespace `team` gets, who may read its Workloads and events and nothing else."""
    config = lab.folder / "kubeconfig-of-a-member"
    write_kubeconfig_for(config, lab.manager)
    call = [needed(KUBECTL), f"--kubeconfig={config}", "--as=ann", "--as-group=system:authenticated", *arguments]
    return subprocess.run(call, text=True, capture_output=True, check=False, timeout=60)


def allow_reading(lab: ControllerLab) -> None:
    """In `team`, to `ann`."""
    rbac, path = "rbac.authorization.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1/namespaces/team"
    rules = [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["get", "list"]},
        {"apiGroups": ["", "batch"], "resources": ["events", "jobs"], "verbs": ["get", "list"]},
    ]
    metadata = {"name": "reader", "namespace": "team"}
    lab.manager.create(f"{path}/roles", {"apiVersion": rbac, "kind": "Role", "metadata": metadata, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]
    body = {"apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": subjects}
    lab.manager.create(f"{path}/rolebindings", body)


@pytest.mark.usefixtures("controller")
def test_a_member_reads_why_a_job_waits_and_nothing_of_other_teams_until_it_is_admitted(
    lab: ControllerLab, states: dict[str, list[Json]]
) -> None:
    lab.clear()
    allow_reading(lab)
    rivals = f"/apis/batch/v1/namespaces/{RIVAL}/jobs"
    for index in range(2):
        body = job(f"{RIVAL}-{index}", gpus=8, seconds=600)
        body["metadata"]["namespace"] = RIVAL
        lab.submit(body)
    wait_until(lambda: lab.manager.get(f"{KUEUE}/clusterqueues/gpu")["status"]["admittedWorkloads"] == 2)
    lab.submit(job("waits", gpus=4))
    wait_until(lambda: condition(lab.workload("waits") or {}, WAITING_CONDITION) == "True")
    result = lab.workload("waits")  # settled: the condition is there
    assert result is not None
    output = kubectl(lab, "describe", "workload", "-n", "team", result["metadata"]["name"])
    assert (
        "It asks for 4 nvidia.com/gpu; 0 of 16 is free on the worker clusters together, 4 is missing." in output.stdout
    ), output.stderr
    assert "Position: 1 of 1 in ClusterQueue gpu" in output.stdout
    assert RIVAL not in output.stdout
    assert "forbidden" in kubectl(lab, "get", "workloads", "-n", RIVAL).stderr
    wait_until(lambda: "It asks for 4" in kubectl(lab, "describe", "job", "-n", "team", "waits").stdout)
    time.sleep(3)
    written = [item["metadata"]["resourceVersion"] for item in states_of(states[MANAGER], "waits")]
    now = lab.workload("waits")  # settled: nothing writes to it any more, which is the claim
    assert now is not None
    assert now["metadata"]["resourceVersion"] == result["metadata"]["resourceVersion"], written
    assert condition(now, "QuotaReserved") == "False"
    lab.manager.delete(f"{rivals}/{RIVAL}-0")
    assert lab.placed("waits") in (EU, US)
    wait_until(lambda: condition(lab.workload("waits") or {}, WAITING_CONDITION) is None)
    lab.manager.delete(f"{rivals}/{RIVAL}-1")
    lab.clear()


@pytest.mark.usefixtures("controller")
def test_a_region_without_stock_is_left_after_the_set_time_and_not_asked_first_again(lab: ControllerLab) -> None:
    began = time.monotonic()
    lab.submit(job("no-stock", queue="dws"))
    assert lab.placed("no-stock") == US
    assert time.monotonic() - began > WIDEN_SECONDS
    assert set(decided(lab, "no-stock").nominated) == {EU, US}
    wait_until(lambda: not lab.workers[EU].items("/apis/autoscaling.x-k8s.io/v1/provisioningrequests"))
    lab.submit(job("wiser", queue="dws"))
    assert lab.placed("wiser") == US
    assert decided(lab, "wiser").nominated[0] == US


@pytest.mark.usefixtures("controller")
def test_a_check_that_can_never_pass_rejects_with_what_to_do_and_others_go_on(lab: ControllerLab) -> None:
    lab.submit(job("endless", queue="gated"))
    lab.submit(job("short", queue="gated", annotations=RUN))
    assert lab.placed("short") == US
    assert check_state(lab, "short")["state"] == "Ready"

    def deactivated() -> bool:
        result = lab.workload("endless")
        return result is not None and result["spec"].get("active") is False

    wait_until(deactivated)
    assert "set annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds" in told(lab, "endless", "CheckRejected")


def mutating_policies(lab: ControllerLab) -> set[str]:
    """Their names."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    policies = lab.manager.items(path)  # settled: applied by the tests
    return {policy["metadata"]["name"] for policy in policies}


@pytest.mark.usefixtures("controller")
def test_an_evicted_job_is_dispatched_anew(lab: ControllerLab) -> None:
    assert "kueue-clear-nominated-cluster-names" in mutating_policies(lab)
    evict_and_see_it_back(lab, "evicted")


def evict_and_see_it_back(lab: ControllerLab, name: str) -> None:
    """One that waits on its worker: Kueue 0.19.2 may strand one that is evicted while its remote pods run."""
    lab.submit(job(name, queue="dws", regions="europe-west4"))
    wait_until(lambda: is_at(lab, name, EU))
    set_active(lab, name, active=False)

    def is_back() -> bool:
        result = lab.workload(name)
        return result is not None and "admission" not in result["status"] and is_at(lab, name)

    wait_until(is_back)
    set_active(lab, name, active=True)
    wait_until(lambda: is_at(lab, name, EU))
    lab.manager.delete(f"{JOBS}/{name}")


def is_at(lab: ControllerLab, name: str, *workers: str) -> bool:
    """Whether a job is nominated for these workers, and has its copies there and nowhere else."""
    result = lab.workload(name)
    if result is None or "status" not in result:
        return False
    path = f"{KUEUE}/namespaces/team/workloads/{result['metadata']['name']}"
    copies = [worker for worker, cluster in lab.workers.items() if cluster.find(path)]
    return (result["status"].get("nominatedClusterNames") or []) == list(workers) == copies


def set_active(lab: ControllerLab, name: str, *, active: bool) -> None:
    workload = lab.workload(name)
    assert workload is not None
    path = f"{KUEUE}/namespaces/team/workloads/{workload['metadata']['name']}"
    lab.manager.request("PATCH", path, {"spec": {"active": active}}, "application/merge-patch+json")


@pytest.mark.usefixtures("controller")
def test_a_job_that_no_cluster_may_take_gives_its_quota_back_and_is_not_stranded(lab: ControllerLab) -> None:
    lab.submit(job("nowhere", regions="mars"))
    wait_until(
        lambda: lab.workload("nowhere") and condition(lab.workload("nowhere") or {}, DISPATCH_CONDITION) == "False"
    )
    assert report(lab, "nowhere")["reason"] == "NoSuitableCluster"
    assert "label kueue-fleet.dev/regions of the workload allows only mars" in report(lab, "nowhere")["message"]
    read = dispatch_report(lab.workload("nowhere") or {})  # settled: in the condition waited for
    assert read is not None
    reasons = {one.cluster: one.reason for one in read.verdicts if isinstance(one, Filtered)}
    assert reasons == {EU: "RegionNotAllowed", US: "RegionNotAllowed"}
    lab.manager.delete(f"{JOBS}/nowhere")


@pytest.mark.usefixtures("controller")
def test_garbage_in_labels_annotations_and_our_own_condition_moves_nothing_out_of_its_region(
    lab: ControllerLab,
) -> None:
    lab.submit(job("garbage-eu", regions="europe-west4", annotations={RUN_KEY: "\u0663; drop", "x": "{" * 500}))
    assert lab.placed("garbage-eu") == EU
    workload = lab.workload("garbage-eu")  # settled: it is placed
    assert workload is not None
    junk = {
        "type": DISPATCH_CONDITION,
        "status": "True",
        "reason": "X",
        "message": "Nominated \x00, of",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
    path = f"{KUEUE}/namespaces/team/workloads/{workload['metadata']['name']}/status?fieldManager=junk&force=true"
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": workload["metadata"]["name"], "namespace": "team"},
        "status": {"conditions": [junk]},
    }
    lab.manager.request("PATCH", path, body, "application/apply-patch+yaml")
    lab.submit(job("after-garbage"))
    assert lab.placed("after-garbage") in (EU, US)


RUN_KEY = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"


def test_a_crashed_leader_is_followed_by_the_other_replica_with_nothing_lost(
    lab: ControllerLab, controller: ControllerProcess
) -> None:
    other = lab.start_controller("second")
    names = [f"crash-{index}" for index in range(6)]
    for name in names[:3]:
        lab.submit(job(name, regions="europe-west4"))
    controller.kill()
    for name in names[3:]:
        lab.submit(job(name))
    assert {lab.placed(name) for name in names[:3]} == {EU}
    assert {lab.placed(name) for name in names[3:]} <= {EU, US}
    assert other.lines("leading")


def test_without_stock_a_job_goes_on_to_the_next_flavor_runs_once_and_leaves_no_quota_behind(
    lab: ControllerLab, states: dict[str, list[Json]]
) -> None:
    """No region that it may be in has B200. Its copies get the flavors that are written on the manager."""
    lab.submit(job("patient", queue="patient", regions="europe-west4", seconds=1))

    def waited() -> bool:
        result = states_of(states[MANAGER], "patient")
        checks = [one for item in result for one in item.get("status", {}).get("admissionChecks", [])]
        return any(one["message"].startswith("Waits for nodes of b200 since ") for one in checks)

    wait_until(waited)
    assert lab.placed("patient") == EU
    [flavors] = wait_until(lambda: admissions(states[EU], "patient"))
    assert told(lab, "patient", "FlavorGivenUp") == "No nodes of b200 within 4 s; moves to l4"
    wait_until(lambda: condition(lab.workload("patient") or {}, "Finished") == "True")
    workload = lab.workload("patient")  # settled: it has finished
    assert workload is not None
    path = f"{KUEUE}/namespaces/team/workloads/{workload['metadata']['name']}"
    evictions = {one["reason"]: one["count"] for one in workload["status"]["schedulingStats"]["evictions"]}
    ran = lab.manager.get(f"{JOBS}/patient")["status"]  # settled: Kueue writes Finished after it
    assert (ran["succeeded"], ran.get("failed", 0)) == (1, 0)
    assert (EU, flavors, evictions) == simulated()
    wait_until(lambda: nothing_is_left(lab, "patient", path))


def test_a_job_that_a_worker_admitted_and_whose_nodes_never_come_goes_on_to_the_next_flavor(
    lab: ControllerLab, states: dict[str, list[Json]]
) -> None:
    """No check waits for the nodes: the copy is admitted, and its pods stay pending."""
    lab.submit(job("admitted", queue="admitted", regions="europe-west4", seconds=1))
    assert lab.placed("admitted") == EU
    workload = lab.workload("admitted")  # settled: it is placed
    assert workload is not None
    path = f"{KUEUE}/namespaces/team/workloads/{workload['metadata']['name']}"
    wait_until(lambda: admissions(states[EU], "admitted") == [{"absent"}, {"l4"}])
    wait_until(lambda: condition(lab.workload("admitted") or {}, "Finished") == "True")
    assert told(lab, "admitted", "FlavorGivenUp") == "No nodes of absent within 3 s; moves to l4"
    ran = lab.manager.get(f"{JOBS}/admitted")["status"]  # settled: Kueue writes Finished after it
    assert (ran["succeeded"], ran.get("failed", 0)) == (1, 0)
    wait_until(lambda: nothing_is_left(lab, "admitted", path))


def nothing_is_left(lab: ControllerLab, queue: str, path: str) -> bool:
    """No quota of the queue anywhere, and no copy of the Workload."""
    return is_free(lab, queue) and not any(cluster.find(path) for cluster in lab.workers.values())


def is_free(lab: ControllerLab, queue: str) -> bool:
    """Whether no job has quota of the queue anywhere."""
    queues = [cluster.get(f"{KUEUE}/clusterqueues/{queue}") for cluster in lab.clusters.values()]
    used = [one for item in queues for one in item["status"].get("flavorsReservation", [])]
    return all(resource["total"] == "0" for flavor in used for resource in flavor["resources"])


def simulated() -> tuple[str, set[str], dict[str, int]]:
    """Cluster, flavors and evictions of the same job, as the simulation has them."""
    labels = {"kueue-fleet.dev/regions": "europe-west4"}
    entry = {"name": "patient", "namespace": "team", "queue": "patient", "runSeconds": 1, "labels": labels}
    entry["requests"] = {"nvidia.com/gpu": 1, "cpu": 1}
    file = WorkloadFile.model_validate({"jobs": [entry], "waits": [{"flavor": "b200", "seconds": 1e6}]})
    [result] = prepare_fleet(parse_fleet(data()), file, Delays()).run().as_json()["workloads"]
    reasons = [one["reason"] for one in result["evictions"]]
    return result["cluster"], set(result["flavors"]["main"].values()), {one: reasons.count(one) for one in reasons}


def test_capacity_that_was_accepted_and_never_comes_is_given_up_and_found_elsewhere(lab: ControllerLab) -> None:
    """It is taken back only for a cluster with a better score: here one where nothing has waited so far."""
    lab.replicas[-1].stop()
    lab.clear()
    lab.start_controller(
        "watchdog",
        dispatch={
            "widenAfter": "60s",
            "rejectAfter": "1s",
            "giveUpAfter": "120s",
            "retryAfter": "2s",
            "weights": {"price": 0, "waiting": 1, "free": 0},
        },
        watchdog={"provisioningTimeout": "2s", "retries": 1},
    )
    lab.submit(job("stuck", queue="dws"))
    assert lab.placed("stuck") == US
    output = told(lab, "stuck", "ProvisioningTimeout")
    assert output.startswith("ProvisioningRequest ")
    assert f"on {EU} was accepted" in output
    assert output.endswith("retry 1 of 1")


def test_a_job_that_no_worker_can_ever_hold_gives_its_quota_back_with_the_reason(
    lab: ControllerLab, states: dict[str, list[Json]]
) -> None:
    """Each worker has eight GPUs, the manager sixteen: it would keep nine of them from the others."""
    lab.clear()
    lab.submit(job("too-large", gpus=9))
    wait_until(lambda: was(states[MANAGER], "too-large", "QuotaReserved"))
    lab.submit(job("behind", gpus=8))
    assert lab.placed("behind") in (EU, US)
    result = lab.workload("too-large")  # settled: its quota is given back last
    assert result is not None
    assert (result["spec"]["active"], result["status"].get("admission")) == (False, None)
    [evicted] = [one for one in result["status"]["conditions"] if one["type"] == "Evicted"]
    assert evicted["reason"] == "DeactivatedDueToAdmissionCheck"
    assert "None of 2 clusters can ever run this job: worker-eu ExceedsMaxQuota" in evicted["message"]
    assert told(lab, "too-large", "FitsNoCluster").startswith("None of 2 clusters can ever run this job")
    assert report(lab, "too-large")["reason"] == "FitsNoCluster"
    lab.clear()
    lab.set_gpus(US, 9)
    lab.submit(job("large", gpus=9))
    assert lab.placed("large") == US
    lab.set_gpus(US, 8)
    lab.clear()


def test_a_copy_that_is_evicted_before_its_job_is_there_gives_its_quota_back(
    lab: ControllerLab, states: dict[str, list[Json]]
) -> None:
    """Kueue 0.19.2 never finishes that eviction, and whoever evicted the copy waits for ever."""
    lab.replicas[-1].stop()
    lab.start_controller("rescue", watchdog={"stuckAfter": "4s"})
    preempting = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}
    queue = f"{KUEUE}/clusterqueues/dws"
    lab.workers[EU].request("PATCH", queue, preempting, "application/merge-patch+json")
    urgent = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "value": 1000}
    lab.manager.create(f"{KUEUE}/workloadpriorityclasses", {**urgent, "metadata": {"name": "urgent"}})
    lab.submit(job("preempted", queue="dws", regions="europe-west4", gpus=40))
    wait_until(lambda: copy_condition(lab, "preempted", "QuotaReserved") == "True")
    body = job("urgent", queue="dws", regions="europe-west4", gpus=40)
    body["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "urgent"
    lab.submit(body)
    wait_until(lambda: was(states[EU], "preempted", "Evicted"))
    wait_until(lambda: copy_condition(lab, "urgent", "QuotaReserved") == "True")
    wait_until(lambda: is_at(lab, "preempted", EU) and copy_condition(lab, "preempted", "Evicted") is None)
    wait_until(lambda: "no job there" in events(lab, "preempted").get("StuckCopy", ""))
    for name in ("preempted", "urgent"):
        lab.manager.delete(f"{JOBS}/{name}")


def copy_condition(lab: ControllerLab, name: str, kind: str) -> str | None:
    """The status of a condition of a job's copy in Europe."""
    result = lab.workload(name)
    copy = result and lab.workers[EU].find(f"{KUEUE}/namespaces/team/workloads/{result['metadata']['name']}")
    return condition(copy, kind) if copy else None


def test_a_job_that_is_evicted_on_the_manager_while_its_pods_run_gives_its_quota_back(lab: ControllerLab) -> None:
    """Kueue 0.19.2 may take the copy away before the job's status has been copied back."""
    lab.submit(job("long", regions="europe-west4", seconds=600))
    assert lab.placed("long") == EU
    wait_until(lambda: lab.manager.get(f"{JOBS}/long").get("status", {}).get("active"))
    set_active(lab, "long", active=False)

    def freed() -> bool:
        result = lab.workload("long")
        return result is not None and "admission" not in result["status"]

    wait_until(freed)
    status = lab.manager.get(f"{JOBS}/long")["status"]  # settled: quota is given back when no pod is active
    assert "active" not in status
    wait_until(lambda: lab.workers[EU].find(f"{JOBS}/long") is None)
    set_active(lab, "long", active=True)
    assert lab.placed("long") == EU
    lab.manager.delete(f"{JOBS}/long")


def test_the_faster_region_wins_when_the_waiting_times_say_so(lab: ControllerLab) -> None:
    """Jobs that may run nowhere else wait a long time in the cheaper region; then both have quota free."""
    lab.clear()
    lab.replicas[-1].stop()
    weights = {"price": 1, "waiting": 30, "free": 1}
    lab.start_controller("waits", dispatch={**DISPATCH, "widenAfter": "60s", "weights": weights})
    lab.submit(job("before"))
    assert lab.placed("before") == US
    lab.submit(job("holder", gpus=7, regions="us-east4", seconds=8))
    assert lab.placed("holder") == US
    waiting = [f"waited-{index}" for index in range(10)]
    for name in waiting:
        lab.submit(job(name, gpus=2, regions="us-east4", seconds=1))
    wait_until(lambda: all(condition(lab.manager.get(f"{JOBS}/{name}"), "Complete") == "True" for name in waiting))
    wait_until(lambda: is_free(lab, "gpu"))
    lab.submit(job("wise"))
    assert lab.placed("wise") == EU
    wise = scores(lab, "wise")
    assert wise[US].price > wise[EU].price
    assert wise[US].free == wise[EU].free == 1.0
    assert wise[US].waiting < wise[EU].waiting


def test_a_window_that_opens_lets_the_job_in_and_the_deadline_gives_quota_back(lab: ControllerLab) -> None:
    lab.replicas[-1].stop()
    opens = int(time.time()) + 25
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(opens))
    window = {"name": "soon", "start": start, "duration": "1h"}
    lab.start_controller(
        "window",
        dispatch={"widenAfter": "1s", "giveUpAfter": "2s", "retryAfter": "3s"},
        checks=[{"name": "fleet", "regions": False, "windows": [window]}],
    )
    lab.submit(job("early", queue="gated", annotations=RUN))
    lab.submit(job("nobody", queue="gated", regions="mars", annotations=RUN))
    wait_until(lambda: f"which opens at {start}" in check_state(lab, "early").get("message", ""))
    assert check_state(lab, "early")["state"] == "Pending"
    lab.placed("early")
    assert time.time() >= opens
    wait_until(lambda: gave_back(lab, "nobody") >= 2)
    lab.manager.delete(f"{JOBS}/nobody")


def gave_back(lab: ControllerLab, name: str) -> int:
    """How often a job gave its quota back because a check asked for it."""
    workload = lab.workload(name)
    assert workload is not None
    stats = workload.get("status", {}).get("schedulingStats", {}).get("evictions", [])
    return sum(int(one["count"]) for one in stats if one["reason"] == "AdmissionCheck")


def test_a_job_that_gave_its_quota_back_is_dispatched_anew(lab: ControllerLab) -> None:
    retry_and_see_it_admitted(lab, "policy")


def retry_and_see_it_admitted(lab: ControllerLab, name: str) -> None:
    """One that is nominated and waits for another one until its deadline."""
    lab.replicas[-1].stop()
    lab.start_controller(name, dispatch={"widenAfter": "1s", "giveUpAfter": "8s", "retryAfter": "1s"})
    holder, waits = f"{name}-holder", f"{name}-waits"
    lab.submit(job(holder, gpus=8, regions="europe-west4", queue="gated", annotations=RUN, seconds=600))
    assert lab.placed(holder) == EU
    lab.submit(job(waits, gpus=8, regions="europe-west4", queue="gated", annotations=RUN))
    wait_until(lambda: is_at(lab, waits, EU))
    wait_until(lambda: gave_back(lab, waits) >= 1)
    lab.manager.delete(f"{JOBS}/{holder}")
    assert lab.placed(waits) == EU
    lab.manager.delete(f"{JOBS}/{waits}")


def test_before_kubernetes_1_36_the_gate_does_what_the_policy_does(lab: ControllerLab) -> None:
    lab.replicas[-1].stop()
    install_kueue(lab, MANAGER, "1.35.2")
    assert "kueue-clear-nominated-cluster-names" not in mutating_policies(lab)
    wait_until_connected(lab)
    lab.start_controller("gate")
    evict_and_see_it_back(lab, "gate")
    retry_and_see_it_admitted(lab, "gate-retry")


def jobs_of(copies: Witness) -> set[str]:
    """The jobs whose copies were ever there."""
    return {job_of(name) for name in copies.names()}


def test_at_no_moment_was_a_bound_job_outside_its_region(lab: ControllerLab, copies: dict[str, Witness]) -> None:
    bound = {"garbage-eu", *(f"bound-{index}" for index in range(4)), *(f"crash-{index}" for index in range(3))}
    eu, us = jobs_of(copies[EU]), jobs_of(copies[US])
    assert bound <= eu
    assert bound.isdisjoint(us)
    assert "cheap" in us
    assert "nowhere" not in eu | us


def test_no_job_has_two_copies_once_it_runs(lab: ControllerLab) -> None:
    def single() -> bool:
        admitted = [w for w in lab.manager.items(f"{KUEUE}/workloads") if condition(w, "Admitted") == "True"]
        for workload in admitted:
            if condition(workload, "Finished") == "True":
                continue
            name = workload["metadata"]["name"]
            copies = [c for c in lab.workers.values() if c.find(f"{KUEUE}/namespaces/team/workloads/{name}")]
            assert len(copies) == 1, name
        return True

    wait_until(single)


def test_the_controller_says_in_its_metrics_and_log_what_it_did(lab: ControllerLab) -> None:
    lines: list[Any] = [line for replica in lab.replicas for line in replica.lines("dispatch")]
    assert any(line["nominated"] == [US] and line["scores"] for line in lines)
    assert not [line for replica in lab.replicas for line in replica.lines() if line["level"] == "ERROR"]
