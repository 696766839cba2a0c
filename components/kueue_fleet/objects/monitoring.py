"""What lets a Prometheus read Kueue's metrics, managed or in the cluster.

Kueue serves its metrics only to accounts that may `get /metrics`, so there is one such account: managed Prometheus gets
its token by a Secret that its collector alone may read, a Prometheus in the cluster is bound itself.

Sources: kueue@v0.19.2 charts/kueue/templates/rbac/metrics_reader_role.yaml and manager/manager.yaml;
https://github.com/GoogleCloudPlatform/prometheus-engine/blob/main/doc/api.md (PodMonitoring).
"""

from __future__ import annotations

import json
from typing import Any, Final

from kueue_admission.api.manifests import manifest, token_secret_manifest
from kueue_admission.forms.manifest import Manifest
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.goals import wait_limits
from kueue_fleet.fleet_file.model.kueue_pods import KUEUE_POD_LABELS
from kueue_fleet.fleet_file.model.per_cluster import queue_goals
from kueue_fleet.objects.dashboards import grafana_dashboard
from kueue_fleet.objects.grants import cluster_binding, role_grant, service_account_subject

READER_ROLE: Final = "kueue-metrics-reader"
"""ClusterRole of Kueue's chart; the account, its token and what belongs to them have the same name."""
POD_MONITORING_API: Final = "monitoring.googleapis.com/v1"
"""`apiVersion` of Google's managed Prometheus."""
SERVICE_MONITOR_API: Final = "monitoring.coreos.com/v1"
"""`apiVersion` of the Prometheus operator."""
GRAFANA_RELEASE: Final = "kube-prometheus-stack"
"""Name of the Helm release of Prometheus and Grafana."""
DASHBOARD_NAME: Final = "kueue-fleet-dashboard"
"""Name of the ConfigMap with the dashboard for Grafana."""
DASHBOARD_LABEL: Final = "grafana_dashboard"
"""Grafana's sidecar loads ConfigMaps with this label."""
_SERVICE_LABELS: Final = {"app.kubernetes.io/name": "kueue", "app.kubernetes.io/component": "metrics-service"}
_INTERVAL: Final = "30s"


def render_managed_monitoring(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The objects for managed Prometheus: an account with its token, who may read that, and a PodMonitoring."""
    if not fleet.observability.managed_prometheus:
        return []
    namespace = fleet.kueue.namespace
    # Autopilot runs the collectors in another namespace.
    collectors = "gke-gmp-system" if fleet.cluster(cluster).mode == "Autopilot" else "gmp-system"
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


def render_grafana(fleet: FleetSpec) -> list[Manifest]:
    """What the Prometheus and Grafana in a cluster get: leave to read, where to read, and the dashboard."""
    settings = fleet.observability.grafana
    if not settings.enabled:
        return []
    controller = fleet.admission_controller is not None
    goals = wait_limits(queue_goals(fleet))
    dashboard = grafana_dashboard(f"{fleet.name}: GPU batch fleet", fleet.name, controller=controller, goals=goals)
    prometheus = service_account_subject(f"{GRAFANA_RELEASE}-prometheus", settings.namespace)
    data, labels = {"kueue-fleet.json": json.dumps(dashboard)}, {DASHBOARD_LABEL: "1"}
    endpoint = {
        "port": "https",
        "path": "/metrics",
        "scheme": "https",
        "interval": _INTERVAL,
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": {"insecureSkipVerify": True},
    }
    return [
        manifest("v1", "ConfigMap", DASHBOARD_NAME, settings.namespace, labels=labels, data=data),
        cluster_binding("kueue-metrics-prometheus", READER_ROLE, prometheus),
        manifest(
            SERVICE_MONITOR_API,
            "ServiceMonitor",
            "kueue",
            settings.namespace,
            spec={
                "namespaceSelector": {"matchNames": [fleet.kueue.namespace]},
                "selector": {"matchLabels": dict(_SERVICE_LABELS)},
                "endpoints": [endpoint],
            },
        ),
    ]


def grafana_helm_values() -> dict[str, Any]:
    """Values of the kube-prometheus-stack chart on GKE: what Google runs and hides is not looked for.

    Grafana's password is made by the chart at random, in the Secret kube-prometheus-stack-grafana; the chart's own
    default is public. There is no node exporter: Autopilot refuses its host paths, and GKE has its own.
    """
    hidden = ("kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy", "coreDns", "kubeDns")
    return {
        "fullnameOverride": GRAFANA_RELEASE,
        "nodeExporter": {"enabled": False},
        "alertmanager": {"enabled": False},
        "prometheusOperator": {"kubeletService": {"enabled": False}},
        "kubelet": {"enabled": False},
        **{name: {"enabled": False} for name in hidden},
        "prometheus": {"prometheusSpec": {"serviceMonitorSelectorNilUsesHelmValues": False, "retention": "15d"}},
        "grafana": {
            "fullnameOverride": f"{GRAFANA_RELEASE}-grafana",
            "adminPassword": "",
            "sidecar": {"dashboards": {"enabled": True, "label": DASHBOARD_LABEL, "labelValue": "1"}},
        },
    }
