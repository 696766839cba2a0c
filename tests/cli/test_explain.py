from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import standalone_data
from typer.testing import CliRunner

from kueue_admission.cli.console import CommandError
from kueue_fleet.cli import app

QUEUE = "kueue.x-k8s.io/v1beta2"


def cluster(cpu: object = 4, **queue: Any) -> list[dict[str, Any]]:
    quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    return [
        {"apiVersion": QUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}},
        {
            "apiVersion": QUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": "cq"},
            "spec": {"namespaceSelector": {}, "resourceGroups": groups, **queue},
        },
        {
            "apiVersion": QUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "lq", "namespace": "team-a"},
            "spec": {"clusterQueue": "cq"},
        },
    ]


def job(name: str, cpu: object = 8) -> dict[str, Any]:
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        "spec": {"suspend": True, "template": {"spec": {"containers": containers}}},
    }


def write(path: Path, objects: list[dict[str, Any]]) -> Path:
    path.write_text(yaml.safe_dump_all(objects))
    return path


def explain(*arguments: str) -> Any:
    result = CliRunner().invoke(app, ["explain", *arguments, "--output", "json"])
    assert result.exception is None, result.output
    return json.loads(result.stdout)["explanations"]


def refused(*arguments: str) -> str:
    """The one message of a command that fails."""
    result = CliRunner().invoke(app, ["explain", *arguments])
    assert isinstance(result.exception, CommandError), result.output
    assert result.exception.exit_code == 1
    assert result.stdout == ""
    return str(result.exception)


def waiting(path: Path, *objects: dict[str, Any]) -> list[str]:
    """The lines about what waits, where no workload is named."""
    result = CliRunner().invoke(app, ["explain", "--objects", str(write(path / "dump.yaml", [*cluster(), *objects]))])
    assert result.exception is None, result.output
    return result.stdout.splitlines()


def test_each_that_waits_in_a_line(tmp_path: Path) -> None:
    assert waiting(tmp_path, job("large", 8), job("small", 1)) == [
        "team-a/large: Pending, ExceedsMaxQuota [KF105]: It asks for 8 cpu; ClusterQueue cq can never have more than 4 "
        "of it in flavor default.",
        "team-a/small: Pending, PendingEvaluation: There is room for it and its turn is next: the next cycle admits "
        "it.",
    ]


def test_a_suspended_job_without_a_queue_waits_too(tmp_path: Path) -> None:
    stray = job("stray")
    del stray["metadata"]["labels"]
    [line] = waiting(tmp_path, stray)
    assert line.startswith("team-a/stray: without a Workload")


def test_a_finished_job_does_not_wait(tmp_path: Path) -> None:
    over = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z"}]}
    assert waiting(tmp_path, job("over") | {"status": over}) == ["No workload waits."]


