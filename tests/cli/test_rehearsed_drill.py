"""`rehearse drill` without engines: the faults that a fleet cannot have, what is well, and what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer
from tests.cli.test_rehearsed_upgrade import witnesses
from tests.simulation.fleets import fleet

from command_line import call
from kueue_admission.cli.console import CommandError
from kueue_admission.read.goals import Goal, Judged, Standing
from kueue_fleet.cli.rehearsed_drill import (
    Drill,
    Outcome,
    _named,
    check_drill,
    conclude,
    show_outcome,
    waiting_jobs,
    well_within,
)
from kueue_fleet.cli.watched_jobs import Row, Seen
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_simulation.recorded import Recorder
from kueue_fleet.gke.labels import SPOT
from kueue_fleet.status.job import PODS_SELECTOR
from kueue_rehearsal.drills import FAULTS, _runs_on_spot
from kueue_rehearsal.simulation_settings import parse_settings

FILE = Path("fleet.yaml")


def alone() -> FleetSpec:
    """One cluster, with neither Spot, nor DWS, nor a controller."""
    quota = [{"name": "cpu", "nominalQuota": 4}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": quota}]}
    return parse_fleet(
        {
            "name": "alone",
            "project": "my-project",
            "clusters": [{"name": "solo", "role": "standalone", "region": "us-east4"}],
            "flavors": [{"name": "any"}],
            "clusterQueues": [{"name": "queue", "namespaceSelector": {}, "resourceGroups": [group]}],
        }
    )


def able(made: FleetSpec) -> list[str]:
    return [name for name, fault in FAULTS.items() if not fault.missing(made)]


def test_a_fleet_of_one_cluster_has_the_faults_of_any_cluster() -> None:
    assert able(alone()) == ["etcd-restored", "kueue-restarted"]


def test_what_a_fleet_has_can_break() -> None:
    spot: dict[str, Any] = alone().wire()
    spot["flavors"] = [{"name": "any", "nodeLabels": {"cloud.google.com/gke-spot": "true"}}]
    assert able(parse_fleet(spot)) == ["spot-reclaim", "etcd-restored", "kueue-restarted"]
    assert {"worker-lost", "manager-lost"} <= set(able(fleet()))


@pytest.mark.parametrize(
    ("labels", "phase", "node", "is_hit"),
    [
        ({PODS_SELECTOR: "main"}, "Running", "spot-1", True),
        ({PODS_SELECTOR: "main"}, "Pending", "spot-1", False),
        ({PODS_SELECTOR: "main"}, "Running", "reserved-1", False),
        ({}, "Running", "spot-1", False),
    ],
    ids=["a job", "it starts", "another node", "no job"],
)
def test_spot_nodes_are_taken_back_from_a_job_that_runs(
    labels: dict[str, str], phase: str, node: str, *, is_hit: bool
) -> None:
    nodes = [("spot-1", {SPOT: "true"}), ("reserved-1", {})]
    lists = {
        "nodes": [{"metadata": {"name": name, "labels": own}} for name, own in nodes],
        "pods": [{"metadata": {"name": "p", "labels": labels}, "spec": {"nodeName": node}, "status": {"phase": phase}}],
    }
    clients = SimpleNamespace(list=lambda cluster, group, version, plural: lists[plural])
    assert _runs_on_spot(cast("Any", clients), "solo") == is_hit


@pytest.mark.parametrize(
    ("drill", "said"),
    [
        (Drill("worker-los"), "--fault worker-los: is not a fault; did you mean worker-lost?"),
        (Drill("worker-lost"), "fleet.yaml has no workers: its only cluster is the one where jobs are submitted"),
        (Drill("spot-reclaim"), "has no Spot: neither a pool nor a flavor is of it"),
        (Drill("stock-out"), "has no capacity of DWS"),
        (Drill("controller-gone"), "there is no controller; its faults are etcd-restored, kueue-restarted"),
        (Drill("kueue-restarted", lasts=5), "--lasts 5: kueue-restarted is over at once; leave it out"),
        (Drill("etcd-restored", worker="solo"), "--worker solo: goes with --fault worker-lost; leave it out"),
    ],
    ids=lambda value: value.fault if isinstance(value, Drill) else "",
)
def test_what_cannot_be_is_refused(drill: Drill, said: str) -> None:
    with pytest.raises(CommandError) as refused:
        check_drill(alone(), drill, FILE)
    assert said in str(refused.value.message)


def test_a_worker_that_is_not_there_cannot_be_lost() -> None:
    with pytest.raises(CommandError, match=r"--worker worker-us-east5: is not a worker of fleet\.yaml; did you mean"):
        check_drill(fleet(), Drill("worker-lost", worker="worker-us-east5"), FILE)
    assert check_drill(fleet(), Drill("worker-lost", worker="worker-us-east4"), FILE).name == "worker-lost"


def test_without_a_fault_the_command_says_so() -> None:
    result = call("rehearse", "drill", "nothing")
    assert result.returncode == 2
    assert result.stderr == "error: drill: needs a fault; give --fault FAULT, one of those that --help lists\n"


def test_a_stock_out_is_settings_that_a_rehearsal_takes() -> None:
    """The rest of what the user set stays."""
    result: dict[str, Any] = {}
    paths = SimpleNamespace(
        simulation=SimpleNamespace(read_text=lambda: '{"seed": 3, "dws": {"low": 4, "idleSeconds": 9}}')
    )
    session = SimpleNamespace(paths=paths, write_settings=lambda: result.clear())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kueue_rehearsal.drills.write_private", lambda file, content: result.update(json.loads(content)))
        with FAULTS["stock-out"].made(cast("Any", SimpleNamespace(session=session))):
            settings = parse_settings(result, "file")
            dws = settings.dws
            assert (settings.seed, dws.low, dws.high, dws.idle_seconds) == (3, 0, 0, 9)
            assert not dws.stock
    assert result == {}


ROW = Row("train-001", "Finished", 12.0, ["worker-eu", "worker-us"], ["WorkerLost"], 2, [], True, restarted=3)
STUCK = Row("train-002", "Pending", 90.0, [], [], 0, [], is_finished=False)
GOAL = Goal("clusterQueues[gpu]", "wait", 10.0, "gpu")


def outcome(*rows: Row, **changes: Any) -> Outcome:
    known: dict[str, Any] = {"fault": "worker-lost", "worker": "worker-eu", "lasted": 60.2, "well_after": 75.0}
    known |= {"wait_before": 3.0, "gone": [], "twice": [], "judged": [], "refusals": 0, **changes}
    return Outcome(rows=rows, **known)


def test_what_moved_and_ran_again_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    show_outcome(outcome(ROW, gone=["a", "b", "c", "d"], twice=["train-001 on worker-eu"], refusals=4))
    printed = capsys.readouterr().out
    for output in (
        "Meanwhile     1 job: 1 evicted, 1 moved, 1 ran again",
        "              3 pods of 1 job started again in place of others",
        "Longest wait  12 s; 3 s while nothing happened",
        "All well      75 s after the fault, which lasted 60 s",
        "Refused       a job, 4 times",
        "Gone          4 jobs, submitted after the backup: a, b, c and 1 more",
        "Twice         at one time: train-001 on worker-eu",
        "Audit         every job finished",
    ):
        assert output in printed
    conclude(outcome(ROW), quiet=False)


def test_the_document_has_what_the_text_has() -> None:
    document = json.loads(json.dumps(outcome(ROW, STUCK, well_after=None).to_dict()))
    assert (document["schemaVersion"], document["wellAfterSeconds"], document["lastedSeconds"]) == (1, None, 60.2)
    assert document["jobs"][0] == {
        "name": "train-001",
        "state": "Finished",
        "waitedSeconds": 12.0,
        "ranOn": ["worker-eu", "worker-us"],
        "evictions": ["WorkerLost"],
        "runs": 2,
        "podsStartedAgain": 3,
    }
    assert document["jobs"][1]["runs"] is None
    assert document["problems"] == [
        "not all was well 365 s after the fault was repaired",
        "train-002: is Pending, not finished",
    ]


@pytest.mark.parametrize(
    ("fault", "lasted", "seconds"),
    [("worker-lost", 10.0, 315.0), ("worker-lost", 3600.0, 620.0), ("manager-lost", 3600.0, 300.0)],
)
def test_kueue_is_given_the_time_that_it_takes_to_try_a_lost_worker_again(
    fault: str, lasted: float, seconds: float
) -> None:
    assert well_within(fault, lasted) == seconds


def test_the_exit_code_is_that_of_unfinished_jobs_then_of_goals(capsys: pytest.CaptureFixture[str]) -> None:
    missed = Judged(GOAL, Standing.MISSED, "of 1 jobs 95 % waited at most 12.0 s", 12.0)
    with pytest.raises(CommandError) as failed:
        conclude(outcome(ROW, judged=[missed]), quiet=False)
    assert failed.value.exit_code == 3
    with pytest.raises(typer.Exit) as ended:
        conclude(outcome(STUCK, judged=[missed]), quiet=False)
    assert ended.value.exit_code == 1
    assert "goal, missed: clusterQueues[gpu]" in capsys.readouterr().out
    with pytest.raises(typer.Exit):
        conclude(outcome(ROW, well_after=None), quiet=True)
    assert capsys.readouterr().out == ""


def test_jobs_have_names_of_the_drill_and_what_they_use_keeps_its_own() -> None:
    job = {"kind": "Job", "metadata": {"generateName": "train-", "labels": {"a": "b"}}}
    named = _named(job, "0f00d")
    assert named["metadata"] == {"name": "train-0f00d", "namespace": "default", "labels": {"a": "b"}}
    used = {"kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "team-a"}}
    assert _named(used, "0f00d") == used


def workload(name: str, **conditions: str) -> Mapping[str, Any]:
    owner = [{"kind": "Job", "name": name, "uid": name, "apiVersion": "batch/v1", "controller": True}]
    result = [
        {"type": key, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": key, "message": ""}
        for key, status in conditions.items()
    ]
    metadata = {"name": f"job-{name}", "namespace": "team-a", "ownerReferences": owner}
    return {"metadata": metadata, "spec": {"podSets": []}, "status": {"conditions": result}}


def test_a_job_waits_until_it_is_admitted_and_has_its_nodes() -> None:
    stream = cast("Any", SimpleNamespace(submitted=[{"metadata": {"name": n, "namespace": "team-a"}} for n in "abcd"]))
    seen = Seen(stream, witnesses(), Recorder("manager"))
    expected = {("team-a", name) for name in "abcd"}
    assert waiting_jobs(seen, "manager", expected, since=5.0) is None, "no cluster has answered since"
    records = [SimpleNamespace(namespace="team-a", name=name, is_running=name == "a") for name in "abc"]
    seen.recorder = cast("Any", SimpleNamespace(records=records))
    there = [workload("a", Admitted="True"), workload("b", Admitted="True"), workload("c", Finished="True")]
    seen.listed = 6.0, {"manager": there}
    assert waiting_jobs(seen, "manager", expected, since=5.0) == {("team-a", "b"), ("team-a", "d")}
    seen.listed = 6.0, {"manager": [workload("a", Admitted="False")]}
    assert waiting_jobs(seen, "manager", {("team-a", "a")}, since=5.0) == {("team-a", "a")}, "it was evicted since"


def pod(uid: str, *, owner: str = "Job", started: bool = True) -> Mapping[str, Any]:
    owners = [{"kind": owner, "name": "train", "uid": "j1"}]
    status = {"startTime": "2026-01-01T00:00:00Z"} if started else {}
    return {"metadata": {"name": uid, "namespace": "team-a", "uid": uid, "ownerReferences": owners}, "status": status}


def test_pods_that_replace_others_in_the_same_run_are_counted() -> None:
    seen = Seen(cast("Any", SimpleNamespace(submitted=[])), witnesses(), Recorder("solo"))
    seen.see_pods([pod("a"), pod("b"), pod("waits", started=False), pod("other", owner="ReplicaSet")])
    job = {"kind": "Job", "metadata": {"name": "train", "uid": "j1"}, "spec": {"completions": 2, "parallelism": 1}}
    assert seen.restarted(job) == 0
    seen.see_pods([pod("a"), pod("c")])
    assert seen.restarted(job) == 1
    assert seen.restarted({**job, "spec": {}}) == 2
    assert seen.restarted({**job, "metadata": {"name": "unseen", "uid": "j2"}}) == 0
