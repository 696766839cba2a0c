"""A whole fleet on real control planes: brought up by `make rehearse`, used, changed and destroyed."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import psutil
import pytest

from fleet_in_rehearsal import LISTS, ROOT, FleetInRehearsal, copied
from job_files import jobs_in
from kueue_admission.simulate.rows import JobRow
from kueue_fleet.adopt import AdoptedCluster, Identity, adopt_fleet
from kueue_fleet.fleet_file import parse_fleet
from kueue_rehearsal.fleet_engines import fleet_engines
from kueue_rehearsal.jobs.views import JobState
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.session import Session, take_down
from one_cluster import condition, wait_until
from side_by_side import rehearsed_rows, simulated, table
from tests.docs.console import blocks
from tests.docs.rehearsal_output import lacks
from tests.engines.all_releases import releases_of

STACK = "dws-multikueue"
JOBS = ROOT / "examples" / STACK / "jobs.yaml"
RUN_SECONDS = 900
JOBS_SECONDS = 240
MANAGER = "manager-europe-west4"
WORKERS = ["worker-europe-west4", "worker-us-east4", "worker-asia-southeast1"]
DATA = re.compile('<script type="application/json" id="data">(.*?)</script>')
NEW_WORKER = "worker-us-central1"
TODAY = date(2026, 11, 22)
IMPORTED = ("flavors", "cohorts", "cluster_queues", "admission_checks", "teams", "local_queues", "priority_classes",
            "workload_priority_classes")  # fmt: skip
# The manager's sum of quotas, its list of workers, and the alerts that name every cluster.
OF_ALL_WORKERS = {
    ("update", f"{MANAGER}/dws"),
    ("update", f"{MANAGER}/multikueue/multikueue"),
    *(("update", alert) for alert in ("kueue-gone", "provisioning-stuck", "queue-inactive")),
}


def active(thing: dict[str, Any]) -> bool:
    return condition(thing, "Active") == "True"


@dataclass(frozen=True)
class Kept:
    """A rehearsal that a command has left running, what the command printed, and the data of its report."""

    lab: FleetInRehearsal
    printed: str
    report: dict[str, Any]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with copied(STACK, tmp_path_factory) as fleet:
        jobs = fleet.session.project_dir / "examples" / STACK
        jobs.mkdir(parents=True)
        shutil.copy(JOBS, jobs)
        report = fleet.session.project_dir / "report.html"
        options = f"--html {report} --project {fleet.session.project_dir}"
        environment = {**os.environ, "NO_COLOR": "1"}
        try:
            done = subprocess.run(
                ["make", "rehearse", "DO=up", f"VENV={Path(sys.executable).parents[1]}", f"OPTIONS={options}"],
                cwd=ROOT, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            with fleet.session.exclusive(), fleet.session.running(keep=True):
                yield Kept(fleet, done.stdout, json.loads(DATA.findall(report.read_text())[0]))
        finally:
            take_down(STACK)


@pytest.fixture(scope="module")
def lab(kept: Kept) -> FleetInRehearsal:
    return kept.lab


def test_make_rehearse_prints_what_its_page_shows(kept: Kept) -> None:
    [shown] = blocks(ROOT / "docs" / "rehearse.md", "text")
    assert lacks(shown, kept.printed) == [], kept.printed


def test_after_up_every_queue_check_and_cluster_is_active(lab: FleetInRehearsal) -> None:
    made = lab.objects(MANAGER, "multikueueclusters")  # settled: `up` waits until they are active
    assert set(made) == set(WORKERS)
    for plural in ("multikueueclusters", "admissionchecks", "clusterqueues", "localqueues"):
        for cluster in [MANAGER] if plural == "multikueueclusters" else [MANAGER, *WORKERS]:
            objects = lab.objects(cluster, plural)  # settled: `up` waits until they are active
            assert objects, (cluster, plural)
            assert all(active(each) for each in objects.values()), (cluster, objects)


def test_a_second_up_changes_nothing(lab: FleetInRehearsal) -> None:
    result = lab.up()
    assert result.unchanged, lab.touched()


def in_order(entry: Any) -> Any:
    """A team with its priority classes by name; any other entry as it is."""
    classes = getattr(entry, "priority_classes", None)
    return entry.model_copy(update={"priority_classes": tuple(sorted(classes))}) if classes else entry


def test_import_makes_the_same_fleet_of_what_runs(lab: FleetInRehearsal) -> None:
    fleet = lab.fleet
    clusters = [
        AdoptedCluster(entry.name, entry.region, lab.printed(entry.name, LISTS), (), entry.mode)
        for entry in fleet.clusters
    ]
    adopted = adopt_fleet(clusters, Identity(fleet.name, fleet.project, date(2027, 2, 1), TODAY, default_kueue=True))
    again = parse_fleet(adopted.data)
    assert again.worker_names == fleet.worker_names
    for section in IMPORTED:  # The API lists by name, and so does a team's policy.
        before, after = ({entry.name: in_order(entry) for entry in getattr(side, section)} for side in (fleet, again))
        assert after == before, section
    assert [
        note for note in adopted.notes if "would be changed" in note or note.endswith((" is new", " are new"))
    ] == []


def test_no_credential_is_in_clear_in_the_state_or_in_any_log(lab: FleetInRehearsal) -> None:
    paths = lab.session.paths
    secrets = {paths.admin_token.read_text().strip()}
    for worker in WORKERS:
        secrets |= lab.tokens(worker)
    assert len(secrets) > len(WORKERS)
    state = list(paths.pulumi_backend.rglob("*.json"))
    assert not list(paths.pulumi_home.rglob("logs/*"))
    logs = [*paths.root.glob("*.log"), *paths.root.glob("*.json")]
    assert state
    for file in [*state, *logs]:
        text = file.read_text(errors="replace")
        assert not any(secret in text for secret in secrets), file


def test_twelve_jobs_spread_over_the_workers_and_one_that_fits_nowhere_says_why(kept: Kept) -> None:
    jobs = [job for job in jobs_table(kept.printed) if not job["job"].startswith("too-big-")]
    assert len(jobs) == 12
    stuck = [job["job"] for job in jobs if job["state"] != "Finished"]
    assert not stuck, kept.lab.why_unfinished(stuck, [MANAGER, *WORKERS])
    assert {job["cluster"] for job in jobs} == set(WORKERS)
    assert {job["flavor"] for job in jobs} == {"t4-dws"}
    assert f"waits: {', '.join(sorted(WORKERS))}: ExceedsMaxQuota: " in kept.printed
    simulation = simulated(kept.lab.fleet, jobs_in(JOBS), 3600)
    rehearsal = rows_of(jobs_table(kept.printed))
    both = table(simulation, rehearsal)
    print(both)
    # Which worker is the first with capacity is chance; who runs, and on which flavor, is not.
    assert {row.job: row.flavors for row in simulation} == {row.job: row.flavors for row in rehearsal}, both
    assert {row.cluster for row in simulation if row.cluster} <= set(WORKERS), both


def test_the_report_shows_what_the_table_says_and_when(kept: Kept) -> None:
    [section] = kept.report["sections"]
    runs = kept.report["phases"].index("runs")
    said = {job["job"]: job for job in jobs_table(kept.printed)}
    later = seconds_until_workloads(kept.lab)  # settled: the run has ended
    assert {name.partition("/")[2] for name, *_ in section["jobs"]} == set(said)
    for name, queue, team, state, flavors, cluster, _, wait, _, evictions, phases in section["jobs"]:
        row = said[name.partition("/")[2]]
        shown = (team, state.partition(":")[0], flavors or "-", cluster or "-", queue, evictions)
        assert shown == (row["team"], row["state"], row["flavor"], row["cluster"], "dws", 0), row
        assert (runs in phases[2::3]) is (row["state"] == "Finished"), (name, phases)
        assert wait is None or abs(wait + later[row["job"]] - float(row["wait"].split()[0])) <= 2, row
    used = {(one["name"], one["cluster"]): max(one["y"]) for one in section["series"] if one["kind"] == "own"}
    assert used
    assert {flavor for flavor, _ in used} == {"t4-dws"}
    assert {cluster for _, cluster in used} <= set(WORKERS)
    assert {(one["name"], one["cluster"]): one["quota"] for one in section["quotas"]}.keys() >= used.keys()


def seconds_until_workloads(lab: FleetInRehearsal) -> dict[str, float]:
    """From when each job was made, with which the table begins, until Kueue made its Workload, as the report does."""
    jobs = {job["metadata"]["name"]: job for job in lab.session.clients(lab.fleet).list(MANAGER, "batch", "v1", "jobs")}
    found = {}
    for workload in lab.objects(MANAGER, "workloads").values():
        [owner] = workload["metadata"]["ownerReferences"]
        made = (
            datetime.fromisoformat(each["metadata"]["creationTimestamp"]) for each in (workload, jobs[owner["name"]])
        )
        found[owner["name"]] = (next(made) - next(made)).total_seconds()
    return found


def jobs_table(printed: str) -> list[dict[str, str]]:
    """The table of jobs that the command printed."""
    lines = iter(printed.splitlines())
    header = next(line for line in lines if line.startswith("job ")).split()
    rows = takewhile(lambda row: len(row) == len(header), (re.split(r" {2,}", line.strip()) for line in lines))
    return [dict(zip(header, row, strict=True)) for row in rows]


def rows_of(jobs: list[dict[str, str]]) -> list[JobRow]:
    """With numbers for the letters that Kubernetes ends generated names with, as a simulation has them."""
    numbers: Counter[str] = Counter()
    rows = []
    for job in jobs:
        prefix = f"{job['team']}/{job['job'].rpartition('-')[0]}"
        numbers[prefix] += 1
        ran = [] if job["cluster"] == "-" else [[job["flavor"]]]
        rows += rehearsed_rows(f"{prefix}-{numbers[prefix]}", job["cluster"], ran, 0)
    return rows


def test_the_managers_copies_have_the_status_of_the_workers_jobs(lab: FleetInRehearsal) -> None:
    jobs = lab.session.clients(lab.fleet).list(MANAGER, "batch", "v1", "jobs")
    succeeded = [job for job in jobs if job["status"].get("succeeded") == job["spec"]["completions"]]
    assert len(succeeded) == 12


def test_after_the_jobs_no_worker_holds_anything(lab: FleetInRehearsal) -> None:
    wait_until_nothing_is_held(lab, WORKERS)


def wait_until_nothing_is_held(lab: FleetInRehearsal, workers: list[str]) -> None:
    def nothing_is_held() -> bool:
        assert {worker: held for worker in workers if (held := lab.holds(worker))} == {}
        return True

    wait_until(nothing_is_held)


def one_job(run_seconds: str, **annotations: str) -> list[dict[str, Any]]:
    (job, *_) = jobs_in(JOBS)
    job = copy.deepcopy(job)
    job["metadata"]["annotations"] |= {f"provreq.kueue.x-k8s.io/{key}": value for key, value in annotations.items()}
    job["spec"]["template"]["metadata"]["annotations"]["kueue-fleet.dev/run-seconds"] = run_seconds
    return [job]


def run_in_dws(lab: FleetInRehearsal, jobs: Sequence[dict[str, Any]] | None = None, **settings: Any) -> str:
    """One job while DWS behaves like this; returns where it ran, once the other workers have let go of all."""
    lab.simulate(dws=settings)
    lab.session.write_settings()
    for (view,) in lab.session.run_jobs(lab.fleet, jobs or one_job("8"), JOBS_SECONDS):
        if view.cluster:
            wait_until_nothing_is_held(lab, [worker for worker in WORKERS if worker != view.cluster])
        ran_on, state, name = view.cluster, view.state, view.name
    assert state is JobState.FINISHED, lab.why_unfinished([name], [MANAGER, *WORKERS])
    return ran_on


def test_the_region_that_gets_capacity_runs_the_job_and_the_others_let_go(lab: FleetInRehearsal) -> None:
    stock = {"us-east4": {"low": 4, "high": 4}}
    three_pods = jobs_in(JOBS.with_name("gpu-intensive-job.yaml"))
    assert run_in_dws(lab, three_pods, low=0, high=0, stock=stock) == "worker-us-east4"
    waits = [{"cluster": "worker-us-east4", "seconds": 3}, {"seconds": 100_000}]
    assert [row.cluster for row in simulated(lab.fleet, three_pods, 3600, waits=waits)] == ["worker-us-east4"]


def test_a_request_that_dws_fails_is_served_in_another_region(lab: FleetInRehearsal) -> None:
    failing = {"europe-west4": 100, "us-east4": 100}
    slow: dict[str, Any] = {"leastWaitSeconds": 6, "mostWaitSeconds": 6}
    assert run_in_dws(lab, low=8, high=8, failPercentIn=failing) == "worker-asia-southeast1"
    wait_until_nothing_is_held(lab, WORKERS)
    assert run_in_dws(lab, low=8, high=8, failPercentIn={"asia-southeast1": 100}, **slow) != "worker-asia-southeast1"


def test_a_job_of_more_than_seven_days_is_refused_at_once(lab: FleetInRehearsal) -> None:
    for seconds in ("604801", "0", "7d"):
        with pytest.raises(RehearsalError, match="DWS grants 1 to 604800 seconds, which is seven days"):
            list(lab.session.run_jobs(lab.fleet, one_job("1", maxRunDurationSeconds=seconds), 5))
    assert lab.session.clients(lab.fleet).create(MANAGER, one_job("1", maxRunDurationSeconds="604800")[0], dry_run=True)


def test_a_changed_quota_is_an_update_in_place_on_each_worker_and_of_the_managers_sum(lab: FleetInRehearsal) -> None:
    def more_gpus(fleet: dict[str, Any]) -> None:
        fleet["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 6

    lab.change(more_gpus)
    changed = lab.up().summary
    assert lab.touched() == {("update", f"{cluster}/dws") for cluster in [MANAGER, *WORKERS]}
    assert f"(`{changed}`)" in (ROOT / "docs" / "rehearse.md").read_text()
    [group] = lab.objects(MANAGER, "clusterqueues")["dws"]["spec"]["resourceGroups"]  # settled: `up` has ended
    quotas = {each["name"]: each["nominalQuota"] for each in group["flavors"][0]["resources"]}
    assert quotas["nvidia.com/gpu"] == "18"


def test_a_fourth_worker_touches_no_other_worker(lab: FleetInRehearsal) -> None:
    def fourth(fleet: dict[str, Any]) -> None:
        older = {"kueue": {"version": "0.18.3"}}
        fleet["clusters"].append({"name": NEW_WORKER, "role": "worker", "region": "us-central1", **older})
        fleet["multiKueue"]["workers"].append(NEW_WORKER)

    lab.change(fourth)
    lab.session.prepare_engines(print, fleet_engines(lab.fleet))
    lab.up()
    others = {(op, name) for op, name in lab.touched() if NEW_WORKER not in name and "us-central1" not in name}
    # Nothing else that was there before.
    assert others == OF_ALL_WORKERS
    assert active(lab.objects(MANAGER, "multikueueclusters")[NEW_WORKER])  # settled: `up` waits for it
    assert active(lab.objects(NEW_WORKER, "clusterqueues")["dws"])  # settled: `up` waits for it


def test_a_manager_dispatches_to_a_worker_of_an_older_release(lab: FleetInRehearsal) -> None:
    """`all_releases` has other mixes."""
    wait_until(lambda: releases_of(lab)[NEW_WORKER] == {"0.18.3"})
    assert run_in_dws(lab, low=0, high=0, stock={"us-central1": {"low": 4, "high": 4}}) == NEW_WORKER


def test_a_rotated_credential_replaces_only_tokens_and_the_manager_stays_connected(lab: FleetInRehearsal) -> None:
    lab.change(lambda fleet: fleet["multiKueue"]["credentials"].update(rotation="2027-01"))
    lab.up()
    replaced = [step for step in lab.steps if step.op != "update" and step.type != "pulumi:pulumi:Stack"]
    assert {step.name.split("/")[0] for step in replaced} == {MANAGER, *WORKERS, NEW_WORKER}
    assert {step.type for step in replaced} == {"kubernetes:core/v1:Secret"}

    def connected() -> bool:
        clusters = lab.objects(MANAGER, "multikueueclusters")
        assert all(active(each) for each in clusters.values()), clusters
        return True

    wait_until(connected)


def test_a_removed_worker_takes_its_own_things_along_and_nothing_else(lab: FleetInRehearsal) -> None:
    def without(fleet: dict[str, Any]) -> None:
        fleet["clusters"] = [cluster for cluster in fleet["clusters"] if cluster["name"] != NEW_WORKER]
        fleet["multiKueue"]["workers"].remove(NEW_WORKER)

    lab.change(without)
    lab.up()
    gone = {name for op, name in lab.touched() if op == "delete"}
    assert gone
    assert all(NEW_WORKER in name or "us-central1" in name for name in gone), gone
    assert {(op, name) for op, name in lab.touched() if op != "delete"} == OF_ALL_WORKERS
    assert NEW_WORKER not in {cluster["name"] for cluster in lab.session.client.clusters()}


def test_queues_that_become_two_groups_of_the_manager_lose_no_job(lab: FleetInRehearsal) -> None:
    """ADR 16: `up` gives each group a flavor of its own on the manager; what runs stays on the former one."""

    def two_groups(fleet: dict[str, Any]) -> None:
        [dws] = fleet["clusterQueues"]
        dws["cohortName"] = "company"
        other = copy.deepcopy(dws) | {"name": "l4"}
        other["resourceGroups"][0]["flavors"][0]["name"] = "l4-dws"
        fleet["clusterQueues"].append(other)
        labels = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
        fleet["flavors"].append({"name": "l4-dws", "nodeLabels": labels})

    lab.simulate(dws={"low": 8, "high": 8})
    lab.session.write_settings()
    before = submitted(lab, "20")
    wait_until(lambda: condition(workload_of(lab, before), "Admitted") == "True", JOBS_SECONDS)
    lab.change(two_groups)
    lab.up()
    after = submitted(lab, "1")
    for job, flavor in ((before, "multikueue"), (after, "multikueue-t4-dws")):
        ended = wait_until(partial(finished, lab, job), JOBS_SECONDS)
        assert condition(ended, "Evicted") is None, ended
        [assigned] = ended["status"]["admission"]["podSetAssignments"]
        assert set(assigned["flavors"].values()) == {flavor}


def submitted(lab: FleetInRehearsal, run_seconds: str) -> str:
    """The name of a job that is created on the manager."""
    [job] = one_job(run_seconds)
    made = lab.session.clients(lab.fleet).create(MANAGER, job)
    return str(made["metadata"]["name"])


def finished(lab: FleetInRehearsal, job: str) -> dict[str, Any] | None:
    """The Workload of a job that has ended."""
    found = workload_of(lab, job)
    return found if condition(found, "Finished") == "True" else None


def workload_of(lab: FleetInRehearsal, job: str) -> dict[str, Any]:
    """The Workload of a job on the manager; empty while there is none."""
    for workload in lab.objects(MANAGER, "workloads").values():
        if any(owner["name"] == job for owner in workload["metadata"].get("ownerReferences", ())):
            return workload
    return {}


def test_everything_listens_on_loopback_only(lab: FleetInRehearsal) -> None:
    listening = []
    for row in lab.session.client.processes():
        # A process that has ended since it was listed does not listen.
        with suppress(psutil.NoSuchProcess):
            listening += [
                connection
                for connection in psutil.Process(row["pid"]).net_connections("inet")
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