def test_of_many_that_wait_the_first_of_every_queue(tmp_path: Path) -> None:
    other = job("other")
    other["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "lr"
    lines = waiting(tmp_path, *(job(f"j{number:02}") for number in range(24)), other)
    assert [line.partition(":")[0] for line in lines[:3]] == ["team-a/j00", "team-a/other", "team-a/j01"]
    assert lines[20:] == ["5 more wait (team-a/lq 5); name one to explain it"]


def test_what_waits_as_json(tmp_path: Path) -> None:
    dump = write(tmp_path / "dump.yaml", [*cluster(), job("large"), job("huge", 9)])
    result = json.loads(CliRunner().invoke(app, ["explain", "--objects", str(dump), "-o", "json"]).stdout)
    [first, second] = [item["explanations"][0] for item in result["workloads"]]
    assert (result["waiting"], first["workload"], second["workload"]) == (2, "team-a/huge", "team-a/large")


def test_what_waits_at_a_second(tmp_path: Path) -> None:
    jobs = [job("first", 3), job("second", 3)]
    dump = write(tmp_path / "dump.yaml", [*cluster(), *jobs])
    result = CliRunner().invoke(app, ["explain", "--objects", str(dump), "--second", "5"])
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["team-a/second"]


def test_by_the_name_of_the_job(tmp_path: Path) -> None:
    dump = write(tmp_path / "dump.yaml", [*cluster(), job("train")])
    [result] = explain("train", "--objects", str(dump))
    assert (result["workload"], result["reason"]) == ("team-a/train", "ExceedsMaxQuota")
    assert result["flavors"][0]["resources"][0] | {"holders": []} == {
        "resource": "cpu",
        "asked": 8000,
        "nominal": 4000,
        "borrowing_limit": None,
        "used_by_queue": 0,
        "used_in_cohort": None,
        "capacity": 4000,
        "free": 4000,
        "missing": 4000,
        "holders": [],
        "holder_count": 0,
    }


def test_in_one_line(tmp_path: Path) -> None:
    dump = write(tmp_path / "dump.yaml", [*cluster(), job("train")])
    result = CliRunner().invoke(app, ["explain", "train", "--objects", str(dump), "--short"])
    assert result.stdout == (
        "team-a/train: Pending, ExceedsMaxQuota [KF105]: It asks for 8 cpu; ClusterQueue cq can never have more than "
        "4 of it in flavor default. Next step: Raise the nominalQuota of ClusterQueue cq in flavor default: cpu by 4, "
        "from 4 to 8.\n"
    )


def test_the_code_of_a_message() -> None:
    result = CliRunner().invoke(app, ["explain", "kf111"])
    assert result.stdout.splitlines()[0] == ("KF111: queued provisioning feature currently supports only single PodSet")
    assert result.stdout.splitlines()[-1] == "What to do: See Use DWS (docs/tasks/dws.md)"
    assert CliRunner().invoke(app, ["explain", "KF624"]).stdout.splitlines()[-1].startswith("Source: https://")
    assert "KF999: no message has this code; docs/troubleshooting.md has all of them" in refused("KF999")


def test_every_cluster_is_explained(tmp_path: Path) -> None:
    manager = write(tmp_path / "m.yaml", [*cluster(16), job("train")])
    small = write(tmp_path / "s.yaml", cluster(4))
    stopped = write(tmp_path / "h.yaml", cluster(16, stopPolicy="Hold"))
    result = explain(
        "team-a/train", "--objects", f"manager={manager}", "--objects", f"small={small}", "--objects", f"held={stopped}"
    )
    assert [(e["cluster"], e["reason"]) for e in result] == [
        ("manager", "PendingEvaluation"),
        ("small", "ExceedsMaxQuota"),
        ("held", "Suspended"),
    ]
    assert "It is not on this cluster" in result[1]["headline"]


def test_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "queues.yaml", cluster())
    (tmp_path / "jobs.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [job("train", 2)]}))
    [result] = explain("train", "--objects", str(tmp_path))
    assert result["headline"].startswith("There is room for it")


def test_what_is_ahead_in_the_queue(tmp_path: Path) -> None:
    dump = write(tmp_path / "dump.yaml", [*cluster(), *(job(f"train-{n}", 3) for n in range(5))])
    [result] = explain("train-4", "--objects", str(dump))
    assert result["position"]["place"] == 5
    assert [w["workload"] for w in result["position"]["ahead"]] == [
        "team-a/train-0",
        "team-a/train-1",
        "team-a/train-2",
    ]


def test_a_cycle_of_cohorts_holds_the_queues_below_it_alone(tmp_path: Path) -> None:
    cohorts = [
        {"apiVersion": QUEUE, "kind": "Cohort", "metadata": {"name": name}, "spec": {"parentName": parent}}
        for name, parent in (("a", "b"), ("b", "a"))
    ]
    held, other = job("held", 1), job("other", 1)
    other["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "alone"
    _, queue, local, *_ = map(copy.deepcopy, cluster())
    queue["metadata"]["name"] = local["metadata"]["name"] = local["spec"]["clusterQueue"] = "alone"
    dump = write(tmp_path / "dump.yaml", [*cohorts, *cluster(cohortName="a"), queue, local, held, other])
    assert (
        "Cohort a.spec.parentName: the cohorts form a cycle, a -> b -> a"
        in CliRunner().invoke(app, ["explain", "other", "--objects", str(dump)]).stderr
    )
    [result] = explain("other", "--objects", str(dump))
    assert result["reason"] == "PendingEvaluation"
    [result] = explain("held", "--objects", str(dump))
    assert result["headline"] == "ClusterQueue cq is inactive: Can't admit new workloads: its cohort tree has a cycle."
    assert result["next_step"] == "ClusterQueue cq: remove parentName of Cohort b, which ends the cycle of its cohorts."


def test_of_a_local_queue_without_its_cluster_queue_it_says_what_to_make(tmp_path: Path) -> None:
    stray = job("stray", 1)
    stray["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "far"
    far = copy.deepcopy(cluster()[2])
    far["metadata"]["name"], far["spec"]["clusterQueue"] = "far", "somewhere-else"
    dump = write(tmp_path / "dump.yaml", [*cluster(), far, stray])
    [result] = explain("stray", "--objects", str(dump))
    step = "Create ClusterQueue somewhere-else, or replace LocalQueue team-a/far by one of another ClusterQueue."
    assert result["next_step"] == step


class TestBadInput:
    def test_an_unknown_workload(self, tmp_path: Path) -> None:
        dump = write(tmp_path / "dump.yaml", [*cluster(), job("train")])
        assert "there is no workload team-a/trian; did you mean team-a/train?" in refused(
            "team-a/trian", "--objects", str(dump)
        )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"cpu": "ten"}, "nominalQuota"),
            ({"cpu": -5}, "nominalQuota: is -5; write 0 or more"),
            ({"cohortName": 3}, "cohortName: 3 is given where text is needed"),
            ({"resourceGroups": "none"}, "ClusterQueue cq.spec.resourceGroups"),
        ],
    )
    def test_a_malformed_object(self, tmp_path: Path, change: dict[str, Any], message: str) -> None:
        dump = write(tmp_path / "dump.yaml", [*cluster(**change), job("train")])
        output = refused("train", "--objects", str(dump))
        assert f"{dump}:" in output
        assert message in output

    def test_no_file(self, tmp_path: Path) -> None:
        assert "no such file" in refused("train", "--objects", str(tmp_path / "none.yaml"))

    def test_garbage(self, tmp_path: Path) -> None:
        dump = tmp_path / "dump.yaml"
        dump.write_text("{{{")
        assert f"{dump}:" in refused("train", "--objects", str(dump))

    def test_an_object_without_metadata(self, tmp_path: Path) -> None:
        dump = tmp_path / "dump.yaml"
        dump.write_text("kind: ClusterQueue\nmetadata: 3\n")
        output = refused("train", "--objects", str(dump))
        assert output == f"{dump}:1: ClusterQueue has no metadata; give it a name there"

    @pytest.mark.parametrize("line", ["garbage {[}", "kind: nothing", "- kind", "kind: [", "{kind: "])
    def test_a_million_lines_of_garbage(self, line: str, tmp_path: Path) -> None:
        dump = tmp_path / "dump.yaml"
        dump.write_text(f"{line}\n" * 1_000_000)
        output = refused("train", "--objects", str(dump))
        assert str(dump) in output
        assert len(output.splitlines()) == 1


