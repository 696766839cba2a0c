"""Rules about what must not be deleted by accident.

Policies see Pulumi's `protect` and Google's own protection; they do not see `retainOnDelete`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.unknown import is_known
from kueue_fleet.google.resource_types import COMMITMENT, FUTURE_RESERVATION, HELM_RELEASE, RESERVATION
from kueue_fleet_policies.estate import DISPOSABLE_LABEL, Estate, is_disposable
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import at

_DISPOSABLE_PATH: Final = f"resourceLabels.{DISPOSABLE_LABEL}"


def _cluster_protected(cluster: Resource, settings: Settings) -> Iterator[Breach]:
    if settings["allowDisposable"] and (is_disposable(cluster) or not is_known(at(cluster.props, _DISPOSABLE_PATH))):
        return
    remedy = f"or label the cluster {DISPOSABLE_LABEL}=true" if settings["allowDisposable"] else "and keep it"
    if cluster.flag("deletionProtection") is False:
        yield Breach("deletionProtection", "is false: one change can delete the cluster", f"set it to true, {remedy}")
    if not cluster.protect:
        yield Breach("protect", "is not set on the resource", f"set protect=True in its options, {remedy}")


def _capacity_protected(estate: Estate, settings: Settings) -> Iterator[tuple[Resource | None, Breach]]:
    disposable = bool(estate.clusters) and all(cluster.disposable for cluster in estate.clusters)
    for resource in estate.of_type(RESERVATION, FUTURE_RESERVATION, COMMITMENT):
        if resource.protect or (settings["allowDisposable"] and disposable and resource.type == RESERVATION):
            continue
        lost = "still has to be paid for" if resource.type == COMMITMENT else "may not come back"
        yield (
            resource,
            Breach(
                "protect",
                f"is not set, and a {resource.kind} that is deleted {lost}",
                "set protect=True and retainOnDelete=True in its options",
            ),
        )


def _chart_name(release: Resource) -> str:
    chart = release.get("chart")
    return chart.rstrip("/").rsplit("/", 1)[-1] if isinstance(chart, str) else ""


def _releases_protected(estate: Estate, settings: Settings) -> Iterator[tuple[Resource | None, Breach]]:
    for release in estate.of_type(HELM_RELEASE):
        cluster = estate.cluster_of(release)
        if settings["allowDisposable"] and cluster is not None and cluster.disposable:
            continue
        if _chart_name(release) in settings.names("charts") and not release.protect:
            yield (
                release,
                Breach(
                    "protect",
                    f"is not set: uninstalling {_chart_name(release)} deletes its definitions, and all their objects",
                    "set protect=True and retainOnDelete=True in the options of the release",
                ),
            )


RULES: Final = rules_of(
    "Protection",
    {
        "protect-clusters": _cluster_protected,
        "protect-capacity": _capacity_protected,
        "protect-kueue": _releases_protected,
    },
)
"""The rules of this module."""
