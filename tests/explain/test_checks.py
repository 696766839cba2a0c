"""AdmissionChecks that are not Ready, and what a ClusterQueue refers to, followed to the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.decide.build import cpu_group, job, objects, queue
from tests.explain.test_states import explained, held

from kueue_admission.api.cluster_queue import AdmissionCheckStrategyRule
from kueue_admission.decide.model import (
    AdmissionCheck,
    CheckState,
    ClusterQueue,
    Node,
    ResourceFlavor,
    Snapshot,
    Topology,
    Workload,
    WorkloadCheck,
    WorkloadStatus,
)
from kueue_admission.decide.pods import PodSet
from kueue_admission.explain import Explanation, Links, explain, render_text
from kueue_admission.explain.answer import Link
from kueue_admission.kernel.names import (
    HOSTNAME_LABEL,
    LOST_CAPACITY_ANNOTATION,
    MULTIKUEUE_CONTROLLER,
    PROVISIONING_CONTROLLER,
)
from kueue_admission.read.lost_capacity import LostCapacity, write_lost


def rule(name: str, *flavors: str) -> AdmissionCheckStrategyRule:
    return AdmissionCheckStrategyRule(name=name, on_flavors=flavors)


def checked(workload: Workload, state: CheckState, **changes: Any) -> Explanation:
    """The explanation of a workload of a queue with the check `ask`, of ProvisioningRequests."""
    result = objects(queue(checks=(rule("ask"),)), checks=(AdmissionCheck("ask", PROVISIONING_CONTROLLER),))
    status = replace(
        workload.status, admitted_at=None, checks=(WorkloadCheck("ask", state, message="full", **changes),)
    )
    return explained(result, replace(workload, status=status))


class TestFailedChecks:
    @pytest.mark.parametrize(
        ("state", "changes", "step"),
        [
            (CheckState.PENDING, {}, "Look at its ProvisioningRequest: kubectl get provisioningrequests -n ns."),
            (
                CheckState.RETRY,
                {"requeue_after": 60.0},
                "Kueue takes the quota away, sets the check to Pending, and tries again 60 seconds after it failed.",
            ),
            (CheckState.REJECTED, {}, "Kueue deactivates the workload: fix what the check says, then set spec.active"),
        ],
    )
    def test_with_quota(self, state: CheckState, changes: dict[str, Any], step: str) -> None:
        result = checked(held("a", 1), state, **changes)
        assert result.headline.endswith(f"AdmissionCheck ask is {state.value} (full).")
        assert result.next_step.startswith(step)

    def test_with_quota_and_no_check_that_waits_it_is_admitted_next(self) -> None:
        """As of a ClusterQueue that is not among the objects."""
        workload = held("a", 1, "gone")
        status = replace(workload.status, admitted_at=None)
        result = explained(objects(queue()), replace(workload, status=status))
        assert result.next_step == "Wait: Kueue admits it next."

    @pytest.mark.parametrize("state", [CheckState.RETRY, CheckState.REJECTED])
    def test_without_quota_it_stays_as_it_is(self, state: CheckState) -> None:
        """kueue#5129: Kueue resets a check only as it evicts."""
        result = checked(job("a", active=state is CheckState.RETRY), state)
        assert result.headline == f"It has no quota, as AdmissionCheck ask is {state.value} (full)."
        assert "kubectl delete workload a -n ns" in result.next_step
        assert [(change.kind, change.admits) for change in result.changes] == [("check", True)]

    def test_a_pending_check_without_quota_is_not_mentioned(self) -> None:
        assert not checked(job("a", 11), CheckState.PENDING).checks

    def test_why_it_was_deactivated(self) -> None:
        status = WorkloadStatus(
            evicted_at=5.0,
            evicted_reason="DeactivatedDueToAdmissionCheck",
            evicted_message='The workload is deactivated due to AdmissionCheck in Rejected state: "ask" (full)',
        )
        result = explained(objects(queue()), job("a", active=False, status=status))
        assert result.headline.endswith('AdmissionCheck in Rejected state: "ask" (full).')
        assert result.next_step == "Remove the cause of that, then set spec.active to true."
        [change] = result.changes
        assert change.outcome == "admitted if that does not happen again"

    def test_one_that_was_deactivated_by_hand_is_admitted(self) -> None:
        [change] = explained(objects(queue()), job("a", active=False)).changes
        assert (change.kind, change.outcome) == ("active", "admitted")


