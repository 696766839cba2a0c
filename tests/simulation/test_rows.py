from __future__ import annotations

from tests.simulation.fleets import EUROPE, US, fleet, fleet_data, job, workload_file

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.rows import JobRow, job_rows
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet


def test_one_row_for_each_time_a_job_ran() -> None:
    jobs = [job("a", runSeconds=3000), job("huge", pods=9, requests={"nvidia.com/gpu": 1})]
    file = workload_file(jobs, outages=[{"cluster": EUROPE, "at": 100, "seconds": 5000}])
    rows = job_rows(prepare_fleet(fleet(), file, Delays()).run().records)
    assert rows == [
        JobRow("team-a/a", EUROPE, ("l4-spot",), preempted=False, next=f"{US} l4-spot"),
        JobRow("team-a/a", US, ("l4-spot",), preempted=False, next=""),
        JobRow("team-a/huge", "", (), preempted=False, next=""),
    ]


def test_preempted_rows_say_so() -> None:
    data = fleet_data(workloadPriorityClasses=[{"name": "urgent", "value": 100}, {"name": "normal", "value": 1}])
    data["clusterQueues"][0]["preemption"] = {"withinClusterQueue": "LowerPriority"}
    jobs = [
        job("low", count=2, pods=2, runSeconds=1000, priorityClass="normal"),
        job("urgent", start=10, pods=2, runSeconds=50, priorityClass="urgent"),
    ]
    rows = job_rows(prepare_fleet(parse_fleet(data), workload_file(jobs), Delays()).run().records)
    of_low = [row for row in rows if row.job == "team-a/low-1"]
    assert [row.preempted for row in of_low] == [True, False]
    assert of_low[0].next == f"{of_low[1].cluster} l4-spot"
    assert [row.preempted for row in rows if row.job == "team-a/urgent"] == [False]
