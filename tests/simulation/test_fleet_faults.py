"""Full node pools, spot nodes that are taken away, workers that cannot be reached."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.fleets import EUROPE, US, fleet, fleet_data, job, workload_file

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.errors import SimulationError
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet


def run(jobs: list[dict[str, Any]], *, until: float | None = None, seed: int = 0, **rest: Any) -> dict[str, Any]:
    result = prepare_fleet(fleet(), workload_file(jobs, **rest), Delays(), until=until, seed=seed).run()
    return {workload["name"]: workload for workload in result.as_json()["workloads"]}


def test_quota_without_nodes_is_waiting_for_nodes() -> None:
    result = run([job("a", count=6, requests={"cpu": 10})])
    runs = [workload["runs"][0] for workload in result.values()]
    # All are admitted in Europe at once, which has quota for nine of them and nodes for two.
    assert {(item["cluster"], item["admittedAt"]) for item in runs} == {(EUROPE, 0.0)}
    assert sorted(entry["startedAt"] for entry in runs) == [0, 0, 100, 100, 200, 200]
    assert {workload["state"] for workload in result.values()} == {"Finished"}


def test_pods_that_fit_on_no_node_wait_and_say_so() -> None:
    result = run([job("a", requests={"cpu": 40})], until=600)["a"]
    assert (result["state"], result["runs"][0]["startedAt"]) == ("Admitted", None)
    assert "do not all fit on node pool l4-spot (0 of 2 nodes in use)" in result["message"]


def test_pods_without_nodes_are_evicted_when_kueue_loses_patience() -> None:
    data = fleet_data()
    data["clusters"].append(data["clusters"].pop(0))
    file = workload_file([job("a", requests={"cpu": 40})])
    (result,) = prepare_fleet(parse_fleet(data), file, Delays(), until=2000).run().as_json()["workloads"]
    # The manager and the worker lose it at the same moment; it is one eviction.
    assert [(eviction["time"], eviction["reason"]) for eviction in result["evictions"]] == [
        (1800.0, "PodsReadyTimeout")
    ]
    assert [item["end"] for item in result["runs"]] == ["PodsReadyTimeout", None]


def test_reclaimed_job_starts_over_on_other_nodes() -> None:
    reclaims = [{"flavor": "l4-spot", "perHour": 30, "back": 60}]
    result = run([job("a", count=40, interval=200)], reclaims=reclaims, seed=5)
    hit = [workload for workload in result.values() if workload["runs"][0]["reclaimedAt"]]
    assert 10 < len(hit) < 40
    for workload in hit:
        assert workload["evictions"] == []
        assert workload["finishedAt"] >= workload["runs"][0]["reclaimedAt"][-1] + 160
    again = run([job("a", count=40, interval=200)], reclaims=reclaims, seed=5)
    assert again == result
    assert run([job("a", count=40, interval=200)], reclaims=reclaims, seed=6) != result


def test_nodes_that_do_not_come_back_send_the_job_back_to_the_manager() -> None:
    reclaims = [{"flavor": "l4-spot", "perHour": 3600, "back": 10_000}]
    result = run([job("a")], reclaims=reclaims, until=4000)["a"]
    # Half an hour is Kueue's default patience.
    assert [eviction["reason"] for eviction in result["evictions"]][:1] == ["PodsReadyTimeout"]


def test_short_outage_changes_nothing_for_what_runs() -> None:
    result = run([job("a", runSeconds=300)], outages=[{"cluster": EUROPE, "at": 100, "seconds": 100}])["a"]
    assert (result["cluster"], result["finishedAt"], result["evictions"]) == (EUROPE, 300.0, [])


def test_end_of_a_run_is_heard_when_the_worker_is_there_again() -> None:
    result = run([job("a", runSeconds=150)], outages=[{"cluster": EUROPE, "at": 100, "seconds": 100}])["a"]
    assert (result["finishedAt"], result["evictions"]) == (200.0, [])


@pytest.mark.parametrize(("version", "evicted"), [("0.18.3", [1000.0]), ("0.19.2", [])])
def test_before_0_19_a_short_outage_takes_what_runs_longer_than_the_timeout(version: str, evicted: list[float]) -> None:
    """Such a job was admitted longer ago than workerLostTimeout, from which 0.17 and 0.18 count."""
    jobs = workload_file([job("a", runSeconds=3000)], outages=[{"cluster": EUROPE, "at": 1000, "seconds": 100}])
    [record] = prepare_fleet(fleet(kueue={"version": version}), jobs, Delays()).run().records
    assert [eviction.time for eviction in record.evictions] == evicted


def test_long_outage_moves_the_job_to_another_worker() -> None:
    result = run([job("a", runSeconds=3000)], outages=[{"cluster": EUROPE, "at": 100, "seconds": 5000}])["a"]
    assert [eviction["time"] for eviction in result["evictions"]] == [1000.0]
    assert [item["cluster"] for item in result["runs"]] == [EUROPE, US]
    assert result["state"] == "Finished"


def test_worker_that_comes_back_gives_up_what_it_lost() -> None:
    jobs = [job("a", count=2, runSeconds=3000), job("b", start=2500, count=4, runSeconds=100, requests={"cpu": 10})]
    result = run(jobs, outages=[{"cluster": EUROPE, "at": 100, "seconds": 1500}])
    # From 1600 on Europe has two free nodes again, since its copies of a were deleted.
    late = [workload["runs"][0] for name, workload in result.items() if name.startswith("b")]
    assert {entry["cluster"] for entry in late} == {EUROPE}
    assert sorted(item["startedAt"] for item in late) == [2500, 2500, 2600, 2600]


def test_job_without_nodes_on_a_lost_worker_is_taken_back_while_another_one_there_finishes() -> None:
    configuration = {"waitForPodsReady": {"timeout": "100s"}}
    jobs = workload_file(
        [job("a", count=3, runSeconds=500, requests={"cpu": 10})],
        outages=[{"cluster": EUROPE, "at": 50, "seconds": 600}],
    )
    result = prepare_fleet(fleet(kueue={"configuration": configuration}), jobs, Delays()).run()
    assert sorted(record.finished_at or 0 for record in result.records) == [650, 650, 660]


def test_jobs_are_not_offered_to_a_worker_that_cannot_be_reached() -> None:
    result = run([job("a", start=10)], outages=[{"cluster": EUROPE, "at": 0, "seconds": 50}])["a"]
    assert result["cluster"] == US


def test_jobs_wait_while_no_worker_can_be_reached() -> None:
    outages = [{"cluster": name, "at": 0, "seconds": 50} for name in (EUROPE, US)]
    result = run([job("a", start=10)], outages=outages)["a"]
    assert (result["quotaReservedAt"], result["runs"][0]["admittedAt"]) == (10.0, 50.0)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ({"reclaims": [{"flavor": "gone", "perHour": 1}]}, "reclaims[0].flavor: the fleet has no flavor gone"),
        ({"outages": [{"cluster": "manager", "at": 1, "seconds": 1}]}, "outages[0].cluster: the fleet has no cluster"),
        ({"reclaims": [{"flavor": "l4-spot", "perHour": -1}]}, "reclaims[0].perHour"),
        ({"outages": [{"cluster": US, "at": float("nan"), "seconds": 1}]}, "outages[0].at"),
        ({"outages": [{"cluster": US, "at": "1_0", "seconds": 1}]}, 'outages[0].at: "1_0" is given where a number'),
        ({"outages": [{"cluster": US, "at": 1e10, "seconds": 1}]}, "outages[0].at: 10000000000.0 is too large"),
        ({"begin": "2026-12-01T00:00:00"}, "does not say its time zone"),
    ],
)
def test_mistakes_are_named(rest: dict[str, Any], said: str) -> None:
    with pytest.raises(SimulationError) as refused:
        prepare_fleet(fleet(), workload_file([job("a")], **rest), Delays()).run()
    assert said in str(refused.value)
