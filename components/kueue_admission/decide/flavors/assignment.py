"""What the flavor assigner finds: a flavor and a mode for each resource of each pod set, and why.

Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/{flavorassigner,flavor_assigner_attempts}.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from kueue_admission.api.cluster_queue import FlavorFungibility
from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.errors import InvariantError
from kueue_admission.decide.flavors.evidence import Evidence, FlavorLacksResource, sentence
from kueue_admission.decide.model import DomainAssignment, PodSetAssignment
from kueue_admission.decide.reasons import QuotaReservedReason, most_severe
from kueue_admission.decide.workload.scan_progress import ScanProgress

if TYPE_CHECKING:
    from kueue_admission.decide.queue.cluster_queue import QueueNode


class Mode(IntEnum):
    """What has to happen before a flavor can be given; higher is better.

    `DEFERRED_FIT`: it will fit once preemptions decided in this cycle are done.
    """

    NO_FIT = 0
    PREEMPT = 1
    DEFERRED_FIT = 2
    FIT = 3


class Possibility(IntEnum):
    """The finer modes among which flavors are compared: why `Mode.PREEMPT`, and with what prospects.

    `RECLAIM` takes only from other queues, `PREEMPT` also from the own one, `NO_CANDIDATES` found none to preempt.
    """

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


MODE_OF = (Mode.NO_FIT, Mode.PREEMPT, Mode.PREEMPT, Mode.PREEMPT, Mode.FIT)
"""The mode that a possibility is, by the possibility's number."""

Rank = tuple[int, int]
"""Possibility and borrow level."""

WORST: Rank = (Possibility.NO_FIT, 1 << 60)
"""Nothing fits: no rank is below it."""
BEST: Rank = (Possibility.FIT, 0)
"""Fits without borrowing: no rank is above it."""


def is_preferred(a: Rank, b: Rank, fungibility: FlavorFungibility, behaviours: Behaviours) -> bool:
    """Whether `a` is better than `b` under the queue's preference."""
    if a[0] == Possibility.NO_FIT:
        return False
    if b[0] == Possibility.NO_FIT:
        return True
    lacks_candidates = a[0] == Possibility.NO_CANDIDATES
    if behaviours.prefers_flavors_with_candidates and lacks_candidates != (b[0] == Possibility.NO_CANDIDATES):
        return not lacks_candidates
    if fungibility.preference == "PreemptionOverBorrowing":
        return a[1] < b[1] if a[1] != b[1] else a[0] > b[0]
    return a[0] > b[0] if a[0] != b[0] else a[1] < b[1]


def should_try_next(rank: Rank, fungibility: FlavorFungibility) -> bool:
    """Whether the search continues after a flavor of this rank."""
    possibility, level = rank
    if possibility <= Possibility.NO_CANDIDATES:
        return True
    if possibility < Possibility.FIT and fungibility.when_can_preempt == "TryNextFlavor":
        return True
    return level > 0 and fungibility.when_can_borrow == "TryNextFlavor"


class FlavorChoice:
    """The flavor chosen for one resource. `tried_index` is where the search stopped, -1 at the last flavor."""

    __slots__ = ("borrow", "flavor", "mode", "tried_index")

    def __init__(self, flavor: str, mode: Mode, borrow: int = 0, tried_index: int = 0) -> None:
        self.flavor = flavor
        self.mode = mode
        self.borrow = borrow
        self.tried_index = tried_index

    def __repr__(self) -> str:
        return f"FlavorChoice({self.flavor!r}, {self.mode.name}, {self.borrow}, {self.tried_index})"


class FlavorAttempt(NamedTuple):
    """One flavor that was looked at, and the worst that was found for any resource."""

    flavor: str
    mode: Mode
    borrow: int = 0
    possibility: Possibility | None = None
    evidence: tuple[Evidence, ...] = ()
    no_fit_reason: QuotaReservedReason | None = None


class PodSetResult:
    """What was found for one pod set. `error` is a contradiction in the request.

    `flavors` None: the search has ended without a flavor, and nothing fits. No flavors at all, `{}`, are an answer only
    for pods that need none.
    """

    __slots__ = (
        "considered",
        "count",
        "delayed_topology",
        "error",
        "evidence",
        "flavors",
        "is_found",
        "name",
        "overrides",
        "requests",
        "topology",
        "topology_levels",
    )

    def __init__(
        self,
        name: str,
        count: int,
        requests: tuple[tuple[str, int], ...],
        flavors: dict[str, FlavorChoice] | None,
        evidence: Iterable[Evidence] = (),
    ) -> None:
        self.name = name
        self.count = count
        self.requests = requests
        self.is_found = flavors is not None
        self.flavors = flavors or {}
        self.evidence = list(evidence)
        self.error = ""
        self.considered: list[tuple[str, list[FlavorAttempt]]] = []
        self.overrides: dict[str, QuotaReservedReason] = {}
        self.topology: tuple[DomainAssignment, ...] | None = None
        self.topology_levels: tuple[str, ...] = ()
        self.delayed_topology = False

    @property
    def mode(self) -> Mode:
        """The worst mode among its resources."""
        if self.error or not self.is_found:
            return Mode.NO_FIT
        if not self.evidence:
            return Mode.FIT
        return min((choice.mode for choice in self.flavors.values()), default=Mode.NO_FIT)

    def set_mode(self, mode: Mode) -> None:
        """Set the mode of all its flavors."""
        for choice in self.flavors.values():
            choice.mode = mode

    def as_assignment(self) -> PodSetAssignment:
        """The result as it goes into an admission.

        Raises InvariantError where no flavor was found, as nothing can be admitted then.
        """
        if not self.is_found:
            raise InvariantError(f"pod set {self.name} has no flavor to be admitted with")
        amounts = dict(self.requests)
        return PodSetAssignment(
            name=self.name,
            count=self.count,
            flavors=tuple(sorted((resource, choice.flavor) for resource, choice in self.flavors.items())),
            usage=tuple(sorted((resource, amounts.get(resource, 0)) for resource in self.flavors)),
            topology=self.topology,
            topology_levels=self.topology_levels,
            delayed_topology=self.delayed_topology,
        )


