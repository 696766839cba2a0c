from __future__ import annotations

from dataclasses import replace

import pytest
from tests.dispatch.build import ASIA, EU, SETTINGS, US, borrowed_from, job, objects, request, running, worker

from kueue_fleet.dispatch import (
    Action,
    Bound,
    Decision,
    Filtered,
    FilterReason,
    GivenUp,
    Reason,
    Request,
    Residency,
    Scored,
    Worker,
    WorkerQuota,
    decide,
)
from kueue_fleet.dispatch.dispatcher import REMIND_SECONDS

EU_ONLY = Residency((Bound(frozenset({EU}), "label"),))


def reason_of(decision: Decision, cluster: str) -> str:
    [verdict] = [v for v in decision.verdicts if v.cluster == cluster]
    assert isinstance(verdict, Filtered), verdict
    return verdict.reason


def score_of(decision: Decision, cluster: str) -> Scored:
    [verdict] = [v for v in decision.verdicts if v.cluster == cluster]
    assert isinstance(verdict, Scored), verdict
    return verdict


def first(req: Request, *workers: Worker, now: float = 1000.0) -> Decision:
    return decide(req, workers, SETTINGS, now)


def test_of_equals_the_first_is_nominated() -> None:
    decision = first(request(), worker("b"), worker("a"))
    assert (decision.action, decision.reason, decision.nominated) == (Action.NOMINATE, Reason.NOMINATED, ("b",))
    assert decision.started == 1000.0


def test_where_nothing_is_left_for_all_of_it_is_not_the_cheapest() -> None:
    full = worker("full", prices={"l4": 1.0}, quota=borrowed_from())
    dear, cheap = worker("dear", prices={"l4": 3.0}), worker("cheap", prices={"l4": 2.0})
    decision = first(request(gpus=8), full, dear, cheap)
    assert decision.nominated == ("cheap",)
    assert (score_of(decision, "full").price, score_of(decision, "cheap").price) == (0.0, 1.0)
    assert "price unknown" in score_of(decision, "full").message


def test_a_region_that_is_not_allowed_is_never_nominated() -> None:
    cheap = worker("us", US, prices={"l4": 0.1})
    decision = first(request(residency=EU_ONLY), cheap, worker("eu", EU, prices={"l4": 9.0}))
    assert decision.nominated == ("eu",)
    assert reason_of(decision, "us") is FilterReason.REGION_NOT_ALLOWED


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (worker("bad", connected=False, problem="no route"), FilterReason.DISCONNECTED),
        (worker("bad", unknown="the controller cannot follow it"), FilterReason.UNKNOWN),
        (worker("bad", guarded=False), FilterReason.CHECK_MISSING),
        (worker("bad", stale_copy=True), FilterReason.BEING_WITHDRAWN),
        (worker("bad", quota=WorkerQuota(replace(objects(), local_queues=()))), FilterReason.QUEUE_NOT_FOUND),
        (worker("bad", quota=WorkerQuota(replace(objects(), flavors=()))), FilterReason.QUEUE_INACTIVE),
        (worker("bad", gpus=0), FilterReason.EXCEEDS_MAX_QUOTA),
        (worker("bad", quota=WorkerQuota(objects(8, namespace_selector=None))), FilterReason.MISCONFIGURED),
    ],
)
def test_a_cluster_that_cannot_take_it_is_filtered_with_the_reason(bad: Worker, reason: FilterReason) -> None:
    decision = first(request(), bad, worker("good"))
    assert decision.nominated == ("good",)
    assert reason_of(decision, "bad") is reason


def test_the_cheaper_of_two_free_clusters_wins() -> None:
    dear, cheap = worker("dear", prices={"l4": 2.0}), worker("cheap", US, prices={"l4": 1.0})
    decision = first(request(), dear, cheap)
    assert decision.nominated == ("cheap",)
    assert (score_of(decision, "cheap").price, score_of(decision, "dear").price) == (1.0, 0.5)


def test_the_faster_wins_when_the_waiting_times_say_so() -> None:
    slow = worker("slow", prices={"l4": 1.0}, waiting_seconds=3600.0)
    fast = worker("fast", US, prices={"l4": 2.0}, waiting_seconds=10.0)
    assert first(request(), slow, fast).nominated == ("fast",)
    assert first(request(), replace(slow, waiting_seconds=20.0), fast).nominated == ("slow",)


