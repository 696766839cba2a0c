"""`explain` on a manager and its workers: what is the same is said once, and what no worker can hold is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kueue_fleet.cli import app


def worker(name: str, region: str) -> dict[str, str]:
    return {"name": name, "role": "worker", "region": region}


def queue(name: str, **more: Any) -> dict[str, Any]:
    quota = {"name": "gpu", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4}]}
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [quota]}]
    return {"name": name, "namespaceSelector": {}, "resourceGroups": groups, **more}


FLEET = {
    "name": "explained",
    "project": "my-project",
    "clusters": [
        {"name": "hub", "role": "manager", "region": "europe-west4"},
        worker("eu", "europe-west4"),
        worker("us", "us-east4"),
        worker("asia", "asia-southeast1"),
    ],
    "flavors": [{"name": "gpu", "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}],
    "clusterQueues": [queue("everywhere"), queue("only-eu", clusters=["eu"])],
    "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "1", "rotateBy": "2099-01-01"}},
    "teams": [
        {
            "name": "a",
            "localQueues": [
                {"name": "everywhere", "clusterQueue": "everywhere"},
                {"name": "only-eu", "clusterQueue": "only-eu"},
            ],
        }
    ],
}


def job(name: str, gpus: int, queue: str = "everywhere", **more: Any) -> dict[str, Any]:
    requests = {"nvidia.com/gpu": str(gpus)}
    return {"name": name, "namespace": "a", "queue": queue, "requests": requests, "runSeconds": 5000, **more}


HUGE = [job("huge", 8), job("one", 4, start=5), job("two", 4, start=6), job("three", 4, start=7)]
"""No worker has 8 GPUs, and the manager has 12: behind `huge` and `one` there is no quota left."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("fleet.yaml").write_text(yaml.safe_dump(FLEET))
    return tmp_path


def explained(name: str, jobs: list[dict[str, Any]], *options: str) -> str:
    Path("jobs.yaml").write_text(yaml.safe_dump({"jobs": jobs}))
    call = ["explain", name, "--stack", "fleet.yaml", "-w", "jobs.yaml", "--second", "50", *options]
    result = CliRunner().invoke(app, call)
    assert result.exception is None, result.output
    return result.stdout


def words(text: str) -> str:
    return " ".join(text.split())


