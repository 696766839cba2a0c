"""What holds of quotas on a cluster, and their sums on the manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from operator import is_

from kueue_admission.api import FlavorQuotas, ResourceGroup, ResourceQuota
from kueue_admission.kernel.quantity import ZERO, Quantity
from kueue_fleet.settings.quotas import FleetFlavorQuotas, FleetResourceGroup


def placed_groups(
    groups: Iterable[FleetResourceGroup], cluster: str, flavors: Set[str], is_closed: Callable[[str], bool]
) -> tuple[ResourceGroup, ...]:
    """The resource groups with the flavors and amounts of `cluster`; a group that loses all flavors is left out.

    A flavor whose nodes wait for a calendar reservation is there, with a quota of 0.
    """
    placed_groups_there: list[ResourceGroup] = []
    for group in groups:
        placed_flavors = tuple(
            _closed(flavor) if is_closed(flavor.name) else _flavor_on(flavor, cluster)
            for flavor in group.flavors
            if flavor.name in flavors
        )
        if len(placed_flavors) == len(group.flavors) and all(map(is_, placed_flavors, group.flavors)):
            placed_groups_there.append(group)
        elif placed_flavors:
            placed_groups_there.append(
                ResourceGroup.model_construct(covered_resources=group.covered_resources, flavors=placed_flavors)
            )
    return tuple(placed_groups_there)


def _flavor_on(flavor: FleetFlavorQuotas, cluster: str) -> FlavorQuotas:
    """The flavor with the amounts of `cluster`; itself where none are different."""
    if not any(cluster in quota.per_cluster for quota in flavor.resources):
        return flavor
    return FlavorQuotas.model_construct(
        name=flavor.name, resources=tuple(quota.on(cluster) for quota in flavor.resources)
    )


def _closed(flavor: FleetFlavorQuotas) -> FlavorQuotas:
    """The flavor with nothing to give, and nothing to lend."""
    return FlavorQuotas.model_construct(
        name=flavor.name,
        resources=tuple(
            ResourceQuota.model_construct(
                name=quota.name,
                nominal_quota=ZERO,
                borrowing_limit=None if quota.borrowing_limit is None else ZERO,
                lending_limit=None if quota.lending_limit is None else ZERO,
            )
            for quota in flavor.resources
        ),
    )


def summed_groups(
    groups: Iterable[ResourceGroup], quotas: Iterable[tuple[str, ResourceQuota]], headroom_percent: int
) -> tuple[ResourceGroup, ...]:
    """One group: for each flavor of the manager and each resource, the sum of `quotas`, given with these flavors.

    The nominal quota gets the headroom, rounded up. Limits are summed too; a limit that is missing anywhere is missing
    in the sum. Resources are in the order of `groups`.
    """
    quotas_by_resource: dict[str, dict[str, list[ResourceQuota]]] = {}
    for flavor, quota in quotas:
        quotas_by_resource.setdefault(flavor, {}).setdefault(quota.name, []).append(quota)
    covered_names = dict.fromkeys(name for group in groups for name in group.covered_resources)
    names = tuple(name for name in covered_names if any(name in item for item in quotas_by_resource.values()))
    if not names:
        return ()
    flavors = tuple(
        FlavorQuotas.model_construct(
            name=flavor, resources=tuple(_summed(name, value.get(name, ()), headroom_percent) for name in names)
        )
        for flavor, value in quotas_by_resource.items()
    )
    return (ResourceGroup.model_construct(covered_resources=names, flavors=flavors),)


def _summed(name: str, quotas: Sequence[ResourceQuota], headroom_percent: int) -> ResourceQuota:
    return ResourceQuota.model_construct(
        name=name,
        nominal_quota=Quantity.total(quota.nominal_quota for quota in quotas).with_headroom(headroom_percent),
        borrowing_limit=_sum_limits([quota.borrowing_limit for quota in quotas]),
        lending_limit=_sum_limits([quota.lending_limit for quota in quotas]),
    )


def _sum_limits(limits: Sequence[Quantity | None]) -> Quantity | None:
    known_limits = [limit for limit in limits if limit is not None]
    return Quantity.total(known_limits) if known_limits and len(known_limits) == len(limits) else None


def lent(group_places: Iterable[tuple[Iterable[ResourceGroup], str]], headroom_percent: int) -> Mapping[str, Quantity]:
    """What is lent of each resource, with the headroom: of the flavor that each groups are given with."""
    quantities: dict[str, list[Quantity]] = {}
    for groups, name in group_places:
        for quota in (
            resource
            for group in groups
            for flavor in group.flavors
            if flavor.name == name
            for resource in flavor.resources
        ):
            limit = quota.nominal_quota if quota.lending_limit is None else quota.lending_limit
            quantities.setdefault(quota.name, []).append(min(quota.nominal_quota, limit))
    return {name: Quantity.total(amounts).with_headroom(headroom_percent) for name, amounts in quantities.items()}


def with_former(
    resource_groups: Iterable[ResourceGroup],
    most: Mapping[str, Quantity] | None,
    names: Sequence[str],
    *,
    in_cohort: bool,
) -> tuple[ResourceGroup, ...]:
    """Derived quotas of the manager, borrowing at most `most`, with the flavors `names` too.

    Jobs may hold those from before their quota was on another, and there is none on them now. A queue keeps them
    because a check without `onFlavors` is one of all flavors of its queue: Kueue takes the MultiKueue check away from a
    job on any other flavor, and then admits it without a worker, or never learns that it has ended. Source:
    kueue@v0.19.2 pkg/workload/workload.go (admissionChecksForAdmission) and
    pkg/controller/admissionchecks/multikueue/workload.go (Reconcile).
    """
    return tuple(
        ResourceGroup.model_construct(
            covered_resources=group.covered_resources,
            flavors=(
                *(_limited(flavor, most) for flavor in group.flavors),
                *_former(names, group, in_cohort=in_cohort),
            ),
        )
        for group in resource_groups
    )


def _limited(flavor: FlavorQuotas, most: Mapping[str, Quantity] | None) -> FlavorQuotas:
    """The flavor with borrowing limits of at most `most`; None: as it is."""
    if most is None:
        return flavor
    resources = []
    for quota in flavor.resources:
        known_limits = [limit for limit in (quota.borrowing_limit, most.get(quota.name, ZERO)) if limit is not None]
        resources.append(quota.model_copy(update={"borrowing_limit": min(known_limits)}))
    return FlavorQuotas.model_construct(name=flavor.name, resources=tuple(resources))


def _former(names: Iterable[str], group: ResourceGroup, *, in_cohort: bool) -> tuple[FlavorQuotas, ...]:
    nothing = tuple(
        ResourceQuota.model_construct(name=name, nominal_quota=ZERO, borrowing_limit=ZERO if in_cohort else None)
        for name in group.covered_resources
    )
    present = {flavor.name for flavor in group.flavors}
    return tuple(
        FlavorQuotas.model_construct(name=name, resources=nothing)
        for name in dict.fromkeys(names)
        if name not in present
    )
