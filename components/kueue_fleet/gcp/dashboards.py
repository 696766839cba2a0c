"""The dashboard and the alerts of a fleet in Cloud Monitoring.

What they show is in `kueue_fleet.objects.dashboards`, what they tell in `gcp.alerts`; the metrics come from the
PodMonitoring that `kueue_fleet.kueue` puts on every cluster, which also puts the same dashboard into a Grafana there.
"""

import json
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_gcp as gcp

from kueue_fleet.fleet_file.model.observability import Observability
from kueue_fleet.gcp.declare import arguments
from kueue_fleet.google.alerts import alert_policies
from kueue_fleet.objects.dashboards import cloud_monitoring_dashboard


class Dashboards(pulumi.ComponentResource):
    """A dashboard and alert policies for Kueue, MultiKueue, GPUs and waiting for DWS."""

    dashboard: "gcp.monitoring.Dashboard | None"
    """The dashboard, unless it is switched off."""
    url: pulumi.Output[str] | None
    """Where the console shows the dashboard, if there is one."""
    alerts: "dict[str, gcp.monitoring.AlertPolicy]"
    """Alert policies by short name."""

    def __init__(
        self,
        name: str,
        spec: Observability,
        *,
        project: pulumi.Input[str],
        fleet: str,
        manager: str | None,
        job_clusters: Sequence[str],
        kueue_namespace: str = "kueue-system",
        stopped_queues: Sequence[str] = (),
        controller_namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare them.

        `fleet` is the name in titles; `manager` and `job_clusters` are clusters by name; `stopped_queues` are
        ClusterQueues that are inactive on purpose; `controller_namespace` is where the fleet's own controller runs on
        the manager, if there is one; `labels` are Google Cloud labels.
        """
        super().__init__("kueue-fleet:index:Dashboards", name, None, opts)
        self.dashboard = self.url = None
        self.alerts = {}
        if spec.dashboard:
            board = cloud_monitoring_dashboard(f"{fleet}: GPU batch fleet", controller=controller_namespace is not None)
            self.dashboard = gcp.monitoring.Dashboard(
                name,
                project=project,
                dashboard_json=json.dumps(board),
                opts=pulumi.ResourceOptions(parent=self),
            )
            self.url = pulumi.Output.all(project, self.dashboard.id).apply(lambda parts: _url(*map(str, parts)))
        if spec.alerts.enabled:
            policies = alert_policies(
                fleet,
                manager=manager,
                job_clusters=job_clusters,
                kueue_namespace=kueue_namespace,
                provisioning_seconds=spec.alerts.provisioning_timeout.nanoseconds // 10**9,
                stopped_queues=stopped_queues,
                controller_namespace=controller_namespace,
            )
            self.alerts = {
                short: gcp.monitoring.AlertPolicy(
                    f"{name}/{short}",
                    project=project,
                    notification_channels=list(spec.alerts.notification_channels),
                    user_labels=dict(labels or {}),
                    opts=pulumi.ResourceOptions(parent=self),
                    **arguments(policy),
                )
                for short, policy in policies.items()
            }
        self.register_outputs({"alerts": list(self.alerts)})


def _url(project: str, dashboard_id: str) -> str:
    """Where the console shows the dashboard; its id is `projects/NUMBER/dashboards/ID`."""
    number = dashboard_id.rpartition("/")[2]
    return f"https://console.cloud.google.com/monitoring/dashboards/builder/{number}?project={project}"
