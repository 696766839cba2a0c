"""Rules about what must not be deleted by accident.

Policies see Pulumi's `protect` and Google's own protection; they do not see `retainOnDelete`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pulumi_policy import Severity

from kueue_admission.forms.unknown import is_known
from kueue_fleet_policies.estate import DISPOSABLE_LABEL, Estate, is_disposable
from kueue_fleet_policies.resource import CLUSTER, HELM_RELEASE, Resource
from kueue_fleet_policies.rule import Breach, Option, ResourceRule, Settings, StackRule, list_option
from kueue_fleet_policies.values import at

RESERVATION: Final = "gcp:compute/reservation:Reservation"
"""Pulumi type of a reservation."""
FUTURE_RESERVATION: Final = "gcp:compute/futureReservation:FutureReservation"
"""Pulumi type of a request for one."""
COMMITMENT: Final = "gcp:compute/regionCommitment:RegionCommitment"
"""Pulumi type of a commitment."""

_DISPOSABLE_PATH: Final = f"resourceLabels.{DISPOSABLE_LABEL}"
_ALLOW_DISPOSABLE: Final[Option] = {
    "type": "boolean",
    "description": f"Whether what belongs to clusters with the label {DISPOSABLE_LABEL}=true may do without.",
    "default": True,
}


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


_GROUP: Final = "Protection"

RULES: Final = (
    ResourceRule(
        name="protect-clusters",
        asks="Clusters must be protected from deletion.",
        severity=Severity.CRITICAL,
        source="https://www.pulumi.com/registry/packages/gcp/api-docs/container/cluster/#deletionprotection_csharp",
        group=_GROUP,
        types=(CLUSTER,),
        check=_cluster_protected,
        options={"allowDisposable": _ALLOW_DISPOSABLE},
        exempts=f"clusters with the label {DISPOSABLE_LABEL}=true, unless the setting forbids them",
    ),
    StackRule(
        name="protect-capacity",
        asks="Reservations and commitments must be protected from deletion.",
        severity=Severity.HIGH,
        source="https://cloud.google.com/compute/docs/instances/reservations-overview",
        group=_GROUP,
        check=_capacity_protected,
        options={"allowDisposable": _ALLOW_DISPOSABLE},
        exempts=(
            f"reservations, not future ones and not commitments, of a stack whose clusters all have {DISPOSABLE_LABEL}"
            "=true, unless the setting forbids them"
        ),
    ),
    StackRule(
        name="protect-kueue",
        asks="Kueue must be protected from deletion.",
        severity=Severity.CRITICAL,
        source="https://kueue.sigs.k8s.io/docs/installation/#uninstall",
        group=_GROUP,
        check=_releases_protected,
        options={
            "allowDisposable": _ALLOW_DISPOSABLE,
            "charts": list_option(
                "Names of the charts that bring the definitions of objects people depend on.", ["kueue", "jobset"]
            ),
        },
        exempts=f"releases on clusters with the label {DISPOSABLE_LABEL}=true, unless the setting forbids them",
    ),
)
"""The rules of this module."""
