"""The example of each kind of job, in a rehearsal of its fleet: Kueue admits it, its real operator runs it on nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from job_definitions import place_of
from job_files import jobs_in
from kueue_fleet.cli.rehearsed_jobs import read_jobs
from kueue_fleet.fleet_file import FleetSpec, parse_fleet_text
from kueue_rehearsal.fleet_engines import fleet_engines
from kueue_rehearsal.jobs.views import JobState
from kueue_rehearsal.session import Session
from one_cluster import KUEUE, Json, OneCluster, condition, wait_until
from quick_rehearsals import quick_rehearsals
from tests.cli.in_process import Command

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TEAM = "research"
PODS = f"/api/v1/namespaces/{TEAM}/pods"
SECONDS = 120.0
"""How long jobs may take on a machine that does other work too."""


@dataclass(frozen=True)
class Rehearsed:
    """The rehearsal of the fleet, and its only cluster."""

    session: Session
    fleet: FleetSpec
    cluster: OneCluster

    def run(self, *examples: str, most_seconds: int | None = None) -> dict[str, JobState]:
        """What becomes of the jobs of these examples, by their names."""
        jobs = [job for name in examples for job in read_jobs(self.fleet, EXAMPLES / f"{name}.yaml", most_seconds)]
        *_, views = self.session.run_jobs(self.fleet, jobs, SECONDS)
        return {view.name: view.state for view in views}

    def used(self) -> int:
        """GPUs that jobs hold in the queue."""
        flavors = self.cluster.get(f"{KUEUE}/clusterqueues/training")["status"].get("flavorsUsage", ())
        return sum(
            int(one["total"]) for item in flavors for one in item["resources"] if one["name"] == "nvidia.com/gpu"
        )

    def admitted(self, job: str) -> int:
        """GPUs that Kueue gave the job; its Workload keeps saying so when it has ended."""
        (workload,) = (
            one
            for one in self.cluster.items(f"{KUEUE}/namespaces/{TEAM}/workloads")
            if any(owner["name"] == job for owner in one["metadata"]["ownerReferences"])
        )
        assignments = workload["status"]["admission"]["podSetAssignments"]
        return sum(int(one["resourceUsage"].get("nvidia.com/gpu", 0)) for one in assignments)

    def running(self) -> dict[str, Json]:
        """The team's pods that run, by their names; all are on nodes of the pool."""
        pods = {one["metadata"]["name"]: one for one in self.cluster.items(PODS) if condition(one, "Ready") == "True"}
        assert all("-l4-" in one["spec"]["nodeName"] for one in pods.values())
        return pods

    def ended(self) -> list[Json]:
        """The team's pods that ran to their end, in the order of their names."""
        pods = (one for one in self.cluster.items(PODS) if one["status"].get("phase") == "Succeeded")
        return sorted(pods, key=lambda one: str(one["metadata"]["name"]))

    def ray_job(self, name: str) -> tuple[str, str]:
        """How far KubeRay is with a RayJob, which may have ended before the pod that submits has; and the job's end."""
        status = self.cluster.get(f"{place_of('ray.io/rayjob', TEAM)}/{name}")["status"]
        return status["jobDeploymentStatus"], status["jobStatus"]

    def delete(self, framework: str, name: str) -> None:
        self.cluster.delete(f"{place_of(framework, TEAM)}/{name}")
        wait_until(lambda: not self.used() and not self.running())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    """The examples' fleet. Its team has the account, the Secret and the classes of that of another example."""
    document = yaml.safe_load((EXAMPLES / "kinds-of-jobs/fleet.yaml").read_text())
    other = yaml.safe_load((EXAMPLES / "jobs/fleet.yaml").read_text())
    document["kueue"]["replicas"] = 1
    [team] = document["teams"]
    document["workloadPriorityClasses"] = other["workloadPriorityClasses"]
    document["teams"] = [{**other["teams"][0], "name": TEAM, "localQueues": team["localQueues"]}]
    file = tmp_path_factory.mktemp("fleet") / "kinds-of-jobs.yaml"
    file.write_text(yaml.safe_dump(document))
    fleet = parse_fleet_text(file.read_text(), source=str(file))
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path_factory.mktemp("s")))
        quick_rehearsals(patch)
        session = Session.for_stack("kinds-of-jobs", ROOT)
        session.fleet_file = file
        engines = session.prepare_engines(print, fleet_engines(fleet))
        assert "kuberay 1.6.2, lws 0.9.0, trainer 2.2.1" in engines
        stack.enter_context(session.exclusive())
        stack.enter_context(session.running(keep=False))
        session.stand_ins()
        for _ in session.pulumi().up():
            pass
        session.write_kubeconfig(fleet)
        [place] = yaml.safe_load(session.paths.kubeconfig.read_text())["clusters"]
        paths, unknown = session.paths, cast("Any", None)
        token, server = paths.admin_token.read_text().strip(), place["cluster"]["server"]
        cluster = OneCluster(fleet.home, unknown, session.engines, server, paths.root, token, paths.ca_certificate)
        yield Rehearsed(session, fleet, cluster)


