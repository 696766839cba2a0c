"""An elastic Job on the real Kueue, and what the core reads of its slices."""

from __future__ import annotations

from typing import Any

from kueue_admission.read.kueue_objects import parse_objects
from one_cluster import JOBS, KUEUE, OneCluster, job, pod_template, pods_of, wait_until

WORKLOADS = f"{KUEUE}/namespaces/default/workloads"


def running(cluster: OneCluster, count: int) -> set[str] | None:
    """The names of the pods that run, if they are so many."""
    names = {pod["metadata"]["name"] for pod in pods_of(cluster, "grows") if pod["status"]["phase"] == "Running"}
    return names if len(names) == count else None


def slices(cluster: OneCluster) -> list[dict[str, Any]]:
    result = [item for item in cluster.items(WORKLOADS) if item["metadata"]["name"].startswith("job-grows-")]
    return sorted(result, key=lambda each: "workload-slice-replacement-for" in str(each["metadata"]["annotations"]))


def replaced(cluster: OneCluster) -> list[dict[str, Any]] | None:
    """Both slices, once Kueue has finished the first for the second."""
    result = slices(cluster)
    reasons = [one["reason"] for one in result[0]["status"]["conditions"] if one["type"] == "Finished"]
    return result if reasons == ["WorkloadSliceReplaced"] else None


def test_a_job_that_grows_keeps_its_pod_and_its_slice_is_replaced(kueue_cluster: OneCluster) -> None:
    template = pod_template(1, {"kueue-fleet.dev/run-seconds": "600"})
    result = job("grows", "on-demand", template, annotations={"kueue.x-k8s.io/elastic-job": "true"})
    result["spec"]["completions"] = 2
    kueue_cluster.create(JOBS, result)
    first = wait_until(lambda: running(kueue_cluster, 1))
    kueue_cluster.request("PATCH", f"{JOBS}/grows", {"spec": {"parallelism": 2}}, "application/merge-patch+json")
    assert first < wait_until(lambda: running(kueue_cluster, 2))
    before, after = parse_objects(wait_until(lambda: replaced(kueue_cluster))).workloads
    assert (before.status.finished, after.replaces, after.pod_sets[0].count) == (True, before.key, 2)
    kueue_cluster.delete(f"{JOBS}/grows")
