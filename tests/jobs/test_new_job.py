"""Jobs made for a queue: right for it, as `check --jobs` says, and refused with every field that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_fleet.fleet_file import FleetSpec, parse_fleet, parse_fleet_text
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.jobs.new_job import JobRequest, job_for

ROOT = Path(__file__).parents[2]


def fleet_of(file: str) -> FleetSpec:
    return parse_fleet_text((ROOT / file).read_text(), source=file)


@pytest.fixture(scope="module")
def classes() -> FleetSpec:
    return fleet_of("examples/jobs/fleet.yaml")


def made(fleet: FleetSpec, **fields: Any) -> dict[str, Any]:
    return job_for(fleet, JobRequest(**{"name": "train", "queue": "training", "image": "trainer:1", **fields}))


def pods_of(job: dict[str, Any]) -> dict[str, Any]:
    spec = job["spec"]
    template = spec["replicatedJobs"][0]["template"]["spec"] if job["kind"] == "JobSet" else spec
    pods: dict[str, Any] = template["template"]
    return pods


def container_of(job: dict[str, Any]) -> dict[str, Any]:
    [container] = pods_of(job)["spec"]["containers"]
    return dict(container)


@pytest.mark.parametrize(
    ("file", "fields"),
    [
        ("examples/jobs/fleet.yaml", {"gpus": 1}),
        ("examples/jobs/fleet.yaml", {"gpus": 2, "priority": "normal", "command": ["python", "train.py"]}),
        ("examples/jobs/fleet.yaml", {"gpus": 2, "tasks": 20}),
        ("examples/jobs/fleet.yaml", {"queue": "dws", "gpus": 2, "nodes": 2, "seconds": 3600}),
        ("examples/jobs/fleet.yaml", {"queue": "compact", "gpus": 2, "nodes": 4, "mounts": {"/data": "gs://data"}}),
        ("examples/jobs/fleet.yaml", {"queue": "calendar", "gpus": 8, "nodes": 2}),
        ("stacks/Pulumi.dws-multikueue.yaml", {"queue": "team-vision/gpu", "gpus": 1}),
        ("stacks/Pulumi.prod.yaml", {"queue": "vision/foundation", "gpus": 8}),
        ("stacks/Pulumi.batch-platform.yaml", {"queue": "lq-team-a-lp", "gpus": 2, "nodes": 2}),
        ("examples/topology/fleet.yaml", {"queue": "training", "gpus": 8, "nodes": 2}),
        ("examples/gpu-networks/fleet.yaml", {"queue": "h100", "gpus": 8, "nodes": 2}),
        ("examples/gpu-networks/fleet.yaml", {"queue": "h100-mega", "gpus": 8, "nodes": 2}),
        ("examples/gpu-networks/fleet.yaml", {"queue": "b200", "gpus": 8, "nodes": 2}),
    ],
)
def test_what_is_made_has_no_problem_in_its_fleet(file: str, fields: dict[str, Any]) -> None:
    fleet = fleet_of(file)
    result = check_manifests(fleet, [Document("", made(fleet, **fields))])
    assert [*result.problems, *result.warnings] == []


def test_cpus_and_memory_are_what_goes_with_the_gpus_in_quotas_and_machines(classes: FleetSpec) -> None:
    requests = container_of(made(classes, gpus=1))["resources"]["requests"]
    # g2-standard-24 has 23.9 CPUs for two L4, and the quotas have 10 for each.
    assert requests == {"cpu": "10", "memory": "39Gi", "nvidia.com/gpu": "1"}


def test_what_is_given_is_taken(classes: FleetSpec) -> None:
    requests = container_of(made(classes, gpus=1, cpu="500m", memory="3Gi"))["resources"]["requests"]
    assert requests == {"cpu": "500m", "memory": "3Gi", "nvidia.com/gpu": "1"}


def test_several_nodes_are_a_job_set_whose_pods_know_the_first(classes: FleetSpec) -> None:
    job = made(classes, queue="compact", gpus=2, nodes=2, env={"EPOCHS": "3"})
    assert job["kind"] == "JobSet"
    env = {item["name"]: item["value"] for item in container_of(job)["env"]}
    assert env == {"NNODES": "2", "MASTER_ADDR": "train-main-0-0.train", "MASTER_PORT": "29500", "EPOCHS": "3"}


def test_dws_keeps_machines_as_long_as_the_job_may_run(classes: FleetSpec) -> None:
    job = made(classes, queue="dws", gpus=2, seconds=7200)
    annotation = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
    assert (job["metadata"]["annotations"], job["spec"]["activeDeadlineSeconds"]) == ({annotation: "7200"}, 7200)


def test_an_array_starts_with_what_gets_quota(classes: FleetSpec) -> None:
    job = made(classes, gpus=1, tasks=50)
    assert job["metadata"]["annotations"] == {"kueue.x-k8s.io/job-min-parallelism": "1"}
    assert (job["spec"]["completions"], job["spec"]["backoffLimitPerIndex"]) == (50, 3)


def test_pods_act_as_their_team(classes: FleetSpec) -> None:
    assert pods_of(made(classes))["spec"]["serviceAccountName"] == "research"


def test_buckets_and_claims_are_mounted(classes: FleetSpec) -> None:
    job = made(classes, mounts={"/data": "gs://imagenet", "/work": "scratch"})
    assert pods_of(job)["metadata"]["annotations"] == {"gke-gcsfuse/volumes": "true"}
    bucket = {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "imagenet"}}
    assert [
        {key: value for key, value in item.items() if key != "name"} for item in pods_of(job)["spec"]["volumes"]
    ] == [
        {"csi": bucket},
        {"persistentVolumeClaim": {"claimName": "scratch"}},
    ]


def test_autopilot_gets_the_kind_of_gpu_that_all_flavors_have() -> None:
    fleet = fleet_of("stacks/Pulumi.dws-multikueue.yaml")
    kind = pods_of(made(fleet, queue="team-vision/gpu", gpus=1))["spec"].get("nodeSelector")
    assert kind == {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"queue": "trainin"}, "queue: there is no LocalQueue trainin; did you mean training?"),
        (
            {"queue": "vision/training"},
            "queue: there is no LocalQueue vision/training; did you mean research/training?",
        ),
        ({"nodes": 0}, "nodes: is 0; write at least 1"),
        ({"gpus": -1}, "gpus: is -1; write at least 0"),
        ({"seconds": 0}, "seconds: is 0; write at least 1"),
        (
            {"tasks": 3, "nodes": 2},
            "tasks: is set, with several nodes; use one node for each task, or submit several jobs",
        ),
        ({"env": {"1A": "x"}}, "env.1A: is not a name of a variable; write letters, digits and _ only"),
        ({"mounts": {"data": "claim"}}, "mounts.data: is not an absolute path; begin it with /"),
        ({"mounts": {"/data": "gs://"}}, "mounts./data: names nothing; name a PersistentVolumeClaim or gs://BUCKET"),
        (
            {"mounts": {"/data": "gs://Data"}},
            'mounts./data: "Data" is not the name of a bucket; write 3 to 63 lower-case letters, digits, - and _, '
            "without gs://",
        ),
    ],
)
def test_wrong_requests_say_what_to_do(classes: FleetSpec, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(SimulationError) as refused:
        made(classes, **fields)
    assert str(refused.value) == says


def test_everything_that_is_wrong_is_said_at_once(classes: FleetSpec) -> None:
    with pytest.raises(SimulationError) as refused:
        made(classes, queue="nowhere-near", nodes=0, gpus=-1)
    assert len(refused.value.problems) == 3


def test_a_queue_without_gpus_is_refused() -> None:
    document = yaml.safe_load((ROOT / "examples/jobs/fleet.yaml").read_text())
    queue = next(entry for entry in document["clusterQueues"] if entry["name"] == "training")
    for group in queue["resourceGroups"]:
        group["coveredResources"] = [each for each in group["coveredResources"] if each != "nvidia.com/gpu"]
        for flavor in group["flavors"]:
            flavor["resources"] = [item for item in flavor["resources"] if item["name"] != "nvidia.com/gpu"]
    with pytest.raises(SimulationError) as refused:
        made(parse_fleet(document), gpus=1)
    assert str(refused.value) == "gpus: is 1, and queue training has no GPUs; name another queue"
