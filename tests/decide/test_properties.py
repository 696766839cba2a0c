"""Promises that hold in every history: nothing over quota, nothing twice, nothing lost, always the same."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.decide.build import cpu_group, job, objects, queue

from drawn import examples
from kueue_admission.api.cluster_queue import (
    ClusterQueuePreemption,
    FlavorFungibility,
    FungibilityPolicy,
    FungibilityPreference,
    QueueingStrategy,
    ReclaimPolicy,
    WithinPolicy,
)
from kueue_admission.decide.decisions import Admitted, Decision, Evicted, QuotaReserved, Released
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import (
    CycleStarted,
    Event,
    Finished,
    ObjectsChanged,
    PodsStopped,
    Submitted,
    TimePassed,
)
from kueue_admission.decide.model import (
    Cohort,
    Configuration,
    FairSharingStrategy,
    FlavorQuotas,
    Objects,
    ResourceGroup,
    ResourceQuota,
)
from kueue_admission.decide.queue.pending import Place
from kueue_admission.decide.quota.cohort_tree import TreeNode, add_usage, available, raw_available, remove_usage
from kueue_admission.decide.scheduler.cache import Cache, NoPlaces

FLAVORS = ("spot", "on-demand")
NAMES = ("a", "b", "c")


def limits(cores: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(0, cores).map(lambda n: n * 1000)


@st.composite
def quotas(draw: st.DrawFn) -> ResourceGroup:
    flavors = []
    for name in FLAVORS:
        nominal = draw(st.integers(0, 6))
        quota = ResourceQuota(nominal * 1000, draw(limits(6)), draw(limits(nominal)))
        flavors.append(FlavorQuotas(name, (("cpu", quota),)))
    return ResourceGroup(("cpu",), tuple(flavors))


preemptions = st.builds(
    ClusterQueuePreemption,
    within_cluster_queue=st.sampled_from(get_args(WithinPolicy)),
    reclaim_within_cohort=st.sampled_from(get_args(ReclaimPolicy)),
)
fungibilities = st.builds(
    FlavorFungibility.model_construct,
    when_can_borrow=st.sampled_from(get_args(FungibilityPolicy)),
    when_can_preempt=st.sampled_from(get_args(FungibilityPolicy)),
    preference=st.none() | st.sampled_from(get_args(FungibilityPreference)),
)


@st.composite
def clusters(draw: st.DrawFn, *, fair: bool | None = None) -> Objects:
    """Three queues under two cohorts, one below the other."""
    queues = [
        queue(
            name,
            cohort=draw(st.sampled_from(("top", "below"))),
            groups=(draw(quotas()),),
            preemption=draw(preemptions),
            fungibility=draw(fungibilities),
            fair_weight=draw(st.sampled_from((0.0, 1.0, 2.0))),
            queueing_strategy=draw(st.sampled_from(get_args(QueueingStrategy))),
        )
        for name in NAMES
    ]
    is_fair = draw(st.booleans()) if fair is None else fair
    configuration = Configuration(
        fair_sharing=tuple(FairSharingStrategy) if is_fair else None, wait_for_pods_ready=None
    )
    cohorts = (Cohort("below", "top", (draw(quotas()),)), Cohort("top"))
    return objects(*queues, configuration=configuration, cohorts=cohorts)


def check_books(cache: Cache) -> None:
    """The usage in the tree is what the workloads hold, and what a cohort holds is what its children borrow."""
    for node in cache.queues.values():
        held: dict[int, int] = {}
        for info in node.workloads.values():
            for fr, amount in info.usage:
                held[fr] = held.get(fr, 0) + amount
        assert {fr: n for fr, n in node.usage.items() if n} == {fr: n for fr, n in held.items() if n}
    for cohort in cache.cohorts.values():
        for fr in cohort.subtree:
            borrowed = sum(max(0, m.usage.get(fr, 0) - m.local.get(fr, 0)) for m in cohort.members)
            assert cohort.usage.get(fr, 0) == borrowed


class History(RuleBasedStateMachine):
    """Any sequence of events; a driver that only stops evicted pods when it feels like it."""

    @initialize(made=clusters())
    def start(self, made: Objects) -> None:
        self.engine = Engine(made)
        self.now = 0.0
        self.count = 0
        self.holding: set[str] = set()
        self.alive: set[str] = set()
        self.fixed_quota = True

    def _do(self, event: Event) -> list[Decision]:
        decisions = self.engine.handle(event)
        for decision in decisions:
            if isinstance(decision, QuotaReserved):
                assert decision.key not in self.holding, "it has quota already"
                self.holding.add(decision.key)
            elif isinstance(decision, Released):
                self.holding.discard(decision.key)
            elif isinstance(decision, Admitted | Evicted):
                assert decision.key in self.holding
        return decisions

    @rule(to=st.sampled_from(NAMES), cores=st.integers(1, 5), priority=st.integers(0, 3))
    def submit(self, to: str, cores: int, priority: int) -> None:
        self.count += 1
        result = job(f"w{self.count:03}", cores, to, priority=priority, created=self.now)
        self.alive.add(result.key)
        self._do(Submitted(self.now, result))

    @rule()
    def cycle(self) -> None:
        before = dict(self.engine.cache.cohorts["top"].subtree)
        self._do(CycleStarted(self.now))
        assert before == self.engine.cache.cohorts["top"].subtree

    @rule(seconds=st.sampled_from((0.5, 1.0, 90.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._do(TimePassed(self.now))

    @precondition(lambda self: self.holding)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        running = sorted(k for k in self.holding if not self.engine.workloads[k].is_evicted)
        if running:
            key = data.draw(st.sampled_from(running))
            self.alive.discard(key)
            self.holding.discard(key)
            self._do(Finished(self.now, key))

    @precondition(lambda self: self.holding)
    @rule()
    def stop_evicted(self) -> None:
        for key in sorted(k for k in self.holding if self.engine.workloads[k].is_evicted):
            self._do(PodsStopped(self.now, key))

    @rule(made=clusters())
    def resize(self, made: Objects) -> None:
        self.fixed_quota = False
        kept = Objects(
            cluster_queues=made.cluster_queues,
            local_queues=made.local_queues,
            cohorts=made.cohorts,
            flavors=made.flavors,
            configuration=self.engine.objects.configuration,
        )
        self._do(ObjectsChanged(self.now, kept))

    @invariant()
    def the_books_are_right(self) -> None:
        check_books(self.engine.cache)

    @invariant()
    def no_queue_uses_more_than_it_ever_could(self) -> None:
        if self.fixed_quota:
            for node in self.engine.cache.queues.values():
                for fr, used in node.usage.items():
                    assert used <= node.potential[fr]
            top = self.engine.cache.cohorts["top"]
            assert all(raw_available(top, fr) >= 0 for fr in top.subtree)

    @invariant()
    def nothing_is_lost(self) -> None:
        assert set(self.engine.workloads) == self.alive
        for key in self.alive - self.holding:
            info = self.engine.workloads[key]
            place = self.engine.pending(info.cluster_queue).place_of(key)
            assert place in (Place.COMPETING, Place.PARKED, Place.HELD)
        for key in self.holding:
            info = self.engine.workloads[key]
            assert key in self.engine.cache.queues[info.cluster_queue].workloads
            assert key not in self.engine.pending(info.cluster_queue)


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)

arrivals = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(1, 4), st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=12
)


def play(made: Objects, jobs: list[tuple[str, int, int, int]], order: list[int]) -> list[Decision]:
    """Submit the jobs in `order`, then run cycles in which evicted pods stop at once."""
    engine = Engine(made)
    for index in order:
        to, cores, priority, created = jobs[index]
        engine.handle(Submitted(10, job(f"w{index:02}", cores, to, priority=priority, created=float(created))))
    result: list[Decision] = []
    for step in range(8):
        decisions = engine.handle(CycleStarted(10 + step))
        result += decisions
        for decision in decisions:
            if isinstance(decision, Evicted):
                engine.handle(PodsStopped(10 + step, decision.key))
    return result


class TestDeterminism:
    @settings(max_examples=examples(30), deadline=None)
    @given(clusters(), arrivals, st.randoms(use_true_random=False))
    def test_the_order_of_irrelevant_input_does_not_matter(
        self, made: Objects, jobs: list[tuple[str, int, int, int]], rng: Any
    ) -> None:
        order = list(range(len(jobs)))
        first = play(made, jobs, order)
        rng.shuffle(order)
        queues, cohorts = list(made.cluster_queues), list(made.cohorts)
        rng.shuffle(queues)
        rng.shuffle(cohorts)
        shuffled = Objects(
            cluster_queues=tuple(queues),
            local_queues=made.local_queues[::-1],
            cohorts=tuple(cohorts),
            flavors=made.flavors[::-1],
            configuration=made.configuration,
        )
        assert play(shuffled, jobs, order) == first


class TestUsage:
    @settings(max_examples=examples(60), deadline=None)
    @given(clusters(), st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 8000)), max_size=12), st.data())
    def test_removing_is_the_inverse_of_adding(
        self, made: Objects, changes: list[tuple[str, int]], data: st.DataObject
    ) -> None:
        cache = Cache(made, NoPlaces())
        fr = cache.ids.id("spot", "cpu")
        for name, amount in changes:
            add_usage(cache.queues[name], fr, amount)
        for name, amount in data.draw(st.permutations(changes)):
            remove_usage(cache.queues[name], fr, amount)
        nodes: list[TreeNode] = [*cache.queues.values(), *cache.cohorts.values()]
        assert all(node.usage.get(fr, 0) == 0 for node in nodes)

    @settings(max_examples=examples(60), deadline=None)
    @given(clusters(), st.sampled_from(NAMES), st.integers(0, 8000))
    def test_what_is_available_can_be_used_and_no_more(self, made: Objects, name: str, used: int) -> None:
        cache = Cache(made, NoPlaces())
        fr = cache.ids.id("spot", "cpu")
        other = next(n for n in NAMES if n != name)
        add_usage(cache.queues[other], fr, min(used, available(cache.queues[other], fr)))
        free = available(cache.queues[name], fr)
        add_usage(cache.queues[name], fr, free)
        assert available(cache.queues[name], fr) == 0
        assert free <= cache.queues[name].potential[fr]


def test_groups_in_the_builder_have_every_flavor() -> None:
    assert [flavor.flavor for flavor in cpu_group(spot=1, on_demand=2).flavors] == ["spot", "on-demand"]