class Assignment:
    """The result for a workload. `borrowing` is the highest borrow level, `usage` by flavor-resource."""

    __slots__ = ("_mode", "borrowing", "no_fit_reason", "pod_sets", "progress", "usage")

    def __init__(self) -> None:
        self.pod_sets: list[PodSetResult] = []
        self.borrowing = 0
        self.usage: dict[int, int] = {}
        self.progress: ScanProgress | None = None
        self.no_fit_reason: QuotaReservedReason | None = None
        self._mode: Mode | None = None

    @property
    def mode(self) -> Mode:
        """The worst mode among the pod sets."""
        if not self.pod_sets:
            return Mode.NO_FIT
        if self._mode is None:
            self._mode = min(pod_set.mode for pod_set in self.pod_sets)
        return self._mode

    def set_mode(self, mode: Mode) -> None:
        """Set the mode of everything."""
        self._mode = mode
        for pod_set in self.pod_sets:
            pod_set.set_mode(mode)

    def set_pod_set_mode(self, name: str, mode: Mode) -> None:
        """Set the mode of one pod set, and with it that of the whole."""
        for pod_set in self.pod_sets:
            if pod_set.name == name:
                pod_set.set_mode(mode)
                self._mode = mode

    def forget_mode(self) -> None:
        """Derive the mode from the pod sets again."""
        self._mode = None

    def pod_set(self, name: str) -> PodSetResult:
        """The result of the pod set `name`."""
        return next(pod_set for pod_set in self.pod_sets if pod_set.name == name)

    def message(self) -> str:
        """Kueue's sentence about what was missing; empty when everything fits."""
        parts = []
        for pod_set in self.pod_sets:
            if pod_set.error:
                return f"failed to assign flavors to pod set {pod_set.name}: {pod_set.error}"
            if pod_set.evidence:
                texts = ", ".join(sorted(map(sentence, pod_set.evidence)))
                parts.append(f"couldn't assign flavors to pod set {pod_set.name}: {texts}")
        return "; ".join(parts)


def merge_attempts(pod_set: PodSetResult, queue: QueueNode) -> list[FlavorAttempt]:
    """The attempts of a pod set over all its resources, one per flavor, sorted by name."""
    attempts_by_flavor: dict[str, FlavorAttempt] = {}
    for resource, attempts in pod_set.considered:
        for attempt in attempts:
            known_attempt = attempts_by_flavor.get(attempt.flavor)
            attempts_by_flavor[attempt.flavor] = attempt if known_attempt is None else _worse(known_attempt, attempt)
        group = queue.group_of.get(resource)
        if not attempts or group is None:
            continue
        present = {attempt.flavor for attempt in attempts}
        for flavor, known_attempt in attempts_by_flavor.items():
            if flavor in group.flavor_names and flavor not in present:
                evidence = FlavorLacksResource(flavor, resource)
                attempts_by_flavor[flavor] = known_attempt._replace(
                    mode=Mode.NO_FIT,
                    evidence=_unique((*known_attempt.evidence, evidence)),
                    no_fit_reason=QuotaReservedReason.NO_MATCHING_FLAVOR,
                )
    for flavor, reason in pod_set.overrides.items():
        if flavor in attempts_by_flavor:
            attempts_by_flavor[flavor] = attempts_by_flavor[flavor]._replace(mode=Mode.NO_FIT, no_fit_reason=reason)
    return [attempts_by_flavor[flavor] for flavor in sorted(attempts_by_flavor)]


def _worse(a: FlavorAttempt, b: FlavorAttempt) -> FlavorAttempt:
    possibility = a.possibility
    if b.possibility is not None and (possibility is None or b.possibility < possibility):
        possibility = b.possibility
    return FlavorAttempt(
        a.flavor,
        min(a.mode, b.mode),
        max(a.borrow, b.borrow),
        possibility,
        _unique(a.evidence + b.evidence),
        most_severe(a.no_fit_reason, b.no_fit_reason),
    )


def _unique(evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    return tuple(sorted(dict.fromkeys(evidence), key=sentence))


def resolve_no_fit_reason(assignment: Assignment, queue: QueueNode) -> None:
    """Name the whole: the mildest reason among alternative flavors, the most severe among what is needed together."""
    assignment.no_fit_reason = None
    if assignment.mode is not Mode.NO_FIT:
        return
    overall: QuotaReservedReason | None = None
    for pod_set in assignment.pod_sets:
        if pod_set.mode is not Mode.NO_FIT:
            continue
        attempts = merge_attempts(pod_set, queue)
        if not attempts:
            overall = most_severe(overall, QuotaReservedReason.NO_MATCHING_FLAVOR)
            continue
        mildest: dict[int, QuotaReservedReason | None] = {}
        for number, attempt in enumerate(attempts):
            if attempt.mode is not Mode.NO_FIT:
                continue
            groups = [i for i, group in enumerate(queue.groups) if attempt.flavor in group.flavor_names]
            for index in groups or [-1 - number]:
                reason = attempt.no_fit_reason
                if index in mildest and most_severe(reason, mildest[index]) is reason:
                    continue
                mildest[index] = reason
        worst: QuotaReservedReason | None = None
        for reason in mildest.values():
            worst = most_severe(worst, reason)
        overall = most_severe(overall, worst)
    assignment.no_fit_reason = overall
