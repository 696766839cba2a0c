"""What a recorder makes of Workloads and pods as API servers list them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.simulation.fleets import EUROPE, GPU, US, fleet

from kueue_admission.decide.errors import NotModelledError
from kueue_admission.kernel.names import QUEUE_LABEL
from kueue_admission.simulate.records import Phase, Record, State
from kueue_admission.simulate.report import report_data
from kueue_fleet.fleet_simulation.recorded import Recorder
from kueue_fleet.objects import render_cluster

BEGIN = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()


def at(seconds: float) -> str:
    return datetime.fromtimestamp(BEGIN + seconds, UTC).isoformat().replace("+00:00", "Z")


def condition(kind: str, since: float, reason: str = "", status: str = "True") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason or kind, "lastTransitionTime": at(since)}


def workload(*conditions: dict[str, str], flavor: str = "multikueue", pods: int = 1, **more: Any) -> dict[str, Any]:
    requests = {GPU: "1", "cpu": "4"}
    assignment = {
        "name": "main",
        "count": pods,
        "flavors": dict.fromkeys(requests, flavor),
        "resourceUsage": {GPU: str(pods), "cpu": str(4 * pods)},
    }
    reserved = any(item["type"] == "QuotaReserved" and item["status"] == "True" for item in conditions)
    return {
        "metadata": {
            "namespace": "team-a",
            "name": "job-train-1a2b",
            "creationTimestamp": at(0),
            "ownerReferences": [{"kind": "Job", "name": "train", "uid": "u"}],
            **more,
        },
        "spec": {
            "queueName": "gpu",
            "podSets": [
                {
                    "name": "main",
                    "count": pods,
                    "template": {
                        "spec": {"containers": [{"name": "m", "image": "busybox", "resources": {"requests": requests}}]}
                    },
                }
            ],
        },
        "status": {
            "conditions": list(conditions),
            **({"admission": {"clusterQueue": "gpu", "podSetAssignments": [assignment]}} if reserved else {}),
        },
    }


def pod(name: str, scheduled: float | None, reclaimed: float | None = None) -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-name": "train", QUEUE_LABEL: "gpu"}
    conditions = [condition("PodScheduled", scheduled)] if scheduled is not None else []
    if reclaimed is not None:
        conditions.append(condition("DisruptionTarget", reclaimed, "TerminationByKubelet"))
    return {
        "metadata": {"namespace": "team-a", "name": name, "uid": name, "labels": labels},
        "status": {"conditions": conditions},
    }


WAITS = condition("QuotaReserved", 0, "WaitingForQuota", "False")
RESERVED = condition("QuotaReserved", 2)
NOT_YET = condition("Admitted", 2, "UnsatisfiedChecks", "False")
ADMITTED = condition("Admitted", 5)


class Fleet:
    """A manager with two workers, whose Workload is on the first."""

    def __init__(self) -> None:
        self.recorder = Recorder("manager")

    def see(
        self, home: dict[str, Any] | None, copy: dict[str, Any] | None = None, *pods: dict[str, Any], on: str = EUROPE
    ) -> None:
        workloads: dict[str, list[dict[str, Any]]] = {"manager": [], EUROPE: [], US: []}
        if home is not None:
            workloads["manager"].append(home)
        if copy is not None:
            workloads[on].append(copy)
        self.recorder.see(workloads, {"manager": [], EUROPE: [], US: []} | {on: list(pods)})

    def record(self) -> Record:
        [record] = self.recorder.result(fleet(), {EUROPE: [], US: []}, BEGIN + 100, 7).records
        return record

    def phases(self) -> list[tuple[float, Phase]]:
        return [(time - BEGIN, phase) for time, phase in self.record().phases]


@pytest.fixture
def seen() -> Fleet:
    return Fleet()


def test_a_dispatched_job_from_its_arrival_to_its_end(seen: Fleet) -> None:
    seen.see(workload(WAITS, pods=2))
    record = seen.record()
    assert (record.key, record.name, record.arrived_at - BEGIN) == ("team-a/job-train-1a2b", "train", 0)
    assert (record.state, record.reason) == (State.PENDING, "WaitingForQuota")
    assert dict(record.requests) == {GPU: 2, "cpu": 8000}
    assert record.cluster_queue == "gpu"
    seen.see(workload(RESERVED, NOT_YET, pods=2), workload(WAITS, pods=2))
    assert (record.state, record.reason) == (State.QUOTA_RESERVED, "QuotaReserved")
    home, copy = workload(RESERVED, ADMITTED, pods=2), workload(RESERVED, ADMITTED, flavor="l4-spot", pods=2)
    seen.see(home, copy, pod("a", 6), pod("b", None))
    assert seen.phases()[-1] == (5, Phase.NODES)
    seen.see(home, copy, pod("a", 6), pod("b", 9))
    # The copy is gone when the job has ended.
    seen.see(workload(RESERVED, ADMITTED, condition("Finished", 20, "Succeeded"), pods=2))
    assert seen.phases() == [
        (2, Phase.CHECKS),
        (5, Phase.NODES),
        (9, Phase.RUNNING),
        (20, Phase.OVER),
    ]
    [run] = record.runs
    assert (run.cluster, run.flavors, run.usage) == (
        EUROPE,
        ("l4-spot",),
        {("l4-spot", GPU): 2, ("l4-spot", "cpu"): 8000},
    )
    assert (record.state, record.reason, record.finished_at) == (State.FINISHED, "Succeeded", BEGIN + 20)


def test_an_evicted_job_begins_again_elsewhere_and_each_eviction_counts_once(seen: Fleet) -> None:
    home, copy = workload(RESERVED, ADMITTED), workload(RESERVED, ADMITTED, flavor="l4-spot")
    seen.see(home, copy, pod("a", 6))
    evicted = condition("Evicted", 30, "Preempted")
    for _ in range(3):
        # The manager hears of it later.
        seen.see(home, workload(RESERVED, ADMITTED, evicted, flavor="l4-spot"), pod("a", 6))
    seen.see(workload(RESERVED, ADMITTED, condition("Evicted", 31, "AdmissionCheck")))
    record = seen.record()
    assert [(item.time - BEGIN, item.reason) for item in record.evictions] == [(30, "Preempted")]
    again = [condition("QuotaReserved", 40), condition("Admitted", 41), condition("Evicted", 40, status="False")]
    seen.see(workload(*again), workload(*again[:2], flavor="l4-spot"), pod("a", 6), pod("b", None), on=US)
    assert [run.cluster for run in record.runs] == [EUROPE, US]
    assert (record.runs[0].end, record.runs[0].ended_at) == ("Preempted", BEGIN + 30)
    assert record.first_admitted_at == BEGIN + 5


def test_lost_spot_nodes_are_replaced(seen: Fleet) -> None:
    home, copy = workload(RESERVED, ADMITTED), workload(RESERVED, ADMITTED, flavor="l4-spot")
    seen.see(home, copy, pod("a", 6))
    seen.see(home, copy, pod("a", 6, reclaimed=12))
    seen.see(home, copy, pod("a", 6, reclaimed=12), pod("b", 15))
    assert seen.phases()[2:] == [(6, Phase.RUNNING), (12, Phase.RECLAIMED), (15, Phase.RUNNING)]
    assert seen.record().runs[0].reclaimed == [BEGIN + 12]


def test_jobs_of_an_earlier_run_that_have_ended_are_left_out(seen: Fleet) -> None:
    seen.see(workload(RESERVED, ADMITTED, condition("Finished", 9)))
    assert seen.recorder.result(fleet(), {EUROPE: [], US: []}, BEGIN, 1).records == ()


def test_the_report_has_the_quotas_of_the_clusters_that_run_jobs(seen: Fleet) -> None:
    seen.see(workload(RESERVED, ADMITTED), workload(RESERVED, ADMITTED, flavor="l4-spot"), pod("a", 6))
    spec = fleet()
    kinds = ("ClusterQueue", "Cohort")
    queues = {name: [item for item in render_cluster(spec, name) if item["kind"] in kinds] for name in (EUROPE, US)}
    data = report_data([("", seen.recorder.result(spec, queues, BEGIN + 50, 7))])
    [section] = data["sections"]
    quotas = {(one["cluster"], one["name"]): one["quota"] for one in section["quotas"] if one["resource"] == GPU}
    assert quotas == {(EUROPE, "l4-spot"): 2, (US, "l4-spot"): 2}
    [job] = section["jobs"]
    assert job[:6] == ["team-a/train", "gpu", "team-a", "Admitted: Admitted", "l4-spot", EUROPE]
    assert section["runs"][0]["usd"] > 0


def test_without_jobs_there_is_an_empty_report(seen: Fleet) -> None:
    seen.see(None)
    [section] = report_data([("", seen.recorder.result(fleet(), {EUROPE: [], US: []}, BEGIN, 1))])["sections"]
    assert section["counts"]["workloads"] == 0


def test_what_the_core_cannot_read_is_said(seen: Fleet) -> None:
    item = workload(WAITS)
    item["status"] |= {
        "admission": {
            "clusterQueue": "gpu",
            "podSetAssignments": [{"name": "main", "delayedTopologyRequest": "Pending"}],
        },
        "admissionChecks": [{"name": "c", "podSetUpdates": [{"name": "main", "nodeSelector": {"pool": "x"}}]}],
    }
    with pytest.raises(NotModelledError, match="placement by an admission check's podSetUpdates"):
        seen.see(item)
