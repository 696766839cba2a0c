"""`explain` says what the fleet's own dispatcher decided, as its controller wrote it down or as a simulation has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_explain import QUEUE, cluster, explain, write
from tests.simulation.fleets import EUROPE, US, dispatched_data, job
from typer.testing import CliRunner

from kueue_admission.read.dispatch_report import (
    DATA_CONDITION,
    DispatchData,
    Filtered,
    ParsedReport,
    Scored,
    Verdict,
    dispatch_report,
    write_data,
)
from kueue_fleet.cli import app

EU = "worker-eu"
SINCE = "2026-11-21T08:00:00Z"
RULED_OUT = Filtered(
    EU, "it is in europe-west4, and label kueue-fleet.dev/regions allows only us-east4", "RegionNotAllowed"
)
SCORED = Scored("worker-us", "free, flavor l4", 0.956, 1.0, 0.781, 1.0)


def report(summary: str, *verdicts: Verdict, nominated: tuple[str, ...] = ()) -> str:
    return write_data(DispatchData(ParsedReport(summary, verdicts, nominated)))


NOMINATED = report("Nominated worker-us of 2 clusters", RULED_OUT, SCORED, nominated=("worker-us",))


def condition(kind: str, status: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "R", "message": message, "lastTransitionTime": SINCE}


def dispatched(message: object) -> dict[str, Any]:
    """A Workload of the manager that has its quota and waits for a worker."""
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": 1}}}
    usage = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": 1}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": QUEUE,
        "kind": "Workload",
        "metadata": {"name": "train", "namespace": "team-a", "uid": "u", "creationTimestamp": SINCE},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": template}]},
        "status": {
            "admission": {"clusterQueue": "cq", "podSetAssignments": [usage]},
            "admissionChecks": [{"name": "multikueue", "state": "Pending", "message": "", "lastTransitionTime": SINCE}],
            "conditions": [
                condition("QuotaReserved", "True"),
                {**condition(DATA_CONDITION, "True"), "message": message},
            ],
        },
    }


def dumps(folder: Path, message: object) -> list[str]:
    strategy = {"admissionChecks": [{"name": "multikueue"}]}
    check = {
        "apiVersion": QUEUE,
        "kind": "AdmissionCheck",
        "metadata": {"name": "multikueue"},
        "spec": {"controllerName": "kueue.x-k8s.io/multikueue"},
    }
    manager = [*cluster(admissionChecksStrategy=strategy), check, dispatched(message)]
    return [
        *("--objects", f"manager={write(folder / 'manager.yaml', manager)}"),
        *("--objects", f"{EU}={write(folder / 'eu.yaml', cluster())}"),
    ]


def test_the_scores_and_reasons_are_those_of_the_condition(tmp_path: Path) -> None:
    home, elsewhere = explain("train", *dumps(tmp_path, NOMINATED))
    assert home["dispatch"]["summary"] == "Nominated worker-us of 2 clusters"
    assert home["dispatch"]["nominated"] == ["worker-us"]
    assert {one["cluster"]: one["score"] for one in home["dispatch"]["verdicts"]} == {EU: None, "worker-us": 0.956}
    assert home["next_step"].startswith("It waits for worker-us to admit it")
    assert elsewhere["dispatch"] is None
    assert elsewhere["headline"].startswith(
        "It is not on this cluster (RegionNotAllowed: it is in europe-west4, and label kueue-fleet.dev/regions allows "
        "only us-east4). If it were: "
    )


def test_the_text_has_a_line_for_each_cluster(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explain", "train", *dumps(tmp_path, NOMINATED)])
    assert result.exception is None, result.output
    text = " ".join(result.stdout.split())
    assert "Dispatch: Nominated worker-us of 2 clusters worker-eu: RegionNotAllowed: it is in europe-west4" in text
    assert "worker-us: score 0.956 (price 1.000, waiting 0.781, free 1.000); free, flavor l4" in text
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("message", "step"),
    [
        (
            report("None of 1 clusters is suitable", RULED_OUT),
            "Change what rules its clusters out, as listed under Dispatch",
        ),
        (report("Not admitted by worker-us within 3600 s", SCORED), "Wait: it is offered to the clusters listed"),
    ],
    ids=["no cluster", "given up"],
)
def test_what_to_do_where_nothing_is_nominated(tmp_path: Path, message: str, step: str) -> None:
    result = explain("train", *dumps(tmp_path, message))[0]
    assert result["dispatch"]["nominated"] == []
    assert result["next_step"].startswith(step)


@pytest.mark.parametrize("message", [None, "", 7, ["a"]], ids=str)
def test_a_condition_that_nobody_can_read_is_none(tmp_path: Path, message: object) -> None:
    assert dispatch_report(dispatched(message)) is None
    assert dispatch_report({"status": {"conditions": [None, "x"]}}) is None
    assert dispatch_report({"status": []}) is None


def test_a_dump_that_is_cut_has_it_too(tmp_path: Path) -> None:
    """Above a megabyte only some objects are read."""
    options = dumps(tmp_path, NOMINATED)
    objects = list(yaml.load_all((tmp_path / "manager.yaml").read_text(), Loader=yaml.CSafeLoader))
    others = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{index}", "annotations": {"a": "x" * 2000}}}
        for index in range(600)
    ]
    document = {"apiVersion": "v1", "kind": "List", "items": [*objects, *others]}
    (tmp_path / "manager.yaml").write_text(yaml.dump(document, Dumper=yaml.CSafeDumper))
    assert (tmp_path / "manager.yaml").stat().st_size > 1_000_000
    assert explain("train", *options)[0]["dispatch"]["nominated"] == ["worker-us"]


def test_a_simulation_says_what_its_dispatcher_decided(tmp_path: Path) -> None:
    stack, jobs = tmp_path / "fleet.yaml", tmp_path / "jobs.json"
    stack.write_text(yaml.safe_dump(dispatched_data()))
    # Each worker has eight GPUs: the second job waits in Europe, where alone its team may run.
    wide = {"requests": {"nvidia.com/gpu": 8, "cpu": 10}}
    names = ("first", "second")
    jobs.write_text(json.dumps({"jobs": [job(name, namespace="team-eu", **wide) for name in names]}))
    result = {
        one["cluster"]: one for one in explain("second", "--stack", str(stack), "-w", str(jobs), "--second", "50")
    }
    report = result["manager"]["dispatch"]
    assert report["nominated"] == [EUROPE]
    assert {one["cluster"]: one["reason"] for one in report["verdicts"]} == {EUROPE: None, US: "RegionNotAllowed"}
    assert result[US]["headline"].startswith("It is not on this cluster (RegionNotAllowed: ")


@pytest.mark.parametrize("spare", [0, 8])
def test_more_quota_than_the_nodes_of_a_worker_hold_is_told(tmp_path: Path, spare: int) -> None:
    stack, jobs = tmp_path / "fleet.yaml", tmp_path / "jobs.json"
    data = dispatched_data()
    data["nodePools"][0]["autoscaling"]["totalMaxNodeCount"] += spare
    stack.write_text(yaml.safe_dump(data))
    wide = {"requests": {"nvidia.com/gpu": 8, "cpu": 10}}
    jobs.write_text(json.dumps({"jobs": [job(name, **wide) for name in ("first", "second", "third")]}))
    result = {one["cluster"]: one for one in explain("third", "--stack", str(stack), "-w", str(jobs), "--second", "50")}
    assert not result[EUROPE]["is_there"], "it was never dispatched"
    raised = [change["amounts"] for change in result[EUROPE]["changes"] if change["kind"] == "nominalQuota"]
    output = (
        f"Flavor l4-spot: by the fleet file, its nodes on {EUROPE} hold 8 nvidia.com/gpu, and the nominalQuota of all "
        "queues is 8: more quota needs more nodes first"
    )
    assert (output in result[EUROPE]["nodes"]) == (spare == 0)
    assert raised == ([] if spare == 0 else [[RAISED]])
    assert result["manager"]["nodes"] == []


RAISED = {
    "kind": "ClusterQueue",
    "name": "gpu",
    "field": "nominalQuota",
    "before": 8,
    "after": 16,
    "flavor": "l4-spot",
    "resource": "nvidia.com/gpu",
}


@pytest.mark.parametrize(("nodes", "offered"), [(8, 2), (8, 6), (2, 2)])
def test_cpu_is_offered_while_nodes_have_it(tmp_path: Path, nodes: int, offered: int) -> None:
    """Quota of CPU is often promised freely: what counts is what jobs have of it."""
    stack, jobs = tmp_path / "fleet.yaml", tmp_path / "jobs.json"
    data = dispatched_data()
    data["nodePools"][0]["autoscaling"]["totalMaxNodeCount"] = nodes
    gpu, cpu, _ = data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"]
    gpu["nominalQuota"], cpu["nominalQuota"] = nodes, 11 * offered
    stack.write_text(yaml.safe_dump(data))
    item = [job(f"j{index}", namespace="team-eu", requests={"cpu": 11}) for index in range(offered + 1)]
    jobs.write_text(json.dumps({"jobs": item}))
    last = f"j{offered}"
    result = {one["cluster"]: one for one in explain(last, "--stack", str(stack), "-w", str(jobs), "--second", "50")}
    raised = [
        new for change in result[EUROPE]["changes"] for new in change["amounts"] if new["field"] == "nominalQuota"
    ]
    held_back = any("workloads use 22: more quota needs more nodes first" in text for text in result[EUROPE]["nodes"])
    assert (raised == []) == held_back == (nodes == 2)
