"""What has quota and goes on with other pods: slices of elastic jobs, and pods of nodes that failed, simulated and
explained from the Workloads of a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.objects import API, at, cluster

from kueue_admission.decide.model import Snapshot
from kueue_admission.explain import Explanation, explain
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.raw import prepare_objects, read_raw
from kueue_admission.simulate.records import Record
from kueue_admission.simulate.result import Result

Json = dict[str, Any]
HOST = "kubernetes.io/hostname"


def workload(name: str, second: int, count: int, *, held: bool = False, **more: Any) -> Json:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    pods: Json = {"name": "main", "count": count, "template": {"spec": {"containers": [container]}}}
    given: Json = {"name": "main", "count": count, "flavors": {"cpu": "rf"}, "resourceUsage": {"cpu": str(count)}}
    if "places" in more:
        pods["topologyRequest"] = {"preferred": HOST}
        levels = [{"domainCount": 1, "podCounts": {"universal": n}, "valuesPerLevel": [{"universal": host}]}
                  for host, n in more["places"].items()]  # fmt: skip
        given["topologyAssignment"] = {"levels": [HOST], "slices": levels}
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": at(second)}
        for kind in ("QuotaReserved", "Admitted")
    ]
    status = {"admission": {"clusterQueue": "cq", "podSetAssignments": [given]}, "conditions": conditions}
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": at(second),
            "annotations": {f"kueue.x-k8s.io/{key}": value for key, value in more.get("annotations", {}).items()}
            | {"kueue-fleet.dev/run-seconds": "100"},
        },
        "spec": {"queueName": "lq", "podSets": [pods]},
        "status": {**(status if held else {}), **more.get("status", {})},
    }


def simulated(objects: list[Json]) -> dict[str, Record]:
    raw = read_raw([Document("a.yaml", item) for item in objects])
    result: Result = prepare_objects(raw, Delays(), until=1000).run()
    return {record.key.partition("/")[2]: record for record in result.records}


def explained(objects: list[Json], name: str) -> Explanation:
    parsed = parse_objects(objects)
    return explain(Snapshot(parsed.with_namespaces(), parsed.workloads, 1767225600.0 + 60), f"default/{name}")


def slices(count: int) -> list[Json]:
    """A slice of 4 pods, one of `count` pods that replaces it, and 2 more cores in use of 8."""
    replaces = {"elastic-job": "true", "workload-slice-replacement-for": "default/small"}
    return [
        *cluster(cpu=8),
        workload("small", 0, 4, held=True),
        workload("other", 0, 2, held=True),
        workload("large", 30, count, annotations=replaces),
    ]


def test_a_slice_takes_the_place_of_a_smaller_one_and_only_needs_the_rest() -> None:
    result = simulated(slices(6))
    assert (result["small"].reason, result["small"].evictions) == ("WorkloadSliceReplaced", [])
    assert result["large"].admitted_at == result["small"].finished_at
    assert result["large"].finished_at is not None
    assert result["small"].runs[0].started_at is not None
    assert result["large"].finished_at - result["small"].runs[0].started_at == pytest.approx(100)


def test_a_slice_that_does_not_fit_leaves_the_smaller_one_running() -> None:
    result = simulated(slices(7))
    assert result["small"].reason == "Succeeded"
    assert result["large"].first_admitted_at is not None
    assert result["small"].finished_at is not None
    assert result["large"].first_admitted_at >= result["small"].finished_at


def test_explain_counts_what_a_slice_needs_beyond_the_one_it_replaces() -> None:
    result = explained(slices(7), "large")
    [figures] = result.flavors[0].resources
    assert (result.replaces, figures.asked, figures.free, figures.missing) == ("default/small", 3000, 2000, 1000)


def nodes(*names: str) -> list[Json]:
    """A topology of these nodes, with 4 cores each, and a job that has 2 pods on each of `a` and `b`; `a` failed."""
    objects = cluster(cpu=8)
    objects[0]["spec"] = {"topologyName": "hosts", "nodeLabels": {"pool": "p"}}
    ready = [{"type": "Ready", "status": "True"}]
    result = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {HOST: name, "pool": "p"}},
         "status": {"allocatable": {"cpu": "2", "pods": "9"}, "conditions": ready}}
        for name in names
    ]  # fmt: skip
    topology = {"apiVersion": API, "kind": "Topology", "metadata": {"name": "hosts"}}
    topology["spec"] = {"levels": [{"nodeLabel": HOST}]}
    failed = {"unhealthyNodes": [{"name": "a"}]}
    job = workload("job", 0, 4, held=True, places={"a": 2, "b": 2})
    job["status"] |= failed
    return [*objects, topology, *result, job]


def test_pods_of_a_failed_node_get_another_place() -> None:
    record = simulated(nodes("b", "c"))["job"]
    assert record.runs[0].started_at is not None
    assert (record.evictions, len(record.runs), record.reason) == ([], 1, "Succeeded")
    assert record.admission is not None
    places = record.admission.pod_sets[0].topology or ()
    assert {domain.values[-1]: domain.count for domain in places} == {"b": 2, "c": 2}
    result = explained(nodes("b", "c"), "job")
    assert result.headline == "Node a failed under its pods, which the next cycle places elsewhere."


def test_a_job_is_evicted_where_there_is_no_other_place() -> None:
    record = simulated(nodes("b"))["job"]
    assert [eviction.reason for eviction in record.evictions] == ["NodeFailures"]
    result = explained(nodes("b"), "job")
    assert result.headline == "Node a failed under its pods, and there is no other place for them: Kueue evicts it."
