"""Concurrent admission: random scenarios on the real Kueue, compared with the core whenever all is quiet.

    export PYTHONPATH=tests/support
    python -m tests.differential.variants --seed 1 --count 60      # asks Kueue, keeps corpus/variants-1.jsonl.xz

The speed of Kueue's writes decides which variant a cycle sees first, so that cycles are not compared, but what is there
at the end of each round: of each job, and of each of its variants, how far it is. Where two variants fit at once, Kueue
may do one thing or the other, or even leave one waiting that fits: it is asked up to three times, and an answer with
which the core agrees is kept.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.decide import expand
from tests.differential.corpus import FOLDER
from tests.differential.lab import API, Lab, kueue
from tests.differential.observed import CHANGES, is_true
from tests.differential.settings import deciding

from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CheckStateChanged, Event, Finished, ObjectsChanged, PodsStopped, Submitted
from kueue_admission.decide.model import CheckState, Objects
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.releases import release
from kueue_admission.simulate.cluster import SimulatedCluster
from kueue_admission.simulate.delays import Delays
from one_cluster import Refused

Json = dict[str, Any]
CHECK = "external"
ROUND_SECONDS = 5.0
QUIET_SECONDS = 2.5
"""Nothing has changed for so long: longer than any delay of Kueue's own here."""
LONGEST_SECONDS = 40.0
"""After which a round is over, and so are scenarios in which Kueue still writes."""
TIMES = 3
"""So often Kueue is asked a scenario: what it does then depends on its speed."""
_ALLOWED = "kueue.x-k8s.io/workload-allowed-resource-flavors"


def scenario(seed: int, index: int) -> Json:
    """A queue whose jobs wait for two or three flavors at once, perhaps one beside it in its cohort, and six rounds."""
    rng = random.Random(f"variants {seed} {index}")
    flavors = ["f1", "f2", "f3"][: rng.choice([2, 3])]
    mode: Json = {"mode": rng.choice(["TryPreferredFlavors", "TryPreferredFlavors", "RetainFirstAdmission"])}
    if mode["mode"] == "TryPreferredFlavors" and rng.random() < 0.4:
        mode["constraints"] = {"lastAcceptableFlavorName": rng.choice(flavors)}
    within = rng.choice(["Never", "LowerPriority"])
    queues: Json = {
        "q": {
            "cohortName": "root",
            "groups": [{name: {"cpu": str(rng.choice([0, 2, 4, 6]))} for name in flavors}],
            "preemption": {"withinClusterQueue": within, "reclaimWithinCohort": rng.choice(["Never", "Any"])},
            "concurrentAdmissionPolicy": {"migration": mode},
        }
    }
    locals_ = {"lq": "q"}
    if rng.random() < 0.4:
        queues["other"] = {"cohortName": "root", "groups": [{flavors[0]: {"cpu": str(rng.choice([0, 2]))}}]}
        locals_["lother"] = "other"
    if rng.random() < 0.25:
        queues["q"]["admissionChecksStrategy"] = {
            "admissionChecks": [{"name": CHECK, "onFlavors": [rng.choice(flavors)]}]
        }

    def workload() -> Json:
        cpu = rng.choice(["1", "2", "3", "4"])
        return {
            "queue": rng.choice(sorted(locals_)),
            "priority": rng.choice([0, 0, 1]),
            "podSets": {"main": {"requests": {"cpu": cpu}}},
        }

    steps: list[list[Any]] = [["submit", "job-w0", workload()]]
    for number in range(1, 6):
        kind = rng.choice(["submit", "submit", "finish", "quota", "check"])
        if kind == "submit":
            steps.append(["submit", f"job-w{number}", workload()])
        elif kind == "quota":
            steps.append(["quota", {name: {"cpu": str(rng.choice([0, 2, 4, 6]))} for name in flavors}])
        else:
            steps.append([kind, rng.randrange(4), rng.choice(["Ready", "Ready", "Retry", "Rejected"])])
    return {
        "name": f"variants-{seed}-{index}",
        "flavors": {name: {} for name in flavors},
        "cohorts": {"root": {}},
        "queues": queues,
        "localQueues": {f"default/{name}": queue for name, queue in locals_.items()},
        "namespaces": {"default": {}},
        "checks": {CHECK: "example.com/external"},
        "workloads": {},
        "steps": steps,
    }


