"""Resource groups: which resources, on which flavors, how much; the part ClusterQueue and Cohort share.

Source: kueue@v0.19.2 apis/kueue/v1beta2/clusterqueue_types.go (schema and CEL) and
pkg/webhooks/{clusterqueue_webhook,common}.go (validateResourceGroups, validateFairSharing).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kueue_admission.kernel.base import LabelKey, RuledModel, SpecModel
from kueue_admission.kernel.described import Hint
from kueue_admission.kernel.form_rules import (
    BYTES,
    COVERED,
    COVERED_TWICE,
    LENDING,
    LIMIT_WITHOUT_COHORT,
    OUT_OF_RANGE,
    UNUSUAL_UNITS,
    WHOLE_UNITS,
)
from kueue_admission.kernel.given import NOT_GIVEN, ListOf, ListOfText
from kueue_admission.kernel.problem import Problem, item_labels, where_read
from kueue_admission.kernel.quantity import ONE, ZERO, OptionalQuantityField, Quantity, QuantityField
from kueue_admission.kernel.references import FlavorName

_MEBIBYTE: Final = Quantity("1Mi")


class FairSharing(RuledModel):
    """How much of the unused quota a node of the cohort tree may claim compared with its siblings."""

    weight: QuantityField = ONE
    """Share relative to the siblings; default 1. 0 means: always behind everyone else."""

    def own_problems(self) -> Iterator[Problem]:
        """Not negative; when not 0, above 1n, below which it is lost in the arithmetic (validateFairSharing)."""
        if self.weight < ZERO:
            yield OUT_OF_RANGE.at("weight", f"{self.weight} is negative", "write 0 or a positive number")
        elif ZERO < self.weight <= Quantity("1n"):
            yield OUT_OF_RANGE.at("weight", f"{self.weight} is too small to count with", "write 0 or a number above 1n")


class ResourceQuota(SpecModel):
    """Quota for one resource on one flavor."""

    name: LabelKey = Field(kw_only=False)
    """The resource, as in a container's requests: cpu, memory, nvidia.com/gpu."""
    nominal_quota: Annotated[QuantityField, Hint("add how much of the resource the queue may use")] = Field(
        kw_only=False
    )
    """What the queue may use at any time, in the resource's unit: CPUs, bytes, pieces."""
    borrowing_limit: OptionalQuantityField = NOT_GIVEN
    """How much beyond the nominal quota may be borrowed from the cohort; absent: no limit."""
    lending_limit: OptionalQuantityField = NOT_GIVEN
    """How much of the unused nominal quota the cohort may use; absent: all of it."""


class FlavorQuotas(SpecModel):
    """Quotas on one flavor, one for each covered resource, in the same order."""

    name: FlavorName = Field(kw_only=False)
    """The ResourceFlavor; a program may give what declares it."""
    resources: Annotated[ListOf[ResourceQuota], Field(min_length=1, max_length=64)] = Field(kw_only=False)
    """One quota for each of the group's coveredResources, in the same order."""


class ResourceGroup(SpecModel):
    """Resources that a pod always takes from one and the same flavor, and the flavors, tried in order."""

    covered_resources: Annotated[
        ListOfText[LabelKey],
        Field(min_length=1, max_length=64),
        Hint("list the resources that the flavors below have quotas for"),
    ]
    """The resources of this group. A resource that no group covers cannot be requested by any job of the queue."""
    flavors: Annotated[ListOf[FlavorQuotas], Field(min_length=1, max_length=64)]
    """The flavors, in the order in which Kueue tries them."""


@dataclass(frozen=True, slots=True)
class LimitRules:
    """What differs between the quotas of a ClusterQueue and those of a Cohort."""

    of: SpecModel
    """The ClusterQueue or Cohort."""
    parent_field: Literal["cohortName", "parentName"]
    """Its field that names the cohort above; without a cohort, nothing can be borrowed or lent."""

    @property
    def parent(self) -> str | None:
        """Name of the cohort above, if any."""
        name: str | None = getattr(self.of, "cohort_name" if self.parent_field == "cohortName" else "parent_name")
        return name

    @property
    def lending_within_nominal(self) -> bool:
        """Whether lendingLimit has to be at most nominalQuota; a Cohort may lend what its children bring."""
        return self.parent_field == "cohortName"


