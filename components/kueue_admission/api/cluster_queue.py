"""ClusterQueue, with the Cohort that it may be in and the LocalQueues that lead to it.

Source: kueue@v0.19.2 apis/kueue/v1beta2/{clusterqueue,cohort,localqueue,fairsharing}_types.go (schema, defaults, CEL)
and pkg/webhooks/{clusterqueue,cohort}_webhook.go; there is no webhook for a LocalQueue. Not here: that the named
flavors, checks and cohorts exist (`check`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kueue_admission.api.quotas import FairSharing, LimitRules, ResourceGroup, check_resource_groups, check_totals
from kueue_admission.api.selector import LabelSelector
from kueue_admission.kernel import suggest
from kueue_admission.kernel.base import DnsSubdomain, Int32, RuledModel, SpecModel
from kueue_admission.kernel.described import Hint
from kueue_admission.kernel.form_rules import (
    CONCURRENT_ADMISSION,
    EXCLUDED,
    LISTED_TWICE,
    NO_QUOTA_ON_FLAVOR,
    listed_twice,
)
from kueue_admission.kernel.given import NOT_GIVEN, ListOf
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.references import NO_NAMES, CheckName, FlavorNames, OptionalCohortName, QueueName

StopPolicy = Literal["None", "Hold", "HoldAndDrain"]
"""Whether a queue admits: yes; no; no, and what runs ends."""
QueueingStrategy = Literal["StrictFIFO", "BestEffortFIFO"]
"""Whether a job that does not fit blocks those behind it."""
FungibilityPolicy = Literal["MayStopSearch", "TryNextFlavor"]
"""Whether the search for a flavor may end here."""
FungibilityPreference = Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"]
"""What to prefer when every flavor needs one of the two."""
ReclaimPolicy = Literal["Never", "LowerPriority", "Any"]
"""Which jobs of other queues may be preempted."""
WithinPolicy = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
"""Which jobs of the same queue may be preempted."""
PreemptionPolicy = ReclaimPolicy | WithinPolicy
"""Either of the two."""


class FlavorFungibility(RuledModel):
    """Whether a job tries the next flavor rather than borrow or preempt in this one."""

    when_can_borrow: FungibilityPolicy = "MayStopSearch"
    """When the job fits only by borrowing: stop here (default), or try the next flavor."""
    when_can_preempt: FungibilityPolicy = "TryNextFlavor"
    """When the job fits only by preempting: stop here, or try the next flavor (default)."""
    preference: FungibilityPreference | None = None
    """What to prefer when every flavor needs one of the two; absent counts as BorrowingOverPreemption."""

    def own_problems(self) -> Iterator[Problem]:
        """CEL: preference only where both policies are TryNextFlavor."""
        if self.preference and not (self.when_can_borrow == self.when_can_preempt == "TryNextFlavor"):
            yield EXCLUDED.at(
                "preference",
                f"{self.preference} is set, but whenCanBorrow is {self.when_can_borrow} and whenCanPreempt is "
                f"{self.when_can_preempt}",
                "set both to TryNextFlavor or remove preference",
            )


class BorrowWithinCohort(SpecModel):
    """Whether a job that has to borrow may preempt jobs of other queues. Not with fair sharing."""

    policy: Literal["Never", "LowerPriority"] = "Never"
    """Never (default), or jobs of lower priority."""
    max_priority_threshold: Int32 | None = None
    """Only jobs of at most this priority may be preempted in this way; absent: any."""


class ClusterQueuePreemption(RuledModel):
    """Which running jobs a waiting job of this queue may evict."""

    reclaim_within_cohort: ReclaimPolicy = "Never"
    """Jobs of other queues that use more than their nominal quota: Never (default), of lower priority, or any."""
    borrow_within_cohort: BorrowWithinCohort = Field(default_factory=BorrowWithinCohort)
    """The same for a job that would itself be borrowing."""
    within_cluster_queue: WithinPolicy = "Never"
    """Jobs of this queue: Never (default), of lower priority, or also newer ones of equal priority."""

    def own_problems(self) -> Iterator[Problem]:
        """CEL: borrowWithinCohort needs a reclaimWithinCohort other than Never."""
        if self.reclaim_within_cohort == "Never" and self.borrow_within_cohort.policy != "Never":
            yield EXCLUDED.at(
                "borrowWithinCohort.policy",
                f"{self.borrow_within_cohort.policy}, but reclaimWithinCohort is Never",
                "set reclaimWithinCohort to LowerPriority or Any, or this policy to Never",
            )


class AdmissionCheckStrategyRule(SpecModel):
    """One admission check of a queue, and the flavors it is for."""

    name: CheckName = Field(kw_only=False)
    """The AdmissionCheck; a program may give what declares it."""
    on_flavors: Annotated[FlavorNames, Field(max_length=64)] = NO_NAMES
    """Only jobs that get one of these flavors are checked; empty: every job."""


class AdmissionChecksStrategy(SpecModel):
    """The admission checks of a queue."""

    admission_checks: Annotated[ListOf[AdmissionCheckStrategyRule], Field(min_length=1, max_length=64)]
    """The checks; a job starts when all of its checks are Ready."""


class AdmissionScope(SpecModel):
    """Whether the queue orders its LocalQueues by their past usage."""

    admission_mode: Literal["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"]
    """By usage, or not."""


class ConcurrentAdmissionConstraints(SpecModel):
    """Limits on where a running job may migrate."""

    last_acceptable_flavor_name: DnsSubdomain | None = None
    """The least preferred flavor a job may migrate to."""


class ConcurrentAdmissionMigration(SpecModel):
    """What happens after one variant of a job was admitted."""

    mode: Literal["TryPreferredFlavors", "RetainFirstAdmission"]
    """Continue to try the flavors listed before, or stay."""
    constraints: ConcurrentAdmissionConstraints | None = None
    """Only with TryPreferredFlavors."""


class ConcurrentAdmissionPolicy(SpecModel):
    """Lets a job wait for several flavors at once (alpha in Kueue, feature gate ConcurrentAdmission). Immutable."""

    migration: ConcurrentAdmissionMigration
    """What happens after one variant of a job was admitted."""


class ClusterQueueSpec(RuledModel):
    """`spec` of a ClusterQueue."""

    replaced: ClassVar[Mapping[str, str]] = {
        "cohort": "cohortName",
        "admissionChecks": "admissionChecksStrategy.admissionChecks, a list of {name, onFlavors}",
    }
    resource_groups: Annotated[ListOf[ResourceGroup], Field(max_length=16)] = ()
    """The quotas; a resource and a flavor belong to one group each."""
    cohort_name: OptionalCohortName = NOT_GIVEN
    """The cohort to borrow from and lend to; absent: none."""
    queueing_strategy: QueueingStrategy = "BestEffortFIFO"
    """BestEffortFIFO (default): a job that does not fit lets later ones pass; StrictFIFO: it blocks them."""
    namespace_selector: LabelSelector | None = None
    """Namespaces whose jobs may be admitted. Absent means none at all; `{}` means every namespace."""
    flavor_fungibility: FlavorFungibility = Field(default_factory=FlavorFungibility)
    """Whether a job tries the next flavor rather than borrow or preempt."""
    preemption: ClusterQueuePreemption = Field(default_factory=ClusterQueuePreemption)
    """Which running jobs a waiting job may evict."""
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    """Admission checks, per flavor if need be."""
    stop_policy: StopPolicy = "None"
    """None (default); Hold: admit nothing new; HoldAndDrain: also evict what runs."""
    fair_sharing: FairSharing = Field(default_factory=FairSharing)
    """Weight under fair sharing."""
    admission_scope: AdmissionScope | None = None
    """Whether the queue orders its LocalQueues by their past usage."""
    concurrent_admission_policy: ConcurrentAdmissionPolicy | None = None
    """Lets a job wait for several flavors at once (alpha, feature gate ConcurrentAdmission). Immutable."""

    @property
    def flavor_names(self) -> tuple[str, ...]:
        """Every flavor the queue has quotas on, in order."""
        return tuple(flavor.name for group in self.resource_groups for flavor in group.flavors)

    @property
    def check_rules(self) -> Sequence[AdmissionCheckStrategyRule]:
        """The rule of every admission check of the queue, in order."""
        return self.admission_checks_strategy.admission_checks if self.admission_checks_strategy else ()

    @property
    def check_names(self) -> tuple[str, ...]:
        """Every admission check of the queue, in order."""
        return tuple(check_rule.name for check_rule in self.check_rules)

    def own_problems(self) -> Iterator[Problem]:
        """The rules of ValidateClusterQueue, and the CEL rules that say the same."""
        yield from self._check_strategy()
        yield from self._check_concurrent_admission()
        yield from check_resource_groups(self.resource_groups, LimitRules(self, "cohortName"))
        yield from check_totals(self.resource_groups)

    @where_read
    def _check_strategy(self) -> Iterator[Problem]:
        """validateAdmissionCheckOnFlavors, and the map and set keys of the schema."""
        flavor_names = self.flavor_names
        at = "admissionChecksStrategy.admissionChecks"
        for name, count in Counter(self.check_names).items():
            if count > 1:
                yield LISTED_TWICE.at(at, f"{name} is listed {count} times", "list each check once")
        for check_rule in self.check_rules:
            here = f"{at}[{check_rule.name}].onFlavors"
            for index, flavor in enumerate(check_rule.on_flavors):
                if flavor not in flavor_names:
                    yield NO_QUOTA_ON_FLAVOR.at(
                        f"{here}[{index}]",
                        f"the queue has no quota on flavor {flavor}",
                        suggest.instead(flavor, flavor_names, "flavors of the queue"),
                    )
                elif flavor in check_rule.on_flavors[:index]:
                    yield listed_twice(f"{here}[{index}]", flavor, "flavor")

    @where_read
    def _check_concurrent_admission(self) -> Iterator[Problem]:
        """validateConcurrentAdmissionPolicy."""
        policy = self.concurrent_admission_policy
        if policy is None:
            return
        if len(self.resource_groups) != 1:
            yield CONCURRENT_ADMISSION.at(
                "resourceGroups",
                f"{len(self.resource_groups)} groups, but concurrentAdmissionPolicy needs exactly one",
                "use one group or remove concurrentAdmissionPolicy",
            )
        elif len(self.resource_groups[0].flavors) > 16:
            yield CONCURRENT_ADMISSION.at(
                "resourceGroups[0].flavors",
                f"{len(self.resource_groups[0].flavors)} flavors, but concurrentAdmissionPolicy allows at most 16",
                "use fewer flavors or remove concurrentAdmissionPolicy",
            )
        if self.queueing_strategy == "StrictFIFO":
            yield CONCURRENT_ADMISSION.at(
                "queueingStrategy",
                "StrictFIFO cannot be used with concurrentAdmissionPolicy",
                "use BestEffortFIFO or remove concurrentAdmissionPolicy",
            )
        constraints = policy.migration.constraints
        if constraints is None:
            return
        at = "concurrentAdmissionPolicy.migration.constraints"
        last = constraints.last_acceptable_flavor_name
        if policy.migration.mode != "TryPreferredFlavors":
            yield CONCURRENT_ADMISSION.at(
                at, f"set, but mode is {policy.migration.mode}", "set mode to TryPreferredFlavors or remove constraints"
            )
        elif last is not None and last not in self.flavor_names:
            yield NO_QUOTA_ON_FLAVOR.at(
                f"{at}.lastAcceptableFlavorName",
                f"the queue has no quota on flavor {last}",
                suggest.instead(last, self.flavor_names, "flavors of the queue"),
            )


class CohortSpec(RuledModel):
    """`spec` of a Cohort: a node of the tree in which queues lend each other what they do not use."""

    replaced: ClassVar[Mapping[str, str]] = {"parent": "parentName"}
    parent_name: OptionalCohortName = NOT_GIVEN
    """The cohort above; absent: this is the root of its tree."""
    resource_groups: Annotated[ListOf[ResourceGroup], Field(max_length=16)] = ()
    """Quota of the cohort itself, shared by everything below it."""
    fair_sharing: FairSharing = Field(default_factory=FairSharing)
    """Weight under fair sharing."""

    def own_problems(self) -> Iterator[Problem]:
        """The rules of validateCohort. Unlike a queue, a cohort may lend more than its own nominal quota."""
        yield from check_resource_groups(self.resource_groups, LimitRules(self, "parentName"))


class LocalQueueSpec(RuledModel):
    """`spec` of a LocalQueue: where a namespace's jobs enter a ClusterQueue."""

    cluster_queue: Annotated[QueueName, Hint("add the name of the ClusterQueue behind it")]
    """The ClusterQueue behind it. Immutable."""
    stop_policy: StopPolicy = "None"
    """None (default); Hold: admit nothing new; HoldAndDrain: also evict what runs."""
    fair_sharing: FairSharing | None = None
    """Weight under admission fair sharing."""
