"""A whole fleet on real control planes: brought up by `make rehearse`, looked at, left as it is, and taken down."""

from __future__ import annotations

import copy
import os
import re
from collections import Counter
from contextlib import suppress
from datetime import date, datetime
from itertools import takewhile
from typing import Any

import psutil
import pytest
from kubernetes import client

from fleet_in_rehearsal import LISTS, ROOT, FleetInRehearsal
from job_files import jobs_in
from kueue_admission.simulate.rows import JobRow
from kueue_fleet.adopt import AdoptedCluster, Identity, adopt_fleet
from kueue_fleet.fleet_file import parse_fleet
from kueue_rehearsal.session import Session
from side_by_side import rehearsed_rows, simulated, table
from tests.docs.console import blocks
from tests.docs.rehearsal_output import lacks
from tests.engines.dws_stack.conftest import JOBS, MANAGER, WORKERS, Kept, active, wait_until_nothing_is_held

TODAY = date(2026, 11, 22)
IMPORTED = ("flavors", "cohorts", "cluster_queues", "admission_checks", "teams", "local_queues", "priority_classes",
            "workload_priority_classes")  # fmt: skip


def test_make_rehearse_prints_what_its_page_shows(kept: Kept) -> None:
    [output] = blocks(ROOT / "docs" / "rehearse.md", "text")
    assert lacks(output, kept.printed) == [], kept.printed


def test_after_up_every_queue_check_and_cluster_is_active(lab: FleetInRehearsal) -> None:
    result = lab.objects(MANAGER, "multikueueclusters")  # settled: `up` waits until they are active
    assert set(result) == set(WORKERS)
    for plural in ("multikueueclusters", "admissionchecks", "clusterqueues", "localqueues"):
        for cluster in [MANAGER] if plural == "multikueueclusters" else [MANAGER, *WORKERS]:
            objects = lab.objects(cluster, plural)  # settled: `up` waits until they are active
            assert objects, (cluster, plural)
            assert all(active(item) for item in objects.values()), (cluster, objects)


def test_an_autopilot_manager_refuses_a_job_that_selects_no_kind_of_gpu(lab: FleetInRehearsal) -> None:
    job = copy.deepcopy(next(job for job in jobs_in(JOBS) if job["kind"] == "Job"))
    del job["spec"]["template"]["spec"]["nodeSelector"]
    batch = client.BatchV1Api(lab.clients.client(MANAGER))
    with pytest.raises(client.ApiException) as refused:
        batch.create_namespaced_job(job["metadata"]["namespace"], job, dry_run="All")  # type: ignore[arg-type]
    assert "denied by autogke-gpu-limitation" in str(refused.value.body)


def test_a_second_up_changes_nothing(lab: FleetInRehearsal) -> None:
    result = lab.up()
    assert result.unchanged, lab.touched()


def in_order(entry: Any) -> Any:
    """A team with its priority classes by name; any other entry as it is."""
    classes = getattr(entry, "allowed_priority_classes", None)
    return entry.model_copy(update={"allowed_priority_classes": tuple(sorted(classes))}) if classes else entry


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
    output = {job["job"]: job for job in jobs_table(kept.printed)}
    later = seconds_until_workloads(kept.lab)  # settled: the run has ended
    assert {name.partition("/")[2] for name, *_ in section["jobs"]} == set(output)
    for name, queue, team, state, flavors, cluster, _, wait, _, evictions, phases in section["jobs"]:
        row = output[name.partition("/")[2]]
        display = (team, state.partition(":")[0], flavors or "-", cluster or "-", queue, evictions)
        assert display == (row["team"], row["state"], row["flavor"], row["cluster"], "dws", 0), row
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
    results = {}
    for workload in lab.objects(MANAGER, "workloads").values():
        [owner] = workload["metadata"]["ownerReferences"]
        result = (
            datetime.fromisoformat(item["metadata"]["creationTimestamp"]) for item in (workload, jobs[owner["name"]])
        )
        results[owner["name"]] = (next(result) - next(result)).total_seconds()
    return results


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


def test_two_rehearsals_have_nothing_in_common(lab: FleetInRehearsal) -> None:
    other = Session.for_stack("other", lab.session.project_dir)
    with other.exclusive(), other.running(keep=False):
        assert other.client.health()["pid"] != lab.session.client.health()["pid"]
        assert os.path.commonpath([other.paths.root, lab.session.paths.root]) == str(other.paths.root.parent)
    assert not other.paths.root.exists()
    assert lab.session.client.health()["status"] == "ok"
