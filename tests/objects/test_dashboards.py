"""The dashboards ask only for what Kueue measures."""

from __future__ import annotations

import json
import re

import pytest

from kueue_fleet.fleet_file.model.goals import WaitLimit
from kueue_fleet.objects.dashboard_charts import sections
from kueue_fleet.objects.dashboards import cloud_monitoring_dashboard, grafana_dashboard
from promql import query_problems

CHARTS = [chart for section in sections(controller=True) for chart in section.charts]
QUERIES = [(chart.title, query) for chart in CHARTS for query in chart.queries.values()]


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[title for title, _ in QUERIES])
def test_a_query_names_metrics_and_labels_that_exist(title: str, query: str) -> None:
    assert not list(query_problems(query))


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("sum by (cluster_queue) (kueue_pending_workload)", "kueue_pending_workload is not a metric of Kueue"),
        ("sum by (queue) (kueue_pending_workloads)", "queue is a label of no metric there"),
        ('kueue_pending_workloads{state="active"}', "state is a label of no metric there"),
        ("kueue_admitted_workloads_total", "kueue_admitted_workloads_total: a counter, but not rated"),
        ("rate(kueue_pending_workloads[5m])", "kueue_pending_workloads: a gauge, but rated"),
        ("rate(multikueue_workloads_sent_total[5m])", "multikueue_workloads_sent_total is not a metric of Kueue"),
    ],
)
def test_a_wrong_query_is_found(query: str, problem: str) -> None:
    assert list(query_problems(query)) == [problem]


def test_queues_multikueue_gpus_and_dws_are_shown() -> None:
    assert [section.title for section in sections(controller=False)] == [
        "Queues",
        "Quota and GPUs",
        "GPUs and nodes",
        "MultiKueue",
        "Capacity from DWS",
    ]
    text = " ".join(query for _, query in QUERIES)
    for metric in (
        "kueue_pending_workloads",
        "kueue_cluster_queue_status",
        "kueue_cluster_queue_resource_usage",
        "DCGM_FI_DEV_GPU_UTIL",
        "multikueue_workloads_admitted_total",
        "kueue_admission_checks_wait_time_seconds_bucket",
    ):
        assert metric in text


OF_OTHERS = {
    # https://github.com/NVIDIA/dcgm-exporter/blob/main/etc/default-counters.csv, and GKE's list of DCGM metrics
    *("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"),
    # https://github.com/kubernetes/kube-state-metrics/blob/main/docs/metrics/cluster/node-metrics.md
    "kube_node_info",
    # kubernetes.io/node/cpu/allocatable_cores, as https://cloud.google.com/monitoring/promql/promql-mapping writes it
    "kubernetes_io:node_cpu_allocatable_cores",
}


def test_metrics_of_others_are_those_that_their_exporters_have() -> None:
    text = " ".join(query for _, query in QUERIES)
    assert set(re.findall(r"\b(?:DCGM_\w+|kube_\w+|kubernetes_io:\w+)", text)) == OF_OTHERS


@pytest.mark.parametrize("title", ["GPUs by how busy they are", "GPUs by how full their memory is"])
def test_a_heatmap_has_five_bands_that_leave_nothing_out(title: str) -> None:
    (chart,) = [chart for chart in CHARTS if chart.title == title]
    assert [*chart.queries] == [f"{low} to {low + 20} %" for low in range(0, 100, 20)]
    limits = [re.findall(r"bool ([\d.]+)", query) for query in chart.queries.values()]
    assert limits == [["0.0", "0.2"], ["0.2", "0.4"], ["0.4", "0.6"], ["0.6", "0.8"], ["0.8", "1.01"]]
    (panel,) = [panel for panel in grafana_dashboard("lab", "lab")["panels"] if panel["title"] == title]
    assert panel["type"] == "heatmap"
    assert [target["legendFormat"] for target in panel["targets"]] == [*chart.queries]


def test_each_chart_says_what_to_look_for() -> None:
    assert [chart.title for chart in CHARTS if not chart.help.endswith(".")] == []


def test_what_happens_is_counted_per_hour() -> None:
    """A fleet admits a few jobs an hour, and not many a second."""
    rated = [query for chart in CHARTS if chart.unit == "per hour" for query in chart.queries.values()]
    assert len(rated) > 8
    assert all(query.startswith("3600 * sum by") for query in rated)


def test_teams_are_told_apart_by_their_namespaces() -> None:
    titles = [
        chart.title for chart in CHARTS if all("by (cluster, exported_namespace)" in q for q in chart.queries.values())
    ]
    assert len(titles) == 3


def test_grafana_filters_every_query_by_labels_that_are_chosen() -> None:
    assert [item["type"] for item in grafana_dashboard("lab", "lab")["templating"]["list"]] == ["datasource", "adhoc"]


