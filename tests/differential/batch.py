"""Scenarios on the real Kueue: hundreds at once in one control plane, each in its own cohort tree.

There are no Jobs: the script takes the part of the job integration (finishes workloads, gives back the quota of evicted
ones) and of the admission check's controller. All scenarios do their rounds together; a round ends when Kueue does
nothing new any more: no cycle with another result, no change of a workload that the scheduler has not yet seen.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Iterable
from typing import Any

import aiohttp
from tests.decide import expand
from tests.differential import states
from tests.differential.lab import API, AT_ONCE, Lab
from tests.differential.observed import CHANGES, now_text, seconds, state_of, time_of
from tests.differential.parts import DEPTHS
from tests.differential.settings import WITH_NODES, quiet_seconds
from tests.differential.steps import MOST_ROUNDS, next_event, submitted
from tests.differential.topologies import BROKEN
from tests.differential.watch import Scenario, Watch

Json = dict[str, Any]

PLACES = {
    "Namespace": "/api/v1/namespaces",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "LimitRange": "/api/v1/namespaces/{}/limitranges",
    "Topology": f"{API}/topologies",
    "ResourceFlavor": f"{API}/resourceflavors",
    "Cohort": f"{API}/cohorts",
    "AdmissionCheck": f"{API}/admissionchecks",
    "ClusterQueue": f"{API}/clusterqueues",
    "LocalQueue": f"{API}/namespaces/{{}}/localqueues",
}
WORKLOADS = f"{API}/namespaces/{{}}/workloads"
NODES = "/api/v1/nodes"
LONGEST_ROUND_SECONDS = 900.0
_NAMED_BY = {"ResourceFlavor": "resourceFlavor ", "Cohort": "cohort ", "ClusterQueue": "clusterQueue ",
             "LocalQueue": "localQueue "}  # fmt: skip
_SEEN_AS = {"submit": "Workload create event", "delete": "Workload delete event", "quota": "ClusterQueue update event",
            "stop": "ClusterQueue update event", "hold": "Queue update event", "node": "Reconcile Node"}  # fmt: skip


def answers(lab: Lab, cases: list[Json], batch: str) -> list[Json]:
    """Kueue's answers to scenarios that all run at once. `batch` is a name no other batch on this cluster has."""
    return asyncio.run(_answer(lab, cases, batch))


async def _answer(lab: Lab, cases: list[Json], batch: str) -> list[Json]:
    async with lab.session() as session:
        return await _Batch(session, lab, cases, batch).run()


