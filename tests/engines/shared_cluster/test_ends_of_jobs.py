"""The end of a Job that Kueue 0.17 does not copy, as the controller writes it and an API server takes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kueue_admission.read.printed import PrintedJob
from kueue_fleet.controller.rescue import end_of_job, status_of_job
from one_cluster import OneCluster
from tests.controller.test_rescue import ended, fixture

JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
@pytest.mark.parametrize("reason", ["Succeeded", "Failed"])
def test_a_job_of_multikueue_that_is_suspended_ends_and_is_resumed(
    bare_cluster: OneCluster, reason: str, mode: str
) -> None:
    name = f"{reason}-{mode}".lower()
    spec = {
        "suspend": True,
        "managedBy": "kueue.x-k8s.io/multikueue",
        "completionMode": mode,
        "completions": 2,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}},
    }
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    bare_cluster.create(JOBS, made)
    there = PrintedJob.of(bare_cluster.get(f"{JOBS}/{name}"))
    controller = fixture()
    record = controller.manager.records[controller.take(ended(reason))]
    record = replace(record, namespace="default", owner=replace(record.owner, name=name, uid=there.uid))
    body = status_of_job(record, there)
    body["status"] |= end_of_job(record)
    apply = "application/apply-patch+yaml"
    bare_cluster.request("PATCH", f"{JOBS}/{name}/status?fieldManager=rescue&force=true", body, apply)
    resume, merge = {"spec": {"suspend": False}}, "application/merge-patch+json"
    after = PrintedJob.of(bare_cluster.request("PATCH", f"{JOBS}/{name}", resume, merge))
    assert (after.is_suspended, after.ended_at is not None) == (False, True)
