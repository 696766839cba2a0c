"""`kueue-fleet when`: what it prints, from a dump and from live clusters, and what it needs to know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.live_fleet import serve
from tests.simulation.test_forecast import workload as team_a
from typer.testing import CliRunner, Result

from kueue_fleet.cli import app

ROOT = Path(__file__).parents[2]
STACK = str(ROOT / "stacks" / "Pulumi.dws-multikueue.yaml")
MANAGER = "manager-europe-west4"
WORKERS = ("worker-europe-west4", "worker-us-east4", "worker-asia-southeast1")
AT = ["--at", "2026-11-21T12:00:00"]


def workload(name: str, **given: Any) -> dict[str, Any]:
    result = team_a(name, **given)
    result["metadata"]["namespace"] = "team-vision"
    return result


def state() -> list[dict[str, Any]]:
    """Four GPUs of each worker are in use, for 100 s, and two jobs wait."""
    result = []
    for worker in WORKERS:
        for number in range(4):
            result.append(workload(f"{worker}-{number}", QuotaReserved=-100, Admitted=-100))
            result[-1]["status"]["clusterName"] = worker
    return [*result, workload("a", created=-60), workload("b", created=-30)]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    (tmp_path / "w.yaml").write_text(
        yaml.dump({"kind": "List", "apiVersion": "v1", "items": state()}, Dumper=yaml.CSafeDumper)
    )
    return tmp_path


def when(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["when", STACK, *AT, *arguments], input=stdin)


def test_a_job_that_waits(dump: Path) -> None:
    result = when("--job", "of-b", "--objects", str(dump), "--run-time", "uniform(3600, 7200)")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "team-vision/of-b: number 2 of 2 pending in ClusterQueue dws"
    assert lines[1].startswith("Starts in ")
    assert lines[2].startswith("10th to 90th percentile of 20 simulations: ")
    assert "- run times of 13 of them from --run-time" in lines
    assert "- admission checks, DWS among them, take no time: no workload file has waits" in lines


def test_what_runs_does_not_wait_for_dws_again(dump: Path) -> None:
    file = dump / "waits.yml"
    file.write_text("waits: [{seconds: 1000}]\n")
    options = ["--objects", str(dump / "w.yaml"), "--run-time", "1100", "--seeds", "2", "-o", "json"]
    at_once, later = (
        json.loads(when("--job", "team-vision/of-b", *options, *more).stdout) for more in ([], ["-w", str(file)])
    )
    assert at_once["seconds"]["median"] == pytest.approx(1000, abs=3)
    assert later["seconds"]["median"] == pytest.approx(2000, abs=3)
    assert (later["place"], later["pending"], later["simulations"], later["notStarted"]) == (2, 2, 2, 0)


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        ({"metadata": {"namespace": "team-vision"}}, "Workload.metadata.name: is missing or empty"),
        ({"metadata": {"name": 7}}, "Workload.metadata.name: is 7, not text"),
        ({"metadata": {"name": "x", "ownerReferences": {"a": 1}}}, "metadata.ownerReferences: is not a list of owners"),
    ],
    ids=["no name", "number", "owners"],
)
def test_a_workload_that_cannot_be_used_ends_no_answer(dump: Path, odd: dict[str, object], why: str) -> None:
    (dump / "odd.yaml").write_text(yaml.safe_dump({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", **odd}))
    result = when("--job", "of-b", "--objects", str(dump), "--run-time", "60", "--seeds", "1")
    assert result.exit_code == 0, result.output
    assert "number 2 of 2 pending" in result.stdout
    assert f": {why}" in result.stderr


@pytest.mark.parametrize("path", ["spec.priority", "metadata.creationTimestamp"])
def test_a_workload_that_cannot_be_read_is_nothing_but_named(dump: Path, path: str) -> None:
    odd, (part, field) = workload("odd"), path.split(".")
    odd[part][field] = "high"
    (dump / "odd.yaml").write_text(yaml.safe_dump(odd))
    result = when("--job", "of-b", "--objects", str(dump), "--run-time", "60", "--seeds", "1")
    assert result.exit_code == 0, result.output
    assert "number 2 of 2 pending" in result.stdout
    assert f"- nothing of Workload team-vision/odd, which cannot be read: {path}: " in result.stdout


def test_a_job_that_is_not_submitted_yet_on_live_clusters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with serve([MANAGER, *WORKERS], monkeypatch, tmp_path / "kubeconfig") as fleet:
        fleet.tables[MANAGER]["/apis/kueue.x-k8s.io/v1beta2/workloads"] = state()
        manifest = yaml.safe_dump(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "generateName": "new-",
                    "namespace": "team-vision",
                    "labels": {"kueue.x-k8s.io/queue-name": "gpu"},
                },
                "spec": {"template": state()[0]["spec"]["podSets"][0]["template"]},
            }
        )
        result = when("-f", "-", "--run-time", "400", stdin=manifest)
        assert result.exit_code == 0, result.output
        assert "team-vision/new-1: number 3 of 3 pending in ClusterQueue dws" in result.stdout
        fleet.refused["/workloads"] = 403
        refused = str(when("-f", "-", stdin=manifest).exception)
        assert refused.startswith(
            f"{MANAGER}: its Workloads cannot be read: no /workloads (403 Forbidden); ask for the right to list "
            "workloads in all namespaces"
        )


def test_one_that_never_starts(dump: Path) -> None:
    large = workload("large")
    large["spec"]["podSets"][0]["count"] = 64
    (dump / "w.yaml").write_text(yaml.dump(large, Dumper=yaml.CSafeDumper))
    result = when("--job", "large", "--objects", str(dump), "--seeds", "3")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "Never starts as the fleet and the job are now: ExceedsMaxQuota: It asks for 64 nvidia.com/gpu; " in text
    assert "dws can never have more than 12 of it on its worker clusters together. [KF105]" in text


def test_one_that_no_worker_can_hold_never_starts(dump: Path) -> None:
    """It has room on the manager, whose quota is that of all workers together; each of these has 4 GPUs."""
    large = workload("large")
    large["spec"]["podSets"][0]["count"] = 8
    (dump / "w.yaml").write_text(yaml.dump(large, Dumper=yaml.CSafeDumper))
    result = when("--job", "large", "--objects", str(dump), "--seeds", "1", "-o", "json")
    assert json.loads(result.stdout)["neverStarts"] == (
        "no worker cluster can ever hold it: it asks for 8 nvidia.com/gpu, and a flavor has at most "
        "4 on worker-europe-west4, 4 on worker-us-east4, 4 on worker-asia-southeast1"
    )


def test_one_that_requests_nothing_that_its_queue_counts_never_starts(dump: Path) -> None:
    bare = workload("bare")
    bare["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"example.com/x": "1"}}
    data = yaml.safe_load(Path(STACK).read_text())
    fleet = data["config"]["kueue-fleet:fleet"]
    fleet["kueue"] = {"configuration": {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}}}
    (dump / "fleet.yaml").write_text(yaml.safe_dump(fleet))
    (dump / "w.yaml").write_text(yaml.dump(bare, Dumper=yaml.CSafeDumper))
    result = CliRunner().invoke(
        app, ["when", str(dump / "fleet.yaml"), "--job", "bare", "--objects", str(dump / "w.yaml"), *AT, "--seeds", "1"]
    )
    assert result.exit_code == 0, result.output
    assert "Never starts as the fleet and the job are now: requests nothing that queue dws counts" in result.stdout


def test_a_manager_without_any_workload_is_an_answer(dump: Path) -> None:
    (dump / "w.yaml").write_text("{apiVersion: v1, kind: List, items: []}")
    job = {"metadata": {"name": "new", "namespace": "team-vision", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}}}
    pod_template = state()[0]["spec"]["podSets"][0]["template"]
    manifest = yaml.safe_dump({"apiVersion": "batch/v1", "kind": "Job", **job, "spec": {"template": pod_template}})
    result = when("-f", "-", "--objects", str(dump / "w.yaml"), "--seeds", "1", stdin=manifest)
    assert "team-vision/new: number 1 of 1 pending" in result.stdout, result.output


@pytest.mark.parametrize(
    ("example", "gpus", "never", "rests_on"),
    [
        ("shared-gpus", 1, None, []),
        (
            "shared-gpus",
            2,
            "pod set main has a container that requests 2 nvidia.com/gpu, but the GPUs of flavor l4-",
            [],
        ),
        (
            "compute-class",
            2,
            None,
            ["nodes of compute class l4 come at once: Kueue does not see which priority has any"],
        ),
    ],
)
def test_what_nodes_are_beyond_quota_is_said(
    example: str, gpus: int, never: str | None, rests_on: list[str], tmp_path: Path
) -> None:
    """GKE takes a pod for two shares of GPUs, and its node refuses it."""
    folder = ROOT / "examples" / example
    (tmp_path / "w.yaml").write_text(yaml.safe_dump(workload("other")))  # Of a queue that the fleet lacks.
    job = next(yaml.safe_load_all(next(folder.glob("job*.yaml")).read_text()))
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"]["nvidia.com/gpu"] = container["resources"]["limits"]["nvidia.com/gpu"] = gpus
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    arguments = ["-f", tmp_path / "job.yaml", "--objects", tmp_path / "w.yaml", "--seeds", 1, "-o", "json"]
    result = CliRunner().invoke(app, ["when", str(folder / "fleet.yaml"), *AT, *map(str, arguments)])
    assert result.exit_code == 0, result.output
    results = json.loads(result.stdout)
    assert str(results["neverStarts"]).startswith(str(never))
    assert [item for item in results["restsOn"] if "class" in item] == rests_on


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--job of-b --objects {dump}", "of 13 jobs that run or wait, such as team-vision/worker-europe-west4-0; "),
        ("--job of-c --objects {dump}", "there is no job of-c; did you mean of-"),
        ("--job worker-us-east4-0 --objects {dump}", "--job worker-us-east4-0: is Admitted; kueue-fleet describe"),
        ("--job of-b -f job.yaml", "give one of: --job NAME that waits, -f FILE that is not submitted"),
        ("--job of-b --objects {dump} --run-time soon", "--run-time 'soon': is not a number of seconds; write"),
        ("--job of-b --objects {dump} --run-time -1", "--run-time '-1': is negative, or more than 1,000,000,000"),
        ("-f {dump}/w.yaml", "w.yaml: holds 14 objects; give one job"),
        ("-f - --objects -", "when: `-` is given twice; only one can be read from stdin"),
    ],
)
def test_what_is_refused(arguments: str, says: str, dump: Path) -> None:
    assert says in str(when(*arguments.format(dump=dump).split()).exception)
