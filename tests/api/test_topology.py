"""Topology."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import model_problems

from kueue_admission.api import TopologySpec

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no levels": (
        {"levels": []},
        ["levels: no items; list at least 1"],
    ),
    "17 levels": (
        {"levels": [{"nodeLabel": f"a{i}"} for i in range(17)]},
        ["levels: 17 items; use at most 16"],
    ),
    "level twice": (
        {"levels": [{"nodeLabel": "a"}, {"nodeLabel": "a"}]},
        ["levels[1].nodeLabel: a is listed twice; list each label once"],
    ),
    "host name not last": (
        {"levels": [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "a"}]},
        ["levels[0].nodeLabel: kubernetes.io/hostname can only be the lowest level; move it to the end"],
    ),
    "no label key": (
        {"levels": [{"nodeLabel": "Example.com/rack"}]},
        [
            (
                'levels[0].nodeLabel: "Example.com/rack" has a prefix that has characters or a form that are not '
                "allowed; use lower-case letters, digits, hyphens and dots, with a letter or digit at both ends"
            )
        ],
    ),
    "missing": (
        {},
        ["levels: is missing; add levels"],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "host name last": {
        "levels": [{"nodeLabel": "cloud.google.com/gce-topology-block"}, {"nodeLabel": "kubernetes.io/hostname"}]
    },
}


@pytest.mark.parametrize(("data", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(TopologySpec, data) == expected


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(data: dict[str, Any]) -> None:
    assert model_problems(TopologySpec, data) == []
