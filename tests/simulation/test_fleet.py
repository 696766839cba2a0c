from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.distributions import parse_distribution
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_fleet.fleet_file import FleetSpec, parse_fleet_text
from kueue_fleet.fleet_simulation.fleet import first_of_each, fleet_run, parse_fleet_objects, prepare_fleet
from kueue_fleet.jobs.problems import Sources
from kueue_fleet.jobs.workload_file import read_workload_file

ROOT = Path(__file__).parents[2]
STACK = (ROOT / "stacks/Pulumi.dws-multikueue.yaml").read_text()
PREFIX = "kueue.x-k8s.io/"
ASIA, EUROPE, US = "worker-asia-southeast1", "worker-europe-west4", "worker-us-east4"


def fleet(old: str = "", new: str = "") -> FleetSpec:
    assert old in STACK
    return parse_fleet_text(STACK.replace(old, new) if old else STACK, "stack.yaml")


PREEMPTING = fleet("withinClusterQueue: Never", "withinClusterQueue: LowerPriority")


def job(name: str, **fields: Any) -> dict[str, Any]:
    given = {"namespace": "team-vision", "queue": "gpu", "requests": {"nvidia.com/gpu": 1}, "runSeconds": 100}
    return {"name": name, **given, **fields}


def run(
    jobs: list[dict[str, Any]],
    waits: list[dict[str, Any]] | None = None,
    spec: FleetSpec | None = None,
    seed: int = 0,
    until: float | None = None,
) -> dict[str, Any]:

    file = read_workload_file(json.dumps({"jobs": jobs, "waits": waits or []}), "w.yaml")
    sources = Sources("stack.yaml", "w.yaml")
    result = prepare_fleet(spec or fleet(), file, Delays(), seed=seed, until=until, sources=sources).run()
    return {workload["name"]: workload for workload in result.as_json()["workloads"]}


def test_the_first_region_with_capacity_gets_the_job() -> None:
    waits: list[dict[str, Any]] = [{"cluster": US, "seconds": 50}, {"cluster": ASIA, "seconds": 70}, {"seconds": 900}]
    result = run([job("a")], waits)["a"]
    assert (result["cluster"], result["admittedAt"], result["finishedAt"]) == (US, 50, 150)
    assert result["quotaReservedAt"] == 0
    assert result["flavors"] == {"main": {"nvidia.com/gpu": "t4-dws"}}
    # Both other workers held quota for their copies.
    assert result["copiesThrownAway"] == 2


def test_all_at_once_frees_the_other_workers_for_the_next_job() -> None:
    waits: list[dict[str, Any]] = [{"cluster": US, "seconds": 10}, {"seconds": 5000}]
    result = run([job("a", pods=4), job("b", pods=4, start=1)], waits)
    assert [result[name]["cluster"] for name in "ab"] == [US, US]
    # b's copies wait in Asia and Europe from 10 on; the US is free at 110, and looked at again a second later.
    assert result["b"]["admittedAt"] == 121


def test_a_job_without_requests_asks_for_what_the_limit_range_of_its_team_says() -> None:
    limits = "limitRange: { default: { nvidia.com/gpu: 2 } }\n"
    spec = fleet("- name: team-vision\n", f"- name: team-vision\n        {limits}")
    result = run([job("silent", requests={}), job("large", requests={"nvidia.com/gpu": 8})], spec=spec, until=1000)
    assert result["silent"]["state"] == "Finished"
    assert result["silent"]["flavors"]["main"]["nvidia.com/gpu"] == "t4-dws"
    assert result["large"]["state"] == "Pending"
    assert result["large"]["message"].endswith("requests must not exceed its limits")


UNORDERED = "configuration: { featureGates: { MultiKueueIncrementalDispatcherRespectConfigOrder: false } }"


