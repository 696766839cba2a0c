"""What is submitted to a fleet: the workload file.

Strict: unknown fields and wrong values are refused, all at once.

    jobs:
      - name: train                     # train-1, train-2, ...
        namespace: team-vision
        queue: gpu                      # a LocalQueue of the namespace
        count: 20                       # default 1
        start: 0                        # second of the first; default 0
        interval: exponential(60)       # seconds between two; default 0
        runSeconds: uniform(300, 900)   # left out: indefinitely
        priorityClass: normal           # a WorkloadPriorityClass
        pods: 2                         # default 1
        requests: { cpu: "2", nvidia.com/gpu: "1" }
        nodeSelector: {}
        labels: {kueue-fleet.dev/regions: eu}
        maxRunSeconds: 3600             # what the job tells DWS; left out: nothing
    waits:                              # how long admission checks take; the first that fits counts, default 0
      - { cluster: worker-us-east4, flavor: t4-dws, check: dws, seconds: exponential(600) }
    reclaims:                           # Spot nodes are reclaimed; the first that fits counts
      - { cluster: worker-us-east4, flavor: l4-spot, perHour: 0.2, back: exponential(300) }
    outages:                            # the manager cannot reach a worker
      - { cluster: worker-us-east4, at: 600, seconds: 1800 }
    steps: { first: 0, second: 60 }     # when jobs of `--jobs` are submitted, by their label kueue-fleet.dev/step
    snapshots: [30, 90]                 # when queues are counted, and nodes
    begin: 2026-12-01T00:00:00Z         # what second 0 is, for calendar windows and ends of calendar pools
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from kueue_admission.decide.model import Workload
from kueue_admission.kernel.base import Count, Number, RuledModel, SpecModel, Text
from kueue_admission.kernel.form_rules import BAD_SYNTAX
from kueue_admission.kernel.names import PRIORITY_LABEL
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.kernel.timestamp import Timestamp
from kueue_admission.read.fields import Fields
from kueue_admission.read.job_workloads import class_priority, execution_limit
from kueue_admission.read.pod_resources import NO_LIMITS, find_problem, with_defaults
from kueue_admission.read.pods import parse_pod_set
from kueue_admission.read.workloads import Context
from kueue_admission.simulate.distributions import Second, Seconds, constant, exponential
from kueue_admission.simulate.models import read_model
from kueue_fleet.fleet_file.model.job_forms import LONGEST_JOB_NAME, JobName, job_name

_REQUESTS: Final = ".containers[0].resources.requests"
"""Where a pod has what `requests` of an entry says."""


class JobEntry(RuledModel):
    """`count` equal jobs."""

    name: JobName
    """Name of the job; `-1`, `-2`, ... follow it where there are several."""
    namespace: Text
    """Namespace that it is submitted to."""
    queue: Text
    """LocalQueue in that namespace."""
    count: Annotated[Count, Field(le=100_000)] = 1
    """How many such jobs; default 1."""
    start: Seconds = constant(0.0)
    """Second at which the first one arrives; default 0."""
    interval: Seconds = constant(0.0)
    """Seconds from one to the next; default 0."""
    run_seconds: Seconds | None = None
    """How long each runs once it has started; default: indefinitely."""
    priority_class: Text | None = None
    """A WorkloadPriorityClass."""
    pods: Annotated[Count, Field(ge=1)] = 1
    """Pods of each job, all at once; default 1."""
    requests: dict[Text, Quantity] = Field(default_factory=dict)
    """What each pod asks for, by resource."""
    node_selector: dict[Text, Text] = Field(default_factory=dict)
    """Labels of nodes that the pods ask for."""
    labels: dict[Text, Text] = Field(default_factory=dict)
    """Labels of the job."""
    max_run_seconds: Annotated[Count, Field(ge=1)] | None = None
    """How long DWS is asked to keep the nodes; default: not said."""

    def own_problems(self) -> Iterator[Problem]:
        """Names that Kubernetes takes, with their numbers too."""
        last = self.job_name(self.count)
        if job_name(last):
            yield BAD_SYNTAX.at(
                "name",
                f"the last of {self.count} jobs would be called {last}, which is longer than "
                f"{LONGEST_JOB_NAME} characters",
                "write a shorter name",
            )

    def job_name(self, number: int) -> str:
        """The name of one of the jobs, counted from 1."""
        return f"{self.name}-{number}" if self.count > 1 else self.name

    def workload(self, context: Context, problems: list[Problem]) -> Workload:
        """The first of the jobs, as the Workload that Kueue makes of it; what is wrong is added to `problems`."""
        path, found, key = f"jobs[{self.name}]", list[Problem](), f"{self.namespace}/{self.job_name(1)}"
        labels = dict(self.labels)
        if self.priority_class is not None:
            labels[PRIORITY_LABEL] = self.priority_class
        label_fields = Fields(labels, f"{path}.labels", found)
        container = {"resources": {"requests": {name: str(amount) for name, amount in self.requests.items()}}}
        limits = context.limits.get(self.namespace, NO_LIMITS)
        pod = Fields({"nodeSelector": self.node_selector, "containers": [container]}, path, found)
        pod = with_defaults(pod, limits, context.overheads)
        own = class_priority(label_fields, context)
        workload = Workload(
            namespace=self.namespace,
            name=self.job_name(1),
            uid=key,
            queue=self.queue,
            pod_sets=(parse_pod_set(pod, "main", self.pods, None, None, context.rules),),
            created=0.0,
            priority=context.default_priority if own is None else own,
            max_execution_seconds=execution_limit(label_fields),
            job_uid=key,
            problem=find_problem([pod], limits),
        )
        problems += [replace(problem, path=problem.path.replace(_REQUESTS, ".requests", 1)) for problem in found]
        return workload


class WaitEntry(SpecModel):
    """How long an admission check takes, where cluster, flavor and check are these; one left out fits any."""

    cluster: Text | None = None
    """Cluster where the check is; default: any."""
    flavor: Text | None = None
    """Flavor that the job was given; default: any."""
    check: Text | None = None
    """The admission check; default: any."""
    seconds: Seconds
    """From the reservation of quota until the check is Ready."""


class ReclaimEntry(SpecModel):
    """How often a running job on spot nodes loses them, and how long until there are others (default 0 s)."""

    cluster: Text | None = None
    """Cluster of the nodes; default: any."""
    flavor: Text
    """Flavor of the nodes."""
    per_hour: Annotated[Number, Field(gt=0, le=3600)]
    """How often a running job loses its nodes, on average."""
    back: Seconds = constant(0.0)
    """Seconds until there are other nodes; default 0."""


class OutageEntry(SpecModel):
    """A time in which the manager cannot reach a worker. What runs there continues to run."""

    cluster: Text
    """The worker."""
    at: Second
    """Second at which the connection is lost."""
    seconds: Annotated[Second, Field(gt=0)]
    """How long it is lost."""


class StockOutEntry(SpecModel):
    """A time in which a flavor gets no nodes beyond those that jobs are on; DWS makes no request Ready then."""

    cluster: Text | None = None
    """Cluster of the nodes; default: any."""
    flavor: Text
    """Flavor of the nodes."""
    at: Second = 0
    """Second from which on there are none; default 0."""
    seconds: Annotated[Second, Field(gt=0)]
    """For how long there are none."""


class WorkloadFile(SpecModel):
    """Jobs, how long they wait for capacity, and what goes wrong meanwhile."""

    jobs: tuple[JobEntry, ...] = ()
    """Jobs that are submitted."""
    steps: dict[Text, Second] = Field(default_factory=dict)
    """Second at which those of the given Kubernetes jobs are submitted whose label `kueue-fleet.dev/step` is this."""
    waits: tuple[WaitEntry, ...] = ()
    """How long admission checks take; the first that fits counts."""
    reclaims: tuple[ReclaimEntry, ...] = ()
    """How often Spot nodes are reclaimed; the first that fits counts."""
    outages: tuple[OutageEntry, ...] = ()
    """When workers cannot be reached."""
    stock_outs: tuple[StockOutEntry, ...] = ()
    """When flavors get no further nodes."""
    snapshots: tuple[Second, ...] = ()
    """Seconds at which pending and admitted jobs are counted, and nodes; before what else happens then."""
    begin: Timestamp | None = None
    """The moment that is second 0, for windows of a calendar and the ends of calendar pools; default: none."""

    def submissions(self, seed: int) -> Iterator[tuple[JobEntry, str, float, float | None]]:
        """Every job: its entry, name, second of arrival, and seconds it runs."""
        for entry in self.jobs:
            at = entry.start.draw(seed, entry.namespace, entry.name, "start")
            for number in range(1, entry.count + 1):
                name = entry.job_name(number)
                purpose = (seed, entry.namespace, name)
                if number > 1:
                    at += entry.interval.draw(*purpose, "interval")
                yield entry, name, at, None if entry.run_seconds is None else entry.run_seconds.draw(*purpose, "run")

    def wait(self, cluster: str, check: str, flavors: Iterable[str], purpose: tuple[object, ...]) -> float:
        """Seconds until a check of a workload with these flavors is Ready."""
        flavors_there = set(flavors)
        for entry in self.waits:
            if (
                entry.cluster in (None, cluster)
                and entry.check in (None, check)
                and (entry.flavor is None or entry.flavor in flavors_there)
            ):
                return entry.seconds.draw(*purpose, cluster, check)
        return 0.0

    def reclaim(self, cluster: str, flavors: Iterable[str], purpose: tuple[object, ...]) -> tuple[float, float] | None:
        """Seconds until a job with these flavors loses its nodes, and from then until it has others; None: never."""
        flavors_there = set(flavors)
        for entry in self.reclaims:
            if entry.cluster in (None, cluster) and entry.flavor in flavors_there:
                after = exponential(3600 / entry.per_hour).draw(*purpose, cluster, "reclaim")
                return after, entry.back.draw(*purpose, cluster, "back")
        return None


def read_workload_file(text: str, source: str) -> WorkloadFile:
    """The workload file in `text`. Raises SimulationError with every problem."""
    return read_model(text, source, WorkloadFile)