def test_free_quota_beats_price_and_waiting_time_together() -> None:
    quota = WorkerQuota(objects(8))
    quota.put(running("other", 8))
    busy = worker("busy", quota=quota, prices={"l4": 1.0}, waiting_seconds=0.0)
    free = worker("free", US, prices={"l4": 50.0}, waiting_seconds=7200.0)
    assert first(request(), busy, free).nominated == ("free",)


def test_a_price_that_is_not_known_is_the_worst_one() -> None:
    decision = first(request(), worker("unknown"), worker("known", prices={"l4": 99.0}))
    assert decision.nominated == ("known",)
    assert score_of(decision, "unknown").price == 0.0


def test_a_worker_whose_queues_could_not_be_read_is_a_last_resort() -> None:
    decision = first(request(), worker("unread", quota=None), worker("read"))
    assert decision.nominated == ("read",)
    assert first(request(), worker("unread", quota=None)).nominated == ("unread",)


def lost(name: str) -> Worker:
    return worker(name, connected=False, problem="no route to host")


@pytest.mark.parametrize("out", [lost("a"), worker("a", unknown="the controller cannot follow it")])
def test_a_nominated_cluster_that_is_out_of_reach_keeps_its_copy_and_another_one_is_asked_at_once(out: Worker) -> None:
    asked = request(nominated=("a",), started=900.0)
    decision = first(asked, out, worker("b", US), worker("c", ASIA))
    assert decision.nominated == ("a", "b")
    back = first(replace(asked, nominated=("a", "b")), worker("a"), worker("b", US), worker("c", ASIA))
    assert (back.action, back.nominated) == (Action.KEEP, ("a", "b"))


def test_a_cluster_that_is_out_of_reach_is_not_nominated_for_the_first_time() -> None:
    decision = first(request(), lost("a"))
    assert (decision.nominated, decision.reason) == ((), Reason.NO_SUITABLE_CLUSTER)


def test_where_only_clusters_out_of_reach_are_nominated_the_reason_says_so() -> None:
    decision = first(request(nominated=("a",), started=900.0), lost("a"))
    assert (decision.nominated, decision.reason) == (("a",), Reason.NO_SUITABLE_CLUSTER)
    assert decision.message == "None of 1 clusters is suitable: a Disconnected"


def test_where_it_may_run_it_stays_and_nothing_else_is_asked() -> None:
    bound = request(nominated=("a",), started=1000.0, bound=frozenset({"a"}))
    late = decide(bound, [lost("a"), worker("b", US)], SETTINGS, 1e6)
    assert (late.action, late.nominated, late.reason) == (Action.KEEP, ("a",), Reason.WAITING_FOR_WORKER)
    assert late.message == "Waits: it may run on a, and no route to host"
    assert late.retry_at is None
    reached = decide(bound, [worker("a"), worker("b", US)], SETTINGS, 1e6)
    assert (reached.nominated, reached.reason) == (("a",), Reason.NOMINATED)


def test_where_it_may_run_is_nominated_again_or_kueue_could_not_take_it_over() -> None:
    stale = worker("a", stale_copy=True)
    decision = first(request(nominated=("b",), started=900.0, bound=frozenset({"a"})), stale, worker("b", US))
    assert (decision.action, decision.nominated) == (Action.NOMINATE, ("b", "a"))


def test_it_waits_for_a_cluster_that_its_queue_does_not_have_any_more() -> None:
    decision = first(request(bound=frozenset({"gone"})), worker("a"))
    assert (decision.nominated, decision.reason) == ((), Reason.WAITING_FOR_WORKER)
    assert decision.message == "Waits: it may run on gone, and its queue does not have it any more"


def test_what_is_taken_back_from_where_it_may_run_is_not_nominated_there_nor_elsewhere() -> None:
    taken = request(bound=frozenset({"a"}), withdrawn=frozenset({"a"}), started=900.0)
    decision = first(taken, worker("a", stale_copy=True), worker("b", US))
    assert decision.nominated == ()


