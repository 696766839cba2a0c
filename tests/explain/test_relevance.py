"""What is left out of a dump before it is read changes no explanation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn import examples
from kueue_admission.decide.model import Snapshot
from kueue_admission.explain import explain
from kueue_admission.explain.relevance import WorkloadIndex
from kueue_admission.read.kueue_objects import parse_objects

KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUES = {"a": "one", "b": "one", "c": "two", "d": None}


def queues() -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = [{"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}}]
    for name, cohort in QUEUES.items():
        quota = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 4}]}]
        preemption = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
        spec = {
            "namespaceSelector": {},
            "preemption": preemption,
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quota}],
            **({"cohortName": cohort} if cohort else {}),
        }
        result.append({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        local = {"name": f"lq-{name}", "namespace": "ns"}
        result.append({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": name}})
    result.append({"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": "two"}, "spec": {"parentName": "root"}})
    return result


def workload(number: int, queue: str, cpu: int, priority: int, state: str) -> dict[str, Any]:
    time = f"2026-11-20T08:00:{number:02}Z"
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}}]
    conditions = {"pending": [], "held": ["QuotaReserved", "Admitted"], "done": ["QuotaReserved", "Finished"]}[state]
    status: dict[str, Any] = {
        "conditions": [{"type": t, "status": "True", "reason": t, "lastTransitionTime": time} for t in conditions]
    }
    if state != "pending":
        given = {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": str(cpu)}}
        status["admission"] = {"clusterQueue": queue, "podSetAssignments": [given]}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": f"w{number}", "namespace": "ns", "uid": f"u{number}", "creationTimestamp": time},
        "spec": {
            "queueName": f"lq-{queue}",
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": containers}}}],
        },
        "status": status,
    }


kinds = st.tuples(
    st.sampled_from(sorted(QUEUES)), st.integers(1, 6), st.integers(0, 2), st.sampled_from(["pending", "held", "done"])
)


class TestRelevance:
    @settings(max_examples=examples(60), deadline=None)
    @given(st.lists(kinds, min_size=1, max_size=12))
    def test_the_explanation_is_the_same(self, made: list[tuple[str, int, int, str]]) -> None:
        manifests = [*queues(), *(workload(n, *item) for n, item in enumerate(made))]
        index = WorkloadIndex(manifests)
        for number, (queue, _, _, state) in enumerate(made[:3]):
            key = f"ns/w{number}"
            kept = index.relevant(key, index.queue_of(key))
            assert explained(kept, key) == explained(manifests, key)
            if state == "pending" and queue == "d":
                names = {m["metadata"]["name"] for m in kept if m["kind"] == "Workload"}
                others = {f"w{n}" for n, entry in enumerate(made) if entry[0] == "d" and entry[3] != "done"}
                assert names == others | {f"w{number}"}

    def test_without_its_queue_everything_is_kept(self) -> None:
        manifests = [*queues(), workload(0, "nowhere", 1, 0, "pending"), workload(1, "a", 1, 0, "held")]
        assert len(WorkloadIndex(manifests).relevant("ns/w0", "ns/lq-nowhere")) == len(manifests)

    @pytest.mark.parametrize("junk", [{}, {"metadata": 3}, {"metadata": {"ownerReferences": 3}, "status": []}])
    def test_objects_of_any_quality(self, junk: dict[str, Any]) -> None:
        manifests = [*queues(), {"kind": "Workload", **junk}, workload(1, "a", 1, 0, "pending")]
        index = WorkloadIndex(manifests)
        assert index.keys("w1") == ["ns/w1"]
        assert index.relevant("ns/w1", index.queue_of("ns/w1"))


def explained(manifests: list[Any], key: str) -> str:
    parsed = parse_objects(manifests)
    return repr(explain(Snapshot(parsed.objects, parsed.workloads, 1795215600.0), key))


def test_pods_that_are_not_ready_matter_to_every_queue_where_they_block_admission() -> None:
    manifests = [*queues(), workload(1, "a", 1, 0, "held"), workload(2, "d", 1, 0, "pending")]
    assert len(WorkloadIndex(manifests).relevant("ns/w2", "ns/lq-d")) == len(manifests) - 1
    text = "kind: Configuration\nwaitForPodsReady: {blockAdmission: true}"
    config = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"controller_manager_config.yaml": text}}
    assert len(WorkloadIndex([config, *manifests]).relevant("ns/w2", "ns/lq-d")) == len(manifests) + 1
