"""`describe`, `logs`, `exec` and `cancel`: through the official client, on API servers that answer from a table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.in_process import Command, Ended
from tests.cli.live_fleet import Fleet, serve
from tests.status.test_fleet_status import ADMITTED, RESERVED, conditions

from kueue_admission.cli import console

Object = dict[str, Any]

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/vision/workloads"
QUEUES = """
- {kind: ResourceFlavor, metadata: {name: f}}
- kind: ClusterQueue
  metadata: {name: q}
  spec:
    namespaceSelector: {}
    resourceGroups:
      - {coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}
- {kind: LocalQueue, metadata: {name: gpu, namespace: vision}, spec: {clusterQueue: q}}
"""

EVENTS = "/api/v1/namespaces/vision/events"
OTHERS = ("/api/v1/nodes", "/api/v1/limitranges", "/apis/node.k8s.io/v1/runtimeclasses")


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Fleet]:
    with serve(["manager", "worker-a", "worker-b"], monkeypatch, tmp_path / "kubeconfig") as result:
        yield result


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def workload(job: str, kind: str = "Job", **states: tuple[bool, str, str]) -> Object:
    owner = {"apiVersion": "batch/v1" if kind == "Job" else "jobset.x-k8s.io/v1alpha2", "kind": kind, "name": job}
    resources = {"requests": {"cpu": "1"}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [{"resources": resources}]}}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "namespace": "vision",
            "name": f"{kind.lower()}-{job}-1a2b3",
            "uid": f"w-{kind}-{job}",
            "creationTimestamp": "2026-11-21T11:50:00Z",
            "ownerReferences": [{**owner, "uid": f"u-{kind}-{job}"}],
        },
        "spec": {"queueName": "gpu", "podSets": [pods]},
        "status": conditions(**states),
    }


def pod(name: str, of: str = "job-train-1a2b3", *, waiting: str = "") -> Object:
    state = {"waiting": {"reason": waiting}} if waiting else {"running": {}}
    status = {"phase": "Pending" if waiting else "Running"}
    return {
        "metadata": {"name": name, "annotations": {"kueue.x-k8s.io/workload": of}},
        "spec": {"nodeName": "node-1"},
        "status": {**status, "containerStatuses": [{"ready": not waiting, "restartCount": 2, "state": state}]},
    }


def runs(fleet: Fleet, *pods: Object, kind: str = "Job") -> Object:
    """A job that runs on worker-a."""
    train = workload("train", kind, QuotaReserved=RESERVED, Admitted=ADMITTED)
    train["status"]["clusterName"] = "worker-a"
    fleet.tables["manager"][WORKLOADS] = [train, workload("other")]
    fleet.tables["worker-a"] |= {"/api/v1/namespaces/vision/pods": list(pods), EVENTS: []}
    return train


def lines(ended: Ended) -> list[str]:
    return [" ".join(line.split()) for line in ended.out.splitlines()]


class TestDescribe:
    def test_a_job_that_runs_on_a_worker(self, fleet: Fleet, command: Command) -> None:
        of_another = pod("other-0", "job-other-1a2b3")
        refused = pod("train-2")
        refused["status"] = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
        runs(fleet, pod("train-0"), pod("train-1", waiting="ImagePullBackOff"), refused, of_another)
        ended = command("describe vision/train")
        assert (ended.code, ended.err) == (0, "")
        output = lines(ended)
        assert output[0] == "Job vision/train: Admitted on worker-a"
        assert output[1] == "submitted to manager, LocalQueue gpu"
        assert "0 train-0 Running yes 2 node-1" in output
        assert "1 train-1 ImagePullBackOff no 2 node-1" in output
        assert "2 train-2 UnexpectedAdmissionError no 0 node-1" in output
        assert "other-0" not in ended.out
        assert fleet.selectors == ["kueue.x-k8s.io/podset"]

    @pytest.mark.parametrize("time", ["yesterday", None, "2026-11-21T11:50:00"])
    def test_a_time_of_another_form(self, fleet: Fleet, command: Command, time: str | None) -> None:
        runs(fleet)["status"]["conditions"][-1]["lastTransitionTime"] = time
        ended = command("describe vision/train")
        assert (ended.code, ended.err) == (0, "")
        assert ("Admitted for" in ended.out) == str(time).startswith("2026")

    @pytest.mark.parametrize("pods", [[pod("train-0", waiting="ContainerCreating")], []])
    def test_why_nothing_of_an_admitted_job_runs(self, fleet: Fleet, command: Command, pods: list[Object]) -> None:
        runs(fleet, *pods)
        fleet.tables["worker-a"][EVENTS] = [
            {"metadata": {"name": name}, "reason": reason, "message": message, **at}
            for name, reason, message, at in (
                ("b", "FailedScheduling", "0/3 nodes are\navailable", {"lastTimestamp": "2026-11-21T12:10:00Z"}),
                ("a", "Queued", "long ago", {"eventTime": "2026-11-21T12:00:00.5Z", "lastTimestamp": None}),
            )
        ]
        waits = "train-0" if pods else "train"
        assert f"{waits}: FailedScheduling: 0/3 nodes are available" in lines(command("describe vision/train"))
        result = json.loads(command("describe vision/train -o json").out)
        assert (result["pods"][0] if pods else result)["event"] == "FailedScheduling: 0/3 nodes are available"

    @pytest.mark.parametrize("managed_by", ["kueue.x-k8s.io/multikueue", None])
    def test_one_that_the_manager_admitted_without_a_worker_never_runs(
        self, fleet: Fleet, command: Command, managed_by: str | None
    ) -> None:
        train = workload("train", QuotaReserved=RESERVED, Admitted=ADMITTED)
        fleet.tables["manager"] |= {
            WORKLOADS: [train],
            "/api/v1/namespaces/vision/pods": [],
            EVENTS: [],
            "/apis/batch/v1/namespaces/vision/jobs/train": {"spec": {"managedBy": managed_by}},
        }
        output = command("describe vision/train").out
        assert ("NotDispatched: admitted without a worker, where no pod runs" in output) == (managed_by is not None)

    @pytest.mark.parametrize("name", ["train", "job/train", "jobs.batch/train", "vision/train", "job-train-1a2b3"])
    def test_the_ways_to_name_it(self, name: str, fleet: Fleet, command: Command) -> None:
        runs(fleet)
        ended = command(["describe", name, "-o", "json"])
        result = json.loads(ended.out)
        assert (result["workload"], result["cluster"]) == ("job-train-1a2b3", "worker-a")

    def test_what_the_controller_says_of_it_is_shown(self, fleet: Fleet, command: Command) -> None:
        told = "It asks for 2 cpu; 1 is free in flavor f.\nNext: Wait.\nStart: not known"
        train = workload("train")
        train["status"] = conditions(**{"kueue-fleet.dev/Waiting": (True, "WaitingForQuota", told)})
        fleet.tables["manager"][WORKLOADS] = [train]
        output = lines(command("describe vision/train"))
        assert [line for line in output if line in told.splitlines()] == told.splitlines()
        assert json.loads(command("describe vision/train -o json").out)["says"] == told

    def test_why_it_waits_is_explained_on_the_live_objects(self, fleet: Fleet, command: Command) -> None:
        table = fleet.tables["manager"]
        waits = workload("train", QuotaReserved=(False, "Pending", "insufficient quota"))
        waits["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
        table[WORKLOADS] = [waits]
        plurals = ("resourceflavors", "cohorts", "clusterqueues", "localqueues", "admissionchecks", "topologies")
        for path in (*(f"/apis/kueue.x-k8s.io/v1beta2/{plural}" for plural in plurals), *OTHERS):
            table[path] = []
        table["/api/v1/namespaces"] = [{"metadata": {"name": "vision"}}]
        for item in yaml.safe_load(QUEUES):
            table[f"/apis/kueue.x-k8s.io/v1beta2/{item.pop('kind').lower()}s"].append(item)
        table["/apis/kueue.x-k8s.io/v1beta2/workloads"] = [waits]
        ended = command("describe train")
        assert (ended.code, ended.err) == (0, "")
        assert "Job vision/train: Pending" in ended.out
        assert "ExceedsMaxQuota" in ended.out
        assert "What would change it (each one tried):" in ended.out
        document = json.loads(command("describe train -o json").out)
        assert document["explanations"][0]["reason"] == "ExceedsMaxQuota"

    def test_members_who_may_not_list_queues_get_the_words_of_kueue(self, fleet: Fleet, command: Command) -> None:
        waits = workload("train", QuotaReserved=RESERVED)
        waits["status"] |= {
            "nominatedClusterNames": ["worker-a", "worker-b"],
            "admissionChecks": [{"name": "mk", "state": "Pending", "message": ""}],
        }
        fleet.tables["manager"][WORKLOADS] = [waits]
        copy = workload("train", QuotaReserved=(False, "WaitingForQuota", "insufficient quota for cpu"))
        fleet.tables["worker-a"][f"{WORKLOADS}/job-train-1a2b3"] = copy
        fleet.refused["/resourceflavors"] = 403
        ended = command("describe train")
        assert ended.code == 0
        output = lines(ended)
        assert "may go to worker-a, worker-b" in output
        assert "WaitingForQuota on worker-a: insufficient quota for cpu" in output
        assert "Not explained further: no /resourceflavors (403 Forbidden)" in output

    def test_pods_that_cannot_be_read_fail_the_command(self, fleet: Fleet, command: Command) -> None:
        runs(fleet)
        fleet.refused["/pods"] = 403
        ended = command("describe train")
        assert ended.code == 1
        assert "Admitted on worker-a" in ended.out
        assert "warning: worker-a: no /pods (403 Forbidden); what is there is not shown" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("trian", 1, "manager: there is no job trian in namespace vision; did you mean train?"),
        ("jobset/train", 1, "there is no job train in namespace vision; did you mean train?"),
        ("lost", 1, f"Job vision/lost: Kueue does not manage this Job: {'it has no label'}"),
        ("audio/train", 1, "the Workloads of audio cannot be read: "),
        ("audio/train -n vision", 2, "audio/train and --namespace vision: are two; leave one out"),
        ("vision/Train", 2, "JOB 'vision/Train': has characters or a form that are not allowed; use lower-case"),
        ("twice", 2, "twice: may be job/twice, jobset/twice; name one with its kind"),
        ("train --context nowhere", 1, "give a kubeconfig with a context nowhere"),
    ],
)
def test_jobs_that_are_not_there(arguments: str, code: int, says: str, fleet: Fleet, command: Command) -> None:
    runs(fleet)
    fleet.tables["manager"][WORKLOADS] += [workload("twice"), workload("twice", "JobSet")]
    fleet.tables["manager"]["/apis/batch/v1/namespaces/vision/jobs/lost"] = {
        "metadata": {"name": "lost", "namespace": "vision"}
    }
    ended = command(f"describe {arguments}")
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err


@pytest.fixture
def kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A kubectl that prints what it is called with."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "kubectl"
    script.write_text('#!/bin/sh\necho "$@"\nexit 3\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return script


class BecomesError(Exception):
    """What the process would go on as."""


def becomes(monkeypatch: pytest.MonkeyPatch, command: Command, arguments: list[str]) -> list[str]:
    def execv(program: str, call: list[str]) -> None:
        raise BecomesError(call)

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(BecomesError) as call:
        command(arguments)
    return list(call.value.args[0])


class TestKubectl:
    def test_logs_of_one_pod(
        self, fleet: Fleet, kubectl: Path, monkeypatch: pytest.MonkeyPatch, command: Command
    ) -> None:
        runs(fleet, pod("train-0"), pod("train-1"))
        call = becomes(monkeypatch, command, ["logs", "train", "-f", "--pod", "1", "-c", "main", "--tail", "5"])
        target = [str(kubectl), "--context=worker-a", "--namespace=vision"]
        assert call == [*target, "logs", "--follow", "--tail=5", "--container=main", "train-1"]

    @pytest.mark.parametrize("follow", ["", " --follow"])
    def test_logs_of_several_pods_have_the_name_of_the_pod(
        self, follow: str, fleet: Fleet, kubectl: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        runs(fleet, pod("train-0"), pod("train-1"))
        from typer.testing import CliRunner

        from kueue_fleet.cli import app

        ended = CliRunner().invoke(app, f"logs train{follow} --kubeconfig {os.environ['KUBECONFIG']}".split())
        assert ended.exit_code == 3
        target = f"--kubeconfig={os.environ['KUBECONFIG']} --context=worker-a --namespace=vision logs{follow}"
        printed = sorted(capfd.readouterr().out.splitlines())
        assert printed == [f"{target} train-{number} --prefix" for number in (0, 1)]

    def test_exec(self, fleet: Fleet, kubectl: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
        runs(fleet, pod("train-0"), pod("train-1"))
        call = becomes(monkeypatch, command, ["exec", "train", "-i", "--", "ls", "-l", "--", "a b"])
        assert call[3:] == ["exec", "--stdin", "train-0", "--", "ls", "-l", "--", "a b"]

    def test_a_terminal_is_passed_on(
        self, fleet: Fleet, kubectl: Path, monkeypatch: pytest.MonkeyPatch, command: Command
    ) -> None:
        runs(fleet, pod("train-0"))
        monkeypatch.setattr(console, "on_a_terminal", lambda: True)
        call = becomes(monkeypatch, command, ["exec", "train", "--", "bash"])
        assert call[3:] == ["exec", "--stdin", "--tty", "train-0", "--", "bash"]

    @pytest.mark.parametrize(
        ("pods", "state", "arguments", "says"),
        [
            (1, "waits", "logs train", "has no pods yet: it waits, WaitingForQuota on manager: no quota; kueue-fleet"),
            (0, "runs", "exec train ls", "Job vision/train has no pods on worker-a yet; try again"),
            (0, "over", "logs train", "has finished, and its pods on worker-a are deleted; look for its logs in Cloud"),
            (2, "runs", "logs train --pod 2", "--pod 2: there is no such pod; use 0 to 1, or a name such as train-0"),
            (2, "runs", "exec train ls --pod x", "--pod x: there is no such pod; use 0 to 1"),
        ],
    )
    def test_there_is_no_such_pod(
        self, pods: int, state: str, arguments: str, says: str, fleet: Fleet, kubectl: Path, command: Command
    ) -> None:
        train = runs(fleet, *(pod(f"train-{number}") for number in range(pods)))
        if state == "waits":
            train["status"] = conditions(QuotaReserved=(False, "WaitingForQuota", "no quota"))
        elif state == "over":
            train["status"] |= conditions(Finished=(True, "Succeeded", "done"))
        ended = command(arguments)
        assert ended.code in (1, 2)
        assert says in ended.err

    @pytest.mark.parametrize("arguments", ["logs train", "exec train ls"])
    def test_kubectl_is_missing(
        self, arguments: str, fleet: Fleet, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        ended = command(arguments)
        assert ended.code == 1
        assert f"{arguments.split()[0]}: needs kubectl, which is not on PATH; install it" in ended.err


class TestCancel:
    PATH = "/apis/batch/v1/namespaces/vision/jobs/train"
    SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/vision/jobsets/train"

    @pytest.mark.parametrize(("kind", "path"), [("Job", PATH), ("JobSet", SETS)])
    def test_the_job_is_deleted_where_it_was_submitted(
        self, kind: str, path: str, fleet: Fleet, command: Command
    ) -> None:
        runs(fleet, kind=kind)
        fleet.tables["manager"][path] = {}
        ended = command("cancel train --yes")
        assert (ended.code, ended.out) == (0, f"{kind} vision/train is deleted on manager\n")
        options = {"preconditions": {"uid": f"u-{kind}-train"}, "propagationPolicy": "Background"}
        assert fleet.deleted == [("manager", path, options)]

    @pytest.mark.parametrize(
        ("answer", "code", "deletes"), [(b"y\n", 0, 1), (b"n\n", 1, 0), (b"\n", 1, 0), (b"", 2, 0)]
    )
    def test_it_asks_first(self, answer: bytes, code: int, deletes: int, fleet: Fleet, command: Command) -> None:
        runs(fleet)
        fleet.tables["manager"][self.PATH] = {}
        ended = command("cancel train", stdin=answer)
        assert (ended.code, len(fleet.deleted)) == (code, deletes)
        assert "Delete Job vision/train (Admitted, on worker-a) on manager?" in ended.out
        assert ("and there is no answer; give --yes" in ended.err) == (answer == b"")

    def test_a_copy_on_a_worker_is_refused(self, fleet: Fleet, command: Command) -> None:
        copy = runs(fleet)
        copy["metadata"]["labels"] = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
        fleet.tables["worker-a"][WORKLOADS] = [copy]
        ended = command("cancel train --yes --context worker-a")
        assert ended.code == 1
        assert "train is a copy that MultiKueue made; give --context with the manager" in ended.err

    def test_the_api_server_refuses(self, fleet: Fleet, command: Command) -> None:
        runs(fleet)
        fleet.refused["jobs/train"] = 403
        ended = command("cancel train --yes")
        assert ended.code == 1
        assert "Job vision/train is not deleted: no jobs/train (403 Forbidden); ask for the rights" in ended.err
