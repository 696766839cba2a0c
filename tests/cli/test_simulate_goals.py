"""Waiting times that a pipeline fails on."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.simulation.objects import cluster, job
from typer.testing import CliRunner

from kueue_admission.cli.console import CommandError
from kueue_admission.cli.simulate_goals import parse_goal
from kueue_admission.read.goals import Standing
from kueue_admission.simulate.clock import End, EndReason
from kueue_admission.simulate.goals import judge_result
from kueue_admission.simulate.records import Record
from kueue_admission.simulate.result import Result
from kueue_fleet.cli import app


def waited(*waits: float | None, arrived: float = 1000.0, queue: str = "gpu") -> list[Record]:
    return [
        Record(
            f"ns/{queue}{index}",
            "ns",
            f"{queue}{index}",
            arrived,
            cluster_queue=queue,
            first_admitted_at=None if wait is None else arrived + wait,
        )
        for index, wait in enumerate(waits)
    ]


def finding(limit: float, *records: Record, until: float | None = None) -> tuple[bool, float | None]:
    end = End(EndReason.NOTHING_MORE, 0.0) if until is None else End(EndReason.UNTIL, 1000.0 + until)
    (result,) = judge_result([parse_goal(f"gpu={limit}")], Result(records, origin=1000.0, end=end))
    return result.standing is not Standing.MISSED, result.found


def test_one_in_twenty_may_wait_longer() -> None:
    nineteen = waited(*[10.0] * 19)
    assert finding(10, *nineteen, *waited(500.0)) == (True, 10.0)
    assert finding(10, *nineteen[1:], *waited(500.0, 400.0)) == (False, 400.0)


def test_a_job_that_is_never_admitted_waits_for_ever() -> None:
    assert finding(10, *waited(1.0, None)) == (False, math.inf)


def test_a_job_of_which_it_is_not_known_whether_it_starts_is_said_to_miss_the_goal() -> None:
    unknown = [replace(item, not_known="why") for item in waited(None)]
    (result,) = judge_result([parse_goal("gpu=10")], Result((*waited(1.0), *unknown)))
    assert result.standing is Standing.MISSED
    assert str(result) == (
        "clusterQueues[gpu]: of 2 jobs 95 % waited for a time that is not known; the goal is 10 s; "
        "of 1 it is not known whether they start"
    )


def test_a_job_that_came_shortly_before_the_end_does_not_count() -> None:
    late = waited(None, arrived=1095.0)
    assert finding(10, *waited(1.0), *late, until=100) == (True, 1.0)
    assert finding(4, *waited(1.0), *late, until=100) == (False, math.inf)


def test_each_queue_has_its_own() -> None:
    records = (*waited(5.0), *waited(50.0, queue="urgent"))
    result = judge_result([parse_goal("urgent=60"), parse_goal("gpu=4")], Result(records))
    assert [str(item) for item in result] == [
        "clusterQueues[urgent]: of 1 jobs 95 % waited at most 50.0 s; the goal is 60 s",
        "clusterQueues[gpu]: of 1 jobs 95 % waited at most 5.0 s, over the goal of 4 s, which 1 exceeded",
    ]


@pytest.mark.parametrize("text", ["gpu", "=5", "gpu=", "gpu=soon", "gpu=-1", "gpu=inf", "gpu=nan"])
def test_a_goal_that_is_none(text: str) -> None:
    with pytest.raises(CommandError, match="is not QUEUE=SECONDS"):
        parse_goal(text)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    jobs = [job("a", 0, "100"), job("b", 0, "100"), job("c", 0, "100")]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([*cluster(), *jobs]))
    return tmp_path


def test_the_command_ends_with_3_and_says_why(dump: Path) -> None:
    kept = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--max-wait", "cq=202"])
    assert kept.exit_code == 0, kept.output
    assert "clusterQueues[cq]: of 3 jobs 95 % waited at most 202.0 s; the goal is 202 s" in kept.stdout
    broken = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--max-wait", "cq=0"])
    assert isinstance(broken.exception, CommandError)
    assert broken.exception.exit_code == 3
    assert "goals are missed:\n  clusterQueues[cq]: of 3 jobs 95 % waited" in str(broken.exception)
    assert "mean wait" in broken.stdout, "the table is printed all the same"
    wrong = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--max-wait", "cq"])
    assert isinstance(wrong.exception, CommandError)
    assert wrong.exception.exit_code == 2
