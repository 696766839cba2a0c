"""Workloads that preempt each other in turn: the simulation settles, and says who was contended and how often."""

from __future__ import annotations

import pytest
from tests.simulation import contended

from kueue_admission.simulate.clock import EndReason
from kueue_admission.simulate.contention import TURNS
from kueue_admission.simulate.delays import Delays, parse_delays
from kueue_admission.simulate.result import Result


def states(result: Result) -> dict[str, str]:
    return {record.name: record.state.value for record in result.records}


@pytest.mark.parametrize("delays", [[], ["stop=0.02"], ["stop=exponential(5)", "cycle=0.01", "write=0.01"]])
def test_preemptor_comes_first_after_a_few_turns(delays: list[str]) -> None:
    result = contended.simulated(contended.TURNS, contended.TURNS_JOBS, parse_delays(delays, Delays()), until=86_400)
    # What the real Kueue came to after 45 turns: docs/fidelity.md.
    assert states(result) == {"guest": "Pending", "first": "Admitted", "busy": "Admitted", "second": "Admitted"}
    (guest,) = (record for record in result.records if record.name == "guest")
    assert {eviction.preemptor for eviction in guest.evictions} == {"default/second"}
    assert len(guest.evictions) <= TURNS
    assert guest.reason == "WaitingForQuota"
    if not delays:
        assert result.as_json()["contended"] == [
            {"cluster": None, "preemptor": "default/second", "preempted": "default/guest", "times": TURNS}
        ]


def test_workloads_that_preempt_each_other_for_ever_are_stopped() -> None:
    # The real Kueue did so 155 times in a minute, and went on: docs/fidelity.md.
    result = contended.simulated(contended.MUTUAL, contended.MUTUAL_JOBS)
    assert result.end.reason is EndReason.NOTHING_MORE
    assert sorted(state for state in states(result).values()) == ["Admitted", "Admitted", "Pending"]
    assert {(pair.preemptor, pair.preempted) for pair in result.contended} == {
        ("default/late", "default/wide"),
        ("default/wide", "default/late"),
    }
    assert max(pair.times for pair in result.contended) == 2 * TURNS


def test_who_is_stopped_competes_again_when_something_else_happens() -> None:
    jobs = {**contended.MUTUAL_JOBS, "other": {**contended.MUTUAL_JOBS["early"], "queue": "lender"}}
    before = contended.simulated(contended.MUTUAL, jobs, until=170)
    after = contended.simulated(contended.MUTUAL, jobs, until=200)
    assert sum(pair.times for pair in after.contended) > sum(pair.times for pair in before.contended)
