"""DWS without stock on a real control plane: the fleet's controller and real Kueue move a job to the next flavor."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from command_line import call
from controller_lab import JOBS, MANAGER, ControllerLab, controller_lab, fleet_data, job, queue_data
from kueue_admission.history.schema import Event, Kind
from kueue_admission.history.store import Store, StoreError
from kueue_admission.simulate.delays import Delays
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile
from one_cluster import KUEUE, Json, condition, wait_until

REQUESTS = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
DUMPED = ("workloads", "resourceflavors", "clusterqueues", "admissionchecks", "localqueues")
PATIENCE = 8


def data() -> Json:
    """One cluster in Europe, where DWS has no B200; the next flavor has L4 on demand.

    The queue `backed` has H100 from DWS, and a reservation that is a backup.
    """
    result = fleet_data({}, checks=[])
    del result["multiKueue"], result["admissionChecks"][1:]
    result["clusters"] = [{"name": MANAGER, "role": "standalone", "region": "europe-west4", "mode": "Standard"}]
    queue, later = queue_data("gpu", "b200", 8), queue_data("gpu", "l4", 8)
    queue["resourceGroups"][0]["flavors"] += later["resourceGroups"][0]["flavors"]
    queue["admissionChecksStrategy"] = {"admissionChecks": [{"name": "dws", "onFlavors": ["b200"]}]}
    queue["fallback"] = [{"flavor": "b200", "patience": f"{PATIENCE}s"}]
    # DWS alone, without a flavor to move on to.
    result["clusterQueues"] = [queue, queue_data("only", "b200", 8, "dws"), backed(result)]
    result["localQueues"] = [
        {"namespace": "team", "name": name, "clusterQueue": name} for name in ("gpu", "only", "backed")
    ]
    return result


def backed(made: Json) -> Json:
    """The queue with a backup, whose reservation, pools and flavors the fleet gets."""
    zone, flex, kept = "europe-west4-b", {"type": "flexStart", "queuedProvisioning": True}, {"type": "reserved"}
    made["reservations"] = [
        {"name": "kept", "zone": zone, "machineType": "a3-highgpu-8g", "count": 2, "purpose": "backup"}
    ]
    pools: dict[str, Json] = {
        "l4": {"machineType": "g2-standard-12", "autoscaling": {"totalMaxNodeCount": 8}},
        "b200": {"machineType": "a4-highgpu-8g", "capacity": flex, "autoscaling": {"totalMaxNodeCount": 2}},
        "dws": {"machineType": "a3-highgpu-8g", "capacity": flex, "autoscaling": {"totalMaxNodeCount": 1}},
        "kept": {"machineType": "a3-highgpu-8g", "capacity": {**kept, "reservation": "kept"}, "nodeCount": 2},
    }
    made["nodePools"] = [{"name": name, "zones": [zone], **pool} for name, pool in pools.items()]
    made["flavors"] += [{"name": name, "nodePool": name} for name in ("dws", "kept")]
    queue, backup = queue_data("backed", "dws", 8), queue_data("", "kept", 16)
    queue["resourceGroups"][0]["flavors"] += backup["resourceGroups"][0]["flavors"]
    for flavor in queue["resourceGroups"][0]["flavors"]:
        flavor["resources"][1]["nominalQuota"] = 100
    queue["admissionChecksStrategy"] = {"admissionChecks": [{"name": "dws", "onFlavors": ["dws"]}]}
    queue["fallback"] = [{"flavor": "dws", "patience": f"{PATIENCE}s"}]
    return queue


def allowed(lab: ControllerLab, name: str) -> str:
    """The flavors that the controller leaves the job."""
    result = (lab.workload(name) or {}).get("metadata", {}).get("annotations", {})
    return str(result.get("kueue.x-k8s.io/workload-allowed-resource-flavors", ""))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerLab]:
    with controller_lab(tmp_path_factory.mktemp("lab"), data()) as result:
        result.start_controller()
        yield result


def test_a_backup_is_for_jobs_without_nodes_and_not_for_those_without_quota(lab: ControllerLab) -> None:
    """The first job has all quota of the first choice, and waits for DWS."""
    lab.submit(job("first", 8, queue="backed"))
    wait_until(lambda: condition(lab.workload("first") or {}, "QuotaReserved") == "True")
    lab.submit(job("second", 8, queue="backed"))
    wait_until(lambda: allowed(lab, "second") == "dws")
    wait_until(lambda: condition(lab.workload("second") or {}, "QuotaReserved") == "False")
    wait_until(lambda: allowed(lab, "first") == "kept")
    lab.clear()


def test_a_job_goes_on_within_its_patience_runs_once_and_leaves_no_quota_behind(
    lab: ControllerLab, tmp_path: Path
) -> None:
    lab.submit(job("stock-out", seconds=2))

    waiting = wait_until(lambda: fallback_check(lab))
    assert waiting["state"] == "Ready"
    assert waiting["message"].startswith("Waits for nodes of b200 since ")
    wait_until(lambda: len(lab.manager.items(REQUESTS)) == 1)
    meanwhile = lab.workload("stock-out") or {}  # settled: its check waits, so it holds quota
    assert (holds(meanwhile), flavors_of(meanwhile)) == waiting_in_simulation()
    output = explained(lab, tmp_path)  # settled: its check says so
    assert "Waits for nodes of b200 since " in output
    assert "; moves to l4 at " in output

    wait_until(lambda: condition(lab.workload("stock-out") or {}, "Finished") == "True")
    workload = lab.workload("stock-out")  # settled: it has finished
    assert workload is not None
    assert workload["metadata"]["annotations"]["kueue.x-k8s.io/workload-allowed-resource-flavors"] == "l4"
    # Patience counts from the quota; then Kueue admits the job again, for which a busy machine takes its time.
    waited = since(workload, "Admitted") - since(meanwhile, "QuotaReserved")
    assert PATIENCE <= waited.total_seconds() <= PATIENCE + 60
    ran = lab.manager.get(f"{JOBS}/stock-out")["status"]  # settled: Kueue writes Finished after it
    assert (ran["succeeded"], ran.get("failed", 0)) == (1, 0)
    wait_until(lambda: not lab.manager.items(REQUESTS))
    wait_until(lambda: not used(lab))
    assert wait_until(lambda: given_up(lab)) == [f"No nodes of b200 within {PATIENCE} s; moves to l4"]
    assert (flavors_of(workload), evictions(workload)) == simulated()


def fallback_check(lab: ControllerLab) -> Json | None:
    checks = (lab.workload("stock-out") or {}).get("status", {}).get("admissionChecks", [])
    return next((one for one in checks if one["name"] == "kueue-fleet-fallback" and one["message"]), None)


def since(workload: Json, kind: str) -> datetime:
    """When a condition took the status that it has."""
    [result] = [one for one in workload["status"]["conditions"] if one["type"] == kind]
    return datetime.fromisoformat(result["lastTransitionTime"])


def given_up(lab: ControllerLab) -> list[str]:
    """What events say of flavors that the job no longer waits for."""
    events = lab.manager.items("/api/v1/namespaces/team/events")
    mine = [one for one in events if "-stock-out-" in one["involvedObject"]["name"]]
    return [one["message"] for one in mine if one["reason"] == "FlavorGivenUp"]


def explained(lab: ControllerLab, folder: Path) -> str:
    """What `explain` says of the job, by a dump of the cluster."""
    items = []
    for plural in DUMPED:
        results = lab.manager.get(f"{KUEUE}/{plural}")
        kind = results["kind"].removesuffix("List")
        items += [{**item, "apiVersion": results["apiVersion"], "kind": kind} for item in results["items"]]
    dump = folder / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    workload = lab.workload("stock-out")
    assert workload is not None
    result = call("explain", f"team/{workload['metadata']['name']}", "--objects", dump)
    assert result.returncode == 0, result.stderr
    return " ".join(result.stdout.split())


def used(lab: ControllerLab) -> list[Any]:
    status = lab.manager.get(f"{KUEUE}/clusterqueues/gpu")["status"]
    return [one for flavor in status["flavorsReservation"] for one in flavor["resources"] if one["total"] != "0"]


def flavors_of(workload: Json) -> set[str]:
    [assigned] = workload["status"]["admission"]["podSetAssignments"]
    return set(assigned["flavors"].values())


def evictions(workload: Json) -> dict[str, int]:
    return {one["reason"]: one["count"] for one in workload["status"]["schedulingStats"]["evictions"]}


def holds(workload: Json) -> str:
    """The last of the states that the workload has reached, as the simulation calls it."""
    reached = [state for state in ("QuotaReserved", "Admitted", "Finished") if condition(workload, state) == "True"]
    return reached[-1] if reached else "Pending"


def waiting_in_simulation() -> tuple[str, set[str]]:
    """State and flavors of the same job while DWS has no nodes for it, as the simulation has them."""
    result = simulated_job(until=PATIENCE / 2)
    return result["state"], set(result["flavors"]["main"].values())


def simulated() -> tuple[set[str], dict[str, int]]:
    """Flavors and evictions of the same job in the end, as the simulation has them."""
    result = simulated_job()
    assert len(result["runs"]) == 1
    reasons = [one["reason"] for one in result["evictions"]]
    return set(result["flavors"]["main"].values()), {one: reasons.count(one) for one in reasons}


def simulated_job(until: float | None = None) -> Json:
    requests = {"nvidia.com/gpu": 1, "cpu": 1}
    jobs = {"name": "stock-out", "namespace": "team", "queue": "gpu", "runSeconds": 2, "requests": requests}
    file = WorkloadFile.model_validate({"jobs": [jobs], "stockOuts": [{"flavor": "b200", "seconds": 1e6}]})
    [result] = prepare_fleet(parse_fleet(data()), file, Delays(), until=until).run().as_json()["workloads"]
    return dict(result)


def requests(lab: ControllerLab) -> list[str]:
    """The uids of the ProvisioningRequests that are accepted."""
    return [item["metadata"]["uid"] for item in lab.manager.items(REQUESTS) if condition(item, "Accepted") == "True"]


@pytest.fixture(scope="module")
def impatient(lab: ControllerLab) -> None:
    """A controller that waits for seconds, and records."""
    for replica in lab.replicas:
        replica.stop()
    watchdog = {"provisioningTimeout": "3s", "retries": 1, "stuckAfter": "2s"}
    lab.start_controller("again", watchdog=watchdog, history={"volumeClaim": "history", "every": "1s"})


def stock_outs(lab: ControllerLab) -> list[Event]:
    """What the history says of requests that found no capacity."""
    try:
        return Store(str(lab.history)).read(kinds=(Kind.STOCK_OUT,))
    except (OSError, StoreError) as error:
        raise AssertionError(str(error)) from None  # There is none yet.


@pytest.mark.usefixtures("impatient")
def test_a_request_for_the_only_flavor_is_made_again_as_often_as_the_watchdog_may(lab: ControllerLab) -> None:
    """The job keeps its quota; then it is named as one that waits without end. That DWS has no nodes is recorded."""
    lab.submit(job("only", queue="only"))
    first = wait_until(lambda: requests(lab))
    second = wait_until(lambda: [uid for uid in requests(lab) if uid not in first])
    assert len(second) == 1

    def given_up() -> Json | None:
        conditions = (lab.workload("only") or {})["status"]["conditions"]
        return next((one for one in conditions if one["reason"] == "RetriesUsed"), None)

    assert "manager 1 times" in wait_until(given_up)["message"]
    wait_until(lambda: requests(lab) == second and holds(lab.workload("only") or {}) == "QuotaReserved")
    [out] = wait_until(lambda: [event for event in stock_outs(lab) if event.uid in second])
    assert (out.cluster, out.region, out.check) == (MANAGER, "europe-west4", "dws")
    only = lab.workload("only") or {}  # settled: its request was made for it
    assert out.workload == only["metadata"]["name"]
    assert out.reason == "ResourcePoolExhausted"
    lab.manager.delete(f"{JOBS}/only")


@pytest.mark.usefixtures("impatient")
def test_a_check_that_is_retry_without_quota_does_not_keep_the_job_waiting(lab: ControllerLab) -> None:
    """As in kueue#5129: the scheduler passes over it from then on, whatever is free."""
    lab.submit(job("all", queue="only", gpus=8))
    wait_until(lambda: holds(lab.workload("all") or {"status": {}}) == "QuotaReserved")
    lab.submit(job("left-behind", queue="only"))
    wait_until(lambda: condition(lab.workload("left-behind") or {}, "QuotaReserved") == "False")
    name = wait_until(lambda: lab.workload("left-behind"))["metadata"]["name"]
    path = f"{KUEUE}/namespaces/team/workloads/{name}"
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    check = {"name": "dws", "state": "Retry", "message": "late", "lastTransitionTime": moment}
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team"},
        "status": {"admissionChecks": [check]},
    }
    lab.manager.request("PATCH", f"{path}/status?fieldManager=late&force=true", body, "application/apply-patch+yaml")
    lab.manager.delete(f"{JOBS}/all")
    wait_until(lambda: condition(lab.manager.get(path), "QuotaReserved") == "True")
    wait_until(lambda: requests(lab))
    events = "/api/v1/namespaces/team/events"
    wait_until(lambda: [one for one in lab.manager.items(events) if one["reason"] == "StuckCheck"])
