"""Both kinds of priority class."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import model_problems

from kueue_admission.api import PriorityClassFields, WorkloadPriorityClassFields

REFUSED_PRIORITY_CLASS_FIELDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no value": (
        {},
        ["value: is missing; add value"],
    ),
    "text": (
        {"value": "5"},
        ['value: "5" is given where a whole number is needed; remove the quotes: 5'],
    ),
    "too high": (
        {"value": 1000000001},
        ["value: 1000000001 is above 1000000000, the highest priority outside the system; use a lower value"],
    ),
    "no 32 bits": (
        {"value": 2**31},
        ["value: 2147483648 is too large; use at most 2147483647"],
    ),
    "policy": (
        {"value": 1, "preemptionPolicy": "never"},
        [('preemptionPolicy: "never" is not allowed; did you mean Never? Allowed: PreemptLowerPriority, Never')],
    ),
    "default as text": (
        {"value": 1, "globalDefault": "yes"},
        ['globalDefault: "yes" is given where true or false is needed; write true or false, without quotes'],
    ),
}

ACCEPTED_PRIORITY_CLASS_FIELDS: dict[str, dict[str, Any]] = {
    "all": {"value": -1000000000, "globalDefault": True, "preemptionPolicy": "Never", "description": "x"},
}

REFUSED_WORKLOAD_PRIORITY_CLASS_FIELDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no 32 bits": (
        {"value": -(2**31) - 1},
        ["value: -2147483649 is too small; use at least -2147483648"],
    ),
    "fraction": (
        {"value": 1.5},
        ["value: 1.5 is given where a whole number is needed; write a whole number"],
    ),
    "long description": (
        {"value": 1, "description": "d" * 2049},
        [
            (
                'description: "ddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd..." '
                "is too long; use at most 2048 characters"
            )
        ],
    ),
}

ACCEPTED_WORKLOAD_PRIORITY_CLASS_FIELDS: dict[str, dict[str, Any]] = {
    "all": {"value": 2**31 - 1, "description": "d" * 2048},
}


@pytest.mark.parametrize(
    ("data", "expected"), REFUSED_PRIORITY_CLASS_FIELDS.values(), ids=REFUSED_PRIORITY_CLASS_FIELDS.keys()
)
def test_priority_class_fields_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(PriorityClassFields, data) == expected


@pytest.mark.parametrize("data", ACCEPTED_PRIORITY_CLASS_FIELDS.values(), ids=ACCEPTED_PRIORITY_CLASS_FIELDS.keys())
def test_priority_class_fields_accepted(data: dict[str, Any]) -> None:
    assert model_problems(PriorityClassFields, data) == []


@pytest.mark.parametrize(
    ("data", "expected"),
    REFUSED_WORKLOAD_PRIORITY_CLASS_FIELDS.values(),
    ids=REFUSED_WORKLOAD_PRIORITY_CLASS_FIELDS.keys(),
)
def test_workload_priority_class_fields_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(WorkloadPriorityClassFields, data) == expected


@pytest.mark.parametrize(
    "data", ACCEPTED_WORKLOAD_PRIORITY_CLASS_FIELDS.values(), ids=ACCEPTED_WORKLOAD_PRIORITY_CLASS_FIELDS.keys()
)
def test_workload_priority_class_fields_accepted(data: dict[str, Any]) -> None:
    assert model_problems(WorkloadPriorityClassFields, data) == []
