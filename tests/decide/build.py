"""Small clusters and workloads as the core's own data."""

from __future__ import annotations

from typing import Any

from kueue_admission.decide.decisions import Decision
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CycleStarted, Submitted
from kueue_admission.decide.model import (
    ClusterQueue,
    Configuration,
    FlavorQuotas,
    LocalQueue,
    Objects,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Workload,
)
from kueue_admission.decide.pods import PodSet


def cpu_group(**nominal: int) -> ResourceGroup:
    """One resource group for CPU, with a flavor and its nominal quota in cores for each argument."""
    flavors = tuple(
        FlavorQuotas(name.replace("_", "-"), (("cpu", ResourceQuota(cores * 1000)),)) for name, cores in nominal.items()
    )
    return ResourceGroup(("cpu",), flavors)


def queue(name: str = "cq", cores: int = 10, **changes: Any) -> ClusterQueue:
    """A ClusterQueue with `cores` CPUs of the flavor `default`."""
    return ClusterQueue(name=name, **{"groups": (cpu_group(default=cores),), **changes})


def objects(*queues: ClusterQueue, configuration: Configuration | None = None, **changes: Any) -> Objects:
    """A cluster with these queues, and for each a LocalQueue of the same name in the namespace `ns`."""
    flavors = {flavor.flavor for q in queues for group in q.groups for flavor in group.flavors}
    result: dict[str, Any] = {
        "cluster_queues": queues,
        "local_queues": tuple(LocalQueue("ns", q.name, q.name) for q in queues),
        "flavors": tuple(ResourceFlavor(name) for name in sorted(flavors)),
        "configuration": configuration or Configuration(wait_for_pods_ready=None),
    }
    return Objects(**{**result, **changes})


def job(name: str, cores: int = 1, to: str = "cq", **changes: Any) -> Workload:
    """A workload of one pod."""
    pods = (PodSet(requests=(("cpu", cores * 1000),)),)
    return Workload(**{"namespace": "ns", "name": name, "uid": name, "queue": to, "pod_sets": pods, **changes})


class Cluster:
    """An engine with shorthand: submit jobs, run cycles, and see decisions as short tuples."""

    def __init__(self, *queues: ClusterQueue, **changes: Any) -> None:
        self.engine = Engine(objects(*queues, **changes))
        self.now = 0.0

    def submit(self, *jobs: Workload) -> list[Decision]:
        return [d for item in jobs for d in self.engine.handle(Submitted(self.now, item))]

    def cycle(self) -> list[Decision]:
        return self.engine.handle(CycleStarted(self.now))

    def cycle_names(self) -> list[tuple[str, str]]:
        return names(self.cycle())

    @property
    def admitted(self) -> set[str]:
        return {info.workload.name for info in self.engine.workloads.values() if info.is_admitted}


def names(decisions: list[Decision]) -> list[tuple[str, str]]:
    """Kind of decision and name of the workload."""
    return [(type(d).__name__, d.key.partition("/")[2]) for d in decisions]
