"""Quotas of a fleet: those of Kueue's resource groups, with other amounts on single clusters and in windows of time."""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Annotated

from pydantic import Field

from kueue_admission.api import FlavorQuotas, ResourceGroup, ResourceQuota
from kueue_admission.kernel.base import SpecModel, Text
from kueue_admission.kernel.given import NOT_GIVEN, ListOf
from kueue_admission.kernel.quantity import OptionalQuantityField, Quantity


class QuotaAmounts(SpecModel):
    """How a quota differs; a field that is left out is as it is elsewhere."""

    nominal_quota: OptionalQuantityField = NOT_GIVEN
    """The queue's own, in the resource's unit."""
    borrowing_limit: OptionalQuantityField = NOT_GIVEN
    """What it may use of others, in the resource's unit."""
    lending_limit: OptionalQuantityField = NOT_GIVEN
    """What others may use of it, in the resource's unit."""


class ClusterQuota(QuotaAmounts):
    """How a quota differs on one cluster; a field that is left out is as for all clusters."""

    during: Mapping[Text, QuotaAmounts] = Field(default_factory=dict)
    """Other amounts on this cluster while a window is open, by the window's name."""


class FleetResourceQuota(ResourceQuota):
    """Quota for one resource on one flavor, on every cluster that has the flavor."""

    per_cluster: Mapping[Text, ClusterQuota] = Field(default_factory=dict)
    """Other amounts on single clusters."""
    during: Mapping[Text, QuotaAmounts] = Field(default_factory=dict)
    """Other amounts while a window of `controller.quotaWindows` is open, by its name. What `perCluster` gives
    for a cluster stays there, unless that has `during` too."""

    @property
    def windows(self) -> tuple[str, ...]:
        """The windows in which it is another one somewhere."""
        others = (name for other in self.per_cluster.values() for name in other.during)
        return tuple(dict.fromkeys((*self.during, *others)))

    def in_window(self, name: str) -> "FleetResourceQuota":
        """The quota while a window is open."""
        clusters = {
            cluster: other.model_copy(update=_own_amounts(other.during.get(name)))
            for cluster, other in self.per_cluster.items()
        }
        return self.model_copy(update={**_own_amounts(self.during.get(name)), "per_cluster": clusters})

    def on(self, cluster: str) -> ResourceQuota:
        """The quota as it holds on `cluster`."""
        other = self.per_cluster.get(cluster)
        if other is None:
            return self
        amounts = {name: getattr(self, name) for name in QuotaAmounts.model_fields}
        return ResourceQuota.model_construct(name=self.name, **{**amounts, **_own_amounts(other)})


def _own_amounts(other: QuotaAmounts | None) -> dict[str, Quantity]:
    """What is set of it, by field."""
    values = {name: getattr(other, name, None) for name in QuotaAmounts.model_fields}
    return {name: value for name, value in values.items() if value is not None}


class FleetFlavorQuotas(FlavorQuotas):
    """Quotas on one flavor."""

    resources: Annotated[ListOf[FleetResourceQuota], Field(min_length=1, max_length=64)] = Field(kw_only=False)
    """The amounts, by resource."""


class FleetResourceGroup(ResourceGroup):
    """Resources that a pod takes from one and the same flavor, and the flavors, tried in order."""

    flavors: Annotated[ListOf[FleetFlavorQuotas], Field(min_length=1, max_length=64)]
    """The flavors, most preferred first."""


def windows_of(groups: Iterable[FleetResourceGroup]) -> tuple[str, ...]:
    """The windows in which a quota of these groups is another one."""
    quotas = (quota for group in groups for flavor in group.flavors for quota in flavor.resources)
    return tuple(dict.fromkeys(name for quota in quotas for name in quota.windows))


def groups_in(groups: Iterable[FleetResourceGroup], windows: Set[str]) -> tuple[FleetResourceGroup, ...]:
    """The groups with the quotas that hold while these windows are open."""
    return tuple(_with_quotas(group, lambda _, quota: _in_windows(quota, windows)) for group in groups)


def _in_windows(quota: FleetResourceQuota, windows: Set[str]) -> FleetResourceQuota:
    for name in quota.windows:
        if name in windows:
            quota = quota.in_window(name)
    return quota


def groups_with(
    groups: Iterable[FleetResourceGroup], amounts: Mapping[tuple[str, str], Mapping[str, ClusterQuota]]
) -> tuple[FleetResourceGroup, ...]:
    """The groups with other amounts on single clusters, by flavor and resource; all else stays as it is there."""

    def changed(flavor: str, quota: FleetResourceQuota) -> FleetResourceQuota:
        others = amounts.get((flavor, quota.name), {})
        merged_quotas = {name: _merged(quota.per_cluster.get(name), other) for name, other in others.items()}
        return (
            quota.model_copy(update={"per_cluster": {**quota.per_cluster, **merged_quotas}}) if merged_quotas else quota
        )

    return tuple(_with_quotas(group, changed) for group in groups)


def _merged(cluster_quota: ClusterQuota | None, other: ClusterQuota) -> ClusterQuota:
    fields = {name: getattr(other, name) for name in other.model_fields_set}
    return other if cluster_quota is None else cluster_quota.model_copy(update=fields)


def _with_quotas(
    group: FleetResourceGroup, changed_quota: Callable[[str, FleetResourceQuota], FleetResourceQuota]
) -> FleetResourceGroup:
    flavors = (
        flavor.model_copy(update={"resources": tuple(changed_quota(flavor.name, quota) for quota in flavor.resources)})
        for flavor in group.flavors
    )
    return group.model_copy(update={"flavors": tuple(flavors)})


class ManagerQueue(SpecModel):
    """The manager's copy of a dispatched queue, where its quotas are written by hand."""

    resource_groups: Annotated[ListOf[ResourceGroup], Field(min_length=1, max_length=16)]
    """Quotas on the manager; at least the largest single worker's, or jobs that fit a worker never leave."""
