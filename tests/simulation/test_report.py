from __future__ import annotations

import math
from typing import Any

import pytest
from tests.simulation.fleets import EUROPE, US, fleet, workload_file
from tests.simulation.fleets import job as fleet_job
from tests.simulation.objects import cluster, documents, job, queue

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.raw import prepare_objects, read_raw
from kueue_admission.simulate.records import Phase
from kueue_admission.simulate.report import REST, report_data
from kueue_admission.simulate.result import Result
from kueue_fleet.fleet_simulation.fleet import prepare_fleet

PHASES = [phase.value for phase in Phase]


def objects_result(*jobs: dict[str, Any], until: float | None = None, **spec: Any) -> Result:
    return prepare_objects(read_raw(documents(*cluster(**spec), *jobs)), Delays(), until=until).run()


def section(result: Result) -> dict[str, Any]:
    (results,) = report_data([("", result)])["sections"]
    assert isinstance(results, dict)
    return results


def drawn(found: dict[str, Any], kind: str, resource: str = "cpu", name: str = "") -> list[float]:
    """The amounts of a series, summed up over clusters."""
    series = [
        one["y"]
        for one in found["sections"][-1]["series"]
        if (one["kind"], one["resource"]) == (kind, resource) and one["name"] == (name or one["name"])
    ]
    return [sum(values) for values in zip(*series, strict=True)]


def held(found: dict[str, Any], y: list[float]) -> float:
    """Amount times time."""
    return math.fsum(y * (after - x) for x, after, y in zip(found["x"], found["x"][1:], y, strict=False))


def test_use_and_what_waits_over_time() -> None:
    result = report_data([("", objects_result(job("a", 0, "10"), job("b", 5, "10"), cpu=2))])
    # A parked workload is looked at again a second after room was made.
    assert result["x"] == [0, 5, 10, 11, 21]
    assert result["resources"] == [{"name": "cpu", "label": "CPUs"}]
    assert drawn(result, "own", name="rf") == drawn(result, "team", name="default") == [2, 2, 0, 2, 0]
    assert drawn(result, "waiting") == [0, 2, 2, 0, 0]
    assert result["sections"][0]["quotas"] == [{"cluster": "", "name": "rf", "resource": "cpu", "quota": 2}]


def test_use_at_the_end_of_a_run_that_goes_on() -> None:
    result = report_data([("", objects_result(job("a", 0), until=60, cpu=2))])
    assert (result["x"], drawn(result, "own")) == ([0, 60], [2, 0])
    assert result["sections"][0]["jobs"][0][-1] == [0, 60, PHASES.index("runs")]


def test_what_a_queue_holds_above_its_quota_is_borrowed() -> None:
    given = documents(
        *cluster(cohortName="all", cpu=2),
        queue("lender", 4, cohortName="all"),
        *(job(f"j{n}", 0, "10") for n in range(2)),
    )
    result = report_data([("", prepare_objects(read_raw(given), Delays()).run())])
    assert (drawn(result, "own"), drawn(result, "borrowed")) == ([2, 0], [2, 0])
    assert [item["quota"] for item in result["sections"][0]["quotas"]] == [6]


def test_many_changes_become_averages_with_the_same_sum() -> None:
    runs = [1 + n * 37 % 101 / 100 for n in range(900)]
    jobs = [job(f"j{n}", n % 50, str(run), cpu="1") for n, run in enumerate(runs)]
    result = report_data([("", objects_result(*jobs, cpu=20))])
    assert (result["unit"], result["averaged"], len(result["x"])) == ("seconds", True, 301)
    assert held(result, drawn(result, "own")) == pytest.approx(sum(runs), rel=0.001)


def test_results_that_are_compared_share_their_times() -> None:
    one, two = objects_result(job("a", 0, "10")), objects_result(job("a", 0, "20"))
    result = report_data([("Before", one), ("After", two)])
    assert result["x"] == [0, 10, 20]
    assert [section["series"][0]["y"] for section in result["sections"]] == [[2, 0, 0], [2, 2, 0]]
    assert [section["end"] for section in result["sections"]] == [10, 20]


