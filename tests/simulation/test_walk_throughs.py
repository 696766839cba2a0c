"""The example fleets by simulation, in the rows that a rehearsal is put beside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document, read_documents
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.result import Result
from kueue_admission.simulate.rows import job_rows
from kueue_fleet.fleet_file import FleetSpec, parse_fleet_text
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import read_workload_file

ROOT = Path(__file__).parents[2]
STACKS = sorted(path.name.split(".")[1] for path in (ROOT / "stacks").glob("Pulumi.*.yaml"))


def load(stack: str) -> tuple[FleetSpec, list[Document]]:
    jobs = ROOT / "examples" / stack / "jobs.yaml"
    fleet = parse_fleet_text((ROOT / f"stacks/Pulumi.{stack}.yaml").read_text(), stack)
    return fleet, read_documents(jobs.read_text(), jobs.name)


def simulated(stack: str, until: float | None = None, **workload: Any) -> Result:
    fleet, jobs = load(stack)
    file = read_workload_file(json.dumps(workload), "w.yaml")
    return prepare_fleet(fleet, file, Delays(), manifests=jobs, until=until).run()


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_runs_its_jobs(stack: str) -> None:
    fleet, jobs = load(stack)
    result = prepare_fleet(fleet, read_workload_file("{}", "w"), Delays(), manifests=jobs, until=86400).run()
    assert len(result.records) == len(jobs)
    assert all(record.cluster_queue for record in result.records)
    assert any(record.finished_at is not None for record in result.records)


def test_high_priority_jobs_take_the_reserved_nodes_from_low_priority_ones() -> None:
    rows = job_rows(simulated("batch-platform", steps={"high-priority": 5, "compact": 60, "jobset": 60}).records)
    low = [row for row in rows if "low-priority" in row.job]
    first = {row.job: row.flavors for row in low[::-1]}
    preempted = [row for row in low if row.preempted]
    assert len(first) == 16
    # Each pair of teams has four of the reserved GPUs: one job of four.
    assert [row.flavors for row in preempted] == [("gpu-l4-reserved",)] * 2
    assert {row.next for row in preempted} == {"batch-dev gpu-l4-spot"}
    high = [row for row in rows if "high-priority" in row.job]
    assert {row.flavors for row in high} == {("gpu-l4-reserved",), ("gpu-l4-ondemand",)}
    assert not any(row.preempted for row in high)


def test_compact_jobs_wait_for_their_team_and_dws_jobs_for_dws() -> None:
    waits = [{"flavor": "dws-h100", "seconds": 300}]
    result = {row["name"]: row for row in simulated("batch-platform", waits=waits).as_json()["workloads"]}
    assert [result[f"team-a-compact-job-{n}"]["admittedAt"] for n in range(4)] == [0, 15, 30, 45]
    assert result["finetune-gemma-8xh100"]["admittedAt"] == 300
    assert result["finetune-gemma-8xh100"]["flavors"]["main"]["nvidia.com/gpu"] == "dws-h100"


def test_the_region_where_dws_is_quickest_wins_the_race() -> None:
    waits = [{"cluster": "worker-us-east4", "seconds": 3}, {"seconds": 1000}]
    rows = job_rows(simulated("dws-multikueue", waits=waits, until=600).records)
    ran = [row for row in rows if row.cluster]
    assert {row.cluster for row in ran} == {"worker-us-east4"}
    assert len(ran) == 12
    # Eight GPUs are more than any one region has.
    assert len(rows) - len(ran) == 1


def test_copies_that_lose_the_race_give_their_quota_back() -> None:
    result = simulated(
        "dws-multikueue", waits=[{"cluster": "worker-us-east4", "seconds": 3}, {"seconds": 1000}], until=600
    )
    assert sum(record.copies_thrown_away for record in result.records) > 0
    assert {record.state.value for record in result.records} == {"Finished", "QuotaReserved"}


@pytest.mark.parametrize(
    ("documents", "steps", "said"),
    [
        ([Document("j.yaml:1", {"kind": "Pod", "metadata": {"name": "p"}})], {}, "j.yaml:1: is a Pod"),
        ([Document("j.yaml:1", {"kind": "Job"})], {}, "j.yaml:1: Job has no metadata"),
        ([], {}, "jobs: there are none"),
        (
            [Document("j.yaml:1", {"kind": "Job", "metadata": {"name": "p"}})],
            {"one": 1},
            "steps.one: no job has the label",
        ),
    ],
)
def test_mistakes_are_named(documents: list[Document], steps: dict[str, float], said: str) -> None:
    fleet, _ = load("dws-multikueue")
    with pytest.raises(SimulationError) as refused:
        prepare_fleet(fleet, read_workload_file(json.dumps({"steps": steps}), "w"), Delays(), manifests=documents).run()
    assert said in str(refused.value)


def test_a_job_and_a_jobset_may_have_the_same_name() -> None:
    fleet, documents = load("batch-platform")
    kinds = {document.data["kind"]: document for document in documents}
    assert set(kinds) == {"Job", "JobSet"}
    metadata = kinds["Job"].data["metadata"]
    same = [Document(where, {**data, "metadata": metadata}) for where, data in kinds.values()]
    result = prepare_fleet(fleet, read_workload_file("{}", "w"), Delays(), manifests=same, until=86400).run()
    assert [record.name for record in result.records] == [metadata["name"]] * 2
