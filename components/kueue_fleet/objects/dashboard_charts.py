"""What is shown of a fleet: the charts of dashboard_charts.yaml, each a question with its answer in PromQL.

`dashboards` writes them out for Cloud Monitoring and for Grafana.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pkgutil import get_data
from typing import Any, Final, Literal

from kueue_admission.kernel.yaml_text import load_yaml
from kueue_fleet.fleet_file.model.goals import WaitLimit

Unit = Literal["count", "seconds", "ratio", "per hour", "bytes"]
"""What the values of a chart are."""
_FILE: Final = "dashboard_charts.yaml"
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
    waits: bool = False
    """Whether it shows waits of jobs, and so the goals of waits too."""


@dataclass(frozen=True, slots=True)
class Section:
    """Charts that belong together."""

    title: str
    charts: tuple[Chart, ...]


def sections(*, controller: bool, goals: Sequence[WaitLimit] = ()) -> tuple[Section, ...]:
    """The charts of a fleet, with or without the fleet's own controller; a line for each goal of waits."""
    all_sections = _sections() if controller else _sections()[:-1]
    lines = {f"goal {_of(goal)}, {100 * goal.quantile:g} %": f"vector({goal.seconds:g})" for goal in goals}
    if not lines:
        return all_sections
    with_lines = [
        tuple(replace(chart, queries={**chart.queries, **lines}) if chart.waits else chart for chart in section.charts)
        for section in all_sections
    ]
    return tuple(Section(section.title, charts) for section, charts in zip(all_sections, with_lines, strict=True))


def _of(goal: WaitLimit) -> str:
    return " ".join(filter(None, (goal.queue, goal.priority_class)))


@cache
def _sections() -> tuple[Section, ...]:
    text = (get_data(__package__, _FILE) or b"").decode()
    read: list[dict[str, Any]] = load_yaml(text, _FILE)
    return tuple(Section(section["title"], tuple(_chart(**chart) for chart in section["charts"])) for section in read)


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