def next_event(case: Json, states: dict[str, str], done: int) -> tuple[list[Any] | None, int]:
    """The event of the next round, with names in place of numbers; pods of evicted jobs stop before anything else."""
    jobs = {name: state for name, state in states.items() if "." not in name}
    evicted = sorted(name for name, state in jobs.items() if state.startswith("Evicted"))
    if evicted:
        return ["release", evicted[0]], done
    if done >= len(case["steps"]):
        return None, done + 1
    kind, *rest = case["steps"][done]
    if kind in ("submit", "quota"):
        return case["steps"][done], done + 1
    pool = states if kind == "check" else jobs
    expected = "QuotaReserved" if kind == "check" else "Admitted"
    names = sorted(name for name, state in pool.items() if state.startswith(expected))
    return ([kind, names[rest[0] % len(names)], rest[1]] if names else None), done + 1


# The core


def play(case: Json, events: list[list[Any] | None]) -> Iterator[dict[str, str]]:
    """The states at the end of each round, as the core has them."""
    core = _Core(case)
    return (core.round(event) for event in events)


class _Core:
    def __init__(self, case: Json) -> None:
        self.case = {**case, "queues": dict(case["queues"])}
        self.now = expand.ZERO
        self.cluster = SimulatedCluster("", self._objects(), Delays(), lambda *_: None)

    @property
    def engine(self) -> Engine:
        return self.cluster.engine

    def _parsed(self, workloads: Json) -> Any:
        configuration = parse_configuration(deciding("variants"), release("0.19"))
        return parse_objects(expand.manifests({**self.case, "workloads": workloads}), configuration)

    def _objects(self) -> Objects:
        objects: Objects = self._parsed({}).objects
        return objects

    def round(self, event: list[Any] | None) -> dict[str, str]:
        self.now += ROUND_SECONDS
        if event is not None:
            self.cluster.handle(self._event(event))
        while (wake := self.cluster.next_wake()) is not None and wake < self.now + ROUND_SECONDS:
            self.cluster.wake(max(wake, self.engine.now))
        return {_name(info): _state(info) for info in self.engine.workloads.values()}

    def _event(self, event: list[Any]) -> Event:
        kind, name, *rest = event
        if kind == "submit":
            short = {**rest[0], "created": self.now - expand.ZERO, "uid": name}
            return Submitted(self.now, self._parsed({f"default/{name}": short}).workloads[0])
        if kind == "quota":
            self.case["queues"]["q"] = {**self.case["queues"]["q"], "groups": [name]}
            return ObjectsChanged(self.now, self._objects())
        key = next(key for key, info in self.engine.workloads.items() if _name(info) == name)
        if kind == "check":
            later = 1.0 if rest[0] == "Retry" else None
            return CheckStateChanged(self.now, key, CHECK, CheckState(rest[0]), "by the script", later)
        return Finished(self.now, key) if kind == "finish" else PodsStopped(self.now, key)


def _name(info: WorkloadInfo) -> str:
    workload = info.workload
    if not workload.parent:
        return workload.name
    return f"{workload.parent.partition('/')[2]}.{(workload.allowed_flavors or ('',))[0]}"


def _state(info: WorkloadInfo) -> str:
    flavors = {flavor for ps in (info.admission.pod_sets if info.admission else ()) for _, flavor in ps.flavors}
    if info.is_evicted and info.is_reserved:
        return _text("Evicted", flavors, info.evicted_reason or "")
    if info.is_reserved:
        return _text("Admitted" if info.is_admitted else "QuotaReserved", flavors)
    return "Pending" if info.workload.active else "Inactive"


def _text(kind: str, flavors: set[str], reason: str = "") -> str:
    return " ".join(filter(None, (kind, *sorted(flavors), reason)))


# Kueue


