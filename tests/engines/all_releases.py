"""Stacks and the fleet's controller on the releases of Kueue that clusters name, mixed where the file says so.

`make releases` runs this file; `make test` has a worker of another release in dws_stack, and one upgrade in
test_releases.py.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
import yaml

from command_line import call
from controller_faults import Gate
from controller_lab import (
    JOBS,
    MANAGER,
    ControllerLab,
    controller_lab,
    fleet_data,
    job,
    restart_kueue,
    route,
    wait_until_connected,
)
from fleet_in_rehearsal import ROOT, FleetInRehearsal, copied, project_folder
from held_jobs import Held, followed
from job_files import jobs_in
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_fleet.adopt import AdoptedCluster, adopt_fleet
from kueue_fleet.cli import rehearsed_upgrade
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.given_fleets import given_fleet
from kueue_fleet.cli.rehearsed_upgrade import rehearse_upgrade
from kueue_fleet.cli.watched_jobs import Seen, observed
from kueue_fleet.diff.upgrade import LOOK_AGAIN
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.parse import PULUMI_KEY
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.problems import STEP_LABEL
from kueue_fleet.jobs.workload_file import WorkloadFile
from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.fleet_engines import fleet_engines
from kueue_rehearsal.jobs.submission import submit_jobs
from kueue_rehearsal.jobs.views import JobState
from kueue_rehearsal.paths import engines_dir
from kueue_rehearsal.session import Session
from mixed_releases import MIXES, Mix
from one_cluster import KUEUE, Refused, condition, wait_until
from quick_rehearsals import quick_rehearsals
from rehearse_command import fleet
from rehearse_command import job as gpu_job
from tests.adopt.test_platforms import IDENTITY, PLATFORMS, adopted
from two_regions import DISPATCH, PRICES, REGIONS

JOBS_SECONDS = 240
STEPS = (("0.17.1", "0.18.3"), ("0.18.3", "0.19.2"), ("0.17.1", "0.19.2"))
"""What docs/tasks/upgrade-kueue.md says was tried."""
RUN_SECONDS = "kueue-fleet.dev/run-seconds"
MERGE = "application/merge-patch+json"
LONG_AGO = "2026-01-01T00:00:00Z"


def releases_of(fleet: FleetInRehearsal) -> dict[str, set[str]]:
    """By cluster: the images of the pods of Kueue that are ready."""
    return {
        name: {
            re.sub(".*:v", "", pod["spec"]["containers"][0]["image"])
            for pod in fleet.clients.list(name, "", "v1", "pods")
            if pod["metadata"]["namespace"] == "kueue-system" and condition(pod, "Ready") == "True"
        }
        for name in fleet.fleet.cluster_names
    }


def run(fleet: FleetInRehearsal, jobs: Sequence[dict[str, Any]]) -> None:
    """The jobs end well."""
    views = list(fleet.session.run_jobs(fleet.fleet, jobs, JOBS_SECONDS))[-1]
    assert len(views) == len(jobs)
    clusters = list(fleet.fleet.cluster_names)
    unfinished = [view.name for view in views if view.state is not JobState.FINISHED]
    assert not unfinished, fleet.why_unfinished(unfinished, clusters)


@contextmanager
def brought_up(stack: str, mix: Mix, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetInRehearsal]:
    with copied(stack, tmp_path_factory) as fleet:
        fleet.change(mix.give_to)
        fleet.session.prepare_engines(print, fleet_engines(fleet.fleet))
        with fleet.session.exclusive(), fleet.session.running(keep=False):
            fleet.session.stand_ins()
            fleet.up()
            yield fleet


def jobs_of(stack: str) -> list[dict[str, Any]]:
    """Some of its example's, which are short here where there are many that are the same."""
    given = jobs_in(ROOT / "examples" / stack / "jobs.yaml")
    if stack == "batch-platform":
        return given[:8]
    jobs = [copy.deepcopy(entry) for entry in given[2:6]]
    for item in jobs:
        item["spec"]["template"]["metadata"]["annotations"][RUN_SECONDS] = "2"
    return jobs


