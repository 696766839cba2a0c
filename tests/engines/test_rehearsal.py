"""A whole fleet on real control planes: brought up, used, changed and destroyed by the real Pulumi."""

from __future__ import annotations

import base64
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from kubernetes import client, config

from kueue_fleet.rehearsal.job_views import JobState, JobView
from kueue_fleet.rehearsal.jobs import read_jobs
from kueue_fleet.rehearsal.pulumi_cli import PulumiEvent, PulumiProject, PulumiResult
from kueue_fleet.rehearsal.session import Session
from kueue_fleet.spec import FleetSpec, parse_fleet_text

ROOT = Path(__file__).parents[2]
STACK = "dws-multikueue"
JOBS_SECONDS = 240
MANAGER = "manager-europe-west4"
WORKERS = ["worker-europe-west4", "worker-us-east4", "worker-asia-southeast1"]
NEW_WORKER = "worker-us-central1"


class FleetInRehearsal:
    """The DWS fleet of the repository, with a copy of its stack file to change."""

    def __init__(self, folder: Path, session: Session) -> None:
        self.session = session
        self.stack_file = folder / "stacks" / f"Pulumi.{STACK}.yaml"
        self.steps: list[PulumiEvent] = []

    @property
    def fleet(self) -> FleetSpec:
        return parse_fleet_text(self.stack_file.read_text(), source=str(self.stack_file))

    def run(self, begin: Callable[[PulumiProject], Any]) -> PulumiResult:
        run = begin(self.session.pulumi())
        self.steps = [event for event in run if event.done and event.op != "same"]
        result: PulumiResult = run.result
        return result

    def up(self) -> PulumiResult:
        result = self.run(lambda project: project.up())
        self.session.write_kubeconfig(self.fleet)
        return result

    def change(self, edit: Callable[[dict[str, Any]], None]) -> None:
        settings = yaml.safe_load(self.stack_file.read_text())
        edit(settings["config"]["kueue-fleet:fleet"])
        self.stack_file.write_text(yaml.safe_dump(settings, sort_keys=False))

    def objects(self, cluster: str, plural: str) -> dict[str, dict[str, Any]]:
        found = self.session.clients(self.fleet).list(cluster, "kueue.x-k8s.io", "v1beta2", plural)
        return {each["metadata"]["name"]: each for each in found}

    def tokens(self, cluster: str) -> set[str]:
        """Every service account token that is kept in a Secret, as it is and in base64."""
        made = config.new_client_from_config(str(self.session.paths.kubeconfig), context=cluster)  # type: ignore[no-untyped-call]
        secrets = client.CoreV1Api(made).list_secret_for_all_namespaces().items
        encoded = {str(secret.data["token"]) for secret in secrets if secret.data and "token" in secret.data}
        return encoded | {base64.b64decode(token).decode() for token in encoded}

    def touched(self) -> set[tuple[str, str]]:
        """(operation, name) of what the last run changed; the stack itself left out."""
        return {(step.op, step.name) for step in self.steps if step.type != "pulumi:pulumi:Stack"}


def active(thing: dict[str, Any]) -> bool:
    conditions = thing["status"]["conditions"]
    return any(condition["type"] == "Active" and condition["status"] == "True" for condition in conditions)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetInRehearsal]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "stacks").mkdir()
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    project["main"] = str(ROOT / "stacks")
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    shutil.copy(ROOT / "stacks" / f"Pulumi.{STACK}.yaml", folder / "stacks")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path_factory.mktemp("s")))
        session = Session.for_stack(STACK, folder)
        stack.enter_context(session.exclusive())
        session.prepare_engines(print)
        stack.enter_context(session.running(keep=False))
        session.stand_ins()
        fleet = FleetInRehearsal(folder, session)
        fleet.up()
        yield fleet


def test_after_up_every_queue_check_and_cluster_is_active(lab: FleetInRehearsal) -> None:
    assert set(lab.objects(MANAGER, "multikueueclusters")) == set(WORKERS)
    for plural in ("multikueueclusters", "admissionchecks", "clusterqueues", "localqueues"):
        for cluster in [MANAGER] if plural == "multikueueclusters" else [MANAGER, *WORKERS]:
            objects = lab.objects(cluster, plural)
            assert objects, (cluster, plural)
            assert all(active(each) for each in objects.values()), (cluster, objects)


def test_a_second_up_changes_nothing(lab: FleetInRehearsal) -> None:
    result = lab.up()
    assert result.unchanged, lab.touched()


def test_no_credential_is_in_clear_in_the_state_or_in_any_log(lab: FleetInRehearsal) -> None:
    paths = lab.session.paths
    secrets = {paths.admin_token.read_text().strip()}
    for worker in WORKERS:
        secrets |= lab.tokens(worker)
    assert len(secrets) > len(WORKERS)
    state = list(paths.pulumi_backend.rglob("*.json"))
    logs = [*paths.root.glob("*.log"), *paths.root.glob("*.json")]
    assert state
    for file in [*state, *logs]:
        text = file.read_text(errors="replace")
        assert not any(secret in text for secret in secrets), file