def test_teams_have_their_names_and_gpus_come_first() -> None:
    result = report_data([("", prepare_fleet(fleet(), workload_file([fleet_job("a", count=4)]), Delays()).run())])
    assert [item["name"] for item in result["resources"]] == ["nvidia.com/gpu", "cpu"]
    assert [one["name"] for one in result["sections"][0]["series"] if one["kind"] == "team"] == ["team-a"] * 2
    # Of the manager, whose quota is the sum of its workers', none is shown.
    assert {entry["cluster"] for entry in result["sections"][0]["quotas"]} == {EUROPE, US}


def test_the_smallest_users_are_one() -> None:
    spec = fleet(
        teams=[{"name": f"t{n:02d}", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]} for n in range(12)]
    )
    jobs = [fleet_job("a", namespace=f"t{n:02d}", runSeconds=100 * (1 + n)) for n in range(12)]
    result = section(prepare_fleet(spec, workload_file(jobs), Delays()).run())
    teams = [one["name"] for one in result["series"] if (one["kind"], one["resource"]) == ("team", "cpu")]
    assert teams == sorted([*(f"t{n:02d}" for n in range(4, 12)), REST])


def test_waits_have_the_numbers_of_each_queue_and_team() -> None:
    result = section(objects_result(*(job(f"j{n}", 0, "10") for n in range(5)), cpu=2))
    for by, name in (("queue", "cq"), ("team", "default")):
        (waits,) = result["waits"][by]
        assert waits["name"] == name
        assert waits["numbers"] == [0, 11, 22, 33, 41.8, 44]
        assert (waits["admitted"], waits["waiting"], waits["mean"]) == (5, 0, 22)


def test_a_job_is_followed_from_its_arrival_through_every_run() -> None:
    file = workload_file([fleet_job("a", runSeconds=3000)], outages=[{"cluster": EUROPE, "at": 100, "seconds": 5000}])
    result = report_data([("", prepare_fleet(fleet(), file, Delays()).run())])
    (row,) = result["sections"][0]["jobs"]
    assert (row[:3], row[4:6]) == (["team-a/a", "gpu", "team-a"], ["l4-spot", US])
    assert row[9] == 1
    phases = [result["phases"][phase] for phase in row[10][2::3]]
    assert phases[0] == phases[-1] == "runs"
    assert row[10][0] == 0
    assert row[10][-2] == result["x"][-1] == round(result["sections"][0]["end"], 3)
    # One after the other, without a gap.
    assert row[10][1::3][:-1] == row[10][3::3]
    assert result["sections"][0]["counts"] == {"workloads": 1, "Finished": 1, "evictions": 1, "nodes reclaimed": 0}


def test_spot_nodes_that_are_taken_away_are_a_phase_and_cost_nothing() -> None:
    file = workload_file(
        [fleet_job("a", runSeconds=3600, count=1)], reclaims=[{"flavor": "l4-spot", "perHour": 1, "back": 300}]
    )
    for seed in range(20):
        result = prepare_fleet(fleet(), file, Delays(), until=7200, seed=seed).run()
        if any(run.reclaimed for record in result.records for run in record.runs):
            break
    results = report_data([("", result)])
    lost, runs = (
        sum(
            end - begin
            for begin, end, phase in zip(*[iter(results["sections"][0]["jobs"][0][10])] * 3, strict=True)
            if results["phases"][phase] == name
        )
        for name in ("lost its nodes", "runs")
    )
    assert lost > 0
    (use,) = results["sections"][0]["runs"]
    price = result.accelerator_usd[use["cluster"], "l4-spot"]
    assert use["hours"] == pytest.approx((lost + runs) / 60, abs=0.01)
    assert use["usd"] == pytest.approx(price * runs / 60, abs=0.02)


def test_evictions_are_counted_by_reason() -> None:
    high = job("b", 30, "10")
    high["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    result = section(objects_result(job("a", 0, "100"), high, preemption={"withinClusterQueue": "LowerPriority"}))
    (counted,) = [one for one in result["series"] if one["kind"] == "evicted"]
    assert (counted["name"], counted["y"][-1]) == ("Preempted", 1)
    assert result["evictions"] == {"list": [[30, "default/a", "Preempted", "default/b"]], "more": 0}


def test_nothing_at_all_is_a_report_too() -> None:
    result = section(Result(()))
    assert (result["series"], result["waits"], result["jobs"]) == ([], {"queue": [], "team": []}, [])
