"""The dashboards of a fleet, for Cloud Monitoring and for Grafana.

Both ask in PromQL, which Cloud Monitoring answers from what managed Prometheus collects; the queries are the same, so
the dashboards cannot tell different stories.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file.model.goals import WaitLimit
from kueue_fleet.objects.dashboard_charts import Chart, Unit, sections


def cloud_monitoring_dashboard(
    title: str, *, controller: bool = False, goals: Sequence[WaitLimit] = ()
) -> dict[str, Any]:
    """The dashboard as Cloud Monitoring takes it: three charts in a row, each section under a line of text.

    Source: https://cloud.google.com/monitoring/api/ref_v3/rest/v1/projects.dashboards.
    """
    columns, heading, height = 48, 4, 16
    width = columns // 3
    tiles: list[dict[str, Any]] = []
    y = 0
    for section in sections(controller=controller, goals=goals):
        text = {"text": {"content": f"## {section.title}", "format": "MARKDOWN"}}
        tiles.append({**_position(0, y), "width": columns, "height": heading, "widget": text})
        y += heading
        for index, chart in enumerate(section.charts):
            place = _position(index % 3 * width, y + index // 3 * height)
            tiles.append({**place, "width": width, "height": height, "widget": _cloud_monitoring_chart(chart)})
        y += -(-len(section.charts) // 3) * height
    return {"displayName": title, "mosaicLayout": {"columns": columns, "tiles": tiles}}


def _position(x: int, y: int) -> dict[str, int]:
    """Where a tile is. Cloud Monitoring drops zeros, and a zero that is not returned is a change on every update."""
    return {key: value for key, value in (("xPos", x), ("yPos", y)) if value}


_CLOUD_UNITS: Final[Mapping[Unit, str]] = {
    "count": "1",
    "seconds": "s",
    "ratio": "10^2.%",
    "per hour": "1/h",
    "bytes": "By",
}


def _cloud_monitoring_chart(chart: Chart) -> dict[str, Any]:
    data_sets = [
        {
            "timeSeriesQuery": {"prometheusQuery": query, "unitOverride": _CLOUD_UNITS[chart.unit]},
            # A heatmap is only for distributions; areas on each other show the same of counts.
            "plotType": "STACKED_AREA" if chart.heatmap else "LINE",
            "targetAxis": "Y1",
            **({"legendTemplate": _cloud_legend(legend, chart)} if legend else {}),
        }
        for legend, query in chart.queries.items()
    ]
    return {
        "title": f"{chart.title}: {chart.help}" if chart.help else chart.title,
        "xyChart": {"dataSets": data_sets, "yAxis": {"scale": "LINEAR"}, "chartOptions": {"mode": "COLOR"}},
    }


def _cloud_legend(legend: str, chart: Chart) -> str:
    return legend if chart.heatmap else f"{legend} ${{metric.labels.cluster_queue}}"


def grafana_dashboard(
    title: str, uid: str, *, controller: bool = False, goals: Sequence[WaitLimit] = ()
) -> dict[str, Any]:
    """The dashboard as Grafana takes it, for any Prometheus data source, managed or in the cluster.

    Source: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/.
    """
    columns, height = 24, 9
    width = columns // 3
    panels: list[dict[str, Any]] = []
    y = 0
    for section in sections(controller=controller, goals=goals):
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": section.title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": y, "w": columns, "h": 1},
                "panels": [],
            }
        )
        y += 1
        for index, chart in enumerate(section.charts):
            place = {"x": index % 3 * width, "y": y + index // 3 * height, "w": width, "h": height}
            panels.append(_grafana_panel(chart, len(panels) + 1, place))
        y += -(-len(section.charts) // 3) * height
    return {
        "uid": uid,
        "title": title,
        "tags": ["kueue", PRODUCT],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source", "hide": 0},
                # Its filters, such as cluster or cluster_queue, are added to every query.
                {"name": "filters", "type": "adhoc", "datasource": _DATA_SOURCE, "label": "Filters", "hide": 0},
            ]
        },
        "panels": panels,
    }


_GRAFANA_UNITS: Final[Mapping[Unit, Mapping[str, Any]]] = {
    "count": {"unit": "short", "decimals": 0},
    "seconds": {"unit": "s"},
    "ratio": {"unit": "percentunit"},
    "per hour": {"unit": "suffix:/h"},
    "bytes": {"unit": "bytes"},
}
_LINES: Final[Mapping[str, Any]] = {
    "legend": {
        "showLegend": True,
        "displayMode": "table",
        "placement": "bottom",
        "calcs": ["max", "lastNotNull"],
        "sortBy": "Max",
        "sortDesc": True,
    },
    "tooltip": {"mode": "multi", "sort": "desc"},
}
# Its rows are the queries.
_HEATMAP: Final[Mapping[str, Any]] = {
    "calculate": False,
    "cellGap": 0,
    "color": {
        "mode": "scheme",
        "scheme": "Oranges",
        "steps": 64,
        "reverse": False,
        "exponent": 0.5,
        "fill": "dark-orange",
    },
    "rowsFrame": {"layout": "auto"},
    "yAxis": {"axisPlacement": "left", "reverse": False},
    "legend": {"show": True},
    "tooltip": {"mode": "single", "yHistogram": False},
}
_BY: Final = re.compile(r"\bby \(([^)]*)\)")
_DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def _grafana_panel(chart: Chart, number: int, place: Mapping[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": "heatmap" if chart.heatmap else "timeseries",
        "title": chart.title,
        "description": chart.help,
        "datasource": _DATA_SOURCE,
        "gridPos": dict(place),
        "fieldConfig": {"defaults": {**_GRAFANA_UNITS[chart.unit], "min": 0}, "overrides": []},
        "options": _HEATMAP if chart.heatmap else _LINES,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _DATA_SOURCE,
                "expr": query,
                "legendFormat": _grafana_legend(legend, query),
            }
            for index, (legend, query) in enumerate(chart.queries.items())
        ],
    }


def _grafana_legend(legend: str, query: str) -> str:
    """The legend, and the labels that tell the series of a query apart, the cluster last: what is long is cut off.

    Without one Grafana writes all labels with their names, in braces.
    """
    by = _BY.search(query)
    labels = sorted(by[1].split(", ") if by is not None else [], key=lambda label: label == "cluster")
    return " ".join([*filter(None, [legend]), *(f"{{{{{label}}}}}" for label in labels if label != "le")])
