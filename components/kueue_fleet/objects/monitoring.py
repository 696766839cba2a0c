"""How Kueue's metrics get to managed Prometheus and from there to Grafana, and to a Prometheus of somebody else.

Kueue serves its metrics only to accounts that may `get /metrics`, so there is one such account, whose token is in a
Secret that the collector alone may read. A Prometheus Operator reads Secrets beside its PodMonitors anyway.

Sources: kueue@v0.19.2 charts/kueue/templates/rbac/metrics_reader_role.yaml and manager/manager.yaml;
https://github.com/GoogleCloudPlatform/prometheus-engine/blob/main/doc/api.md (PodMonitoring);
prometheus-operator@v0.91.0 example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import yaml

from kueue_admission.api.manifests import manifest, token_secret_manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file.charts import RELEASES
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.goals import wait_limits
from kueue_fleet.fleet_file.model.kueue_pods import KUEUE_POD_LABELS
from kueue_fleet.fleet_file.model.observability import Grafana, PodMonitors
from kueue_fleet.fleet_file.model.per_cluster import queue_goals
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.objects.dashboards import grafana_dashboard
from kueue_fleet.objects.grants import cluster_binding, role_grant, service_account_subject

READER_ROLE: Final = "kueue-metrics-reader"
"""ClusterRole of Kueue's chart; the account, its token and what belongs to them have the same name."""
POD_MONITOR_NAME: Final = "kueue-pod-monitor"
"""Name of the account by which a Prometheus Operator's Prometheus reads Kueue's metrics, and of its token."""
POD_MONITOR_API: Final = "monitoring.coreos.com/v1"
"""`apiVersion` of the Prometheus Operator."""
GRAFANA_NAME: Final = RELEASES["grafana"]
"""Name of the Helm release of Grafana, of its Service, its Secret and its account."""
DASHBOARD_NAME: Final = "kueue-fleet-dashboard"
"""Name of the ConfigMap with the dashboard for Grafana."""
DASHBOARD_LABEL: Final = "grafana_dashboard"
"""The sidecar of Grafana's chart, where there is one, loads ConfigMaps with this label."""
_FRONTEND_ADDRESS: Final = "127.0.0.1:9090"
_FRONTEND_VERSION: Final = "v0.15.3-gke.0"
"""Source: https://github.com/GoogleCloudPlatform/prometheus-engine/blob/main/examples/frontend.yaml."""
_INTERVAL: Final = "30s"
_KUEUE_ENDPOINT: Final = {"port": "metrics", "path": "/metrics", "scheme": "https", "interval": _INTERVAL}
_UNVERIFIED: Final = {"insecureSkipVerify": True}
"""Kueue's certificate is self-signed."""


