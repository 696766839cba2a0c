"""Which tolerations tolerate which taints, as Kubernetes says it."""

from __future__ import annotations

import pytest

from kueue_admission.api.taints import tolerates
from kueue_admission.read.printed_pods import PrintedTaint, PrintedToleration


@pytest.mark.parametrize(
    ("operator", "bound", "value", "expected"),
    [
        ("Gt", "3", "5", True),
        ("Gt", "5", "5", False),
        ("Lt", "3", "-5", True),
        ("Lt", "3", "5", False),
        ("Gt", "3", "05", False),
        ("Gt", "3", "+5", False),
        ("Gt", "3", "1_000", False),
        ("Gt", "3", str(2**63), False),
        ("Gt", "3", "9" * 5000, False),
        ("Gt", "", "5", False),
        ("Other", "3", "1", False),
    ],
)
def test_numbers_are_compared(operator: str, bound: str, value: str, expected: bool) -> None:
    toleration = PrintedToleration("k", operator, bound, None)
    assert tolerates(toleration, PrintedTaint("k", value, "NoSchedule"), compares=True) is expected


def test_the_scheduler_compares_no_numbers() -> None:
    toleration = PrintedToleration.of({"key": "k", "operator": "Gt", "value": "3"})
    taint = PrintedTaint.of({"key": "k", "value": "5", "effect": "NoSchedule"})
    assert not tolerates(toleration, taint, compares=False)