def on_hub(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(explained(name, HUGE, "-o", "json"))["explanations"][0]
    return result


@pytest.mark.usefixtures("folder")
class TestManyWorkers:
    def test_workers_that_say_the_same_are_one_part(self) -> None:
        """Each of them is full, of another job."""
        jobs = [*(job(name, 4) for name in ("first", "second", "third")), job("huge", 8, start=5)]
        _, hub, workers = explained("huge", jobs).split("-" * 80)
        assert hub.strip().startswith(
            "a/huge is Pending on hub: WaitingForQuota [KF104]\n  No worker cluster can ever hold it"
        )
        assert workers.strip().startswith("a/huge is Pending on eu, us, asia: ExceedsMaxQuota [KF105]\n")
        assert "used by the queue 4" in workers
        assert "held by" not in workers

    def test_workers_that_differ_are_several_parts(self) -> None:
        text = explained("huge", HUGE)
        assert "a/huge is Pending on eu: ExceedsMaxQuota [KF105]\n" in text
        assert "held by a/one 4" in text
        assert "a/huge is Pending on us, asia: ExceedsMaxQuota [KF105]\n" in text

    def test_json_has_every_cluster(self) -> None:
        result = json.loads(explained("huge", HUGE, "-o", "json"))["explanations"]
        assert [item["cluster"] for item in result] == ["hub", "eu", "us", "asia"]

    def test_a_queue_that_is_on_some_workers_only(self) -> None:
        text = explained("far", [job("far", 8, queue="only-eu")])
        assert "  us: is not there; its LocalQueue only-eu is on hub, eu only\n" in text
        assert "a/far is not on us, asia\n" in text
        assert "Misconfigured" not in text
        assert "add this cluster to the clusters of its ClusterQueue" in words(text)
        [us] = [e for e in json.loads(explained("far", [job("far", 8, queue="only-eu")], "-o", "json"))["explanations"]
                if e["cluster"] == "us"]  # fmt: skip
        assert (us["state"], us["reason"], us["is_there"]) == ("Absent", None, False)


@pytest.mark.usefixtures("folder")
class TestAJobThatNoWorkerCanHold:
    def test_it_is_said_of_the_job(self) -> None:
        result = on_hub("huge")
        assert result["headline"].startswith(
            "No worker cluster can ever hold it, so it never runs; it keeps its quota here until it is deleted"
        )
        assert result["next_step"].startswith("Delete it, and submit it with no more than the queue can have")
        assert result["changes"] == []

    def test_those_behind_it_are_not_told_to_wait_for_it(self) -> None:
        result = on_hub("three")
        assert result["reason"] == "WaitingForQuota"
        assert result["next_step"].startswith("Delete a/huge, which no worker cluster can ever hold")
        assert not any("wait until a/huge" in change["what"] for change in result["changes"])

    def test_one_that_a_worker_can_hold_is_waited_for(self) -> None:
        jobs = [job("first", 4), job("second", 4), job("third", 4), job("fourth", 4, start=5)]
        [hub, *_] = json.loads(explained("fourth", jobs, "-o", "json"))["explanations"]
        assert hub["next_step"].startswith("Wait until a/")
        assert "No worker" not in hub["headline"]


@pytest.mark.usefixtures("folder")
def test_a_job_that_the_manager_admitted_without_a_worker_never_runs() -> None:
    """Kueue gives it no flavor, and so no MultiKueue check."""
    configuration = {"configuration": {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}}}
    Path("fleet.yaml").write_text(yaml.safe_dump({**FLEET, "kueue": configuration}))
    text = words(explained("bare", [{**job("bare", 1), "requests": {"cpu": "1"}}]))
    assert "It never runs: it requests nothing that the queue covers, so the manager admitted it" in text
    assert "Next step: On hub: Delete it, and submit it with a request that ClusterQueue everywhere covers." in text


FULL = [*(job(f"runs-{index}", 4) for index in range(3)), job("waits", 4, start=10)]
"""Each worker is full."""


@pytest.mark.usefixtures("folder")
def test_a_job_on_the_manager_is_told_of_the_flavors_of_workers() -> None:
    text = words(explained("waits", FULL))
    by_worker = "By worker: eu 0 of 4 in flavor gpu; us 0 of 4 in flavor gpu; asia 0 of 4 in flavor gpu."
    assert f"0 of 12 is free on the worker clusters together, 4 is missing. {by_worker}" in text
    assert "free in flavor multikueue" not in text


@pytest.mark.usefixtures("folder")
def test_quotas_that_stand_for_those_of_workers_are_raised_there_alone() -> None:
    on_manager, *on_workers = json.loads(explained("waits", FULL, "-o", "json"))["explanations"]
    assert "nominalQuota" not in {change["kind"] for change in on_manager["changes"]}
    assert all("nominalQuota" in {change["kind"] for change in item["changes"]} for item in on_workers)


@pytest.mark.usefixtures("folder")
def test_a_job_that_no_worker_can_hold_is_to_be_submitted_with_less() -> None:
    text = words(explained("huge", [*FULL[:3], job("huge", 16, start=10)]))
    assert "can never have more than 12 of it on its worker clusters together." in text
    assert "Next step: On hub: Delete it, and submit it with no more than the queue can have on one worker" in text


@pytest.mark.usefixtures("folder")
def test_what_helps_on_the_manager_gives_quota_and_no_worker() -> None:
    text = words(explained("waits", FULL))
    assert "wait until a/runs-0 has finished: has quota here; a worker cluster then decides" in text
