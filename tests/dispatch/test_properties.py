"""What holds of every decision: nominated clusters are configured and allowed, nothing is counted twice, lists only
grow."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.dispatch.build import ASIA, EU, US, job, objects, running

from drawn import examples
from kueue_admission.kernel.duration import Duration
from kueue_fleet.dispatch import (
    Action,
    Bound,
    Filtered,
    FitKind,
    GivenUp,
    Request,
    Residency,
    Scored,
    Worker,
    WorkerQuota,
    decide,
    report_of,
)
from kueue_fleet.dispatch.model import OUT_OF_REACH
from kueue_fleet.settings.dispatch import Dispatch, DispatchWeights

QUIET = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is not a failure."""

REGIONS = (EU, US, ASIA)
PARTS = st.sampled_from([0.0, 0.5, 1.0, 3.0])
SETTINGS = st.builds(
    Dispatch,
    step=st.integers(1, 3),
    widen_after=st.sampled_from(["1s", "60s", "300s"]),
    give_up_after=st.sampled_from(["300s", "3600s"]),
    retry_after=st.sampled_from(["0s", "60s"]),
    weights=st.builds(DispatchWeights, price=PARTS, waiting=PARTS, free=PARTS),
)


@st.composite
def workers(draw: st.DrawFn) -> tuple[Worker, ...]:
    result = []
    for index in range(draw(st.integers(0, 5))):
        quota = WorkerQuota(objects(draw(st.integers(0, 8))))
        if draw(st.booleans()):
            quota.put(running("busy", draw(st.integers(1, 8))))
        result.append(
            Worker(
                name=f"w{index}",
                region=draw(st.sampled_from(REGIONS)),
                connected=draw(st.integers(0, 4)) > 0,
                quota=quota if draw(st.integers(0, 6)) else None,
                prices=draw(st.dictionaries(st.just("l4"), st.sampled_from([0.0, 0.5, 2.0]))),
                waiting_seconds=draw(st.none() | st.floats(0, 1e5)),
                stale_copy=not draw(st.integers(0, 6)),
                unknown="" if draw(st.integers(0, 6)) else "not followed",
            )
        )
    return tuple(result)


BOUNDS = st.builds(Bound, st.frozensets(st.sampled_from(REGIONS)), st.just("label"))
NAMES = st.lists(st.sampled_from([f"w{n}" for n in range(7)]), unique=True, max_size=4).map(tuple)
REQUESTS = st.builds(
    Request,
    workload=st.integers(1, 8).map(lambda gpus: job(gpus=gpus)),
    residency=st.lists(BOUNDS, max_size=2).map(lambda bounds: Residency(tuple(bounds))),
    nominated=NAMES,
    started=st.none() | st.floats(0, 5000),
    gave_up=st.booleans(),
    given_up=st.dictionaries(st.sampled_from(["w0", "w3"]), st.just(GivenUp(1, 10.0))),
    bound=st.frozensets(st.sampled_from(["w0", "w1", "gone"]), max_size=2) | st.just(frozenset()),
    withdrawn=st.frozensets(st.sampled_from(["w0"])),
    reserved=st.frozensets(st.sampled_from(["w0", "w2"])),
)


@QUIET
@given(REQUESTS, workers(), SETTINGS, st.floats(5000, 20000))
def test_nominated_clusters_are_configured_connected_and_allowed(
    request: Request, known: tuple[Worker, ...], chosen: Dispatch, now: float
) -> None:
    decision = decide(request, known, chosen, now)
    by_name = {worker.name: worker for worker in known}
    assert len(set(decision.nominated)) == len(decision.nominated) <= 20
    for name in decision.nominated:
        [verdict] = [v for v in decision.verdicts if v.cluster == name]
        if name in request.bound:
            continue
        assert request.residency.forbids(by_name[name].region) is None
        if isinstance(verdict, Scored):
            assert by_name[name].connected
            assert not by_name[name].unknown
            assert 0 <= verdict.score <= 1
        else:
            assert name in request.nominated
            assert verdict.reason in OUT_OF_REACH
    if request.bound:
        assert set(decision.nominated) <= request.bound | set(request.nominated)


@QUIET
@given(REQUESTS, workers(), SETTINGS, st.floats(5000, 20000))
def test_the_explanation_agrees_with_the_decision(
    request: Request, known: tuple[Worker, ...], chosen: Dispatch, now: float
) -> None:
    decision = decide(request, known, chosen, now)
    read = {verdict.cluster: verdict for verdict in report_of(decision).verdicts}
    assert set(read) == {verdict.cluster for verdict in decision.verdicts}
    for verdict in decision.verdicts:
        assert type(read[verdict.cluster]) is type(verdict)
    out = {name for name in decision.nominated if isinstance(read[name], Filtered)}
    assert out <= {*request.nominated, *request.bound}


