"""When a job would start: places in the queue, run times and their sources, what runs stays where it is."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.decide.build import job
from tests.simulation.fleets import EUROPE, GPU, US, fleet, workload_file

from kueue_admission.simulate.distributions import Distribution, constant, exponential
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_fleet.fleet_simulation.forecast import Forecast, forecast, remaining
from kueue_fleet.jobs.workload_file import WorkloadFile

Object = dict[str, Any]
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
NO_JOBS = WorkloadFile()


def near(seconds: float) -> Any:
    """Kueue looks once a second at what it has parked."""
    return pytest.approx(seconds, abs=2.5)


def clock(seconds: float) -> str:
    return datetime.fromtimestamp(NOON + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def workload(name: str, *, created: float = -600, priority: int = 0, queue: str = "gpu", **true: float) -> Object:
    """A Workload with these conditions, each True since so many seconds from noon."""
    requests = {GPU: "1", "cpu": "10", "memory": "1Gi"}
    template = {"spec": {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": requests}}]}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": name,
            "creationTimestamp": clock(created),
            "ownerReferences": [{"kind": "Job", "name": f"of-{name}"}],
        },
        "spec": {
            "queueName": queue,
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
        "status": {
            "conditions": [
                {"type": kind, "status": "True", "reason": "x", "message": "", "lastTransitionTime": clock(at)}
                for kind, at in true.items()
            ]
        },
    }


def running(name: str, cluster: str, began: float) -> Object:
    result = workload(name, QuotaReserved=began, Admitted=began)
    result["status"]["clusterName"] = cluster
    return result


def full(began: float = -100) -> list[Object]:
    """Both workers have two GPUs each."""
    return [running(f"{cluster}-{number}", cluster, began) for cluster in (US, EUROPE) for number in (1, 2)]


def estimate(
    given: list[Object],
    job: str | Document = "team-a/w",
    usual: Distribution | None = None,
    file: WorkloadFile = NO_JOBS,
    **changes: Any,
) -> Forecast:
    return forecast(fleet(**changes), file, given, job, usual, range(5), NOON)


def test_it_starts_when_what_runs_has_ended() -> None:
    result = estimate([*full(), workload("w")], usual=constant(300))
    assert result.starts == (near(200),) * 5
    assert (result.place, result.pending, result.cluster_queue) == (1, 1, "gpu")


def test_its_place_is_by_priority_and_then_by_time() -> None:
    waiting = [
        workload("late", created=-10),
        workload("w", created=-60),
        workload("first", created=-600),
        workload("high", created=-1, priority=5),
        workload("off", created=-900) | {"spec": {**workload("off")["spec"], "active": False}},
    ]
    result = estimate([*full(), *waiting], usual=constant(300))
    assert (result.place, result.pending) == (3, 4)
    assert result.starts[0] == near(200)  # Four GPUs are free then.


def test_a_job_that_is_not_submitted_yet_is_the_last() -> None:
    spec = workload("w")["spec"]["podSets"][0]["template"]
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "new", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
        "spec": {"template": {"spec": {**spec["spec"], "restartPolicy": "Never"}}},
    }
    waiting = [workload(f"w{number}", created=-number) for number in range(4)]
    result = estimate([*full(), *waiting], Document("job.yaml:1", manifest), constant(300))
    assert (result.workload, result.place, result.pending) == ("team-a/new", 5, 5)
    assert result.starts[0] == near(500)


def test_what_runs_stays_where_it_is() -> None:
    """Europe is offered first, and out of reach soon: only what leaves the US makes room."""
    there = [*(running(f"{US}-{n}", US, -100) for n in (1, 2)), *(running(f"{EUROPE}-{n}", EUROPE, 0) for n in (1, 2))]
    for long in there[2:]:
        annotations = {"kueue-fleet.dev/run-seconds": "10000"}
        long["spec"]["podSets"][0]["template"]["metadata"] = {"annotations": annotations}
    lost = workload_file([], outages=[{"cluster": EUROPE, "at": 1, "seconds": 100_000}])
    result = estimate([*there, workload("w")], usual=constant(300), file=lost)
    assert result.starts[0] == near(200)


def test_run_times_and_where_they_are_from() -> None:
    finished = [workload(f"f{n}", QuotaReserved=-900, Admitted=-900, Finished=-900 + n) for n in (400, 500)]
    output = running("said", US, -100)
    output["spec"]["podSets"][0]["template"]["metadata"] = {"annotations": {"kueue-fleet.dev/run-seconds": "150"}}
    entry = workload_file([{"name": "of-x", "namespace": "team-a", "queue": "gpu", "count": 3, "runSeconds": 170}])
    named = running("named", US, -100)
    named["metadata"]["ownerReferences"][0]["name"] = "of-x-2"
    others = [running("e1", EUROPE, -100), running("e2", EUROPE, -100)]
    result = estimate([*finished, output, named, *others, workload("w")], file=entry)
    assert result.starts[0] == near(50)
    assert "run times of 2 of them from finished jobs of their LocalQueue" in result.rests_on
    assert "run times of 1 of them from the annotation kueue-fleet.dev/run-seconds" in result.rests_on
    assert "run times of 1 of them from the workload file" in result.rests_on
    assert "jobs: 4 that run, on the clusters that run them, and 0 that wait" in result.rests_on


def test_seeds_differ_and_repeat() -> None:
    given = [*full(), workload("w")]
    once, again = (estimate(given, usual=exponential(1000)) for _ in range(2))
    assert once == again
    assert len(set(once.starts)) == 5
    low, high = once.quantile(0.1), once.quantile(0.9)
    assert low is not None
    assert high is not None
    assert low == min(s for s in once.starts if s is not None) < high


def test_one_that_fits_nowhere_never_starts() -> None:
    large = workload("w")
    large["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"][GPU] = "64"
    result = estimate([large])
    assert (result.starts, result.not_started, result.quantile(0.5)) == ((None,) * 5, 5, None)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([*full(), workload("w")], "nothing is known of 4 jobs that run or wait, such as team-a/worker-us-east4-1;"),
        ([workload("w", queue="other")], "team-a/w: its LocalQueue is not in the fleet; give the file of"),
    ],
)
def test_what_is_refused(given: list[Object], says: str) -> None:
    with pytest.raises(SimulationError, match=says):
        estimate(given)


@pytest.mark.parametrize(
    ("times", "ran", "least", "most"),
    [
        (constant(300), 0, 300, 300),
        (constant(300), 100, 200, 200),
        (constant(300), 400, 0, 400),  # longer than known: up to as long again
        (Distribution("uniform", (100, 200)), 150, 0, 50),
        ([100.0, 200.0, 300.0], 250, 50, 50),
        ([100.0], 150, 0, 150),
        (exponential(10), 5000, 0, 1000),
    ],
)
def test_how_long_a_job_still_runs(times: Any, ran: float, least: float, most: float) -> None:
    drawn = [remaining(times, ran, random.Random(seed)) for seed in range(50)]
    assert all(least <= item <= most for item in drawn)


@pytest.mark.parametrize(("share", "seconds"), [(0.1, 10.0), (0.5, 30.0), (0.8, 40.0), (0.9, None)])
def test_percentiles_count_those_that_do_not_start(share: float, seconds: float | None) -> None:
    result = Forecast("j", "q", 1, 1, (40.0, 10.0, None, 30.0, 20.0), (), job("j"), {})
    assert result.quantile(share) == seconds