def pods(count: int, **metadata: Any) -> list[dict[str, Any]]:
    """Pods of a group of three."""
    labels = {"kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/pod-group-name": "group"}
    annotations = {"kueue.x-k8s.io/pod-group-total-count": "3"}
    named = {"namespace": "team-a", "labels": labels, "annotations": annotations, **metadata}
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": 2}}}]
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{n}", **named},
            "spec": {"containers": containers},
        }
        for n in range(count)
    ]


@pytest.mark.parametrize("name", ["group", "pod-1"])
class TestPodGroups:
    """kueue#1451: Kueue makes one Workload of a group, by whichever name it is asked for."""

    def test_a_group_that_is_to_be_created_is_one_workload(self, tmp_path: Path, name: str) -> None:
        dump = write(tmp_path / "dump.yaml", [*cluster(), *pods(3)])
        [result] = explain(name, "--objects", str(dump))
        assert (result["workload"], result["reason"]) == ("team-a/group", "ExceedsMaxQuota")

    def test_a_group_that_is_not_complete_has_no_workload(self, tmp_path: Path, name: str) -> None:
        dump = write(tmp_path / "dump.yaml", [*cluster(), *pods(2)])
        [result] = explain(name, "--objects", str(dump))
        assert (result["workload"], result["state"]) == ("team-a/group", "without a Workload")

    def test_a_live_group_whose_workload_is_not_there(self, tmp_path: Path, name: str) -> None:
        dump = write(tmp_path / "dump.yaml", [*cluster(), *pods(3, uid="1")])
        [result] = explain(name, "--objects", str(dump))
        assert (result["workload"], result["headline"].split(" is ")[-1]) == ("team-a/group", "not among the objects.")


