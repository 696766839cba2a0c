"""How Kueue's metrics get to managed Prometheus, and from there to Grafana.

Kueue serves its metrics only to accounts that may `get /metrics`, so there is one such account, whose token is in a
Secret that the collector alone may read.

Sources: kueue@v0.19.2 charts/kueue/templates/rbac/metrics_reader_role.yaml and manager/manager.yaml;
https://github.com/GoogleCloudPlatform/prometheus-engine/blob/main/doc/api.md (PodMonitoring).
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
from kueue_fleet.fleet_file.model.observability import Grafana
from kueue_fleet.fleet_file.model.per_cluster import queue_goals
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.objects.dashboards import grafana_dashboard
from kueue_fleet.objects.grants import cluster_binding, role_grant, service_account_subject

READER_ROLE: Final = "kueue-metrics-reader"
"""ClusterRole of Kueue's chart; the account, its token and what belongs to them have the same name."""
POD_MONITORING_API: Final = "monitoring.googleapis.com/v1"
"""`apiVersion` of Google's managed Prometheus."""
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


def render_managed_monitoring(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The objects for managed Prometheus: an account with its token, who may read that, and a PodMonitoring."""
    entry = fleet.cluster(cluster)
    if not fleet.observability.managed_prometheus or entry.outside_gke:
        return []
    namespace = fleet.kueue.namespace
    # Autopilot runs the collectors in another namespace.
    collectors = "gke-gmp-system" if entry.platform == "Autopilot" else "gmp-system"
    secret = token_secret_manifest(READER_ROLE, namespace, READER_ROLE)
    readable = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [READER_ROLE], "verbs": ["get"]}
    endpoint = {
        "port": "metrics",
        "path": "/metrics",
        "scheme": "https",
        "interval": _INTERVAL,
        # Kueue's certificate is self-signed.
        "tls": {"insecureSkipVerify": True},
        "authorization": {"type": "Bearer", "credentials": {"secret": {"name": READER_ROLE, "key": "token"}}},
    }
    return [
        manifest("v1", "ServiceAccount", READER_ROLE, namespace),
        cluster_binding(READER_ROLE, READER_ROLE, service_account_subject(READER_ROLE, namespace)),
        secret,
        *role_grant(READER_ROLE, namespace, [readable], service_account_subject("collector", collectors)),
        manifest(
            POD_MONITORING_API,
            "PodMonitoring",
            "kueue",
            namespace,
            spec={"selector": {"matchLabels": dict(KUEUE_POD_LABELS)}, "endpoints": [endpoint]},
        ),
    ]


def render_grafana(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The dashboard for Grafana, on the manager or the standalone cluster; none elsewhere."""
    settings = fleet.observability.grafana
    if not fleet.observability.has_grafana or cluster != fleet.home:
        return []
    controller = fleet.admission_controller is not None
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
