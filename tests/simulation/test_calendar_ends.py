"""The end of a calendar reservation, under jobs that still run: Google takes the machines away.

The real Kueue does the same: tests/engines/shared_cluster/test_node_pools.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.simulation.fleets import GPU, calendar_data

from command_line import call
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import check_fleet, parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile

BEGIN, END = "2026-12-07T23:00:00Z", 3600
"""The pool ends an hour after second 0."""


def entry(**fields: Any) -> dict[str, Any]:
    requests = {GPU: 8, "cpu": 8}
    return {"name": "j", "namespace": "default", "queue": "q", "requests": requests, "runSeconds": 10_000, **fields}


def run(data: dict[str, Any], *jobs: dict[str, Any], manifests: Any = (), until: float = 20_000) -> list[Any]:
    file = WorkloadFile.model_validate({"jobs": jobs, "begin": BEGIN})
    simulated = prepare_fleet(parse_fleet(data), file, Delays(), until=until, manifests=manifests).run()
    result: list[Any] = simulated.as_json()["workloads"]
    return result


def test_kueue_takes_the_job_back_after_its_patience_and_gives_it_the_same_flavor() -> None:
    """The quota is there until `pulumi up` closes the pool, the nodes are not."""
    [result] = run(calendar_data(), entry(pods=2), until=6000)
    first, second = result["runs"]
    assert (first["startedAt"], first["reclaimedAt"], first["endedAt"], first["end"]) == (
        0,
        [END],
        END + 1800,
        "PodsReadyTimeout",
    )
    assert (second["flavors"], second["startedAt"], result["state"]) == (["week"], None, "Admitted")
    assert result["message"] == "its pods do not all fit on node pool week (0 of 0 nodes in use)"


def test_with_a_patience_it_goes_on_to_other_nodes() -> None:
    [result] = run(calendar_data(fallback=[{"flavor": "week", "patience": "10m"}]), entry())
    assert [(item["flavors"], item["end"]) for item in result["runs"]] == [
        (["week"], "PodsReadyTimeout"),
        (["week"], "AdmissionCheck"),
        (["later"], "Succeeded"),
    ]


def test_a_job_that_ends_at_that_moment_is_done() -> None:
    [result] = run(calendar_data(), entry(runSeconds=END))
    assert [item["end"] for item in result["runs"]] == ["Succeeded"]


def test_a_job_fails_whose_pods_may_not_fail_so_often() -> None:
    """Eight pods, and Kubernetes lets six fail by default."""
    [result] = run(calendar_data(), entry(pods=8))
    assert (result["state"], result["reason"], result["finishedAt"]) == ("Finished", "Failed", END)
    assert [item["end"] for item in result["runs"]] == ["Failed"]


@pytest.mark.parametrize(
    ("spec", "ends"),
    [
        ({"backoffLimit": 0}, ["Failed"]),
        ({"backoffLimit": 1}, ["PodsReadyTimeout", None]),
        (
            {
                "backoffLimit": 0,
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
                },
            },
            ["PodsReadyTimeout", None],
        ),
    ],
)
def test_its_manifest_says_how_often(spec: dict[str, Any], ends: list[str | None]) -> None:
    resources = {"requests": {"cpu": "1", GPU: "8"}, "limits": {GPU: "8"}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1", "resources": resources}]}
    annotations = {"kueue-fleet.dev/run-seconds": "10000"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {"suspend": True, **spec, "template": {"metadata": {"annotations": annotations}, "spec": pod}},
    }
    [result] = run(calendar_data(), manifests=[Document("job.yaml:1", job)], until=6000)
    assert [item["end"] for item in result["runs"]] == ends


@pytest.mark.parametrize(("begin", "state"), [(BEGIN, "Admitted"), ("2026-11-30T00:00:00Z", "Pending")])
def test_the_pool_is_open_or_closed_as_it_is_at_second_0(tmp_path: Path, begin: str, state: str) -> None:
    """Whatever day it is today."""
    data = calendar_data(open_by_hand=False)
    [queue] = data["clusterQueues"]
    del queue["resourceGroups"][0]["flavors"][1], data["flavors"][1], data["nodePools"][1]
    (tmp_path / "fleet.yaml").write_text(json.dumps(data))
    (tmp_path / "jobs.yaml").write_text(json.dumps({"jobs": [entry()], "begin": begin}))
    for change in ((), ("--what-if", "name=other")):
        result = call(
            "simulate",
            "fleet",
            tmp_path / "fleet.yaml",
            "-w",
            tmp_path / "jobs.yaml",
            "--until",
            "60",
            "-o",
            "json",
            *change,
        )
        assert result.returncode == 0, result.stderr
        printed = json.loads(result.stdout)
        for item in (printed,) if not change else (printed["before"], printed["after"]):
            assert [one["state"] for one in item["workloads"]] == [state]


def test_without_a_pool_the_window_opens_the_reservation_by_itself() -> None:
    """The settings of the page, on Autopilot: nothing to say of them, and the job starts with the reservation."""
    page = (Path(__file__).parents[2] / "docs/tasks/dws.md").read_text(encoding="utf-8")
    [block] = [item for item in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "reservation-affinity" in item]
    reserved = {"name": "h100-december", "zone": "us-central1-a", "machineType": "a3-highgpu-8g", "count": 4}
    asked = {"start": "2026-12-01T00:00:00Z", "duration": "336h", "planningStatus": "SUBMITTED"}
    data = {
        **yaml.safe_load(block),
        "name": "research",
        "project": "research-project",
        "clusters": [{"name": "batch", "role": "standalone", "region": "us-central1", "mode": "Autopilot"}],
        "futureReservations": [{**reserved, **asked}],
        "localQueues": [{"namespace": "team", "name": "december", "clusterQueue": "december"}],
    }
    fleet = parse_fleet(data)
    assert [str(problem) for problem in check_fleet(fleet)] == []
    requests = {GPU: 8, "cpu": 8, "memory": "10Gi", "ephemeral-storage": "1Gi"}
    job = {"name": "j", "namespace": "team", "queue": "december", "requests": requests, "runSeconds": 600}
    file = WorkloadFile.model_validate({"jobs": [{**job, "maxRunSeconds": 7200}], "begin": "2026-11-30T23:00:00Z"})
    [result] = prepare_fleet(fleet, file, Delays()).run().as_json()["workloads"]
    assert (result["quotaReservedAt"], result["admittedAt"], result["finishedAt"]) == (0, 3600, 4200)
