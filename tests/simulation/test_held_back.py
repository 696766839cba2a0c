"""Budgets that hold simulated jobs back."""

from __future__ import annotations

from typing import Any

from tests.simulation.fleets import dispatched_data, job, workload_file
from tests.status.test_history import PRICES

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.result import Result
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet

HOUR, WEEK = 3600.0, 7 * 86400.0


def run(enforce: str, *arrivals: float, flavors: tuple[str, ...] = (), **budget: Any) -> Result:
    data = dispatched_data()
    data["teams"][0]["budget"] = {"gpuHours": 2, "per": "week", "enforce": enforce, **budget}
    [queue] = data["clusterQueues"]
    [group] = queue["resourceGroups"]
    for flavor in flavors:
        data["nodePools"].append({**data["nodePools"][0], "name": flavor, "capacity": {"type": "onDemand"}})
        data["flavors"].append({"name": flavor, "nodePool": flavor})
        group["flavors"].insert(0, {**group["flavors"][0], "name": flavor})
    jobs = [job(f"job-{number}", start=at, runSeconds=2 * HOUR) for number, at in enumerate(arrivals)]
    return prepare_fleet(parse_fleet(data), workload_file(jobs), Delays(), prices=PRICES).run()


def test_a_job_over_the_budget_waits_for_the_next_week_and_then_runs_once() -> None:
    first, second = run("wait", 0, 3 * HOUR).records
    assert first.admitted_at is not None
    assert first.admitted_at < HOUR
    assert second.admitted_at is not None
    assert WEEK <= second.admitted_at < WEEK + 60
    assert len(second.runs) == 1


def test_what_began_within_the_budget_runs_to_its_end() -> None:
    assert [record.runs[0].end for record in run("wait", 0, HOUR).records] == ["Succeeded", "Succeeded"]


def test_over_it_a_job_gets_spot_nodes_though_reserved_ones_are_free() -> None:
    first, second = run("interruptibleOnly", 0, 3 * HOUR, flavors=("l4-od",)).records
    assert first.runs[0].flavors == ("l4-od",)
    assert second.runs[0].flavors == ("l4-spot",)
    assert second.admitted_at is not None
    assert second.admitted_at < 4 * HOUR


def test_dollars_hold_jobs_back_too() -> None:
    _, second = run("wait", 0, 3 * HOUR, flavors=("l4-od",), gpuHours=1000, usd=1).records
    assert second.admitted_at is not None
    assert second.admitted_at >= WEEK


def test_without_enforce_nothing_waits() -> None:
    data = dispatched_data()
    data["teams"][0]["budget"] = {"gpuHours": 1}
    jobs = [job(f"job-{number}", start=at, runSeconds=2 * HOUR) for number, at in enumerate((0, 3 * HOUR))]
    result = prepare_fleet(parse_fleet(data), workload_file(jobs), Delays()).run()
    assert [record.admitted_at for record in result.records] == [0.0, 3 * HOUR]


def test_other_teams_do_not_wait() -> None:
    data = dispatched_data()
    data["teams"][0]["budget"] = {"gpuHours": 1, "enforce": "wait"}
    jobs = [job("a", runSeconds=2 * HOUR), job("b", start=3 * HOUR, namespace="team-eu")]
    result = prepare_fleet(parse_fleet(data), workload_file(jobs), Delays()).run()
    assert result.records[1].admitted_at == 3 * HOUR
