from __future__ import annotations

from dataclasses import replace

import pytest

from kueue_admission.decide.model import CheckState
from kueue_fleet.dispatch import AssignmentDecision, Copy, Step, WorkerView, bound_to, decide_assignment
from kueue_fleet.dispatch.assignment import UNREADABLE, End, assigned_worker, assignment_reason

NEW = Copy("u", "1", check=CheckState.PENDING)
WAITS = replace(NEW, reserved_at=100.0)
GRANTED = replace(WAITS, check=CheckState.READY, ready_since=101.0)
RUNS = replace(GRANTED, admitted=True, owned=True)
AWAY = WorkerView(known=False, connected=False)


def step(decision: AssignmentDecision) -> tuple[Step, str]:
    return decision.step, decision.worker


def test_the_copy_that_had_quota_first_is_assigned() -> None:
    views = {
        "a": WorkerView(copy=replace(WAITS, reserved_at=200.0)),
        "b": WorkerView(copy=WAITS),
        "c": WorkerView(copy=NEW),
    }
    assert step(decide_assignment("", ("a", "b", "c"), views)) == (Step.ASSIGN, "b")


def test_of_those_that_had_it_at_the_same_time_the_first_nominated_one() -> None:
    assert step(decide_assignment("", ("b", "a"), {"a": WorkerView(copy=WAITS), "b": WorkerView(copy=WAITS)})) == (
        Step.ASSIGN,
        "b",
    )


@pytest.mark.parametrize(
    "view",
    [
        WorkerView(),
        WorkerView(copy=NEW),
        WorkerView(copy=replace(WAITS, others_ready=False)),
        WorkerView(copy=replace(WAITS, evicted_at=150.0)),
        WorkerView(copy=replace(WAITS, deleted=True)),
        WorkerView(copy=WAITS, known=False),
        WorkerView(copy=WAITS, connected=False),
        WorkerView(copy=WAITS, allowed=False),
    ],
    ids=["none", "no quota", "other checks", "evicted", "deleted", "not followed", "not connected", "wrong region"],
)
def test_nothing_is_assigned_to_a_copy_that_could_not_start(view: WorkerView) -> None:
    assert decide_assignment("", ("a",), {"a": view}).step is Step.NOTHING
    assert bound_to("", {"a": view}) == frozenset()


def test_what_is_not_nominated_is_not_assigned() -> None:
    assert decide_assignment("", (), {"a": WorkerView(copy=WAITS)}).step is Step.NOTHING


def test_an_assignment_is_granted_and_then_stays() -> None:
    assert step(decide_assignment("a", ("a",), {"a": WorkerView(copy=WAITS)})) == (Step.GRANT, "a")
    for copy in (GRANTED, RUNS, replace(RUNS, end=End("Succeeded", "", 200.0))):
        views = {"a": WorkerView(copy=copy), "b": WorkerView(copy=WAITS)}
        assert decide_assignment("a", ("a", "b"), views).step is Step.NOTHING
        assert bound_to("a", views) == {"a"}


@pytest.mark.parametrize("copy", [None, NEW, WAITS, GRANTED, RUNS])
def test_while_its_worker_cannot_be_asked_an_assignment_stays_whatever_was_seen_last(copy: Copy | None) -> None:
    views = {"a": replace(AWAY, copy=copy), "b": WorkerView(copy=WAITS)}
    assert decide_assignment("a", ("a", "b"), views).step is Step.NOTHING
    assert bound_to("a", views) == {"a"}


def test_an_assignment_to_a_worker_that_the_fleet_does_not_have_stays() -> None:
    for assigned in ("gone", UNREADABLE):
        assert decide_assignment(assigned, ("b",), {"b": WorkerView(copy=WAITS)}).step is Step.NOTHING
        assert bound_to(assigned, {"b": WorkerView(copy=WAITS)}) == {assigned}


@pytest.mark.parametrize(
    "view",
    [
        WorkerView(),
        WorkerView(copy=NEW),
        WorkerView(copy=replace(WAITS, evicted_at=150.0)),
        WorkerView(copy=WAITS, connected=False),
        replace(AWAY, gone=True),
        replace(AWAY, gone=True, copy=RUNS),
    ],
    ids=["no copy", "no quota any more", "evicted", "not connected", "gone", "gone with what ran there"],
)
def test_an_assignment_that_means_nothing_any_more_is_released(view: WorkerView) -> None:
    views = {"a": view, "b": WorkerView(copy=WAITS)}
    assert step(decide_assignment("a", ("a", "b"), views)) == (Step.RELEASE, "a")


def test_an_assignment_to_a_worker_that_is_not_nominated_any_more_is_released_before_it_was_granted_and_not_after() -> (
    None
):
    assert decide_assignment("a", (), {"a": WorkerView(copy=WAITS)}).step is Step.RELEASE
    assert decide_assignment("a", (), {"a": WorkerView(copy=GRANTED)}).step is Step.NOTHING


def test_what_runs_somewhere_without_an_assignment_is_assigned_there() -> None:
    for view in (WorkerView(copy=RUNS), replace(AWAY, copy=RUNS), WorkerView(copy=RUNS, allowed=False)):
        views = {"a": view, "b": WorkerView(copy=WAITS)}
        assert step(decide_assignment("", ("b",), views)) == (Step.ASSIGN, "a")


def test_of_a_copy_in_a_queue_without_the_check_it_is_not_known_whether_it_runs() -> None:
    unguarded = Copy("u", "1", guarded=False)
    assert bound_to("", {"a": WorkerView(copy=unguarded)}) == {"a"}
    assert bound_to("", {"a": WorkerView(copy=replace(unguarded, guarded=True))}) == frozenset()


def test_pods_that_are_being_ended_run() -> None:
    ending = replace(RUNS, admitted=False, evicted_at=200.0, check=CheckState.PENDING)
    assert bound_to("", {"a": WorkerView(copy=ending)}) == {"a"}
    assert bound_to("", {"a": WorkerView(copy=replace(ending, reserved_at=None))}) == frozenset()


def test_the_assignment_is_read_as_it_was_written() -> None:
    assert assigned_worker(assignment_reason("worker-us-2"), "whatever") == "worker-us-2"
    for reason, message in (("R", "Assigned to us: x"), ("Assigned:", ""), ("Assigned", "something else")):
        assert assigned_worker(reason, message) == UNREADABLE


def test_an_assignment_of_the_release_before_is_read() -> None:
    assert assigned_worker("Assigned", "Assigned to worker-us: it has quota there") == "worker-us"
