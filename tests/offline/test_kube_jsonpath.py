"""JSONPath of waitFor: what it selects, and what is refused rather than misread."""

from __future__ import annotations

import pytest

from kueue_fleet.rehearsal.standins.plugin_errors import PluginError
from kueue_fleet_offline.kube_jsonpath import parse_jsonpath_wait

OBJECT = {
    "status": {
        "phase": "Running",
        "ready": True,
        "replicas": 3,
        "conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}],
    },
    "metadata": {"annotations": {"a.b/c": "x"}},
}


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("jsonpath={.status.phase}=Running", True),
        ("jsonpath={.status.phase}=Pending", False),
        ("jsonpath={.status.ready}=true", True),
        ("jsonpath={.status.replicas}=3", True),
        ("jsonpath={.status.phase}", True),
        ("jsonpath={.status.missing}", False),
        ("jsonpath={.status.conditions[1].type}=B", True),
        ("jsonpath={.status.conditions[-1].status}=True", True),
        ("jsonpath={.status.conditions[7].type}", False),
        ('jsonpath={.status.conditions[?(@.type=="B")].status}=True', True),
        ('jsonpath={.status.conditions[?(@.type=="C")].status}=True', False),
        ("jsonpath={.metadata.annotations['a.b/c']}=x", True),
        (r"jsonpath={.metadata.annotations.a\.b/c}=x", False),
    ],
)
def test_a_wait_is_met_or_not(text: str, met: bool) -> None:
    if "/" in text and "'" not in text:
        with pytest.raises(PluginError, match="does not read"):
            parse_jsonpath_wait(text)
        return
    assert parse_jsonpath_wait(text).is_met(OBJECT) is met


def test_more_than_one_value_is_refused() -> None:
    with pytest.raises(PluginError, match="names 2 values"):
        parse_jsonpath_wait("jsonpath={.status.conditions[*].status}=True").is_met(OBJECT)


@pytest.mark.parametrize("text", ["jsonpath=.status", "jsonpath={..phase}=x", "jsonpath={}=x", "jsonpath={.a}x"])
def test_other_syntax_is_refused(text: str) -> None:
    with pytest.raises(PluginError, match="jsonpath="):
        parse_jsonpath_wait(text)
