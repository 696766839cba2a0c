"""Goals and whether jobs meet them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kueue_admission.read.goals import WEEK, Goal, Judged, Seen, Standing, judge

HOUR = 3600.0


def job(arrived: float, waited: float | None, runs: float = HOUR, **more: Any) -> Seen:
    admitted = None if waited is None else arrived + waited
    held = () if admitted is None else ((admitted, admitted + runs),)
    return Seen(
        **{"queue": "gpu", "team": "a", "priority": 0, "gpus": 1, **more}, arrived=arrived, admitted=admitted, held=held
    )


def judged(goal: Goal, *jobs: Seen, end: float = WEEK, known: float = math.inf) -> Judged:
    (result,) = judge([goal], jobs, 0.0, end, known)
    return result


def wait(seconds: float, **more: Any) -> Goal:
    return Goal("clusterQueues[gpu]", "wait", seconds, "gpu", **more)


def test_a_wait_near_its_goal_is_at_risk() -> None:
    jobs = [job(0, 100.0) for _ in range(20)]
    assert [judged(wait(limit), *jobs).standing for limit in (99, 110, 200)] == [
        Standing.MISSED,
        Standing.AT_RISK,
        Standing.MET,
    ]


def test_a_quantile_leaves_out_the_longest() -> None:
    jobs = [*(job(0, 10.0) for _ in range(9)), job(0, 5000.0)]
    assert judged(wait(60, quantile=0.9), *jobs).standing is Standing.MET
    assert judged(wait(60, quantile=0.99), *jobs).standing is Standing.MISSED


def test_only_jobs_of_the_class_count() -> None:
    urgent = wait(60, priority_class="deadline", priority=1000)
    assert judged(urgent, job(0, 5000.0), job(0, 10.0, priority=1000)).standing is Standing.MET
    assert judged(urgent, job(0, 5000.0)).why == "there is no job of deadline to judge by"


def test_a_job_that_still_waits_misses_a_goal_that_is_over() -> None:
    late = judged(wait(60), job(0, None), job(950, None), known=1000.0)
    assert (late.standing, late.why) == (
        Standing.MISSED,
        "of 1 jobs 95 % waited more than 60 s, over the goal of 60 s, which 1 exceeded, 1 of them still waiting",
    )


def test_a_job_that_came_before_the_time_is_not_judged_by() -> None:
    assert judged(wait(60), job(-5000, 4000.0)).standing is Standing.NOT_KNOWN


def test_a_share_counts_while_jobs_of_the_goal_wait() -> None:
    share = Goal("teams[a]", "share", 0.4, team="a")
    others = job(0, 0.0, 4 * HOUR, team="b", gpus=3)
    mine = job(0, 0.0, 2 * HOUR)
    waits = job(0, 4 * HOUR)
    assert judged(share, others, mine).why == "none of its jobs had to wait"
    result = judged(share, others, mine, waits)
    assert result.found == pytest.approx(2 / 14)
    assert result.standing is Standing.MISSED


def test_hours_of_a_week_count_where_they_were_asked_for() -> None:
    hours = Goal("teams[a]", "gpuHoursPerWeek", 100, team="a")
    assert judged(hours, job(0, 0.0), end=WEEK - 1).standing is Standing.NOT_KNOWN
    assert judged(hours, job(0, 0.0)).why == "in none of 1 weeks its jobs asked for so many GPU hours"
    assert judged(hours, job(0, 0.0, 50 * HOUR), job(0, 60 * HOUR)).found == pytest.approx(51)
    assert judged(hours, job(0, 0.0, 150 * HOUR)).standing is Standing.MET
