"""`submit`: what it makes, refuses and says before it submits, and how it follows a job, on API servers that answer
from a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.in_process import Command
from tests.cli.live_fleet import Fleet, serve

ROOT = Path(__file__).parents[2]
FILE = str(ROOT / "examples/jobs/fleet.yaml")
OPTIONS = f"submit --fleet {FILE} -q training --image trainer:1 --gpus 1 --name train --no-estimate"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/research/workloads"
JOBS = "/apis/batch/v1/namespaces/research/jobs"


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Fleet]:
    with serve(["batch"], monkeypatch, tmp_path / "kubeconfig") as result:
        result.tables["batch"][JOBS] = []
        yield result


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.delenv("KUEUE_FLEET_FILE", raising=False)
    return Command(monkeypatch, capsys)


def workload(**conditions: str) -> dict[str, Any]:
    """The Workload of the job, with reasons by condition."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-1"}
    return {
        "metadata": {"namespace": "research", "name": "job-train-1a2b3", "uid": "w-1", "ownerReferences": [owner]},
        "spec": {"queueName": "training", "podSets": []},
        "status": {
            "conditions": [
                {
                    "type": name,
                    "status": "True",
                    "reason": reason,
                    "message": "",
                    "lastTransitionTime": "2026-11-27T10:00:00Z",
                }
                for name, reason in conditions.items()
            ]
        },
    }


def pod(exit_code: int) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-1"}
    ended = {"name": "main", "state": {"terminated": {"exitCode": exit_code}}}
    metadata = {"namespace": "research", "name": "train-0", "uid": "p-1", "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Failed", "containerStatuses": [ended]}}


def test_the_manifest_is_printed_and_nothing_submitted(fleet: Fleet, command: Command) -> None:
    ended = command(f"{OPTIONS} --dry-run -- python train.py")
    job = yaml.safe_load(ended.out)
    assert (ended.code, job["metadata"]["namespace"], fleet.created) == (0, "research", [])
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["python", "train.py"]


def test_the_job_is_made_where_the_fleet_takes_jobs(fleet: Fleet, command: Command) -> None:
    ended = command(OPTIONS)
    assert ended == (0, "Job research/train is submitted to batch, LocalQueue training\n", "")
    [(cluster, path, job)] = fleet.created
    assert (cluster, path, job["metadata"]["name"]) == ("batch", JOBS, "train")


def test_the_fleet_may_be_in_the_environment(fleet: Fleet, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUEUE_FLEET_FILE", FILE)
    assert command(OPTIONS.replace(f" --fleet {FILE}", "")).code == 0
    assert fleet.created


def test_what_check_refuses_is_not_submitted(fleet: Fleet, command: Command) -> None:
    ended = command(f"{OPTIONS} --priority urgent")
    assert (ended.code, fleet.created) == (1, [])
    assert "there is no WorkloadPriorityClass 'urgent'" in ended.err


def test_a_manifest_of_ones_own_gets_the_queue(fleet: Fleet, command: Command, tmp_path: Path) -> None:
    job = yaml.safe_load((ROOT / "examples/jobs/job.yaml").read_text())
    del job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    assert command(f"submit --fleet {FILE} -f {file} -q training --no-estimate").code == 0
    [(_, _, result)] = fleet.created
    assert result["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "training"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("submit -q training --image i", "--fleet: is missing; name the fleet file, or set KUEUE_FLEET_FILE"),
        (f"submit --fleet {FILE}", "--queue and --image: missing; give them, or a job with -f FILE"),
        (f"submit --fleet {FILE} -q training", "--image: missing; give it, or a job with -f FILE"),
        (f"{OPTIONS} --time 3d", "--time 3d: has a unit that is not supported; write 72h"),
        (f"{OPTIONS} --env EPOCHS", "--env 'EPOCHS': has another form; write NAME=VALUE"),
        (f"{OPTIONS} --mount data", "--mount 'data': has another form; write CLAIM:/PATH"),
        (f"{OPTIONS} -f job.yaml", "--image, --name, --gpus: do nothing beside the job in job.yaml, which says"),
        (
            f"submit --fleet {FILE} -f job.yaml -N 2 --cpu 1 --memory 1Gi -p high -t 1h -e A=b --mount a:/b",
            "--nodes, --cpu, --memory, --priority, --time, --env, --mount: do nothing beside the job in job.yaml",
        ),
        (f"submit --fleet {FILE} -f job.yaml -- train", "CMD: does nothing beside the job in job.yaml"),
        (OPTIONS.replace("--gpus 1", "--gpus x"), "'--gpus' / '-g': Input should be a valid integer"),
    ],
)
def test_mistyped(arguments: str, says: str, command: Command) -> None:
    ended = command(arguments)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (403, "(403 Forbidden); ask for the rights of a member of the team (docs/teams.md)"),
        (409, "; give it another name"),
        (422, "; see what is wrong, then submit it again"),
    ],
)
def test_refusals_of_the_cluster_say_what_to_do(status: int, says: str, fleet: Fleet, command: Command) -> None:
    fleet.refused["/jobs"] = status
    ended = command(OPTIONS)
    assert ended.code == 1
    assert "error: batch: Job research/train is not submitted: " in ended.err
    assert says in ended.err


