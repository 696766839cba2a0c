from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.dispatch.build import EU, SETTINGS, US, request, worker

from drawn import examples
from kueue_admission.read.dispatch_report import DATA_CONDITION, DispatchData, describe_report, read_data, write_data
from kueue_admission.read.printed import Printed
from kueue_fleet.dispatch import Bound, Decision, Filtered, FilterReason, GivenUp, Residency, Scored, decide, report_of
from kueue_fleet.dispatch.model import Action, Reason

QUIET = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is not a failure."""


def test_the_message_in_plain_words() -> None:
    residency = Residency((Bound(frozenset({EU}), "label kueue-fleet.dev/regions of the workload"),))
    workers = (worker("us", US), worker("eu", EU, prices={"l4": 0.5}, waiting_seconds=300.0))
    message = describe_report(report_of(decide(request(4, residency=residency), workers, SETTINGS, 0.0)))
    assert message.splitlines() == [
        "Nominated eu of 2 clusters",
        "us: RegionNotAllowed: it is in us-east4, and label kueue-fleet.dev/regions of the workload allows only "
        "europe-west4",
        "eu: score 0.900 (price 1.000, waiting 0.500, free 1.000): free, flavor l4, 2.00 per hour, "
        "300 s waiting time seen",
    ]


def test_it_is_read_as_it_was_written() -> None:
    workers = (worker("a"), worker("b", connected=False, problem="no route"))
    written = DispatchData(report_of(decide(request(), workers, SETTINGS, 0.0)))
    result = read(write_data(written)).report
    assert result is not None
    assert result == written.report
    assert result.nominated == ("a",)
    assert result.summary == "Nominated a of 2 clusters"
    scored, filtered = result.verdicts
    assert isinstance(scored, Scored)
    assert (scored.cluster, scored.score) == ("a", 1.0)
    assert filtered == Filtered("b", "no route", "Disconnected")


def read(message: object) -> DispatchData:
    return read_data(Printed.of({"status": {"conditions": [{"type": DATA_CONDITION, "message": message}]}}))


def decision(*texts: str) -> Decision:
    verdicts = tuple(Filtered(f"w{n}", text, FilterReason.DISCONNECTED) for n, text in enumerate(texts))
    return Decision("ns/a", 0.0, Action.NOMINATE, Reason.NO_SUITABLE_CLUSTER, (), "none", verdicts, 0.0, None)


@QUIET
@given(st.lists(st.text(max_size=2000), max_size=20))
def test_whatever_a_worker_says_each_cluster_stays_one_line(texts: list[str]) -> None:
    report = report_of(decision(*texts))
    assert len(describe_report(report).split("\n")) == len(texts) + 1
    assert max(len(describe_report(report)), len(write_data(DispatchData(report)))) < 32768
    assert read(write_data(DispatchData(report))).report == report


NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
COUNTS = st.builds(GivenUp, st.integers(1, 99), st.integers(0, 2**31).map(float))


@QUIET
@given(st.dictionaries(NAMES, COUNTS, max_size=20))
def test_counts_survive_the_condition(given_up: dict[str, GivenUp]) -> None:
    assert read(write_data(DispatchData(given_up=given_up))).given_up == given_up


@pytest.mark.parametrize(
    "garbage",
    ["", "x", "[]", 7, *map(json.dumps, ({"report": {"verdicts": 1}}, {"given_up": {"a": {"times": "x", "last": 0}}}))],
)
def test_what_is_not_written_by_it_is_nothing(garbage: Any) -> None:
    assert read(garbage) == DispatchData()
