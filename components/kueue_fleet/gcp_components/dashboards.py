"""The dashboard and the alerts of a fleet in Cloud Monitoring.

What they show is in `kueue_fleet.objects.dashboards`, what they tell in `google.alerts`; the metrics come from the
PodMonitoring that `kueue_fleet.kueue_components` puts on every cluster, as it does this dashboard into a Grafana there.
"""

from collections.abc import Mapping, Sequence

import pulumi

from kueue_admission.kernel import SpecError
from kueue_admission.kernel.base import DnsLabel, DnsSubdomain
from kueue_fleet.component import Component, Labels, check_labels, judge
from kueue_fleet.fleet_file.model.gcp_names import GkeClusterName, ProjectId
from kueue_fleet.fleet_file.model.goals import Goals
from kueue_fleet.fleet_file.model.observability import Observability
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.gcp_components.declare import declare
from kueue_fleet.gcp_components.sdk import gcp
from kueue_fleet.google.dashboards import dashboards


class Dashboards(Component):
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
        project: pulumi.Input[ProjectId],
        fleet: str,
        manager: GkeClusterName | None,
        job_clusters: Sequence[GkeClusterName],
        kueue_namespace: DnsLabel = "kueue-system",
        stopped_queues: Sequence[DnsSubdomain] = (),
        controller_namespace: DnsLabel | None = None,
        labels: "Labels | None" = None,
        goals: "Mapping[str, Goals] | None" = None,
        follows_capacity: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare them.

        `fleet` is the name in titles; `manager` and `job_clusters` are clusters by name; `stopped_queues` are
        ClusterQueues that are inactive on purpose; `controller_namespace` is where the fleet's own controller runs on
        the manager, if there is one; `labels` are Google Cloud labels; `goals` are those of ClusterQueues, by name;
        `follows_capacity` says whether quotas of some do.

        Raises:
            SpecError: no cluster runs jobs, or a label is empty.
        """
        if not job_clusters:
            wrong = "there are none, so there is nothing to show"
            raise SpecError([COMPONENT.at(f"Dashboards {name}.job_clusters", wrong, "name the clusters that run jobs")])
        judge(check_labels(labels), opts)
        super().__init__(name, opts)
        rendered_resources = dashboards(
            name,
            spec,
            project=project,
            fleet=fleet,
            manager=manager,
            job_clusters=job_clusters,
            kueue_namespace=kueue_namespace,
            stopped_queues=stopped_queues,
            controller_namespace=controller_namespace,
            labels=labels or {},
            goals=goals or {},
            follows_capacity=follows_capacity,
        )
        resources = list(declare(self, rendered_resources).values())
        self.dashboard = resources.pop(0) if spec.dashboard else None
        self.url = None
        if self.dashboard is not None:
            self.url = pulumi.Output.all(project, self.dashboard.id).apply(lambda parts: _url(*map(str, parts)))
        self.alerts = {resource.pulumi_resource_name.removeprefix(f"{name}/"): resource for resource in resources}
        self._give_out()


def _url(project: str, dashboard_id: str) -> str:
    """Where the console shows the dashboard; its id is `projects/NUMBER/dashboards/ID`."""
    number = dashboard_id.rpartition("/")[2]
    return f"https://console.cloud.google.com/monitoring/dashboards/builder/{number}?project={project}"
