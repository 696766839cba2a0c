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
    made: dict[str, Any] = {
        "flavors": (ResourceFlavor("default", topology="racks"),),
        "topologies": (Topology("racks", ("rack", HOSTNAME)),),
        "nodes": (node("a1", "a"), node("a2", "a"), node("b1", "b", 3)),
    }
    return Cluster(*(queues or (queue(cores=20),)), **{**made, **changes})


def placed(found: Cluster, name: str) -> list[tuple[str, int]]:
    admission = found.engine.workloads[f"ns/{name}"].admission
    assert admission is not None
    return [(domain.values[-1], domain.count) for domain in admission.pod_sets[0].topology or ()]


class TestPlacement:
    def test_required_stays_in_one_domain_and_the_next_one_sees_what_is_left(self) -> None:
        found = cluster()
        found.submit(
            job("x", pod_sets=pods(4, required="rack")), job("y", pod_sets=pods(3, required="rack"), created=1)
        )
        found.cycle()
        found.cycle()
        assert placed(found, "x") == [("a1", 2), ("a2", 2)]
        assert placed(found, "y") == [("b1", 3)]

    def test_preferred_spreads_when_it_must(self) -> None:
        found = cluster()
        found.submit(job("x", pod_sets=pods(6, preferred="rack")))
        found.cycle()
        assert placed(found, "x") == [("a1", 2), ("a2", 1), ("b1", 3)]

    def test_what_fits_no_domain_says_so(self) -> None:
        found = cluster()
        found.submit(job("x", pod_sets=pods(5, required="rack")))
        (parked,) = found.cycle()
        assert isinstance(parked, Parked)
        assert parked.reason is QuotaReservedReason.TOPOLOGY_PLACEMENT_FAILED
        assert 'topology "racks" allows to fit only 4 out of 5 pod(s)' in parked.message

    def test_places_come_back_when_a_workload_finishes(self) -> None:
        found = cluster()
        found.submit(
            job("x", pod_sets=pods(4, required="rack")), job("y", pod_sets=pods(4, required="rack"), created=1)
        )
        found.cycle()
        found.cycle()
        assert found.admitted == {"x"}
        found.engine.handle(Finished(5, "ns/x"))
        found.engine.handle(TimePassed(6))
        found.now = 6
        found.cycle()
        assert placed(found, "y") == [("a1", 2), ("a2", 2)]

    def test_two_heads_of_one_cycle_do_not_get_the_same_place(self) -> None:
        found = cluster(queue("p"), queue("q"))
        wanted = pods(3, required="rack")
        found.submit(job("x", to="p", pod_sets=wanted), job("y", to="q", pod_sets=wanted))
        found.cycle()
        assert {placed(found, name)[0][0] for name in ("x", "y")} == {"a1", "b1"}

    def test_flavors_on_the_same_hosts_share_them(self) -> None:
        found = cluster(
            queue("p", groups=(cpu_group(one=9),)),
            queue("q", groups=(cpu_group(two=9),)),
            flavors=(ResourceFlavor("one", topology="racks"), ResourceFlavor("two", topology="racks")),
        )
        found.submit(job("x", to="p", pod_sets=pods(4, required="rack")))
        found.cycle()
        found.submit(job("y", to="q", pod_sets=pods(4, required="rack")))
        found.cycle()
        assert found.admitted == {"x"}


class TestSecondPass:
    def test_pods_are_placed_after_the_nodes_were_provisioned(self) -> None:
        found = cluster(
            queue(cores=20, checks=(AdmissionCheckStrategyRule(name="prov"),)),
            checks=(AdmissionCheck("prov", "kueue.x-k8s.io/provisioning-request"),),
        )
        found.submit(job("x", pod_sets=pods(3, required="rack")))
        found.cycle()
        assert placed(found, "x") == []
        (waiting,) = found.engine.handle(CheckStateChanged(10, "ns/x", "prov", CheckState.READY))
        assert isinstance(waiting, ChecksPending)
        assert waiting.reason is AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS
        assert found.engine.next_timer() == 11
        found.engine.handle(TimePassed(11))
        found.now = 11
        (admitted,) = found.cycle()
        assert isinstance(admitted, Admitted)
        assert placed(found, "x") == [("b1", 3)]
        state = found.engine.cache.topologies["default"]
        assert not state.fits((DomainAssignment(("b1",), 1),), {"cpu": 1000})

    def test_a_place_that_is_not_there_yet_is_looked_for_again_later(self) -> None:
        found = cluster(
            queue(cores=20, checks=(AdmissionCheckStrategyRule(name="prov"),)),
            checks=(AdmissionCheck("prov", "kueue.x-k8s.io/provisioning-request"),),
            nodes=(),
        )
        found.submit(job("x", pod_sets=pods(3, required="rack")))
        found.cycle()
        found.engine.handle(CheckStateChanged(0, "ns/x", "prov", CheckState.READY))
        for due in (1.0, 3.0, 7.0):
            assert found.engine.next_timer() == due
            found.engine.handle(TimePassed(due))
            found.now = due
            found.cycle()
        assert found.admitted == set()
