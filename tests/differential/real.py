"""Scenarios on the real Kueue: hundreds at once in one control plane, each in its own cohort tree.

Every object of a scenario has its prefix. Every ClusterQueue also has a flavor that does not exist until all is there,
so that all queues open at one moment. There are no Jobs: whoever runs the script takes the part of the job integration
(finishes workloads, gives back the quota of evicted ones) and of the admission check's controller. All scenarios do
their rounds together, each at the start of a second; a round ends when nothing was written for a while.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from admission import expand
from differential import states
from differential.steps import MOST_ROUNDS, next_event, reclaimed, submitted
from one_cluster import PATIENCE_SECONDS, OneCluster, one_cluster

Json = dict[str, Any]

API = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS = f"{API}/namespaces/default/workloads"
PLACES = {
    "ResourceFlavor": f"{API}/resourceflavors",
    "Cohort": f"{API}/cohorts",
    "AdmissionCheck": f"{API}/admissionchecks",
    "ClusterQueue": f"{API}/clusterqueues",
    "LocalQueue": f"{API}/namespaces/default/localqueues",
}
QUIET_SECONDS = 2.2
START_QUIET_SECONDS = 3.0
AT_ONCE = 24
DEPTHS = {"root": 0, "left": 1, "right": 1, "deep": 2}
"""Parents are there before their children, and all of them before their ClusterQueues."""
RESTLESS = 5
"""A workload that Kueue writes more often in one round has no last state."""

CONFIGURATION: Json = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "health": {"healthProbeBindAddress": ":8081"},
    "metrics": {"bindAddress": ":8443"},
    "webhook": {"port": 9443},
    "leaderElection": {"leaderElect": False},
    "clientConnection": {"qps": 3000, "burst": 6000},
    "integrations": {"frameworks": ["batch/job"]},
    "featureGates": {"UnadmittedWorkloadsObservability": True},
}
FAIR = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}


@contextmanager
def kueue(folder: Path, *, fair: bool) -> Iterator[OneCluster]:
    """A control plane with Kueue 0.19.2 in it, its webhooks switched off: they would only check what is right."""
    with one_cluster(folder) as cluster:
        settings = folder / "kueue.json"
        settings.write_text(json.dumps({**CONFIGURATION, **({"fairSharing": FAIR} if fair else {})}))
        cluster.helm(
            "upgrade", "--install", "kueue", str(cluster.engines.asset("kueue-chart")), "--namespace", "kueue-system",
            "--create-namespace", "--wait", "--timeout", f"{PATIENCE_SECONDS:.0f}s",
            "--set-file", f"managerConfig.controllerManagerConfigYaml={settings}",
        )  # fmt: skip
        hooks = "/apis/admissionregistration.k8s.io/v1"
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            for item in cluster.items(f"{hooks}/{kind}"):
                if "kueue" in item["metadata"]["name"]:
                    cluster.delete(f"{hooks}/{kind}/{item['metadata']['name']}")
        yield cluster


def answers(cluster: OneCluster, cases: list[Json], batch: str) -> list[Json]:
    """Kueue's answers to scenarios that all run at once. `batch` is a name no other batch on this cluster has."""
    return asyncio.run(_answer(cluster, cases, batch))


async def _answer(cluster: OneCluster, cases: list[Json], batch: str) -> list[Json]:
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    connector = aiohttp.TCPConnector(limit=AT_ONCE + 4, ssl=context)
    headers = {"Authorization": f"Bearer {cluster.token}"}
    async with aiohttp.ClientSession(cluster.server, connector=connector, headers=headers) as session:
        run = _Batch(session, _manager_log(cluster.folder), cases, batch)
        return await run.run()


def _manager_log(folder: Path) -> Path:
    """The log of the Kueue that runs now."""
    return max(folder.glob("clusters/*/system-0/pods/*/manager.log"), key=lambda path: path.stat().st_mtime)


