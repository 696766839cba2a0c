"""What is measured and shown, and who gets the alerts.

Without the section nothing is made; an empty one, `{}`, turns on what its fields say by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kueue_admission.forms.base import DnsLabel, Flag, RuledModel, SpecModel, Text
from kueue_admission.forms.duration import Duration, DurationField, duration
from kueue_admission.forms.form_rules import BAD_SYNTAX, NEEDED, OUT_OF_RANGE
from kueue_admission.forms.given import ListOfText
from kueue_admission.forms.problem import Problem
from kueue_fleet.fleet_file.model.clusters import Chart

_CHANNEL: Final = re.compile(r"projects/[^/]+/notificationChannels/[^/]+")


class Grafana(SpecModel):
    """Prometheus and Grafana inside every cluster, by their own chart."""

    enabled: Flag = False
    """Default false: managed Prometheus needs no pods of ours."""
    chart: Chart = "oci://ghcr.io/prometheus-community/charts/kube-prometheus-stack"
    """Reference of the Helm chart; a mirror or a path works too."""
    version: Text | None = None
    """Version of the chart; default: the newest when it is first installed."""
    namespace: DnsLabel = "monitoring"
    """Where both run; default monitoring."""


class Alerts(RuledModel):
    """Alert policies of Cloud Monitoring."""

    enabled: Flag = True
    """Default true."""
    notification_channels: ListOfText[Text] = ()
    """Whom to tell: projects/PROJECT/notificationChannels/ID."""
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


class Observability(RuledModel):
    """Metrics, dashboards and alerts."""

    managed_prometheus: Flag = True
    """Whether Google's managed Prometheus reads Kueue's metrics on every cluster; default true."""
    dashboard: Flag = True
    """Whether there is a dashboard in Cloud Monitoring; default true."""
    grafana: Grafana = Grafana()
    """Prometheus and Grafana in every cluster; default: none."""
    alerts: Alerts = Alerts()
    """Alert policies of Cloud Monitoring."""

    def own_problems(self) -> Iterator[Problem]:
        """Dashboard and alerts read what managed Prometheus collects."""
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


NO_OBSERVABILITY: Final = Observability.model_construct(
    managed_prometheus=False,
    dashboard=False,
    grafana=Grafana(),
    alerts=Alerts.model_construct(enabled=False, notification_channels=(), provisioning_timeout=Duration("30m")),
)
"""What a file without the section has."""
