"""A cache from a scenario's objects, as most tests start."""

from __future__ import annotations

from typing import Any

from tests.decide.expand import ZERO, manifests, workload

from kueue_admission.decide.flavors.assignment import Assignment, FlavorChoice, Mode, PodSetResult
from kueue_admission.decide.model import Configuration, Workload
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.topology.placement import Places
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.fields import Fields
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.read.printed import PrintedWorkload
from kueue_admission.read.workloads import Context, parse_workload

Json = dict[str, Any]


def configuration(case: Json) -> Configuration:
    """Kueue's configuration of a scenario: fair sharing, strategies, transformations and gates."""
    data: Json = {"featureGates": case.get("featureGates", {})}
    if case.get("fairSharing") or "strategies" in case:
        data["fairSharing"] = {"preemptionStrategies": case.get("strategies", [])}
    if "transformations" in case:
        data["resources"] = {"transformations": case["transformations"]}
    return parse_configuration(data)


def build(case: Json) -> tuple[Cache, dict[str, WorkloadInfo]]:
    """The cache with every workload that has a reservation, and all workloads by key."""
    parsed = parse_objects(manifests(case), configuration(case))
    cache = Cache(parsed.objects, Places())
    infos = {}
    for item in parsed.workloads:
        info = infos[item.key] = cache.info(item)
        if info.is_reserved:
            cache.add(info)
    return cache, infos


def one_workload(key: str, short: Json) -> Workload:
    problems: list[Problem] = []
    parsed = parse_workload(PrintedWorkload(Fields(workload(key, short), f"Workload {key}", problems)), Context())
    assert not problems
    return parsed


def given_assignment(cache: Cache, info: WorkloadInfo, short: Json, counts: Json) -> Assignment:
    """An assignment as a preemption test states it: flavors by pod set and resource, all in mode Preempt or fit."""
    assignment = Assignment()
    by_name = {requests.name: requests for requests in info.pod_sets}
    for name, flavors in short.items():
        requests = by_name[name]
        result = PodSetResult(name, counts.get(name, requests.count), requests.requests, {})
        for resource, text in flavors.items():
            flavor, _, mode = text.partition(" ")
            result.flavors[resource] = FlavorChoice(flavor, Mode.FIT if mode else Mode.PREEMPT)
        assignment.pod_sets.append(result)
    return assignment


__all__ = ["ZERO", "build", "configuration", "given_assignment", "one_workload"]