def render_managed_monitoring(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The objects for managed Prometheus: an account with its token, who may read that, and a PodMonitoring."""
    entry = fleet.cluster(cluster)
    if not fleet.observability.managed_prometheus or entry.outside_gke:
        return []
    namespace = fleet.kueue.namespace
    # Autopilot runs the collectors in another namespace.
    collectors = "gke-gmp-system" if entry.platform == "Autopilot" else "gmp-system"
    readable = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [READER_ROLE], "verbs": ["get"]}
    endpoint = {
        **_KUEUE_ENDPOINT,
        "tls": _UNVERIFIED,
        "authorization": {"type": "Bearer", "credentials": {"secret": {"name": READER_ROLE, "key": "token"}}},
    }
    return [
        *_reader(READER_ROLE, namespace),
        *role_grant(READER_ROLE, namespace, [readable], service_account_subject("collector", collectors)),
        pod_monitoring("kueue", namespace, KUEUE_POD_LABELS, endpoint),
    ]


def render_pod_monitors(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The objects for a Prometheus Operator: an account with its token, which the operator reads, and a PodMonitor."""
    settings, namespace = fleet.cluster(cluster).pod_monitors, fleet.kueue.namespace
    if settings is None:
        return []
    endpoint = {
        **_KUEUE_ENDPOINT,
        "tlsConfig": _UNVERIFIED,
        "authorization": {"type": "Bearer", "credentials": {"name": POD_MONITOR_NAME, "key": "token"}},
    }
    return [
        *_reader(POD_MONITOR_NAME, namespace),
        pod_monitor(settings, "kueue", namespace, KUEUE_POD_LABELS, endpoint),
    ]


def pod_monitoring(name: str, namespace: str, selects: Mapping[str, str], endpoint: Mapping[str, Any]) -> Manifest:
    """What has managed Prometheus read an endpoint of the pods with these labels."""
    spec = {"selector": {"matchLabels": dict(selects)}, "endpoints": [dict(endpoint)]}
    return manifest("monitoring.googleapis.com/v1", "PodMonitoring", name, namespace, spec=spec)


def pod_monitor(
    settings: PodMonitors, name: str, namespace: str, selects: Mapping[str, str], endpoint: Mapping[str, Any]
) -> Manifest:
    """What has Prometheus, by its operator, read an endpoint of the pods with these labels."""
    spec = {"selector": {"matchLabels": dict(selects)}, "podMetricsEndpoints": [dict(endpoint)]}
    return manifest(POD_MONITOR_API, "PodMonitor", name, namespace, labels=settings.labels, spec=spec)


def _reader(name: str, namespace: str) -> list[Manifest]:
    """An account that may read Kueue's metrics, with its token."""
    return [
        manifest("v1", "ServiceAccount", name, namespace),
        cluster_binding(name, READER_ROLE, service_account_subject(name, namespace)),
        token_secret_manifest(name, namespace, name),
    ]


def render_grafana(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The dashboard for Grafana, on the manager or the standalone cluster; none elsewhere."""
    settings = fleet.observability.grafana
    if not fleet.observability.has_grafana or cluster != fleet.home:
        return []
    controller = fleet.controller is not None
    goals = wait_limits(queue_goals(fleet))
    dashboard = grafana_dashboard(f"{fleet.name}: GPU batch fleet", fleet.name, controller=controller, goals=goals)
    data, labels = {"kueue-fleet.json": json.dumps(dashboard)}, {DASHBOARD_LABEL: "1"}
    return [manifest("v1", "ConfigMap", DASHBOARD_NAME, settings.namespace, labels=labels, data=data)]


def grafana_helm_values(settings: Grafana, project: str, account: str) -> dict[str, Any]:
    """Values of Grafana's chart: one data source, Google's query frontend in the same pod, which alone can reach it.

    `project` has the metrics; `account` is the address of the Google account that reads them. The chart makes Grafana's
    password at random, in the Secret `grafana`, and keeps it; it is in no state. Grafana reads nothing of the cluster,
    so that its account has no rights and no token there.
    """
    registry, _, repository = settings.image.partition("/")
    return {
        "fullnameOverride": GRAFANA_NAME,
        "image": {"registry": registry, "repository": repository},
        "testFramework": {"enabled": False},
        "rbac": {"create": False},
        "serviceAccount": {"name": GRAFANA_NAME, "annotations": {WORKLOAD_IDENTITY_ANNOTATION: account}},
        "automountServiceAccountToken": False,
        # From its own namespace alone; `kubectl port-forward` comes by the node.
        "networkPolicy": {"enabled": True, "allowExternal": False},
        "service": {"type": "ClusterIP"},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "grafana.ini": {
            "analytics": {"reporting_enabled": False, "check_for_updates": False, "check_for_plugin_updates": False},
            "plugins": {"preinstall_disabled": True},
        },
        "extraContainers": yaml.safe_dump([_frontend(settings, project)], sort_keys=True, width=1000),
        "datasources": {"datasources.yaml": {"apiVersion": 1, "datasources": [GRAFANA_DATA_SOURCE]}},
        "dashboardProviders": {"dashboardproviders.yaml": {"apiVersion": 1, "providers": [_DASHBOARD_FOLDER]}},
        "dashboardsConfigMaps": {PRODUCT: DASHBOARD_NAME},
    }


GRAFANA_DATA_SOURCE: Final[Mapping[str, Any]] = {
    "name": "Managed Prometheus",
    "uid": "managed-prometheus",
    "type": "prometheus",
    "access": "proxy",
    "url": f"http://{_FRONTEND_ADDRESS}",
    "isDefault": True,
    "editable": False,
    "jsonData": {
        "httpMethod": "GET",
        "prometheusType": "Prometheus",
        "prometheusVersion": "2.40.0",
        "timeInterval": _INTERVAL,
        "queryTimeout": "2m",
        "timeout": 120,
        "manageAlerts": False,
    },
}
"""Grafana's data source, set as Google's data source syncer sets one.

Source: https://cloud.google.com/stackdriver/docs/managed-prometheus/query."""
_DASHBOARD_FOLDER: Final[Mapping[str, Any]] = {
    "name": PRODUCT,
    "type": "file",
    "disableDeletion": True,
    "allowUiUpdates": False,
    "options": {"path": f"/var/lib/grafana/dashboards/{PRODUCT}"},
}


def _frontend(settings: Grafana, project: str) -> dict[str, Any]:
    """The query frontend, as another container of Grafana's pod: it asks for no credentials, so it listens to the
    pod itself alone, and has no probe."""
    return {
        "name": "frontend",
        "image": f"{settings.frontend_image}:{_FRONTEND_VERSION}",
        "args": [f"--web.listen-address={_FRONTEND_ADDRESS}", f"--query.project-id={project}"],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsUser": 1000,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
