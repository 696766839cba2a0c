"""Rules about running a GKE cluster: versions, logs, metrics, upgrades, bills."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from pulumi_policy import Severity

from kueue_admission.forms.unknown import UNKNOWN
from kueue_fleet_policies.properties import is_off, prohibit, put
from kueue_fleet_policies.resource import CLUSTER, Resource
from kueue_fleet_policies.rule import ADVISORY, Breach, ResourceRule, Settings, list_option
from kueue_fleet_policies.values import at

_GKE: Final = "https://cloud.google.com/kubernetes-engine/docs"


def _release_channel(cluster: Resource, settings: Settings) -> Iterator[Breach]:
    channel = cluster.get("releaseChannel.channel")
    if channel is UNKNOWN:
        return
    allowed = settings.names("channels")
    if channel is None and not cluster.standard:
        return
    if channel not in allowed:
        said = "is missing" if channel is None else f"is {channel}"
        yield Breach("releaseChannel.channel", said, f"set it to one of {', '.join(allowed)}")


def _observed(cluster: Resource, config: str, service: str) -> Iterator[Breach]:
    components = cluster.get(f"{config}.enableComponents")
    if cluster.get(service) == "none":
        yield Breach(service, 'is "none"', "leave it out")
    elif isinstance(components, list) and UNKNOWN not in components and "SYSTEM_COMPONENTS" not in components:
        yield Breach(f"{config}.enableComponents", "does not hold SYSTEM_COMPONENTS", "add SYSTEM_COMPONENTS")


def _logging(cluster: Resource, _: Settings) -> Iterator[Breach]:
    yield from _observed(cluster, "loggingConfig", "loggingService")


def _monitoring(cluster: Resource, _: Settings) -> Iterator[Breach]:
    yield from _observed(cluster, "monitoringConfig", "monitoringService")


def _labels(cluster: Resource, settings: Settings) -> Iterator[Breach]:
    labels = cluster.get("resourceLabels")
    missing = [label for label in settings.names("labels") if label not in (labels or {})] if labels != UNKNOWN else []
    if labels is not UNKNOWN and not labels:
        yield Breach("resourceLabels", "are missing, so no bill says whose cluster it is", "set at least one")
    elif missing:
        yield Breach("resourceLabels", f"do not hold {', '.join(missing)}", "add what is missing")


def _maintenance(cluster: Resource, _: Settings) -> Iterator[Breach]:
    policy = cluster.get("maintenancePolicy")
    windows = ("recurringWindow", "recurringMaintenanceWindow", "dailyMaintenanceWindow")
    if policy is not UNKNOWN and not any(at(policy, window) is not None for window in windows):
        yield Breach(
            "maintenancePolicy",
            "has no window, so nodes are upgraded at any hour, under running jobs",
            "set recurringWindow with startTime, endTime and recurrence",
        )


def _regional(cluster: Resource, _: Settings) -> Iterator[Breach]:
    location = cluster.get("location")
    if isinstance(location, str) and location.count("-") == 2:
        yield Breach(
            "location",
            f"is the zone {location}: one control plane, which is unavailable during upgrades",
            f"set it to the region {location.rsplit('-', 1)[0]}",
        )


_rule: Final = partial(ResourceRule, group="GKE operations", types=(CLUSTER,))

RULES: Final = (
    _rule(
        name="gke-release-channel",
        asks="Clusters must be on a release channel.",
        cis="5.5.4",
        source=f"{_GKE}/concepts/release-channels",
        check=_release_channel,
        options={"channels": list_option("Channels that are allowed.", ["RAPID", "REGULAR", "STABLE", "EXTENDED"])},
    ),
    _rule(
        name="gke-logging",
        asks="System logs must go to Cloud Logging.",
        cis="5.7.1",
        source="https://cloud.google.com/kubernetes-engine/docs/how-to/config-logging-monitoring",
        check=_logging,
    ),
    _rule(
        name="gke-monitoring",
        asks="System metrics must go to Cloud Monitoring.",
        cis="5.7.1",
        source="https://cloud.google.com/kubernetes-engine/docs/how-to/config-logging-monitoring",
        check=_monitoring,
    ),
    _rule(
        name="gke-labels",
        asks="Clusters must have labels that say whose they are.",
        level=ADVISORY,
        severity=Severity.LOW,
        source=f"{_GKE}/how-to/creating-managing-labels",
        check=_labels,
        options={"labels": list_option("Labels that every cluster has to have.")},
    ),
    _rule(
        name="gke-cost-allocation",
        asks="Bills must name namespaces.",
        level=ADVISORY,
        severity=Severity.LOW,
        source=f"{_GKE}/how-to/cost-allocations",
        check=prohibit(
            is_off, "costManagementConfig.enabled", "is not true, so bills do not name namespaces", "set it to true"
        ),
        remedy=put("costManagementConfig.enabled", True),
    ),
    _rule(
        name="gke-maintenance-window",
        asks="Upgrades must have a maintenance window.",
        level=ADVISORY,
        severity=Severity.LOW,
        source=f"{_GKE}/concepts/maintenance-windows-and-exclusions",
        check=_maintenance,
    ),
    _rule(
        name="gke-regional",
        asks="Control planes must be in more than one zone.",
        level=ADVISORY,
        source=f"{_GKE}/concepts/regional-clusters",
        check=_regional,
    ),
)
"""The rules of this module."""
