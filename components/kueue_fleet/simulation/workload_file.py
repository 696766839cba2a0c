"""What is submitted to a fleet: the workload file.

In: YAML. Out: `WorkloadFile`. Strict: unknown fields and wrong values are refused, all at once.

    jobs:
      - name: train                     # train-1, train-2, ...
        namespace: team-vision
        queue: gpu                      # a LocalQueue of the namespace
        count: 20                       # default 1
        start: 0                        # second of the first; default 0
        interval: exponential(60)       # seconds between two; default 0
        runSeconds: uniform(300, 900)   # left out: for ever
        priorityClass: normal           # a WorkloadPriorityClass
        pods: 2                         # default 1
        requests: { cpu: "2", nvidia.com/gpu: "1" }
        nodeSelector: {}
    waits:                              # how long admission checks take; the first that fits counts, default 0
      - { cluster: worker-us-east4, flavor: t4-dws, check: dws, seconds: exponential(600) }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from pydantic import Field

from kueue_fleet.simulation.distributions import Seconds, constant
from kueue_fleet.simulation.models import read_model
from kueue_fleet.spec.base import Count, SpecModel, Text


class JobEntry(SpecModel):
    """`count` equal jobs."""

    name: Text
    namespace: Text
    queue: Text
    count: Count = 1
    start: Seconds = constant(0.0)
    interval: Seconds = constant(0.0)
    run_seconds: Seconds | None = None
    priority_class: Text | None = None
    pods: Annotated[Count, Field(ge=1)] = 1
    requests: dict[Text, Text | int | float] = Field(default_factory=dict)
    node_selector: dict[Text, Text] = Field(default_factory=dict)

    def manifest(self, name: str) -> dict[str, Any]:
        """One of the jobs as a Kubernetes object."""
        labels = {"kueue.x-k8s.io/queue-name": self.queue}
        if self.priority_class is not None:
            labels["kueue.x-k8s.io/priority-class"] = self.priority_class
        container = {"name": "main", "image": "none", "resources": {"requests": dict(self.requests)}}
        pod = {"restartPolicy": "Never", "nodeSelector": dict(self.node_selector), "containers": [container]}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "spec": {"parallelism": self.pods, "completions": self.pods, "template": {"spec": pod}},
        }


class WaitEntry(SpecModel):
    """How long an admission check takes, where cluster, flavor and check are these; one left out fits any."""

    cluster: Text | None = None
    flavor: Text | None = None
    check: Text | None = None
    seconds: Seconds


class WorkloadFile(SpecModel):
    """Jobs, and how long they wait for capacity."""

    jobs: Annotated[tuple[JobEntry, ...], Field(min_length=1)]
    waits: tuple[WaitEntry, ...] = ()

    def submissions(self, seed: int) -> Iterator[tuple[JobEntry, str, float, float | None]]:
        """Every job: its entry, name, second of arrival, and seconds it runs."""
        for entry in self.jobs:
            at = entry.start.draw(seed, entry.namespace, entry.name, "start")
            for number in range(1, entry.count + 1):
                name = f"{entry.name}-{number}" if entry.count > 1 else entry.name
                purpose = (seed, entry.namespace, name)
                if number > 1:
                    at += entry.interval.draw(*purpose, "interval")
                yield entry, name, at, None if entry.run_seconds is None else entry.run_seconds.draw(*purpose, "run")

    def wait(self, cluster: str, check: str, flavors: Iterable[str], purpose: tuple[object, ...]) -> float:
        """Seconds until a check of a workload with these flavors is Ready."""
        given = set(flavors)
        for entry in self.waits:
            if (
                entry.cluster in (None, cluster)
                and entry.check in (None, check)
                and (entry.flavor is None or entry.flavor in given)
            ):
                return entry.seconds.draw(*purpose, cluster, check)
        return 0.0


def read_workload_file(text: str, source: str) -> WorkloadFile:
    """The workload file in `text`. Raises SimulationError with every problem."""
    return read_model(text, source, WorkloadFile)