class _Scenario:
    """One scenario in a batch: its objects' names have the prefix."""

    def __init__(self, case: Json, prefix: str, gate: str) -> None:
        self.case = case
        self.prefix = prefix
        self.gate = gate
        self.queues = dict(case["queues"])
        self.done = 0
        self.over = False
        self.states: dict[str, str] = {}
        self.answer: Json = {"made": {}, "clock": [], "times": [], "rounds": []}

    def objects(self) -> list[Json]:
        case, prefix = self.case, self.prefix
        found = []
        for name, spec in case["flavors"].items():
            found.append(expand.flavor(prefix + name, spec))
        for name, short in case["cohorts"].items():
            parent = {"parent": prefix + short["parent"]} if "parent" in short else {}
            found.append(expand.cohort(prefix + name, {**short, **parent, "groups": self._groups(short)}))
        for name in case.get("checks", ()):
            check = {"kind": "AdmissionCheck", "spec": {"controllerName": "example.com/external"}}
            found.append({**check, "metadata": {"name": prefix + name}})
        found += [self.queue(name) for name in case["queues"]]
        for name, queue in case["localQueues"].items():
            spec = {"clusterQueue": prefix + queue}
            found.append({"kind": "LocalQueue", "metadata": {"name": prefix + name}, "spec": spec})
        return found

    def queue(self, name: str) -> Json:
        short = self.queues[name]
        given = {**short, "groups": [*self._groups(short), {self.gate: {"example.com/gate": "0"}}]}
        if "cohortName" in short:
            given["cohortName"] = self.prefix + short["cohortName"]
        if "checks" in short:
            given["checks"] = {
                self.prefix + check: [self.prefix + flavor for flavor in flavors]
                for check, flavors in short["checks"].items()
            }
        return expand.queue(self.prefix + name, given)

    def workload(self, name: str, short: Json) -> Json:
        found = expand.workload(f"default/{self.prefix}{name}", {**short, "queue": self.prefix + short["queue"]})
        del found["metadata"]["uid"], found["metadata"]["creationTimestamp"], found["status"]
        for pod_set in found["spec"]["podSets"]:
            pod_set["template"]["spec"]["restartPolicy"] = "Never"
            pod_set["template"]["spec"]["containers"][0]["image"] = "none"
        return found

    def _groups(self, short: Json) -> list[Json]:
        groups = short.get("groups", ())
        return [{self.prefix + flavor: quotas for flavor, quotas in group.items()} for group in groups]