def test_what_has_quota_somewhere_is_not_given_up() -> None:
    asked = request(nominated=("a",), started=1000.0, reserved=frozenset({"a"}))
    decision = decide(asked, [worker("a")], SETTINGS, 1000.0 + 2 * SETTINGS.give_up_after.seconds)
    assert (decision.action, decision.retry_at) == (Action.KEEP, None)
    without = replace(asked, reserved=frozenset({"elsewhere"}))
    assert decide(without, [worker("a")], SETTINGS, 1000.0 + SETTINGS.give_up_after.seconds).action is Action.GIVE_UP


def test_it_widens_step_by_step() -> None:
    workers = (worker("a"), worker("b", US), worker("c", ASIA))
    asked, seen = request(), []
    for now in (1000.0, 1299.0, 1300.0, 1599.0, 1600.0, 1900.0):
        decision = decide(asked, workers, SETTINGS, now)
        seen.append((now, decision.action, decision.nominated))
        asked = replace(asked, nominated=decision.nominated, started=decision.started)
    assert seen == [
        (1000.0, Action.NOMINATE, ("a",)),
        (1299.0, Action.KEEP, ("a",)),
        (1300.0, Action.NOMINATE, ("a", "b")),
        (1599.0, Action.KEEP, ("a", "b")),
        (1600.0, Action.NOMINATE, ("a", "b", "c")),
        (1900.0, Action.KEEP, ("a", "b", "c")),
    ]


def test_it_looks_again_when_it_will_widen_and_else_at_the_deadline() -> None:
    workers = (worker("a"), worker("b", US))
    assert decide(request(), workers, SETTINGS, 1000.0).retry_at == 1300.0
    both = request(nominated=("a", "b"), started=1000.0)
    assert decide(both, workers, SETTINGS, 1301.0).retry_at == 4600.0


def test_widening_says_so() -> None:
    asked = request(nominated=("a",), started=1000.0)
    decision = decide(asked, (worker("a"), worker("b", US)), SETTINGS, 1300.0)
    assert (decision.reason, decision.message) == (Reason.WIDENED, "Nominated a, b of 2 clusters in step 2")


def test_a_nominated_cluster_that_becomes_better_or_worse_stays() -> None:
    asked = request(nominated=("dear",), started=1000.0)
    decision = decide(asked, (worker("cheap"), worker("dear", US, prices={"l4": 9.0})), SETTINGS, 1001.0)
    assert (decision.action, decision.nominated) == (Action.KEEP, ("dear",))


def test_a_region_forbidden_later_is_taken_back() -> None:
    asked = request(nominated=("us",), started=1000.0, residency=EU_ONLY)
    assert decide(asked, (worker("us", US), worker("eu", EU)), SETTINGS, 1001.0).nominated == ("eu",)


def test_none_is_suitable() -> None:
    decision = first(request(residency=EU_ONLY), worker("us", US))
    assert (decision.reason, decision.nominated) == (Reason.NO_SUITABLE_CLUSTER, ())
    assert decision.message == "None of 1 clusters is suitable: us RegionNotAllowed"
    again = replace(request(residency=EU_ONLY), started=1000.0)
    assert decide(again, (worker("us", US),), SETTINGS, 1001.0).action is Action.KEEP


def test_after_the_deadline_it_gives_up_with_the_reason() -> None:
    asked = request(nominated=("a",), started=1000.0)
    decision = decide(asked, (worker("a"),), SETTINGS, 4600.0)
    assert (decision.action, decision.reason, decision.nominated) == (Action.GIVE_UP, Reason.DEADLINE_EXCEEDED, ())
    assert decision.message == "Not admitted by a within 3600 s"


def test_what_no_cluster_can_ever_hold_is_rejected_after_the_set_time() -> None:
    workers = (worker("a", gpus=4), worker("b", US, gpus=8))
    waits = decide(request(gpus=9), workers, SETTINGS, 1000.0)
    assert (waits.action, waits.reason, waits.retry_at) == (Action.NOMINATE, Reason.NO_SUITABLE_CLUSTER, 1120.0)
    asked = request(gpus=9, started=1000.0)
    assert decide(asked, workers, SETTINGS, 1119.0).action is Action.KEEP
    rejected = decide(asked, workers, SETTINGS, 1120.0)
    assert (rejected.action, rejected.reason) == (Action.REJECT, Reason.FITS_NO_CLUSTER)
    assert (rejected.nominated, rejected.retry_at) == ((), None)
    assert rejected.message.startswith(
        "None of 2 clusters can ever run this job: a ExceedsMaxQuota, b ExceedsMaxQuota; request less"
    )


