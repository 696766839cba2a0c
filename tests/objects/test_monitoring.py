from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kueue_admission.forms.manifest import Manifest
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration, parse_fleet
from kueue_fleet.objects import render_cluster
from kueue_fleet.objects.monitoring import grafana_helm_values, render_grafana, render_managed_monitoring
from small_fleets import WORKER, fleet, fleet_data

ON = {"managedPrometheus": True}


def by_kind(manifests: Sequence[Manifest]) -> dict[str, Any]:
    return {manifest["kind"]: manifest for manifest in manifests}


def test_nothing_is_read_where_nobody_asks() -> None:
    spec = fleet(WORKER)
    assert render_managed_monitoring(spec, WORKER) == render_grafana(spec) == []
    assert "enableClusterQueueResources" not in kueue_configuration(spec, WORKER)["metrics"]


def observed(mode: str = "Autopilot", **other: Any) -> FleetSpec:
    data = fleet_data(WORKER, observability={**ON, **other})
    next(cluster for cluster in data["clusters"] if cluster["name"] == WORKER)["mode"] = mode
    return parse_fleet(data)


@pytest.mark.parametrize(("mode", "place"), [("Autopilot", "gke-gmp-system"), ("Standard", "gmp-system")])
def test_the_collector_reads_kueues_metrics_with_a_token_that_it_alone_may_read(mode: str, place: str) -> None:
    made = by_kind(render_managed_monitoring(observed(mode), WORKER))
    assert {manifest["metadata"].get("namespace") for manifest in made.values()} == {"kueue-system", None}
    endpoint = made["PodMonitoring"]["spec"]["endpoints"][0]
    secret = endpoint["authorization"]["credentials"]["secret"]
    assert made["Secret"]["metadata"]["name"] == secret["name"]
    assert made["Secret"]["type"] == "kubernetes.io/service-account-token"
    account = made["ServiceAccount"]["metadata"]["name"]
    assert made["Secret"]["metadata"]["annotations"] == {"kubernetes.io/service-account.name": account}
    granted = made["ClusterRoleBinding"]
    assert granted["roleRef"]["name"] == "kueue-metrics-reader"
    assert granted["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "kueue-system"}]
    assert made["Role"]["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret["name"]], "verbs": ["get"]}
    ]
    assert made["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": "collector", "namespace": place}]


def test_pods_are_found_by_labels_that_kueues_chart_gives_them() -> None:
    made = by_kind(render_managed_monitoring(observed(), WORKER))["PodMonitoring"]
    assert made["spec"]["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "kueue",
        "control-plane": "controller-manager",
    }
    assert made["spec"]["endpoints"][0]["port"] == "metrics"
    assert made["spec"]["endpoints"][0]["scheme"] == "https"


def test_quotas_are_measured_where_they_are_shown() -> None:
    assert kueue_configuration(observed(), WORKER)["metrics"]["enableClusterQueueResources"] is True


def test_what_is_rendered_is_part_of_the_clusters_objects() -> None:
    spec = observed(grafana={"enabled": True})
    everything = render_cluster(spec, WORKER)
    for manifest in (*render_managed_monitoring(spec, WORKER), *render_grafana(spec)):
        assert manifest in everything


def test_grafana_gets_the_dashboard_and_prometheus_leave_to_read() -> None:
    made = by_kind(render_grafana(observed(grafana={"enabled": True, "namespace": "metrics"})))
    board = made["ConfigMap"]
    assert board["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert json.loads(board["data"]["kueue-fleet.json"])["title"] == "lab: GPU batch fleet"
    subject = made["ClusterRoleBinding"]["subjects"][0]
    values = grafana_helm_values()
    assert subject == {
        "kind": "ServiceAccount",
        "name": f"{values['fullnameOverride']}-prometheus",
        "namespace": "metrics",
    }
    monitor = made["ServiceMonitor"]["spec"]
    assert monitor["namespaceSelector"] == {"matchNames": ["kueue-system"]}
    assert monitor["selector"]["matchLabels"]["app.kubernetes.io/component"] == "metrics-service"


def test_grafana_has_no_password_that_everybody_knows_and_looks_for_nothing_that_google_hides() -> None:
    values = grafana_helm_values()
    assert values["grafana"]["adminPassword"] == ""
    assert values["nodeExporter"] == {"enabled": False}
    for hidden in ("kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy"):
        assert values[hidden] == {"enabled": False}
