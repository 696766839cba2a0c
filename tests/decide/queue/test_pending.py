"""The pending workloads of a queue: order, parking by shape, what comes back when."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from tests.decide.build import job, objects, queue

from kueue_admission.api.cluster_queue import QueueingStrategy
from kueue_admission.decide.queue.pending import PendingQueue, Place
from kueue_admission.decide.reasons import QuotaReservedReason, RequeueReason
from kueue_admission.decide.scheduler.cache import Cache, NoPlaces
from kueue_admission.decide.workload.scan_progress import ScanProgress
from kueue_admission.decide.workload.state import WorkloadInfo

CACHE = Cache(objects(queue()), NoPlaces())
STRICT: QueueingStrategy = "StrictFIFO"
BEST_EFFORT: QueueingStrategy = "BestEffortFIFO"


def info(name: str, cores: int = 1, priority: int = 0, created: float = 0.0, namespace: str = "ns") -> WorkloadInfo:
    return CACHE.info(job(name, cores, priority=priority, created=created, namespace=namespace))


def pending(strategy: QueueingStrategy = BEST_EFFORT, *infos: WorkloadInfo) -> PendingQueue:
    result = PendingQueue(strategy, lambda namespace: namespace == "ns")
    for one in infos:
        result.push(one, 0)
    return result


def pop_all(q: PendingQueue) -> list[str]:
    result = []
    while (one := q.pop()) is not None:
        result.append(one.workload.name)
    return result


class TestOrder:
    def test_priority_then_time_then_uid(self) -> None:
        q = pending(BEST_EFFORT, info("b"), info("a"), info("late", created=5), info("high", priority=1, created=9))
        assert pop_all(q) == ["high", "a", "b", "late"]

    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3)), max_size=40), st.randoms())
    def test_any_mix_of_pushes_parkings_and_deletions_pops_in_order(
        self, shapes: list[tuple[int, int, int]], rng: random.Random
    ) -> None:
        q = pending()
        infos = [info(f"w{i}", c, p, float(t)) for i, (p, t, c) in enumerate(shapes)]
        for one in infos:
            q.push(one, 0)
        gone = {one.key for one in infos if rng.random() < 0.3}
        for key in gone:
            assert q.delete(key)
        for _ in range(3):
            head = q.pop()
            if head is not None:
                q.requeue(head, RequeueReason.NO_FIT, QuotaReservedReason.WAITING_FOR_QUOTA, 0)
            if rng.random() < 0.5:
                q.reactivate(0)
        q.reactivate(0)
        left = sorted((one for one in infos if one.key not in gone), key=lambda one: one.order)
        assert pop_all(q) == [one.workload.name for one in left]


class TestParking:
    def test_a_strict_queue_keeps_its_head(self) -> None:
        q = pending(STRICT, info("a"), info("b", created=1))
        head = q.pop()
        assert head is not None
        assert q.requeue(head, RequeueReason.NO_FIT, None, 0) is Place.COMPETING
        assert pop_all(q) == ["a", "b"]

    def test_everything_of_a_shape_is_parked_at_once(self) -> None:
        q = pending(BEST_EFFORT, info("a"), info("b", created=1), info("big", 2, created=2))
        head = q.pop()
        assert head is not None
        q.requeue(head, RequeueReason.NO_FIT, QuotaReservedReason.EXCEEDS_MAX_QUOTA, 0)
        assert q.keys(Place.COMPETING) == ["ns/big"]
        assert q.keys(Place.PARKED) == ["ns/a", "ns/b"]
        assert q.parked_for("ns/b") is QuotaReservedReason.EXCEEDS_MAX_QUOTA

    def test_a_newcomer_of_a_parked_shape_is_parked(self) -> None:
        q = pending(BEST_EFFORT, info("a"))
        head = q.pop()
        assert head is not None
        q.requeue(head, RequeueReason.PREEMPTION_NO_CANDIDATES, None, 0)
        assert q.push(info("b", created=1), 0) is Place.PARKED
        assert q.push(info("other", 3), 0) is Place.COMPETING

    def test_a_reason_other_than_lack_of_room_parks_only_the_workload(self) -> None:
        q = pending(BEST_EFFORT, info("a"), info("b", created=1))
        head = q.pop()
        assert head is not None
        assert q.requeue(head, RequeueReason.GENERIC, None, 0) is Place.PARKED
        assert q.keys(Place.COMPETING) == ["ns/b"]

    def test_reactivation_brings_all_back(self) -> None:
        q = pending(BEST_EFFORT, info("a"), info("b", created=1))
        head = q.pop()
        assert head is not None
        q.requeue(head, RequeueReason.NO_FIT, None, 0)
        assert not q.has_competitors
        assert q.reactivate(0) == 2
        assert pop_all(q) == ["a", "b"]
        assert q.push(info("c"), 0) is Place.COMPETING

    def test_a_workload_with_flavors_left_to_try_competes_again(self) -> None:
        q = pending(BEST_EFFORT, info("a"))
        head = q.pop()
        assert head is not None
        head.last_progress = ScanProgress(({"cpu": 0},), 1, 1, head.shape)
        assert q.requeue(head, RequeueReason.NO_FIT, None, 0) is Place.COMPETING

    def test_a_namespace_that_does_not_match_stays_parked(self) -> None:
        q = pending(BEST_EFFORT, info("a", namespace="other"))
        head = q.pop()
        assert head is not None
        assert q.requeue(head, RequeueReason.NAMESPACE_MISMATCH, None, 0) is Place.PARKED
        assert q.reactivate(0) == 0
        assert not q.has_competitors


class TestBackoffAndPreemptors:
    def test_a_running_back_off_holds_the_workload(self) -> None:
        one = info("a")
        one.requeue_at = 10.0
        q = pending(BEST_EFFORT)
        assert q.push(one, 5) is Place.HELD
        assert q.reactivate(9) == 0
        assert q.reactivate(10) == 1
        assert q.pop() is one

    def test_a_preemptor_goes_first_in_a_best_effort_queue(self) -> None:
        q = pending(BEST_EFFORT, info("a"))
        head = q.pop()
        assert head is not None
        q.push(info("urgent", priority=5), 0)
        q.requeue(head, RequeueReason.PENDING_PREEMPTION, None, 0)
        assert q.is_preemptor("ns/a")
        assert pop_all(q) == ["a", "urgent"]

    def test_a_preemptor_waits_its_turn_in_a_strict_queue(self) -> None:
        q = pending(STRICT, info("a"))
        head = q.pop()
        assert head is not None
        q.push(info("urgent", priority=5), 0)
        q.requeue(head, RequeueReason.PENDING_PREEMPTION, None, 0)
        assert pop_all(q) == ["urgent", "a"]

    def test_an_update_of_a_workload_in_flight_leaves_it_there(self) -> None:
        one = info("a")
        q = pending(BEST_EFFORT, one)
        q.pop()
        assert q.push(one, 0) is Place.IN_FLIGHT
        assert q.place_of("ns/a") is Place.IN_FLIGHT
