"""Queues whose jobs go on to other flavors where nodes do not come, on the simulated cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.simulation.fleets import EUROPE, US, dispatched_data

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec, parse_fleet, parse_fleet_text
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile

GPU = "nvidia.com/gpu"
ONE = {"name": "j", "namespace": "t", "queue": "q", "runSeconds": 60, "requests": {GPU: 2, "cpu": 1}}


def fleet(patience: str | None = "10m", quota: int = 8, nodes: int = 4) -> FleetSpec:
    flavors = ("flex", "od", "last")
    pools: list[dict[str, Any]] = [
        {"name": name, "machineType": "g2-standard-24", "autoscaling": {"totalMaxNodeCount": count}}
        for name, count in zip(flavors, (4, nodes, 4), strict=True)
    ]
    pools[0]["capacity"] = {"type": "flexStart"}
    resources = [{"name": GPU, "nominalQuota": quota}, {"name": "cpu", "nominalQuota": 40}]
    queue: dict[str, Any] = {
        "name": "q",
        "namespaceSelector": {},
        "resourceGroups": [
            {"coveredResources": [GPU, "cpu"], "flavors": [{"name": name, "resources": resources} for name in flavors]}
        ],
        "admissionChecksStrategy": {"admissionChecks": [{"name": "dws", "onFlavors": ["flex"]}]},
    }
    if patience is not None:
        queue["fallback"] = [{"flavor": name, "patience": patience} for name in ("flex", "od")]
    provisioning = {"provisioningClassName": "queued-provisioning.gke.io", "managedResources": [GPU]}
    data = {
        "name": "lab",
        "project": "lab-project",
        "clusters": [
            {
                "name": "c",
                "role": "standalone",
                "region": "us-central1",
                "mode": "Standard",
                "zones": ["us-central1-a"],
            }
        ],
        "nodePools": pools,
        "flavors": [{"name": name, "nodePool": name} for name in flavors],
        "admissionChecks": [{"name": "dws", "provisioningRequest": provisioning}],
        "clusterQueues": [queue],
        "localQueues": [{"namespace": "t", "name": "q", "clusterQueue": "q"}],
        **({"controller": {"image": "example.com/controller:1"}} if patience is not None else {}),
    }
    return parse_fleet(data)


def run(
    spec: FleetSpec, wait: float, *, count: int = 1, gpus: int = 2, cpu: int = 1, until: float | None = None
) -> list[dict[str, Any]]:
    jobs = {"name": "j", "namespace": "t", "queue": "q", "count": count, "runSeconds": 60}
    jobs["requests"] = {GPU: gpus, "cpu": cpu}
    file = WorkloadFile.model_validate({"jobs": [jobs], "waits": [{"flavor": "flex", "seconds": wait}]})
    result: list[dict[str, Any]] = prepare_fleet(spec, file, Delays(), until=until).run().as_json()["workloads"]
    return result


def fate(workload: dict[str, Any]) -> tuple[Any, ...]:
    flavors = list(dict.fromkeys(name for pod_set in workload["flavors"].values() for name in pod_set.values()))
    return workload["admittedAt"], flavors, [eviction["reason"] for eviction in workload["evictions"]]


def test_without_stock_a_job_goes_on_when_its_patience_is_over() -> None:
    [result] = run(fleet(), wait=1e6)
    # A second of back-off lies between the eviction and the next flavor.
    assert fate(result) == (601, ["od"], ["AdmissionCheck"])
    assert result["finishedAt"] == 661
    assert len(result["runs"]) == 1


def test_nodes_that_come_in_time_are_used() -> None:
    [result] = run(fleet(), wait=599)
    assert fate(result) == (599, ["flex"], [])


def test_without_fallback_it_waits_as_long_as_dws_takes() -> None:
    [result] = run(fleet(None), wait=1e6)
    assert fate(result) == (1e6, ["flex"], [])


def test_an_admitted_job_whose_nodes_do_not_come_goes_on_too() -> None:
    """Three jobs have quota on od, where one fits on each of two nodes."""
    result = run(fleet(patience="30s", quota=4, nodes=2), wait=1e6, count=3, gpus=1, cpu=13)
    *_, last = sorted(result, key=lambda one: one["finishedAt"])
    assert sorted(one["flavors"]["main"][GPU] for one in result) == ["last", "od", "od"]
    assert [eviction["reason"] for eviction in last["evictions"]] == ["AdmissionCheck", "AdmissionCheck"]
    assert [(run["flavors"], run["end"]) for run in last["runs"]] == [
        (["od"], "AdmissionCheck"),
        (["last"], "Succeeded"),
    ]


@pytest.mark.parametrize(
    ("at", "seconds", "flavor", "starts", "evictions"),
    [
        (0, 601, "od", 601, ["AdmissionCheck"]),
        (0, 599, "flex", 599, []),
        (50, 500, "flex", 550, []),
        (101, 1000, "flex", 100, []),
        (700, 1000, "flex", 100, []),
    ],
)
def test_dws_makes_no_request_ready_while_it_is_out_of_stock(
    at: int, seconds: int, flavor: str, starts: int, evictions: list[str]
) -> None:
    """It would take 100 seconds. The job has quota meanwhile, and is not admitted."""
    outs = [{"flavor": "flex", "at": at, "seconds": seconds}]
    waits = [{"flavor": "flex", "seconds": 100}]
    file = WorkloadFile.model_validate({"jobs": [ONE], "waits": waits, "stockOuts": outs})
    [result] = prepare_fleet(fleet(), file, Delays()).run().as_json()["workloads"]
    assert fate(result) == (starts, [flavor], evictions)
    [ran] = result["runs"]
    assert (ran["admittedAt"], ran["startedAt"]) == (starts, starts)


def test_what_waits_for_dws_has_quota_and_says_why() -> None:
    file = WorkloadFile.model_validate({"jobs": [ONE], "stockOuts": [{"flavor": "flex", "seconds": 1e6}]})
    [result] = prepare_fleet(fleet(None), file, Delays(), until=5000).run().as_json()["workloads"]
    assert (result["state"], result["runs"]) == ("QuotaReserved", [])
    assert result["message"] == (
        "DWS waits: its pods do not all fit on node pool flex (0 of 4 nodes in use), and there are no more of flex now"
    )


def test_nodes_that_gke_makes_without_a_pool_are_out_of_stock_too() -> None:
    data = fleet(None).wire()
    del data["clusters"][0]["mode"], data["clusters"][0]["zones"], data["nodePools"]
    for flavor in data["flavors"]:
        del flavor["nodePool"]
        flavor["nodeLabels"] = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    out = [{"flavor": "flex", "at": 0, "seconds": 700}]
    file = WorkloadFile.model_validate({"jobs": [ONE], "stockOuts": out})
    [result] = prepare_fleet(parse_fleet(data), file, Delays()).run().as_json()["workloads"]
    assert fate(result) == (700, ["flex"], [])


def test_pods_that_dws_is_not_asked_for_get_no_nodes_of_a_queued_pool_but_those_of_their_own_job() -> None:
    """A driver without GPUs and a worker with two; and a job that has no GPUs at all."""
    limits = {"requests": {"cpu": "1", GPU: "2"}, "limits": {GPU: "2"}}
    roles = {"driver": {"requests": {"cpu": "1"}}, "worker": limits}
    result = [
        {"name": name, "template": {"spec": {"template": {"spec": {"containers": [
            {"name": "c", "image": "i", "resources": resources}]}}}}}
        for name, resources in roles.items()
    ]  # fmt: skip
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    metadata = {
        "name": "roles",
        "namespace": "t",
        "labels": labels,
        "annotations": {"kueue-fleet.dev/run-seconds": "60"},
    }
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {"replicatedJobs": result},
    }
    file = WorkloadFile.model_validate({"jobs": [{**ONE, "name": "cpus", "requests": {"cpu": 1}}]})
    run = prepare_fleet(fleet(None), file, Delays(), until=1000, manifests=[Document("roles.yaml", jobset)]).run()
    results = {row["name"]: (row["state"], row["message"]) for row in run.as_json()["workloads"]}
    assert results == {
        "roles": ("Finished", ""),
        "cpus": ("Admitted", "its pods do not all fit on node pool flex (0 of 4 nodes in use)"),
    }


def test_dws_waits_for_room_in_its_pool_too() -> None:
    """Four nodes of two GPUs; a request of one GPU has a node of its own."""
    requests = {GPU: 1, "cpu": 1}
    jobs = {"name": "j", "namespace": "t", "queue": "q", "count": 5, "runSeconds": 60, "requests": requests}
    result = prepare_fleet(fleet(None), WorkloadFile.model_validate({"jobs": [jobs]}), Delays()).run()
    rows = result.as_json()["workloads"]
    assert [(fate(row), row["finishedAt"]) for row in rows] == [((0, ["flex"], []), 60)] * 4 + [
        ((60, ["flex"], []), 120)
    ]


def test_a_node_that_others_left_is_taken_while_its_flavor_is_out_of_stock() -> None:
    """The first job leaves room for the second one on its node."""
    on = {"nodeSelector": {"cloud.google.com/gke-nodepool": "od"}}
    jobs = [
        {"name": name, "namespace": "t", "queue": "q", "start": start, "runSeconds": 900, "requests": {GPU: 1}, **on}
        for name, start in (("first", 0), ("second", 100))
    ]
    outs = [{"flavor": "od", "at": 50, "seconds": 1e6}]
    file = WorkloadFile.model_validate({"jobs": jobs, "stockOuts": outs})
    result = prepare_fleet(fleet(), file, Delays()).run().as_json()["workloads"]
    assert [one["runs"][0]["startedAt"] for one in result] == [0, 100]


def test_the_quota_of_the_flavor_is_free_again() -> None:
    """Eight GPUs in each flavor, for jobs of eight: what the first one leaves, the second one gets."""
    result = run(fleet(), wait=1e6, count=4, gpus=8, until=601)
    assert [one["flavors"].get("main", {}).get(GPU) for one in result] == ["od", "flex", "last", None]


def on_workers(*, dispatcher: str = "External", **section: Any) -> FleetSpec:
    """Two workers with DWS, Spot and on-demand nodes; a job may wait ten minutes for each of the first two."""
    data = dispatched_data(widenAfter="4m")
    data["controller"] |= {"prices": {}, **section}
    if dispatcher != "External":
        data["multiKueue"] |= {"dispatcher": dispatcher}
        del data["multiKueue"]["external"], data["controller"]["dispatch"]
    names = ("flex", "spot", "od")
    [pool] = data["nodePools"]
    data["nodePools"] = [{**pool, "name": name, "capacity": {"type": "spot"}} for name in names]
    data["nodePools"][0]["capacity"] = {"type": "flexStart"}
    del data["nodePools"][2]["capacity"]
    data["flavors"] = [{"name": name, "nodePool": name} for name in names]
    [queue] = data["clusterQueues"]
    [group] = queue["resourceGroups"]
    group["flavors"] = [{**group["flavors"][0], "name": name} for name in names]
    queue["admissionChecksStrategy"] = {"admissionChecks": [{"name": "dws", "onFlavors": ["flex"]}]}
    queue["fallback"] = [{"flavor": name, "patience": "10m"} for name in names[:2]]
    provisioning = {"provisioningClassName": "queued-provisioning.gke.io", "managedResources": [GPU]}
    data["admissionChecks"] = [{"name": "dws", "provisioningRequest": provisioning}]
    return parse_fleet(data)


def run_on(spec: FleetSpec, **rest: Any) -> dict[str, Any]:
    job = {"name": "a", "namespace": "team-a", "queue": "gpu", "requests": {GPU: 1, "cpu": 10}, "runSeconds": 100}
    file = WorkloadFile.model_validate({"jobs": [job, {**job, "name": "z", "start": 5000}], **rest})
    [result, later] = prepare_fleet(spec, file, Delays()).run().as_json()["workloads"]
    # Nothing of the first one is left that would hold the second one back.
    assert len([run for run in result["runs"] if run["end"] == "Succeeded"]) == 1
    assert (later["state"], later["arrivedAt"]) == ("Finished", 5000)
    return dict(result)


OUT = [{"flavor": "flex", "seconds": 1e6}]
without_dws = pytest.mark.parametrize("how", ["waits", "stockOuts"])
"""DWS takes longer than anybody waits, or has no nodes."""


@without_dws
def test_without_stock_in_one_region_a_job_goes_on_to_another_worker_within_its_patience(how: str) -> None:
    result = run_on(on_workers(), **{how: [{**OUT[0], "cluster": US}]})
    assert (result["cluster"], *fate(result)) == (EUROPE, 240, ["flex"], [])


@without_dws
@pytest.mark.parametrize("dispatcher", ["External", "AllAtOnce", "Incremental"])
def test_without_stock_in_all_regions_it_goes_on_to_the_next_flavor_on_a_worker(dispatcher: str, how: str) -> None:
    result = run_on(on_workers(dispatcher=dispatcher), **{how: OUT})
    assert fate(result) == (601, ["spot"], ["AdmissionCheck"])


@without_dws
def test_what_the_watchdog_takes_back_has_no_new_patience(how: str) -> None:
    watchdog = {"provisioningTimeout": "7m", "retries": 9}
    result = run_on(on_workers(watchdog=watchdog, dispatch={"widenAfter": "9h"}), **{how: OUT})
    assert fate(result) == (601, ["spot"], ["AdmissionCheck"])


def test_an_admitted_job_goes_on_from_a_worker_without_nodes() -> None:
    outs = [{"flavor": "spot", "at": 0, "seconds": 1e6}]
    result = run_on(on_workers(), waits=OUT, stockOuts=outs)
    # Ten minutes for DWS, ten for Spot, and a second of back-off after each.
    assert fate(result) == (1202, ["od"], ["AdmissionCheck", "AdmissionCheck"])
    assert [run["flavors"] for run in result["runs"]] == [["spot"], ["od"]]
    assert result["finishedAt"] == 1302


def test_kueue_may_take_it_back_at_the_same_moment() -> None:
    """Both after the 30 minutes that Kueue waits for pods: the job goes on, and is not stranded."""
    data = on_workers().wire()
    [queue] = data["clusterQueues"]
    # Without DWS, which admits no job before it has nodes.
    del queue["admissionChecksStrategy"], data["admissionChecks"]
    del queue["resourceGroups"][0]["flavors"][0], data["flavors"][0], data["nodePools"][0]
    queue["fallback"] = [{"flavor": "spot", "patience": "30m"}]
    result = run_on(parse_fleet(data), stockOuts=[{"flavor": "spot", "at": 0, "seconds": 3600}])
    assert fate(result) == (1860, ["od"], ["PodsReadyTimeout"])


def test_jobs_whose_quota_is_used_up_wait_for_it_and_leave_the_backup_alone() -> None:
    example = Path(__file__).parents[2] / "examples/fallback/backup.yaml"
    spec = parse_fleet_text(example.read_text(), str(example))
    pair = {"pods": 2, "requests": {GPU: 2, "cpu": 16, "memory": "64Gi"}}
    jobs = {"name": "j", "namespace": "research", "queue": "training", "count": 2, "runSeconds": 60, **pair}
    result = prepare_fleet(spec, WorkloadFile.model_validate({"jobs": [jobs]}), Delays()).run().as_json()["workloads"]
    assert "l4-backup" not in str([item["flavors"] for item in result])
    assert all(entry["finishedAt"] for entry in result)