@pytest.mark.parametrize(
    ("title", "legends"),
    [
        ("Jobs that wait", ["{{cluster_queue}} {{status}} {{cluster}}"]),
        ("Time to a nomination", ["median {{cluster}}", "95 % {{cluster}}"]),
        ("GPU nodes by kind", ["{{modelName}} {{cluster}}"]),
        ("Workers that are followed", ["{{exported_cluster}}"]),
    ],
)
def test_a_legend_of_grafana_names_what_tells_the_series_apart(title: str, legends: list[str]) -> None:
    (panel,) = [
        panel for panel in grafana_dashboard("lab", "lab", controller=True)["panels"] if panel["title"] == title
    ]
    assert [target["legendFormat"] for target in panel["targets"]] == legends


def test_every_series_of_grafana_has_a_legend() -> None:
    """Without one Grafana writes all labels with their names, in braces."""
    board = grafana_dashboard("lab", "lab", controller=True, goals=[WaitLimit("gpu", "deadline", 0.9, 7200.0)])
    legends = [target["legendFormat"] for panel in board["panels"] for target in panel.get("targets", [])]
    assert all(legends)
    assert "goal gpu deadline, 90 %" in legends


def overlapping(places: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """Indexes of tiles that lie on each other; a place is x, y, width, height."""
    return [
        (i, j)
        for i, (ax, ay, aw, ah) in enumerate(places)
        for j, (bx, by, bw, bh) in enumerate(places[:i])
        if ax < bx + bw and bx < ax + aw and ay < by + bh and by < ay + ah
    ]


def test_both_dashboards_ask_the_same_questions_and_their_tiles_do_not_overlap() -> None:
    cloud = cloud_monitoring_dashboard("lab", controller=True)
    grafana = grafana_dashboard("lab", "lab", controller=True)
    tiles = cloud["mosaicLayout"]["tiles"]
    in_cloud = [
        data["timeSeriesQuery"]["prometheusQuery"]
        for tile in tiles
        for data in tile["widget"].get("xyChart", {}).get("dataSets", [])
    ]
    in_grafana = [target["expr"] for panel in grafana["panels"] for target in panel.get("targets", [])]
    assert in_cloud == in_grafana == [query for _, query in QUERIES]
    assert not overlapping([(t.get("xPos", 0), t.get("yPos", 0), t["width"], t["height"]) for t in tiles])
    assert all(t.get("xPos", 0) + t["width"] <= cloud["mosaicLayout"]["columns"] for t in tiles)
    grid = [panel["gridPos"] for panel in grafana["panels"]]
    assert not overlapping([(g["x"], g["y"], g["w"], g["h"]) for g in grid])
    assert all(g["x"] + g["w"] <= 24 for g in grid)
    assert [panel["id"] for panel in grafana["panels"]] == list(range(1, len(grafana["panels"]) + 1))


def test_every_unit_is_known_to_both() -> None:
    for unit in ("count", "seconds", "ratio", "per hour", "bytes"):
        assert [chart for chart in CHARTS if chart.unit == unit], unit
    assert json.dumps(cloud_monitoring_dashboard("lab"))
    assert json.dumps(grafana_dashboard("lab", "lab"))


def test_a_chart_says_what_to_look_for_where_it_is_seen() -> None:
    helped = [chart for chart in CHARTS if chart.help]
    board = cloud_monitoring_dashboard("lab", controller=True)
    titles = [tile["widget"].get("title") for tile in board["mosaicLayout"]["tiles"]]
    assert helped
    assert all(f"{chart.title}: {chart.help}" in titles for chart in helped)


def test_the_controller_is_shown_where_there_is_one() -> None:
    assert "kueue_fleet_" not in json.dumps([cloud_monitoring_dashboard("lab"), grafana_dashboard("lab", "lab")])
    assert "kueue_fleet_" in json.dumps(cloud_monitoring_dashboard("lab", controller=True))


def zeros(value: object, path: str = "") -> list[str]:
    """Paths of zeros, empty texts, lists and maps: what Cloud Monitoring drops."""
    if isinstance(value, dict) and value:
        return [results for key, part in value.items() for results in zeros(part, f"{path}.{key}")]
    if isinstance(value, list) and value:
        return [result for index, part in enumerate(value) for result in zeros(part, f"{path}[{index}]")]
    return [] if value else [path]


@pytest.mark.parametrize("controller", [False, True])
def test_nothing_that_cloud_monitoring_drops_is_sent(controller: bool) -> None:
    assert zeros(cloud_monitoring_dashboard("t", controller=controller)) == []
    assert zeros({"a": [{"xPos": 0}]}) == [".a[0].xPos"]


def test_each_goal_of_waits_is_a_line_in_the_chart_of_waits() -> None:
    (chart,) = [
        chart
        for section in sections(controller=False, goals=[WaitLimit("gpu", "deadline", 0.9, 7200.0)])
        for chart in section.charts
        if chart.waits
    ]
    assert chart.queries["goal gpu deadline, 90 %"] == "vector(7200)"
