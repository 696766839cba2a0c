from __future__ import annotations

import pytest

from kueue_fleet.admission.dispatch import EvictedCopy, watch_copy, watch_eviction


def test_a_copy_that_was_evicted_before_its_job_was_there_is_taken_back_after_the_set_time() -> None:
    copy = EvictedCopy(100.0, owned=False)
    early = watch_copy("eu", copy, 60.0, 159.0)
    assert (early.give_up, early.look_again) == (False, 160.0)
    due = watch_copy("eu", copy, 60.0, 160.0)
    assert due.give_up
    assert due.message.startswith("The copy on eu was evicted 60 s ago, has no job there")


@pytest.mark.parametrize("copy", [None, EvictedCopy(0.0, owned=True)])
def test_a_copy_that_its_job_will_end_is_left_alone(copy: EvictedCopy | None) -> None:
    decision = watch_copy("eu", copy, 60.0, 9999.0)
    assert (decision.give_up, decision.look_again) == (False, None)


def test_an_eviction_without_a_copy_anywhere_is_finished_after_the_set_time() -> None:
    nowhere = {"eu": False, "us": False}
    assert watch_eviction(100.0, nowhere, 60.0, 159.0).look_again == 160.0
    due = watch_eviction(100.0, nowhere, 60.0, 160.0)
    assert due.give_up
    assert due.message == (
        "Evicted 60 s ago, and none of eu, us has a copy of it; the status of its job still counted pods, "
        "and is corrected"
    )


def test_what_did_not_help_is_tried_again_ever_later() -> None:
    nowhere = {"eu": False}
    assert watch_eviction(100.0, nowhere, 60.0, 160.0).look_again == 220.0
    assert watch_eviction(100.0, nowhere, 60.0, 220.0).look_again == 340.0


def test_without_any_known_worker_nothing_is_known_of_the_copies() -> None:
    decision = watch_eviction(0.0, {}, 60.0, 1000.0)
    assert (decision.give_up, decision.look_again) == (False, 1060.0)


@pytest.mark.parametrize("there", [True, None])
def test_as_long_as_pods_may_run_somewhere_an_eviction_is_not_finished(there: bool | None) -> None:
    decision = watch_eviction(0.0, {"eu": False, "us": there}, 60.0, 1000.0)
    assert (decision.give_up, decision.look_again) == (False, 1060.0)