def test_before_that_it_says_when_the_job_would_start(fleet: Fleet, command: Command) -> None:
    fleet.tables["batch"]["/apis/kueue.x-k8s.io/v1beta2/workloads"] = []
    ended = command(OPTIONS.removesuffix(" --no-estimate"))
    assert ended.code == 0
    assert ended.out.startswith("train: number 1 of 1 pending in ClusterQueue training\nStarts in 0 s, ")


def test_who_may_not_read_all_workloads_is_told_so(fleet: Fleet, command: Command) -> None:
    fleet.refused["/v1beta2/workloads"] = 403
    ended = command(OPTIONS.removesuffix(" --no-estimate"))
    assert (ended.code, len(fleet.created)) == (0, 1)
    output = " ".join(ended.out.split())
    assert "When it starts is not known: that takes the right to list Workloads of all namespaces" in output
    assert "kueue-fleet describe research/train says why it waits" in output


def test_another_answer_than_forbidden_is_said_as_it_is(fleet: Fleet, command: Command) -> None:
    fleet.refused["/v1beta2/workloads"] = 500
    ended = command(OPTIONS.removesuffix(" --no-estimate"))
    assert "When it starts is not known: no /v1beta2/workloads (500" in " ".join(ended.out.split())


@pytest.mark.parametrize(
    ("reason", "exit_codes", "code"), [("Succeeded", [0], 0), ("Failed", [7], 7), ("Failed", [], 1)]
)
def test_wait_ends_with_the_exit_code_of_the_job(
    reason: str,
    exit_codes: list[int],
    code: int,
    fleet: Fleet,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = iter([{}, {"QuotaReserved": "QuotaReserved", "Admitted": "Admitted"}])
    fleet.tables["batch"] |= {WORKLOADS: [], "/api/v1/namespaces/research/pods": []}

    def sleep(seconds: float) -> None:
        """What happens meanwhile: it is queued, admitted, and then finished."""
        now = next(states, {"QuotaReserved": "QuotaReserved", "Admitted": "Admitted", "Finished": reason})
        fleet.tables["batch"][WORKLOADS] = [workload(**now)]
        fleet.tables["batch"]["/api/v1/namespaces/research/pods"] = list(map(pod, exit_codes))

    monkeypatch.setattr("kueue_fleet.cli.submit.time.sleep", sleep)
    ended = command(f"{OPTIONS} --wait")
    assert ended.code == code
    assert [line.split(" ", 1)[1].split(",")[0] for line in ended.out.splitlines()[1:]] == [
        "Pending",
        "Admitted on batch",
        "Finished on batch",
    ]


def test_a_cluster_that_does_not_answer_is_asked_again(
    fleet: Fleet, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.tables["batch"] |= {WORKLOADS: [workload(Finished="Succeeded")], "/api/v1/namespaces/research/pods": []}
    fleet.refused["/workloads"] = 500
    monkeypatch.setattr("kueue_fleet.cli.submit.time.sleep", lambda seconds: fleet.refused.clear())
    ended = command(f"{OPTIONS} --wait")
    assert ended.code == 0
    assert "not known: no /workloads" in ended.out


def test_a_job_that_is_deleted_meanwhile_ends_the_wait(
    fleet: Fleet, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = "/api/v1/namespaces/research/pods"
    fleet.tables["batch"] |= {WORKLOADS: [workload(QuotaReserved="QuotaReserved")], pods: []}
    monkeypatch.setattr(
        "kueue_fleet.cli.submit.time.sleep", lambda seconds: fleet.tables["batch"].update({WORKLOADS: []})
    )
    ended = command(f"{OPTIONS} --wait")
    assert ended.code == 1
    assert "batch: Job research/train was deleted" in ended.err


def in_namespace(fleet: Fleet, namespace: str) -> None:
    """The kubeconfig's context has another namespace."""
    file = Path(os.environ["KUBECONFIG"])
    config = yaml.safe_load(file.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    file.write_text(yaml.safe_dump(config))


def test_a_file_without_a_namespace_is_submitted_to_that_of_the_context(
    fleet: Fleet, command: Command, tmp_path: Path
) -> None:
    in_namespace(fleet, "research")
    job = yaml.safe_load(command(f"{OPTIONS} --dry-run").out)
    del job["metadata"]["namespace"]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    assert command(f"submit --fleet {FILE} -f {tmp_path / 'job.yaml'} --no-estimate").code == 0
    assert [path for _, path, _ in fleet.created] == [JOBS]


def test_of_queues_of_one_name_that_of_the_contexts_namespace_counts(
    fleet: Fleet, command: Command, tmp_path: Path
) -> None:
    data = yaml.safe_load(Path(FILE).read_text())
    other = {**data["teams"][0], "name": "other", "members": ["user:o@example.com"], "jobTemplates": []}
    data["teams"].append(other)
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(data))
    options = f"{OPTIONS.replace(FILE, str(tmp_path / 'fleet.yaml'))} --dry-run"
    in_namespace(fleet, "elsewhere")
    assert "training may be research/training, other/training" in command(options).err
    in_namespace(fleet, "other")
    assert yaml.safe_load(command(options).out)["metadata"]["namespace"] == "other"


def test_a_file_is_submitted_as_it_is_written(fleet: Fleet, command: Command, tmp_path: Path) -> None:
    """The API server makes the name; what is beside the job is left to its author."""
    job = yaml.safe_load((ROOT / "examples/jobs/job.yaml").read_text())
    job["metadata"]["generateName"] = f"{job['metadata'].pop('name')}-"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "research"}}
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump_all([secret, job]))
    ended = command(f"submit --fleet {FILE} -f {file} --dry-run")
    assert "Secret research/key: is not submitted; create it yourself" in ended.err
    assert yaml.safe_load(ended.out)["metadata"] == job["metadata"]


def test_a_group_of_pods_is_not_submitted_as_one(fleet: Fleet, command: Command, tmp_path: Path) -> None:
    template = yaml.safe_load((ROOT / "examples/jobs/job.yaml").read_text())["spec"]["template"]["spec"]
    labels = {"kueue.x-k8s.io/queue-name": "training", "kueue.x-k8s.io/pod-group-name": "g"}
    metadata = {"namespace": "research", "labels": labels, "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"}}
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": n, **metadata}, "spec": template} for n in "ab"]
    file = tmp_path / "pods.yaml"
    file.write_text(yaml.safe_dump_all(pods))
    ended = command(f"submit --fleet {FILE} -f {file} --dry-run")
    assert (ended.code, fleet.created) == (1, [])
    assert "holds a group of pods; submit them with kubectl create -f" in ended.err
