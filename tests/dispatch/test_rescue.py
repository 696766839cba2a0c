from __future__ import annotations

from dataclasses import replace

import pytest

from kueue_admission.decide.model import CheckState
from kueue_fleet.dispatch import Copy, WorkerView, watch_copy, watch_eviction
from kueue_fleet.dispatch.assignment import End

EVICTED = Copy("u", "1", reserved_at=50.0, evicted_at=100.0, check=CheckState.PENDING)
ASSIGNED = Copy("u", "1", reserved_at=50.0, ready_since=100.0, check=CheckState.READY)
NOWHERE = {"eu": WorkerView(), "us": WorkerView()}
RUNS = WorkerView(copy=replace(ASSIGNED, admitted=True))


def test_a_copy_that_was_evicted_before_its_job_was_there_is_taken_back_after_the_set_time() -> None:
    early = watch_copy("eu", EVICTED, 60.0, 159.0)
    assert (early.give_up, early.retry_at) == (False, 160.0)
    due = watch_copy("eu", EVICTED, 60.0, 160.0)
    assert due.give_up
    assert due.message.startswith("The copy on eu was evicted 60 s ago, has no job there")


def test_a_copy_that_could_be_admitted_and_is_not_is_taken_back_after_the_set_time() -> None:
    assert watch_copy("eu", ASSIGNED, 60.0, 159.0).retry_at == 160.0
    due = watch_copy("eu", ASSIGNED, 60.0, 160.0)
    assert due.give_up
    assert due.message == "The copy on eu could be admitted 60 s ago and is not, and is withdrawn"


@pytest.mark.parametrize(
    "copy",
    [
        None,
        replace(EVICTED, owned=True),
        replace(EVICTED, reserved_at=None),
        replace(EVICTED, deleted=True),
        replace(ASSIGNED, admitted=True),
        replace(ASSIGNED, end=End("Succeeded", "", 200.0)),
        replace(ASSIGNED, check=CheckState.PENDING, ready_since=None),
    ],
)
def test_any_other_copy_is_left_alone(copy: Copy | None) -> None:
    decision = watch_copy("eu", copy, 60.0, 9999.0)
    assert (decision.give_up, decision.retry_at) == (False, None)


def test_an_eviction_without_a_copy_anywhere_is_finished_after_the_set_time() -> None:
    assert watch_eviction("Evicted", 100.0, "us", NOWHERE, 60.0, 159.0).retry_at == 160.0
    due = watch_eviction("Evicted", 100.0, "us", NOWHERE, 60.0, 160.0)
    assert due.give_up
    assert due.message == (
        "Evicted 60 s ago, and no worker has a copy of it; the status of its job still counted pods, and is corrected"
    )


def test_what_did_not_help_is_tried_again_ever_later() -> None:
    assert watch_eviction("Evicted", 100.0, "us", NOWHERE, 60.0, 160.0).retry_at == 220.0
    assert watch_eviction("Evicted", 100.0, "us", NOWHERE, 60.0, 220.0).retry_at == 340.0


@pytest.mark.parametrize(
    ("assigned", "views", "why"),
    [
        ("us", {"eu": WorkerView(), "us": RUNS}, "us has a copy of it"),
        ("us", {"eu": RUNS, "us": WorkerView()}, "eu has a copy of it"),
        ("us", {"eu": WorkerView(), "us": WorkerView(known=False)}, "us cannot be asked"),
        ("", {"eu": WorkerView(), "us": WorkerView(known=False)}, "us cannot be asked"),
        ("us", {"eu": WorkerView()}, "it ran on us, which is not in the fleet any more"),
        ("", {}, "no worker is known"),
    ],
)
def test_as_long_as_pods_may_run_somewhere_an_eviction_is_not_finished(
    assigned: str, views: dict[str, WorkerView], why: str
) -> None:
    decision = watch_eviction("Evicted", 0.0, assigned, views, 60.0, 1000.0)
    assert (decision.give_up, decision.retry_at) == (False, 1060.0)
    assert decision.message == f"Evicted, and its pods may still run: {why}"


@pytest.mark.parametrize(
    "views",
    [
        {"eu": WorkerView(known=False), "us": WorkerView()},
        {"eu": WorkerView(), "us": WorkerView(known=False, gone=True, copy=RUNS.copy)},
    ],
    ids=["another worker cannot be asked", "an operator says that it is gone"],
)
def test_only_the_worker_that_ran_it_counts_and_only_while_it_is_not_gone(views: dict[str, WorkerView]) -> None:
    assert watch_eviction("Evicted", 0.0, "us", views, 60.0, 1000.0).give_up
