"""The Helm charts of a cluster as plain data: the components install them, and `render` prints how Helm does.

Operators come before Kueue: its webhooks do not hold up their pods yet, and it finds their APIs when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kueue_admission.api.manifests import namespace_labels
from kueue_fleet.fleet_file.charts import RELEASES
from kueue_fleet.fleet_file.model.accounts import grafana_account_address
from kueue_fleet.fleet_file.model.dra_driver import NvidiaDraDriver
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.installations import JobSetInstallation, KueueInstallation
from kueue_fleet.fleet_file.model.kueue_installation import kueue_helm_values
from kueue_fleet.fleet_file.model.kueue_pods import KUEUE_PRIORITY_CLASS, kueue_priority_class
from kueue_fleet.fleet_file.model.observability import Grafana
from kueue_fleet.fleet_file.model.operators import Operator
from kueue_fleet.objects.monitoring import grafana_helm_values

_NO_VALUES: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class ClusterChart:
    """A Helm chart that a cluster gets."""

    section: str
    """Its section of the fleet file, such as `jobSet`; one of `RELEASES`."""
    chart: str
    """Reference of the chart, or its name in `repository`."""
    version: str
    namespace: str
    repository: str | None = None
    """URL of the chart repository; None: `chart` is a whole reference."""
    values: Mapping[str, Any] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that the namespace needs."""
    priority_class: Mapping[str, Any] | None = None
    """The PriorityClass of its pods, which has to be there before; None: none of the fleet's."""

    @property
    def release(self) -> str:
        """Name of the Helm release."""
        return RELEASES[self.section]


def charts_on(fleet: FleetSpec, cluster: str) -> list[ClusterChart]:
    """The charts of a cluster, in the order in which they are installed. Raises KeyError for an unknown cluster."""
    cluster_charts = [job_set_chart(fleet.job_set)] if fleet.job_set.enabled else []
    cluster_charts += [operator_chart(section, spec) for section, spec in fleet.operators.installed.items()]
    driver, pools = fleet.nvidia_dra_driver, fleet.dra_pools_on(cluster)
    if driver is not None and pools:
        cluster_charts.append(dra_driver_chart(driver, driver.helm_values(pools)))
    cluster_charts.append(kueue_chart(fleet.kueue_on(cluster), kueue_helm_values(fleet, cluster)))
    if fleet.observability.installs_grafana and cluster == fleet.home:
        grafana, account = fleet.observability.grafana, grafana_account_address(fleet)
        cluster_charts.append(grafana_chart(grafana, grafana_helm_values(grafana, fleet.project, account)))
    return cluster_charts


def job_set_chart(spec: JobSetInstallation) -> ClusterChart:
    """JobSet's. As the chart lies in JobSet's module, it asks for a moving tag, so the tag is written out."""
    values = {"image": {"repository": spec.image, "tag": f"v{spec.version}"}}
    return ClusterChart("jobSet", spec.chart, spec.version, spec.namespace, values=values)


def operator_chart(section: str, spec: Operator) -> ClusterChart:
    """That of an operator; `section` is its field in `operators`."""
    return ClusterChart(section, spec.chart, spec.version, spec.namespace, spec.repository, spec.helm_values())


def dra_driver_chart(spec: NvidiaDraDriver, values: Mapping[str, Any]) -> ClusterChart:
    """That of NVIDIA's DRA driver, whose pods on nodes are privileged."""
    labels = namespace_labels(pod_security="privileged")
    return ClusterChart("nvidiaDraDriver", spec.chart, spec.version, spec.namespace, None, values, labels)


def kueue_chart(spec: KueueInstallation, values: Mapping[str, Any] = _NO_VALUES) -> ClusterChart:
    """Kueue's; `values` as of `kueue_helm_values`."""
    priority_class = kueue_priority_class() if spec.priority_class_name == KUEUE_PRIORITY_CLASS else None
    return ClusterChart("kueue", spec.chart, spec.version, spec.namespace, values=values, priority_class=priority_class)


def grafana_chart(spec: Grafana, values: Mapping[str, Any] = _NO_VALUES) -> ClusterChart:
    """Grafana's; `values` as of `objects.monitoring.grafana_helm_values`."""
    return ClusterChart("grafana", spec.chart, spec.version, spec.namespace, values=values)