def test_a_region_that_is_forbidden_does_not_save_what_fits_nowhere_else() -> None:
    workers = (worker("us", US, gpus=64), worker("eu", EU, gpus=8))
    asked = request(gpus=9, started=1000.0, residency=EU_ONLY)
    assert decide(asked, workers, SETTINGS, 1120.0).action is Action.REJECT


@pytest.mark.parametrize(
    "other",
    [
        worker("b", US, gpus=16, connected=False),
        worker("b", US, quota=None),
        worker("b", US, gpus=16, stale_copy=True),
        worker("b", US, quota=WorkerQuota(replace(objects(16), local_queues=()))),
        worker("b", US, quota=WorkerQuota(replace(objects(16), flavors=()))),
        worker("b", US, gpus=16),
    ],
)
def test_nothing_is_rejected_while_any_cluster_may_hold_it_one_day(other: Worker) -> None:
    asked = request(gpus=9, started=1000.0)
    assert decide(asked, (worker("a", gpus=4), other), SETTINGS, 4500.0).action is not Action.REJECT
    assert decide(asked, (), SETTINGS, 4500.0).action is not Action.REJECT


def test_a_job_that_waited_for_a_cluster_whose_quota_is_lowered_has_the_set_time_from_then_on() -> None:
    asked = request(gpus=8, nominated=("a",), started=1000.0)
    lowered = decide(asked, (worker("a", gpus=4),), SETTINGS, 3000.0)
    assert (lowered.action, lowered.started, lowered.retry_at) == (Action.NOMINATE, 3000.0, 3120.0)
    later = request(gpus=8, started=3000.0)
    assert decide(later, (worker("a", gpus=8),), SETTINGS, 3119.0).nominated == ("a",)
    assert decide(later, (worker("a", gpus=4),), SETTINGS, 3120.0).action is Action.REJECT


def test_a_job_that_waited_for_a_stopped_cluster_has_the_set_time_from_when_that_leaves_its_queue() -> None:
    """It was not nominated, and yet could have run one day."""
    asked = request(gpus=8, started=1000.0, could_run=True)
    alone = decide(asked, (worker("a", gpus=4),), SETTINGS, 3000.0)
    assert (alone.action, alone.started, alone.retry_at) == (Action.KEEP, 3000.0, 3120.0)
    later = request(gpus=8, started=3000.0)
    assert decide(later, (worker("a", gpus=4),), SETTINGS, 3119.0).action is Action.KEEP
    assert decide(later, (worker("a", gpus=4),), SETTINGS, 3120.0).action is Action.REJECT


def test_after_giving_up_it_rests_and_then_starts_over() -> None:
    asked = request(started=5000.0, gave_up=True)
    rest = decide(asked, (worker("a"),), SETTINGS, 5299.0)
    assert (rest.action, rest.nominated, rest.retry_at) == (Action.KEEP, (), 5300.0)
    again = decide(asked, (worker("a"),), SETTINGS, 5300.0)
    assert (again.action, again.nominated, again.started) == (Action.NOMINATE, ("a",), 5300.0)


def test_what_is_still_nominated_after_giving_up_is_taken_back() -> None:
    asked = request(started=5000.0, gave_up=True, nominated=("a",))
    assert decide(asked, (worker("a"),), SETTINGS, 5001.0).action is Action.GIVE_UP


def test_a_cluster_that_failed_it_is_tried_after_all_others() -> None:
    failed = {"a": GivenUp(1, 900.0)}
    workers = (worker("a", prices={"l4": 1.0}), worker("b", US, prices={"l4": 9.0}))
    assert decide(request(given_up=failed), workers, SETTINGS, 1000.0).nominated == ("b",)
    assert decide(request(given_up=failed), workers[:1], SETTINGS, 1000.0).nominated == ("a",)


