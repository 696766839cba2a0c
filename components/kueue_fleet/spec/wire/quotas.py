"""Resource groups: which resources, on which flavors, how much; the part ClusterQueue and Cohort share.

Source: kueue@v0.19.2 apis/kueue/v1beta2/clusterqueue_types.go (schema and CEL) and
pkg/webhooks/{clusterqueue_webhook,common}.go (validateResourceGroups, validateFairSharing).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from kueue_fleet.spec.base import DnsSubdomain, LabelKey, RuledModel, SpecModel
from kueue_fleet.spec.problem import Problem
from kueue_fleet.spec.quantity import NOT_GIVEN, ONE, ZERO, OptionalQuantityField, Quantity, QuantityField


class FairSharing(RuledModel):
    """How much of the unused quota a node of the cohort tree may claim compared with its siblings."""

    weight: QuantityField = ONE
    """Share relative to the siblings; default 1. 0 means: always behind everyone else."""

    def own_problems(self) -> Iterator[Problem]:
        """Not negative; when not 0, above 1n, below which it is lost in the arithmetic (validateFairSharing)."""
        if self.weight < ZERO:
            yield Problem("weight", f"{self.weight} is negative", "write 0 or a positive number")
        elif ZERO < self.weight <= Quantity("1n"):
            yield Problem("weight", f"{self.weight} is too small to count with", "write 0 or a number above 1n")


class ResourceQuota(SpecModel):
    """Quota for one resource on one flavor."""

    name: LabelKey
    """The resource, as in a container's requests: cpu, memory, nvidia.com/gpu."""
    nominal_quota: QuantityField
    """What the queue may use at any time, in the resource's unit: CPUs, bytes, pieces."""
    borrowing_limit: OptionalQuantityField = NOT_GIVEN
    """How much beyond the nominal quota may be borrowed from the cohort; absent: no limit."""
    lending_limit: OptionalQuantityField = NOT_GIVEN
    """How much of the unused nominal quota the cohort may use; absent: all of it."""


class FlavorQuotas(SpecModel):
    """Quotas on one flavor, one for each covered resource, in the same order."""

    name: DnsSubdomain
    """The ResourceFlavor."""
    resources: Annotated[tuple[ResourceQuota, ...], Field(min_length=1, max_length=64)]
    """One quota for each of the group's coveredResources, in the same order."""


class ResourceGroup(SpecModel):
    """Resources that a pod always takes from one and the same flavor, and the flavors, tried in order."""

    covered_resources: Annotated[tuple[LabelKey, ...], Field(min_length=1, max_length=64)]
    """The resources of this group. A resource that no group covers cannot be requested by any job of the queue."""
    flavors: Annotated[tuple[FlavorQuotas, ...], Field(min_length=1, max_length=64)]
    """The flavors, in the order in which Kueue tries them."""


@dataclass(frozen=True, slots=True)
class LimitRules:
    """What differs between the quotas of a ClusterQueue and those of a Cohort."""

    parent: str | None
    """Name of the cohort above, if any: without it, nothing can be borrowed or lent."""
    parent_field: str
    """The field that names it: `cohortName` or `parentName`."""
    lending_within_nominal: bool
    """Whether lendingLimit has to be at most nominalQuota; a Cohort may lend what its children bring."""


def check_resource_groups(groups: Sequence[ResourceGroup], rules: LimitRules) -> Iterator[Problem]:
    """Problems of `groups`, with paths from `resourceGroups` on (validateResourceGroups)."""
    resources_at: dict[str, str] = {}
    flavors_at: dict[str, str] = {}
    for g, group in enumerate(groups):
        at = f"resourceGroups[{g}]"
        for index, name in enumerate(group.covered_resources):
            here = f"{at}.coveredResources[{index}]"
            if name in resources_at:
                yield Problem(here, f"{name} is already covered by {resources_at[name]}", "cover each resource once")
            else:
                resources_at[name] = here
        labels = item_labels([flavor.name for flavor in group.flavors])
        for flavor, label in zip(group.flavors, labels, strict=True):
            here = f"{at}.flavors[{label}]"
            if flavor.name in flavors_at:
                yield Problem(
                    f"{here}.name",
                    f"flavor {flavor.name} already has quotas at {flavors_at[flavor.name]}",
                    "give each flavor its quotas in one place",
                )
            else:
                flavors_at[flavor.name] = here
            yield from _check_flavor(flavor, group.covered_resources, rules, here)
        total = sum(len(flavor.resources) for flavor in group.flavors)
        if total > 512:
            yield Problem(at, f"{total} pairs of flavor and resource, at most 512 are allowed", "split the group")