@pytest.mark.parametrize(
    ("kueue", "step", "admitted"),
    [
        ("version: 0.19.2", 1, 350),  # Europe is asked at 0, the US at 300.
        (UNORDERED, 1, 650),  # Asia at 0, Europe at 300, the US at 600.
        ("version: 0.18.3", 3, 50),  # Three at 0.
    ],
)
def test_incremental_offers_in_rounds_as_the_release_does(kueue: str, step: int, admitted: int) -> None:
    text = STACK.replace("AllAtOnce\n", f"Incremental\n      incremental: {{ stepSize: {step} }}\n")
    spec = parse_fleet_text(
        text.replace("    multiKueue:\n", f"    kueue: {{ {kueue} }}\n    multiKueue:\n"), "stack.yaml"
    )
    waits: list[dict[str, Any]] = [{"cluster": US, "seconds": 50}, {"seconds": 900}]
    result = run([job("a")], waits, spec)["a"]
    assert (result["cluster"], result["admittedAt"]) == (US, admitted)


def test_job_larger_than_any_region_keeps_its_reservation_and_says_why() -> None:
    result = run([job("a", pods=8)])["a"]
    assert (result["state"], result["reason"], result["cluster"]) == (
        "QuotaReserved",
        "UnsatisfiedAdmissionChecks",
        None,
    )
    assert f"{ASIA}: ExceedsMaxQuota" in result["message"]


def test_preempted_copy_sends_the_job_back() -> None:
    jobs = [
        *(job(f"low-{n}", pods=4, runSeconds=1000, priorityClass="normal") for n in range(3)),
        job("urgent", start=100, pods=4, runSeconds=10, priorityClass="urgent"),
    ]
    result = run(jobs, [{"seconds": 5}], PREEMPTING)
    assert result["urgent"]["admittedAt"] == 105
    assert all(result[f"low-{n}"]["state"] == "Finished" for n in range(3))
    evictions = [e for n in range(3) for e in result[f"low-{n}"]["evictions"]]
    assert evictions
    assert {eviction["reason"] for eviction in evictions} == {"Preempted"}


def test_preempted_copy_that_waits_for_capacity_keeps_its_quota() -> None:
    jobs = [job("low", pods=4, priorityClass="normal"), job("urgent", start=100, pods=4, priorityClass="urgent")]
    result = run(jobs, [{"seconds": 5000}], PREEMPTING, until=4000)
    assert {result[name]["state"] for name in result} == {"QuotaReserved"}
    assert "never finishes this eviction" in result["low"]["message"]
    assert f"{US}: WaitingForPreemptedWorkloads" in result["urgent"]["message"]


def test_jobs_without_gpus_are_admitted_at_once_and_have_no_nodes_where_gke_makes_some_with_gpus() -> None:
    """Nothing of them is asked of DWS; the nodes of the flavor have GKE's taint, which their pods do not tolerate."""
    result = run([job("a", requests={"cpu": "1"})], [{"seconds": 900}], until=1000)["a"]
    assert (result["admittedAt"], result["finishedAt"], result["runs"][0]["startedAt"]) == (0, None, None)
    assert "requests no nvidia.com/gpu, and flavor t4-dws puts it on nodes with nvidia-tesla-t4" in result["message"]


def test_the_same_seed_gives_the_same_result_and_another_one_does_not() -> None:
    jobs = [job("a", count=30, interval="exponential(20)", runSeconds="uniform(50, 200)")]
    waits: list[dict[str, Any]] = [{"seconds": "exponential(60)"}]
    assert run(jobs, waits, seed=1) == run(jobs, waits, seed=1)
    assert run(jobs, waits, seed=1) != run(jobs, waits, seed=2)


def test_no_region_is_ever_overbooked() -> None:
    jobs = [job("a", count=60, interval="exponential(15)", runSeconds="uniform(50, 200)", pods=2)]
    moments: dict[str, list[tuple[float, int]]] = {}
    for result in run(jobs, [{"seconds": "exponential(60)"}], seed=3).values():
        assert result["state"] == "Finished"
        moments.setdefault(result["cluster"], []).extend([(result["admittedAt"], 2), (result["finishedAt"], -2)])
    for changes in moments.values():
        used = 0
        for _, change in sorted(changes):
            used += change
            assert used <= 4


