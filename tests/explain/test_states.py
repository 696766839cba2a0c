"""States and reasons that need no dump: what the explanation says, and what it tries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.decide.build import cpu_group, job, objects, queue

from kueue_admission.api.cluster_queue import ClusterQueuePreemption
from kueue_admission.api.selector import LabelSelector
from kueue_admission.decide.errors import AdmissionError
from kueue_admission.decide.model import (
    Admission,
    ClusterQueue,
    Configuration,
    FlavorQuotas,
    Objects,
    PodSetAssignment,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Snapshot,
    WaitForPodsReady,
    Workload,
    WorkloadStatus,
)
from kueue_admission.decide.pods import PodSet
from kueue_admission.explain import Explanation, explain, render_text


def held(name: str, cores: int, to: str = "cq", **changes: Any) -> Workload:
    given = PodSetAssignment("main", 1, (("cpu", "default"),), (("cpu", cores * 1000),))
    status = WorkloadStatus(admission=Admission(to, (given,)), reserved_at=1.0, admitted_at=1.0)
    return job(name, cores, to, **{"status": status, **changes})


def explained(made: Objects, *workloads: Workload, now: float = 10.0) -> Explanation:
    """The explanation of the last workload; its text can be rendered."""
    result = explain(Snapshot(made, workloads, now), workloads[-1].key)
    assert all(len(line) <= 80 for line in render_text(result).splitlines())
    return result


def lender(name: str, cohort: str, cores: int = 8) -> ClusterQueue:
    """A ClusterQueue that lends one core."""
    group = cpu_group(default=cores)
    limited = replace(group.flavors[0], quotas=(("cpu", ResourceQuota(cores * 1000, lending_limit=1000)),))
    return queue(name, groups=(replace(group, flavors=(limited,)),), cohort=cohort)


class TestStates:
    def test_admitted(self) -> None:
        result = explained(objects(queue()), held("a", 1))
        assert (result.state, result.reason, result.changes) == ("Admitted", "Admitted", ())

    def test_admitted_without_a_flavor(self) -> None:
        """kueue#1410: without requests Kueue has no flavor to give, and adds no node selector."""
        workload = held("a", 1)
        given = Admission("cq", (PodSetAssignment("main", 1, (), ()),))
        status = replace(workload.status, admission=given)
        result = explained(objects(queue()), replace(workload, pod_sets=(PodSet(),), status=status))
        assert "It got no flavor" in result.headline

    def test_finished(self) -> None:
        result = explained(objects(queue()), job("a", status=WorkloadStatus(finished=True)))
        assert (result.state, result.reason) == ("Finished", "Finished")

    def test_evicted_with_pods_still_there(self) -> None:
        workload = held("a", 1)
        status = replace(workload.status, evicted_at=5.0, evicted_reason="Preempted")
        result = explained(objects(queue()), replace(workload, status=status))
        assert (result.state, result.reason, result.evicted_for) == ("Evicted", "Preempted", "Preempted")

    def test_deactivated(self) -> None:
        reason = "DeactivatedDueToRequeuingLimitExceeded"
        status = WorkloadStatus(evicted_at=5.0, evicted_reason=reason, requeued=False, requeued_reason=reason)
        result = explained(objects(queue()), job("a", active=False, status=status))
        assert result.reason == "Deactivated"
        assert [(c.kind, c.admits) for c in result.changes] == [("active", True)]

    def test_backoff(self) -> None:
        status = WorkloadStatus(requeued=False, requeued_reason="PodsReadyTimeout", requeue_at=70.0)
        result = explained(objects(queue()), job("first", 1), job("a", created=1.0, status=status))
        assert result.reason == "PendingEvaluation"
        assert result.headline == "It is held back for another 60 seconds after PodsReadyTimeout."
        assert result.next_step == "Wait: Kueue tries it again when that time is over."

    def test_an_unknown_workload(self) -> None:
        with pytest.raises(AdmissionError, match="there is no workload ns/b"):
            explain(Snapshot(objects(queue()), (job("a"),)), "ns/b")


