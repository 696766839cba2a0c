"""`kueue-fleet status`: what it prints of objects that clusters list; the listing itself is tested on real ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.status.test_fleet_status import RESERVED, connection, queue, request, workload
from typer.testing import CliRunner, Result

from kueue_admission.history.store import Store
from kueue_fleet.cli import app, live_fleet
from kueue_fleet.status import ClusterObjects

ROOT = Path(__file__).parents[2]
STACK = str(ROOT / "stacks" / "Pulumi.dws-multikueue.yaml")


def lists(_: str, cluster: str, role: str, *__: object) -> ClusterObjects:
    if cluster == "worker-asia-southeast1":
        return ClusterObjects(role, unreachable="no answer: NewConnectionError")
    if role == "manager":
        workers = ("worker-europe-west4", "worker-us-east4")
        links = [connection(name, active=name != "worker-us-east4") for name in workers]
        return ClusterObjects(role, {"workloads": [workload("a"), workload("b")], "multikueueclusters": links})
    accepted = request("req", "2026-11-21T11:00:00Z", Accepted=(True, "SuccessfullyQueued", "queued"))
    return ClusterObjects(
        role,
        {
            "clusterqueues": [queue(used="5", borrowed="1")],
            "workloads": [workload("b", QuotaReserved=RESERVED)],
            "provisioningrequests": [accepted],
        },
    )


@pytest.fixture(autouse=True)
def fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_fleet, "_read", lists)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["status", STACK, *arguments])


def test_a_fleet_at_a_glance() -> None:
    result = run()
    assert result.exit_code == 1  # one cluster does not answer
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "manager-europe-west4 manager 2 0 0 ready" in lines
    assert "worker-europe-west4 worker 0 1 0 connected" in lines
    assert any(line.startswith("worker-asia-southeast1 worker - - - no answer") for line in lines)
    assert "dws worker-europe-west4 t4 nvidia.com/gpu 5 (+1) / 4" in lines
    assert any(
        line.startswith("team-a/a gpu") and "PendingEvaluation on manager-europe-west4" in line for line in lines
    )
    assert any(line.startswith("team-a/req worker-europe-west4") for line in lines)
    assert any(line.startswith("credentials: to be replaced by 2027-02-01") for line in lines)
    words = " ".join(lines)
    assert "the token has" in words
    assert "no answer:" in words


def test_a_job_that_no_worker_can_hold_is_named_with_what_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = workload("big", QuotaReserved=RESERVED)
    waiting["status"]["admission"] = {"podSetAssignments": [{"resourceUsage": {"nvidia.com/gpu": "24"}}]}
    never = workload("big", QuotaReserved=(False, "ExceedsMaxQuota", "too big"))

    def both(_: str, __: str, role: str, *___: object) -> ClusterObjects:
        return ClusterObjects(role, {"workloads": [waiting if role == "manager" else never]})

    monkeypatch.setattr(live_fleet, "_read", both)
    words = " ".join(run().stdout.split())
    assert "ExceedsMaxQuota on every worker it was offered to; it keeps 24 nvidia.com/gpu on the manager until" in words


@pytest.mark.parametrize("amount", ["1e30", "9" * 40, True, None, "x" * 1000])
def test_absurd_amounts_end_no_answer(amount: object, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster_queue, holder = queue(used="5", borrowed="1"), workload("b", QuotaReserved=RESERVED)
    cluster_queue["status"]["flavorsReservation"][0]["resources"][0]["total"] = amount
    cluster_queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = amount
    usage = {"resourceUsage": {"nvidia.com/gpu": amount}}
    holder["status"]["admission"] = {"clusterQueue": "dws", "podSetAssignments": [usage, usage]}
    holder["metadata"]["deletionTimestamp"] = "2026-11-21T11:00:00Z"
    objects = {"clusterqueues": [cluster_queue], "workloads": [holder]}
    monkeypatch.setattr(live_fleet, "_read", lambda *given: ClusterObjects(given[2], objects))
    for options in ([], ["--usage"], ["--output", "json"]):
        result = run(*options)
        assert isinstance(result.exception, SystemExit | None), result.exception
        assert "dws" in result.stdout


def test_a_job_that_is_stuck_is_named_with_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = workload("gone", QuotaReserved=RESERVED)
    deleted["metadata"]["deletionTimestamp"] = "2026-11-21T11:00:00Z"
    deleted["status"]["admission"] = {"podSetAssignments": [{"resourceUsage": {"nvidia.com/gpu": "8"}}]}
    monkeypatch.setattr(live_fleet, "_read", lambda *given: ClusterObjects(given[2], {"workloads": [deleted]}))
    lines = [" ".join(line.split()) for line in run().stdout.splitlines()]
    output = [line for line in lines if line.startswith("team-a/gone manager-europe-west4")]
    assert "StuckEviction: Deleted, and still has its quota: 8 nvidia.com/gpu" in " ".join(output)


def test_json_has_all_of_it() -> None:
    result = run("--output", "json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["fleet"] == "dws-multikueue"
    assert [cluster["reachable"] for cluster in document["clusters"]] == [True, True, True, False]
    assert {item["name"] for item in document["pending"]} == {"a", "b"}
    unknown = document["clusters"][-1]
    assert (unknown["pending"], unknown["reserved"], unknown["admitted"]) == (None, None, None)


def test_what_is_not_known_of_teams_is_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: str, __: str, role: str, *___: object) -> ClusterObjects:
        return ClusterObjects(role, unreachable="no answer")

    monkeypatch.setattr(live_fleet, "_read", refused)
    lines = [" ".join(line.split()) for line in run().stdout.splitlines()]
    assert "team-vision - - - - -" in lines
    (team, *_) = json.loads(run("--output", "json").stdout)["teams"]
    unknown = ("jobs", "gpus", "borrowed", "waitingJobs", "waitingGpus")
    assert [team[item] for item in unknown] == [None] * len(unknown)


def test_a_history_without_goals_is_not_used_and_that_is_said(tmp_path: Path) -> None:
    Store(str(tmp_path / "history"), create=True)
    result = run("--store", str(tmp_path / "history"))
    assert "--store: dws-multikueue has no goals to judge" in result.stderr


def test_slips_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "--watch: shows text only" in str(run("--watch", "--output", "json").exception)
    monkeypatch.undo()
    config = tmp_path / "kubeconfig"
    config.write_text("apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n")
    assert "give a kubeconfig with a context manager-europe-west4" in str(run("--kubeconfig", str(config)).exception)
    assert "none: no such file; give a kubeconfig" in str(run("--kubeconfig", str(tmp_path / "none")).exception)
