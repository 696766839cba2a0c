"""Random scenarios: one cohort tree each with its flavors, queues and workloads, and a script of what happens to it.

`scenario(seed, index)` is a pure function of its arguments. The notation is that of `decide.expand`, and `steps`
says what happens after the start, one step at a time: `[kind, ...]`, see `differential.steps`.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from tests.differential import devices, limits, steps, topologies
from tests.differential.settings import WITH_NODES

Json = dict[str, Any]

STOP = "MayStopSearch"
NEXT = "TryNextFlavor"
PARENTS = {"root": None, "left": "root", "right": "root", "deep": "left"}
CHECK = "external"


def scenario(seed: int, index: int, setting: str) -> Json:
    """The scenario of this number, for a Kueue of this setting (`settings.SETTINGS`)."""
    return _Maker(random.Random(f"{seed} {index} {setting}"), setting).make(seed, index)


class _Maker:
    def __init__(self, rng: random.Random, setting: str) -> None:
        self.rng = rng
        self.setting = setting
        self.fair = setting.startswith("fair")
        self.breaks = setting.startswith("nodes")
        """Whether nodes fail."""
        self.elastic = setting.startswith("elastic")
        self.many = setting in ("balanced", "best-fit")
        """Whether there are more nodes than elsewhere, and many small pods."""
        self.flavors = ["f1", "f2", "f3"][: rng.choice([1, 2, 2, 3])]
        self.levels = topologies.topology(rng, hosts=self.breaks) if setting in WITH_NODES else []
        self.broken: dict[str, str] = {}
        """What is wrong with nodes."""
        self.gpu = not self.levels and (rng.random() < 0.4 or setting == "devices")
        self.two_groups = self.gpu and rng.random() < 0.5
        self.cohorts = ["root", "left", "right", "deep"][: rng.choice([1, 1, 2, 3, 4])]
        self.checks = rng.random() < 0.15
        self.queue_names = [f"q{n}" for n in range(rng.randint(1, 4))]
        self.workloads = 0
        self.strict_share = 0.5 if rng.random() < 0.15 and not self.levels else 0.0
        """Kueue never rests while a StrictFIFO queue has a head that it cannot admit, which costs."""
        self.single = rng.random() < 0.93
        """Whether StrictFIFO queues have one flavor; with more of them Kueue also writes without end."""
        self.strict: set[str] = set()

    def make(self, seed: int, index: int) -> Json:
        rng = self.rng
        case: Json = {"name": f"{self.setting}-{seed}-{index}", "setting": self.setting}
        case["flavors"] = self._flavors()
        if self.levels:
            case["topologies"] = {topologies.TOPOLOGY: self.levels}
            case["nodes"] = topologies.nodes(rng, self.flavors, many=self.many)
        if self.setting == "preferred-nodes":
            for node in case["nodes"].values():
                node["labels"]["disk"] = rng.choice(["hdd", "ssd", "ssd"])
        if self.setting == "devices":
            case["claimTemplates"] = dict(devices.TEMPLATES)
            case["devices"] = [*devices.CLASSES, *devices.SLICES]
        if self.setting == "limits":
            case["limitRanges"] = limits.limit_ranges(rng)
            case["runtimeClasses"] = {limits.RUNTIME: {"cpu": rng.choice(["500m", "1"])}}
        case["cohorts"] = self._cohorts()
        case["queues"] = {name: self._queue(name) for name in self.queue_names}
        case["localQueues"] = {f"l{name}": name for name in self.queue_names}
        if self.setting == "usage":
            case["localQueues"] |= {f"m{name}": name for name in self.queue_names}
            case["weights"] = {
                name: rng.choice(["0", "0.5", "2"]) for name in case["localQueues"] if rng.random() < 0.3
            }
        if self.checks:
            case["checks"] = [CHECK]
        first = rng.choice([1, 2, 3, 4, 6])
        case["workloads"] = dict(self._workload(rng.choice([0, 0, 1, 2])) for _ in range(first))
        case["steps"] = []
        for _ in range(rng.randint(2, 5)):
            case["steps"].append(self._step(case))
        return case

    def _flavors(self) -> Json:
        rng = self.rng
        result: Json = {name: {} for name in self.flavors}
        for name, spec in result.items():
            if self.levels:
                spec["topologyName"] = topologies.TOPOLOGY
            if self.levels or rng.random() < 0.3:
                spec["nodeLabels"] = {"kind": name}
            if name != "f1" and rng.random() < 0.2:
                spec["nodeTaints"] = [{"key": "t", "value": "v", "effect": "NoSchedule"}]
                if rng.random() < 0.3:
                    spec["tolerations"] = [{"key": "t", "operator": "Exists"}]
        if self.two_groups:
            result["g1"] = {}
        return result

    def _resources(self) -> list[str]:
        return ["cpu", "gpu"] if self.gpu else ["cpu"]

    def _quota(self, bounded: bool, most: int) -> str:
        """Nominal quota, and where there is a parent perhaps limits."""
        rng = self.rng
        nominal = rng.choice([8, 12, 20] if self.many else [0, 1, 2, 3, 4, 6, most])
        text = str(nominal)
        if bounded and rng.random() < 0.4:
            borrow = rng.choice(["-", 0, 1, 2, 4])
            lend: Any = "-" if rng.random() < 0.6 else rng.randint(0, nominal)
            text += f"/{borrow}/{lend}"
        return text

    def _groups(self, bounded: bool, single: bool = False) -> list[Json]:
        rng = self.rng
        resources = ["cpu"] + (["gpu"] if self.gpu and not self.two_groups else [])
        names = [name for name in self.flavors if rng.random() < 0.85] or [self.flavors[0]]
        if rng.random() < 0.15:
            rng.shuffle(names)
        if single:
            del names[1:]
        groups: list[Json] = [{name: {r: self._quota(bounded, 8) for r in resources} for name in names}]
        if self.two_groups:
            groups.append({"g1": {"gpu": self._quota(bounded, 4)}})
        return groups

    def _cohorts(self) -> Json:
        rng, result = self.rng, {}
        for name in self.cohorts:
            parent = PARENTS[name]
            one: Json = {"parent": parent} if parent else {}
            if rng.random() < 0.4:
                one["groups"] = self._groups(parent is not None)
            if self.fair and rng.random() < 0.4:
                one["weight"] = rng.choice(["0", "0.5", "1", "2"])
            result[name] = one
        return result

    def _queue(self, name: str) -> Json:
        rng = self.rng
        strategy = "StrictFIFO" if rng.random() < self.strict_share else "BestEffortFIFO"
        if strategy == "StrictFIFO" and self.single:
            self.strict.add(name)
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
            "groups": self._groups(cohort is not None, name in self.strict),
            "preemption": preemption,
            "flavorFungibility": fungibility,
            "queueingStrategy": strategy,
        }
        if cohort:
            queue["cohortName"] = cohort
        if self.fair and rng.random() < 0.4:
            queue["weight"] = rng.choice(["0", "0.5", "2", "3"])
        if rng.random() < 0.04:
            queue["stopPolicy"] = "Hold"
        if self.setting == "usage" and rng.random() < 0.9:
            queue["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
        if self.checks and rng.random() < 0.7:
            flavors = list(queue["groups"][0])
            queue["checks"] = {CHECK: [] if rng.random() < 0.5 else [rng.choice(flavors)]}
        return queue

    def _pod(self) -> Json:
        rng = self.rng
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
        if self.setting == "preferred-nodes" and rng.random() < 0.7:
            terms = [topologies.preferred(rng) for _ in range(rng.choice([1, 1, 2]))]
            wishes = pod.setdefault("affinity", {}).setdefault("nodeAffinity", {})
            wishes["preferredDuringSchedulingIgnoredDuringExecution"] = terms
        return pod

    def _workload(self, priority: int) -> tuple[str, Json]:
        rng = self.rng
        self.workloads += 1
        pod_sets = {}
        for number in range(rng.choice([1, 1, 1, 2])):
            pod_set = self._size()
            pod = self._pod()
            if self.setting == "devices" and "gpu" in pod_set["requests"]:
                self._ask_for_devices(pod_set, pod)
            if self.setting == "limits":
                pod |= limits.pod(rng, self._resources())
                del pod_set["requests"]
            if pod:
                pod_set["pod"] = pod
            asks = self._place(pod_set["count"])
            if asks is not None:
                pod_set["topologyRequest"] = asks
            if number == 0 and pod_set["count"] > 1 and rng.random() < 0.4 and not self.levels:
                pod_set["min"] = 1
            pod_sets["main" if number == 0 else "aux"] = pod_set
        if self.elastic:
            pod_sets["main"].pop("min", None)
        local = rng.choice("lm") if self.setting == "usage" else "l"
        workload = {"queue": f"{local}{rng.choice(self.queue_names)}", "priority": priority, "podSets": pod_sets}
        if self.setting == "pods-ready" and rng.random() < 0.6:
            workload["ready"] = True
        if self.elastic and self.levels:
            workload["elastic"] = True
            self._lead(pod_sets, {"unconstrained": True})
        if self.setting == "balanced":
            self._lead(pod_sets, {"preferred": rng.choice(self.levels)})
        return f"w{self.workloads:02}", workload

    def _size(self) -> Json:
        """How many pods, and what they request."""
        rng = self.rng
        if self.many:
            return {"requests": {"cpu": "1"}, "count": rng.choice([2, 3, 4, 4, 5, 6, 8])}
        result: Json = {"requests": {"cpu": str(rng.choice([1, 1, 2, 3, 4]))}, "count": rng.choice([1, 1, 1, 2, 3])}
        if self.gpu and rng.random() < 0.5:
            result["requests"]["gpu"] = str(rng.randint(1, 2))
        return result

    def _ask_for_devices(self, pod_set: Json, pod: Json) -> None:
        """By a claim, or by an extended resource, of which sometimes only the limit is given; or by both."""
        rng, requests = self.rng, pod_set["requests"]
        del requests["gpu"]
        if rng.random() < 0.5:
            name = rng.choice(["one", "two", "both", "other", *rng.choices(list(devices.TEMPLATES), k=8)])
            pod["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": name}]
            if rng.random() < 0.7:
                return
        del pod_set["requests"]
        asked = {rng.choice([*devices.EXTENDED.values(), devices.EXTENDED["dev-a"]]): str(rng.randint(1, 2))}
        resources = {"limits": asked, "requests": {**requests, **asked} if rng.random() < 0.7 else requests}
        pod["containers"] = [{"name": "c", "resources": resources}]
        if rng.random() < 0.2:
            pod["initContainers"] = [{"name": "i", "resources": {"requests": dict.fromkeys(asked, "3")}}]

    def _place(self, count: int) -> Json | None:
        """What a pod set asks of the topology, if there is one."""
        if not self.levels:
            return None
        asks = topologies.request(self.rng, self.levels, count)
        if self.setting == "balanced" and asks is not None and self.rng.random() < 0.8:
            asks = {"preferred": asks.pop("required", self.rng.choice(self.levels)), **asks}
            asks.pop("unconstrained", None)
        # Kueue places elastic jobs only without a wish.
        return {"unconstrained": True} if self.elastic and self.rng.random() < 0.8 else asks

    def _lead(self, pod_sets: Json, asks: Json) -> None:
        """Of two pod sets, one is sometimes the leader beside its workers."""
        if "aux" in pod_sets and self.rng.random() < 0.5:
            for pod_set in pod_sets.values():
                pod_set["topologyRequest"] = {**asks, "podSetGroupName": "g"}
            pod_sets["aux"]["count"] = 1

    def _stop(self, kind: str) -> list[Any]:
        rng = self.rng
        if kind == "stop":
            return [kind, rng.choice(self.queue_names), rng.choice(["None", "Hold", "HoldAndDrain", "HoldAndDrain"])]
        return [kind, f"l{rng.choice(self.queue_names)}", rng.choice(["None", "Hold", "HoldAndDrain"])]

    def _node(self, case: Json) -> list[Any]:
        """A node breaks that nothing was wrong with, or one that is not gone is well again."""
        rng = self.rng
        well = [name for name, node in case["nodes"].items() if node.keys() == {"labels", "allocatable"}]
        name = rng.choice([name for name in well if self.broken.get(name) != "gone"] or [""])
        if not name:
            return ["finish", rng.randint(0, 9)]
        state = "back" if name in self.broken else rng.choice(["gone", "notReady", "tainted"])
        if state == "back":
            del self.broken[name]
        else:
            self.broken[name] = state
        return ["node", name, state]

    def _grown(self, case: Json) -> tuple[str, Json]:
        """A slice with more pods than one that was submitted before, of which one pod set may have fewer."""
        rng = self.rng
        before, workload = rng.choice(list(steps.submitted(case).items()))
        result = copy.deepcopy({**workload, "replaces": before})
        for name, pod_set in result["podSets"].items():
            if name == "aux" and "podSetGroupName" in pod_set.get("topologyRequest", {}):
                continue  # The leader of the others.
            pod_set["count"] = max(1, pod_set["count"] + rng.choice([1, 1, 1, 2, 0, -1]))
        if rng.random() < 0.1:
            result["priority"] += 1
        self.workloads += 1
        return f"w{self.workloads:02}", result

    def _step(self, case: Json) -> list[Any]:
        rng = self.rng
        kinds = {"submit": 50, "finish": 18, "delete": 4, "quota": 8, "stop": 4, "reclaim": 5, "priority": 4}
        if self.setting != "usage":
            kinds["hold"] = 3
        if self.elastic:
            kinds |= {"grow": 70, "scale": 20}
        if self.breaks:
            kinds["node"] = 90
        if self.checks:
            kinds["check"] = 60
        if self.setting == "pods-ready":
            kinds["unready"] = 25
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        if kind == "submit":
            return [kind, *self._workload(rng.choice([0, 1, 2, 3, 4]))]
        if kind == "node":
            return self._node(case)
        if kind == "grow":
            return ["submit", *self._grown(case)]
        if kind == "quota":
            queue = rng.choice(self.queue_names)
            return [kind, queue, self._groups("cohortName" in case["queues"][queue], queue in self.strict)]
        if kind in ("stop", "hold"):
            return self._stop(kind)
        numbers = self._numbers(kind)
        if kind == "scale":
            # A slice with quota only shrinks.
            numbers[1] = min(numbers[1], *(item[2] for item in case["steps"] if item[0] == kind), 2)
        return [kind, *numbers]

    def _numbers(self, kind: str) -> list[Any]:
        """The workload to which it happens, and what it gets."""
        rng = self.rng
        if kind == "check":
            state = rng.choice(["Ready", "Ready", "Ready", "Retry", "Retry", "Rejected"])
            later = [rng.choice([1, 6, 9])] if state == "Retry" and rng.random() < 0.5 else []
            return [rng.randint(0, 9), state, *later]
        if kind == "priority":
            return [rng.randint(0, 9), rng.randint(0, 5)]
        if kind == "scale":
            return [rng.randint(0, 9), rng.randint(1, 2)]
        return [rng.randint(0, 9)]