@pytest.mark.parametrize("mix", MIXES, ids="-with-".join)
def test_the_dws_stack_runs_its_jobs(mix: Mix, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each cluster has its release, and four jobs end well."""
    with brought_up("dws-multikueue", mix, tmp_path_factory) as fleet:
        expected = {item.name: {mix.manager if item.role == "manager" else mix.others} for item in fleet.fleet.clusters}
        wait_until(lambda: releases_of(fleet) == expected)
        run(fleet, jobs_of("dws-multikueue"))


@pytest.mark.parametrize("mix", [Mix("0.18.3", "0.18.3"), Mix("0.17.1", "0.17.1")], ids="-with-".join)
def test_the_batch_platform_runs_its_jobs(mix: Mix, tmp_path_factory: pytest.TempPathFactory) -> None:
    with brought_up("batch-platform", mix, tmp_path_factory) as fleet:
        wait_until(lambda: set().union(*releases_of(fleet).values()) == {mix.others})
        run(fleet, jobs_of("batch-platform"))


@pytest.mark.parametrize("mix", MIXES, ids="-with-".join)
def test_the_fleets_controller_lets_each_job_run_once(mix: Mix, tmp_path_factory: pytest.TempPathFactory) -> None:
    asked = fleet_data(REGIONS, prices=PRICES, dispatch=DISPATCH)  # Fallback needs 0.18, as `check` says.
    mix.give_to(asked)
    build_engines(EngineCache(engines_dir()), names=fleet_engines(parse_fleet(asked)))
    with controller_lab(tmp_path_factory.mktemp("lab"), asked) as lab:
        lab.start_controller()
        names = [f"once-{number}" for number in range(4)]
        for name in names:
            lab.submit(job(name, seconds=2))
        wait_until(lambda: all(condition(lab.workload(name) or {}, "Finished") == "True" for name in names))
        wait_until(lambda: {name: ran(lab, name) for name in names} == dict.fromkeys(names, (1, 0)))


def small_fleet(version: str) -> dict[str, Any]:
    """The smallest fleet with MultiKueue."""
    data = fleet()
    manager, worker = ({**data["clusters"][0], "name": name, "role": name} for name in ("manager", "worker"))
    credentials = {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"}
    data |= {"clusters": [manager, worker], "multiKueue": {"credentials": credentials}}
    data["kueue"] |= {"version": version}
    return data


def small_job(seconds: int = 6) -> dict[str, Any]:
    """A job of it."""
    result = gpu_job("train", seconds=seconds)
    result["spec"]["backoffLimit"] = 0
    result["spec"]["template"]["spec"]["nodeSelector"] = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    return result


def upgrade(
    data: dict[str, Any], to: str, jobs: Sequence[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`upgrade --rehearse` of a fleet's own file. Raises Exit where a job is lost or runs twice."""
    folder = project_folder(tmp_path_factory)
    file, given = folder / "fleet.yaml", folder / "jobs.yaml"
    file.write_text(yaml.safe_dump(data))
    given.write_text(yaml.safe_dump_all(jobs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path_factory.mktemp("s")))
        quick_rehearsals(patch)
        patch.setattr(rehearsed_upgrade, "observed", _followed_too)
        rehearse_upgrade(file, given_fleet(file), load_fleet(file), to, [given])


@contextmanager
def _followed_too(session: Session, fleet: FleetSpec, jobs: Sequence[Mapping[str, Any]]) -> Iterator[Seen]:
    """`observed`, beside which nothing may be held unseen."""
    with observed(session, fleet, jobs) as seen, followed(Held(fleet, session.clients(fleet).list)):
        yield seen


@pytest.mark.parametrize("step", STEPS, ids="-to-".join)
def test_kueue_is_upgraded_while_jobs_run(
    step: tuple[str, str], tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = step
    upgrade(small_fleet(before), after, [small_job()], tmp_path_factory)
    check_audit(capsys)


@pytest.mark.parametrize("version", ["0.17.1", "0.18.3"])
@pytest.mark.parametrize("stack", ["batch-platform", "dws-multikueue"])
def test_a_stack_is_upgraded_while_jobs_run(
    stack: str, version: str, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    data = yaml.safe_load((ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"][PULUMI_KEY]
    data["kueue"] = {**data.get("kueue", {}), "version": version, "replicas": 1}
    upgrade(data, "0.19.2", jobs_of(stack), tmp_path_factory)
    check_audit(capsys)


def test_kueue_is_upgraded_below_the_fleets_controller(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    data = small_fleet("0.17.1")
    data["multiKueue"] |= {"dispatcher": "External", "external": {"name": "kueue-fleet.dev/dispatcher"}}
    data["controller"] = {}
    upgrade(data, "0.19.2", [small_job()], tmp_path_factory)
    check_audit(capsys)


def check_audit(capsys: pytest.CaptureFixture[str]) -> None:
    """What a rehearsed upgrade printed, which `pytest -rP` shows, says that all went well."""
    printed = capsys.readouterr().out
    print(printed)
    assert "every job finished, and each ran once" in printed


@contextmanager
def left_without_workers(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerLab]:
    """A fleet whose job `left` might be dispatched while no worker was connected; one is again, and ran another job."""
    asked = fleet_data({"worker": "us-east4"})
    asked["kueue"]["version"] = version
    asked["multiKueue"] = {"credentials": asked["multiKueue"]["credentials"]}
    del asked["controller"]
    asked["admissionChecks"][1] = {
        "name": "fleet",
        "controllerName": "example.com/by-hand",
        "clusters": [MANAGER, "worker"],
    }
    build_engines(EngineCache(engines_dir()), names=fleet_engines(parse_fleet(asked)))
    with (
        controller_lab(tmp_path_factory.mktemp("lab"), asked) as lab,
        closing(Gate(lab.workers["worker"].server)) as gate,
    ):
        route(lab, "worker", gate.url)
        wait_until_connected(lab)
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": LONG_AGO}
        lab.manager.request(
            "PATCH", f"{KUEUE}/admissionchecks/fleet/status", {"status": {"conditions": [active]}}, MERGE
        )
        lab.submit(job("left", queue="gated", seconds=2))
        wait_until(lambda: has_quota(lab, "left"))
        gate.shut()
        wait_until(lambda: condition(lab.manager.get(f"{KUEUE}/multikueueclusters/worker"), "Active") == "False")
        change(lab, "left", {"status": {"admissionChecks": ready(lab.workload("left") or {}, "fleet")}}, "/status")
        gate.open()
        wait_until_connected(lab)
        lab.submit(job("next", seconds=2))
        wait_until(lambda: condition(lab.workload("next") or {}, "Finished") == "True")
        yield lab


def wait_until_offered(lab: ControllerLab) -> None:
    name = (lab.workload("left") or {})["metadata"]["name"]
    wait_until(lambda: lab.workers["worker"].find(f"{KUEUE}/namespaces/team/workloads/{name}"))


@pytest.mark.parametrize("version", ["0.18.3", "0.19.2"])
def test_a_job_that_kueue_left_is_dispatched_once_its_workload_changes(
    version: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """docs/found-in-kueue.md, 14: what it waited for came while no worker was connected."""
    with left_without_workers(version, tmp_path_factory) as lab:
        assert not (lab.workload("left") or {})["status"].get("nominatedClusterNames")
        change(lab, "left", {"metadata": {"annotations": {LOOK_AGAIN: "1"}}})
        wait_until_offered(lab)


def test_kueue_0_17_leaves_no_job(tmp_path_factory: pytest.TempPathFactory) -> None:
    """It fails without a worker, and tries again."""
    with left_without_workers("0.17.1", tmp_path_factory) as lab:
        wait_until_offered(lab)


def has_quota(lab: ControllerLab, name: str) -> bool:
    """An API server refuses to list objects whose definition has just changed, as while Kueue starts."""
    try:
        return condition(lab.workload(name) or {}, "QuotaReserved") == "True"
    except Refused as error:
        raise AssertionError(str(error)) from None


def ready(workload: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Its admission checks, of which one is Ready."""
    checks: list[dict[str, Any]] = workload["status"]["admissionChecks"]
    return [{**item, "state": "Ready"} if item["name"] == name else item for item in checks]


def change(lab: ControllerLab, name: str, body: dict[str, Any], part: str = "") -> None:
    """Change the Workload of a job on the manager."""
    workload = (lab.workload(name) or {})["metadata"]["name"]
    path = f"{KUEUE}/namespaces/team/workloads/{workload}{part}"
    lab.manager.request("PATCH", path, body, MERGE)


ROOM = {"d": 13, "c": 11, "b": 7, "a": 3}
"""GPUs of each worker, in the order of the file."""
SIZES = (12, 9, 6, 3, 2)
"""GPUs of jobs that do not end, one after the other: at most one of the workers that are asked has as many left."""


def dispatched_by(dispatcher: str, version: str) -> dict[str, Any]:
    """A fleet with Kueue's own dispatcher, and a worker more than Incremental asks at first."""
    asked = fleet_data(dict.fromkeys(ROOM, "us-east4"))
    asked["kueue"]["version"] = version
    asked["multiKueue"] = {"credentials": asked["multiKueue"]["credentials"], "dispatcher": dispatcher}
    del asked["controller"], asked["admissionChecks"][1]
    asked["clusterQueues"], asked["localQueues"] = asked["clusterQueues"][:1], asked["localQueues"][:1]
    quota = asked["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]
    quota["perCluster"] = {name: {"nominalQuota": gpus} for name, gpus in ROOM.items()}
    return asked


def sized(gpus: int) -> dict[str, Any]:
    result = job(f"of-{gpus}", gpus, seconds=100_000)
    result["metadata"]["labels"][STEP_LABEL] = result["metadata"]["name"]
    result["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    return result


def simulated(asked: dict[str, Any]) -> dict[str, str | None]:
    """By job: where it is after a minute."""
    jobs = [sized(gpus) for gpus in SIZES]
    steps = {each["metadata"]["name"]: float(number) for number, each in enumerate(jobs)}
    documents = [Document(entry["metadata"]["name"], entry) for entry in jobs]
    fleet = prepare_fleet(parse_fleet(asked), WorkloadFile(steps=steps), Delays(), manifests=documents, until=60.0)
    return {item.name: item.cluster for item in fleet.run().records}


@pytest.mark.parametrize("version", ["0.17.1", "0.18.3", "0.19.2"])
def test_kueues_dispatchers_choose_the_workers_that_the_simulation_says(
    version: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Incremental asks three in the first five minutes: by name, since 0.19 in the order of the file."""
    fleets = {entry: dispatched_by(entry, version) for entry in ("AllAtOnce", "Incremental")}
    expected = {item: simulated(asked) for item, asked in fleets.items()}
    build_engines(EngineCache(engines_dir()), names=fleet_engines(parse_fleet(fleets["AllAtOnce"])))
    with controller_lab(tmp_path_factory.mktemp("lab"), fleets["AllAtOnce"]) as lab:
        for dispatcher, places in expected.items():
            restart_kueue(lab, MANAGER, dispatcher=dispatcher)
            wait_until_connected(lab)
            for gpus in SIZES:
                lab.submit(sized(gpus))
                wait_until(lambda name=f"of-{gpus}", places=places: is_settled(lab, name, places[name]))  # type: ignore[misc]
            result = {name: ((lab.workload(name) or {})["status"]).get("clusterName") for name in places}
            assert result == places, dispatcher
            lab.clear()


def is_settled(lab: ControllerLab, name: str, place: str | None) -> bool:
    """Whether a job is on a worker, or no worker that has a copy has quota for it."""
    workload = lab.workload(name)
    status = (workload or {}).get("status") or {}
    if workload is None or place is not None:
        return bool(status.get("clusterName")) and status["clusterName"] == place
    path = f"{KUEUE}/namespaces/team/workloads/{workload['metadata']['name']}"
    copies = [lab.workers[item].find(path) for item in status.get("nominatedClusterNames") or ()]
    return bool(copies) and all(entry is not None and condition(entry, "QuotaReserved") == "False" for entry in copies)


XPK = "theirs"
OF_KUEUE = [
    *(f"/apis/kueue.x-k8s.io/v1beta1/{kind}" for kind in ("resourceflavors", "clusterqueues", "localqueues")),
    "/apis/kueue.x-k8s.io/v1beta1/workloads",
    "/api/v1/namespaces/kueue-system/configmaps",
    "/apis/apps/v1/namespaces/kueue-system/deployments",
]
"""What xpk's Kueue prints, in the version of its manifests."""


def xpk_job(name: str, gpus: int) -> dict[str, Any]:
    """A JobSet of one pod, as xpk makes them."""
    container = {"name": "main", "image": "runner", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    pod = {
        "restartPolicy": "Never",
        "priorityClassName": "medium",
        "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [container],
    }
    template = {"metadata": {"annotations": {RUN_SECONDS: "6"}}, "spec": pod}
    job_spec = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": template}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "multislice-queue"},
        },
        "spec": {"replicatedJobs": [{"name": "slice-job", "replicas": 1, "template": {"spec": job_spec}}]},
    }


def test_a_platform_of_xpk_is_imported_and_explained(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What its Kueue 0.17.1 prints in v1beta1 becomes the same file again, and says why a job waits."""
    data = adopted("xpk-gpu").data

    def become(known: dict[str, Any]) -> None:
        known.clear()
        known.update(data)

    with copied("dev", tmp_path_factory) as lab:
        lab.change(become)
        lab.session.prepare_engines(print, fleet_engines(lab.fleet))
        with lab.session.exclusive(), lab.session.running(keep=False):
            lab.session.stand_ins()
            lab.session.write_settings()
            lab.session.make_existing_clusters(lab.fleet)
            lab.up()
            submit_jobs(lab.clients, XPK, [xpk_job("large", 3)])
            wait_until(
                lambda: [w for w in lab.objects(XPK, "workloads").values() if w.get("status", {}).get("conditions")]
            )
            printed = lab.printed(XPK, OF_KUEUE)
    pools = yaml.safe_load((PLATFORMS / "xpk-gpu" / "pools.yaml").read_text())
    again = adopt_fleet([AdoptedCluster(XPK, "us-central1", printed, pools)], IDENTITY).data
    assert {item["apiVersion"] for item in printed if "Queue" in item["kind"]} == {"kueue.x-k8s.io/v1beta1"}
    for section in ("kueue", "clusters", "flavors", "clusterQueues", "localQueues"):
        assert again[section] == data[section], section
    dump = tmp_path_factory.mktemp("dump") / "dump.yaml"
    dump.write_text(yaml.safe_dump_all(printed))
    told = call("explain", "large", "--objects", dump)
    why = "It asks for 3 nvidia.com/gpu; ClusterQueue cluster-queue can never have more than 2 of it in flavor 1xl4-1."
    assert why in " ".join(told.stdout.split()), (told.stdout, told.stderr)


def test_a_platform_of_xpk_is_upgraded_while_jobs_run(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    data: dict[str, Any] = adopted("xpk-gpu").data
    upgrade(data, "0.19.2", [xpk_job("golden", 1)], tmp_path_factory)
    check_audit(capsys)


def ran(lab: ControllerLab, name: str) -> tuple[int, int]:
    """How many pods of a job ended well, and how many did not."""
    status = lab.manager.get(f"{JOBS}/{name}")["status"]
    return status.get("succeeded", 0), status.get("failed", 0)