def check_totals(groups: Sequence[ResourceGroup]) -> Iterator[Problem]:
    """The limits over all groups of a ClusterQueue: validateTotalFlavors, validateTotalCoveredResources."""
    for count, what in (
        (sum(len(group.flavors) for group in groups), "flavors"),
        (sum(len(group.covered_resources) for group in groups), "covered resources"),
    ):
        if count > 256:
            yield Problem(
                "resourceGroups", f"{count} {what} in all groups together, at most 256 are allowed", f"use fewer {what}"
            )


def _check_flavor(flavor: FlavorQuotas, covered: Sequence[str], rules: LimitRules, at: str) -> Iterator[Problem]:
    names = [quota.name for quota in flavor.resources]
    if names != list(covered):
        yield from _check_names(names, list(covered), at)
    for quota, label in zip(flavor.resources, item_labels(names), strict=True):
        yield from check_quota(quota, rules, f"{at}.resources[{label}]")


def _check_names(names: list[str], covered: list[str], at: str) -> Iterator[Problem]:
    """Resources of a flavor against the covered ones: the same names, once each, in the same order."""
    here = f"{at}.resources"
    repeated = [name for name, count in Counter(names).items() if count > 1]
    missing = [name for name in covered if name not in names]
    surplus = [name for name in dict.fromkeys(names) if name not in covered]
    for name in repeated:
        yield Problem(here, f"{name} has more than one quota", "give each resource one quota")
    for name in missing:
        yield Problem(here, f"no quota for {name}, which coveredResources lists", f"add a quota for {name}")
    for name in surplus:
        yield Problem(
            f"{here}[{name}]",
            f"quota for {name}, which coveredResources does not list",
            f"add {name} to coveredResources or remove the quota",
        )
    if not (repeated or missing or surplus):
        yield Problem(
            here,
            f"order is {', '.join(names)}, but coveredResources has {', '.join(covered)}",
            "put both in the same order",
        )


def check_quota(quota: ResourceQuota, rules: LimitRules, at: str) -> Iterator[Problem]:
    """Amounts not negative; limits only below a cohort; lending at most the nominal quota where that holds."""
    amounts = {
        "nominalQuota": quota.nominal_quota,
        "borrowingLimit": quota.borrowing_limit,
        "lendingLimit": quota.lending_limit,
    }
    for field, amount in amounts.items():
        if amount is None:
            continue
        if amount < ZERO:
            yield Problem(f"{at}.{field}", f"{amount} is negative", "write 0 or a positive amount")
        if field != "nominalQuota" and not rules.parent:
            yield Problem(
                f"{at}.{field}",
                f"{amount} is set, but {rules.parent_field} is not, so there is nobody to "
                f"{'borrow from' if field == 'borrowingLimit' else 'lend to'}",
                f"set {rules.parent_field} or remove {field}",
            )
    lending = quota.lending_limit
    if rules.lending_within_nominal and lending is not None and lending > quota.nominal_quota:
        yield Problem(
            f"{at}.lendingLimit",
            f"{lending} is more than the nominalQuota of {quota.nominal_quota}",
            "lower lendingLimit or remove it, which lends everything",
        )


def item_labels(names: Sequence[str]) -> list[str]:
    """How the items of a list are called in a path: by name, or by index where the name is not unique in the list."""
    counts = Counter(names)
    return [name if name and counts[name] == 1 else str(index) for index, name in enumerate(names)]
