"""The workloads of Kueue's own performance harness, from its generator file.

In: the data of a `generator.yaml`. Out: a cluster's objects and arrivals, named as the harness names them. A set of
workloads creates one each `creationIntervalMs`, the first after one interval. Topologies are refused.
Source: kueue@v0.19.2 test/performance/scheduler/runner/generator/generator.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from kueue_fleet.admission.amounts import quota_amount, request_amount
from kueue_fleet.admission.model import (
    DEFAULT_STRATEGIES,
    ClusterQueue,
    Configuration,
    FlavorQuotas,
    LocalQueue,
    Objects,
    Preemption,
    PreemptionPolicy,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Workload,
)
from kueue_fleet.admission.pods import PodSet
from kueue_fleet.simulation.cluster import Delays
from kueue_fleet.simulation.errors import SimulationError
from kueue_fleet.simulation.models import as_model, read_data
from kueue_fleet.simulation.result import Result
from kueue_fleet.simulation.runner import Arrival, simulate_cluster
from kueue_fleet.spec.base import Count, Int32, SpecModel, Text
from kueue_fleet.spec.quantity import Quantity

HARNESS_DECISION_SECONDS: Final = 0.019
"""How long the harness takes to write a decision. Its scheduler may make 50 API calls a second, which is what limits
it. 0.019 s is fitted: with it the baseline is through after 353 s, and Kueue's continuous integration measures 351 s
(kueue@v0.19.2 test/performance/scheduler/configs/baseline/rangespec.yaml)."""

Amount = Annotated[Quantity, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]


class WorkloadTemplate(SpecModel):
    """One workload: a pod set of `podCount` pods with `request` CPUs each."""

    class_name: Text
    runtime_ms: Count
    priority: Int32 = 0
    request: Amount
    pod_count: Count = 1


class WorkloadsSet(SpecModel):
    """`count` times the workloads, one each interval."""

    count: Count
    creation_interval_ms: Count
    workloads: tuple[WorkloadTemplate, ...]


class QueuesSet(SpecModel):
    """`count` ClusterQueues with CPU quota."""

    class_name: Text
    count: Count
    nominal_quota: Amount
    borrowing_limit: Amount | None = None
    reclaim_within_cohort: PreemptionPolicy = PreemptionPolicy.NEVER
    within_cluster_queue: PreemptionPolicy = PreemptionPolicy.NEVER
    workloads_sets: tuple[WorkloadsSet, ...] = ()


class CohortSet(SpecModel):
    """`count` cohorts of queues."""

    class_name: Text
    count: Count
    queues_sets: tuple[QueuesSet, ...] = ()


class GeneratorFile(SpecModel):
    """A generator file without topologies."""

    cohorts: Annotated[tuple[CohortSet, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Generated:
    """What the file describes."""

    objects: Objects
    arrivals: tuple[Arrival, ...]


def read_generator(text: str, source: str, *, fair_sharing: bool = False) -> Generated:
    """The objects and arrivals of a generator file. Raises SimulationError with every problem."""
    return generate(read_data(text, source), source, fair_sharing=fair_sharing)


def generate(data: Any, source: str, *, fair_sharing: bool = False) -> Generated:
    """The same from the data of the file."""
    file = as_model(data, source, GeneratorFile)
    queues: list[ClusterQueue] = []
    arrivals: list[Arrival] = []
    for cohorts in file.cohorts:
        for number in range(cohorts.count):
            cohort = f"{cohorts.class_name}-{number}"
            for set_number, queue_set in enumerate(cohorts.queues_sets):
                for index in range(queue_set.count):
                    name = f"{queue_set.class_name}-{set_number}-{index}-{cohort}"
                    queues.append(_queue(name, cohort, queue_set))
                    arrivals += _arrivals(name, queue_set)
    names = [queue.name for queue in queues]
    if len(set(names)) < len(names):
        raise SimulationError([f"{source}: cohorts: two have the same className; give each its own"])
    configuration = Configuration(fair_sharing=DEFAULT_STRATEGIES if fair_sharing else None, wait_for_pods_ready=None)
    objects = Objects(
        cluster_queues=tuple(queues),
        local_queues=tuple(LocalQueue(name, name, name) for name in names),
        flavors=(ResourceFlavor("rf"),),
        configuration=configuration,
    )
    return Generated(objects, tuple(arrivals))


def _queue(name: str, cohort: str, queue_set: QueuesSet) -> ClusterQueue:
    limit = queue_set.borrowing_limit
    quota = ResourceQuota(
        quota_amount("cpu", queue_set.nominal_quota), None if limit is None else quota_amount("cpu", limit)
    )
    group = ResourceGroup(("cpu",), (FlavorQuotas("rf", (("cpu", quota),)),))
    preemption = Preemption(queue_set.within_cluster_queue, queue_set.reclaim_within_cohort)
    return ClusterQueue(name, cohort, (group,), preemption=preemption)


def _arrivals(queue: str, queue_set: QueuesSet) -> Iterator[Arrival]:
    for set_number, workloads in enumerate(queue_set.workloads_sets):
        pod_sets = [_pod_set(template) for template in workloads.workloads]
        created = 0
        for number in range(workloads.count):
            for index, template in enumerate(workloads.workloads):
                created += workloads.creation_interval_ms
                name = f"{template.class_name}-{set_number}-{number}-{index}"
                uid = f"{queue}/{template.class_name}-{set_number}-{number:09d}-{index}"
                at = created / 1000
                workload = Workload(queue, name, uid, queue, (pod_sets[index],), created=at, priority=template.priority)
                yield Arrival(workload, name, at, template.runtime_ms / 1000, template.class_name)


def _pod_set(template: WorkloadTemplate) -> PodSet:
    requests = (("cpu", request_amount("cpu", template.request)),)
    return PodSet(count=template.pod_count, requests=requests, node_requests=requests)


def simulate_generated(generated: Generated, delays: Delays, *, until: float | None = None) -> Result:
    """What happens to the workloads; second 0 is when the harness begins to create them."""
    records = simulate_cluster(generated.objects, generated.arrivals, delays, start=0.0, until=until)
    return Result(tuple(records), 0.0, until)