class TestQueues:
    def test_a_strict_head_blocks_what_would_fit(self) -> None:
        result = objects(queue(queueing_strategy="StrictFIFO"))
        results = explained(result, held("r", 8), job("big", 9, created=1.0), job("a", 1, created=2.0))
        assert results.reason == "PendingEvaluation"
        assert [(item.workload, item.does) for item in results.blockers] == [("ns/big", "isHead")]
        assert results.position is not None
        assert [(w.workload, w.reason) for w in results.position.ahead] == [("ns/big", "WaitingForQuota")]
        assert "BestEffortFIFO" in results.next_step

    def test_a_stopped_local_queue(self) -> None:
        result = objects(queue())
        stopped = tuple(replace(q, stop_policy="Hold") for q in result.local_queues)
        results = explained(replace(result, local_queues=stopped), job("a"))
        assert (results.reason, results.changes[0].kind, results.changes[0].admits) == ("Suspended", "stopPolicy", True)

    def test_two_faults_at_once_are_not_promised_away(self) -> None:
        result = objects(queue(stop_policy="Hold"))
        results = explained(result, job("a", 20))
        assert results.reason == "Suspended"
        [change] = results.changes
        assert (change.outcome, change.admits) == ("not yet admitted: then ExceedsMaxQuota", False)
        assert results.next_step.endswith("it still waits after that, so explain it again.")


class TestQuota:
    def test_preemption_under_way(self) -> None:
        result = objects(queue(preemption=ClusterQueuePreemption(within_cluster_queue="LowerPriority")))
        results = explained(result, held("r", 10), job("a", 4, priority=5))
        assert results.reason == "WaitingForPreemptedWorkloads"
        assert [victim.workload for victim in results.victims] == ["ns/r"]

    @pytest.mark.parametrize("limit", [{}, {"max_execution_seconds": 60}], ids=["pods ready", "max execution"])
    def test_what_holds_quota_is_not_evicted_by_limits_that_kueue_let_pass(self, limit: dict[str, Any]) -> None:
        newer = ClusterQueuePreemption(within_cluster_queue="LowerOrNewerEqualPriority")
        result = objects(queue(preemption=newer), configuration=Configuration())
        results = explained(
            result, held("older", 10, created=1.0, **limit), job("newer", 10, created=5.0), now=10_000.0
        )
        assert results.reason == "WaitingForQuota"
        assert [spared.why for spared in results.flavors[0].spared] == ["NotNewer"]

    def test_the_least_priority_that_preempts(self) -> None:
        result = objects(queue(preemption=ClusterQueuePreemption(within_cluster_queue="LowerPriority")))
        running = [held("low", 2, priority=10), held("middle", 4, priority=20), held("high", 4, priority=30)]
        results = explained(result, *running, job("a", 6, priority=5))
        change = next(change for change in results.changes if change.kind == "priority")
        assert change.what == "give the workload priority 21 or more (it has 5)"
        assert change.preempts == ("ns/low", "ns/middle")

    def test_a_borrowing_limit(self) -> None:
        group = cpu_group(default=2)
        quota = group.flavors[0].quotas[0][1]
        limited = replace(group.flavors[0], quotas=(("cpu", replace(quota, borrowing_limit=1000)),))
        mine = queue("cq", groups=(replace(group, flavors=(limited,)),), cohort="c")
        result = explained(objects(mine, queue("other", 8, cohort="c")), job("a", 6))
        assert result.reason == "ExceedsMaxQuota"
        change = next(change for change in result.changes if change.kind == "borrowingLimit")
        assert change.what.endswith("cpu by 3, from 1 to 4")
        assert change.admits

    def test_a_lending_limit(self) -> None:
        """kueue#6574: the least that the lender has to lend more."""
        result = explained(objects(queue(cores=4, cohort="c"), lender("other", "c")), job("a", 6))
        change = next(change for change in result.changes if change.kind == "lendingLimit")
        assert change.what == "raise the lendingLimit of ClusterQueue other in flavor default: cpu by 1, from 1 to 2"
        assert change.admits

    def test_lending_limits_of_several(self) -> None:
        result = objects(queue(cores=4, cohort="c"), lender("other", "c", 3), lender("third", "c", 3))
        results = explained(result, job("a", 9))
        [change] = [change for change in results.changes if change.kind == "lendingLimit"]
        text = "raise the lendingLimit of ClusterQueue {} in flavor default: cpu by {}, from 1 to {}"
        assert change.what == f"{text.format('other', 2, 3)}, and {text.format('third', 1, 2)}"
        assert change.admits

    def test_a_resource_without_quota(self) -> None:
        pods = (PodSet(requests=(("cpu", 1000), ("nvidia.com/gpu", 8))),)
        result = explained(objects(queue()), job("a", pod_sets=pods))
        assert result.reason == "NoMatchingFlavor"
        assert result.headline == "ClusterQueue cq has no quota for nvidia.com/gpu."
        kinds = ["coveredResources", "excludeResourcePrefixes"]
        assert [(c.kind, c.admits) for c in result.changes] == [(kind, True) for kind in kinds]

    def test_a_resource_without_quota_that_is_ignored(self) -> None:
        pods = (PodSet(requests=(("cpu", 11_000), ("nvidia.com/gpu", 8))),)
        ignoring = Configuration(ignore_undeclared_resources=True)
        result = explained(objects(queue(), configuration=ignoring), job("a", pod_sets=pods))
        assert result.reason == "ExceedsMaxQuota"
        assert "nvidia.com/gpu" not in result.headline
        assert not any(change.kind in ("coveredResources", "excludeResourcePrefixes") for change in result.changes)

    def test_a_node_selector(self) -> None:
        result = objects(queue(groups=(ResourceGroup(("cpu",), cpu_group(default=10).flavors),)))
        flavors = (ResourceFlavor("default", node_labels=(("pool", "a3"),)),)
        pods = (PodSet(requests=(("cpu", 1000),), node_selector=(("pool", "a2"),)),)
        results = explained(replace(result, flavors=flavors), job("a", pod_sets=pods))
        assert results.reason == "NoMatchingFlavor"
        assert results.changes[0].what == "select pool=a3 instead of a2 in the pods, as flavor default has it"


