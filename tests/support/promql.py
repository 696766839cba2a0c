"""Whether queries in PromQL ask for what Kueue and the fleet's controller measure.

kueue_metrics.json lists the metrics of Kueue 0.19.2 with type and labels, read from pkg/metrics/metrics.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from kueue_fleet.controller.metrics import Metrics


def controller_metrics() -> dict[str, dict[str, Any]]:
    """What the fleet's own controller measures, in the same form."""
    result = {}
    for collector in vars(Metrics()).values():
        if isinstance(collector, Counter | Gauge | Histogram):
            kind = type(collector).__name__.lower()
            name = collector._name + ("_total" if kind == "counter" else "")
            result[name] = {"type": kind, "labels": list(collector._labelnames)}
    return result


METRICS = json.loads((Path(__file__).parent / "kueue_metrics.json").read_text()) | controller_metrics()
OF_THE_COLLECTOR = {"cluster", "exported_cluster", "namespace", "exported_namespace", "pod", "container"}
"""Labels that every series has beside its metric's own."""


def query_problems(query: str) -> Iterator[str]:
    """What is wrong with a query about Kueue's metrics: unknown metrics or labels, counters that are not rated."""
    labels, unknown = {*OF_THE_COLLECTOR}, False
    for result in re.finditer(r"(rate|increase)?\(?\b((?:multi)?kueue_\w+)", query):
        rated, name = result.groups()
        metric = METRICS.get(name) or METRICS.get(name.removesuffix("_bucket"))
        if metric is None:
            yield f"{name} is not a metric of Kueue"
            unknown = True
            continue
        bucket = name.endswith("_bucket") and metric["type"] == "histogram"
        if (metric["type"] == "counter" or bucket) != (rated is not None):
            yield f"{name}: a {metric['type']}, but {'rated' if rated else 'not rated'}"
        labels |= {*metric["labels"], *(["le"] if bucket else [])}
    if unknown or "kueue_" not in query:
        return
    used = [name.strip() for group in re.findall(r"by \(([^)]*)\)", query) for name in group.split(",")]
    used += re.findall(r"[{,](\w+)\s*[!=]", query)
    yield from (f"{name} is a label of no metric there" for name in used if name not in labels)