@where_read
def check_resource_groups(groups: Sequence[ResourceGroup], rules: LimitRules) -> Iterator[Problem]:
    """Problems of `groups`, with paths from `resourceGroups` on (validateResourceGroups)."""
    yield from _check_covered(groups)
    yield from _check_flavor_names(groups)
    for g, group in enumerate(groups):
        yield from _check_group(group, rules, f"resourceGroups[{g}]")


@where_read
def _check_covered(groups: Sequence[ResourceGroup]) -> Iterator[Problem]:
    """A resource belongs to one group."""
    resources_at: dict[str, str] = {}
    for g, group in enumerate(groups):
        for index, name in enumerate(group.covered_resources):
            here = f"resourceGroups[{g}].coveredResources[{index}]"
            first = resources_at.setdefault(name, here)
            if first != here:
                yield COVERED_TWICE.at(here, f"{name} is already covered by {first}", "cover each resource once")


@where_read
def _check_flavor_names(groups: Sequence[ResourceGroup]) -> Iterator[Problem]:
    """A flavor belongs to one group."""
    flavors_at: dict[str, str] = {}
    for g, group in enumerate(groups):
        labels = item_labels([flavor.name for flavor in group.flavors])
        for flavor, label in zip(group.flavors, labels, strict=True):
            here = f"resourceGroups[{g}].flavors[{label}]"
            first = flavors_at.setdefault(flavor.name, here)
            if first != here:
                yield COVERED_TWICE.at(
                    f"{here}.name",
                    f"flavor {flavor.name} already has quotas at {first}",
                    "give each flavor its quotas in one place",
                )


@where_read
def _check_group(group: ResourceGroup, rules: LimitRules, at: str) -> Iterator[Problem]:
    """Each flavor has a good quota for each covered resource, and there are not too many of them."""
    labels = item_labels([flavor.name for flavor in group.flavors])
    for flavor, label in zip(group.flavors, labels, strict=True):
        yield from _check_flavor(group, flavor, rules, f"{at}.flavors[{label}]")
    total = sum(len(flavor.resources) for flavor in group.flavors)
    if total > 512:
        yield OUT_OF_RANGE.at(at, f"{total} pairs of flavor and resource, at most 512 are allowed", "split the group")


@where_read
def check_totals(groups: Sequence[ResourceGroup]) -> Iterator[Problem]:
    """The limits over all groups of a ClusterQueue: validateTotalFlavors, validateTotalCoveredResources."""
    for count, what in (
        (sum(len(group.flavors) for group in groups), "flavors"),
        (sum(len(group.covered_resources) for group in groups), "covered resources"),
    ):
        if count > 256:
            yield OUT_OF_RANGE.at(
                "resourceGroups", f"{count} {what} in all groups together, at most 256 are allowed", f"use fewer {what}"
            )


@where_read
def _check_flavor(group: ResourceGroup, flavor: FlavorQuotas, rules: LimitRules, at: str) -> Iterator[Problem]:
    yield from _check_names(group, flavor, f"{at}.resources")
    labels = item_labels([quota.name for quota in flavor.resources])
    for quota, label in zip(flavor.resources, labels, strict=True):
        yield from check_quota(quota, rules, f"{at}.resources[{label}]")


@where_read
def _check_names(group: ResourceGroup, flavor: FlavorQuotas, here: str) -> Iterator[Problem]:
    """Resources of a flavor against the covered ones: the same names, once each, in the same order."""
    names, covered_names = [quota.name for quota in flavor.resources], list(group.covered_resources)
    if names == covered_names:
        return
    repeated_names = [name for name, count in Counter(names).items() if count > 1]
    missing_names = [name for name in covered_names if name not in names]
    surplus = [name for name in dict.fromkeys(names) if name not in covered_names]
    for name in repeated_names:
        yield COVERED.at(here, f"{name} has more than one quota", "give each resource one quota")
    for name in missing_names:
        yield COVERED.at(here, f"no quota for {name}, which coveredResources lists", f"add a quota for {name}")
    for name in surplus:
        yield COVERED.at(
            f"{here}[{name}]",
            f"quota for {name}, which coveredResources does not list",
            f"add {name} to coveredResources or remove the quota",
        )
    if not (repeated_names or missing_names or surplus):
        yield COVERED.at(
            here,
            f"order is {', '.join(names)}, but coveredResources has {', '.join(covered_names)}",
            "put both in the same order",
        )