class _Batch:
    def __init__(self, session: aiohttp.ClientSession, lab: Lab, cases: list[Json], batch: str) -> None:
        self.session = session
        self.quiet = quiet_seconds(lab.setting)
        name = f"{batch}-gate"
        has_nodes = lab.setting in WITH_NODES
        self.gate: Json = {"topologyName": name, "nodeLabels": {"gate": name}} if has_nodes else {}
        """A queue with one flavor that has no topology would refuse pods that ask for none."""
        self.batch = batch
        self.scenarios = [Scenario(case, f"{batch}-{n}-", batch) for n, case in enumerate(cases)]
        self.watch = Watch(lab.log(), self.scenarios, batch, self._make_ready)
        self.limit = asyncio.Semaphore(AT_ONCE)
        self.names_by_uid: dict[str, str] = {}
        self.base = 0
        self.tasks: list[asyncio.Task[None]] = []

    async def run(self) -> list[Json]:
        await self._create()
        await self._until_known()
        self.base = await self._next_second()
        gate = expand.flavor(f"{self.batch}-gate", self.gate)
        self.watch.last_active = time.time() + 2.0
        await self._request("POST", PLACES["ResourceFlavor"], _complete(gate))
        await self._until_quiet()
        await self._note(self.scenarios)
        for _ in range(MOST_ROUNDS):
            ended = [one for one in self.scenarios if not one.over and self._plan(one)]
            await self._all(self._rest(one, name) for one in ended for name in one.parts.queues)
            running = [one for one in self.scenarios if not one.over]
            if not running:
                break
            await self._next_second()
            self.watch.last_active = time.time()
            await self._all(self._do(one) for one in running if one.event is not None)
            await self._until_quiet()
            await self._note(running)
        await self._close()
        for one in self.scenarios:
            uids = sorted(uid for _, uid in one.answer["made"].values())
            known = submitted(one.case)
            one.answer["made"] = {
                name: [created - self.base, uids.index(uid)]
                for name, (created, uid) in sorted(one.answer["made"].items())
                if name in known
            }
        return [one.answer for one in self.scenarios]

    @staticmethod
    def _plan(one: Scenario) -> bool:
        """What happens to the scenario next; whether that is nothing more."""
        one.event, result = next_event(one.case, one.states, one.done)
        one.over = result < 0
        one.done = max(result, 0)
        return one.over

    async def _rest(self, one: Scenario, queue: str) -> None:
        """Lets Kueue rest from a queue whose head it would look at for ever."""
        if one.parts.queues[queue]["queueingStrategy"] == "StrictFIFO":
            path = f"{PLACES['ClusterQueue']}/{one.prefix}{queue}"
            await self._request("PATCH", path, {"spec": {"stopPolicy": "Hold"}})

    async def _create(self) -> None:
        """Kinds in the order in which they refer to each other; workloads one after the other within a scenario."""
        by_kind: dict[str, list[Json]] = {kind: [] for kind in PLACES}
        if self.gate:
            levels = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
            topology = {"kind": "Topology", "metadata": {"name": self.gate["topologyName"]}, "spec": levels}
            by_kind["Topology"].append(_complete(topology))
        for one in self.scenarios:
            for item in one.parts.objects():
                by_kind[item["kind"]].append(_complete(item))
        await self._all(self._create_node(node) for one in self.scenarios for node in one.parts.nodes())
        for kind, items in by_kind.items():
            for depth in range(3) if kind == "Cohort" else (0,):
                some = [item for item in items if kind != "Cohort" or DEPTHS[_short(item)] == depth]
                await self._all(self._request("POST", _place(item), item) for item in some)
                await asyncio.sleep(1.0 if kind == "Cohort" else 0.0)
        await self._all(self._activate(item) for item in by_kind["AdmissionCheck"])
        waiting = [(one, list(one.case["workloads"].items())) for one in self.scenarios]
        for number in range(max(len(workloads) for _, workloads in waiting)):
            await self._next_second()
            await self._all(
                self._submit(one, *workloads[number]) for one, workloads in waiting if number < len(workloads)
            )

    async def _until_known(self) -> None:
        """Waits until Kueue has seen all objects, and a little longer for what it has to do about them."""
        result = {
            _NAMED_BY[item["kind"]] + item["metadata"]["name"]
            for one in self.scenarios
            for item in one.parts.objects()
            if item["kind"] in _NAMED_BY
        }
        result.update(f"workload {one.prefix}{name}" for one in self.scenarios for name in one.case["workloads"])
        deadline = time.monotonic() + LONGEST_ROUND_SECONDS
        while result:
            for line in self.watch.log.read():
                for part in ("resourceFlavor", "clusterQueue", "localQueue", "workload"):
                    if isinstance(line.data.get(part), dict):
                        result.discard(f"{part} {line.data[part]['name']}")
                        break
                else:
                    result.discard(f"cohort {line.data.get('name')}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"Kueue has not seen {sorted(result)[:5]} after {LONGEST_ROUND_SECONDS:.0f} s")
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.5)
        list(self.watch.log.read())

    async def _create_node(self, node: Json) -> None:
        """The API server taints new nodes as not ready; that is taken away again."""
        path = f"{NODES}/{node['metadata']['name']}"
        await self._request("POST", NODES, node)
        await self._request("PATCH", f"{path}/status", {"status": node["status"]})
        await self._request("PATCH", path, {"spec": {"taints": node["spec"].get("taints")}})

    async def _change_node(self, path: str, state: str) -> None:
        if state == "gone":
            await self._request("DELETE", path)
            return
        status = (await self._request("GET", path))["status"]
        [ready] = status["conditions"]
        ready.update(status="False" if state == "notReady" else "True", lastTransitionTime=now_text())
        await self._request("PATCH", f"{path}/status", {"status": {"conditions": [ready]}})
        await self._request("PATCH", path, {"spec": {"taints": [BROKEN] if state == "tainted" else None}})

    async def _submit(self, one: Scenario, name: str, short: Json) -> None:
        result = await self._request("POST", _workloads(one), _complete(one.parts.workload(name, short)))
        metadata = result["metadata"]
        self.names_by_uid[metadata["uid"]] = metadata["name"]
        one.answer["made"][name] = [seconds(metadata["creationTimestamp"]), metadata["uid"]]

    async def _activate(self, check: Json) -> None:
        path = f"{PLACES['AdmissionCheck']}/{check['metadata']['name']}/status"
        active = {
            "type": "Active",
            "status": "True",
            "reason": "Active",
            "message": "",
            "lastTransitionTime": now_text(),
        }
        await self._request("PATCH", path, {"status": {"conditions": [active]}})

    async def _close(self) -> None:
        """Takes the gate's flavor away: Kueue leaves all queues of the batch alone from now on."""
        path = f"{PLACES['ResourceFlavor']}/{self.batch}-gate"
        await self._request("DELETE", path)
        await self._request("PATCH", path, {"metadata": {"finalizers": None}})

    async def _all(self, jobs: Iterable[Awaitable[Any]]) -> None:
        await asyncio.gather(*jobs)

    async def _request(self, method: str, path: str, body: Json | None = None) -> Json:
        merge = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        async with self.limit, self.session.request(method, path, json=body, headers=merge) as response:
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {await response.text()}")
            answer: Json = await response.json()
            return answer

    @staticmethod
    async def _next_second() -> int:
        now = time.time()
        second = math.ceil(now)
        await asyncio.sleep(second - now + 0.01)
        return second

    async def _until_quiet(self) -> None:
        deadline = time.monotonic() + LONGEST_ROUND_SECONDS
        while True:
            self.watch.read()
            if self.watch.is_idle(self.quiet):
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"not quiet after {LONGEST_ROUND_SECONDS:.0f} s: {sorted(self.watch.unseen)[:5]}")
            await asyncio.sleep(0.1)

    def _make_ready(self, one: Scenario, name: str) -> None:
        job = self._change_status(one, f"{_workloads(one)}/{one.prefix}{name}", ["ready", name])
        self.tasks.append(asyncio.create_task(job))

    async def _do(self, one: Scenario) -> None:
        assert one.event is not None
        kind, name = one.event[0], one.event[1]
        one.waits_for = (_SEEN_AS.get(kind, "Workload update event"), one.prefix + name, time.time())
        path = f"{_workloads(one)}/{one.prefix}{name}"
        if kind == "submit":
            await self._submit(one, name, one.event[2])
        elif kind == "delete":
            await self._request("DELETE", path)
        elif kind == "node":
            await self._change_node(f"{NODES}/{one.prefix}{name}", one.event[2])
        elif kind == "priority":
            await self._change_spec(one, path, {"priority": one.event[2]})
        elif kind == "scale":
            pod_sets = (await self._request("GET", path))["spec"]["podSets"]
            pod_sets[0]["count"] = one.event[2]
            await self._change_spec(one, path, {"podSets": pod_sets})
        elif kind in ("quota", "stop"):
            key = "groups" if kind == "quota" else "stopPolicy"
            one.parts.queues[name] = {**one.parts.queues[name], key: one.event[2]}
            spec = one.parts.queue(name)["spec"]
            await self._change_spec(one, f"{PLACES['ClusterQueue']}/{one.prefix}{name}", spec)
        elif kind == "hold":
            (one.stopped_locals.discard if one.event[2] == "None" else one.stopped_locals.add)(name)
            place = PLACES["LocalQueue"].format(one.parts.namespace)
            await self._change_spec(one, f"{place}/{one.prefix}{name}", {"stopPolicy": one.event[2]})
        else:
            await self._change_status(one, path, one.event)

    async def _change_spec(self, one: Scenario, path: str, spec: Json) -> None:
        before = await self._request("GET", path)
        after = await self._request("PATCH", path, {"spec": spec})
        if before["metadata"]["generation"] == after["metadata"]["generation"]:
            self._changes_nothing(one)

    @staticmethod
    def _changes_nothing(one: Scenario) -> None:
        """Kueue will not see the event, because there is none."""
        one.event = one.waits_for = None

    async def _change_status(self, one: Scenario, path: str, event: list[Any]) -> None:
        for _ in range(8):
            item = await self._request("GET", path)
            version = item["metadata"]["resourceVersion"]
            CHANGES[event[0]](one.case, item, event)
            try:
                after = await self._request("PUT", f"{path}/status", item)
            except RuntimeError as error:
                if " 409 " not in str(error):
                    raise
            else:
                if after["metadata"]["resourceVersion"] == version and event is one.event:
                    self._changes_nothing(one)
                return
        raise RuntimeError(f"{path}: eight conflicts")

    async def _note(self, running: list[Scenario]) -> None:
        """What changed in this round, and what Kueue did in it."""
        result: dict[str, dict[str, Json]] = {one.prefix: {} for one in running}
        end = round((time.time() - self.base) * 1000)
        listed = await self._request("GET", f"{API}/workloads?labelSelector=batch%3D{self.batch}")
        self.watch.read()
        for item in listed["items"]:
            match = self.watch.match(item["metadata"]["name"])
            if match and match[0].prefix in result:
                result[match[0].prefix][match[1]] = item
        for one in running:
            after = {}
            for name, item in result[one.prefix].items():
                local = item["spec"]["queueName"].removeprefix(one.prefix)
                queue = one.parts.queues[one.case["localQueues"][local]]
                stopped = queue.get("stopPolicy", "None") != "None" or local in one.stopped_locals
                state = state_of(item, one.prefix, self.names_by_uid, stopped=stopped)
                if state is not None:
                    after[name] = state
            changed = states.changes(one.states, after)
            times = {
                name: time_of(result[one.prefix][name]) - self.base
                for name, state in changed.items()
                if states.is_held(state)
            }
            trace = one.trace.take(self.base, self.watch.first_cycle)
            one.answer["rounds"].append(
                {"event": one.event, "end": end, "trace": trace, "changes": changed, "times": times}
            )
            one.states = after
            one.getting_ready = {}
        await asyncio.gather(*self.tasks)
        self.tasks.clear()


def _complete(item: Json) -> Json:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", **item}


def _place(item: Json) -> str:
    return PLACES[item["kind"]].format(item["metadata"].get("namespace"))


def _workloads(one: Scenario) -> str:
    return WORKLOADS.format(one.parts.namespace)


def _short(item: Json) -> str:
    return str(item["metadata"]["name"]).rpartition("-")[2]
