"""Why each workload that holds the missing quota is not preempted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from tests.decide.build import job, objects, queue
from tests.decide.test_properties import clusters
from tests.explain.test_properties import history, jobs, pending
from tests.explain.test_states import explained, held

from drawn import examples
from kueue_admission.api.cluster_queue import BorrowWithinCohort, ClusterQueuePreemption
from kueue_admission.decide.flavors.assigner import needing_preemption, total_requests
from kueue_admission.decide.model import Cohort, Configuration, Objects
from kueue_admission.decide.preemption.classical import cohort_candidates, own_candidates
from kueue_admission.decide.preemption.simulation import PreemptionContext
from kueue_admission.explain import Explanation, render_text
from kueue_admission.explain.answer import Spared
from kueue_admission.explain.diagnosis import diagnose
from kueue_admission.explain.figures import figures
from kueue_admission.explain.spared import spared_in

FAIR = Configuration(wait_for_pods_ready=None, fair_sharing=())
PROTECTED = {"PolicyNever", "QueueInactive", "NotBorrowing", "Priority", "NotNewer"}


def spared(found: Explanation) -> list[Spared]:
    return [group for flavor in found.flavors for group in flavor.spared]


def reasons(found: Explanation) -> dict[str, str]:
    """Workload → why it is not preempted."""
    return {workload: group.why for group in spared(found) for workload in group.workloads}


def two(mine: ClusterQueuePreemption, mine_cores: int = 4, **changes: Any) -> Objects:
    """Queue `cq` of a cohort with `other`, which has 4 CPUs."""
    return objects(queue("cq", mine_cores, cohort="c", preemption=mine), queue("other", 4, cohort="c"), **changes)


def policies(within: Any = "Never", reclaim: Any = "Never", borrow: Any = "Never", threshold: int | None = None) -> Any:
    borrowing = BorrowWithinCohort(policy=borrow, max_priority_threshold=threshold)
    return ClusterQueuePreemption(
        within_cluster_queue=within, reclaim_within_cohort=reclaim, borrow_within_cohort=borrowing
    )


class TestOwnQueue:
    @pytest.mark.parametrize(
        ("policy", "holder", "why"),
        [
            ("Never", {"priority": 0}, "PolicyNever"),
            ("LowerPriority", {"priority": 5}, "Priority"),
            ("LowerOrNewerEqualPriority", {"priority": 9}, "Priority"),
            ("LowerOrNewerEqualPriority", {"priority": 5, "created": -10.0}, "NotNewer"),
        ],
    )
    def test_each_policy(self, policy: str, holder: dict[str, Any], why: str) -> None:
        result = objects(queue(preemption=policies(within=policy)))
        assert reasons(explained(result, held("a", 10, **holder), job("b", 4, priority=5))) == {"ns/a": why}

    def test_less_than_is_missing(self) -> None:
        result = objects(queue(preemption=policies(within="LowerPriority")))
        results = explained(result, held("low", 2), held("high", 8, priority=9), job("b", 4, priority=5))
        assert reasons(results) == {"ns/low": "NotEnough", "ns/high": "Priority"}

    def test_workloads_of_one_reason_are_one_group(self) -> None:
        running = [held(f"r{n}", 2) for n in range(5)]
        [group] = spared(explained(objects(queue()), *running, job("b", 4)))
        assert (group.workloads, group.count) == (("ns/r0", "ns/r1", "ns/r2"), 5)

    def test_of_many_queues_the_text_names_the_first_and_sums_up_the_others(self) -> None:
        queues = [queue(f"q{n}", 4, cohort="c") for n in range(6)]
        running = [held(f"r{n}", 4, f"q{n}") for n in range(6)]
        mine = queue("cq", 1, cohort="c", preemption=policies(reclaim="LowerPriority"))
        result = explained(objects(mine, *queues), *running, job("b", 4))
        text = " ".join(render_text(result).split())
        assert [group.queue for group in spared(result)] == [f"q{n}" for n in range(6)]
        assert text.count("not preempted: ns/r") == 3
        assert "not preempted: 3 more in 3 other ClusterQueues, for the same reason as those of q0" in text

    def test_no_preemption_where_it_fits_or_preempts_or_never_fits(self) -> None:
        result = objects(queue(preemption=policies(within="LowerPriority")))
        for workload in (job("b", 4), job("b", 9, priority=5), job("b", 11)):
            assert not spared(explained(result, held("a", 6), workload))


class TestOtherQueues:
    def test_a_queue_that_does_not_borrow(self) -> None:
        """kueue#2681: `reclaimWithinCohort: Any` takes from those that borrow, whatever `borrowWithinCohort` says."""
        result = two(policies(reclaim="Any", borrow="LowerPriority", threshold=5000))
        results = explained(result, held("a", 4, "other"), job("b", 6, priority=10000))
        [group] = spared(results)
        assert (group.why, group.queue) == ("NotBorrowing", "other")
        assert group.reason == "ClusterQueue other does not borrow: it uses 4 of its 4 cpu"

    def test_reclaim_never(self) -> None:
        result = explained(two(policies(), 6), held("a", 10, "other"), job("b", 6))
        assert reasons(result) == {"ns/a": "PolicyNever"}

    def test_reclaim_from_lower_priority_only(self) -> None:
        result = explained(two(policies(reclaim="LowerPriority"), 6), held("a", 10, "other"), job("b", 6))
        assert reasons(result) == {"ns/a": "Priority"}

    def test_a_cohort_that_does_not_borrow(self) -> None:
        result = objects(
            queue("cq", 4, cohort="left", preemption=policies(reclaim="Any", borrow="LowerPriority")),
            queue("other", 4, cohort="right"),
            queue("third", 4, cohort="right"),
            cohorts=(Cohort("left", "root"), Cohort("right", "root"), Cohort("root")),
        )
        [group] = spared(explained(result, held("a", 8, "other"), job("b", 6, priority=5)))
        assert (group.why, group.reason) == ("NotBorrowing", "cohort right does not borrow: it uses 8 of its 8 cpu")

    @pytest.mark.parametrize(
        ("rules", "priority", "why"),
        [
            ({"borrow": "Never"}, 0, "borrowWithinCohort.policy is Never"),
            ({"borrow": "LowerPriority"}, 5, "its priority is not below 5, as borrowWithinCohort asks for"),
            ({"borrow": "LowerPriority", "threshold": 2}, 3, "its priority is above maxPriorityThreshold 2"),
        ],
    )
    def test_borrowing_while_preempting(self, rules: dict[str, Any], priority: int, why: str) -> None:
        result = two(policies(reclaim="Any", **rules), 4)
        results = explained(result, held("a", 8, "other", priority=priority), job("b", 6, priority=5))
        assert [(group.why, group.reason) for group in spared(results)] == [
            ("WouldBorrow", f"ClusterQueue cq would borrow for it, and {why}")
        ]


