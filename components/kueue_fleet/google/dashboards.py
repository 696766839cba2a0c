"""The dashboard and the alert policies of a fleet in Cloud Monitoring."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kueue_fleet.fleet_file.model.goals import Goals, wait_limits
from kueue_fleet.fleet_file.model.observability import Observability
from kueue_fleet.google.alerts import alert_policies
from kueue_fleet.google.resource import CloudResource
from kueue_fleet.google.resource_types import ALERT_POLICY, DASHBOARD
from kueue_fleet.objects.dashboards import cloud_monitoring_dashboard


def dashboards(
    name: str,
    spec: Observability,
    *,
    project: Any,
    fleet: str,
    manager: str | None,
    job_clusters: Sequence[str],
    kueue_namespace: str,
    stopped_queues: Sequence[str],
    controller_namespace: str | None,
    labels: Mapping[str, Any],
    goals: Mapping[str, Goals],
    follows_capacity: bool,
) -> list[CloudResource]:
    """The dashboard first, unless it is switched off; then the alert policies."""
    cloud_resources, limits = [], wait_limits(goals)
    if spec.dashboard:
        controller = controller_namespace is not None
        board = cloud_monitoring_dashboard(f"{fleet}: GPU batch fleet", controller=controller, goals=limits)
        properties = {"project": project, "dashboardJson": json.dumps(board)}
        cloud_resources.append(CloudResource(DASHBOARD, name, properties))
    if spec.alerts.enabled:
        policies = alert_policies(
            fleet,
            manager=manager,
            job_clusters=job_clusters,
            kueue_namespace=kueue_namespace,
            provisioning_seconds=spec.alerts.provisioning_timeout.nanoseconds // 10**9,
            stopped_queues=stopped_queues,
            controller_namespace=controller_namespace,
            goals=limits,
            follows_capacity=follows_capacity,
        )
        common = {
            "project": project,
            "notificationChannels": list(spec.alerts.notification_channels),
            "userLabels": dict(labels),
        }
        cloud_resources += [
            CloudResource(ALERT_POLICY, f"{name}/{short}", {**common, **policy}) for short, policy in policies.items()
        ]
    return cloud_resources
