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
    found = explain(Snapshot(made, workloads, now), workloads[-1].key)
    assert all(len(line) <= 80 for line in render_text(found).splitlines())
    return found


def lender(name: str, cohort: str, cores: int = 8) -> ClusterQueue:
    """A ClusterQueue that lends one core."""
    group = cpu_group(default=cores)
    limited = replace(group.flavors[0], quotas=(("cpu", ResourceQuota(cores * 1000, lending_limit=1000)),))
    return queue(name, groups=(replace(group, flavors=(limited,)),), cohort=cohort)


class TestStates:
    def test_admitted(self) -> None:
        found = explained(objects(queue()), held("a", 1))
        assert (found.state, found.reason, found.changes) == ("Admitted", "Admitted", ())

    def test_admitted_without_a_flavor(self) -> None:
        """kueue#1410: without requests Kueue has no flavor to give, and adds no node selector."""
        workload = held("a", 1)
        given = Admission("cq", (PodSetAssignment("main", 1, (), ()),))
        status = replace(workload.status, admission=given)
        found = explained(objects(queue()), replace(workload, pod_sets=(PodSet(),), status=status))
        assert "It got no flavor" in found.headline

    def test_finished(self) -> None:
        found = explained(objects(queue()), job("a", status=WorkloadStatus(finished=True)))
        assert (found.state, found.reason) == ("Finished", "Finished")

    def test_evicted_with_pods_still_there(self) -> None:
        workload = held("a", 1)
        status = replace(workload.status, evicted_at=5.0, evicted_reason="Preempted")
        found = explained(objects(queue()), replace(workload, status=status))
        assert (found.state, found.reason, found.evicted_for) == ("Evicted", "Preempted", "Preempted")

    def test_deactivated(self) -> None:
        reason = "DeactivatedDueToRequeuingLimitExceeded"
        status = WorkloadStatus(evicted_at=5.0, evicted_reason=reason, requeued=False, requeued_reason=reason)
        found = explained(objects(queue()), job("a", active=False, status=status))
        assert found.reason == "Deactivated"
        assert [(c.kind, c.admits) for c in found.changes] == [("active", True)]

    def test_backoff(self) -> None:
        status = WorkloadStatus(requeued=False, requeued_reason="PodsReadyTimeout", requeue_at=70.0)
        found = explained(objects(queue()), job("first", 1), job("a", created=1.0, status=status))
        assert found.reason == "PendingEvaluation"
        assert found.headline == "It is held back for another 60 seconds after PodsReadyTimeout."
        assert found.next_step == "Wait: Kueue tries it again when that time is over."

    def test_an_unknown_workload(self) -> None:
        with pytest.raises(AdmissionError, match="there is no workload ns/b"):
            explain(Snapshot(objects(queue()), (job("a"),)), "ns/b")


class TestQueues:
    def test_a_strict_head_blocks_what_would_fit(self) -> None:
        made = objects(queue(queueing_strategy="StrictFIFO"))
        found = explained(made, held("r", 8), job("big", 9, created=1.0), job("a", 1, created=2.0))
        assert found.reason == "PendingEvaluation"
        assert [(each.workload, each.does) for each in found.blockers] == [("ns/big", "isHead")]
        assert found.position is not None
        assert [(w.workload, w.reason) for w in found.position.ahead] == [("ns/big", "WaitingForQuota")]
        assert "BestEffortFIFO" in found.next_step

    def test_a_stopped_local_queue(self) -> None:
        made = objects(queue())
        stopped = tuple(replace(q, stop_policy="Hold") for q in made.local_queues)
        found = explained(replace(made, local_queues=stopped), job("a"))
        assert (found.reason, found.changes[0].kind, found.changes[0].admits) == ("Suspended", "stopPolicy", True)

    def test_two_faults_at_once_are_not_promised_away(self) -> None:
        made = objects(queue(stop_policy="Hold"))
        found = explained(made, job("a", 20))
        assert found.reason == "Suspended"
        [change] = found.changes
        assert (change.outcome, change.admits) == ("not yet admitted: then ExceedsMaxQuota", False)
        assert found.next_step.endswith("it still waits after that, so explain it again.")