class Asked:
    """One scenario on the real Kueue; its objects have names that begin with `prefix`, its jobs a namespace."""

    def __init__(self, lab: Lab, case: Json, prefix: str) -> None:
        self.lab, self.case, self.prefix = lab, case, prefix
        self.namespace = prefix.rstrip("-")
        self.done = 0
        self.restless = False
        self.states: dict[str, str] = {}
        self.rounds: list[Json] = []
        self.items: dict[str, Json] = {}

    @property
    def workloads(self) -> str:
        return f"{API}/namespaces/{self.namespace}/workloads"

    def create(self) -> None:
        api = self.lab.cluster
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        for item in self._renamed(expand.manifests(self.case)):
            if item["kind"] == "Namespace":
                continue
            plural = {"ResourceFlavor": "resourceflavors", "Cohort": "cohorts", "ClusterQueue": "clusterqueues"}
            where = {
                **{kind: f"{API}/{name}" for kind, name in plural.items()},
                "LocalQueue": f"{API}/namespaces/{self.namespace}/localqueues",
                "AdmissionCheck": f"{API}/admissionchecks",
            }[item["kind"]]
            api.request("POST", where, {"apiVersion": "kueue.x-k8s.io/v1beta2", **item})
            if item["kind"] == "AdmissionCheck":
                self._update(f"{where}/{item['metadata']['name']}", _activate, "/status")

    def _update(self, path: str, change: Callable[[Json], object], part: str = "") -> None:
        """Change an object; again where Kueue was faster."""
        for tries in range(8):
            item = self.lab.cluster.request("GET", path)
            change(item)
            try:
                self.lab.cluster.request("PUT", f"{path}{part}", item)
            except Refused as refused:
                if not str(refused).startswith("409") or tries == 7:
                    raise
            else:
                return

    def _renamed(self, items: Any) -> Any:
        """Objects of the cluster with names of this scenario; those of a namespace keep theirs."""
        text = json.dumps(items)
        for name in (*self.case["flavors"], *self.case["queues"], "root", CHECK):
            text = text.replace(f'"{name}"', f'"{self.prefix}{name}"')
        return json.loads(text.replace('"default"', f'"{self.namespace}"'))

    def act(self) -> list[Any] | None:
        """Do the next step."""
        event, self.done = next_event(self.case, self.states, self.done)
        api = self.lab.cluster
        if event is None:
            return None
        kind, name, *rest = event
        if kind == "submit":
            [item] = self._renamed([expand.workload(f"default/{name}", {**rest[0], "created": 0, "uid": name})])
            metadata = {"name": name, "namespace": self.namespace}
            pod = item["spec"]["podSets"][0]["template"]["spec"]
            pod |= {"restartPolicy": "Never", "containers": [{**entry, "image": "none"} for entry in pod["containers"]]}
            item.pop("status")
            api.request("POST", self.workloads, {"apiVersion": "kueue.x-k8s.io/v1beta2", **item, "metadata": metadata})
        elif kind == "quota":
            spec = expand.queue("q", {**self.case["queues"]["q"], "groups": [name]})["spec"]
            groups = {"resourceGroups": self._renamed(spec["resourceGroups"])}
            self._update(f"{API}/clusterqueues/{self.prefix}q", lambda found: found["spec"].update(groups))
        else:
            path = f"{self.workloads}/{self.items[name]['metadata']['name']}"
            change = ["check", name, rest[0], *([1] if rest[0] == "Retry" else [])] if kind == "check" else [kind, name]
            self._update(path, lambda found: CHANGES[kind](self.case, found, change), "/status")
        return event

    def look(self) -> dict[str, str]:
        """Take over the states of now."""
        listed = self.lab.cluster.request("GET", self.workloads)["items"]
        self.items = {self._name(item): item for item in listed if not item["metadata"].get("deletionTimestamp")}
        self.states = {name: state for name, item in self.items.items() if (state := self._state(item))}
        return self.states

    def _name(self, item: Json) -> str:
        owners = item["metadata"].get("ownerReferences", ())
        if not owners:
            return str(item["metadata"]["name"])
        flavor = item["metadata"]["annotations"][_ALLOWED].removeprefix(self.prefix)
        return f"{owners[0]['name']}.{flavor}"

    def _state(self, item: Json) -> str:
        status = item.get("status", {})
        conditions = {entry["type"]: entry for entry in status.get("conditions", ())}
        assigned = status.get("admission", {}).get("podSetAssignments", ())
        flavors = {name.removeprefix(self.prefix) for each in assigned for name in each.get("flavors", {}).values()}
        if is_true(conditions, "Finished"):
            return ""
        if "admission" not in status:
            return "Pending" if item["spec"].get("active", True) else "Inactive"
        if is_true(conditions, "Evicted"):
            return _text("Evicted", flavors, conditions["Evicted"]["reason"].partition("DueTo")[0])
        return _text("Admitted" if is_true(conditions, "Admitted") else "QuotaReserved", flavors)