def test_a_live_deployment_is_explained_by_its_pods(tmp_path: Path) -> None:
    metadata = {"name": "serve", "namespace": "team-a", "uid": "1", "labels": {"kueue.x-k8s.io/queue-name": "lq"}}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "serve-abc-1", "uid": "2"}
    workload = {
        "apiVersion": QUEUE,
        "kind": "Workload",
        "metadata": {"name": "pod-serve-abc-1", "namespace": "team-a", "ownerReferences": [owner]},
        "spec": {"queueName": "lq", "podSets": []},
    }
    result = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": {}}}
    [results] = explain("serve", "--objects", str(write(tmp_path / "dump.yaml", [*cluster(), result, workload])))
    assert results["next_step"] == "Explain one of them: kueue-fleet explain team-a/pod-serve-abc-1."


def test_a_job_of_a_namespace_that_kueue_does_not_manage(tmp_path: Path) -> None:
    text = "managedJobsNamespaceSelector: {matchLabels: {kueue: managed}}"
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": text},
    }
    [result] = explain("train", "--objects", str(write(tmp_path / "dump.yaml", [*cluster(), job("train"), config])))
    assert (result["state"], result["code"]) == ("without a Workload", "KF117")


@pytest.mark.parametrize(
    ("setting", "said"),
    [("true", "stays so, as Kueue manages jobs"), ("false", "not by Kueue"), (None, "where Kueue manages jobs")],
)
def test_a_suspended_job_without_a_queue_by_the_configuration(tmp_path: Path, setting: str | None, said: str) -> None:
    """kueue#1527."""
    data = {"controller_manager_config.yaml": f"manageJobsWithoutQueueName: {setting}"}
    named = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}
    plain = {**job("train"), "metadata": {"name": "train", "namespace": "team-a"}}
    given = [*cluster(), plain, *([config] if setting else [])]
    [result] = explain("train", "--objects", str(write(tmp_path / "dump.yaml", given)))
    assert said in result["headline"]


@pytest.mark.parametrize(
    ("labels", "said"), [({}, "has no label"), ({"kueue.x-k8s.io/queue-name": "lq"}, "LocalQueue lq")]
)
def test_a_cron_job_is_explained_by_its_template(tmp_path: Path, labels: dict[str, str], said: str) -> None:
    result = job("nightly")
    template = {"metadata": {"labels": labels}, "spec": result["spec"]}
    cron = {**result, "kind": "CronJob", "spec": {"schedule": "0 0 * * *", "jobTemplate": template}}
    [results] = explain("nightly", "--objects", str(write(tmp_path / "dump.yaml", [*cluster(), cron])))
    assert said in results["headline"]


CLUSTER = cluster()


