"""The workloads of Kueue's own performance harness, from its generator file.

A set of workloads creates one each `creationIntervalMs`, the first after one interval.
Source: kueue@v0.19.2 test/performance/scheduler/runner/generator/generator.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from itertools import product
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from kueue_admission.api.cluster_queue import ClusterQueuePreemption, ReclaimPolicy, WithinPolicy
from kueue_admission.decide.amounts import quota_amount, request_amount
from kueue_admission.decide.model import (
    DEFAULT_STRATEGIES,
    ClusterQueue,
    Configuration,
    FlavorQuotas,
    LocalQueue,
    Node,
    Objects,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Topology,
    Workload,
)
from kueue_admission.decide.pods import PodSet, SliceConstraint, TopologyRequest
from kueue_admission.kernel.base import Count, Int32, SpecModel, Text
from kueue_admission.kernel.form_rules import LISTED_TWICE, OUT_OF_RANGE, UNKNOWN_NAME
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.simulate.delays import Delays, Writer
from kueue_admission.simulate.distributions import exponential
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.models import as_model, read_data
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.runner import Arrival, prepare_cluster

HARNESS_DELAYS: Final = Delays(
    decision=0.02,
    burst=100,
    write=exponential(0.005),
    start=exponential(0.02),
    release=exponential(0.02),
    workers=5,
    stop=exponential(0.02),
)
"""The harness lets Kueue write the status of 50 Workloads a second, 100 at once after a rest (kueue@v0.19.2
test/performance/scheduler/minimalkueue/main.go), and ends their runs with 5 workers (runner/main.go beside it). The
others are for an API server with enough CPU; one without takes ten times as long."""


@dataclass(frozen=True, slots=True)
class Creation:
    """How fast the harness itself creates Workloads: one each `seconds`, but for `burst` at once after a rest.

    By default as its client is limited (controller-runtime@v0.24.1 pkg/envtest/server.go).
    """

    seconds: float = 0.001
    burst: int = 2000


MOST_WORKLOADS: Final = 1_000_000
"""More are refused: they would not fit into memory."""

Amount = Annotated[Quantity, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]
"""An amount of a resource; a bare number is taken too."""


class WorkloadTemplate(SpecModel):
    """One workload: a pod set with `request` CPUs for each pod; `podCount` of them where it asks for a topology level.

    `balanced` asks for `sliceSize` pods (default 1) in each domain.
    """

    class_name: Text
    """Name of the class; workloads are counted by it."""
    runtime_ms: Count
    """How long it runs, in milliseconds."""
    priority: Int32 = 0
    """Larger goes first; default 0."""
    request: Amount
    """CPUs of each pod."""
    pod_count: Annotated[Count, Field(ge=1, le=1_000_000)] = 1
    """Pods, where it asks for a topology level; default 1."""
    tas_constraint: Literal["required", "preferred", "balanced"] | None = None
    """How strictly the pods have to be in one domain; default: anywhere."""
    tas_level: Text | None = None
    """Label of the level that the pods have to share."""
    slice_size: Annotated[Count, Field(ge=1)] = 1
    """Pods of each slice; default 1."""


class WorkloadsSet(SpecModel):
    """`count` times the workloads, one each interval."""

    count: Count
    """Workloads of each template."""
    creation_interval_ms: Count
    """Milliseconds from one to the next."""
    workloads: tuple[WorkloadTemplate, ...]
    """The templates."""


class QueuesSet(SpecModel):
    """`count` ClusterQueues with CPU quota."""

    class_name: Text
    """Name of the class; part of each queue's name."""
    count: Count
    """ClusterQueues in each cohort."""
    nominal_quota: Amount
    """CPUs of each queue."""
    borrowing_limit: Amount | None = None
    """CPUs that each may borrow; default: no limit."""
    reclaim_within_cohort: ReclaimPolicy = "Never"
    """Whose jobs a queue preempts to get back what it has lent; default Never."""
    within_cluster_queue: WithinPolicy = "Never"
    """Which jobs of the queue itself it preempts; default Never."""
    workloads_sets: tuple[WorkloadsSet, ...] = ()
    """What arrives at each queue."""


class CohortSet(SpecModel):
    """`count` cohorts of queues."""

    class_name: Text
    """Name of the class; part of each cohort's name."""
    count: Count
    """Cohorts."""
    queues_sets: tuple[QueuesSet, ...] = ()
    """The queues of each cohort."""


class NodeCapacity(SpecModel):
    """What a node has."""

    cpu: Amount = Quantity("96")
    """CPUs; default 96."""
    memory: Amount = Quantity("256Gi")
    """Bytes of memory; default 256Gi."""


