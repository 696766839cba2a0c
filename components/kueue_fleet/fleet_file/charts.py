"""The names of charts, and what a stack's config may say of them: `kueue-fleet:charts` replaces their references."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from kueue_admission.kernel import suggest
from kueue_admission.kernel.form_rules import UNKNOWN_NAME, WRONG_TYPE
from kueue_admission.kernel.problem import Problem
from kueue_admission.releases import minors, nearest

CHARTS_KEY: Final = "kueue-fleet:charts"
"""Config key that replaces the references of charts: a map by `RELEASES`, and by `chart_of_minor`."""
RELEASES: Final[Mapping[str, str]] = {
    "kueue": "kueue",
    "jobSet": "jobset",
    "kubeRay": "kuberay-operator",
    "leaderWorkerSet": "lws",
    "trainer": "kubeflow-trainer",
    "nvidiaDraDriver": "dra-driver-nvidia-gpu",
    "grafana": "grafana",
}
"""Helm releases by their section of the fleet file, named as their own pages name them."""


def chart_of_minor(version: str) -> str:
    """The name, in the stack's config, of Kueue's chart for the clusters of one minor release only: `kueue-0.18`."""
    return f"kueue-{nearest(version).minor}"


def replaced_chart_problems(charts: Any) -> Iterator[Problem]:
    """What is wrong with the value of `CHARTS_KEY`; paths begin with the key."""
    if isinstance(charts, str):
        # As `pulumi config set` writes a map.
        with suppress(ValueError):
            charts = json.loads(charts)
    if not isinstance(charts, Mapping):
        yield WRONG_TYPE.at(CHARTS_KEY, "is not a map", "write references of charts by their names: kueue: ./chart")
        return
    known_charts = [*RELEASES, *map(chart_of_minor, minors())]
    for name, reference in charts.items():
        path = f"{CHARTS_KEY}.{name}"
        if name not in known_charts:
            yield UNKNOWN_NAME.at(path, "there is no such chart", suggest.instead(str(name), known_charts, "charts"))
        elif not isinstance(reference, str) or not reference:
            yield WRONG_TYPE.at(path, "is not text", "write the reference of a chart, such as ./chart")
