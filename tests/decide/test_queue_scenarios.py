"""Kueue's own cases of the pending workloads of a queue: order, parking, back-off, and who is in it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.decide.expand import ids, load_scenarios, manifests
from tests.decide.harness import configuration, one_workload

from kueue_admission.api.cluster_queue import QueueingStrategy
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CycleStarted, Submitted
from kueue_admission.decide.gates import Gates
from kueue_admission.decide.model import Objects, WaitForPodsReady, Workload, WorkloadStatus
from kueue_admission.decide.pods import PodSet
from kueue_admission.decide.queue.pending import PendingQueue, Place
from kueue_admission.decide.reasons import QuotaReservedReason, RequeueReason
from kueue_admission.decide.scheduler.cache import Cache, NoPlaces
from kueue_admission.decide.workload.scan_progress import ScanProgress
from kueue_admission.decide.workload.state import WorkloadInfo, refresh_order
from kueue_admission.read.kueue_objects import parse_objects

REQUEUE = load_scenarios("queue_requeue")
ORDER = load_scenarios("queue_order")
BACKOFF = load_scenarios("queue_backoff")
MEMBERS = load_scenarios("queue_members")
SHAPES = load_scenarios("queue_shapes")
HEADS = load_scenarios("queue_heads")
STRICT: QueueingStrategy = "StrictFIFO"
BEST_EFFORT: QueueingStrategy = "BestEffortFIFO"
CACHE = Cache(Objects(), NoPlaces())


def info(name: str, fields: dict[str, Any], *, by_creation: bool = False) -> WorkloadInfo:
    at, reason = fields.get("evicted", (None, None))
    status = WorkloadStatus(
        evicted_at=at,
        evicted_reason=reason,
        requeued=fields.get("requeued"),
        requeue_at=fields.get("requeueAt"),
        requeue_count=fields.get("count", 0),
    )
    pods = PodSet(requests=(("cpu", 1000 * fields.get("cpus", 1)),))
    workload = Workload(
        namespace=fields.get("namespace", "ns1"),
        name=name,
        uid=name,
        queue="",
        pod_sets=(pods,),
        created=fields.get("created", 0),
        priority=fields.get("priority", 0),
        status=status,
    )
    result = CACHE.info(workload)
    refresh_order(result, Gates(), WaitForPodsReady(requeue_by_eviction=not by_creation))
    return result


def pending(strategy: QueueingStrategy = BEST_EFFORT) -> PendingQueue:
    return PendingQueue(strategy, lambda namespace: namespace in ("ns1", "ns2"))


@pytest.mark.parametrize("case", REQUEUE, ids=ids(REQUEUE))
def test_where_a_workload_goes_back_to(case: dict[str, Any]) -> None:
    queue = pending(STRICT if case.get("strict") else BEST_EFFORT)
    one = info("workload-1", {})
    if "tried" in case:
        one.last_progress = ScanProgress(tuple(case["tried"]), 0, 0, one.shape)
    place = queue.requeue(one, RequeueReason(case["reason"]), QuotaReservedReason.WAITING_FOR_QUOTA, 0)
    if "parked" in case:
        assert (place is Place.PARKED) is case["parked"]
    if "sticky" in case:
        queue.push(info("high", {"priority": 100}), 0)
        first = queue.pop()
        assert first is not None
        assert (first.key == one.key) is case["sticky"]
        assert queue.is_preemptor(one.key) is case["sticky"]
    if "shape" in case:
        assert (queue.push(info("another", {}), 0) is Place.PARKED) is case["shape"]


@pytest.mark.parametrize("case", ORDER, ids=ids(ORDER))
def test_the_order_of_a_queue(case: dict[str, Any]) -> None:
    queue = pending(STRICT)
    by_creation = case.get("byCreation", False)
    for name, fields in case["workloads"].items():
        queue.push(info(name, fields, by_creation=by_creation), 0)
    result = []
    while (one := queue.pop()) is not None:
        result.append(one.workload.name)
        if len(result) == 1 and "then" in case:
            for name, fields in case["then"]["push"].items():
                queue.push(info(name, fields), 0)
            for name in case["then"]["delete"]:
                assert queue.delete(f"ns1/{name}")
    assert result == case["want"]


@pytest.mark.parametrize("case", BACKOFF, ids=ids(BACKOFF))
def test_the_back_off(case: dict[str, Any]) -> None:
    one = info("workload-1", case)
    if "want" in case:
        assert one.backoff_expired(0) is case["want"]
        return
    queue = pending()
    for _ in range(2):
        assert queue.push(one, 0) is Place[case["place"]]
        assert len(queue) == 1
    assert (queue.pop() is None) == (case["place"] == "HELD")


@pytest.mark.parametrize("case", MEMBERS, ids=ids(MEMBERS))
def test_who_competes(case: dict[str, Any]) -> None:
    queue = pending()
    moved = None
    for step in case["steps"]:
        what, _, name = step.partition(" ")
        if what == "flush":
            before = queue.keys(Place.COMPETING)
            queue.reactivate(0)
            moved = len(set(queue.keys(Place.COMPETING)) - set(before))
            continue
        one = info(name, case["workloads"][name])
        if what == "push":
            queue.push(one, 0)
        elif what == "park":
            queue.requeue(one, RequeueReason.GENERIC, None, 0)
        elif what == "again":
            queue.requeue(one, RequeueReason.FAILED_AFTER_NOMINATION, None, 0)
        elif what == "pop":
            popped = queue.pop()
            assert popped is not None
            assert popped.workload.name == name
        else:
            assert what == "delete"
            assert queue.delete(one.key)
    assert [key.partition("/")[2] for key in queue.keys(Place.COMPETING)] == case["competing"]
    assert len(queue) == case["pending"]
    if "moved" in case:
        assert moved == case["moved"]


@pytest.mark.parametrize("case", SHAPES, ids=ids(SHAPES))
def test_workloads_of_one_shape(case: dict[str, Any]) -> None:
    queue = pending()
    for number, (name, cpus) in enumerate(case["workloads"].items()):
        queue.push(info(name, {"cpus": cpus, "created": number}), 0)
    first = queue.pop()
    assert first is not None
    assert first.workload.name == case["nofit"]
    queue.requeue(first, RequeueReason.NO_FIT, QuotaReservedReason.WAITING_FOR_QUOTA, 0)
    if case.get("flush"):
        queue.reactivate(0)
    for name, cpus in case.get("push", {}).items():
        queue.push(info(name, {"cpus": cpus, "created": 9}), 0)
    for place in (Place.COMPETING, Place.PARKED):
        assert [key.partition("/")[2] for key in queue.keys(place)] == case[place.name.lower()]


@pytest.mark.parametrize("case", HEADS, ids=ids(HEADS))
def test_who_is_queued_and_who_is_a_head(case: dict[str, Any]) -> None:
    engine = Engine(parse_objects(manifests({**case, "workloads": {}}), configuration(case)).objects)
    workloads = case["workloads"] if "workloads" in case else {"wl": case["workload"]}
    namespace = case.get("namespace", "default")
    now = 1e10
    for name, fields in workloads.items():
        short = {"podSets": {"main": {}}, **fields}
        engine.handle(Submitted(now, one_workload(f"{namespace}/{name}", short)))
    if "heads" in case:
        engine.handle(CycleStarted(now))
        assert sorted(entry.info.workload.name for entry in engine.last_entries) == case["heads"]
    else:
        assert (f"{namespace}/wl" in engine.pending("foo-cq")) is case["queued"]
