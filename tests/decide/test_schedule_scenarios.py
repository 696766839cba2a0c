"""Kueue's own tables of whole scheduling cycles: who gets what, who is preempted, who stays where and why."""

from __future__ import annotations

from typing import Any

import pytest
from tests.decide.expand import ZERO, admission, ids, load_scenarios, manifests
from tests.decide.harness import configuration

from kueue_admission.decide.decisions import Decision, Evicted, Parked, Replaced, Requeued
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CycleStarted, Submitted
from kueue_admission.decide.model import Admission
from kueue_admission.decide.queue.pending import Place
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.fields import Fields
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.read.workloads import parse_admission

CASES = load_scenarios("schedule") + load_scenarios("schedule_fair") + load_scenarios("schedule_recompute")

TOPOLOGY = load_scenarios("schedule_topology")


def _engine(case: dict[str, Any]) -> tuple[Engine, list[Decision]]:
    parsed = parse_objects(manifests(case), configuration(case))
    engine = Engine(parsed.objects)
    for workload in parsed.workloads:
        engine.handle(Submitted(ZERO, workload))
    return engine, engine.handle(CycleStarted(ZERO))


def _places(engine: Engine, *places: Place) -> dict[str, list[str]]:
    result = {name: engine.pending(name).keys(*places) for name in engine.cache.queues}
    return {name: keys for name, keys in result.items() if keys}


def _simple(given: Admission) -> Any:
    return given.cluster_queue, {
        ps.name: (ps.count, dict(ps.flavors), {k: v for k, v in ps.usage if k in dict(ps.flavors)})
        for ps in given.pod_sets
    }


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_cycle_ends_as_in_kueue(case: dict[str, Any]) -> None:
    engine, decisions = _engine(case)
    assigned = {
        key: _simple(info.admission)
        for key, info in engine.workloads.items()
        if info.admission is not None and info.is_reserved and engine.cache.queues[info.cluster_queue].active
    }
    problems: list[Problem] = []
    expected = {
        key: _simple(parse_admission(Fields(admission(a), key, problems), {})) for key, a in case["assigned"].items()
    }
    # In Kueue's table, the slice that is replaced holds quota until somebody else sees that it is over.
    replaced = {item.key for item in decisions if isinstance(item, Replaced)}
    assert assigned == {key: given for key, given in expected.items() if key not in replaced}
    assert _places(engine, Place.COMPETING) == {name: sorted(keys) for name, keys in case["left"].items()}
    assert _places(engine, Place.PARKED, Place.HELD) == {
        name: sorted(keys) for name, keys in case["inadmissible"].items()
    }
    evicted = {d.key: [d.preemption, d.message] for d in decisions if isinstance(d, Evicted)}
    assert evicted == case["preempted"]


def _placed(given: Admission) -> Any:
    return {ps.name: (ps.topology, ps.topology_levels, ps.delayed_topology) for ps in given.pod_sets}


@pytest.mark.parametrize("case", TOPOLOGY, ids=ids(TOPOLOGY))
def test_a_cycle_places_pods_as_in_kueue(case: dict[str, Any]) -> None:
    parsed = parse_objects(manifests(case), configuration(case))
    already = {w.key for w in parsed.workloads if w.status.admitted_at is not None}
    engine, _ = _engine(case)
    problems: list[Problem] = []
    expected = {key: parse_admission(Fields(admission(a), key, problems), {}) for key, a in case["assigned"].items()}
    result = {
        key: info.admission
        for key, info in engine.workloads.items()
        if info.admission is not None and key not in already
    }
    assert {key: _simple(a) for key, a in result.items()} == {key: _simple(a) for key, a in expected.items()}
    assert {key: _placed(a) for key, a in result.items()} == {key: _placed(a) for key, a in expected.items()}
    assert _places(engine, Place.COMPETING) == {name: sorted(keys) for name, keys in case["left"].items()}
    assert _places(engine, Place.PARKED, Place.HELD) == {
        name: sorted(keys) for name, keys in case["inadmissible"].items()
    }


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_the_reasons_are_kueues(case: dict[str, Any]) -> None:
    _, decisions = _engine(case)
    result = {d.key: [d.reason, d.message] for d in decisions if isinstance(d, Parked | Requeued)}
    output = {key: result[key] for key in case["reasons"] if key in result}
    assert output == {key: want for key, want in case["reasons"].items() if key in result}
    assert set(case["reasons"]) <= set(result)
