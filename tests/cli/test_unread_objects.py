"""Objects of a live cluster that cannot be read: each is named and left out, and ends no answer about the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.in_process import Command, Ended
from tests.simulation.objects import API, cluster, job, queue

Json = dict[str, Any]
LIVE = {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "1"}
PREFIX = "kueue.x-k8s.io"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.fixture
def run(command: Command, tmp_path: Path) -> Any:
    """Calls a command with the objects in a file as its last argument."""

    def call(*arguments: str, objects: list[Json]) -> Ended:
        path = tmp_path / "dump.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return command([*arguments, str(path)])

    return call


def workload(name: str, cpu: str = "1", **spec: Any) -> Json:
    template = job("x", 0, cpu=cpu)["spec"]["template"]
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    metadata = {"name": name, "namespace": "default", **LIVE}
    spec = {"queueName": "lq", "podSets": pod_sets, **spec}
    return {"apiVersion": API, "kind": "Workload", "metadata": metadata, "spec": spec}


def flux() -> list[Json]:
    """A TrainJob of a runtime that is not modelled, and its runtime."""
    reference = {"runtimeRef": {"name": "flux"}}
    metadata = {"name": "bad", "namespace": "default", "labels": {f"{PREFIX}/queue-name": "lq"}, **LIVE}
    runtime = {"kind": "ClusterTrainingRuntime", "metadata": {"name": "flux"}, "spec": {"mlPolicy": {"flux": {}}}}
    return [runtime, {"kind": "TrainJob", "metadata": metadata, "spec": reference}]


def ray(**spec: Any) -> list[Json]:
    pod = {"template": job("x", 0, cpu="1")["spec"]["template"]}
    metadata = {"name": "bad", "namespace": "default", "labels": {f"{PREFIX}/queue-name": "lq"}, **LIVE}
    return [{"kind": "RayCluster", "metadata": metadata, "spec": {"headGroupSpec": pod, **spec}}]


GROUPS = [{"groupName": f"g{number}", "template": job("x", 0, cpu="0")["spec"]["template"]} for number in range(20)]
UNREAD: dict[str, list[Json]] = {
    "quantity": [job("bad", 0, cpu="1 core")],
    "not modelled": flux(),
    "too many groups": ray(workerGroupSpecs=GROUPS),
    "not elastic": ray(enableInTreeAutoscaling=True),
    "workload": [workload("bad", priority="high")],
}


@pytest.mark.parametrize("bad", UNREAD.values(), ids=UNREAD)
def test_what_cannot_be_read_ends_no_simulation(run: Any, bad: list[Json]) -> None:
    result = run("simulate", "objects", objects=[*cluster(), *bad, job("other", 0, "60", cpu="1")])
    assert (result.code, "default/other  cq     rf       Finished" in result.out) == (0, True)
    assert "/bad: " in result.err
    assert "what it takes from others of its queue and cohort is not known" in result.err


@pytest.mark.parametrize("bad", UNREAD.values(), ids=UNREAD)
def test_who_may_be_touched_is_told(run: Any, bad: list[Json]) -> None:
    result = run("explain", "other", "--objects", objects=[*cluster(), *bad, job("other", 0, cpu="1")])
    assert (result.code, "There is room for it" in result.out) == (0, True)
    assert "Not known: what" in " ".join(result.out.split())


@pytest.mark.parametrize("bad", UNREAD.values(), ids=UNREAD)
def test_what_cannot_be_read_itself_is_not_known(run: Any, bad: list[Json]) -> None:
    result = run("explain", "bad", "--objects", objects=[*cluster(), *bad, job("other", 0, cpu="1")])
    assert "default/bad is not known [KF91" in result.out


NO_WORKLOAD: dict[str, list[Json]] = {
    "workload priority class": [job("bad", 0, cpu="1", **{"priority-class": "gone"})],
    "no pods": [
        {
            "kind": "JobSet",
            "metadata": {"name": "bad", "labels": {f"{PREFIX}/queue-name": "lq"}, **LIVE},
            "spec": {"replicatedJobs": []},
        }
    ],
}
NO_WORKLOAD["priority class"] = [job("bad", 0, cpu="1")]
NO_WORKLOAD["priority class"][0]["spec"]["template"]["spec"]["priorityClassName"] = "gone"
NO_WORKLOAD["priority class"] += [
    {"kind": "PriorityClass", "metadata": {"name": "system-node-critical", **LIVE}, "value": 2_000_001_000}
]


@pytest.mark.parametrize("bad", NO_WORKLOAD.values(), ids=NO_WORKLOAD)
def test_what_gets_no_workload_touches_nobody(run: Any, bad: list[Json]) -> None:
    objects = [*cluster(), *bad, job("other", 0, cpu="1")]
    assert "Not known" not in run("explain", "other", "--objects", objects=objects).out
    own = run("explain", "bad", "--objects", objects=objects)
    assert "default/bad is without a Workload [KF921]\n  Kueue makes no Workload of this" in own.out
    assert "Kueue makes no Workload of it" in run("simulate", "objects", objects=objects).err


def test_a_priority_class_may_be_there_where_none_is_among_the_objects(run: Any) -> None:
    bad = job("bad", 0, cpu="1")
    bad["spec"]["template"]["spec"]["priorityClassName"] = "gone"
    own = run("explain", "bad", "--objects", objects=[*cluster(), bad])
    assert "default/bad is not known [KF907]" in own.out
    assert "Add what `kubectl get priorityclasses -o yaml` prints" in own.out


def test_one_in_another_tree_touches_nobody(run: Any) -> None:
    local = {"kind": "LocalQueue", "metadata": {"name": "far"}, "spec": {"clusterQueue": "other"}, "apiVersion": API}
    bad = job("bad", 0, cpu="1 core", **{"queue-name": "far"})
    objects = [*cluster(), queue("other"), local, bad, job("other", 0, cpu="1")]
    result = run("explain", "other", "--objects", objects=objects)
    assert (result.code, "Not known" in result.out, result.err.count("left out")) == (0, False, 0)


def test_what_names_an_object_that_cannot_be_read_is_left_out_with_it(run: Any) -> None:
    strange = queue("strange", queueingStrategy="LastInFirstOut", cohortName="all")
    strange["metadata"] |= LIVE
    local = {"kind": "LocalQueue", "metadata": {"name": "far"}, "spec": {"clusterQueue": "strange"}, "apiVersion": API}
    jobs = [job("there", 0, cpu="1", **{"queue-name": "far"}), job("other", 0, cpu="1")]
    objects = [*cluster(cohortName="all"), strange, local, *jobs]
    result = run("explain", "other", "--objects", objects=objects)
    assert "Not known: what ClusterQueue strange takes" in " ".join(result.out.split())
    own = " ".join(run("explain", "there", "--objects", objects=objects).out.split())
    assert "cannot be read: names LocalQueue default/far, which is left out" in own
    assert run("simulate", "objects", objects=objects).code == 0


def test_fields_of_a_later_release_are_passed_over_in_a_live_cluster(run: Any) -> None:
    later = queue(resourceSlicing={"mode": "Fine"})
    later["metadata"] |= LIVE
    flavor, _, *others = cluster()
    result = run("simulate", "objects", objects=[flavor, later, *others, job("other", 0, "60", cpu="1")])
    assert (result.code, result.err, "Finished" in result.out) == (0, "", True)


def test_a_queue_that_kueue_keeps_inactive_ends_nothing(run: Any) -> None:
    broken = queue("broken")
    broken["metadata"] |= LIVE
    broken["spec"]["resourceGroups"][0]["flavors"][0]["name"] = "gone"
    local = {"kind": "LocalQueue", "metadata": {"name": "far"}, "spec": {"clusterQueue": "broken"}, "apiVersion": API}
    waits = job("waits", 0, cpu="1", **{"queue-name": "far"})
    result = run("simulate", "objects", objects=[*cluster(), broken, local, waits, job("other", 0, "60", cpu="1")])
    assert "there is no ResourceFlavor gone, and the cluster has it all the same" in result.err
    assert [line.split()[:4] for line in result.out.splitlines()[1:3]] == [
        ["default/other", "cq", "rf", "Finished"],
        ["default/waits", "broken", "-", "Pending"],
    ]


def test_a_cycle_of_cohorts_in_a_live_cluster_ends_nothing(run: Any) -> None:
    cohorts = [
        {"apiVersion": API, "kind": "Cohort", "metadata": {"name": name, **LIVE}, "spec": {"parentName": parent}}
        for name, parent in (("a", "b"), ("b", "a"))
    ]
    objects = [*cluster(), *cohorts, queue("in-a-cycle", cohortName="a"), job("other", 0, "60", cpu="1")]
    note = "Cohort a.spec.parentName: the cohorts form a cycle, a -> b -> a, and Kueue admits nothing in that tree"
    for command in (("simulate", "objects"), ("explain", "other", "--objects")):
        result = run(*command, objects=objects)
        assert ("other" in result.out, note in result.err) == (True, True)


def test_jobs_of_a_local_queue_that_is_gone_end_nothing(run: Any) -> None:
    usage = {"name": "main", "count": 1, "flavors": {"cpu": "rf"}, "resourceUsage": {"cpu": "1"}}
    condition = {"status": "True", "reason": "x", "lastTransitionTime": LIVE["creationTimestamp"]}
    runs = workload("runs", queueName="gone")
    runs["status"] = {
        "admission": {"clusterQueue": "cq", "podSetAssignments": [usage]},
        "conditions": [{"type": item, **condition} for item in ("QuotaReserved", "Admitted")],
    }
    waits = job("waits", 0, cpu="1", **{"queue-name": "gone"})
    result = run("simulate", "objects", objects=[*cluster(), runs, waits, job("other", 0, "60", cpu="1")])
    assert "left out, since their LocalQueue is not there: Job default/waits" in result.err
    assert "default/other  cq     rf       Finished" in result.out


@pytest.mark.parametrize("seconds", ["60", "soon"])
def test_a_job_that_is_yet_to_be_created_is_left_out_too(run: Any, seconds: str) -> None:
    new = job("bad", 0, seconds, cpu="1 core" if seconds == "60" else "1")
    del new["metadata"]["creationTimestamp"]
    result = run("simulate", "objects", objects=[*cluster(), new, job("other", 0, "60", cpu="1")])
    assert (result.code, "default/other  cq     rf       Finished" in result.out) == (0, True)
    output = "'1 core' is not a valid quantity" if seconds == "60" else "'soon' is not a number of seconds"
    assert "left out: Job default/bad: " in result.err
    assert output in result.err
    alone = run("simulate", "objects", objects=[*cluster(), new])
    assert (alone.code, output in alone.err) == (1, True)


def test_a_queue_that_is_yet_to_be_created_is_refused(run: Any) -> None:
    new = queue("q", queueingStrategy="LastInFirstOut")
    result = run("simulate", "objects", objects=[*cluster(), new, job("other", 0, cpu="1")])
    assert (result.code, "LastInFirstOut" in result.err) == (1, True)


@pytest.mark.parametrize("arguments", [("explain", "other", "--objects"), ("simulate", "objects")], ids="-".join)
@pytest.mark.parametrize("text", ["kind: Node\nmetadata: {", "- a list", "kind: Node", "Name: x of kubectl describe"])
def test_a_file_that_is_no_object_ends_no_answer(arguments: Any, text: str, tmp_path: Path, command: Any) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([*cluster(), job("other", 0, "60", cpu="1")]))
    (tmp_path / "b.yaml").write_text(text)
    result = command([*arguments, str(tmp_path)])
    assert (result.code, "other" in result.out) == (0, True)
    assert f"left out: {tmp_path}/b.yaml" in result.err
    assert "; what depends on it is not known" in result.err


@pytest.mark.parametrize("namespace", [[7], {"a": 1}, 7], ids=str)
def test_an_object_in_no_namespace_ends_no_answer(run: Any, namespace: object) -> None:
    odd = workload("odd")
    odd["metadata"]["namespace"] = namespace
    for command in (("simulate", "objects"), ("explain", "other", "--objects")):
        result = run(*command, objects=[*cluster(), odd, job("other", 0, "60", cpu="1")])
        assert (result.code, "other" in result.out) == (0, True)
        assert "metadata.namespace: is not text; print the object again; what depends on it is not known" in result.err


@pytest.mark.parametrize("name", [[7], {"a": 1}, None], ids=str)
def test_a_local_queue_of_no_name_ends_no_answer(run: Any, name: object) -> None:
    local = {
        "kind": "LocalQueue",
        "metadata": {"name": "odd", **LIVE},
        "spec": {"clusterQueue": name},
        "apiVersion": API,
    }
    result = run("simulate", "objects", objects=[*cluster(), local, job("other", 0, "60", cpu="1")])
    assert (result.code, "default/other  cq     rf       Finished" in result.out) == (0, True)
    assert "LocalQueue default/odd" in result.err


def test_a_job_that_a_worker_runs_is_said_to_be_there(run: Any) -> None:
    usage = {"name": "main", "count": 1, "flavors": {"cpu": "rf"}, "resourceUsage": {"cpu": "1"}}
    condition = {"status": "True", "reason": "x", "lastTransitionTime": LIVE["creationTimestamp"]}
    runs = workload("runs")
    runs["status"] = {
        "clusterName": "worker-us",
        "admission": {"clusterQueue": "cq", "podSetAssignments": [usage]},
        "conditions": [{"type": item, **condition} for item in ("QuotaReserved", "Admitted")],
    }
    result = " ".join(run("explain", "runs", "--objects", objects=[*cluster(), runs]).out.split())
    assert "It is admitted: Kueue no longer holds it back. Its pods are on the worker cluster worker-us." in result