def test_no_more_clusters_than_the_field_holds() -> None:
    workers = tuple(worker(f"w{n:02}") for n in range(25))
    decision = decide(request(started=0.0), workers, SETTINGS, 3599.0)
    assert len(decide(request(started=0.0), workers, SETTINGS.model_copy(update={"step": 20}), 3599.0).nominated) == 20
    assert len(decision.nominated) == 12


def test_two_in_flight_never_count_the_same_gpus() -> None:
    quota = {"a": WorkerQuota(objects(8)), "b": WorkerQuota(objects(8))}
    workers = (worker("a", quota=quota["a"]), worker("b", US, quota=quota["b"]))
    placed = []
    for name in ("one", "two", "three"):
        decision = decide(Request(job(name, 6)), workers, SETTINGS, 1000.0)
        [cluster] = decision.nominated
        placed.append((cluster, score_of(decision, cluster).free))
        quota[cluster].expect(job(name, 6))
    assert placed == [("a", 1.0), ("b", 1.0), ("a", 0.0)]


def test_a_start_in_the_future_of_another_clock_is_none() -> None:
    ahead = request(nominated=("a",), started=5000.0 + 3600)
    decision = decide(ahead, [worker("a"), worker("b")], SETTINGS, 5000.0)
    assert (decision.action, decision.nominated, decision.started) == (Action.NOMINATE, ("a",), 5000.0)
    slightly = request(nominated=("a",), started=5001.0)
    assert decide(slightly, [worker("a"), worker("b")], SETTINGS, 5000.0).action is Action.KEEP


UNSENT = request(nominated=("a",), started=1000.0, unsent=frozenset({"a"}), asked=1000.0)
"""A nomination that Kueue has not acted on."""


def test_kueue_is_asked_again_for_a_copy_that_it_has_not_made() -> None:
    early = decide(UNSENT, (worker("a"), worker("b", US)), SETTINGS, 1029.0)
    assert (early.action, early.retry_at) == (Action.KEEP, 1000.0 + REMIND_SECONDS)
    due = decide(UNSENT, (worker("a"), worker("b", US)), SETTINGS, 1030.0)
    assert (due.action, due.nominated, due.started) == (Action.REMIND, ("a",), 1000.0)
    assert due.retry_at == 1030.0 + REMIND_SECONDS
    assert due.message == (
        "Nominated a of 2 clusters; Kueue was asked again at 1970-01-01T00:17:10Z for the copy that is missing on a"
    )
    again = decide(replace(UNSENT, asked=1030.0), (worker("a"), worker("b", US)), SETTINGS, 1060.0)
    assert again.message != due.message, "a Workload that does not change is not looked at by Kueue"


@pytest.mark.parametrize(
    ("asked", "due"), [(1000.0, 1030.0), (1030.0, 1060.0), (1060.0, 1120.0), (1120.0, 1240.0), (1600.0, 1900.0)]
)
def test_each_time_after_twice_as_long_up_to_five_minutes(asked: float, due: float) -> None:
    """Thousands of jobs that Kueue has not come to are no more work for it by reminders."""
    result = decide(replace(UNSENT, asked=asked), (worker("a"),), SETTINGS, asked)
    assert (result.action, result.retry_at) == (Action.KEEP, due)


@pytest.mark.parametrize(
    ("asked", "at"),
    [
        pytest.param(replace(UNSENT, unsent=frozenset()), worker("a"), id="the copy is there"),
        pytest.param(UNSENT, worker("a", connected=False), id="Kueue is not connected"),
        pytest.param(UNSENT, worker("a", unknown="silent"), id="the worker is not known as it is now"),
        pytest.param(replace(UNSENT, asked=None), worker("a"), id="when it was asked is not known"),
        pytest.param(replace(UNSENT, asked=9000.0), worker("a"), id="it was asked by another clock"),
    ],
)
def test_kueue_is_not_asked_again_without_a_reason(asked: Request, at: Worker) -> None:
    assert decide(asked, (at,), SETTINGS, 1100.0).action is Action.KEEP


def test_kueue_is_asked_again_where_the_job_may_run_already() -> None:
    bound = replace(UNSENT, bound=frozenset({"a"}))
    assert decide(bound, (worker("a"), worker("b", US)), SETTINGS, 1030.0).action is Action.REMIND
