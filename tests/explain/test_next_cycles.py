"""A workload for which there is room, beside the others that wait: who is in its way, by what, and what helps."""

from __future__ import annotations

from dataclasses import replace

from tests.decide.build import job, objects, queue
from tests.explain.test_states import explained, held

from kueue_admission.api.cluster_queue import ClusterQueuePreemption
from kueue_admission.decide.model import DEFAULT_STRATEGIES, Configuration, Objects, WaitForPodsReady, WorkloadStatus
from kueue_admission.explain import Explanation
from kueue_admission.explain.turns import blocker_text

LOWER = ClusterQueuePreemption(reclaim_within_cohort="LowerPriority")
EVICTS = ClusterQueuePreemption(within_cluster_queue="LowerPriority", reclaim_within_cohort="Any")


def cohort(first: str = "BestEffortFIFO", **changes: object) -> Objects:
    """Two queues that lend each other their quota of 10 and of 0 CPUs."""
    queues = (queue("own", 10, cohort="c", queueing_strategy=first, **changes), queue("none", 0, cohort="c"))
    return objects(*queues)


def in_the_way(found: Explanation) -> list[tuple[str, str, str]]:
    return [(item.workload, item.does, item.first) for item in found.blockers]


def helps(found: Explanation) -> set[str]:
    return {change.what for change in found.changes if change.admits}


class TestOtherQueues:
    def test_quota_is_held_back_for_a_head_that_cannot_start(self) -> None:
        result = explained(
            cohort("StrictFIFO", preemption=LOWER),
            held("r", 5, "own"),
            job("big", 10, "own"),
            job("a", 5, "none", created=1.0),
        )
        assert result.reason == "WaitingForQuota"
        assert result.message == "Workload no longer fits after processing another workload"
        assert in_the_way(result) == [("ns/big", "holdsBack", "age")]
        assert result.blockers[0].amounts == (("default", "cpu", 10_000),)
        assert {
            "set preemption.reclaimWithinCohort of ClusterQueue own to Any",
            "set queueingStrategy of ClusterQueue own to BestEffortFIFO",
            "give the workload priority 1 or more (it has 0)",
        } <= helps(result)

    def test_what_holds_back_only_once_does_not_stand_in_the_way(self) -> None:
        result = explained(cohort(preemption=LOWER), held("r", 5, "own"), job("big", 10, "own"), job("a", 5, "none"))
        assert (result.reason, result.blockers) == ("PendingEvaluation", ())
        assert result.headline == "There is room for it and its turn is next: the next cycle admits it."

    def test_the_same_last_quota_goes_to_the_queue_that_need_not_borrow(self) -> None:
        result = explained(cohort(), held("r", 5, "own"), job("b", 5, "own", created=1.0), job("a", 5, "none"))
        assert in_the_way(result) == [("ns/b", "getsQuota", "borrowing")]
        assert result.headline == (
            "There is room for it, but not beside the others that wait: ns/b of ClusterQueue own gets 5 cpu of flavor "
            "default first as it borrows less."
        )
        assert "wait until ns/b, which waits now, has run and finished" in helps(result)

    def test_fair_sharing_has_an_order_of_its_own(self) -> None:
        fair = Configuration(fair_sharing=DEFAULT_STRATEGIES, wait_for_pods_ready=None)
        queues = [queue(name, 0, cohort="c") for name in ("much", "little")]
        result = objects(queue("own", 10, cohort="c"), *queues, configuration=fair)
        running = (held("r", 6, "much"), held("s", 2, "little"))
        results = explained(result, *running, job("b", 2, "little", created=1.0), job("a", 2, "much"))
        assert in_the_way(results) == [("ns/b", "getsQuota", "fairSharing")]

    def test_both_would_preempt_the_same(self) -> None:
        result = objects(
            *(queue(name, 5, cohort="c", preemption=EVICTS) for name in ("x", "y")), queue("z", 0, cohort="c")
        )
        results = explained(result, held("r", 10, "z"), job("b", 5, "x"), job("a", 5, "y", created=1.0))
        assert results.message == "Workload has overlapping preemption targets with another workload"
        assert in_the_way(results) == [("ns/b", "preemptsTheSame", "age")]
        assert results.victims == ()

    def test_what_is_in_the_way_of_a_change_is_named(self) -> None:
        result = objects(queue("cq", 2), configuration=Configuration(wait_for_pods_ready=None))
        results = explained(result, held("r", 2), job("b", 3, created=1.0, priority=1), job("a", 3, created=2.0))
        raised = next(change for change in results.changes if change.kind == "nominalQuota")
        assert not raised.admits
        assert raised.outcome.endswith("as ns/b of ClusterQueue cq goes first")


class TestItsQueue:
    def test_a_preemptor_keeps_the_head_of_its_queue(self) -> None:
        result = objects(queue(preemption=EVICTS))
        results = explained(result, held("r", 8), job("big", 9, priority=5), job("a", 2, created=2.0))
        assert in_the_way(results) == [("ns/big", "isHead", "")]

    def test_it_keeps_it_while_its_preemption_is_under_way_though_others_come_first_by_priority(self) -> None:
        result = objects(queue(preemption=EVICTS))
        running = held("r", 8)
        stopping = replace(running, status=replace(running.status, evicted_at=5.0, evicted_reason="Preempted"))
        waits = job("big", 9, priority=5, status=WorkloadStatus(evaluated="Pending the preemption of 1 workload(s)"))
        results = explained(result, stopping, waits, job("a", 2, priority=9, created=2.0))
        assert in_the_way(results) == [("ns/big", "isHead", "")]

    def test_nobody_waits_for_the_end_of_a_head_that_never_starts(self) -> None:
        result = explained(objects(queue(queueing_strategy="StrictFIFO")), job("huge", 80), job("a", 1, created=1.0))
        assert result.headline.endswith(
            "is the head of the queue and stays that, as it never gets quota (ExceedsMaxQuota)."
        )
        assert "delete ns/huge, or let it ask for what the queue can have" in helps(result)
        assert not any("have run and finished" in what or "has run and finished" in what for what in helps(result))

    def test_those_ahead_get_quota_and_it_does_too(self) -> None:
        result = explained(
            objects(queue()), job("b", 4, created=1.0), job("c", 2, created=2.0), job("a", 4, created=3.0)
        )
        assert result.turns == ("ns/b", "ns/c")
        assert result.headline == "There is room for it: Kueue admits it after 2 other workloads."

    def test_pods_that_are_not_ready_block_admission(self) -> None:
        waits = Configuration(wait_for_pods_ready=WaitForPodsReady(block_admission=True))
        result = explained(
            objects(queue("x", 5), queue("y", 5), configuration=waits), held("r", 1, "x"), job("a", 1, "y")
        )
        assert result.reason == "WaitingForPodsReady"
        assert in_the_way(result) == [("ns/r", "podsNotReady", "")]
        running = held("r", 1, "x")
        ready = replace(running, status=replace(running.status, pods_ready=True))
        assert (
            explained(objects(queue("x", 5), queue("y", 5), configuration=waits), ready, job("a", 1, "y")).blockers
            == ()
        )


def test_every_word_for_a_blocker_has_a_sentence() -> None:
    result = explained(cohort(), held("r", 5, "own"), job("b", 5, "own", created=1.0), job("a", 5, "none"))
    for does in ("getsQuota", "holdsBack", "preempts", "preemptsTheSame", "isHead", "podsNotReady"):
        assert "{" not in blocker_text(replace(result.blockers[0], does=does), result.flavors)
