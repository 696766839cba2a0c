"""Random scenarios: one cohort tree each with its flavors, queues and workloads, and a script of what happens to it.

`scenario(seed, index)` is a pure function of its arguments. The notation is that of `admission.expand`, and `steps`
says what happens after the start, one step at a time: `[kind, ...]`, see `differential.steps`.
"""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

STOP = "MayStopSearch"
NEXT = "TryNextFlavor"
PARENTS = {"root": None, "left": "root", "right": "root", "deep": "left"}
CHECK = "external"


def scenario(seed: int, index: int, *, fair: bool) -> Json:
    """The scenario of this number; with `fair`, for a Kueue with fair sharing."""
    rng = random.Random(seed * 1_000_003 + index * 2 + fair)
    return _Maker(rng, fair).make(seed, index)


class _Maker:
    def __init__(self, rng: random.Random, fair: bool) -> None:
        self.rng = rng
        self.fair = fair
        self.flavors = ["f1", "f2", "f3"][: rng.choice([1, 2, 2, 3])]
        self.gpu = rng.random() < 0.4
        self.two_groups = self.gpu and rng.random() < 0.5
        self.cohorts = ["root", "left", "right", "deep"][: rng.choice([1, 1, 2, 3, 4])]
        self.checks = rng.random() < 0.15
        self.queue_names = [f"q{n}" for n in range(rng.randint(1, 4))]
        self.workloads = 0

    def make(self, seed: int, index: int) -> Json:
        rng = self.rng
        case: Json = {"name": f"{seed}-{index}{'f' if self.fair else ''}", "fair": self.fair}
        if self.fair:
            case["strategies"] = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
        case["flavors"] = self._flavors()
        case["cohorts"] = self._cohorts()
        case["queues"] = {name: self._queue() for name in self.queue_names}
        case["localQueues"] = {f"l{name}": name for name in self.queue_names}
        if self.checks:
            case["checks"] = [CHECK]
        first = rng.choice([2, 4, 6, 8])
        case["workloads"] = dict(self._workload(rng.choice([0, 0, 1, 2])) for _ in range(first))
        case["steps"] = [self._step(case) for _ in range(rng.randint(2, 6))]
        return case

    def _flavors(self) -> Json:
        rng = self.rng
        found: Json = {name: {} for name in self.flavors}
        for name, spec in found.items():
            if rng.random() < 0.3:
                spec["nodeLabels"] = {"kind": name}
            if name != "f1" and rng.random() < 0.2:
                spec["nodeTaints"] = [{"key": "t", "value": "v", "effect": "NoSchedule"}]
                if rng.random() < 0.3:
                    spec["tolerations"] = [{"key": "t", "operator": "Exists"}]
        if self.two_groups:
            found["g1"] = {}
        return found

    def _quota(self, bounded: bool, most: int) -> str:
        """Nominal quota, and where there is a parent perhaps limits."""
        rng = self.rng
        nominal = rng.choice([0, 1, 2, 3, 4, 6, most])
        text = str(nominal)
        if bounded and rng.random() < 0.4:
            borrow = rng.choice(["-", 0, 1, 2, 4])
            lend: Any = "-" if rng.random() < 0.6 else rng.randint(0, nominal)
            text += f"/{borrow}/{lend}"
        return text

    def _groups(self, bounded: bool) -> list[Json]:
        rng = self.rng
        resources = ["cpu"] + (["gpu"] if self.gpu and not self.two_groups else [])
        names = [name for name in self.flavors if rng.random() < 0.85] or [self.flavors[0]]
        if rng.random() < 0.15:
            rng.shuffle(names)
        groups: list[Json] = [{name: {r: self._quota(bounded, 8) for r in resources} for name in names}]
        if self.two_groups:
            groups.append({"g1": {"gpu": self._quota(bounded, 4)}})
        return groups

    def _cohorts(self) -> Json:
        rng, found = self.rng, {}
        for name in self.cohorts:
            parent = PARENTS[name]
            one: Json = {"parent": parent} if parent else {}
            if rng.random() < 0.4:
                one["groups"] = self._groups(parent is not None)
            if self.fair and rng.random() < 0.4:
                one["weight"] = rng.choice(["0", "0.5", "1", "2"])
            found[name] = one
        return found

    def _queue(self) -> Json:
        rng = self.rng
        cohort = rng.choice(self.cohorts) if rng.random() < 0.92 else None
        reclaim = rng.choice(["Never", "LowerPriority", "Any", "Any"])
        preemption: Json = {
            "withinClusterQueue": rng.choice(["Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaimWithinCohort": reclaim,
        }
        if reclaim != "Never" and rng.random() < 0.4:
            preemption["borrowWithinCohort"] = {"policy": "LowerPriority"}
            if rng.random() < 0.5:
                preemption["borrowWithinCohort"]["maxPriorityThreshold"] = rng.randint(-1, 3)
        fungibility = {"whenCanBorrow": rng.choice([STOP, NEXT]), "whenCanPreempt": rng.choice([STOP, NEXT])}
        if set(fungibility.values()) == {NEXT} and rng.random() < 0.6:
            fungibility["preference"] = rng.choice(["BorrowingOverPreemption", "PreemptionOverBorrowing"])
        queue: Json = {
            "groups": self._groups(cohort is not None),
            "preemption": preemption,
            "flavorFungibility": fungibility,
            "queueingStrategy": rng.choice(["StrictFIFO", "BestEffortFIFO", "BestEffortFIFO"]),
        }
        if cohort:
            queue["cohortName"] = cohort
        if self.fair and rng.random() < 0.4:
            queue["weight"] = rng.choice(["0", "0.5", "2", "3"])
        if rng.random() < 0.04:
            queue["stopPolicy"] = "Hold"
        if self.checks and rng.random() < 0.7:
            flavors = list(queue["groups"][0])
            queue["checks"] = {CHECK: [] if rng.random() < 0.5 else [rng.choice(flavors)]}
        return queue

    def _workload(self, priority: int) -> tuple[str, Json]:
        rng = self.rng
        self.workloads += 1
        pod_sets = {}
        for number in range(rng.choice([1, 1, 1, 2])):
            pod_set: Json = {
                "requests": {"cpu": str(rng.choice([1, 1, 2, 3, 4]))},
                "count": rng.choice([1, 1, 1, 2, 3]),
            }
            if self.gpu and rng.random() < 0.5:
                pod_set["requests"]["gpu"] = str(rng.randint(1, 2))
            pod: Json = {}
            if rng.random() < 0.3:
                pod["tolerations"] = [{"key": "t", "operator": "Exists"}]
            if rng.random() < 0.12:
                pod["nodeSelector"] = {"kind": rng.choice(self.flavors)}
            elif rng.random() < 0.06:
                term = {"matchExpressions": [{"key": "kind", "operator": "In", "values": self.flavors[:2]}]}
                pod["affinity"] = {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
                }
            if pod:
                pod_set["pod"] = pod
            if number == 0 and pod_set["count"] > 1 and rng.random() < 0.4:
                pod_set["min"] = 1
            pod_sets["main" if number == 0 else "aux"] = pod_set
        queue = rng.choice(self.queue_names)
        return f"w{self.workloads:02}", {"queue": f"l{queue}", "priority": priority, "podSets": pod_sets}

    def _step(self, case: Json) -> list[Any]:
        rng = self.rng
        kinds = {"submit": 50, "finish": 18, "delete": 4, "quota": 8, "stop": 4, "reclaim": 5, "priority": 4}
        if self.checks:
            kinds["check"] = 60
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        if kind == "submit":
            return [kind, *self._workload(rng.choice([0, 1, 2, 3, 4]))]
        if kind == "quota":
            queue = rng.choice(self.queue_names)
            return [kind, queue, self._groups("cohortName" in case["queues"][queue])]
        if kind == "stop":
            return [kind, rng.choice(self.queue_names), rng.choice(["None", "Hold", "HoldAndDrain", "HoldAndDrain"])]
        if kind == "check":
            return [kind, rng.randint(0, 9), rng.choice(["Ready", "Ready", "Ready", "Retry", "Rejected"])]
        if kind == "priority":
            return [kind, rng.randint(0, 9), rng.randint(0, 5)]
        return [kind, rng.randint(0, 9)]