MANY = (AdmissionCheck("ask", PROVISIONING_CONTROLLER), *(AdmissionCheck(n, MULTIKUEUE_CONTROLLER) for n in "ab"))
INACTIVE: dict[str, tuple[ClusterQueue, str]] = {
    "stopped": (queue(stop_policy="Hold"), "set its stopPolicy to None"),
    "no flavor": (queue(groups=(cpu_group(absent=10),)), "create ResourceFlavor absent"),
    "another flavor": (queue(groups=(cpu_group(othr=10),)), "create ResourceFlavor othr, or name other instead"),
    "no check": (queue(checks=(rule("absent"),)), "create AdmissionCheck absent"),
    "no topology": (queue(groups=(cpu_group(placed=10),)), "create Topology absent"),
    "two checks of MultiKueue": (queue(checks=(rule("a"), rule("b"))), "keep one of its AdmissionChecks a, b"),
    "MultiKueue for one flavor": (
        queue(groups=(cpu_group(default=10, other=1),), checks=(rule("a", "default"),)),
        "remove onFlavors of its AdmissionCheck a",
    ),
    "MultiKueue and ProvisioningRequests": (
        queue(checks=(rule("a"), rule("ask"))),
        "remove its AdmissionCheck ask: the workers' queues ask for nodes",
    ),
}


class TestInactiveQueues:
    @pytest.mark.parametrize(("made", "what"), INACTIVE.values(), ids=INACTIVE)
    def test_what_makes_it_active(self, made: ClusterQueue, what: str) -> None:
        flavors = (ResourceFlavor("default"), ResourceFlavor("other"), ResourceFlavor("placed", topology="absent"))
        nodes = (Node("n", ((HOSTNAME_LABEL, "n"),), allocatable=(("cpu", 9000), ("pods", 9))),)
        pods = PodSet(requests=(("cpu", 1000),), node_requests=(("cpu", 1000),))
        there = objects(made, flavors=flavors, checks=MANY, nodes=nodes, topologies=(Topology("there", ("rack",)),))
        result = explained(there, job("a", pod_sets=(pods,)))
        assert result.reason == "Suspended"
        [change] = result.changes
        assert (change.what, change.admits) == (f"ClusterQueue cq: {what}", True)


def check(controller: str = MULTIKUEUE_CONTROLLER, kind: str = "MultiKueueConfig", **active: str) -> dict[str, Any]:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": kind, "name": "config"}
    return manifest("AdmissionCheck", "ask", {"controllerName": controller, "parameters": parameters}, **active)


