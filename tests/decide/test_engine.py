"""The life of workloads: two phases, evictions, back-off, stopped queues, timeouts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.decide.build import Cluster, job, names, objects, queue

from kueue_admission.api.cluster_queue import AdmissionCheckStrategyRule, ClusterQueuePreemption, StopPolicy
from kueue_admission.decide.decisions import (
    Admitted,
    BackoffStarted,
    ChecksPending,
    Deactivated,
    DeactivationCause,
    Evicted,
    Inadmissible,
    Parked,
    Released,
    Requeued,
)
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.errors import InvariantError
from kueue_admission.decide.events import (
    ActiveChanged,
    AllowedFlavorsChanged,
    CheckStateChanged,
    CycleStarted,
    Deleted,
    Finished,
    GatedByChanged,
    ObjectsChanged,
    PodsReadyChanged,
    PodsStopped,
    PriorityChanged,
    ReclaimableChanged,
    Submitted,
    TimePassed,
)
from kueue_admission.decide.flavors.evidence import InsufficientQuota
from kueue_admission.decide.gates import Gates
from kueue_admission.decide.model import (
    AdmissionCheck,
    CheckState,
    Cohort,
    Configuration,
    LocalQueue,
    WaitForPodsReady,
)
from kueue_admission.decide.pods import PodSet
from kueue_admission.decide.queue.pending import Place
from kueue_admission.decide.reasons import AdmittedReason, EvictionReason, QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Outcome

PREEMPTING = ClusterQueuePreemption(within_cluster_queue="LowerPriority")


def checked() -> Cluster:
    cluster = Cluster(
        queue(checks=(AdmissionCheckStrategyRule(name="check"),)), checks=(AdmissionCheck("check", "example.com/c"),)
    )
    cluster.submit(job("a"))
    return cluster


def with_pods_ready(**settings: Any) -> Cluster:
    configuration = Configuration(wait_for_pods_ready=WaitForPodsReady(**settings))
    cluster = Cluster(queue(), configuration=configuration)
    cluster.submit(job("a"))
    cluster.cycle()
    return cluster


class TestQueueing:
    def test_a_cycle_admits_one_workload_of_each_queue(self) -> None:
        cluster = Cluster(queue("x"), queue("y"))
        cluster.submit(job("a", to="x"), job("b", to="x"), job("c", to="y"))
        assert cluster.cycle_names() == [
            ("QuotaReserved", "a"),
            ("Admitted", "a"),
            ("QuotaReserved", "c"),
            ("Admitted", "c"),
        ]

    def test_what_does_not_fit_comes_back_a_second_after_something_finished(self) -> None:
        cluster = Cluster(queue(cores=1))
        cluster.submit(job("a"), job("b", created=1))
        cluster.cycle()
        (parked,) = cluster.cycle()
        assert isinstance(parked, Parked)
        assert parked.reason is QuotaReservedReason.WAITING_FOR_QUOTA
        assert not cluster.engine.wants_cycle
        cluster.engine.handle(Finished(5, "ns/a"))
        assert cluster.engine.next_timer() == 6
        assert not cluster.engine.wants_cycle
        cluster.engine.handle(TimePassed(6))
        cluster.now = 6
        assert cluster.cycle_names() == [("QuotaReserved", "b"), ("Admitted", "b")]

    def test_a_strict_head_blocks_its_queue(self) -> None:
        cluster = Cluster(queue(cores=2, queueing_strategy="StrictFIFO"))
        cluster.submit(job("big", 3), job("small", created=1))
        (back,) = cluster.cycle()
        assert isinstance(back, Requeued)
        assert back.key == "ns/big"
        assert not cluster.admitted

    def test_a_workload_that_is_not_back_yet_is_no_head(self) -> None:
        cluster = Cluster(queue(cores=2))
        cluster.submit(job("late", 2), job("next", 2, created=1))
        result = cluster.engine.handle(CycleStarted(0, frozenset({"ns/late"})))
        assert names(result) == [("QuotaReserved", "next"), ("Admitted", "next")]
        (parked,) = cluster.cycle()
        assert (type(parked), parked.key) == (Parked, "ns/late")

    def test_a_workload_that_is_not_back_yet_is_parked_with_its_shape(self) -> None:
        cluster = Cluster(queue(cores=2))
        cluster.submit(job("late", 3), job("next", 3, created=1))
        result = cluster.engine.handle(CycleStarted(0, frozenset({"ns/late"})))
        assert names(result) == [("Parked", "next")]
        assert not cluster.engine.wants_cycle
        assert cluster.engine.pending("cq").keys(Place.PARKED) == ["ns/late", "ns/next"]

    @pytest.mark.parametrize(
        ("to", "message"),
        [("none", "LocalQueue none doesn't exist"), ("lost", "ClusterQueue gone doesn't exist")],
    )
    def test_a_missing_queue_is_named(self, to: str, message: str) -> None:
        local = (LocalQueue("ns", "cq", "cq"), LocalQueue("ns", "lost", "gone"))
        cluster = Cluster(queue(), local_queues=local)
        (result,) = cluster.submit(job("a", to=to))
        assert isinstance(result, Inadmissible)
        assert (result.reason, result.message) == ("Misconfigured", message)

    def test_a_gate_keeps_a_workload_out_until_it_is_gone(self) -> None:
        cluster = Cluster(queue())
        (result,) = cluster.submit(job("a", gated_by="example.com/gate"))
        assert isinstance(result, Inadmissible)
        assert result.reason == "AdmissionGated"
        cluster.engine.handle(GatedByChanged(0, "ns/a", ""))
        cluster.cycle()
        assert cluster.admitted == {"a"}

    def test_a_workload_gets_the_flavors_that_it_may_have(self) -> None:
        cluster = Cluster(queue(), configuration=Configuration(gates=Gates(concurrent_admission=True)))
        cluster.submit(job("a", allowed_flavors=("other",)))
        (parked,) = cluster.cycle()
        assert isinstance(parked, Parked)
        assert "due to WorkloadAllowedResourceFlavorAnnotation annotation" in parked.message
        # Another one of the same shape may have them all, and is not parked with it.
        cluster.submit(job("b", uid="b"))
        cluster.cycle()
        assert cluster.admitted == {"b"}
        cluster.engine.handle(AllowedFlavorsChanged(0, "ns/a", None))
        cluster.cycle()
        assert cluster.admitted == {"a", "b"}

    def test_without_the_feature_gate_it_may_have_all(self) -> None:
        cluster = Cluster(queue())
        cluster.submit(job("a", allowed_flavors=("other",)))
        cluster.cycle()
        assert cluster.admitted == {"a"}

    def test_a_raised_priority_changes_the_order(self) -> None:
        cluster = Cluster(queue(cores=1))
        cluster.submit(job("a"), job("b", created=1))
        cluster.engine.handle(PriorityChanged(0, "ns/b", 7))
        cluster.cycle()
        assert cluster.admitted == {"b"}

    def test_pods_that_are_no_longer_needed_free_quota(self) -> None:
        cluster = Cluster(queue(cores=3))
        pods = (PodSet(count=3, requests=(("cpu", 1000),)),)
        cluster.submit(job("a", pod_sets=pods), job("b", 2, created=1))
        cluster.cycle()
        cluster.cycle()
        cluster.engine.handle(ReclaimableChanged(1, "ns/a", (("main", 2),)))
        cluster.engine.handle(TimePassed(2))
        cluster.now = 2
        cluster.cycle()
        assert cluster.admitted == {"a", "b"}


class TestPreemption:
    def test_a_victim_keeps_its_quota_until_its_pods_are_gone(self) -> None:
        cluster = Cluster(queue(cores=1, preemption=PREEMPTING))
        cluster.submit(job("low"))
        cluster.cycle()
        cluster.submit(job("high", priority=1, created=1))
        evicted, requeued = cluster.cycle()
        assert isinstance(evicted, Evicted)
        assert (evicted.reason, evicted.preemptor) == (EvictionReason.PREEMPTED, "ns/high")
        assert evicted.message == (
            "Preempted to accommodate a workload (UID: high, JobUID: UNKNOWN) due to prioritization in the "
            "ClusterQueue; preemptor path: /cq; preemptee path: /cq"
        )
        assert isinstance(requeued, Requeued)
        assert requeued.reason is QuotaReservedReason.WAITING_FOR_PREEMPTED_WORKLOADS
        assert names(cluster.cycle()) == [("Requeued", "high")], "the eviction is not decided twice"
        assert names(cluster.engine.handle(PodsStopped(1, "ns/low"))) == [("Released", "low"), ("Queued", "low")]
        cluster.now = 1
        cluster.cycle()
        assert cluster.admitted == {"high"}

    def test_stopping_what_was_not_evicted_is_refused(self) -> None:
        cluster = Cluster(queue())
        cluster.submit(job("a"))
        cluster.cycle()
        with pytest.raises(InvariantError, match="not possible while it is Admitted"):
            cluster.engine.handle(PodsStopped(1, "ns/a"))


class TestChecks:
    def test_quota_first_then_admission_when_the_check_is_ready(self) -> None:
        cluster = checked()
        pending = cluster.cycle()[-1]
        assert isinstance(pending, ChecksPending)
        assert (pending.reason, pending.checks) == (AdmittedReason.UNSATISFIED_ADMISSION_CHECKS, ("check",))
        (admitted,) = cluster.engine.handle(CheckStateChanged(3, "ns/a", "check", CheckState.READY))
        assert isinstance(admitted, Admitted)

    def test_a_check_for_one_flavor_applies_to_that_flavor_only(self) -> None:
        cluster = Cluster(
            queue(checks=(AdmissionCheckStrategyRule(name="check", on_flavors=("other",)),)),
            checks=(AdmissionCheck("check", "example.com/c"),),
        )
        cluster.submit(job("a"))
        assert cluster.cycle_names() == [("QuotaReserved", "a"), ("Admitted", "a")]

    def test_retry_evicts(self) -> None:
        cluster = checked()
        cluster.cycle()
        (evicted,) = cluster.engine.handle(CheckStateChanged(3, "ns/a", "check", CheckState.RETRY, "no room"))
        assert isinstance(evicted, Evicted)
        assert evicted.reason is EvictionReason.ADMISSION_CHECK
        assert evicted.message == 'Evicted due to AdmissionCheck in Retry state: "check" (no room)'
        info = cluster.engine.workloads["ns/a"]
        assert (info.checks["check"].state, info.checks["check"].retry_count) == (CheckState.PENDING, 1)

    def test_a_retry_later_keeps_its_quota_until_then(self) -> None:
        cluster = checked()
        cluster.cycle()
        assert not cluster.engine.handle(CheckStateChanged(3, "ns/a", "check", CheckState.RETRY, requeue_after=60))
        assert not cluster.engine.handle(TimePassed(62))
        (evicted,) = cluster.engine.handle(TimePassed(63))
        assert isinstance(evicted, Evicted)
        cluster.engine.handle(PodsStopped(64, "ns/a"))
        assert cluster.engine.workloads["ns/a"].queue_time == 63, "it queues by the time of its eviction"
        cluster.now = 64
        assert cluster.cycle_names()[0] == ("QuotaReserved", "a"), "the delay is over already"

    def test_a_check_that_is_ready_before_the_time_of_its_retry_has_to_wait_for_it(self) -> None:
        cluster = checked()
        cluster.cycle()
        cluster.engine.handle(CheckStateChanged(3, "ns/a", "check", CheckState.RETRY, requeue_after=60))
        assert not cluster.engine.handle(CheckStateChanged(4, "ns/a", "check", CheckState.READY))
        (admitted,) = cluster.engine.handle(TimePassed(63))
        assert admitted == Admitted(63, "ns/a", "cq")

    def test_a_stopped_queue_is_drained_of_it_when_the_time_has_come(self) -> None:
        cluster = checked()
        cluster.cycle()
        cluster.engine.handle(CheckStateChanged(3, "ns/a", "check", CheckState.RETRY, requeue_after=60))
        cluster.engine.handle(CheckStateChanged(4, "ns/a", "check", CheckState.PENDING))
        (held,) = (replace(one, stop_policy="Hold") for one in cluster.engine.objects.cluster_queues)
        assert not cluster.engine.handle(ObjectsChanged(5, replace(cluster.engine.objects, cluster_queues=(held,))))
        assert Released(63, "ns/a", "cq") in cluster.engine.handle(TimePassed(63))

    def test_who_is_evicted_meanwhile_waits_for_the_rest_of_the_delay(self) -> None:
        cluster = Cluster(
            queue(checks=(AdmissionCheckStrategyRule(name="check"),), preemption=PREEMPTING),
            checks=(AdmissionCheck("check", "example.com/c"),),
        )
        cluster.submit(job("a", 10))
        cluster.cycle()
        cluster.engine.handle(CheckStateChanged(3, "ns/a", "check", CheckState.RETRY, requeue_after=60))
        cluster.now = 4
        cluster.submit(job("b", 10, priority=1))
        assert ("Evicted", "a") in cluster.cycle_names(), "preemption does not wait"
        cluster.engine.handle(PodsStopped(5, "ns/a"))
        cluster.now = 5
        cluster.cycle()
        cluster.engine.handle(Finished(6, "ns/b"))
        cluster.engine.handle(TimePassed(62))
        assert not cluster.engine.wants_cycle
        cluster.engine.handle(TimePassed(63))
        assert cluster.engine.wants_cycle

    def test_deactivation_forgets_the_delay(self) -> None:
        cluster = checked()
        cluster.cycle()
        cluster.engine.handle(CheckStateChanged(3, "ns/a", "check", CheckState.RETRY, requeue_after=60))
        cluster.engine.handle(ActiveChanged(4, "ns/a", False))
        cluster.engine.handle(PodsStopped(5, "ns/a"))
        cluster.engine.handle(ActiveChanged(6, "ns/a", True))
        assert cluster.engine.wants_cycle

    def test_rejected_deactivates(self) -> None:
        cluster = checked()
        cluster.cycle()
        decisions = cluster.engine.handle(CheckStateChanged(3, "ns/a", "check", CheckState.REJECTED, "never"))
        assert decisions[0] == Deactivated(3, "ns/a", DeactivationCause.ADMISSION_CHECK)
        released, inadmissible = cluster.engine.handle(PodsStopped(4, "ns/a"))
        assert isinstance(inadmissible, Inadmissible)
        cluster.engine.handle(ActiveChanged(5, "ns/a", True))
        cluster.now = 5
        assert cluster.cycle_names()[0] == ("QuotaReserved", "a")
        assert released.key == "ns/a"

    def test_quota_of_a_deactivated_workload_is_free_before_its_pods_are_gone(self) -> None:
        check = AdmissionCheck("check", "example.com/c")
        cluster = Cluster(queue(cores=1, checks=(AdmissionCheckStrategyRule(name="check"),)), checks=(check,))
        cluster.submit(job("a"))
        cluster.cycle()
        cluster.submit(job("b"))
        cluster.cycle()
        cluster.engine.handle(CheckStateChanged(3, "ns/a", "check", CheckState.REJECTED, "never"))
        cluster.engine.handle(TimePassed(4))
        cluster.now = 4
        assert ("QuotaReserved", "b") in cluster.cycle_names()
        cluster.engine.handle(PodsStopped(5, "ns/a"))
        assert cluster.engine.workloads["ns/b"].is_reserved

    def test_a_retry_without_a_reservation_keeps_it_out(self) -> None:
        cluster = checked()
        cluster.engine.handle(CheckStateChanged(0, "ns/a", "check", CheckState.RETRY))
        (parked,) = cluster.cycle()
        assert isinstance(parked, Parked)
        assert parked.message == "The workload has failed admission checks"

    def test_a_check_that_is_not_active_makes_the_queue_inactive(self) -> None:
        cluster = Cluster(
            queue(checks=(AdmissionCheckStrategyRule(name="check"),)),
            checks=(AdmissionCheck("check", "example.com/c", active=False),),
        )
        cluster.submit(job("a"))
        assert not cluster.engine.wants_cycle
        assert cluster.cycle() == []


class TestStopPolicies:
    def test_hold_admits_nothing_more_and_evicts_nothing(self) -> None:
        cluster = Cluster(queue())
        cluster.submit(job("a"))
        cluster.cycle()
        cluster.submit(job("b"))
        cluster.engine.handle(ObjectsChanged(1, objects(queue(stop_policy="Hold"))))
        cluster.now = 1
        assert cluster.cycle() == []
        assert cluster.admitted == {"a"}

    def test_a_queue_whose_strategy_stays_keeps_its_pending_workloads(self) -> None:
        cluster = Cluster(queue())
        before = cluster.engine.pending("cq")
        cluster.engine.handle(ObjectsChanged(1, objects(queue(queueing_strategy="".join(("BestEffort", "FIFO"))))))
        assert cluster.engine.pending("cq") is before

    def test_drain_evicts_and_a_restart_requeues(self) -> None:
        cluster = Cluster(queue())
        cluster.submit(job("a"))
        cluster.cycle()
        drained = cluster.engine.handle(ObjectsChanged(1, objects(queue(stop_policy="HoldAndDrain"))))
        assert isinstance(drained[0], Evicted)
        assert drained[0].reason is EvictionReason.CLUSTER_QUEUE_STOPPED
        cluster.engine.handle(PodsStopped(2, "ns/a"))
        assert not cluster.engine.wants_cycle
        cluster.engine.handle(ObjectsChanged(3, objects(queue())))
        cluster.engine.handle(TimePassed(4))
        cluster.now = 4
        cluster.cycle()
        assert cluster.admitted == {"a"}

    def test_a_stopped_local_queue_takes_its_workloads_out(self) -> None:
        cluster = Cluster(queue())
        cluster.submit(job("a"))
        stopped = (LocalQueue("ns", "cq", "cq", "Hold"),)
        (result,) = cluster.engine.handle(ObjectsChanged(1, objects(queue(), local_queues=stopped)))
        assert isinstance(result, Inadmissible)
        assert (result.reason, result.message) == ("Suspended", "LocalQueue cq is inactive")
        assert not cluster.engine.wants_cycle

    def test_a_local_queue_that_opens_brings_back_what_was_parked(self) -> None:
        """At once, and although what is equal to it was parked."""
        cluster = Cluster(queue(cores=2))
        cluster.submit(job("a", 9))
        assert [one.key for one in cluster.cycle()] == ["ns/a"]
        assert cluster.cycle() == []
        held = (LocalQueue("ns", "cq", "cq", "Hold"),)
        cluster.engine.handle(ObjectsChanged(1, objects(queue(cores=2), local_queues=held)))
        cluster.engine.handle(ObjectsChanged(1, objects(queue(cores=2))))
        cluster.now = 1
        assert [one.key for one in cluster.cycle()] == ["ns/a"]
        assert cluster.cycle() == []

    @pytest.mark.parametrize(("policy", "woken"), [("None", True), ("Hold", False)])
    def test_quota_that_a_stopped_local_queues_workload_gives_back_wakes_nobody(
        self, policy: StopPolicy, woken: bool
    ) -> None:
        cluster = Cluster(queue("x", 1, cohort="co"), queue("y", 0, cohort="co"))
        cluster.submit(job("a", to="x"))
        cluster.cycle()
        cluster.submit(job("b", to="y"))
        cluster.cycle()
        changed = tuple(
            replace(local, stop_policy=policy) if local.name == "x" else local
            for local in cluster.engine.objects.local_queues
        )
        cluster.engine.handle(ObjectsChanged(1, replace(cluster.engine.objects, local_queues=changed)))
        cluster.engine.handle(Finished(2, "ns/a"))
        assert (cluster.engine.next_timer() == 3) is woken

    def test_only_the_tree_that_changed_is_looked_at_again(self) -> None:
        queues = queue("x", 1, cohort="co"), queue("y", 1, cohort="co"), queue("z", 1)
        cluster = Cluster(*queues)
        for name in "xyz":
            cluster.submit(job(name, 9, to=name))
        cluster.cycle()
        stopped = tuple(
            replace(local, stop_policy="Hold") if local.name == "z" else local
            for local in cluster.engine.objects.local_queues
        )
        cluster.engine.handle(ObjectsChanged(1, replace(cluster.engine.objects, local_queues=stopped)))
        assert cluster.engine.next_timer() is None
        larger = tuple(queue("x", 2, cohort="co") if one.name == "x" else one for one in queues)
        cluster.engine.handle(ObjectsChanged(2, replace(cluster.engine.objects, cluster_queues=larger)))
        cluster.now = 3
        assert {one.key for one in cluster.cycle()} == {"ns/x", "ns/y"}
        grown = (Cohort("co", groups=()), Cohort("other"))
        cluster.engine.handle(ObjectsChanged(4, replace(cluster.engine.objects, cohorts=grown)))
        cluster.now = 5
        assert {one.key for one in cluster.cycle()} == {"ns/x", "ns/y"}

    def test_a_stopped_local_queue_hides_its_workloads_from_their_cluster_queues_drain(self) -> None:
        cluster = Cluster(queue())
        cluster.submit(job("a"))
        cluster.cycle()
        draining = queue(stop_policy="HoldAndDrain")
        held = (LocalQueue("ns", "cq", "cq", "Hold"),)
        assert cluster.engine.handle(ObjectsChanged(1, objects(draining, local_queues=held))) == []
        (drained,) = cluster.engine.handle(ObjectsChanged(2, objects(draining)))
        assert isinstance(drained, Evicted)

    def test_hold_takes_quota_back_from_who_waits_for_checks(self) -> None:
        cluster = checked()
        cluster.cycle()
        stopped = objects(
            queue(checks=(AdmissionCheckStrategyRule(name="check"),), stop_policy="Hold"),
            checks=(AdmissionCheck("check", "example.com/c"),),
        )
        assert names(cluster.engine.handle(ObjectsChanged(1, stopped)))[0] == ("Released", "a")

    def test_a_stopped_queue_still_lends_its_quota(self) -> None:
        cluster = Cluster(queue("x", 10, cohort="co"), queue("y", 7, cohort="co", stop_policy="Hold"))
        cluster.submit(job("a", 17, to="x"))
        cluster.cycle()
        assert cluster.admitted == {"a"}


class TestTimeouts:
    def test_pods_that_are_not_ready_in_time_evict_with_back_off(self) -> None:
        cluster = with_pods_ready(timeout=300, backoff_base=60)
        assert cluster.engine.next_timer() == 300
        (evicted,) = cluster.engine.handle(TimePassed(300))
        assert isinstance(evicted, Evicted)
        assert (evicted.reason, evicted.cause) == (EvictionReason.PODS_READY_TIMEOUT, "WaitForStart")
        decisions = cluster.engine.handle(PodsStopped(301, "ns/a"))
        assert BackoffStarted(301, "ns/a", 360, 1) in decisions
        cluster.engine.handle(TimePassed(360))
        assert cluster.engine.wants_cycle

    def test_ready_pods_stop_the_clock_and_a_failed_one_starts_another(self) -> None:
        cluster = with_pods_ready(timeout=300, recovery_timeout=100)
        cluster.engine.handle(PodsReadyChanged(10, "ns/a", True))
        assert cluster.engine.next_timer() is None
        cluster.engine.handle(PodsReadyChanged(1000, "ns/a", False))
        (evicted,) = cluster.engine.handle(TimePassed(1100))
        assert isinstance(evicted, Evicted)
        assert evicted.cause == "WaitForRecovery"

    def test_the_limit_of_requeues_deactivates(self) -> None:
        cluster = with_pods_ready(timeout=300, backoff_limit=0)
        decisions = cluster.engine.handle(TimePassed(300))
        assert decisions[0] == Deactivated(300, "ns/a", DeactivationCause.REQUEUING_LIMIT_EXCEEDED)

    def test_block_admission_lets_one_start_after_the_other(self) -> None:
        cluster = with_pods_ready(block_admission=True)
        cluster.submit(job("b"))
        assert cluster.engine.wants_cycle is False
        assert cluster.cycle() == []
        cluster.engine.handle(PodsReadyChanged(1, "ns/a", True))
        cluster.now = 1
        cluster.cycle()
        assert cluster.admitted == {"a", "b"}

    def test_the_maximum_execution_time_counts_across_evictions(self) -> None:
        cluster = Cluster(queue(cores=1, preemption=PREEMPTING))
        cluster.submit(job("a", max_execution_seconds=100.0))
        cluster.cycle()
        cluster.now = 40
        cluster.submit(job("high", priority=1))
        cluster.cycle()
        cluster.engine.handle(PodsStopped(40, "ns/a"))
        cluster.cycle()
        cluster.engine.handle(Finished(50, "ns/high"))
        cluster.now = 51
        cluster.engine.handle(TimePassed(51))
        cluster.cycle()
        assert cluster.admitted == {"a"}
        assert cluster.engine.next_timer() == 51 + 60
        decisions = cluster.engine.handle(TimePassed(111))
        assert decisions[0] == Deactivated(111, "ns/a", DeactivationCause.MAXIMUM_EXECUTION_TIME_EXCEEDED)


class TestExamine:
    def test_a_workload_behind_the_head_is_explained_in_numbers(self) -> None:
        cluster = Cluster(queue(cores=4))
        cluster.submit(job("a", 3), job("b", 3, created=1), job("c", 2, created=2))
        cluster.cycle()
        before = cluster.engine.snapshot()
        entry = cluster.engine.examine("ns/c")
        assert (entry.outcome, entry.why) == (Outcome.WAITING, QuotaReservedReason.WAITING_FOR_QUOTA)
        assert entry.assignment.pod_sets[0].evidence == [InsufficientQuota("default", "cpu", 2000, 1000)]
        assert cluster.engine.snapshot() == before
        assert dict(cluster.engine.cache.queues["cq"].usage) == {0: 3000}

    def test_what_would_be_admitted_or_preempt_says_so_and_changes_nothing(self) -> None:
        cluster = Cluster(queue(cores=2, preemption=PREEMPTING))
        cluster.submit(job("a"), job("b"))
        cluster.cycle()
        assert cluster.engine.examine("ns/b").outcome is Outcome.ADMITTED
        cluster.submit(job("big", 2, priority=1))
        entry = cluster.engine.examine("ns/big")
        assert entry.outcome is Outcome.PREEMPTING
        assert [target.info.workload.name for target in entry.targets] == ["a"]
        assert cluster.admitted == {"a"}
        assert dict(cluster.engine.cache.queues["cq"].usage) == {0: 1000}


class TestEngine:
    def test_time_does_not_run_backwards(self) -> None:
        engine = Engine(objects(queue()))
        engine.handle(TimePassed(5))
        with pytest.raises(InvariantError, match="before the time of the engine"):
            engine.handle(TimePassed(4))

    def test_a_workload_is_submitted_once(self) -> None:
        cluster = Cluster(queue())
        cluster.submit(job("a"))
        with pytest.raises(InvariantError, match="submitted twice"):
            cluster.submit(job("a"))

    def test_a_snapshot_makes_an_equal_engine(self) -> None:
        cluster = Cluster(queue(cores=2, preemption=PREEMPTING))
        cluster.submit(job("a"), job("b"), job("c", 2, priority=3))
        cluster.cycle()
        copy = Engine.from_snapshot(cluster.engine.snapshot())
        assert copy.snapshot() == cluster.engine.snapshot()
        assert names(copy.handle(CycleStarted(0))) == names(cluster.cycle())

    def test_deleting_frees_the_books(self) -> None:
        cluster = Cluster(queue())
        cluster.submit(job("a"))
        cluster.cycle()
        cluster.engine.handle(Deleted(1, "ns/a"))
        assert not any(cluster.engine.cache.queues["cq"].usage.values())
        assert cluster.engine.workloads == {}

    def test_a_new_quota_is_used_after_the_usual_delay(self) -> None:
        cluster = Cluster(queue(cores=1))
        cluster.submit(job("a", 2))
        cluster.cycle()
        cluster.engine.handle(ObjectsChanged(1, objects(queue(cores=2))))
        assert not cluster.engine.wants_cycle
        cluster.engine.handle(TimePassed(2))
        cluster.now = 2
        cluster.cycle()
        assert cluster.admitted == {"a"}

    def test_a_workload_with_quota_is_counted_when_it_is_submitted(self) -> None:
        cluster = Cluster(queue(cores=2))
        cluster.submit(job("a"))
        cluster.cycle()
        running = cluster.engine.workloads["ns/a"].as_workload()
        other = Cluster(queue(cores=2))
        other.engine.handle(Submitted(0, replace(running, name="copy")))
        other.submit(job("big", 2))
        other.cycle()
        assert other.admitted == {"copy"}
