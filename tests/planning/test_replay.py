"""A recorded history through the fleet again: how well that fits, and what it says of changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from tests.bench.large_fleet import STACK
from tests.bench.plan import EXAMPLES
from tests.fleet_file.builders import standalone_data
from tests.history.workloads import workload

from kueue_admission.history.elsewhere import table_reader
from kueue_admission.history.events import Place, workload_events
from kueue_admission.history.jobs import Past, Waited, past_of
from kueue_admission.history.schema import Event, Kind
from kueue_admission.read.fields import seconds_of
from kueue_admission.read.printed import PrintedWorkload
from kueue_fleet.fleet_file import FleetSpec, Goals, WaitGoal, parse_fleet, parse_fleet_text
from kueue_fleet.fleet_file.goals import Recorded, judge_recorded
from kueue_fleet.planning.replay import Growth, Replay, Window, observe, ready_after
from kueue_fleet.planning.replay_fit import Fit, fit_of, goals_in, waits_of
from printed_history import BEGIN, busy_month, recorded

HOUR = 3600.0


class Nothing:
    """A store that is empty."""

    def keys(self, uids: set[str], since: float) -> dict[str, set[str]]:
        return {}

    def open(self, cluster: str) -> list[Event]:
        return []


@cache
def month() -> tuple[FleetSpec, Past]:
    """A day of the DWS stack on three workers."""
    fleet = parse_fleet_text(STACK.read_text(), source="stack")
    return fleet, past_of(recorded(fleet, busy_month(fleet, 300), Nothing()))


@cache
def fit() -> Fit:
    fleet, past = month()
    replay = Replay(fleet, past, Window(past.begin, past.end))
    return fit_of(replay, [replay.run(seed) for seed in range(3)])


@pytest.mark.parametrize("share", ["p50", "p90"])
def test_a_replay_of_a_fleet_of_which_everything_is_known_fits(share: str) -> None:
    off = fit().off("dws", share)
    assert off is not None
    assert abs(off) < 0.1


def test_the_same_seed_gives_the_same_replay() -> None:
    fleet, past = month()
    replay = Replay(fleet, past, Window(past.begin, past.end))
    first, again, other = (waits_of(replay, [replay.run(seed)]) for seed in (1, 1, 2))
    assert first == again != other


def test_more_jobs_of_a_team_wait_longer() -> None:
    fleet, past = month()
    replay = Replay(fleet, past, Window(past.begin, past.end))
    plain, grown = (
        waits_of(replay, [replay.run(0, growth)])["dws"] for growth in (Growth(), Growth(1.0, {"team-vision": 3.0}))
    )
    assert grown.jobs.middle == pytest.approx(2 * plain.jobs.middle, rel=0.02)
    assert grown.quantiles["p90"].middle > plain.quantiles["p90"].middle


def test_redrawn_days_are_days_of_the_window_on_the_same_weekday() -> None:
    example = EXAMPLES / "plan"
    fleet, text = parse_fleet_text((example / "fleet.yaml").read_text(), "plan"), (example / "jobs.csv").read_text()
    read = table_reader(text)
    assert read is not None
    past = past_of(read(text, "jobs.csv"))
    replay = Replay(fleet, past, Window(past.begin, past.begin + 14 * 24 * HOUR))
    first, again, other = (arrived(replay, seed) for seed in (1, 1, 2))
    assert first == again != other
    apart = [at - came for came, at in first]
    assert {round(item / (24 * HOUR), 3) for item in apart} == {-7.0, 0.0, 7.0}


def arrived(replay: Replay, seed: int) -> list[tuple[float, float]]:
    """Of each job when it came, and when it does in a simulation, in seconds of the window."""
    jobs = replay.run(seed, redrawn=True)
    return [(item.job.arrival.time - replay.window.begin, item.record.arrived_at) for item in jobs]


def test_fewer_jobs_come_by_a_factor_below_one() -> None:
    fleet, past = month()
    replay = Replay(fleet, past, Window(past.begin, past.end))
    assert 110 < len(replay.run(0, Growth(0.5))) < 190


def test_a_window_begins_with_what_ran_and_waited_then() -> None:
    fleet, past = month()
    window = Window(BEGIN + 12 * HOUR, BEGIN + 24 * HOUR)
    replay = Replay(fleet, past, window)
    run = replay.run(0)
    before = [item for item in run if item.job.arrival.time < window.begin]
    assert before
    assert all(entry.record.runs and entry.record.runs[0].admitted_at < HOUR for entry in before)
    assert waits_of(replay, [run])["dws"].jobs.middle == len(run) - len(before)


def test_waits_that_were_cut_off_count_for_the_longer_ones() -> None:
    def waited(seconds: float, ready: bool = True) -> Waited:
        return Waited("r", "dws", (), seconds, ready)

    assert ready_after([waited(10), waited(20), waited(30), waited(40)]) == [10, 20, 30, 40]
    assert ready_after([waited(10), waited(15, False), waited(15, False), waited(40)]) == [10, 40, 40, 40]
    assert ready_after([waited(10, False)]) == []


# One cluster, with the jobs of a few events


def moment(text: str) -> float:
    return seconds_of(f"2026-11-01T{text}Z")


def one_cluster() -> FleetSpec:
    data: dict[str, Any] = standalone_data()
    return parse_fleet(data)


def past(*jobs: Sequence[tuple[Kind, str]], cpu: int = 1, gpus: int = 0, **arrival: Any) -> Past:
    """Jobs of the events that follow their arrival at 9:00; without GPUs they tolerate the taint of nodes with some."""
    result = []
    for number, events in enumerate(jobs):
        data = workload()
        data["metadata"] |= {"uid": f"u{number}", "name": f"job-{number}", "namespace": "default"}
        container = {"resources": {"requests": {"cpu": cpu} | ({"nvidia.com/gpu": gpus} if gpus else {})}}
        data["spec"]["podSets"][0]["template"]["spec"] = {"containers": [container]}
        if not gpus:
            tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
            data["spec"]["podSets"][0]["template"]["spec"]["tolerations"] = tolerations
        data["spec"] |= {"queueName": "gpu", **arrival}
        (arrived,) = workload_events(PrintedWorkload.of(data), Place("only"))
        result.append(arrived)
        about: dict[str, Any] = {
            "uid": arrived.uid,
            "namespace": "default",
            "workload": arrived.workload,
            "queue": "gpu",
        }
        result += [
            Event(kind=kind, time=moment(at), key=f"{number}{kind}{at}", cluster="only", **about) for kind, at in events
        ]
    return past_of(result)


RAN = ((Kind.ADMITTED, "09:00:10"), (Kind.ENDED, "09:30:10"))


def replayed(history: Past, begin: str = "09:00:00", end: str = "12:00:00", **options: Any) -> tuple[Replay, Fit]:
    replay = Replay(one_cluster(), history, Window(moment(begin), moment(end)), **options)
    return replay, fit_of(replay, [replay.run(0)])


def test_a_job_runs_as_long_as_it_did() -> None:
    replay, _ = replayed(past(RAN))
    (result,) = replay.run(0)
    (run,) = result.record.runs
    assert (run.started_at, run.ended_at) == (0.0, 1800.0)


def test_a_job_that_runs_on_ends_as_jobs_like_it_that_ran_longer() -> None:
    long = [(Kind.ADMITTED, "09:00:00"), (Kind.ENDED, "12:00:00")]
    replay, fit = replayed(past(RAN, RAN, long, [(Kind.ADMITTED, "11:00:00")]), end="13:00:00")
    assert [item.record.finished_at for item in replay.run(0)] == pytest.approx([1800, 1800, 10800, 10800])
    assert "run times that are not recorded, drawn from those of jobs like them: 1" in fit.not_explained


def test_quotas_are_those_of_the_windows() -> None:
    data: dict[str, Any] = standalone_data()
    data["clusters"][0] = {"name": "batch", "role": "standalone", "region": "us-central1"}
    window = {"name": "later", "start": "2026-11-01T10:00:00Z", "duration": "1h"}
    data["controller"] = {"image": "example.com/controller:1", "quotaWindows": [window]}
    [gpus, *_] = data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"]
    gpus |= {"nominalQuota": 0, "during": {"later": {"nominalQuota": 8}}}
    replay = Replay(parse_fleet(data), past(RAN, gpus=4, cpu=0), Window(moment("09:00:00"), moment("12:00:00")))
    for seed in (0, 1):
        (result,) = replay.run(seed)
        assert result.record.admitted_at == pytest.approx(HOUR, abs=2)


def test_a_job_that_was_deleted_while_it_waited_is_deleted_in_the_replay() -> None:
    replay, fit = replayed(past([(Kind.DELETED, "09:10:00")], cpu=1000))
    (result,) = replay.run(0)
    assert result.record.finished_at == 600.0
    assert "jobs that were deleted while they waited: 1" in fit.not_explained
    assert fit.replayed == {}


def test_a_queue_that_is_not_in_the_fleet_is_said_and_can_be_named() -> None:
    history = past(RAN, queueName="gone")
    replay, _ = replayed(history, queues={"default/gone": "default/gpu"})
    assert len(replay.run(0)) == 1
    replay = Replay(one_cluster(), history, Window(moment("09:00:00"), moment("12:00:00")))
    assert dict(replay.left_out) == {
        "of LocalQueue default/gone, which is not in the fleet (--queue says which it is)": 1
    }


def test_a_job_of_which_a_pod_fits_on_no_node_is_left_out_and_said() -> None:
    """Kueue would admit and evict it without end."""
    fleet = parse_fleet_text((EXAMPLES / "plan" / "fleet.yaml").read_text(), "plan")
    window, queues = Window(moment("09:00:00"), moment("12:00:00")), {"default/gpu": "vision/gpu"}
    assert len(Replay(fleet, past(RAN, gpus=2), window, queues).run(0)) == 1
    replay = Replay(fleet, past(RAN, gpus=4), window, queues)
    assert replay.run(0) == []
    assert dict(replay.left_out) == {"of which a pod asks for 4 nvidia.com/gpu, more than any node has": 1}


def test_a_job_of_a_whole_machine_is_scaled_to_what_its_node_allocates_and_said() -> None:
    """Slurm gives all CPUs of a machine, of which GKE takes some for itself."""
    fleet = parse_fleet_text((EXAMPLES / "plan" / "fleet.yaml").read_text(), "plan")
    machine = fleet.node_pools_on(fleet.job_clusters[0])[0].machine
    assert machine is not None
    window, queues = Window(moment("09:00:00"), moment("12:00:00")), {"default/gpu": "vision/gpu"}
    replay = Replay(fleet, past(RAN, gpus=1, cpu=machine.cpus), window, queues)
    assert len(replay.run(0)) == 1
    assert dict(replay.scaled) == {f"of whole nodes, of which a pod asks for {machine.cpus} cpu": 1}
    assert Replay(fleet, past(RAN, gpus=1, cpu=machine.cpus + 1), window, queues).run(0) == []


def test_what_passes_between_two_runs_is_what_passed() -> None:
    runs = [
        [(Kind.ADMITTED, f"09:{10 * n:02}:{7 if n else 0:02}"), (Kind.ENDED, f"09:{10 * n + 9:02}:57")]
        for n in range(6)
    ]
    assert observe(past(*runs), one_cluster()).between == 10.0


def test_what_a_run_waited_for_nodes_of_a_fixed_pool_is_left_to_the_simulation() -> None:
    fleet = parse_fleet_text((EXAMPLES / "plan" / "fleet.yaml").read_text(), "plan")
    quick = [(Kind.ADMITTED, "09:00:00"), (Kind.STARTED, "09:00:02"), (Kind.ENDED, "09:30:00")]
    late = [(Kind.ADMITTED, "09:00:00"), (Kind.STARTED, "09:10:02"), (Kind.ENDED, "09:40:00")]

    def ran(flavor: str, *runs: Sequence[tuple[Kind, str]]) -> list[float | None]:
        history = past(*runs)
        for job in history.jobs:
            job.runs[0].cluster, job.runs[0].flavors = "batch", (flavor,)
        result = observe(history, fleet)
        assert sorted(result.run_times[()]) == sorted(result.ran(job) or 0.0 for job in history.jobs)
        return [result.ran(job) for job in history.jobs]

    assert ran("l4-reserved", *5 * [quick], late) == 6 * [1800.0]
    assert ran("l4-ondemand", *5 * [quick], late) == [*5 * [1800.0], 2400.0], "nodes of others were made for it"
    assert ran("l4-reserved", quick, late) == [1800.0, 2400.0], "what is usual is not known"


def test_losses_of_nodes_are_drawn_by_the_hours_that_jobs_ran() -> None:
    lost = [(Kind.ADMITTED, "09:00:00"), (Kind.STARTED, "09:00:00"), (Kind.INTERRUPTED, "09:30:00")]
    lost += [(Kind.STARTED, "09:40:00"), (Kind.ENDED, "11:00:00")]
    history = past(lost)
    for job in history.jobs:
        job.runs[0].flavors = ("spot",)
    (entry,) = observe(history, one_cluster()).file.reclaims
    assert (entry.flavor, entry.per_hour, entry.back.numbers) == ("spot", 0.5, (600.0,))


def test_the_run_time_of_a_job_that_lost_its_nodes_is_that_of_its_last_start() -> None:
    lost = [(Kind.ADMITTED, "09:00:00"), (Kind.STARTED, "09:00:00"), (Kind.INTERRUPTED, "09:30:00")]
    (job,) = past([*lost, (Kind.STARTED, "09:40:00"), (Kind.ENDED, "11:00:00")]).jobs
    assert job.run_seconds == 80 * 60


@pytest.mark.parametrize(("limit", "standing"), [("1m", "missed"), ("240h", "met")])
def test_a_replay_judges_the_goals_of_the_file(limit: str, standing: str) -> None:
    fleet, past = month()
    (queue,) = fleet.cluster_queues
    goals = Goals(wait=WaitGoal(p90=limit))
    fleet = fleet.model_copy(update={"cluster_queues": (queue.model_copy(update={"goals": goals}),)})
    replay = Replay(fleet, past, Window(past.begin, past.end))
    (result,) = goals_in(replay, [replay.run(0)])
    assert result.standing == standing


def test_a_history_judges_the_goals_of_the_file() -> None:
    fleet, past = month()
    (queue,) = fleet.cluster_queues
    goals = Goals(wait=WaitGoal(p90="1m"))
    fleet = fleet.model_copy(update={"cluster_queues": (queue.model_copy(update={"goals": goals}),)})
    assert [item.standing for item in judge_recorded(fleet, None)] == ["not known"]
    assert [entry.standing for entry in judge_recorded(fleet, Recorded(past, past.begin, past.end))] == ["missed"]


@pytest.mark.parametrize(
    ("cluster", "late", "standing"), [("", 0, "met"), ("worker", 0, "not known"), ("", 9, "not known")]
)
def test_metrics_of_the_manager_judge_a_goal_where_no_job_is_recorded(cluster: str, late: int, standing: str) -> None:
    fleet, _ = month()
    (queue,) = fleet.cluster_queues
    goals = Goals(wait=WaitGoal(p90="1h"))
    fleet = fleet.model_copy(update={"cluster_queues": (queue.model_copy(update={"goals": goals}),)})
    row = Event(
        kind=Kind.COUNTED,
        time=100.0 + late,
        key="k",
        cluster=cluster or fleet.home,
        cluster_queue=queue.name,
        counts={"admitted": 20, "waitedAtMost640": 20},
    )
    (judged,) = judge_recorded(fleet, Recorded(past_of([row]), 0.0, 105.0))
    assert judged.standing == standing
