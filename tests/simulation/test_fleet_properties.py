"""Promises of a whole fleet that hold in every history: nothing over quota, nothing twice, nothing lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.simulation.fleets import EUROPE, GPU, US, dispatched_data, fleet_data, job, workload_file

from drawn import examples
from kueue_admission.decide.events import ActiveChanged
from kueue_admission.decide.model import Objects, Workload
from kueue_admission.decide.quota.cohort_tree import raw_available
from kueue_admission.explain.diagnosis import diagnose, only_relevant
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.distributions import exponential
from kueue_admission.simulate.records import State
from kueue_admission.simulate.result import Result
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_simulation.fleet import first_of_each, fleet_run, parse_fleet_objects
from kueue_fleet.fleet_simulation.fleet_run import FleetRun

WORKERS = (EUROPE, US)
TEAMS = ("team-a", "team-eu")
DISPATCHERS = ("AllAtOnce", "Incremental", "External")
Step = tuple[Any, ...]


def data_of(dispatcher: str, preemption: str, gpus: int) -> dict[str, Any]:
    """Two queues in a cohort; the second may borrow one GPU."""
    data = dispatched_data(widenAfter="1m", giveUpAfter="10m") if dispatcher == "External" else fleet_data(nodes=8)
    if dispatcher == "Incremental":
        data["multiKueue"] |= {"dispatcher": "Incremental", "incremental": {"stepSize": 1}}
    data["workloadPriorityClasses"] = [{"name": "p0", "value": 0}, {"name": "p1", "value": 10}]
    first = data["clusterQueues"][0] | {"cohortName": "all", "preemption": {"withinClusterQueue": preemption}}
    quotas = first["resourceGroups"][0]["flavors"][0]["resources"]
    quotas[0]["nominalQuota"] = gpus
    resources = [
        {"name": GPU, "nominalQuota": 1, "borrowingLimit": 1},
        *({"name": quota["name"], "nominalQuota": quota["nominalQuota"]} for quota in quotas[1:]),
    ]
    group = {"coveredResources": [GPU, "cpu", "memory"], "flavors": [{"name": "l4-spot", "resources": resources}]}
    second = {"name": "small", "namespaceSelector": {}, "cohortName": "all", "resourceGroups": [group]}
    data["cohorts"] = [{"name": "all"}]
    data["clusterQueues"] = [first, second]
    data["teams"][0]["localQueues"].append({"name": "small", "clusterQueue": "small"})
    return data


class Fleets:
    """Parsed once for all examples: fleets, their objects, and the workloads that can be submitted."""

    def __init__(self) -> None:
        self._fleets: dict[tuple[str, str, int], tuple[FleetSpec, dict[str, Objects]]] = {}
        self._workloads: dict[tuple[str, str, int, int], Workload] = {}

    def get(self, dispatcher: str, preemption: str, gpus: int) -> tuple[FleetSpec, dict[str, Objects]]:
        key = dispatcher, preemption, gpus
        if key not in self._fleets:
            fleet = parse_fleet(data_of(*key))
            objects = {name: result.objects for name, result in parse_fleet_objects(fleet, "manager", []).items()}
            self._fleets[key] = fleet, objects
        return self._fleets[key]

    def workload(self, team: str, queue: str, pods: int, priority: int) -> Workload:
        key = team, queue, pods, priority
        if key not in self._workloads:
            entry = job("x", namespace=team, queue=queue, pods=pods, priorityClass=f"p{priority}")
            file = workload_file([entry])
            fleet, _ = self.get("AllAtOnce", "Never", 4)
            (result,) = parse_fleet_objects(fleet, "manager", [], first_of_each(file.jobs))["manager"].workloads
            self._workloads[key] = result
        return self._workloads[key]


FLEETS = Fleets()


class World:
    """A fleet under way; every step is one method, so that the same steps can be taken again."""

    def __init__(self, dispatcher: str, preemption: str, seed: int) -> None:
        self.kind = dispatcher, preemption
        self.fleet, _ = FLEETS.get(dispatcher, preemption, 4)
        waits = [{"seconds": "exponential(120)"}]
        reclaims = [{"flavor": "l4-spot", "perHour": 2, "back": 30}]
        file = workload_file([job("never", start=1e9)], waits=waits, reclaims=reclaims)
        delays = Delays(release=exponential(1), stop=exponential(5))
        self.run: FleetRun = fleet_run(self.fleet, file, delays, seed=seed)
        self.run.jobs.clear()
        self.now = 0.0
        self.gpus = 4

    def submit(self, number: int, team: str, queue: str, pods: int, priority: int, seconds: float | None) -> None:
        shape = FLEETS.workload(team, queue, pods, priority)
        name = f"job-{number}"
        self.run.expect(replace(shape, name=name, uid=name, created=self.now), seconds)
        self.wait(0)

    def wait(self, seconds: float) -> None:
        self.now = self.run.drive(self.now, self.now + seconds).at

    def finish(self, key: str) -> None:
        self.run.finish(key, self.now)
        self.wait(0)

    def activate(self, key: str, active: bool) -> None:
        self.run.handle("manager", ActiveChanged(self.now, key, active))
        self.wait(0)

    def resize(self, gpus: int) -> None:
        self.gpus = gpus
        self.run.change(FLEETS.get(*self.kind, gpus)[1], self.now)
        self.wait(0)

    def lose(self, worker: str) -> None:
        self.run.lose(worker, self.now)
        self.wait(0)

    def reach(self, worker: str) -> None:
        self.run.reach(worker, self.now)
        self.wait(0)

    def trace(self) -> dict[str, Any]:
        return Result(tuple(self.run.settle())).as_json()


class FleetHistory(RuleBasedStateMachine):
    """Submit, finish, evict, resize, lose a cluster, let time pass."""

    @initialize(
        dispatcher=st.sampled_from(DISPATCHERS),
        preemption=st.sampled_from(("Never", "LowerPriority")),
        seed=st.integers(0, 1000),
    )
    def start(self, dispatcher: str, preemption: str, seed: int) -> None:
        self.made = dispatcher, preemption, seed
        self.world = World(*self.made)
        self.steps: list[Step] = []
        self.submitted: list[str] = []
        self.resized = False

    def take(self, *step: Any) -> None:
        self.steps.append(step)
        getattr(self.world, step[0])(*step[1:])

    def running(self) -> list[str]:
        return [key for key, result in self.world.run.jobs.items() if result.record.state is State.ADMITTED]

    @rule(
        where=st.sampled_from((("team-a", "gpu"), ("team-a", "small"), ("team-eu", "gpu"))),
        pods=st.integers(1, 3),
        priority=st.integers(0, 1),
        seconds=st.none() | st.integers(10, 2000),
    )
    def submit(self, where: tuple[str, str], pods: int, priority: int, seconds: float | None) -> None:
        self.submitted.append(f"{where[0]}/job-{len(self.submitted)}")
        self.take("submit", len(self.submitted) - 1, *where, pods, priority, seconds)

    @rule(seconds=st.sampled_from((0.5, 1, 30, 400, 1000)))
    def time_passes(self, seconds: float) -> None:
        self.take("wait", seconds)

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self.take("finish", data.draw(st.sampled_from(sorted(self.running()))))

    @precondition(
        lambda self: any(key in self.world.run.clusters["manager"].engine.workloads for key in self.submitted)
    )
    @rule(data=st.data(), active=st.booleans())
    def evict(self, data: st.DataObject, active: bool) -> None:
        workloads = self.world.run.clusters["manager"].engine.workloads
        key = data.draw(st.sampled_from(sorted(workloads)))
        # Kueue counts a workload again that is activated while its pods still stop, whoever has its quota by then.
        if workloads[key].workload.active is not active and not (active and workloads[key].is_reserved):
            self.take("activate", key, active)

    @rule(gpus=st.integers(2, 7))
    def resize(self, gpus: int) -> None:
        self.resized = self.resized or gpus < self.world.gpus
        self.take("resize", gpus)

    @rule(worker=st.sampled_from(WORKERS))
    def lose_a_cluster(self, worker: str) -> None:
        self.take("reach" if worker in self.world.run.lost else "lose", worker)

    @invariant()
    def usage_is_never_above_nominal_plus_borrowable(self) -> None:
        fits = all(
            raw_available(node, fr) >= 0
            for cluster in self.world.run.clusters.values()
            for node in cluster.engine.cache.queues.values()
            for fr in node.nominal
        )
        # What was admitted before a quota was lowered stays; from when it fits again on, it has to fit.
        assert fits or self.resized
        self.resized = self.resized and not fits

    @invariant()
    def nothing_is_admitted_twice(self) -> None:
        run = self.world.run
        for key, result in run.jobs.items():
            where = [
                name
                for name in WORKERS
                if name not in run.lost
                and key in run.clusters[name].engine.workloads
                and run.clusters[name].engine.workloads[key].is_admitted
                and not run.clusters[name].engine.workloads[key].is_evicted
            ]
            assert len(where) <= 1
            assert sum(item.ended_at is None for item in result.record.runs) <= 1
            if result.record.state is State.ADMITTED and result.winner not in run.lost:
                assert where in ([result.winner], [])

    @invariant()
    def nothing_is_lost(self) -> None:
        run = self.world.run
        assert sorted(run.jobs) == sorted(self.submitted)
        for key, result in run.jobs.items():
            known = key in run.clusters["manager"].engine.workloads
            assert known or result.record.finished_at is not None

    @invariant()
    def jobs_are_only_offered_to_workers_that_may_have_them(self) -> None:
        for key, result in self.world.run.jobs.items():
            allowed = set(self.world.fleet.dispatch_workers(result.record.cluster_queue))
            if self.made[0] == "External" and key.startswith("team-eu/"):
                allowed = {EUROPE}
            assert set(result.offered) <= allowed
            assert result.winner is None or result.winner in allowed

    @invariant()
    def the_explanation_agrees_with_the_decision(self) -> None:
        if not self.steps or len(self.steps) % 7:
            return
        engine = self.world.run.clusters["manager"].engine
        snapshot = engine.snapshot()
        for key, info in engine.workloads.items():
            result = diagnose(only_relevant(snapshot, key), key)
            reserved = "Admitted" if info.is_admitted else "QuotaReserved" if info.is_reserved else "Pending"
            assert result.state == ("Evicted" if info.is_reserved and info.is_evicted else reserved)
            shape = engine.pending(info.cluster_queue).parked_for(key) if result.state == "Pending" else None
            if shape is not None and not info.is_evicted and engine.next_timer() is None:
                assert result.reason == shape

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        again = World(*self.made)
        for step in self.steps:
            getattr(again, step[0])(*step[1:])
        assert again.trace() == self.world.trace()


FleetHistory.TestCase.settings = settings(
    max_examples=examples(25), stateful_step_count=30, deadline=None, print_blob=True
)
TestFleetHistory = FleetHistory.TestCase
