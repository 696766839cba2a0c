"""Cohort."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import group, model_problems

from kueue_admission.api import CohortSpec

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "borrowingLimit without parent": (
        {"resourceGroups": [group(borrowingLimit=1)]},
        [
            (
                "resourceGroups[0].flavors[l4].resources[cpu].borrowingLimit: 1 is set, but parentName is not, "
                "so there is no queue to borrow from; set parentName or remove borrowingLimit"
            )
        ],
    ),
    "lendingLimit without parent": (
        {"resourceGroups": [group(lendingLimit=1)]},
        [
            (
                "resourceGroups[0].flavors[l4].resources[cpu].lendingLimit: 1 is set, but parentName is not, so "
                "there is no queue to lend to; set parentName or remove lendingLimit"
            )
        ],
    ),
    "flavor in two groups": (
        {"resourceGroups": [group(), group(("memory",))]},
        [
            (
                "resourceGroups[1].flavors[l4].name: flavor l4 already has quotas at "
                "resourceGroups[0].flavors[l4]; give each flavor its quotas in one place"
            )
        ],
    ),
    "negative weight": (
        {"fairSharing": {"weight": "-100m"}},
        ["fairSharing.weight: -100m is negative; write 0 or a positive number"],
    ),
    "parent of v1alpha1": (
        {"parent": "all"},
        ["parent: was removed in Kueue's v1beta2; write parentName"],
    ),
    "parent name": (
        {"parentName": "All"},
        [
            (
                'parentName: "All" has characters or a form that are not allowed; use lower-case letters, '
                "digits, hyphens and dots, with a letter or digit at both ends"
            )
        ],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "lends more than its own": {"parentName": "all", "resourceGroups": [group(lendingLimit=100)]},
    "only a name": {},
}


@pytest.mark.parametrize(("data", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(CohortSpec, data) == expected


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(data: dict[str, Any]) -> None:
    assert model_problems(CohortSpec, data) == []
