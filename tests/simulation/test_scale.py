"""What a job costs does not depend on how many workers the fleet has beside those of its queue."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.bench.large_fleet import large_fleet

from kueue_admission.simulate.delays import Delays
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile


def calls(workers: int, jobs: int, dispatcher: dict[str, Any]) -> int:
    """Python calls of the simulation of jobs of a queue that has twenty workers."""
    data = large_fleet(workers)
    data["multiKueue"] |= dispatcher
    if dispatcher:
        data["controller"] = {"image": "example.com/controller:1"}
    fleet = parse_fleet(data)
    [queue, *_] = fleet.teams[0].local_queues
    entry = {"name": "j", "namespace": "team-vision", "queue": queue.name, "count": jobs, "interval": 10}
    entry |= {"runSeconds": 60, "requests": {"nvidia.com/gpu": 1}}
    prepared = prepare_fleet(fleet, WorkloadFile.model_validate({"jobs": [entry]}), Delays())
    found = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        result = prepared.run()
    finally:
        sys.setprofile(None)
    assert [record.state.value for record in result.records] == ["Finished"] * jobs
    return found


@pytest.mark.parametrize(
    "dispatcher",
    [{}, {"dispatcher": "External", "external": {"name": "kueue-fleet.dev/dispatcher"}}],
    ids=["all", "ours"],
)
def test_a_job_costs_the_same_in_a_fleet_of_a_hundred_workers(dispatcher: dict[str, Any]) -> None:
    few, many = (calls(workers, 10, dispatcher) - calls(workers, 4, dispatcher) for workers in (20, 100))
    assert abs(many - few) <= few / 50
