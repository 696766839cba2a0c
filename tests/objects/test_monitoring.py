from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from kueue_admission.kernel import SpecError
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file import FleetSpec, Grafana, check_fleet, kueue_configuration, parse_fleet
from kueue_fleet.google.parts import NO_SURROUNDINGS, grafana_arguments
from kueue_fleet.objects import render_cluster
from kueue_fleet.objects.controller import render_controller
from kueue_fleet.objects.monitoring import (
    grafana_helm_values,
    render_grafana,
    render_managed_monitoring,
    render_pod_monitors,
)
from plain_fleets import mixed_data
from small_fleets import MANAGER, WORKER, fleet, fleet_data

ON = {"managedPrometheus": True}


def by_kind(manifests: Sequence[Manifest]) -> dict[str, Any]:
    return {manifest["kind"]: manifest for manifest in manifests}


def test_nothing_is_read_where_nobody_asks() -> None:
    spec = fleet(WORKER)
    assert render_managed_monitoring(spec, WORKER) == render_grafana(spec, WORKER) == []
    assert "enableClusterQueueResources" not in kueue_configuration(spec, WORKER)["metrics"]


def observed(mode: str = "Autopilot", **other: Any) -> FleetSpec:
    data = fleet_data(WORKER, observability={**ON, **other})
    next(cluster for cluster in data["clusters"] if cluster["name"] == WORKER)["mode"] = mode
    return parse_fleet(data)


@pytest.mark.parametrize(("mode", "place"), [("Autopilot", "gke-gmp-system"), ("Standard", "gmp-system")])
def test_the_collector_reads_kueues_metrics_with_a_token_that_it_alone_may_read(mode: str, place: str) -> None:
    result = by_kind(render_managed_monitoring(observed(mode), WORKER))
    assert {manifest["metadata"].get("namespace") for manifest in result.values()} == {"kueue-system", None}
    endpoint = result["PodMonitoring"]["spec"]["endpoints"][0]
    secret = endpoint["authorization"]["credentials"]["secret"]
    assert result["Secret"]["metadata"]["name"] == secret["name"]
    assert result["Secret"]["type"] == "kubernetes.io/service-account-token"
    account = result["ServiceAccount"]["metadata"]["name"]
    assert result["Secret"]["metadata"]["annotations"] == {"kubernetes.io/service-account.name": account}
    granted = result["ClusterRoleBinding"]
    assert granted["roleRef"]["name"] == "kueue-metrics-reader"
    assert granted["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "kueue-system"}]
    assert result["Role"]["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret["name"]], "verbs": ["get"]}
    ]
    assert result["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": "collector", "namespace": place}]


def test_pods_are_found_by_labels_that_kueues_chart_gives_them() -> None:
    result = by_kind(render_managed_monitoring(observed(), WORKER))["PodMonitoring"]
    assert result["spec"]["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "kueue",
        "control-plane": "controller-manager",
    }
    assert result["spec"]["endpoints"][0]["port"] == "metrics"
    assert result["spec"]["endpoints"][0]["scheme"] == "https"


def test_quotas_are_measured_where_they_are_shown() -> None:
    assert kueue_configuration(observed(), WORKER)["metrics"]["enableClusterQueueResources"] is True


def test_what_is_rendered_is_part_of_the_clusters_objects() -> None:
    spec = observed()
    everything = render_cluster(spec, MANAGER)
    for manifest in (*render_managed_monitoring(spec, MANAGER), *render_grafana(spec, MANAGER)):
        assert manifest in everything


def test_grafana_is_on_the_manager_alone_unless_the_file_says_otherwise() -> None:
    spec = fleet(WORKER, observability={})
    [board] = render_grafana(spec, MANAGER)
    assert (board["kind"], board["metadata"]["namespace"]) == ("ConfigMap", "monitoring")
    assert render_grafana(spec, WORKER) == []
    assert grafana_arguments(spec, NO_SURROUNDINGS)["namespace"] == "monitoring"
    off = fleet(WORKER, observability={"grafana": {"enabled": False}})
    assert render_grafana(off, MANAGER) == []
    assert grafana_arguments(off, NO_SURROUNDINGS) == {}