@pytest.mark.parametrize(
    ("jobs", "waits", "said"),
    [
        ([job("a", runSeconds=-1)], [], "jobs[a].runSeconds: -1 is negative"),
        ([job("a", runSeconds="normal(3)")], [], "jobs[a].runSeconds: "),
        ([job("a", queue="gone")], [], "jobs[a].queue: there is no LocalQueue team-vision/gone; use one of"),
        ([job("a", count=5, queue="gone")], [], "jobs[a].queue: there is no LocalQueue team-vision/gone; use one of"),
        ([job("Train_A")], [], 'jobs[Train_A].name: "Train_A" has characters or a form that are not allowed'),
        ([job("a" * 64)], [], f'jobs[{"a" * 64}].name: "{"a" * 64}" is 64 characters long; use at most 63'),
        ([job("a" * 61, count=10)], [], f"jobs[{'a' * 61}].name: the last of 10 jobs would be called {'a' * 61}-10, "),
        ([job("a", priorityClass="gone")], [], "jobs[a].priorityClass: there is no WorkloadPriorityClass gone"),
        ([job("a", count=5, requests={"cpu": "two"})], [], 'jobs[a].requests[cpu]: "two" is not a valid quantity'),
        ([job("a", count=5, requests={"cpu": -1})], [], "jobs[a].requests.cpu: is -1; write 0 or more"),
        (
            [job("a", count=5, requests={"nvidia.com/gpu": 0.5})],
            [],
            "jobs[a].requests.nvidia.com/gpu: is 500m; write a",
        ),
        (
            [job("a", labels={f"{PREFIX}max-exec-time-seconds": "x"})],
            [],
            f"jobs[a].labels.{PREFIX}max-exec-time-second",
        ),
        ([job("a")], [{"cluster": "gone", "seconds": 1}], "waits[0].cluster: the fleet has no cluster gone"),
        ([job("a"), job("a")], [], "jobs[a].name: team-vision/a is listed twice"),
        ([job("a", maxRunSeconds=604_801)], [], "jobs[a].maxRunSeconds: 604801, but DWS grants 1 to 604800 seconds"),
        ([], [], "jobs: there are none"),
    ],
)
def test_mistakes_are_named(jobs: list[dict[str, Any]], waits: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(SimulationError) as refused:
        run(jobs, waits)
    (problem,) = map(str, refused.value.problems)
    assert re.sub(r"^w\.yaml(:1)?: ", "", problem).startswith(said)


PLAN = (ROOT / "examples/plan/fleet.yaml").read_text()


def of_vision(**selector: str) -> dict[str, Any]:
    spec, expected = parse_fleet_text(PLAN, "plan"), job("a", namespace="vision", nodeSelector=selector)
    result: dict[str, Any] = run([expected], spec=spec)["a"]
    return result


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("disk", "ssd", "selects disk=ssd, and node pool l4-reserved of batch does not have it"),
        ("node.kubernetes.io/instance-type", "a3-highgpu-8g", "and node pool l4-reserved of batch has g2-standard-24"),
        ("topology.kubernetes.io/zone", "us-central1-b", "and node pool l4-reserved of batch has us-central1-a"),
    ],
)
def test_a_job_that_no_node_takes_does_not_run(key: str, value: str, said: str) -> None:
    with pytest.raises(SimulationError, match=r"w\.yaml: jobs\[a\]\.nodeSelector: ") as refused:
        of_vision(**{key: value})
    assert said in str(refused.value)


def test_a_job_that_chooses_its_nodes_gets_them() -> None:
    result = of_vision(**{"cloud.google.com/gke-nodepool": "l4-ondemand"})
    assert result["flavors"] == {"main": {"nvidia.com/gpu": "l4-ondemand"}}


