"""Admission fair sharing: what LocalQueues have used, and that it orders them.

Source: kueue@v0.19.2 pkg/util/admissionfairsharing/admission_fair_sharing_test.go, pkg/cache/queue/afs,
pkg/scheduler/scheduler_afs_test.go, pkg/controller/core/workload_controller_test.go (TestUpdateSettlesAfsEntryPenalty,
TestUpdateDropsUnsettleableAfsEntryPenalty, TestDeleteSubtractsPendingAfsEntryPenalty).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decide.build import Cluster, job, queue

from kueue_admission.api.cluster_queue import AdmissionCheckStrategyRule, ClusterQueuePreemption
from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CheckStateChanged, Deleted, Finished, PodsStopped, TimePassed
from kueue_admission.decide.model import (
    AdmissionCheck,
    AdmissionFairSharing,
    CheckState,
    ClusterQueue,
    Configuration,
    LocalQueue,
)
from kueue_admission.decide.queue.usage_ledger import NANO, UsageLedger
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.kueue_objects import parse_objects

HALF_LIFE, INTERVAL = 600.0, 300.0
FAIR = AdmissionFairSharing(HALF_LIFE, INTERVAL)
ALPHA = 1.0 - 0.5 ** (INTERVAL / HALF_LIFE)


def used(engine: Engine, name: str) -> float:
    ledger = engine.cache.ledger
    assert ledger is not None
    return ledger.usage(f"ns/{name}")


def by_usage(**changes: Any) -> ClusterQueue:
    return queue(usage_based=True, **changes)


def cluster(spec: ClusterQueue, settings: AdmissionFairSharing | None = FAIR, **changes: Any) -> Cluster:
    """A ClusterQueue with the LocalQueues `a` and `b`, and `c` of the weight 0."""
    weights = {"a": 1.0, "b": 1.0, "c": 0.0}
    configuration = Configuration(wait_for_pods_ready=None, admission_fair_sharing=settings)
    queues = tuple(LocalQueue("ns", name, "cq", fair_weight=weight) for name, weight in weights.items())
    return Cluster(spec, configuration=configuration, local_queues=queues, **changes)


class TestOrder:
    def test_the_local_queue_that_used_less_comes_first(self) -> None:
        result = cluster(by_usage(cores=2))
        for name, to in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            result.submit(job(name, to=to, created=float(name[1])))
        result.cycle()
        result.cycle()
        assert {key for key, info in result.engine.workloads.items() if info.is_admitted} == {"ns/a1", "ns/b1"}

    def test_it_comes_before_priority(self) -> None:
        result = cluster(by_usage(cores=2))
        result.submit(job("a1", to="a", priority=5))
        result.cycle()
        result.submit(job("a2", to="a", priority=5))
        result.submit(job("b1", to="b"))
        result.cycle()
        assert result.engine.workloads["ns/b1"].is_admitted

    def test_a_weight_of_zero_comes_last(self) -> None:
        result = cluster(by_usage(cores=1))
        result.submit(job("c1", to="c", priority=5))
        result.submit(job("b1", to="b"))
        result.cycle()
        assert result.engine.workloads["ns/b1"].is_admitted

    @pytest.mark.parametrize(
        ("spec", "settings"), [(queue(cores=2), FAIR), (by_usage(cores=2), None), (by_usage(cores=2), FAIR)]
    )
    def test_only_where_the_queue_and_the_configuration_say_so(
        self, spec: ClusterQueue, settings: AdmissionFairSharing | None
    ) -> None:
        result = cluster(spec, settings)
        for name, to in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            result.submit(job(name, to=to, created=float(ord(name[0]) + int(name[1]))))
        result.cycle()
        result.cycle()
        first = "ns/b1" if spec.usage_based and settings else "ns/a2"
        assert result.engine.workloads[first].is_admitted

    def test_a_shape_that_is_parked_is_parked_for_every_local_queue(self) -> None:
        result = cluster(by_usage(cores=1))
        result.submit(job("a1", 2, to="a"))
        result.submit(job("b1", 2, to="b"))
        result.cycle()
        assert not result.engine.wants_cycle
        result.submit(job("c1", 2, to="c"))
        assert not result.engine.wants_cycle

    def test_a_preemptor_takes_from_the_local_queue_that_used_more(self) -> None:
        preemption = ClusterQueuePreemption(within_cluster_queue="LowerPriority")
        result = cluster(by_usage(cores=4, preemption=preemption))
        result.submit(job("a1", 3, to="a", priority=2))
        result.submit(job("b1", 1, to="b", priority=1))
        result.cycle()
        result.cycle()
        result.submit(job("c1", 1, to="c", priority=3))
        result.cycle()
        assert [key for key, info in result.engine.workloads.items() if info.is_evicted] == ["ns/a1"]


class TestUsage:
    def test_a_reservation_costs_a_penalty_that_becomes_usage_when_it_is_admitted(self) -> None:
        result = cluster(by_usage())
        result.submit(job("a1", 4, to="a"))
        result.cycle()
        assert used(result.engine, "a") == pytest.approx(4 * ALPHA)
        assert used(result.engine, "b") == 0.0

    def test_it_is_sampled_and_decays(self) -> None:
        result = cluster(by_usage())
        result.submit(job("a1", 4, to="a"))
        result.cycle()
        result.engine.handle(TimePassed(INTERVAL - 1))
        assert used(result.engine, "a") == pytest.approx(4 * ALPHA)
        result.engine.handle(TimePassed(INTERVAL))
        sampled = 4 * ALPHA * (1 - ALPHA) + 4 * ALPHA
        assert used(result.engine, "a") == pytest.approx(sampled)
        result.engine.handle(Finished(INTERVAL, "ns/a1"))
        result.engine.handle(TimePassed(INTERVAL + HALF_LIFE))
        assert used(result.engine, "a") == pytest.approx(sampled / 2)

    def test_a_half_life_of_zero_forgets_at_once(self) -> None:
        result = cluster(by_usage(), AdmissionFairSharing(0.0, INTERVAL))
        result.submit(job("a1", 4, to="a"))
        result.cycle()
        result.engine.handle(TimePassed(INTERVAL))
        assert used(result.engine, "a") == 0.0

    def test_resources_and_local_queues_have_weights(self) -> None:
        ledger = UsageLedger(AdmissionFairSharing(600.0, 300.0, {"cpu": 3.0}), Behaviours())
        consumed = (("cpu", 2 * NANO), ("gpu", NANO))
        ledger.configure(ledger.settings, [LocalQueue("ns", "a", "cq", "None", 0.5, consumed, 0.0)])
        assert ledger.usage("ns/a") == (3.0 * 2 + 1) / 0.5

    @pytest.mark.parametrize("end", ["delete", "finish", "reject"])
    def test_a_penalty_that_is_never_settled_is_given_back(self, end: str) -> None:
        rule = AdmissionCheckStrategyRule.model_construct(name="check", on_flavors=())
        result = cluster(by_usage(checks=(rule,)), checks=(AdmissionCheck("check", "example.com/x"),))
        result.submit(job("a1", 4, to="a"))
        result.cycle()
        assert used(result.engine, "a") == pytest.approx(4 * ALPHA)
        match end:
            case "delete":
                result.engine.handle(Deleted(1.0, "ns/a1"))
            case "finish":
                result.engine.handle(Finished(1.0, "ns/a1"))
            case _:
                result.engine.handle(CheckStateChanged(1.0, "ns/a1", "check", CheckState.REJECTED))
                result.engine.handle(PodsStopped(1.0, "ns/a1"))
        assert used(result.engine, "a") == 0.0

    def test_it_is_part_of_a_snapshot(self) -> None:
        result = cluster(by_usage())
        result.submit(job("a1", 4, to="a"))
        result.cycle()
        result.engine.handle(TimePassed(INTERVAL + 10))
        again = Engine.from_snapshot(result.engine.snapshot())
        assert used(again, "a") == used(result.engine, "a") > 0
        again.handle(TimePassed(2 * INTERVAL))
        result.engine.handle(TimePassed(2 * INTERVAL))
        assert used(again, "a") == used(result.engine, "a")

    def test_it_is_read_from_the_status_of_a_local_queue(self) -> None:
        sampled = {"consumedResources": {"cpu": "1999984999n"}, "lastUpdate": "2026-01-01T00:00:00Z"}
        item = {
            "kind": "LocalQueue",
            "metadata": {"name": "a", "namespace": "ns"},
            "spec": {"clusterQueue": "cq", "fairSharing": {"weight": "500m"}},
            "status": {"fairSharing": {"admissionFairSharingStatus": sampled}},
        }
        (result,) = parse_objects([item]).objects.local_queues
        assert (result.fair_weight, dict(result.consumed), result.sampled) == (0.5, {"cpu": 1999984999}, 1767225600.0)

    def test_the_configuration_has_kueues_defaults(self) -> None:
        given = parse_configuration({"admissionFairSharing": {"usageHalfLifeTime": "168h"}})
        assert given.admission_fair_sharing == AdmissionFairSharing(168 * 3600.0, 300.0)
        off = {"admissionFairSharing": {"usageHalfLifeTime": "1h"}, "featureGates": {"AdmissionFairSharing": False}}
        assert parse_configuration(off).admission_fair_sharing is None


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.floats(0, 900)), min_size=1, max_size=12))
def test_usage_is_never_more_than_what_was_used_at_once(steps: list[tuple[str, int, float]]) -> None:
    """Samples approach what is admitted; a penalty adds at most the part that one interval would have added."""
    result = cluster(by_usage(cores=1000))
    admitted = {"a": 0, "b": 0}
    for number, (to, cores, later) in enumerate(steps):
        result.submit(job(f"w{number}", cores, to=to))
        result.cycle()
        admitted[to] += cores
        result.now += later
        result.engine.handle(TimePassed(result.now))
        for name, most in admitted.items():
            assert 0.0 <= used(result.engine, name) <= most * (1 + ALPHA)
    result.engine.handle(TimePassed(result.engine.now + 40 * HALF_LIFE))
    for name, most in admitted.items():
        assert used(result.engine, name) == pytest.approx(most, abs=1e-6)