def test_jobs_of_all_kinds_run_to_their_ends(lab: Rehearsed) -> None:
    assert lab.run("kinds-of-jobs/trainjob", "kinds-of-jobs/rayjob") == {
        "torch-train": JobState.FINISHED,
        "ray-train": JobState.FINISHED,
    }
    assert (lab.admitted("torch-train"), lab.admitted("ray-train")) == (4, 4)
    path = f"{place_of('trainer.kubeflow.org/trainjob', TEAM)}/torch-train"
    wait_until(lambda: condition(lab.cluster.get(path), "Complete") == "True")
    wait_until(lambda: lab.ray_job("ray-train") == ("Complete", "SUCCEEDED"))
    # KubeRay deletes the head and the workers; the pod that submits stays, as those of the TrainJob do.
    wait_until(lambda: len(lab.ended()) == 5)
    names = [pod["metadata"]["name"] for pod in lab.ended()]
    assert [name.rsplit("-", 1)[0] for name in names] == ["ray-train", *[f"torch-train-node-0-{n}" for n in range(4)]]
    wait_until(lambda: not lab.used() and not lab.running())


@pytest.mark.parametrize(("options", "pods"), [("--gpus 1", 1), ("--nodes 2 --gpus 1", 2), ("--array 3 --cpu 1", 3)])
def test_a_job_from_options_is_followed_to_its_end(
    options: str, pods: int, lab: Rehearsed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, ended = f"from-options-{pods}", len(lab.ended())
    place = f"--fleet {lab.session.fleet_file} --kubeconfig {lab.session.paths.kubeconfig}"
    command = f"submit {place} -q training {options} --name {name} --image busybox --time 5m --wait -- true"
    submitted = Command(monkeypatch, capsys)(command)
    assert (submitted.code, submitted.out.splitlines()[-1][9:]) == (0, f"Finished on {lab.fleet.home}")
    wait_until(lambda: len(lab.ended()) == ended + pods)
    wait_until(lambda: not lab.used())


def test_a_fine_tune_has_the_token_and_the_account_of_its_team(lab: Rehearsed) -> None:
    assert lab.run("jobs/finetune-with-token", most_seconds=1) == {"finetune-gemma": JobState.FINISHED}
    [spec] = (pod["spec"] for pod in lab.ended() if pod["metadata"]["name"].startswith("finetune-gemma-"))
    [token] = (one["valueFrom"]["secretKeyRef"] for one in spec["containers"][0]["env"] if one["name"] == "HF_TOKEN")
    secret = lab.cluster.get(f"/api/v1/namespaces/{TEAM}/secrets/{token['name']}")  # settled: its pod has run with it
    assert token["key"] in secret["data"]
    name = spec["serviceAccountName"]
    account = lab.cluster.get(f"/api/v1/namespaces/{TEAM}/serviceaccounts/{name}")  # settled: its pod has run with it
    assert "iam.gke.io/gcp-service-account" in account["metadata"]["annotations"]


def test_each_group_of_a_leader_worker_set_runs_and_holds_quota(lab: Rehearsed) -> None:
    kind = "leaderworkerset.x-k8s.io/leaderworkerset"
    assert lab.run("kinds-of-jobs/leaderworkerset") == {"serve": JobState.ADMITTED}
    path = f"{place_of(kind, TEAM)}/serve"
    wait_until(lambda: condition(lab.cluster.get(path), "Available") == "True")
    assert set(lab.running()) == {"serve-0", "serve-0-1", "serve-1", "serve-1-1"}
    wait_until(lambda: lab.used() == 8)
    lab.cluster.request("PATCH", path, {"spec": {"replicas": 1}}, "application/merge-patch+json")
    wait_until(lambda: lab.used() == 4 and set(lab.running()) == {"serve-0", "serve-0-1"})
    lab.delete(kind, "serve")


def test_a_ray_cluster_is_ready_and_holds_quota(lab: Rehearsed) -> None:
    assert lab.run("kinds-of-jobs/raycluster") == {"notebook": JobState.ADMITTED}
    path = f"{place_of('ray.io/raycluster', TEAM)}/notebook"
    wait_until(lambda: (lab.cluster.get(path).get("status") or {}).get("state") == "ready")
    roles = sorted(pod["metadata"]["labels"]["ray.io/node-type"] for pod in lab.running().values())
    assert roles == ["head", "worker"]
    wait_until(lambda: lab.used() == 1)
    lab.delete("ray.io/raycluster", "notebook")


def test_kueue_admits_what_an_operator_of_others_would_run(lab: Rehearsed) -> None:
    """It is in `operators.installedElsewhere`: its kind is served, and nothing runs it."""
    [document] = jobs_in(EXAMPLES / "kinds-of-jobs/pytorchjob.yaml")
    name, place = document["metadata"]["name"], place_of("kubeflow.org/pytorchjob", TEAM)
    lab.cluster.create(place, document)
    wait_until(lambda: lab.cluster.get(f"{place}/{name}")["spec"]["runPolicy"]["suspend"] is False)
    wait_until(lambda: lab.used() == lab.admitted(name) == 4)
    lab.delete("kubeflow.org/pytorchjob", name)


def test_a_group_of_pods_and_a_single_pod_run_to_their_ends(lab: Rehearsed) -> None:
    states = lab.run("kinds-of-jobs/pods", most_seconds=2)
    assert states == dict.fromkeys(("one", "shard-0", "shard-1", "shard-2"), JobState.FINISHED)