class _Batch:
    def __init__(self, session: aiohttp.ClientSession, log: Path, cases: list[Json], batch: str) -> None:
        self.session = session
        self.log = log
        self.log_position = log.stat().st_size
        self.gate = f"{batch}-gate"
        self.scenarios = [_Scenario(case, f"{batch}-{n}-", self.gate) for n, case in enumerate(cases)]
        self.by_prefix = {one.prefix: one for one in self.scenarios}
        self.pattern = re.compile(f"^({re.escape(batch)}-\\d+-)(.*)$")
        self.objects: dict[str, Json] = {}
        self.names_by_uid: dict[str, str] = {}
        self.last_write = time.monotonic()
        self.limit = asyncio.Semaphore(AT_ONCE)
        self.writes: dict[str, list[tuple[float, str]]] = {}

    async def run(self) -> list[Json]:
        await self._clean()
        await self._create()
        watching = asyncio.create_task(self._watch())
        try:
            second = await self._next_second()
            flavor = expand.flavor(self.gate, {})
            opened = time.monotonic()
            await self._request("POST", PLACES["ResourceFlavor"], self._complete(flavor))
            await self._first_write(opened)
            await self._quiet(START_QUIET_SECONDS)
            self._note(second, list(self.scenarios))
            for _ in range(MOST_ROUNDS):
                running = [one for one in self.scenarios if not one.over]
                doing = [(one, self._next(one)) for one in running]
                running = [one for one in running if not one.over]
                if not running:
                    break
                second = await self._next_second()
                await self._all(self._do(one, event) for one, event in doing if event is not None)
                await self._quiet(QUIET_SECONDS)
                self._note(second, running)
            self._finish()
        finally:
            watching.cancel()
        return [one.answer for one in self.scenarios]

    def _next(self, one: _Scenario) -> list[Any] | None:
        event, done = next_event(one.case, one.states, one.done)
        if done < 0:
            one.over = True
        else:
            one.done = done
        return event

    async def _create(self) -> None:
        """Kinds in the order in which they refer to each other; workloads one after the other within a scenario."""
        by_kind: dict[str, list[Json]] = {kind: [] for kind in PLACES}
        for one in self.scenarios:
            for item in one.objects():
                by_kind[item["kind"]].append(self._complete(item))
        for kind, items in by_kind.items():
            for depth in range(3) if kind == "Cohort" else (0,):
                some = [item for item in items if kind != "Cohort" or DEPTHS[_short(item)] == depth]
                await self._all(self._request("POST", PLACES[kind], item) for item in some)
                await asyncio.sleep(1.0 if kind == "Cohort" else 0.0)
        await self._all(self._activate(item) for item in by_kind["AdmissionCheck"])
        waiting = [(one, list(one.case["workloads"].items())) for one in self.scenarios]
        for number in range(max(len(workloads) for _, workloads in waiting)):
            await self._next_second()
            await self._all(
                self._request("POST", WORKLOADS, self._complete(one.workload(*workloads[number])))
                for one, workloads in waiting
                if number < len(workloads)
            )
        await asyncio.sleep(2.0)

    async def _activate(self, check: Json) -> None:
        path = f"{PLACES['AdmissionCheck']}/{check['metadata']['name']}/status"
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": _now()}
        await self._request("PATCH", path, {"status": {"conditions": [active]}})

    @staticmethod
    def _complete(item: Json) -> Json:
        return {"apiVersion": "kueue.x-k8s.io/v1beta2", **item}

    async def _all(self, jobs: Iterable[Awaitable[Any]]) -> None:
        await asyncio.gather(*jobs)

    async def _request(self, method: str, path: str, body: Json | None = None) -> Json:
        merge = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        async with self.limit, self.session.request(method, path, json=body, headers=merge) as response:
            answer: Json = await response.json()
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {answer.get('message')}")
            return answer

    async def _watch(self) -> None:
        found = await self._request("GET", WORKLOADS)
        for item in found["items"]:
            self._see("ADDED", item)
        version = found["metadata"]["resourceVersion"]
        query = {"watch": "true", "resourceVersion": version}
        never = aiohttp.ClientTimeout(total=None)
        async with self.session.get(WORKLOADS, params=query, timeout=never, read_bufsize=1 << 24) as response:
            async for line in response.content:
                event = json.loads(line)
                self._see(event["type"], event["object"])

    def _see(self, kind: str, item: Json) -> None:
        name = item["metadata"]["name"]
        writes = self.writes.setdefault(name, [])
        match = self.pattern.match(name)
        if match:
            writes.append((time.monotonic(), self._state(item, match[1]) or ""))
        if len(writes) <= RESTLESS:
            self.last_write = time.monotonic()
        self.names_by_uid[item["metadata"]["uid"]] = name
        if kind == "DELETED":
            self.objects.pop(name, None)
        else:
            self.objects[name] = item
        if match:
            made = self.by_prefix[match[1]].answer["made"]
            made.setdefault(match[2], [_seconds(item["metadata"]["creationTimestamp"]), item["metadata"]["uid"]])

    async def _first_write(self, since: float) -> None:
        """Waits until the scheduler has decided something after this time."""
        while self.last_write <= since:
            if time.monotonic() > since + PATIENCE_SECONDS:
                raise RuntimeError(f"Kueue wrote nothing for {PATIENCE_SECONDS:.0f} s")
            await asyncio.sleep(0.1)

    async def _quiet(self, seconds: float) -> None:
        """Waits until nothing was written for so long."""
        self.last_write = max(self.last_write, time.monotonic())
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (left := self.last_write + seconds - time.monotonic()) > 0:
            if time.monotonic() > deadline:
                raise RuntimeError(f"Kueue still writes after {PATIENCE_SECONDS:.0f} s")
            await asyncio.sleep(left)

    @staticmethod
    async def _next_second() -> int:
        now = time.time()
        second = math.ceil(now)
        await asyncio.sleep(second - now + 0.01)
        return second

    async def _do(self, one: _Scenario, event: list[Any]) -> None:
        kind, name = event[0], event[1]
        path = f"{WORKLOADS}/{one.prefix}{name}"
        if kind == "submit":
            await self._request("POST", WORKLOADS, self._complete(one.workload(name, event[2])))
        elif kind == "delete":
            await self._request("DELETE", path)
            while path.rpartition("/")[2] in self.objects:
                await asyncio.sleep(0.05)
        elif kind == "priority":
            await self._request("PATCH", path, {"spec": {"priority": event[2]}})
        elif kind in ("quota", "stop"):
            one.queues[name] = {**one.queues[name], "groups" if kind == "quota" else "stopPolicy": event[2]}
            body = {"spec": one.queue(name)["spec"]}
            await self._request("PATCH", f"{PLACES['ClusterQueue']}/{one.prefix}{name}", body)
        else:
            await self._change_status(path, lambda item: _CHANGES[kind](one, item, event))

    async def _change_status(self, path: str, change: Callable[[Json], None]) -> None:
        item = self.objects[path.rpartition("/")[2]]
        for _ in range(5):
            item = json.loads(json.dumps(item))
            change(item)
            try:
                await self._request("PUT", f"{path}/status", item)
            except RuntimeError as error:
                if " 409 " not in str(error):
                    raise
                item = await self._request("GET", path)
            else:
                return
        raise RuntimeError(f"{path}: five conflicts")

    def _note(self, second: int, running: list[_Scenario]) -> None:
        """What changed in this round, and the order in which workloads got quota."""
        found: dict[str, dict[str, str]] = {one.prefix: {} for one in running}
        for name, item in self.objects.items():
            match = self.pattern.match(name)
            if match and match[1] in found:
                state = self._state(item, match[1])
                if state is not None:
                    found[match[1]][match[2]] = self._restless(name, state)
        self.writes = {}
        orders = self._orders()
        for one in running:
            after = found[one.prefix]
            changed = states.changes(one.states, after)
            times = {name: self._time_of(one.prefix + name) for name, state in changed.items() if states.is_held(state)}
            one.answer["rounds"].append({"changes": changed, "order": orders.get(one.prefix, [])})
            one.answer["times"].append(times)
            one.answer["clock"].append(second)
            one.states = after

    def _time_of(self, name: str) -> int:
        """When it was evicted, or got its quota."""
        conditions = {one["type"]: one for one in self.objects[name]["status"]["conditions"]}
        last = "Evicted" if _true(conditions, "Evicted") else "QuotaReserved"
        return _seconds(conditions[last]["lastTransitionTime"])

    def _restless(self, name: str, state: str) -> str:
        """The state, or where Kueue goes to and fro between several reasons for ever, all of them."""
        writes = self.writes.get(name, ())
        if len(writes) <= RESTLESS:
            return state
        since = time.monotonic() - QUIET_SECONDS / 2
        return states.restless([text for at, text in writes if at > since] or [state])

    def _orders(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        with self.log.open("rb") as log:
            log.seek(self.log_position)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self.log_position += len(line)
                if b"Workload assumed in the cache" in line:
                    match = self.pattern.match(json.loads(line)["workload"]["name"])
                    if match:
                        found.setdefault(match[1], []).append(match[2])
        return found

    def _state(self, item: Json, prefix: str) -> str | None:
        status = item.get("status", {})
        conditions = {one["type"]: one for one in status.get("conditions", ())}
        if _true(conditions, "Finished"):
            return None
        if "admission" not in status:
            if not item["spec"].get("active", True):
                return states.DEACTIVATED
            queue = item["spec"]["queueName"].removeprefix(f"{prefix}l")
            if self.by_prefix[prefix].queues[queue].get("stopPolicy", "None") != "None":
                return states.PENDING
            return states.pending(conditions.get("QuotaReserved", {}).get("reason", ""))
        pod_sets = [
            states.pod_set_text(
                one["name"], one["count"], {k: v.removeprefix(prefix) for k, v in one.get("flavors", {}).items()}
            )
            for one in status["admission"]["podSetAssignments"]
        ]
        if _true(conditions, "Evicted"):
            why = conditions["Evicted"]["reason"]
            if why == "Preempted":
                preempted = conditions["Preempted"]
                match = re.search(r"\(UID: ([-0-9a-f]+)", preempted["message"])
                assert match, preempted["message"]
                why += f" {preempted['reason']} by {self.names_by_uid[match[1]].removeprefix(prefix)}"
            return states.held(states.EVICTED, pod_sets, why)
        return states.held(states.ADMITTED if _true(conditions, "Admitted") else states.RESERVED, pod_sets)

    def _finish(self) -> None:
        """Times relative to the start, uids as ranks."""
        for one in self.scenarios:
            start = one.answer["clock"][0]
            one.answer["clock"] = [second - start for second in one.answer["clock"]]
            one.answer["times"] = [
                {name: second - start for name, second in times.items()} for times in one.answer["times"]
            ]
            uids = sorted(uid for _, uid in one.answer["made"].values())
            known = submitted(one.case)
            one.answer["made"] = {
                name: [created - start, uids.index(uid)]
                for name, (created, uid) in sorted(one.answer["made"].items())
                if name in known
            }

    async def _clean(self) -> None:
        """Takes away what an earlier batch left."""
        for path in (WORKLOADS, *reversed(PLACES.values())):
            await self._request("DELETE", path)
        deadline = time.monotonic() + PATIENCE_SECONDS
        for path in (WORKLOADS, *PLACES.values()):
            while (await self._request("GET", f"{path}?limit=1"))["items"]:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{path} is not empty after {PATIENCE_SECONDS:.0f} s")
                await asyncio.sleep(0.3)


def _seconds(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())


def _short(item: Json) -> str:
    return str(item["metadata"]["name"]).rpartition("-")[2]


def _now() -> str:
    return datetime.fromtimestamp(time.time(), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _true(conditions: dict[str, Json], kind: str) -> bool:
    return kind in conditions and conditions[kind]["status"] == "True"


def _set(item: Json, kind: str, status: str, reason: str, message: str) -> None:
    conditions = item["status"].setdefault("conditions", [])
    old = next((one for one in conditions if one["type"] == kind), None)
    same = old is not None and old["status"] == status
    since = old["lastTransitionTime"] if old is not None and same else _now()
    new = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if old is None:
        conditions.append(new)
    else:
        old.update(new)


def _end(one: _Scenario, item: Json, event: list[Any]) -> None:
    _set(item, "Finished", "True", "Succeeded", "by the script")


def _release(one: _Scenario, item: Json, event: list[Any]) -> None:
    """What Kueue's job reconciler does when the pods of an evicted workload are gone."""
    evicted = next(c for c in item["status"]["conditions"] if c["type"] == "Evicted")
    again = evicted["reason"] in ("Preempted", "NodeFailures")
    _set(item, "Requeued", "True" if again else "False", evicted["reason"], evicted["message"])
    _set(item, "QuotaReserved", "False", "PendingEvaluation", evicted["message"])
    if any(c["type"] == "Admitted" for c in item["status"]["conditions"]):
        _set(item, "Admitted", "False", "NoReservation", "The workload has no reservation")
    item["status"].pop("admission", None)


def _check(one: _Scenario, item: Json, event: list[Any]) -> None:
    for check in item["status"].get("admissionChecks", ()):
        check.update(state=event[2], message="by the script", lastTransitionTime=_now())


def _reclaim(one: _Scenario, item: Json, event: list[Any]) -> None:
    pods = reclaimed(one.case, event[1])
    assert pods is not None
    item["status"]["reclaimablePods"] = [{"name": pods[0], "count": pods[1]}]


_CHANGES = {"finish": _end, "release": _release, "check": _check, "reclaim": _reclaim}
