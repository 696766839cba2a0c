"""On the manager too, queues of one cohort lend each other only what the other can use."""

from __future__ import annotations

from pathlib import Path

from kueue_admission.simulate.delays import Delays
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import read_workload_file

CASE = Path(__file__).parent / "cases" / "two-gpus-in-one-cohort.yaml"


def test_jobs_for_l4_do_not_wait_while_jobs_for_h100_queue() -> None:
    jobs = CASE.with_suffix(".jobs.yaml")
    fleet = parse_fleet_text(CASE.read_text(), CASE.name)
    result = prepare_fleet(fleet, read_workload_file(jobs.read_text(), jobs.name), Delays()).run()
    rows = result.as_json()["workloads"]
    waits = {row["name"]: row["admittedAt"] - row["arrivedAt"] for row in rows}
    assert {name: wait for name, wait in waits.items() if name.startswith("detect")} == {
        f"detect-{number}": 0 for number in range(1, 9)
    }
    assert any(wait > 0 for name, wait in waits.items() if name.startswith("pretrain"))
