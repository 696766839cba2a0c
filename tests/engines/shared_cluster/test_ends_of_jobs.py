"""Ends of Jobs that Kueue does not copy, as the controller writes them and an API server takes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kueue_admission.read.printed import PrintedJob
from kueue_fleet.controller.records import Record
from kueue_fleet.controller.rescue import end_of_job, status_of_job
from kueue_fleet.kube.answers import Json
from one_cluster import OneCluster, Refused
from tests.controller.build import condition, when
from tests.controller.test_rescue import ended, fixture

JOBS = "/apis/batch/v1/namespaces/default/jobs"
MERGE = "application/merge-patch+json"


def create(cluster: OneCluster, name: str, mode: str = "NonIndexed", *, suspend: bool = True) -> None:
    spec = {
        "suspend": suspend,
        "managedBy": "kueue.x-k8s.io/multikueue",
        "completionMode": mode,
        "completions": 2,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}},
    }
    result = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    cluster.create(JOBS, result)


def end(cluster: OneCluster, name: str, reason: str) -> None:
    there = PrintedJob.of(cluster.get(f"{JOBS}/{name}"))
    controller = fixture()
    record: Record = controller.manager.records[controller.take(ended(reason))]
    record = replace(record, namespace="default", owner=replace(record.owner, name=name, uid=there.uid))
    body = status_of_job(record, there)
    body["status"] |= end_of_job(record, there, record.end)
    apply = "application/apply-patch+yaml"
    cluster.request("PATCH", f"{JOBS}/{name}/status?fieldManager=rescue&force=true", body, apply)


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
@pytest.mark.parametrize("reason", ["Succeeded", "Failed"])
def test_a_job_of_multikueue_that_is_suspended_ends_and_is_resumed(
    bare_cluster: OneCluster, reason: str, mode: str
) -> None:
    name = f"{reason}-{mode}".lower()
    create(bare_cluster, name, mode)
    end(bare_cluster, name, reason)
    resume = {"spec": {"suspend": False}}
    after = PrintedJob.of(bare_cluster.request("PATCH", f"{JOBS}/{name}", resume, MERGE))
    assert (after.is_suspended, after.ended_at is not None) == (False, True)


@pytest.mark.parametrize("reason", ["Succeeded", "Failed"])
@pytest.mark.parametrize(
    ("kept", "again"),
    [
        ({"failed": 1}, {"failed": 0}),
        ({"succeeded": 1}, {"succeeded": 0}),
        ({"startTime": when()}, {"startTime": when(9)}),
        ({"conditions": [condition("FailureTarget")]}, {"conditions": []}),
        ({"conditions": [condition("SuccessCriteriaMet")]}, {"conditions": []}),
    ],
    ids=["failed", "succeeded", "startTime", "FailureTarget", "SuccessCriteriaMet"],
)
def test_a_job_whose_status_cannot_go_back_ends(bare_cluster: OneCluster, kept: Json, again: Json, reason: str) -> None:
    """Kueue would write `again`, the status of the Job that has started over."""
    [field] = kept
    name = f"{field}-{reason}-{len(str(kept))}".lower()
    create(bare_cluster, name, suspend=False)
    status = f"{JOBS}/{name}/status"
    bare_cluster.request("PATCH", status, {"status": kept}, MERGE)
    with pytest.raises(Refused, match=rf"status\.{field}"):
        bare_cluster.request("PATCH", status, {"status": again}, MERGE)
    end(bare_cluster, name, reason)
    after = bare_cluster.get(f"{JOBS}/{name}")  # settled: nothing else writes its status
    assert PrintedJob.of(after).ended_at is not None
