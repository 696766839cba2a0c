from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.dispatch.build import EU, SETTINGS, US, request, worker

from drawn import examples
from kueue_fleet.dispatch import Bound, Decision, Filtered, FilterReason, Residency, decide, describe, parse_report
from kueue_fleet.dispatch.model import Action, Reason

QUIET = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is not a failure."""


def test_the_message_in_plain_words() -> None:
    residency = Residency((Bound(frozenset({EU}), "label kueue-fleet.dev/regions of the workload"),))
    workers = (worker("us", US), worker("eu", EU, prices={"l4": 0.5}, waiting_seconds=300.0))
    message = describe(decide(request(4, residency=residency), workers, SETTINGS, 0.0))
    assert message.splitlines() == [
        "Nominated eu of 2 clusters",
        "us: RegionNotAllowed: it is in us-east4, and label kueue-fleet.dev/regions of the workload allows only "
        "europe-west4",
        "eu: score 0.900 (price 1.000, waiting 0.500, free 1.000): free, flavor l4, 2.00 per hour, "
        "300 s waiting time seen",
    ]


def test_it_is_read_as_it_was_written() -> None:
    workers = (worker("a"), worker("b", connected=False, problem="no route"))
    found = parse_report(describe(decide(request(), workers, SETTINGS, 0.0)))
    assert found.summary == "Nominated a of 2 clusters"
    assert [(v.cluster, v.reason, v.score) for v in found.verdicts] == [("a", None, 1.0), ("b", "Disconnected", None)]


def decision(*texts: str) -> Decision:
    verdicts = tuple(Filtered(f"w{n}", FilterReason.DISCONNECTED, text) for n, text in enumerate(texts))
    return Decision("ns/a", 0.0, Action.NOMINATE, Reason.NO_SUITABLE_CLUSTER, (), "none", verdicts, 0.0, None)


@QUIET
@given(st.lists(st.text(max_size=2000), max_size=20))
def test_whatever_a_worker_says_each_cluster_stays_one_line(texts: list[str]) -> None:
    message = describe(decision(*texts))
    assert len(message) < 32768
    assert [v.cluster for v in parse_report(message).verdicts] == [f"w{n}" for n in range(len(texts))]


@pytest.mark.parametrize("garbage", ["", "\n\n", "a: score x (price", "only a sentence", ": : :"])
def test_lines_that_are_no_verdict_are_left_out(garbage: str) -> None:
    assert parse_report(garbage).verdicts == ()
