"""Concurrent admission: variants of a job, one for each flavor, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.decide.build import Cluster, cpu_group, job, queue

from kueue_admission.api.cluster_queue import ClusterQueuePreemption, ConcurrentAdmissionMigration
from kueue_admission.decide.events import ActiveChanged, Deleted, Finished, PodsReadyChanged, PodsStopped, TimePassed
from kueue_admission.decide.gates import Gates
from kueue_admission.decide.model import Configuration, Workload
from kueue_admission.decide.workload.variants import GATE, GATE_SECONDS, MOMENT, as_one

GATES = Configuration(wait_for_pods_ready=None, gates=Gates(concurrent_admission=True))


def cluster(res: int = 4, spot: int = 4, mode: str = "TryPreferredFlavors", **changes: Any) -> Cluster:
    """A queue whose jobs wait for `res` and `spot` at once."""
    last = changes.pop("last", None)
    limits = {"constraints": {"lastAcceptableFlavorName": last}} if last else {}
    migration = ConcurrentAdmissionMigration.model_validate({"mode": mode, **limits})
    spec = queue(groups=(cpu_group(res=res, spot=spot),), migration=migration, **changes.pop("queue", {}))
    return Cluster(spec, configuration=changes.pop("configuration", GATES))


def run(made: Cluster, *jobs: Workload, cycles: int = 6) -> Cluster:
    made.submit(*jobs)
    for _ in range(cycles):
        made.cycle()
    return made


def active(made: Cluster) -> set[str]:
    return {info.workload.name for info in made.engine.workloads.values() if info.workload.active}


def test_a_job_waits_with_a_variant_for_each_flavor() -> None:
    result = run(cluster(res=0, spot=0), job("a"))
    assert set(result.engine.workloads) == {"ns/a", "ns/a-variant-res", "ns/a-variant-spot"}


def test_another_job_may_have_the_name_of_a_variant() -> None:
    result = run(cluster(res=0, spot=0), job("a-variant-res"), job("a"))
    assert {"ns/a-variant-res", "ns/a-variant-res-2"} <= set(result.engine.workloads)


def test_the_job_is_admitted_with_its_variant() -> None:
    result = run(cluster(), job("a"))
    assert result.admitted == {"a", "a-variant-res"}
    assert result.engine.workloads["ns/a"].admission == result.engine.workloads["ns/a-variant-res"].admission


def test_only_the_variant_counts() -> None:
    result = run(cluster(), job("a", 3))
    assert list(result.engine.cache.queues["cq"].workloads) == ["ns/a-variant-res"]


def test_variants_on_less_preferred_flavors_are_deactivated() -> None:
    assert active(run(cluster(), job("a"))) == {"a", "a-variant-res"}


def test_a_variant_on_a_more_preferred_flavor_goes_on_trying() -> None:
    result = run(cluster(res=0), job("a"))
    assert result.admitted == {"a", "a-variant-spot"}
    assert "a-variant-res" in active(result)


def test_not_where_the_first_admission_stays() -> None:
    result = run(cluster(res=0, mode="RetainFirstAdmission"), job("a"))
    assert active(result) == {"a", "a-variant-spot"}


def test_nor_below_the_last_acceptable_flavor() -> None:
    result = cluster(res=0, last="res")
    assert active(run(result, job("a"))) == {"a", "a-variant-res", "a-variant-spot"}


def moving() -> Cluster:
    """`b` runs on spot, and `a`, which has run on res, is over."""
    result = run(run(cluster(), job("a", 4)), job("b", 4))
    assert "b-variant-spot" in result.admitted
    result.engine.handle(Finished(0, "ns/a"))
    result.engine.handle(TimePassed(2))
    result.now = 2
    result.cycle()
    return result


def test_a_job_moves_to_a_more_preferred_flavor() -> None:
    result = moving()
    assert result.engine.workloads["ns/b-variant-spot"].evicted_reason == "FlavorMigration"
    assert result.engine.workloads["ns/b"].evicted_reason == "VariantEvicted"


def test_when_its_pods_are_gone_it_has_the_other_flavor() -> None:
    result = moving()
    result.engine.handle(PodsStopped(3, "ns/b"))
    result.engine.handle(TimePassed(5))
    result.now = 5
    result.cycle()
    assert result.admitted == {"b", "b-variant-res"}


def test_it_keeps_its_quota_until_then() -> None:
    assert set(moving().engine.cache.queues["cq"].workloads) == {"ns/b-variant-spot"}


@pytest.mark.parametrize("event", [Finished(9, "ns/a"), Deleted(9, "ns/a")])
def test_variants_go_with_the_job(event: Any) -> None:
    result = run(cluster(), job("a"))
    result.engine.handle(event)
    assert not result.engine.workloads
    assert not result.engine.cache.families


def test_a_job_that_is_deactivated_has_no_active_variant() -> None:
    result = run(cluster(), job("a"))
    result.engine.handle(ActiveChanged(1, "ns/a", False))
    result.engine.handle(PodsStopped(2, "ns/a"))
    assert active(result) == set()
    assert not result.engine.cache.queues["cq"].workloads


def contended() -> Cluster:
    """Both flavors are in use by jobs of low priority, and one of high priority waits."""
    result = cluster(queue={"preemption": ClusterQueuePreemption(within_cluster_queue="LowerPriority")})
    run(result, job("low", 4))
    run(result, job("lower", 4))
    return run(result, job("high", 4, priority=9))


def test_a_variant_does_not_preempt_before_its_gate_is_open() -> None:
    result = contended()
    assert not any(info.is_evicted for info in result.engine.workloads.values())
    assert result.engine.workloads["ns/high-variant-res"].gated


def test_the_most_preferred_variant_preempts_first() -> None:
    result = contended()
    result.engine.handle(TimePassed(MOMENT))
    result.now = MOMENT
    result.cycle()
    assert {key for key, info in result.engine.workloads.items() if info.is_evicted} == {"ns/low", "ns/low-variant-res"}


def test_the_next_one_after_five_minutes() -> None:
    result = contended()
    result.engine.handle(TimePassed(MOMENT))
    result.engine.handle(TimePassed(MOMENT + GATE_SECONDS - 1))
    assert GATE not in result.engine.workloads["ns/high-variant-spot"].open_gates
    result.engine.handle(TimePassed(2 * MOMENT + GATE_SECONDS))
    assert GATE in result.engine.workloads["ns/high-variant-spot"].open_gates


def test_pods_of_the_job_are_those_of_its_variant() -> None:
    result = run(cluster(configuration=Configuration(gates=Gates(concurrent_admission=True))), job("a"))
    result.engine.handle(PodsReadyChanged(1, "ns/a", True))
    assert result.engine.workloads["ns/a-variant-res"].pods_ready


def test_a_snapshot_goes_on_where_it_was() -> None:
    result = moving()
    again = type(result.engine).from_snapshot(result.engine.snapshot())
    again.handle(PodsStopped(3, "ns/b"))
    assert not again.workloads["ns/b-variant-spot"].is_reserved


def test_without_the_gate_a_job_waits_for_one_flavor_after_the_other() -> None:
    result = run(cluster(configuration=Configuration(wait_for_pods_ready=None)), job("a"))
    assert set(result.engine.workloads) == {"ns/a"}


def test_a_job_as_one_is_queued_itself() -> None:
    snapshot = run(cluster(res=0, spot=0), job("a")).engine.snapshot()
    [alone] = as_one(snapshot, "ns/a").workloads
    assert alone.name == "a"
