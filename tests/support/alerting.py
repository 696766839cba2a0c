"""What an alert policy of Cloud Monitoring fires on, by Prometheus' own engine.

Metrics are as a collector reads them, minute by minute; the answer is for which series a policy fires, and when.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir
from promql import METRICS

SCRAPE_SECONDS = 30
Labels = tuple[tuple[str, str], ...]


@cache
def engine() -> Path:
    """The program; built first where it is not there."""
    return build_engines(EngineCache(engines_dir()), names=["prometheus"]).binary("promql")


def kueue_metric(name: str, value: float, **labels: str) -> str:
    """A line of Kueue's metrics. Fails where Kueue has no such metric, or another set of labels."""
    assert set(METRICS[name]["labels"]) == {*labels}, name
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {float(value)}\n"


@cache
def _samples(text: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


@dataclass
class Collector:
    """A managed Prometheus: the label of its cluster takes the place of one that the metric has itself."""

    cluster: str
    pod: str = "pod-0"
    series: dict[Labels, list[tuple[float, float | None]]] = field(default_factory=dict)
    _last: set[Labels] = field(default_factory=set)

    def scrape(self, text: str | None, at: float) -> None:
        """Read metrics; None: nothing answers, and every series ends."""
        seen = set()
        for sample in _samples(text or ""):
            own = {f"exported_{key}" if key == "cluster" else key: output for key, output in sample.labels.items()}
            all_labels = {"__name__": sample.name, **own, "cluster": self.cluster, "pod": self.pod}
            labels = tuple(sorted(all_labels.items()))
            self.series.setdefault(labels, []).append((at, sample.value))
            seen.add(labels)
        for ended in self._last - seen:
            self.series[ended].append((at, None))
        self._last = seen

    def follow(self, text: Callable[[float], str | None], minutes: float) -> Collector:
        """Read what `text` says at each time of so many minutes."""
        for step in range(int(minutes * 60 / SCRAPE_SECONDS) + 1):
            self.scrape(text(step * SCRAPE_SECONDS / 60), step * SCRAPE_SECONDS)
        return self


def evaluate(query: str, collectors: Iterable[Collector], minutes: float, step: float) -> list[dict[str, Any]]:
    """The result of a range query that begins at 0: a list of series with `metric` and `values`."""
    series = [
        {"metric": dict(labels), "values": values} for item in collectors for labels, values in item.series.items()
    ]
    return evaluate_series(query, series, (0, minutes * 60), step)


def evaluate_series(
    query: str, series: list[dict[str, Any]], between: tuple[float, float], step: float
) -> list[dict[str, Any]]:
    """The result of a range query between two seconds: a list of series with `metric` and `values`, as are given."""
    asked = {"query": query, "start": between[0], "end": between[1], "step": step, "series": series}
    result = subprocess.run([engine()], input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    results: list[dict[str, Any]] | None = json.loads(result.stdout)
    return results or []


def firing(
    policy: Mapping[str, Any], collectors: Iterable[Collector], minutes: float
) -> dict[Labels, tuple[float, float]]:
    """For which labels the policy fires, and its first and last minute; it does once the query had a result for its
    duration without a break."""
    condition = policy["conditions"][0]["conditionPrometheusQueryLanguage"]
    duration = float(condition["duration"].removesuffix("s"))
    step = float(condition["evaluationInterval"].removesuffix("s"))
    result: dict[Labels, tuple[float, float]] = {}
    for series in evaluate(condition["query"], collectors, minutes, step):
        labels, since, before = tuple(sorted(series["metric"].items())), 0.0, -1e9
        for at, _ in series["values"]:
            since = since if at - before <= step else at
            before = at
            if at - since >= duration:
                first, _ = result.get(labels, (at / 60, 0.0))
                result[labels] = (first, at / 60)
    return result