def test_a_grafana_that_is_there_gets_the_dashboard_and_no_account_reads_metrics_for_it() -> None:
    spec = observed(grafana={"existing": True, "namespace": "graphs"})
    [board] = render_grafana(spec, MANAGER)
    assert board["metadata"]["namespace"] == "graphs"
    assert board["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert json.loads(board["data"]["kueue-fleet.json"])["title"] == "lab: GPU batch fleet"
    assert grafana_arguments(spec, NO_SURROUNDINGS) == {}


VALUES = grafana_helm_values(Grafana(image="mirror.lab/grafana/grafana"), "lab-project", "grafana@lab")


def test_grafana_reaches_metrics_by_its_own_pod_and_google_account_alone() -> None:
    assert VALUES["serviceAccount"] == {
        "name": "grafana",
        "annotations": {"iam.gke.io/gcp-service-account": "grafana@lab"},
    }
    [frontend] = yaml.safe_load(VALUES["extraContainers"])
    assert "--query.project-id=lab-project" in frontend["args"]
    [source] = VALUES["datasources"]["datasources.yaml"]["datasources"]
    [address] = [arg.partition("=")[2] for arg in frontend["args"] if arg.startswith("--web.listen-address=")]
    assert source["url"] == f"http://{address}"
    assert address.startswith("127.0.0.1:")
    assert (source["type"], source["isDefault"], source["jsonData"]["httpMethod"]) == ("prometheus", True, "GET")


def test_grafana_has_no_password_that_anybody_knows_no_rights_and_no_address_outside() -> None:
    assert not {"adminPassword", "admin", "ingress", "route"} & VALUES.keys()
    assert VALUES["rbac"] == {"create": False}
    assert VALUES["automountServiceAccountToken"] is False
    assert VALUES["service"] == {"type": "ClusterIP"}
    assert VALUES["networkPolicy"] == {"enabled": True, "allowExternal": False}
    assert VALUES["image"] == {"registry": "mirror.lab", "repository": "grafana/grafana"}


def test_the_dashboard_is_where_grafana_looks_for_it() -> None:
    [board] = render_grafana(observed(), MANAGER)
    [(provider, name)] = VALUES["dashboardsConfigMaps"].items()
    assert name == board["metadata"]["name"]
    [folder] = VALUES["dashboardProviders"]["dashboardproviders.yaml"]["providers"]
    assert folder["options"]["path"] == f"/var/lib/grafana/dashboards/{provider}"


@pytest.mark.parametrize(
    ("grafana", "problem"),
    [
        ({"enabled": False, "existing": True}, "existing: true, but enabled is false; remove one of the two"),
        ({"existing": True, "version": "1.2.3"}, "version: has no effect, as existing is true; remove it"),
        ({"existing": True, "frontendImage": "a/b"}, "frontendImage: has no effect, as existing is true; remove it"),
    ],
)
def test_what_contradicts_itself_is_named(grafana: dict[str, Any], problem: str) -> None:
    section = {"dashboard": False, "alerts": {"enabled": False}}
    spec = parse_fleet(fleet_data(WORKER, observability={**section, "grafana": grafana}))
    assert any(str(item).startswith(f"observability.grafana.{problem}") for item in check_fleet(spec))


def test_grafana_needs_what_collects_its_metrics() -> None:
    section = {"managedPrometheus": False, "dashboard": False, "alerts": {"enabled": False}}
    with pytest.raises(SpecError, match=r"grafana\.enabled: true, but without managedPrometheus it"):
        parse_fleet(fleet_data(WORKER, observability={**section, "grafana": {"enabled": True}}))


def test_there_is_no_grafana_by_default_without_what_collects_its_metrics() -> None:
    section = {"managedPrometheus": False, "dashboard": False, "alerts": {"enabled": False}}
    spec = parse_fleet(fleet_data(WORKER, observability=section))
    assert not spec.observability.has_grafana
    assert render_grafana(spec, WORKER) == []


def test_no_team_has_the_namespace_where_pods_can_read_all_metrics() -> None:
    team = {"name": "a", "namespaces": ["monitoring"]}
    with pytest.raises(SpecError, match="monitoring is the namespace of Grafana; use another namespace"):
        parse_fleet(fleet_data(WORKER, observability={}, teams=[team]))


LABELS = {"release": "kube-prometheus-stack"}


def with_operator(cluster: str = "paris", **section: Any) -> FleetSpec:
    data = mixed_data()
    next(item for item in data["clusters"] if item["name"] == cluster)["podMonitors"] = {"labels": LABELS, **section}
    return parse_fleet(data)


def test_a_prometheus_operator_has_a_pod_monitor_with_a_token_of_its_own() -> None:
    result = by_kind(render_pod_monitors(with_operator(), "paris"))
    assert result["PodMonitor"]["metadata"] == {"name": "kueue", "namespace": "kueue-system", "labels": LABELS}
    [endpoint] = result["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": result["Secret"]["metadata"]["name"], "key": "token"}
    assert result["ClusterRoleBinding"]["roleRef"]["name"] == "kueue-metrics-reader"
    assert [item["name"] for item in result["ClusterRoleBinding"]["subjects"]] == [
        result["ServiceAccount"]["metadata"]["name"]
    ]


def test_it_is_on_the_clusters_that_say_so_of_any_platform() -> None:
    fleet = with_operator("gke")
    assert [bool(render_pod_monitors(fleet, item)) for item in ("manager", "gke", "paris")] == [False, True, False]
    assert [
        kueue_configuration(fleet, entry)["metrics"].get("enableClusterQueueResources") for entry in ("gke", "paris")
    ] == [
        True,
        None,
    ]


def test_nothing_of_managed_prometheus_is_outside_gke() -> None:
    section = {"image": "registry.example/controller:1"}
    data = mixed_data(observability={"grafana": {"enabled": False}}, controller=section)
    data["clusters"][0] = {
        "name": "manager",
        "role": "manager",
        "kubernetes": {},
        "podMonitors": {"namespace": "metrics"},
    }
    fleet = parse_fleet(data)
    kinds = [item["kind"] for item in render_cluster(fleet, "manager")]
    assert (kinds.count("PodMonitoring"), kinds.count("PodMonitor")) == (0, 2)
    assert '"metrics"' in json.dumps(by_kind(render_controller(fleet, "manager"))["NetworkPolicy"]["spec"]["ingress"])


def test_labels_are_as_kubernetes_has_them() -> None:
    with pytest.raises(SpecError, match=r"clusters\[paris\]\.podMonitors\.labels\[release\]"):
        with_operator(labels={"release": "not a label"})