def manifest(kind: str, name: str, spec: dict[str, Any], **active: str) -> dict[str, Any]:
    """An object; with `reason` and `message` it is not Active."""
    conditions = [{"type": "Active", "status": "False", **active}] if active else []
    return {"kind": kind, "metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}


CONFIG = manifest("MultiKueueConfig", "config", {"clusters": ["w"]})
UNUSABLE = {"reason": "NoUsableClusters", "message": "Inactive clusters: [w]"}


def cluster(source: dict[str, Any], reason: str, message: str) -> dict[str, Any]:
    return manifest("MultiKueueCluster", "w", {"clusterSource": source}, reason=reason, message=message)


def secret(kind: str = "Secret") -> dict[str, Any]:
    return {"kubeConfig": {"locationType": kind, "location": "w-kubeconfig"}}


def ends(*manifests: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Kind, name and reason of each link."""
    result = Links(manifests).broken(queue(checks=(rule("ask"),)))
    assert not result or result[-1].undo, "the last link is a cause"
    return [(link.kind, link.name, link.reason) for link in result]


NO_CLUSTER = ("AdmissionCheck", "ask", "NoUsableClusters"), ("MultiKueueConfig", "config", "")
CHAINS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str, str]]]] = {
    "all is well": ([check(), CONFIG, manifest("MultiKueueCluster", "w", {})], []),
    "no check": ([], [("AdmissionCheck", "ask", "NotFound")]),
    "a check of somebody else": (
        [manifest("AdmissionCheck", "ask", {"controllerName": "example.com/x"}, reason="Down", message="")],
        [("AdmissionCheck", "ask", "Down")],
    ),
    "no parameters": (
        [manifest("AdmissionCheck", "ask", {"controllerName": PROVISIONING_CONTROLLER}, reason="Bad", message="")],
        [("AdmissionCheck", "ask", "Bad"), ("AdmissionCheck", "ask", "NoParameters")],
    ),
    "no ProvisioningRequestConfig": (
        [
            check(PROVISIONING_CONTROLLER, "ProvisioningRequestConfig", reason="BadParametersRef", message="not found"),
            manifest("ProvisioningRequestConfig", "another", {}),
        ],
        [("AdmissionCheck", "ask", "BadParametersRef"), ("ProvisioningRequestConfig", "config", "NotFound")],
    ),
    "an input without the kind": (
        [check(PROVISIONING_CONTROLLER, "ProvisioningRequestConfig", reason="BadParametersRef", message="bad kind")],
        [("AdmissionCheck", "ask", "BadParametersRef"), ("ProvisioningRequestConfig", "config", "Unknown")],
    ),
    "an input without the kind, and Kueue says that it is missing": (
        [check(reason="BadConfig", message='MultiKueueConfig "config" not found')],
        [("AdmissionCheck", "ask", "BadConfig"), ("MultiKueueConfig", "config", "NotFound")],
    ),
    "an input without clusters, and Kueue says that one is missing": (
        [check(reason="NoUsableClusters", message="Missing clusters: [w]"), CONFIG],
        [*NO_CLUSTER, ("MultiKueueCluster", "w", "NotFound")],
    ),
    "an input without the kind, and an active check": ([check()], []),
    "no MultiKueueConfig": (
        [check(reason="BadConfig", message="not found"), manifest("MultiKueueConfig", "another", {})],
        [("AdmissionCheck", "ask", "BadConfig"), ("MultiKueueConfig", "config", "NotFound")],
    ),
    "no MultiKueueCluster": (
        [check(**UNUSABLE), CONFIG, manifest("MultiKueueCluster", "v", {})],
        [*NO_CLUSTER, ("MultiKueueCluster", "w", "NotFound")],
    ),
    "no Secret": (
        [check(**UNUSABLE), CONFIG, cluster(secret(), "BadKubeConfig", 'Secret "w-kubeconfig" not found')],
        [*NO_CLUSTER, ("MultiKueueCluster", "w", "BadKubeConfig"), ("Secret", "w-kubeconfig", "NotFound")],
    ),
    "a wrong Secret": (
        [check(**UNUSABLE), CONFIG, cluster(secret(), "InsecureKubeConfig", "tokenFile is not allowed")],
        [
            *NO_CLUSTER,
            ("MultiKueueCluster", "w", "InsecureKubeConfig"),
            ("Secret", "w-kubeconfig", "InsecureKubeConfig"),
        ],
    ),
    "no file": (
        [check(**UNUSABLE), CONFIG, cluster(secret("Path"), "BadKubeConfig", "open w: no such file or directory")],
        [
            *NO_CLUSTER,
            ("MultiKueueCluster", "w", "BadKubeConfig"),
            ("file", "w-kubeconfig of Kueue's pods", "NotFound"),
        ],
    ),
    "a wrong ClusterProfile": (
        [check(**UNUSABLE), CONFIG, cluster({"clusterProfileRef": {"name": "p"}}, "BadClusterProfile", "no provider")],
        [
            *NO_CLUSTER,
            ("MultiKueueCluster", "w", "BadClusterProfile"),
            ("ClusterProfile", "p", "BadClusterProfile"),
        ],
    ),
    "an API server out of reach": (
        [check(**UNUSABLE), CONFIG, cluster(secret(), "ClientConnectionFailed", "connection refused")],
        [*NO_CLUSTER, ("MultiKueueCluster", "w", "ClientConnectionFailed")],
    ),
    "one of two workers": (
        [check(), CONFIG, cluster(secret(), "ClientConnectionFailed", "connection refused")],
        [("MultiKueueConfig", "config", ""), ("MultiKueueCluster", "w", "ClientConnectionFailed")],
    ),
}


class TestLinks:
    @pytest.mark.parametrize(("manifests", "chain"), CHAINS.values(), ids=CHAINS)
    def test_each_chain_to_its_end(self, manifests: list[dict[str, Any]], chain: list[tuple[str, str, str]]) -> None:
        assert ends(*manifests) == chain

    def test_only_a_cause_says_what_to_do(self) -> None:
        result = Links(CHAINS["no Secret"][0]).broken(queue(checks=(rule("ask"),)))
        assert [link.undo for link in result] == [
            "",
            "",
            "",
            "create Secret w-kubeconfig in Kueue's namespace, with a kubeconfig of w under the key kubeconfig",
        ]
        assert isinstance(result[0], Link)


class TestCopies:
    """Copies that MultiKueue made on a worker."""

    def test_the_queue_of_the_worker_is_what_is_wrong(self) -> None:
        result = explained(objects(queue()), job("a", to="other", origin="multikueue"))
        assert [change.what for change in result.changes] == ["create LocalQueue ns/other with clusterQueue: cq"]

    def test_its_pods_are_those_of_the_job_on_the_manager(self) -> None:
        result = replace(job("a", 1, origin="multikueue").pod_sets[0], count=11)
        results = explained(objects(queue()), job("a", origin="multikueue", pod_sets=(result,)))
        fewer = next(change for change in results.changes if change.kind == "count")
        assert fewer.what == "ask for 10 pods instead of 11 in pod set main, in its job on the manager"


def test_what_the_flavors_of_a_queue_lost_is_said_of_a_job_that_waits_for_quota() -> None:
    lost = LostCapacity("us", "h100", (("nvidia.com/gpu", "8"),), ("gke-a (NotReady)",))
    printed = {
        "kind": "ClusterQueue",
        "metadata": {"name": "cq", "annotations": {LOST_CAPACITY_ANNOTATION: write_lost([lost])}},
    }
    snapshot = Snapshot(objects(queue(cores=1)), (job("a", 2),), 0.0)
    result = explain(snapshot, "ns/a", links=Links([printed]))
    assert result.lost == (lost,)
    assert "8 nvidia.com/gpu of flavor h100 on us: gke-a" in " ".join(render_text(result).split())