def _activate(check: Json) -> None:
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    check["status"] = {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "", **since}]}


def ask(lab: Lab, cases: list[Json], attempt: int) -> list[Json]:
    """Kueue's answers: for each round the event and the states after it."""
    asked = [Asked(lab, case, f"v{attempt}x{number}-") for number, case in enumerate(cases)]
    for one in asked:
        one.create()
    time.sleep(2)
    running = list(asked)
    for _ in range(12):
        events = {one.prefix: one.act() for one in running}
        _until_quiet(running)
        for one in running:
            one.rounds.append({"event": events[one.prefix], "states": dict(sorted(one.states.items()))})
        running = [one for one in running if one.done <= len(one.case["steps"]) and not one.restless]
    return [{"case": one.case, "rounds": one.rounds, "restless": one.restless} for one in asked]


def _until_quiet(running: list[Asked]) -> None:
    """Wait until nothing changes; a scenario in which Kueue does not rest is marked so."""
    seen: dict[str, dict[str, str]] = {}
    since = deadline = time.monotonic()
    deadline += LONGEST_SECONDS
    while time.monotonic() - since < QUIET_SECONDS:
        now = {one.prefix: one.look() for one in running}
        if time.monotonic() > deadline:
            for one in running:
                one.restless = now[one.prefix] != seen[one.prefix]
            return
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.5)


def is_by_chance(states: dict[str, str]) -> bool:
    """Whether Kueue admitted two variants of a job in one moment, and stops the job for the one that it deactivates."""
    jobs = [name for name, state in states.items() if state.endswith("VariantEvicted")]
    return any(
        any(state.endswith("Deactivated") for state in family) and any(state.startswith("Admitted") for state in family)
        for job in jobs
        for family in [[state for name, state in states.items() if name.startswith(f"{job}.")]]
    )


def differs(answer: Json) -> str | None:
    """The first round in which the core is somewhere else than Kueue; None if there is none.

    Nothing is compared from a round on in which Kueue did not come to rest, or admitted two variants of a job.
    """
    rounds = answer["rounds"][: -1 if answer["restless"] else None]
    rounds = rounds[: next((n for n, one in enumerate(rounds) if is_by_chance(one["states"])), len(rounds))]
    for number, (mine, one) in enumerate(
        zip(play(answer["case"], [item["event"] for item in rounds]), rounds, strict=True)
    ):
        if mine != one["states"]:
            wrong = {
                name: (mine.get(name), one["states"].get(name))
                for name in sorted({*mine, *one["states"]})
                if mine.get(name) != one["states"].get(name)
            }
            return f"{answer['case']['name']}, round {number} {one['event']}: core, Kueue: {wrong}"
    return None


def load() -> list[Json]:
    """The answers that are kept."""
    result: list[Json] = []
    for path in sorted(FOLDER.glob("variants/*.jsonl.xz")):
        with lzma.open(path, "rt") as lines:
            result.extend(map(json.loads, lines))
    return result


def main() -> int:
    """Ask Kueue, again where it differs, and keep the answers with which the core agrees."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    waiting = [scenario(given.seed, index) for index in range(given.count)]
    kept: dict[str, Json] = {}
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder, kueue(Path(folder), "variants") as lab:
        for attempt in range(TIMES):
            answers = {item["case"]["name"]: item for item in ask(lab, waiting, attempt)}
            wrong = [text for entry in answers.values() if (text := differs(entry))]
            kept |= {name: each for name, each in answers.items() if differs(each) is None}
            waiting = [each for each in waiting if each["name"] not in kept]
            print(f"{len(kept)} of {given.count} as Kueue", *wrong, sep="\n")
            if not waiting:
                break
    path = given.file or FOLDER / "variants" / f"variants-{given.seed}.jsonl.xz"
    path.parent.mkdir(exist_ok=True)
    with lzma.open(path, "wt") as lines:
        lines.writelines(json.dumps(kept[name], separators=(",", ":")) + "\n" for name in sorted(kept))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
