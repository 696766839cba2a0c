"""A ClusterQueue in the tree: its policies, its flavors laid out for the search, and the workloads it holds.

Source: kueue@v0.19.2 pkg/cache/scheduler/clusterqueue.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, cast

from kueue_admission.decide.model import AdmissionCheck, ClusterQueue, ResourceFlavor, ResourceGroup, Topology
from kueue_admission.decide.quota.cohort_tree import FlavorResources, TreeNode
from kueue_admission.decide.reasons import InactiveReason
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER


class GroupLayout:
    """A resource group: its flavors in order, and the flavor-resource of each covered resource in each of them."""

    __slots__ = ("covered", "flavor_names", "flavors", "frs")

    def __init__(self, group: ResourceGroup, ids: FlavorResources) -> None:
        self.covered = frozenset(group.covered_resources)
        self.flavors = tuple(flavor.flavor for flavor in group.flavors)
        self.flavor_names = frozenset(self.flavors)
        self.frs = tuple(
            {resource: ids.id(flavor, resource) for resource in group.covered_resources} for flavor in self.flavors
        )


class QueueNode(TreeNode):
    """A ClusterQueue. `workloads` are those with a reservation; `generation` grows when quota may have become free.

    `active` with the reasons in `inactive` says whether it takes part; `checks` has the flavors of each of its checks,
    by name; `checks_of_all` are those of every flavor.
    """

    __slots__ = (
        "active",
        "can_preempt_while_borrowing",
        "checks",
        "checks_of_all",
        "generation",
        "group_of",
        "groups",
        "has_multikueue",
        "inactive",
        "not_ready",
        "provisioning_flavors",
        "spec",
        "tas_flavors",
        "tas_only",
        "workloads",
    )

    is_queue: ClassVar[bool] = True

    def __init__(self, spec: ClusterQueue) -> None:
        super().__init__(spec.name)
        self.spec = spec
        self.workloads: dict[str, WorkloadInfo] = {}
        self.not_ready: set[str] = set()
        self.generation = 0
        self.groups: tuple[GroupLayout, ...] = ()
        self.group_of: dict[str, GroupLayout] = {}
        self.checks: dict[str, frozenset[str]] = {}
        self.checks_of_all: list[str] = []
        self.inactive: tuple[tuple[InactiveReason, str], ...] = ()
        self.active = True
        self.tas_flavors: dict[str, str] = {}
        self.tas_only = False
        self.has_multikueue = False
        self.provisioning_flavors: frozenset[str] = frozenset()
        self.can_preempt_while_borrowing = False

    def configure(self, spec: ClusterQueue, ids: FlavorResources, *, fair_sharing: bool) -> None:
        """Take over a new spec; resolve references and `seal` the tree afterwards."""
        self.spec = spec
        self.fair_weight = spec.fair_weight
        self.set_quotas(spec.groups, ids)
        self.groups = tuple(GroupLayout(group, ids) for group in spec.groups)
        self.group_of = {resource: group for group in reversed(self.groups) for resource in group.covered}
        flavors = frozenset(flavor for group in self.groups for flavor in group.flavors)
        flavors_of_checks = {check.name: frozenset(check.on_flavors) or flavors for check in spec.checks}
        self.checks = dict(sorted(flavors_of_checks.items()))
        self.checks_of_all = [name for name, on_flavors in self.checks.items() if on_flavors >= flavors]
        preemption = spec.preemption
        self.can_preempt_while_borrowing = preemption.borrow_within_cohort.policy != "Never" or (
            fair_sharing and preemption.reclaim_within_cohort != "Never"
        )

    @property
    def last_acceptable(self) -> int | None:
        """Place, among its flavors, of the last one to which a job may migrate; None: it may to any."""
        limits = self.spec.migration.constraints if self.spec.migration else None
        name = limits.last_acceptable_flavor_name if limits else None
        return None if name is None else self.groups[0].flavors.index(name)

    def resolve(
        self,
        flavors: Mapping[str, ResourceFlavor],
        checks: Mapping[str, AdmissionCheck],
        topologies: Mapping[str, Topology],
    ) -> None:
        """Look up what the spec refers to, and decide whether the queue is active.

        `inactive` lists the reasons in the order of Kueue's message; the first one is the condition's reason.
        """
        names = [flavor for group in self.groups for flavor in group.flavors]
        missing_flavors = [name for name in names if name not in flavors]
        self.tas_flavors = {
            name: topology for name in names if name in flavors and (topology := flavors[name].topology) is not None
        }
        self.tas_only = all(name in self.tas_flavors for name in names)
        by_controller: dict[str, list[str]] = {}
        for name in self.checks:
            if name in checks:
                by_controller.setdefault(checks[name].controller, []).append(name)
        multikueue = by_controller.get(MULTIKUEUE_CONTROLLER, [])
        provisioning = by_controller.get(PROVISIONING_CONTROLLER, [])
        self.has_multikueue = bool(multikueue)
        self.provisioning_flavors = frozenset(flavor for name in provisioning for flavor in self.checks[name])
        reasons: list[tuple[InactiveReason, str]] = []
        if self.spec.terminating:
            reasons.append((InactiveReason.TERMINATING, ""))
        if self.spec.stop_policy != "None":
            reasons.append((InactiveReason.STOPPED, "is stopped"))
        if missing_flavors:
            reasons.append(
                (InactiveReason.FLAVOR_NOT_FOUND, f"references missing ResourceFlavor(s): {','.join(missing_flavors)}")
            )
        reasons += self._check_reasons(checks, multikueue, provisioning, frozenset(names))
        if not multikueue:
            reasons += [
                (InactiveReason.TOPOLOGY_NOT_FOUND, f'there is no Topology "{topology}" for TAS flavor "{name}"')
                for name, topology in self.tas_flavors.items()
                if topology not in topologies
            ]
        self.inactive = tuple(reasons)
        self.active = not reasons

    def _check_reasons(
        self,
        checks: Mapping[str, AdmissionCheck],
        multikueue: list[str],
        provisioning: list[str],
        flavors: frozenset[str],
    ) -> list[tuple[InactiveReason, str]]:
        if not self.checks:
            return []
        missing_checks = [name for name in self.checks if name not in checks]
        inactive = [name for name in self.checks if name in checks and not checks[name].active]
        per_flavor = [name for name in multikueue if self.checks[name] != flavors]
        dispatching, asking = ",".join(multikueue), ",".join(provisioning)
        complaints = (
            (
                InactiveReason.ADMISSION_CHECK_NOT_FOUND,
                "references missing AdmissionCheck(s): ",
                ",".join(missing_checks),
            ),
            (InactiveReason.ADMISSION_CHECK_INACTIVE, "references inactive AdmissionCheck(s): ", ",".join(inactive)),
            (
                InactiveReason.MULTIPLE_MULTI_KUEUE_ADMISSION_CHECKS,
                "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: ",
                dispatching if len(multikueue) > 1 else "",
            ),
            (
                InactiveReason.MULTI_KUEUE_ADMISSION_CHECK_APPLIED_PER_FLAVOR,
                "Cannot specify MultiKueue AdmissionCheck per flavor, found: ",
                ",".join(per_flavor),
            ),
            (
                InactiveReason.MULTI_KUEUE_WITH_PROVISIONING_REQUEST,
                "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: ",
                f"{dispatching}, {asking}" if dispatching and asking else "",
            ),
        )
        return [(reason, f"{text}{names}") for reason, text, names in complaints if names]

    @property
    def inactive_message(self) -> str:
        """The message of the condition Active."""
        if not self.inactive:
            return "Can admit new workloads"
        if self.spec.terminating:
            return "Can't admit new workloads; clusterQueue is terminating"
        return f"Can't admit new workloads: {', '.join(text for _, text in self.inactive)}."


def queues_of(cohort: TreeNode) -> list[QueueNode]:
    """The active ClusterQueues right below a cohort."""
    return cast("list[QueueNode]", cohort.queues)  # The tree knows nodes only; the cache puts nothing else there.


def queues_below(cohort: TreeNode) -> Iterator[QueueNode]:
    """Every active ClusterQueue below a cohort."""
    yield from queues_of(cohort)
    for child in cohort.cohorts:
        yield from queues_below(child)
