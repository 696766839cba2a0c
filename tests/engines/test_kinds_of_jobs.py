"""The example of each kind of job, in a rehearsal of its fleet: Kueue admits it, its real operator runs it on nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from job_definitions import place_of
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.kueue_api.job_kinds import KINDS
from kueue_fleet.rehearsal.session import Session
from kueue_fleet.simulation.documents import read_documents
from one_cluster import KUEUE, Json, OneCluster, condition, wait_until
from quick_rehearsals import quick_rehearsals

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/kinds-of-jobs"
TEAM = "research"
PODS = f"/api/v1/namespaces/{TEAM}/pods"
PLACES = {kind.kind: place_of(framework, TEAM) for framework, kind in KINDS.items()}
PLACES["TrainingRuntime"] = PLACES["TrainJob"].replace("trainjobs", "trainingruntimes")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneCluster]:
    """The only cluster of the examples' fleet."""
    file = EXAMPLES / "fleet.yaml"
    fleet = parse_fleet_text(file.read_text(), source=str(file))
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path_factory.mktemp("s")))
        quick_rehearsals(patch)
        session = Session.for_stack("kinds-of-jobs", ROOT)
        session.fleet_file = file
        engines = session.prepare_engines(print, fleet.operators.installed)
        assert "kuberay 1.6.2, lws 0.9.0, trainer 2.2.1" in engines
        stack.enter_context(session.exclusive())
        stack.enter_context(session.running(keep=False))
        session.stand_ins()
        for _ in session.pulumi().up():
            pass
        (made,) = session.client.clusters()
        paths, unknown = session.paths, _unknown()
        token = paths.admin_token.read_text().strip()
        server = f"https://{made['endpoint']}"
        yield OneCluster(made["name"], unknown, session.engines, server, paths.root, token, paths.ca_certificate)


def _unknown() -> Any:
    return None


@pytest.fixture
def job(cluster: OneCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """Path of the job of an example, which is submitted; it goes with the test, and gives its quota back."""
    paths = []
    for document in read_documents((EXAMPLES / f"{request.param}.yaml").read_text(), request.param):
        place = PLACES[document.data["kind"]]
        cluster.create(place, dict(document.data))
        paths.append(f"{place}/{document.data['metadata']['name']}")
    yield paths[-1]
    for path in reversed(paths):
        cluster.delete(path)
    wait_until(lambda: not used(cluster) and not running(cluster))


def used(cluster: OneCluster) -> int:
    """GPUs that jobs hold in the queue."""
    flavors = cluster.get(f"{KUEUE}/clusterqueues/training")["status"].get("flavorsUsage", ())
    return sum(int(one["total"]) for each in flavors for one in each["resources"] if one["name"] == "nvidia.com/gpu")


def admitted(cluster: OneCluster, job: str) -> int:
    """GPUs that Kueue gave the job of a path; its Workload keeps saying so when it has ended."""
    (workload,) = (
        one
        for one in cluster.items(f"{KUEUE}/namespaces/{TEAM}/workloads")
        if any(owner["name"] == job.rpartition("/")[2] for owner in one["metadata"]["ownerReferences"])
    )
    assignments = workload["status"]["admission"]["podSetAssignments"]
    return sum(int(one["resourceUsage"].get("nvidia.com/gpu", 0)) for one in assignments)


def have_run(cluster: OneCluster) -> set[str]:
    """Names of the team's pods that run, or did so to their end, which takes 5 s."""
    ended = {one["metadata"]["name"] for one in cluster.items(PODS) if one["status"].get("phase") == "Succeeded"}
    return ended | running(cluster).keys()


def running(cluster: OneCluster) -> dict[str, Json]:
    """The team's pods that run, by their names; all are on nodes of the pool."""
    pods = {one["metadata"]["name"]: one for one in cluster.items(PODS) if condition(one, "Ready") == "True"}
    assert all("-l4-" in one["spec"]["nodeName"] for one in pods.values())
    return pods


def status(cluster: OneCluster, path: str) -> Any:
    return cluster.get(path).get("status") or {}


@pytest.mark.parametrize("job", ["leaderworkerset"], indirect=True)
def test_each_group_of_a_leader_worker_set_runs_and_holds_quota(cluster: OneCluster, job: str) -> None:
    wait_until(lambda: condition(cluster.get(job), "Available") == "True")
    assert set(running(cluster)) == {"serve-0", "serve-0-1", "serve-1", "serve-1-1"}
    wait_until(lambda: used(cluster) == 8)
    cluster.request("PATCH", job, {"spec": {"replicas": 1}}, "application/merge-patch+json")
    wait_until(lambda: used(cluster) == 4 and set(running(cluster)) == {"serve-0", "serve-0-1"})


@pytest.mark.parametrize("job", ["raycluster"], indirect=True)
def test_a_ray_cluster_is_ready_and_holds_quota(cluster: OneCluster, job: str) -> None:
    wait_until(lambda: status(cluster, job).get("state") == "ready")
    roles = sorted(pod["metadata"]["labels"]["ray.io/node-type"] for pod in running(cluster).values())
    assert roles == ["head", "worker"]
    wait_until(lambda: used(cluster) == 1)


@pytest.mark.parametrize("job", ["trainjob"], indirect=True)
def test_a_train_job_runs_to_its_end(cluster: OneCluster, job: str) -> None:
    wait_until(lambda: len(have_run(cluster)) == 4)
    assert admitted(cluster, job) == 4
    wait_until(lambda: condition(cluster.get(job), "Complete") == "True")
    wait_until(lambda: used(cluster) == 0)


@pytest.mark.parametrize("job", ["rayjob"], indirect=True)
def test_a_ray_job_ends_as_the_pod_that_submits_it(cluster: OneCluster, job: str) -> None:
    pods: set[str] = set()

    def all_have_run() -> bool:  # head, two workers, and the pod that submits
        pods.update(have_run(cluster))
        return len(pods) == 4

    wait_until(all_have_run)
    assert admitted(cluster, job) == 4
    wait_until(lambda: status(cluster, job).get("jobDeploymentStatus") == "Complete")
    assert status(cluster, job)["jobStatus"] == "SUCCEEDED"
    wait_until(lambda: not used(cluster) and not running(cluster))
