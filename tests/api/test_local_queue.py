"""LocalQueue."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import model_problems

from kueue_admission.api import LocalQueueSpec

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no queue": (
        {},
        ["clusterQueue: is missing; add the name of the ClusterQueue behind it"],
    ),
    "queue name": (
        {"clusterQueue": "A"},
        [
            (
                'clusterQueue: "A" has characters or a form that are not allowed; use lower-case letters, '
                "digits, hyphens and dots, with a letter or digit at both ends"
            )
        ],
    ),
    "stopPolicy": (
        {"clusterQueue": "a", "stopPolicy": "hold"},
        ['stopPolicy: "hold" is not allowed; did you mean Hold? Allowed: None, Hold, HoldAndDrain'],
    ),
    "weight": (
        {"clusterQueue": "a", "fairSharing": {"weight": "1n"}},
        ["fairSharing.weight: 1n is too small to count with; write 0 or a number above 1n"],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "all": {"clusterQueue": "a", "stopPolicy": "Hold", "fairSharing": {"weight": "500m"}},
}


@pytest.mark.parametrize(("data", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(LocalQueueSpec, data) == expected


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(data: dict[str, Any]) -> None:
    assert model_problems(LocalQueueSpec, data) == []