ABSENT: dict[str, tuple[Objects, str]] = {
    "no queue": (replace(objects(queue()), local_queues=()), "LocalQueue"),
    "no cluster queue": (replace(objects(queue()), cluster_queues=()), "ClusterQueue"),
    "no flavor": (replace(objects(queue()), flavors=()), "ResourceFlavor"),
}


@pytest.mark.parametrize(("made", "kind"), ABSENT.values(), ids=ABSENT)
def test_what_the_objects_lack_altogether_is_not_known(made: Objects, kind: str) -> None:
    result = explained(made, job("a", 1))
    assert result.headline == f"Why it waits is not known: there is no {kind} among the objects."
    assert result.next_step.startswith(f"Add what `kubectl get {kind.lower()}s -A -o yaml` prints")
    assert (result.state, result.reason, result.changes) == ("Pending", None, ())


def requires(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector.model_validate({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})


NAME = "kubernetes.io/metadata.name"
MATCH = "let namespaceSelector of ClusterQueue cq match namespace ns: {} matches all"


@pytest.mark.parametrize(
    ("selector", "what"),
    [
        (None, MATCH),
        (requires(NAME, "In", "other"), MATCH),
        (requires("team", "In", "a"), "label namespace ns with team=a"),
        (requires("env", "NotIn", "dev"), "remove label env of namespace ns"),
        (requires("env", "DoesNotExist"), "remove label env of namespace ns"),
    ],
)
def test_a_namespace_that_the_queue_does_not_select(selector: LabelSelector | None, what: str) -> None:
    result = replace(objects(queue(namespace_selector=selector)), namespaces=(("ns", (("env", "dev"), (NAME, "ns"))),))
    results = explained(result, job("a", 1))
    assert [(change.what, change.admits) for change in results.changes] == [(what, True)]
    assert results.next_step == f"{what[:1].upper()}{what[1:]}."


def test_flavors_of_two_groups_that_contradict_each_other() -> None:
    groups = (
        ResourceGroup(("cpu",), (FlavorQuotas("cpu", (("cpu", ResourceQuota(8000)),)),)),
        ResourceGroup(("gpu",), (FlavorQuotas("gpu", (("gpu", ResourceQuota(8)),)),)),
    )
    flavors = (ResourceFlavor("cpu", (("kind", "cpu"),)), ResourceFlavor("gpu", (("kind", "gpu"),)))
    pods = PodSet(requests=(("cpu", 1000), ("gpu", 1)))
    result = replace(objects(queue(groups=groups)), flavors=flavors)
    results = explained(result, job("a", pod_sets=(pods,)))
    [text] = results.nodes
    assert text.startswith("Flavors cpu and gpu of pod set main have different values of the node label kind, cpu and")
    alone = PodSet(requests=(("cpu", 1000),))
    assert explained(result, job("a", pod_sets=(alone,))).nodes == ()


def test_pods_that_are_not_ready_have_a_time() -> None:
    waits = objects(queue(), configuration=Configuration(wait_for_pods_ready=WaitForPodsReady(timeout=600.0)))
    starting = held("a", 1)
    starting = replace(starting, status=replace(starting.status, pods_ready_since=1.0))
    result = explained(waits, starting, now=101.0)
    assert result.headline.endswith("Its pods are not ready, and Kueue evicts it in 500 seconds (waitForPodsReady).")
    assert "not ready" not in explained(waits, held("a", 1), now=101.0).headline
