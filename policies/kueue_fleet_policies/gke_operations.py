"""Rules about running a GKE cluster: versions, logs, metrics, upgrades, bills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of, said
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import at


def _release_channel(cluster: Resource, settings: Settings) -> Iterator[Breach]:
    channel = cluster.get("releaseChannel.channel")
    if channel is UNKNOWN:
        return
    allowed = settings.names("channels")
    if channel is None and not cluster.standard:
        return
    if channel not in allowed:
        yield Breach("releaseChannel.channel", said(channel), f"set it to one of {', '.join(allowed)}")


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


RULES: Final = rules_of(
    "GKE operations",
    {
        "gke-release-channel": _release_channel,
        "gke-logging": _logging,
        "gke-monitoring": _monitoring,
        "gke-labels": _labels,
        "gke-maintenance-window": _maintenance,
        "gke-regional": _regional,
    },
)
"""The rules of this module."""
