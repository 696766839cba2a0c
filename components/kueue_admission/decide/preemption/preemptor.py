"""Preemption: whom to evict so that a workload fits, classical or with fair sharing, and the assigner's oracle.

Everything works on the usage in the tree and puts it back before it returns.
Source: kueue@v0.19.2 pkg/scheduler/preemption/{preemption,preemption_oracle}.go.
"""

from __future__ import annotations

from kueue_admission.decide.flavors.assigner import Oracle, needing_preemption, total_requests
from kueue_admission.decide.flavors.assignment import Assignment, Possibility
from kueue_admission.decide.preemption.candidates import Target
from kueue_admission.decide.preemption.classical import classical_targets
from kueue_admission.decide.preemption.fair_sharing import fair_targets
from kueue_admission.decide.preemption.simulation import PreemptionContext
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import Usage, borrow_level
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.workload.state import WorkloadInfo

Simulated = dict[tuple[str, Usage, frozenset[int]], list[Target]]
"""Targets that were found for a workload, some requests and flavor-resources. Valid while usage does not change."""


def find_targets(
    cache: Cache, info: WorkloadInfo, assignment: Assignment, simulation: Simulated | None = None
) -> list[Target]:
    """Workloads to evict so that `info` fits with the flavors of `assignment`; empty if there is no such set.

    With `simulation`, a search that the oracle has done already is not done again.

    Kueue's order of the targets is an accident of how it thins them out; compare them as sets.
    """
    queue = cache.queues[info.cluster_queue]
    topology = cache.places.requests(cache, info, queue, assignment) if queue.tas_flavors else None
    requests, frs = total_requests(assignment, info, cache), needing_preemption(assignment, cache)
    if simulation is not None and not topology:
        known_targets = simulation.get((info.key, requests, frs))
        if known_targets is not None:
            return known_targets
    return _targets(PreemptionContext(cache, info, queue, requests, frs, topology))


def _targets(context: PreemptionContext) -> list[Target]:
    if context.cache.configuration.fair_sharing is not None:
        return fair_targets(context)
    return classical_targets(context)


def make_oracle(cache: Cache, simulation: Simulated) -> Oracle:
    """The oracle for `assigner.assign`: looks for targets for one flavor-resource at a time.

    It keeps what it found in `simulation`; empty that when usage changes.
    """

    def simulate(queue: QueueNode, info: WorkloadInfo, fr: int, amount: int) -> tuple[Possibility, int]:
        requests, frs = ((fr, amount),), frozenset((fr,))
        targets = _targets(PreemptionContext(cache, info, queue, requests, frs, None))
        simulation[(info.key, requests, frs)] = targets
        if not targets:
            return Possibility.NO_CANDIDATES, borrow_level(queue, fr, amount)[0]
        with cache.without((target.info for target in targets), topology=False):
            level = borrow_level(queue, fr, amount)[0]
        own = any(target.info.cluster_queue == queue.name for target in targets)
        return (Possibility.PREEMPT if own else Possibility.RECLAIM), level

    return simulate