class TestFairSharing:
    def test_shares(self) -> None:
        result = objects(
            *(queue(name, 3, cohort="c", preemption=policies(reclaim="Any")) for name in ("cq", "other", "third")),
            configuration=FAIR,
        )
        results = explained(result, held("mine", 3), held("a", 6, "other"), job("b", 3))
        [mine, other] = spared(results)
        assert mine.why == "PolicyNever"
        assert other.why == "FairShare"
        assert "ClusterQueue cq would have a share of 334; other has 334, and 0 without it" in other.reason

    def test_a_queue_that_does_not_borrow(self) -> None:
        result = two(policies(reclaim="Any"), configuration=FAIR)
        assert reasons(explained(result, held("a", 4, "other"), job("b", 6))) == {"ns/a": "NotBorrowing"}


class TestAgreement:
    @settings(max_examples=examples(40), deadline=None)
    @given(clusters(), jobs)
    def test_protected_is_what_the_search_passes_over(self, made: Objects, arrivals: list[Any]) -> None:
        """Under classical preemption: nothing that is called protected is a candidate, and all else is one."""
        snapshot = history(replace(made, configuration=replace(made.configuration, fair_sharing=None)), arrivals)
        for key in pending(snapshot):
            result = diagnose(snapshot, key)
            entry = result.entry
            if entry is None or entry.targets or not (frs := needing_preemption(entry.assignment, result.engine.cache)):
                continue
            cache, info = result.engine.cache, entry.info
            context = PreemptionContext(
                cache, info, entry.queue, total_requests(entry.assignment, info, cache), frs, None
            )
            candidates = {each[0].key for each in own_candidates(context)}
            candidates.update(item[0].key for side in cohort_candidates(context) for item in side)
            groups = [
                group
                for flavor in figures(result.engine.cache, info, entry)
                for group in spared_in(result.engine, entry, flavor.flavor, flavor.resources)
                if any(cache.ids.names[fr][0] == flavor.flavor for fr in frs)
            ]
            for group in groups:
                for workload in group.workloads:
                    assert (workload in candidates) is (group.why not in PROTECTED)
