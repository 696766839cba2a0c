"""What is measured and shown, and who gets the alerts.

Without the section nothing is made; an empty one, `{}`, turns on what its fields say by default.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import Field
from pydantic.alias_generators import to_camel

from kueue_admission.kernel.base import DnsLabel, Flag, LabelKey, LabelValue, RuledModel, SpecModel, Text
from kueue_admission.kernel.duration import Duration, DurationField, duration
from kueue_admission.kernel.form_rules import BAD_SYNTAX, NEEDED, OUT_OF_RANGE
from kueue_admission.kernel.given import ListOfText
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.model.addresses import Chart, ImageRepository
from kueue_fleet.fleet_file.model.installations import Version
from kueue_fleet.fleet_file.rules.files import NO_EFFECT

_CHANNEL: Final = re.compile(r"projects/[^/]+/notificationChannels/[^/]+")


class Grafana(RuledModel):
    """Grafana on the manager or the standalone cluster: it shows what managed Prometheus collects on all clusters."""

    enabled: Flag | None = None
    """Default: what `managedPrometheus` is; true with `existing`."""
    existing: Flag = False
    """Whether a Grafana that is not the fleet's runs in `namespace`, and loads ConfigMaps with the label
    `grafana_dashboard`, as the sidecar of its chart does. It gets the dashboard, and no Grafana is installed; default
    false."""
    chart: Chart = "oci://ghcr.io/grafana-community/helm-charts/grafana"
    """Helm chart, also of a mirror, or a path."""
    version: Version = "12.11.1"
    """Version of the chart, which has Grafana 13.2.0."""
    image: ImageRepository = "docker.io/grafana/grafana"
    """Repository of Grafana's image, without a tag, which is the chart's."""
    frontend_image: ImageRepository = "gke.gcr.io/prometheus-engine/frontend"
    """Repository of Google's query frontend, which asks managed Prometheus with the pod's Google account."""
    namespace: DnsLabel = "monitoring"
    """Where it runs; default monitoring. Nothing else should: pods there can act as Grafana's Google account."""

    def own_problems(self) -> Iterator[Problem]:
        """Nothing about an installation where there is none."""
        if self.existing and self.enabled is False:
            yield NO_EFFECT.at("existing", "true, but enabled is false", "remove one of the two")
        for name in ("chart", "version", "image", "frontend_image") if self.existing else ():
            if name in self.model_fields_set:
                yield NO_EFFECT.at(to_camel(name), "has no effect, as existing is true", "remove it")


class Alerts(RuledModel):
    """Alert policies of Cloud Monitoring."""

    enabled: Flag = True
    """Default true."""
    notification_channels: ListOfText[Text] = ()
    """Recipients: projects/PROJECT/notificationChannels/ID."""
    provisioning_timeout: DurationField = duration("30m")
    """How long a ProvisioningRequest may stay accepted without capacity before an alert is sent; default 30m."""

    def own_problems(self) -> Iterator[Problem]:
        """Channels by their resource name; some time."""
        for index, channel in enumerate(self.notification_channels):
            if not _CHANNEL.fullmatch(channel):
                yield BAD_SYNTAX.at(
                    f"notificationChannels[{index}]",
                    f'"{channel}" is not a notification channel',
                    "write projects/PROJECT/notificationChannels/ID",
                )
        if self.provisioning_timeout.nanoseconds <= 0:
            yield OUT_OF_RANGE.at(
                "provisioningTimeout", f"{self.provisioning_timeout} is not longer than 0", "write 30m or so"
            )


class PodMonitors(SpecModel):
    """Who reads the metrics of Kueue and of the fleet's controller, where a Prometheus Operator is in the cluster."""

    labels: Mapping[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels of the PodMonitors, by which a Prometheus selects them, such as `release: kube-prometheus-stack`; default:
    none."""
    namespace: DnsLabel = "monitoring"
    """Where Prometheus runs, which connects to the fleet's controller; default monitoring."""


class Observability(RuledModel):
    """Metrics, dashboards and alerts."""

    managed_prometheus: Flag = True
    """Whether Google's managed Prometheus reads Kueue's metrics on every cluster; default true."""
    dashboard: Flag = True
    """Whether there is a dashboard in Cloud Monitoring; default true."""
    grafana: Grafana = Grafana()
    """Grafana for managed Prometheus of all clusters, on the manager or the standalone cluster."""
    alerts: Alerts = Alerts()
    """Alert policies of Cloud Monitoring."""

    @property
    def has_grafana(self) -> bool:
        """Whether a Grafana, the fleet's or an existing one, gets the dashboard."""
        if self.grafana.enabled is None:
            return self.managed_prometheus or self.grafana.existing
        return self.grafana.enabled

    @property
    def installs_grafana(self) -> bool:
        """Whether the fleet installs one."""
        return self.has_grafana and not self.grafana.existing

    def own_problems(self) -> Iterator[Problem]:
        """Dashboards and alerts read what managed Prometheus collects."""
        if self.managed_prometheus:
            return
        if self.dashboard:
            yield NEEDED.at(
                "dashboard",
                "true, but without managedPrometheus there is nothing to show",
                "set dashboard to false, or managedPrometheus to true",
            )
        if self.alerts.enabled:
            yield NEEDED.at(
                "alerts.enabled",
                "true, but without managedPrometheus there is nothing to watch",
                "set alerts.enabled to false, or managedPrometheus to true",
            )
        if self.installs_grafana:
            yield NEEDED.at(
                "grafana.enabled",
                "true, but without managedPrometheus it has no data",
                "set grafana.enabled to false, or managedPrometheus to true",
            )


NO_OBSERVABILITY: Final = Observability.model_construct(
    managed_prometheus=False,
    dashboard=False,
    grafana=Grafana.model_construct(enabled=False),
    alerts=Alerts.model_construct(enabled=False, notification_channels=(), provisioning_timeout=Duration("30m")),
)
"""What a file without the section has."""
