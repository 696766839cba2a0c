from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.simulation.delays import Delays
from kueue_fleet.simulation.fleet import prepare_fleet
from kueue_fleet.simulation.objects_run import prepare_objects
from kueue_fleet.simulation.raw import read_raw
from kueue_fleet.simulation.report import REST, report_data
from kueue_fleet.simulation.result import Result
from simulation.fleets import EUROPE, US, fleet, workload_file
from simulation.fleets import job as fleet_job
from simulation.objects import cluster, documents, job


def objects_result(*jobs: dict[str, Any], until: float | None = None, **spec: Any) -> Result:
    return prepare_objects(read_raw(documents(*cluster(**spec), *jobs)), Delays(), until=until).run()


def section(result: Result) -> dict[str, Any]:
    (found,) = report_data([("", result)])["sections"]
    assert isinstance(found, dict)
    return found


def test_use_over_time_is_what_admitted_workloads_hold() -> None:
    found = section(objects_result(job("a", 0, "10"), job("b", 5, "10"), cpu=2))
    (use,) = found["use"]
    assert (use["resource"], use["label"]) == ("cpu", "CPUs")
    # A parked workload is looked at again a second after room was made.
    assert use["flavors"]["x"] == [0, 10, 11, 21]
    assert use["flavors"]["series"] == [{"name": "rf", "y": [2, 0, 2, 0]}]
    assert use["teams"]["series"] == [{"name": "default", "y": [2, 0, 2, 0]}]


def test_use_at_the_end_of_a_run_that_goes_on() -> None:
    (use,) = section(objects_result(job("a", 0), until=60, cpu=2))["use"]
    assert use["flavors"]["series"] == [{"name": "rf", "y": [2, 0]}]
    assert use["flavors"]["x"] == [0, 60]


def test_many_changes_become_averages_with_the_same_sum() -> None:
    runs = [1 + n * 37 % 101 / 100 for n in range(900)]
    jobs = [job(f"j{n}", n % 50, str(run), cpu="1") for n, run in enumerate(runs)]
    found = report_data([("", objects_result(*jobs, cpu=20))])
    assert found["unit"] == "seconds"
    steps = found["sections"][0]["use"][0]["flavors"]
    times, amounts = steps["x"], steps["series"][0]["y"]
    assert steps["averaged"] is True
    assert len(times) == 301
    drawn = sum(y * (after - x) for x, after, y in zip(times, times[1:], amounts, strict=False))
    assert drawn == pytest.approx(sum(runs), rel=0.001)


def test_teams_have_their_names_and_gpus_come_first() -> None:
    result = prepare_fleet(fleet(), workload_file([fleet_job("a", count=4)]), Delays()).run()
    gpus, cpus = section(result)["use"]
    assert (gpus["resource"], cpus["resource"]) == ("nvidia.com/gpu", "cpu")
    assert [series["name"] for series in gpus["teams"]["series"]] == ["team-a"]


def test_the_smallest_users_are_one() -> None:
    spec = fleet(
        teams=[{"name": f"t{n:02d}", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]} for n in range(12)]
    )
    jobs = [fleet_job("a", namespace=f"t{n:02d}", runSeconds=100 * (1 + n)) for n in range(12)]
    teams = section(prepare_fleet(spec, workload_file(jobs), Delays()).run())["use"][0]["teams"]["series"]
    assert [series["name"] for series in teams] == [*(f"t{n:02d}" for n in range(4, 12)), REST]


def test_waits_have_the_numbers_of_each_queue() -> None:
    found = section(objects_result(*(job(f"j{n}", 0, "10") for n in range(5)), cpu=2))
    (waits,) = found["waits"]
    assert waits["queue"] == "cq"
    assert waits["numbers"] == [0, 11, 22, 33, 41.8, 44]
    assert (waits["admitted"], waits["waiting"], waits["mean"]) == (5, 0, 22)


def test_places_and_timeline_say_where_jobs_ran() -> None:
    file = workload_file([fleet_job("a", runSeconds=3000)], outages=[{"cluster": EUROPE, "at": 100, "seconds": 5000}])
    found = section(prepare_fleet(fleet(), file, Delays()).run())
    assert found["places"] == {"clusters": [EUROPE, US], "series": [{"name": "l4-spot", "y": [1, 1]}]}
    assert [(run["where"], run["end"]) for run in found["timeline"]] == [
        (f"{EUROPE} l4-spot", "AdmissionCheck"),
        (f"{US} l4-spot", "Succeeded"),
    ]
    assert found["counts"] == {"workloads": 1, "Finished": 1, "evictions": 1, "spot reclaims": 0}


def test_evictions_are_counted_by_reason() -> None:
    high = job("b", 30, "10")
    high["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    found = section(objects_result(job("a", 0, "100"), high, preemption={"withinClusterQueue": "LowerPriority"}))
    assert [(series["name"], sum(series["y"])) for series in found["evictions"]["series"]] == [("Preempted", 1)]
    (eviction,) = found["evictions"]["list"]
    assert (eviction["job"], eviction["reason"], eviction["for"]) == ("default/a", "Preempted", "default/b")


def test_nothing_at_all_is_a_report_too() -> None:
    found = section(Result(()))
    assert (found["use"], found["waits"], found["timeline"]) == ([], [], [])
