"""Clusters whose workloads preempt each other again and again, in the short form of `decide.expand`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.decide import expand
from tests.differential.replay import parse

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.result import Result
from kueue_admission.simulate.runner import Arrival, prepare_cluster

Json = dict[str, Any]


SEARCH: Json = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
STOP: Json = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}


def _case(setting: str, queues: Json) -> Json:
    flavors: Json = {flavor: {} for queue in queues.values() for group in queue["groups"] for flavor in group}
    names = {name: name for name in queues}
    return {"setting": setting, "flavors": flavors, "cohorts": {"all": {}}, "queues": queues, "localQueues": names}


def _queue(group: Json, weight: int = 1, fungibility: Json = SEARCH, reclaim: str = "Any") -> Json:
    preemption = {"reclaimWithinCohort": reclaim}
    result = {"groups": [group], "cohortName": "all", "preemption": preemption, "flavorFungibility": fungibility}
    return {**result, "weight": weight}


def _job(queue: str, priority: int = 0, pods: int = 1, **requests: str) -> Json:
    return {"queue": queue, "priority": priority, "podSets": {"main": {"count": pods, "requests": requests}}}


TURNS = _case(
    "fair",
    {
        "owner": _queue({"l4": {"cpu": "4/4", "gpu": "10/6/8"}}),
        "borrower": _queue({"l4": {"cpu": "0/2/0", "gpu": "0/4/0"}}, weight=3),
        "other": _queue({"l4": {"cpu": "10/4", "gpu": "0/2"}}),
    },
)
TURNS_JOBS: Json = {
    "guest": _job("borrower", cpu="2", gpu="3"),
    "first": _job("owner", 100, pods=2, cpu="1", gpu="3"),
    "busy": _job("other", 200, cpu="4", gpu="1"),
    "second": _job("owner", 100, cpu="4", gpu="1"),
}
"""`second` reclaims what `guest` has borrowed, but `guest` is considered first when both are pending."""

MUTUAL = _case(
    "fair-initial",
    {
        "lender": _queue({"f2": {"cpu": "3"}, "f1": {"cpu": "3"}}, reclaim="Never"),
        "narrow": _queue({"f1": {"cpu": "1"}, "f2": {"cpu": "3/1"}}),
        "broad": _queue({"f2": {"cpu": "2"}, "f1": {"cpu": "3"}}, weight=2, fungibility=STOP),
    },
)
MUTUAL_JOBS: Json = {
    "wide": {
        "queue": "broad",
        "podSets": {
            "main": {"requests": {"cpu": "3"}},
            "aux": {"count": 2, "requests": {"cpu": "4"}},
        },
    },
    "early": _job("narrow", cpu="3"),
    "late": _job("narrow", cpu="2"),
}
"""With LessThanInitialShare alone `late` preempts `wide`, and `wide` preempts `late`."""


def simulated(case: Json, jobs: Json, delays: Delays | None = None, until: float | None = None, **more: Any) -> Result:
    """The jobs of the case, one a minute; they run for ever."""
    parsed = parse(case, jobs)
    arrivals = [
        Arrival(replace(workload, created=60.0 * number), workload.name, 60.0 * number)
        for number, workload in enumerate(parsed.workloads)
    ]
    return prepare_cluster(parsed.objects, arrivals, delays or Delays(), until=until, **more).run()


def manifests(case: Json, jobs: Json) -> list[Json]:
    """The same as Kubernetes objects."""
    queues = {f"default/{name}": queue for name, queue in case["localQueues"].items()}
    workloads = {f"default/{name}": {**job, "created": 60 * number} for number, (name, job) in enumerate(jobs.items())}
    return expand.manifests({**case, "localQueues": queues, "workloads": workloads})