@pytest.mark.parametrize(("suspend", "worker", "held"), [(True, "", True), (False, "", False), (True, "worker", False)])
def test_an_admitted_job_that_is_still_suspended(tmp_path: Path, suspend: bool, worker: str, held: bool) -> None:
    """kueue#3936: something refused the update by which Kueue starts the Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    given = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}
    at = "2026-11-01T10:00:00Z"
    workload = {
        "apiVersion": QUEUE,
        "kind": "Workload",
        "metadata": {"name": "job-train-1", "namespace": "team-a", "uid": "w", "ownerReferences": [owner]},
        "spec": {
            "queueName": "lq",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}],
        },
        "status": {
            **({"clusterName": worker} if worker else {}),
            "admission": {"clusterQueue": "cq", "podSetAssignments": [given]},
            "conditions": [
                {"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": at}
                for name in ("QuotaReserved", "Admitted")
            ],
        },
    }
    train = job("train", 1)
    train["metadata"]["uid"], train["spec"]["suspend"] = "u", suspend
    [result] = explain("team-a/train", "--objects", str(write(tmp_path / "o.yaml", [*CLUSTER, train, workload])))
    output = "It is admitted, and Job team-a/train is still suspended: Kueue has not started it."
    assert (result["headline"] == output) == held
    assert ("kubectl logs deployment/kueue-controller-manager -n kueue-system" in result["next_step"]) == held


@pytest.mark.parametrize(
    ("kind", "does_nothing"), [("PriorityClass", True), ("WorkloadPriorityClass", False), (None, False)]
)
def test_a_priority_label_that_a_workload_does_not_follow(tmp_path: Path, kind: str | None, does_nothing: bool) -> None:
    given, train = job("train", 1), job("train", 1)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    workload = {
        "apiVersion": QUEUE,
        "kind": "Workload",
        "metadata": {"name": "job-train-1", "namespace": "team-a", "uid": "w", "ownerReferences": [owner]},
        "spec": {
            "queueName": given["metadata"]["labels"]["kueue.x-k8s.io/queue-name"],
            "priority": 10,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": given["spec"]["template"]["spec"]}}],
            **({"priorityClassRef": {"kind": kind, "name": "low"}} if kind else {}),
        },
    }
    train["metadata"]["uid"] = "u"
    train["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "urgent"
    urgent = {"apiVersion": QUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}, "value": 5000}
    objects = write(tmp_path / "o.yaml", [*CLUSTER, urgent, train, workload])
    [result] = explain("team-a/train", "--objects", str(objects))
    output = "The label kueue.x-k8s.io/priority-class: urgent of Job team-a/train does nothing"
    assert (output in result["headline"]) == does_nothing


@pytest.mark.parametrize(("limit", "longer"), [("1h", True), ("3h", False)])
def test_a_wait_is_compared_with_the_goals_of_the_fleet(tmp_path: Path, limit: str, longer: bool) -> None:
    data = standalone_data()
    data["clusterQueues"][0]["goals"] = {"wait": {"p90": limit}}
    data["teams"] = [{"name": "team-a", "localQueues": [{"name": "lq", "clusterQueue": "gpu"}]}]
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(data))
    dump = Path(__file__).parents[2] / "examples/plain-cluster/dump.yaml"
    given = ("team-a/big", "--objects", str(dump), "--stack", str(tmp_path / "fleet.yaml"), "--at")
    [result] = explain(*given, "2026-11-21T02:00:02")
    [goal] = result["goals"]
    assert goal.startswith("Goal of clusterQueues[gpu]: 90% of the jobs wait")
    assert ("longer than that" in goal) == longer
    output = CliRunner().invoke(app, ["explain", *given, "2026-11-21T02:00:02"]).stdout
    assert "Goal of clusterQueues[gpu]: 90% of the jobs wait" in output
    [other] = explain("team-a/small", *given[1:], "2026-11-21T02:00:02")
    assert other["goals"] == []
