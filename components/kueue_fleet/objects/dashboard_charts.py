"""What is shown of a fleet: the charts of dashboard_charts.yaml, each a question with its answer in PromQL.

`dashboards` writes them out for Cloud Monitoring and for Grafana.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data
from typing import Any, Final, Literal

import yaml

Unit = Literal["count", "seconds", "ratio", "per second", "bytes"]
"""What the values of a chart are."""
LEADING: Final = 'replica_role!="follower"'
"""Matcher of what the leader of several replicas of Kueue measures, or the only one.

A replica that takes over keeps what it measured as a follower. Source: kueue@v0.19.2 pkg/util/roletracker.
"""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: a question, and the answer in PromQL."""

    title: str
    queries: Mapping[str, str]
    """PromQL by legend; an empty legend shows the labels of each series."""
    unit: Unit = "count"
    help: str = ""
    """What to look for."""
    heatmap: bool = False
    """Whether the queries are how many there are in each band, from the lowest on."""


@dataclass(frozen=True, slots=True)
class Section:
    """Charts that belong together."""

    title: str
    charts: tuple[Chart, ...]


def sections(*, controller: bool) -> tuple[Section, ...]:
    """The charts of a fleet, with or without the fleet's own controller."""
    return _sections() if controller else _sections()[:-1]


@cache
def _sections() -> tuple[Section, ...]:
    read: list[dict[str, Any]] = yaml.safe_load(get_data(__package__, "dashboard_charts.yaml") or b"")
    return tuple(Section(each["title"], tuple(_chart(**chart) for chart in each["charts"])) for each in read)


def _chart(*, bands: str = "", **fields: Any) -> Chart:
    if not bands:
        return Chart(**fields)
    # The last band has 100 % in it.
    limits = [(20 * n, 20 * n + 20, f"{0.2 * n:.1f}", f"{0.2 * n + 0.2 if n < 4 else 1.01:.3g}") for n in range(5)]
    queries = {
        f"{low} to {high} %": f"sum(({bands} >= bool {least}) * ({bands} < bool {most}))"
        for low, high, least, most in limits
    }
    return Chart(queries=queries, heatmap=True, **fields)
