"""Priority classes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "two defaults": (
        {
            "priorityClasses": [
                {"name": "a", "value": 1, "globalDefault": True},
                {"name": "b", "value": 2, "globalDefault": True},
            ]
        },
        ["priorityClasses[b].globalDefault: true, but a is the global default already; keep one global default"],
    ),
    "too high": (
        {"priorityClasses/0/value": 1000000001},
        [
            (
                "priorityClasses[batch].value: 1000000001 is above 1000000000, the highest priority outside the "
                "system; use a lower value"
            )
        ],
    ),
    "system name": (
        {"priorityClasses/0/name": "system-batch"},
        ["priorityClasses[system-batch].name: system-batch begins with system-, which is reserved; use another name"],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "one default": {"priorityClasses/0/globalDefault": True},
    "highest": {"priorityClasses/0/value": 1000000000},
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changes: dict[str, Any]) -> None:
    assert problems(changed(fleet_data(), changes)) == []