TAINTED = """\
name: lab
project: lab-project
clusters: [{ name: batch, role: standalone, region: us-central1, mode: Standard }]
nodePools: [{ name: l4, machineType: g2-standard-24, autoscaling: { totalMaxNodeCount: 4 } }]
flavors: [{ name: l4, nodeLabels: { cloud.google.com/gke-accelerator: nvidia-l4 } }]
clusterQueues:
- name: gpu
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors: [{ name: l4, resources: [{ name: cpu, nominalQuota: 20 }, { name: nvidia.com/gpu, nominalQuota: 4 }] }]
teams: [{ name: team-vision, localQueues: [{ name: gpu, clusterQueue: gpu }] }]
"""
"""The pool has GKE's taint of nodes with GPUs, which pods that request one tolerate by themselves."""


def test_pods_that_do_not_tolerate_the_taint_of_their_node_pool_never_run() -> None:
    jobs = [job("gpu", requests={"cpu": "1", "nvidia.com/gpu": 1}), job("cpu", requests={"cpu": "1"})]
    result = run(jobs, spec=parse_fleet_text(TAINTED, "lab"), until=2000)
    assert result["gpu"]["state"] == "Finished"
    assert result["cpu"]["finishedAt"] is None


def as_job(name: str) -> dict[str, Any]:
    """The Job that kubectl takes."""
    labels = {f"{PREFIX}queue-name": "gpu", f"{PREFIX}priority-class": "urgent", f"{PREFIX}max-exec-time-seconds": "60"}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": 1}}}
    pod = {"restartPolicy": "Never", "nodeSelector": {"zone": "a"}, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team-vision", "labels": labels},
        "spec": {"parallelism": 2, "completions": 2, "template": {"spec": pod}},
    }


@pytest.mark.parametrize("limits", ["", "limitRange: { default: { nvidia.com/gpu: 2, memory: 1Gi } }\n"])
def test_an_entry_is_the_workload_that_kueue_makes_of_such_a_job(limits: str) -> None:
    spec = fleet("- name: team-vision\n", f"- name: team-vision\n        {limits}") if limits else fleet()
    entry = job(
        "a", pods=2, requests={"cpu": "500m", "nvidia.com/gpu": 1}, priorityClass="urgent", nodeSelector={"zone": "a"}
    )
    entry["labels"] = {f"{PREFIX}max-exec-time-seconds": "60"}
    file = read_workload_file(json.dumps({"jobs": [entry]}), "w.yaml")
    read, result = parse_fleet_objects(spec, spec.home, [as_job("b")], first_of_each(file.jobs))[spec.home].workloads
    assert result.key == "team-vision/a"
    assert result == replace(read, name="a", uid=result.key, job_uid=result.key)


def test_a_job_of_both_files_is_listed_twice() -> None:
    file = read_workload_file(json.dumps({"jobs": [job("a", count=2)]}), "w.yaml")
    with pytest.raises(SimulationError) as refused:
        fleet_run(fleet(), file, Delays(), manifests=[Document("jobs.yaml:1", as_job("a-2"))])
    assert [str(item) for item in refused.value.problems] == [
        "jobs[a].name: team-vision/a-2 is listed twice; name it differently"
    ]


def test_a_dispatcher_that_is_not_known_is_refused() -> None:
    spec = fleet("dispatcher: AllAtOnce", "dispatcher: External\n      external: { name: example.com/mine }")
    with pytest.raises(SimulationError, match=r"stack\.yaml: multiKueue\.external\.name: what .* is not modelled"):
        run([job("a")], spec=spec)


def test_distributions_have_the_mean_they_say() -> None:
    drawn = [parse_distribution("exponential(60)").draw(0, number) for number in range(4000)]
    assert 57 < sum(drawn) / len(drawn) < 63
    drawn = [parse_distribution("uniform(2, 4)").draw(0, number) for number in range(4000)]
    assert 2 <= min(drawn) < 2.01
    assert 3.99 < max(drawn) <= 4