def is_devices_in_bytes(resource: str, amount: Quantity) -> bool:
    """Whether an extended resource has a suffix of bytes, as 32Gi of GPUs, of which no fleet has as many."""
    return "/" in resource and str(amount).endswith("i")


def whole_problems(resource: str, amount: Quantity, at: str) -> Iterator[Problem]:
    """Kubernetes counts devices in whole units, and refuses an amount with a fraction.

    Source: kubernetes@v1.36 pkg/apis/core/validation (ValidateResourceQuantityValue: extended resources are integers).
    """
    if "/" in resource and Quantity(amount.value) != amount:
        wrong = f"{amount.plain} is not a whole number, and {resource} is counted in whole units"
        yield WHOLE_UNITS.at(at, wrong, f"write {amount.value - 1} or {amount.value}")
    yield from unit_problems(resource, amount, at)


def unit_problems(resource: str, amount: Quantity, at: str) -> Iterator[Problem]:
    """Devices counted in bytes, and memory or storage of a few bytes."""
    if is_devices_in_bytes(resource, amount):
        fix = f"write {str(amount).rstrip('KMGTPEi')}, unless {resource} is counted in bytes"
        yield UNUSUAL_UNITS.at(at, f"{amount} is {amount.value} of {resource}", fix)
    elif resource in ("memory", "ephemeral-storage") and ZERO < amount < _MEBIBYTE:
        yield BYTES.at(at, f"{amount.plain} of {resource} is counted in bytes", "add a unit, such as Gi")


def check_quota(quota: ResourceQuota, rules: LimitRules, at: str) -> Iterator[Problem]:
    """Amounts not negative; limits only below a cohort; lending at most the nominal quota where that holds."""
    yield from _check_amount(quota, "nominal_quota", f"{at}.nominalQuota")
    limits = (("borrowing_limit", "borrowingLimit", "borrow from"), ("lending_limit", "lendingLimit", "lend to"))
    for field, alias, what in limits:
        yield from _check_amount(quota, field, f"{at}.{alias}")
        yield from _check_parent(quota, field, rules, f"{at}.{alias}", what)
    yield from _check_lending(quota, rules, at)


@where_read
def _check_amount(quota: ResourceQuota, field: str, at: str) -> Iterator[Problem]:
    amount: Quantity = getattr(quota, field) or ZERO
    if amount < ZERO:
        yield OUT_OF_RANGE.at(at, f"{amount.plain} is negative", "write 0 or a positive amount")
    elif "/" in quota.name and Quantity(amount.value) != amount:
        wrong = f"{amount.plain} of {quota.name} is {amount.value} to Kueue, which rounds up"
        yield UNUSUAL_UNITS.at(at, wrong, f"write {amount.value - 1} or {amount.value}")
    yield from unit_problems(quota.name, amount, at)


@where_read
def _check_parent(quota: ResourceQuota, field: str, rules: LimitRules, at: str, what: str) -> Iterator[Problem]:
    amount: Quantity | None = getattr(quota, field)
    if amount is not None and not rules.parent:
        yield LIMIT_WITHOUT_COHORT.at(
            at,
            f"{amount.plain} is set, but {rules.parent_field} is not, so there is no queue to {what}",
            f"set {rules.parent_field} or remove {at.rpartition('.')[2]}",
        )


@where_read
def _check_lending(quota: ResourceQuota, rules: LimitRules, at: str) -> Iterator[Problem]:
    lending = quota.lending_limit
    if rules.lending_within_nominal and lending is not None and lending > quota.nominal_quota:
        yield LENDING.at(
            f"{at}.lendingLimit",
            f"{lending.plain} is more than the nominalQuota of {quota.nominal_quota.plain}",
            "lower lendingLimit or remove it, which lends everything",
        )


def counted_classes(mappings: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """DeviceClasses, each with the resource as which its devices count; what has another form counts as nothing.

    `mappings` are `resources.deviceClassMappings` of Kueue's Configuration.
    """
    counts = {}
    for mapping in mappings:
        classes = mapping.get("deviceClassNames")
        for entry in classes if isinstance(classes, list | tuple) else ():
            counts[str(entry)] = str(mapping.get("name"))
    return counts
