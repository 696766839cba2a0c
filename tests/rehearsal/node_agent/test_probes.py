from __future__ import annotations

import pytest

from kueue_rehearsal.node_agent.pods import PodError
from kueue_rehearsal.node_agent.probes import Threshold, parse_probe

CONTAINER = {
    "name": "c",
    "ports": [{"name": "health", "containerPort": 8081}],
    "readinessProbe": {"httpGet": {"port": "health", "scheme": "HTTPS"}, "failureThreshold": 5},
    "livenessProbe": {"tcpSocket": {"port": "nope"}},
}


def changes(threshold: Threshold, results: str) -> list[bool | None]:
    """The verdict after each result that changed it; `+` is a success, `-` a failure."""
    return [threshold.verdict for result in results if threshold.observe(result == "+")]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("+", [True]),
        ("--", []),
        ("---", [False]),
        ("--+---", [True, False]),
        ("+--+--", [True]),
        ("---+", [False, True]),
        ("++++", [True]),
    ],
)
def test_a_verdict_needs_its_threshold_in_a_row(results: str, expected: list[bool]) -> None:
    assert changes(Threshold(success_threshold=1, failure_threshold=3), results) == expected


def test_several_successes_may_be_needed() -> None:
    assert changes(Threshold(success_threshold=2, failure_threshold=1), "+-++") == [False, True]


def test_defaults_are_those_of_the_api() -> None:
    probe = parse_probe(CONTAINER, "readinessProbe", "127.70.1.2")
    assert probe is not None
    assert (probe.host, probe.port, probe.path, probe.scheme) == ("127.70.1.2", 8081, "/", "https")
    assert (probe.period_seconds, probe.timeout_seconds, probe.success_threshold, probe.failure_threshold) == (
        10,
        1,
        1,
        5,
    )
    assert parse_probe(CONTAINER, "startupProbe", "127.70.1.2") is None


def test_an_unknown_port_name_is_refused() -> None:
    with pytest.raises(PodError, match="no port named nope"):
        parse_probe(CONTAINER, "livenessProbe", "127.70.1.2")
