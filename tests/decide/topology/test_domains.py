"""Topology-aware scheduling through the engine: places are taken, shared and given back."""

from __future__ import annotations

from typing import Any

from tests.decide.build import Cluster, cpu_group, job, queue

from kueue_admission.api.cluster_queue import AdmissionCheckStrategyRule
from kueue_admission.decide.decisions import Admitted, ChecksPending, Parked
from kueue_admission.decide.events import CheckStateChanged, Finished, TimePassed
from kueue_admission.decide.model import (
    AdmissionCheck,
    CheckState,
    DomainAssignment,
    Node,
    ResourceFlavor,
    Topology,
)
from kueue_admission.decide.pods import PodSet, TopologyRequest
from kueue_admission.decide.reasons import AdmittedReason, QuotaReservedReason

HOSTNAME = "kubernetes.io/hostname"


def node(name: str, rack: str, cores: int = 2) -> Node:
    return Node(name, (("rack", rack), (HOSTNAME, name)), allocatable=(("cpu", cores * 1000), ("pods", 10)))


def pods(count: int, **request: Any) -> tuple[PodSet, ...]:
    asked = (("cpu", 1000),)
    return (PodSet(count=count, requests=asked, node_requests=asked, topology=TopologyRequest(**request)),)


def cluster(*queues: Any, **changes: Any) -> Cluster:
    result: dict[str, Any] = {
        "flavors": (ResourceFlavor("default", topology="racks"),),
        "topologies": (Topology("racks", ("rack", HOSTNAME)),),
        "nodes": (node("a1", "a"), node("a2", "a"), node("b1", "b", 3)),
    }
    return Cluster(*(queues or (queue(cores=20),)), **{**result, **changes})


def placed(found: Cluster, name: str) -> list[tuple[str, int]]:
    admission = found.engine.workloads[f"ns/{name}"].admission
    assert admission is not None
    return [(domain.values[-1], domain.count) for domain in admission.pod_sets[0].topology or ()]


class TestPlacement:
    def test_required_stays_in_one_domain_and_the_next_one_sees_what_is_left(self) -> None:
        result = cluster()
        result.submit(
            job("x", pod_sets=pods(4, required="rack")), job("y", pod_sets=pods(3, required="rack"), created=1)
        )
        result.cycle()
        result.cycle()
        assert placed(result, "x") == [("a1", 2), ("a2", 2)]
        assert placed(result, "y") == [("b1", 3)]

    def test_preferred_spreads_when_it_must(self) -> None:
        result = cluster()
        result.submit(job("x", pod_sets=pods(6, preferred="rack")))
        result.cycle()
        assert placed(result, "x") == [("a1", 2), ("a2", 1), ("b1", 3)]

    def test_what_fits_no_domain_says_so(self) -> None:
        result = cluster()
        result.submit(job("x", pod_sets=pods(5, required="rack")))
        (parked,) = result.cycle()
        assert isinstance(parked, Parked)
        assert parked.reason is QuotaReservedReason.TOPOLOGY_PLACEMENT_FAILED
        assert 'topology "racks" allows to fit only 4 out of 5 pod(s)' in parked.message

    def test_places_come_back_when_a_workload_finishes(self) -> None:
        result = cluster()
        result.submit(
            job("x", pod_sets=pods(4, required="rack")), job("y", pod_sets=pods(4, required="rack"), created=1)
        )
        result.cycle()
        result.cycle()
        assert result.admitted == {"x"}
        result.engine.handle(Finished(5, "ns/x"))
        result.engine.handle(TimePassed(6))
        result.now = 6
        result.cycle()
        assert placed(result, "y") == [("a1", 2), ("a2", 2)]

    def test_two_heads_of_one_cycle_do_not_get_the_same_place(self) -> None:
        result = cluster(queue("p"), queue("q"))
        expected = pods(3, required="rack")
        result.submit(job("x", to="p", pod_sets=expected), job("y", to="q", pod_sets=expected))
        result.cycle()
        assert {placed(result, name)[0][0] for name in ("x", "y")} == {"a1", "b1"}

    def test_flavors_on_the_same_hosts_share_them(self) -> None:
        result = cluster(
            queue("p", groups=(cpu_group(one=9),)),
            queue("q", groups=(cpu_group(two=9),)),
            flavors=(ResourceFlavor("one", topology="racks"), ResourceFlavor("two", topology="racks")),
        )
        result.submit(job("x", to="p", pod_sets=pods(4, required="rack")))
        result.cycle()
        result.submit(job("y", to="q", pod_sets=pods(4, required="rack")))
        result.cycle()
        assert result.admitted == {"x"}


class TestSecondPass:
    def test_pods_are_placed_after_the_nodes_were_provisioned(self) -> None:
        result = cluster(
            queue(cores=20, checks=(AdmissionCheckStrategyRule(name="prov"),)),
            checks=(AdmissionCheck("prov", "kueue.x-k8s.io/provisioning-request"),),
        )
        result.submit(job("x", pod_sets=pods(3, required="rack")))
        result.cycle()
        assert placed(result, "x") == []
        (waiting,) = result.engine.handle(CheckStateChanged(10, "ns/x", "prov", CheckState.READY))
        assert isinstance(waiting, ChecksPending)
        assert waiting.reason is AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS
        assert result.engine.next_timer() == 11
        result.engine.handle(TimePassed(11))
        result.now = 11
        (admitted,) = result.cycle()
        assert isinstance(admitted, Admitted)
        assert placed(result, "x") == [("b1", 3)]
        state = result.engine.cache.topologies["default"]
        assert not state.fits((DomainAssignment(("b1",), 1),), {"cpu": 1000})

    def test_a_place_that_is_not_there_yet_is_looked_for_again_later(self) -> None:
        result = cluster(
            queue(cores=20, checks=(AdmissionCheckStrategyRule(name="prov"),)),
            checks=(AdmissionCheck("prov", "kueue.x-k8s.io/provisioning-request"),),
            nodes=(),
        )
        result.submit(job("x", pod_sets=pods(3, required="rack")))
        result.cycle()
        result.engine.handle(CheckStateChanged(0, "ns/x", "prov", CheckState.READY))
        for due in (1.0, 3.0, 7.0):
            assert result.engine.next_timer() == due
            result.engine.handle(TimePassed(due))
            result.now = due
            result.cycle()
        assert result.admitted == set()
