"""Dumps of live clusters: what holds quota holds it, what waits is where Kueue has it, then time goes on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.objects import API, at, cluster, job
from tests.simulation.test_raw import run

LOOKED_AT = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "insufficient unused quota"}


def workload(name: str, second: int, cpu: str = "3", since: int | None = None, **spec: Any) -> dict[str, Any]:
    """A Workload; `since`: it has had quota since that second."""
    template = job(name, 0, cpu=cpu)["spec"]["template"]
    usage = {"name": "main", "count": 1, "flavors": {"cpu": "rf"}, "resourceUsage": {"cpu": cpu}}
    status: dict[str, Any] = {}
    if since is not None:
        status = {
            "admission": {"clusterQueue": "cq", "podSetAssignments": [usage]},
            "conditions": [
                {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": at(since)}
                for kind in ("QuotaReserved", "Admitted")
            ],
        }
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": at(second)},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": template}], **spec},
        "status": status,
    }


def looked_at(item: dict[str, Any], second: int) -> dict[str, Any]:
    """The same, left without quota by a cycle at that second."""
    return {**item, "status": {"conditions": [{**LOOKED_AT, "lastTransitionTime": at(second)}]}}


def held(item: dict[str, Any], seconds: int) -> dict[str, Any]:
    """The same, that runs so many seconds."""
    annotations = {"kueue-fleet.dev/run-seconds": str(seconds)}
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}


def test_what_holds_quota_now_holds_it_before_what_is_older() -> None:
    low = looked_at(workload("low", 60), 121)
    result = run(*cluster(cpu=4), low, workload("high", 90, since=120, priority=100))
    assert [result[name]["state"] for name in ("low", "high")] == ["Pending", "Admitted"]
    assert (result["low"]["arrivedAt"], result["low"]["reason"]) == (0, "WaitingForQuota")


def test_what_waits_gets_the_quota_when_it_comes_free() -> None:
    result = run(*cluster(cpu=4), looked_at(workload("low", 60), 121), held(workload("high", 90, since=120), 30))
    assert (result["high"]["finishedAt"], result["low"]["admittedAt"]) == (90, 91)


def test_what_a_cycle_put_aside_stays_so_until_something_happens() -> None:
    """Kueue does not look at it again for quota that came free without its knowledge, as by a stopped LocalQueue."""
    waits = looked_at(workload("waits", 0), 10)
    assert run(*cluster(cpu=4), waits)["waits"]["state"] == "Pending"
    other = job("other", 60, "10", cpu="1")
    assert run(*cluster(cpu=4), waits, other)["waits"]["admittedAt"] == 71


def test_an_equal_workload_is_put_aside_with_it() -> None:
    waits = looked_at(workload("waits", 0), 10)
    assert run(*cluster(cpu=4), waits, workload("equal", 5))["equal"]["state"] == "Pending"


def test_a_strict_queue_looks_at_its_head_again() -> None:
    waits = looked_at(workload("waits", 0), 10)
    assert run(*cluster(cpu=4, queueingStrategy="StrictFIFO"), waits)["waits"]["admittedAt"] == 10


def test_what_no_cycle_has_looked_at_since_its_eviction_is_a_head() -> None:
    back = looked_at(workload("back", 0), 10)
    evicted = {**LOOKED_AT, "type": "Evicted", "status": "True", "reason": "Preempted", "lastTransitionTime": at(9)}
    back["status"]["conditions"].append(evicted)
    assert run(*cluster(cpu=4), back)["back"]["admittedAt"] == 10


def test_what_kueue_has_queued_again_is_a_head() -> None:
    back = looked_at(workload("back", 0), 10)
    message = "Workload is pending evaluation in the scheduling queue"
    back["status"]["conditions"][0] |= {"reason": "PendingEvaluation", "message": message}
    assert run(*cluster(cpu=4), back)["back"]["admittedAt"] == 10


@pytest.mark.parametrize(
    ("cohorts", "admitted"),
    [(["root", "co"], 62), (["root"], None), ([], None)],
    ids=["below another cohort", "root", "by name only"],
)
def test_the_status_of_a_queue_wakes_the_tree_above_a_cohort_with_a_parent(
    cohorts: list[str], admitted: int | None
) -> None:
    """`runs` ends, whose LocalQueue is stopped, so that Kueue wakes no one for it; recorded with the real Kueue."""
    objects = cluster(cpu=4, cohortName=cohorts[-1] if cohorts else "co")
    for name, parent in zip(cohorts, [None, *cohorts], strict=False):
        spec = {"parentName": parent} if parent else {}
        objects.append({"apiVersion": API, "kind": "Cohort", "metadata": {"name": name}, "spec": spec})
    stopped = {**objects[2], "metadata": {"name": "a", "namespace": "default"}}
    objects.append({**stopped, "spec": {"clusterQueue": "cq", "stopPolicy": "Hold"}})
    runs = held(workload("runs", 0, since=0, queueName="a"), 60)
    assert run(*objects, runs, workload("waits", 10))["waits"]["admittedAt"] == admitted


def test_a_status_that_was_written_before_the_dump_wakes_nothing() -> None:
    objects = cluster(cpu=4, cohortName="co")
    objects.append({"apiVersion": API, "kind": "Cohort", "metadata": {"name": "root"}})
    objects.append({"apiVersion": API, "kind": "Cohort", "metadata": {"name": "co"}, "spec": {"parentName": "root"}})
    assert run(*objects, looked_at(workload("waits", 0), 10), until=3000)["waits"]["state"] == "Pending"


def test_a_kind_that_kueues_configuration_does_not_name_is_left_out() -> None:
    text = "integrations: {frameworks: [kubeflow.org/mpijob]}"
    settings = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"controller_manager_config.yaml": text}}
    assert run(*cluster(cpu=4), settings, job("train", 0)) == {}


def test_the_backoff_of_an_evicted_workload_goes_on() -> None:
    back = workload("back", 0)
    requeued = {"type": "Requeued", "status": "False", "reason": "PodsReadyTimeout", "lastTransitionTime": at(10)}
    back["status"] = {"conditions": [requeued], "requeueState": {"count": 1, "requeueAt": at(70)}}
    assert run(*cluster(cpu=4), back)["back"]["admittedAt"] == 70


def test_a_backoff_that_is_over_by_the_dumps_moment_holds_nothing_back() -> None:
    back = workload("back", 0)
    requeued = {"type": "Requeued", "status": "False", "reason": "PodsReadyTimeout", "lastTransitionTime": at(10)}
    back["status"] = {"conditions": [requeued], "requeueState": {"count": 1, "requeueAt": at(70)}}
    result = run(*cluster(cpu=4), back, workload("other", 80, cpu="1", since=90))
    assert result["back"]["admittedAt"] == 90


def test_a_job_without_a_workload_comes_after_those_that_are_there() -> None:
    late = job("late", 0, cpu="3")
    del late["metadata"]["creationTimestamp"]
    first, later = job("first", 60, cpu="3"), workload("holder", 0, since=90)
    result = run(*cluster(cpu=4), late, first, later)
    assert [result[name]["state"] for name in ("holder", "first", "late")] == ["Admitted", "Pending", "Pending"]
    assert [result[name]["arrivedAt"] for name in ("first", "late")] == [60, 90]


def test_an_end_before_the_dumps_moment_shows_its_state() -> None:
    result = run(*cluster(cpu=4), looked_at(workload("low", 60), 121), workload("high", 90, since=120), until=5)
    assert [result[name]["state"] for name in ("low", "high")] == ["Pending", "Admitted"]


def test_pods_of_a_workload_that_runs_longer_than_pods_may_take_are_ready() -> None:
    result = run(*cluster(cpu=4), workload("old", 0, since=0), looked_at(workload("waits", 1), 3599), until=9000)
    assert result["old"]["evictions"] == []