class TopologyLevel(SpecModel):
    """`count` domains in each domain of the level above."""

    name: Text
    """Name of the level; part of each domain's name."""
    count: Annotated[Count, Field(ge=1)]
    """Domains of this level in each domain of the level above."""
    node_label: Text
    """Label of the nodes that says in which domain they are."""
    capacity: NodeCapacity = NodeCapacity()
    """Of the nodes, which are the lowest level."""


class TopologyConfig(SpecModel):
    """Nodes, and how they stand."""

    name: Text
    """Name of the Topology."""
    levels: Annotated[tuple[TopologyLevel, ...], Field(min_length=2)]
    """From the widest to the nodes."""


class FlavorConfig(SpecModel):
    """The one ResourceFlavor."""

    name: Text
    """Name of the ResourceFlavor."""
    node_label: Text | None = None
    """Label that its nodes have."""
    topology_name: Text | None = None
    """Name of the Topology of its nodes."""


class GeneratorFile(SpecModel):
    """A generator file."""

    topology: TopologyConfig | None = None
    """The nodes, for topology-aware scheduling; default: none."""
    resource_flavor: FlavorConfig = FlavorConfig(name="rf")
    """The flavor of every quota."""
    cohorts: Annotated[tuple[CohortSet, ...], Field(min_length=1)]
    """Cohorts, their queues, and what arrives at these."""


@dataclass(frozen=True, slots=True)
class Generated:
    """What the file describes."""

    objects: Objects
    arrivals: tuple[Arrival, ...]


def read_generator(
    text: str, source: str, *, fair_sharing: bool = False, creation: Creation | None = None
) -> Generated:
    """The objects and arrivals of a generator file. Raises SimulationError with every problem."""
    return generate(read_data(text, source), source, fair_sharing=fair_sharing, creation=creation)


def generate(data: Any, source: str, *, fair_sharing: bool = False, creation: Creation | None = None) -> Generated:
    """The same from the data of the file. Raises SimulationError with what is wrong with it."""
    file = as_model(data, source, GeneratorFile)
    creation = creation or Creation()
    total = sum(
        cohorts.count * queues.count * item.count * len(item.workloads)
        for cohorts in file.cohorts
        for queues in cohorts.queues_sets
        for item in queues.workloads_sets
    )
    if (flavor := file.resource_flavor).topology_name not in (None, file.topology.name if file.topology else None):
        wrong = f"there is no topology {flavor.topology_name}"
        raise SimulationError(
            [UNKNOWN_NAME.at("resourceFlavor.topologyName", wrong, "write the name in topology", source=source)]
        )
    most_queues = sum(cohorts.count * queues.count for cohorts in file.cohorts for queues in cohorts.queues_sets)
    if max(total, most_queues) > MOST_WORKLOADS:
        result = f"make {total} workloads in {most_queues} queues, more than {MOST_WORKLOADS}"
        raise SimulationError([OUT_OF_RANGE.at("cohorts", result, "lower a count", source=source)])
    queues: list[ClusterQueue] = []
    streams: list[_Stream] = []
    for cohorts in file.cohorts:
        for number in range(cohorts.count):
            cohort = f"{cohorts.class_name}-{number}"
            for set_number, queue_set in enumerate(cohorts.queues_sets):
                pod_sets = [tuple(map(_pod_set, item.workloads)) for item in queue_set.workloads_sets]
                for queue_index in range(queue_set.count):
                    name = f"{queue_set.class_name}-{set_number}-{queue_index}-{cohort}"
                    queues.append(_queue(name, cohort, queue_set, file.resource_flavor.name))
                    sets = zip(queue_set.workloads_sets, pod_sets, strict=True)
                    streams += [_Stream(name, index, *item) for index, item in enumerate(sets)]
    names = [queue.name for queue in queues]
    if len(set(names)) < len(names):
        wrong = "two have the same className"
        raise SimulationError([LISTED_TWICE.at("cohorts", wrong, "give each its own", source=source)])
    configuration = Configuration(fair_sharing=DEFAULT_STRATEGIES if fair_sharing else None, wait_for_pods_ready=None)
    objects = Objects(
        cluster_queues=tuple(queues),
        local_queues=tuple(LocalQueue(name, name, name) for name in names),
        flavors=(_flavor(file.resource_flavor),),
        topologies=_topologies(file),
        nodes=tuple(_nodes(file.topology)) if file.topology is not None else (),
        configuration=configuration,
    )
    return Generated(objects, tuple(_arrivals(streams, Writer(creation.seconds, creation.burst))))