class TestQuota:
    def test_preemption_under_way(self) -> None:
        made = objects(queue(preemption=ClusterQueuePreemption(within_cluster_queue="LowerPriority")))
        found = explained(made, held("r", 10), job("a", 4, priority=5))
        assert found.reason == "WaitingForPreemptedWorkloads"
        assert [victim.workload for victim in found.victims] == ["ns/r"]

    @pytest.mark.parametrize("limit", [{}, {"max_execution_seconds": 60}], ids=["pods ready", "max execution"])
    def test_what_holds_quota_is_not_evicted_by_limits_that_kueue_let_pass(self, limit: dict[str, Any]) -> None:
        newer = ClusterQueuePreemption(within_cluster_queue="LowerOrNewerEqualPriority")
        made = objects(queue(preemption=newer), configuration=Configuration())
        found = explained(made, held("older", 10, created=1.0, **limit), job("newer", 10, created=5.0), now=10_000.0)
        assert found.reason == "WaitingForQuota"
        assert [spared.why for spared in found.flavors[0].spared] == ["NotNewer"]

    def test_the_least_priority_that_preempts(self) -> None:
        made = objects(queue(preemption=ClusterQueuePreemption(within_cluster_queue="LowerPriority")))
        running = [held("low", 2, priority=10), held("middle", 4, priority=20), held("high", 4, priority=30)]
        found = explained(made, *running, job("a", 6, priority=5))
        change = next(change for change in found.changes if change.kind == "priority")
        assert change.what == "give the workload priority 21 or more (it has 5)"
        assert change.preempts == ("ns/low", "ns/middle")

    def test_a_borrowing_limit(self) -> None:
        group = cpu_group(default=2)
        quota = group.flavors[0].quotas[0][1]
        limited = replace(group.flavors[0], quotas=(("cpu", replace(quota, borrowing_limit=1000)),))
        mine = queue("cq", groups=(replace(group, flavors=(limited,)),), cohort="c")
        found = explained(objects(mine, queue("other", 8, cohort="c")), job("a", 6))
        assert found.reason == "ExceedsMaxQuota"
        change = next(change for change in found.changes if change.kind == "borrowingLimit")
        assert change.what.endswith("cpu by 3, from 1 to 4")
        assert change.admits

    def test_a_lending_limit(self) -> None:
        """kueue#6574: the least that the lender has to lend more."""
        found = explained(objects(queue(cores=4, cohort="c"), lender("other", "c")), job("a", 6))
        change = next(change for change in found.changes if change.kind == "lendingLimit")
        assert change.what == "raise the lendingLimit of ClusterQueue other in flavor default: cpu by 1, from 1 to 2"
        assert change.admits

    def test_lending_limits_of_several(self) -> None:
        made = objects(queue(cores=4, cohort="c"), lender("other", "c", 3), lender("third", "c", 3))
        found = explained(made, job("a", 9))
        [change] = [change for change in found.changes if change.kind == "lendingLimit"]
        text = "raise the lendingLimit of ClusterQueue {} in flavor default: cpu by {}, from 1 to {}"
        assert change.what == f"{text.format('other', 2, 3)}, and {text.format('third', 1, 2)}"
        assert change.admits

    def test_a_resource_without_quota(self) -> None:
        pods = (PodSet(requests=(("cpu", 1000), ("nvidia.com/gpu", 8))),)
        found = explained(objects(queue()), job("a", pod_sets=pods))
        assert found.reason == "NoMatchingFlavor"
        assert found.headline == "ClusterQueue cq has no quota for nvidia.com/gpu."
        kinds = ["coveredResources", "excludeResourcePrefixes"]
        assert [(c.kind, c.admits) for c in found.changes] == [(kind, True) for kind in kinds]

    def test_a_resource_without_quota_that_is_ignored(self) -> None:
        pods = (PodSet(requests=(("cpu", 11_000), ("nvidia.com/gpu", 8))),)
        ignoring = Configuration(ignore_undeclared_resources=True)
        found = explained(objects(queue(), configuration=ignoring), job("a", pod_sets=pods))
        assert found.reason == "ExceedsMaxQuota"
        assert "nvidia.com/gpu" not in found.headline
        assert not any(change.kind in ("coveredResources", "excludeResourcePrefixes") for change in found.changes)

    def test_a_node_selector(self) -> None:
        made = objects(queue(groups=(ResourceGroup(("cpu",), cpu_group(default=10).flavors),)))
        flavors = (ResourceFlavor("default", node_labels=(("pool", "a3"),)),)
        pods = (PodSet(requests=(("cpu", 1000),), node_selector=(("pool", "a2"),)),)
        found = explained(replace(made, flavors=flavors), job("a", pod_sets=pods))
        assert found.reason == "NoMatchingFlavor"
        assert found.changes[0].what == "select pool=a3 instead of a2 in the pods, as flavor default has it"


ABSENT: dict[str, tuple[Objects, str]] = {
    "no queue": (replace(objects(queue()), local_queues=()), "LocalQueue"),
    "no cluster queue": (replace(objects(queue()), cluster_queues=()), "ClusterQueue"),
    "no flavor": (replace(objects(queue()), flavors=()), "ResourceFlavor"),
}


@pytest.mark.parametrize(("made", "kind"), ABSENT.values(), ids=ABSENT)
def test_what_the_objects_lack_altogether_is_not_known(made: Objects, kind: str) -> None:
    found = explained(made, job("a", 1))
    assert found.headline == f"Why it waits is not known: there is no {kind} among the objects."
    assert found.next_step.startswith(f"Add what `kubectl get {kind.lower()}s -A -o yaml` prints")
    assert (found.state, found.reason, found.changes) == ("Pending", None, ())


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
    made = replace(objects(queue(namespace_selector=selector)), namespaces=(("ns", (("env", "dev"), (NAME, "ns"))),))
    found = explained(made, job("a", 1))
    assert [(change.what, change.admits) for change in found.changes] == [(what, True)]
    assert found.next_step == f"{what[:1].upper()}{what[1:]}."


def test_flavors_of_two_groups_that_contradict_each_other() -> None:
    groups = (
        ResourceGroup(("cpu",), (FlavorQuotas("cpu", (("cpu", ResourceQuota(8000)),)),)),
        ResourceGroup(("gpu",), (FlavorQuotas("gpu", (("gpu", ResourceQuota(8)),)),)),
    )
    flavors = (ResourceFlavor("cpu", (("kind", "cpu"),)), ResourceFlavor("gpu", (("kind", "gpu"),)))
    pods = PodSet(requests=(("cpu", 1000), ("gpu", 1)))
    made = replace(objects(queue(groups=groups)), flavors=flavors)
    found = explained(made, job("a", pod_sets=(pods,)))
    [text] = found.nodes
    assert text.startswith("Flavors cpu and gpu of pod set main have different values of the node label kind, cpu and")
    alone = PodSet(requests=(("cpu", 1000),))
    assert explained(made, job("a", pod_sets=(alone,))).nodes == ()
