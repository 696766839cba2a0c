"""A mismatch made small: parts of the scenario are left out as long as the core and Kueue still differ."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]


def shrunk(case: Json, differ: Callable[[list[Json]], list[bool]]) -> Json:
    """The smallest scenario found by leaving out one part after the other.

    `differ` says of each of several scenarios whether its answers differ; they are given together because a round of
    questions to the real Kueue takes as long for one as for many.
    """
    while True:
        smaller = list(_smaller(case))
        result = next((one for one, bad in zip(smaller, differ(smaller), strict=True) if bad), None)
        if result is None:
            return case
        case = result


def _smaller(case: Json) -> Iterator[Json]:
    """Every scenario with one part less; large parts first."""
    for cut in range(len(case["steps"])):
        yield {**case, "steps": case["steps"][:cut]}
    for index in range(len(case["steps"])):
        yield {**case, "steps": case["steps"][:index] + case["steps"][index + 1 :]}
    for name in case["queues"]:
        if len(case["queues"]) > 1:
            yield _without_queue(case, name)
    for name in case["workloads"]:
        yield {**case, "workloads": {key: one for key, one in case["workloads"].items() if key != name}}
    yield from _with_smaller_parts(case)


def _with_smaller_parts(case: Json) -> Iterator[Json]:
    for name, queue in case["queues"].items():
        for index, group in enumerate(queue["groups"]):
            for flavor in group:
                if len(group) > 1:
                    smaller = copy.deepcopy(case)
                    del smaller["queues"][name]["groups"][index][flavor]
                    yield smaller
    for name, workload in case["workloads"].items():
        if "aux" in workload["podSets"]:
            smaller = copy.deepcopy(case)
            del smaller["workloads"][name]["podSets"]["aux"]
            yield smaller
    for name, cohort in case["cohorts"].items():
        if "groups" in cohort:
            smaller = copy.deepcopy(case)
            del smaller["cohorts"][name]["groups"]
            yield smaller


def _without_queue(case: Json, name: str) -> Json:
    local = f"l{name}"
    return {
        **case,
        "queues": {key: queue for key, queue in case["queues"].items() if key != name},
        "localQueues": {key: queue for key, queue in case["localQueues"].items() if key != local},
        "workloads": {key: one for key, one in case["workloads"].items() if one["queue"] != local},
        "steps": [
            step
            for step in case["steps"]
            if not (step[0] in ("quota", "stop") and step[1] == name)
            and not (step[0] == "hold" and step[1] == local)
            and not (step[0] == "submit" and step[2]["queue"] == local)
        ],
    }