def _queue(name: str, cohort: str, queue_set: QueuesSet, flavor: str) -> ClusterQueue:
    limit = queue_set.borrowing_limit
    quota = ResourceQuota(
        quota_amount("cpu", queue_set.nominal_quota), None if limit is None else quota_amount("cpu", limit)
    )
    group = ResourceGroup(("cpu",), (FlavorQuotas(flavor, (("cpu", quota),)),))
    preemption = ClusterQueuePreemption(
        within_cluster_queue=queue_set.within_cluster_queue, reclaim_within_cohort=queue_set.reclaim_within_cohort
    )
    return ClusterQueue(name, cohort, (group,), preemption=preemption)


@dataclass(frozen=True, slots=True)
class _Stream:
    """What one set of workloads of one queue creates, one after the other."""

    queue: str
    number: int
    workloads: WorkloadsSet
    pod_sets: tuple[PodSet, ...]
    """Of each template."""

    @property
    def length(self) -> int:
        """How many it creates."""
        return self.workloads.count * len(self.workloads.workloads)

    def arrival(self, index: int, at: float) -> Arrival:
        """The workload of this index, created at `at`."""
        number, which = divmod(index, len(self.workloads.workloads))
        template = self.workloads.workloads[which]
        name = f"{template.class_name}-{self.number}-{number}-{which}"
        uid = f"{self.queue}/{template.class_name}-{self.number}-{number:09d}-{which}"
        pod_sets = (self.pod_sets[which],)
        workload = Workload(self.queue, name, uid, self.queue, pod_sets, created=at, priority=template.priority)
        return Arrival(workload, name, at, template.runtime_ms / 1000, template.class_name)


def _arrivals(streams: Sequence[_Stream], writer: Writer) -> Iterator[Arrival]:
    """What all streams create, in order of time. Each waits an interval, creates, waits again; all share the writer."""
    due = [(stream.workloads.creation_interval_ms / 1000, number, 0) for number, stream in enumerate(streams)]
    due = [item for item in due if streams[item[1]].length]
    heapify(due)
    while due:
        arrival, number, index = due[0]
        stream = streams[number]
        at = round(writer.write(arrival), 6)
        yield stream.arrival(index, at)
        if index + 1 < stream.length:
            heapreplace(due, (at + stream.workloads.creation_interval_ms / 1000, number, index + 1))
        else:
            heappop(due)


def _pod_set(template: WorkloadTemplate) -> PodSet:
    requests = (("cpu", request_amount("cpu", template.request)),)
    wish = _wish(template)
    count = template.pod_count if wish is not None else 1
    return PodSet(count=count, requests=requests, node_requests=requests, topology=wish)


def _wish(template: WorkloadTemplate) -> TopologyRequest | None:
    level = template.tas_level
    if level is None:
        return None
    match template.tas_constraint:
        case "required":
            return TopologyRequest(required=level)
        case "preferred":
            return TopologyRequest(preferred=level)
        case "balanced":
            return TopologyRequest(slices=(SliceConstraint(level, template.slice_size),))
        case None:
            return None


def _flavor(config: FlavorConfig) -> ResourceFlavor:
    labels = ((config.node_label, "tas"),) if config.node_label is not None else ()
    return ResourceFlavor(config.name, labels, topology=config.topology_name)


def _topologies(file: GeneratorFile) -> tuple[Topology, ...]:
    if file.topology is None:
        return ()
    return (Topology(file.topology.name, tuple(level.node_label for level in file.topology.levels)),)


def _nodes(config: TopologyConfig) -> Iterator[Node]:
    """One node for each path down the levels. Source: kueue@v0.19.2, topology_generator.go beside the above."""
    capacity = config.levels[-1].capacity
    allocatable = (
        ("cpu", request_amount("cpu", capacity.cpu)),
        ("memory", request_amount("memory", capacity.memory)),
        ("pods", 110),
    )
    for path in product(*(range(level.count) for level in config.levels)):
        labels = [("tas-node-group", "tas")]
        labels += [
            (level.node_label, f"{level.name}-{number}") for level, number in zip(config.levels, path, strict=True)
        ]
        name = "-".join(["node", *(f"{level.name[0]}{n}" for level, n in zip(config.levels, path, strict=True))])
        yield Node(name, tuple(sorted(labels)), allocatable=allocatable)


def prepare_generated(generated: Generated, delays: Delays, *, until: float | None = None, seed: int = 0) -> Prepared:
    """What will happen to the workloads; second 0 is when the harness begins to create them."""
    return prepare_cluster(generated.objects, generated.arrivals, delays, until=until, seed=seed)