@QUIET
@given(
    started=st.floats(0, 1e5) | st.floats(1.7e9, 1.8e9),
    nanoseconds=st.sampled_from([10**9, 300 * 10**9]) | st.integers(10**9, 10**13),
    clusters=st.integers(2, 12),
)
def test_who_looks_again_when_told_to_finds_the_next_step(started: float, nanoseconds: int, clusters: int) -> None:
    chosen = Dispatch(widen_after=f"{nanoseconds}ns", give_up_after=f"{clusters * nanoseconds}ns")
    known = [Worker(f"w{index}", EU, quota=WorkerQuota(objects())) for index in range(clusters)]
    asked, now = Request(job(), started=started), started
    for step in range(1, clusters + 1):
        decision = decide(asked, known, chosen, now)
        assert len(decision.nominated) == step
        assert decision.retry_at is not None
        assert decision.retry_at > now
        asked, now = replace(asked, nominated=decision.nominated), decision.retry_at
    assert decide(asked, known, chosen, now).action is Action.GIVE_UP


@QUIET
@given(REQUESTS, workers(), SETTINGS, st.lists(st.floats(0, 4000), min_size=2, max_size=8).map(sorted))
def test_nominations_only_grow_until_they_are_given_up(
    request: Request, known: tuple[Worker, ...], chosen: Dispatch, times: list[float]
) -> None:
    asked = replace(request, nominated=(), started=None, gave_up=False, bound=frozenset())
    for now in times:
        decision = decide(asked, known, chosen, now)
        if decision.started != asked.started and asked.started is not None:
            assert decision.nominated == ()
            return
        assert decision.nominated[: len(asked.nominated)] == asked.nominated
        asked = replace(asked, nominated=decision.nominated, started=decision.started)


@QUIET
@given(REQUESTS, workers(), SETTINGS, st.floats(5000, 20000))
def test_asked_again_at_once_it_has_nothing_to_write(
    request: Request, known: tuple[Worker, ...], chosen: Dispatch, now: float
) -> None:
    one = decide(request, known, chosen, now)
    gave_up = one.action.value == "GiveUp" or (one.action.value == "Keep" and request.gave_up)
    after = replace(request, nominated=one.nominated, started=one.started, gave_up=gave_up)
    two = decide(after, known, chosen.model_copy(update={"retry_after": max(chosen.retry_after, Duration("1s"))}), now)
    # A rejection is repeated until it is written: nobody asks once the check is Rejected.
    assert two.action.value == ("Reject" if one.action.value == "Reject" else "Keep")
    assert two.nominated == one.nominated


CAPACITY = 8


class OneWorker(RuleBasedStateMachine):
    """Nominations, copies, admissions and ends in any order: real usage and holds together never exceed the quota."""

    def __init__(self) -> None:
        super().__init__()
        self.quota = WorkerQuota(objects(CAPACITY))
        self.sizes: dict[str, int] = {}
        self.nominated: set[str] = set()
        self.there: set[str] = set()
        self.running: set[str] = set()
        self.count = 0

    @rule(gpus=st.integers(1, CAPACITY))
    def nominate(self, gpus: int) -> None:
        name = f"job-{self.count}"
        self.count += 1
        self.sizes[name] = gpus
        self.nominated.add(name)
        self.quota.expect(job(name, gpus, created=float(self.count)))

    def pick(self, names: set[str], data: int) -> str:
        return sorted(names)[data % len(names)]

    @precondition(lambda self: self.nominated - self.there)
    @rule(data=st.integers(0, 99))
    def copy_arrives(self, data: int) -> None:
        name = self.pick(self.nominated - self.there, data)
        self.there.add(name)
        self.quota.put(job(name, self.sizes[name], created=100.0 + self.count))

    @precondition(lambda self: self.there - self.running)
    @rule(data=st.integers(0, 99))
    def admitted(self, data: int) -> None:
        name = self.pick(self.there - self.running, data)
        if sum(self.sizes[n] for n in self.running) + self.sizes[name] <= CAPACITY:
            self.running.add(name)
            self.quota.put(running(name, self.sizes[name]))

    @precondition(lambda self: self.there)
    @rule(data=st.integers(0, 99))
    def ends(self, data: int) -> None:
        name = self.pick(self.there, data)
        self.there.discard(name)
        self.running.discard(name)
        self.nominated.discard(name)
        self.quota.forget(f"ns/{name}")
        self.quota.drop(f"ns/{name}")

    @precondition(lambda self: self.nominated)
    @rule(data=st.integers(0, 99))
    def withdrawn(self, data: int) -> None:
        name = self.pick(self.nominated, data)
        self.nominated.discard(name)
        self.quota.forget(f"ns/{name}")

    @rule()
    def configured_anew(self) -> None:
        self.quota.load(objects(CAPACITY))

    @invariant()
    def nothing_is_counted_twice(self) -> None:
        held = {key.partition("/")[2] for key in self.quota.held}
        assert held.isdisjoint(self.running)
        assert held <= self.nominated | self.there
        left = CAPACITY - sum(self.sizes[name] for name in self.running | held)
        assert left >= 0
        newcomer = self.quota.examine(job("newcomer", 1), 1000.0)
        assert (newcomer.kind is FitKind.FREE) == (left >= 1)

    @invariant()
    def what_is_remembered_is_what_would_be_found(self) -> None:
        for gpus, known in PROBES.items():
            anew = job("newcomer", gpus)
            assert anew.pod_sets is not known.pod_sets
            assert self.quota.examine(known, 1000.0) == self.quota.examine(anew, 1000.0)


PROBES = {gpus: job("probe", gpus) for gpus in (1, CAPACITY // 2, CAPACITY, CAPACITY + 1)}

OneWorker.TestCase.settings = settings(
    max_examples=examples(40), stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestOneWorker = OneWorker.TestCase