def follow(lab: FleetInRehearsal, jobs: list[dict[str, Any]]) -> list[JobView]:
    views: list[JobView] = []
    for views in lab.session.run_jobs(lab.fleet, jobs, JOBS_SECONDS):  # noqa: B007
        pass
    return views


def test_twelve_jobs_spread_over_the_workers_and_one_that_fits_nowhere_says_why(lab: FleetInRehearsal) -> None:
    views = follow(lab, read_jobs(ROOT / "examples" / STACK / "jobs.yaml"))
    fitting = [view for view in views if not view.name.startswith("too-big-")]
    assert len(fitting) == 12
    assert {view.state for view in fitting} == {JobState.FINISHED}, fitting
    assert set(Counter(view.cluster for view in fitting)) == set(WORKERS)
    assert {view.flavors for view in fitting} == {("t4-dws",)}
    [too_big] = [view for view in views if view.name.startswith("too-big-")]
    assert too_big.hopeless
    assert [reason.split(": ")[:2] for reason in too_big.reasons] == [
        [worker, "ExceedsMaxQuota"] for worker in sorted(WORKERS)
    ]


def test_the_managers_copies_have_the_status_of_the_workers_jobs(lab: FleetInRehearsal) -> None:
    jobs = lab.session.clients(lab.fleet).list(MANAGER, "batch", "v1", "jobs")
    succeeded = [job for job in jobs if job["status"].get("succeeded") == job["spec"]["completions"]]
    assert len(succeeded) == 12


def test_a_changed_quota_is_an_update_in_place_on_each_worker_and_of_the_managers_sum(lab: FleetInRehearsal) -> None:
    def more_gpus(fleet: dict[str, Any]) -> None:
        fleet["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 6

    lab.change(more_gpus)
    lab.up()
    assert lab.touched() == {("update", f"{cluster}/dws") for cluster in [MANAGER, *WORKERS]}
    [group] = lab.objects(MANAGER, "clusterqueues")["dws"]["spec"]["resourceGroups"]
    quotas = {each["name"]: each["nominalQuota"] for each in group["flavors"][0]["resources"]}
    assert quotas["nvidia.com/gpu"] == "18"


def test_a_fourth_worker_touches_no_other_worker(lab: FleetInRehearsal) -> None:
    def fourth(fleet: dict[str, Any]) -> None:
        fleet["clusters"].append({"name": NEW_WORKER, "role": "worker", "region": "us-central1"})
        fleet["multiKueue"]["workers"].append(NEW_WORKER)

    lab.change(fourth)
    lab.up()
    others = {(op, name) for op, name in lab.touched() if NEW_WORKER not in name and "us-central1" not in name}
    # The manager's sum of quotas and its list of workers; nothing else that was there before.
    assert others == {("update", f"{MANAGER}/dws"), ("update", f"{MANAGER}/multikueue/multikueue")}
    assert active(lab.objects(MANAGER, "multikueueclusters")[NEW_WORKER])
    assert active(lab.objects(NEW_WORKER, "clusterqueues")["dws"])


def test_a_rotated_credential_replaces_only_tokens_and_the_manager_stays_connected(lab: FleetInRehearsal) -> None:
    lab.change(lambda fleet: fleet["multiKueue"]["credentials"].update(rotation="2027-01"))
    lab.up()
    changed = {name.split("/")[0] for op, name in lab.touched() if op != "update"}
    assert changed == {*WORKERS, NEW_WORKER}
    assert {op for op, name in lab.touched() if name.startswith(MANAGER)} == {"update"}
    deadline = time.monotonic() + 60
    while not all(active(each) for each in lab.objects(MANAGER, "multikueueclusters").values()):
        assert time.monotonic() < deadline, lab.objects(MANAGER, "multikueueclusters")
        time.sleep(1)


def test_everything_listens_on_loopback_only(lab: FleetInRehearsal) -> None:
    pids = {row["pid"] for row in lab.session.client.processes()}
    listening = [
        connection
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert all(connection.laddr.ip.startswith("127.") for connection in listening), listening


def test_destroy_ends_clean_and_no_cluster_is_left(lab: FleetInRehearsal) -> None:
    began = time.monotonic()
    result = lab.run(lambda project: project.destroy())
    assert set(result.changes) == {"delete"}
    assert lab.session.client.clusters() == []
    print(f"destroyed {result.changes['delete']} resources in {time.monotonic() - began:.0f} s")


def test_two_rehearsals_have_nothing_in_common(lab: FleetInRehearsal) -> None:
    other = Session.for_stack("other", lab.session.project_dir)
    with other.exclusive(), other.running(keep=False):
        assert other.client.health()["pid"] != lab.session.client.health()["pid"]
        assert os.path.commonpath([other.paths.root, lab.session.paths.root]) == str(other.paths.root.parent)
    assert not other.paths.root.exists()
    assert lab.session.client.health()["status"] == "ok"
