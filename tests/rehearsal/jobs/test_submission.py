"""Following jobs: until when, and which of those that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from job_files import jobs_in
from kueue_admission.kernel.names import QUEUE_LABEL
from kueue_rehearsal.jobs.clients import ClusterClients
from kueue_rehearsal.jobs.kinds import JOB_KINDS
from kueue_rehearsal.jobs.submission import (
    QUIET_SECONDS,
    follow_jobs,
    submit_jobs,
    unfinished_jobs,
)
from kueue_rehearsal.jobs.views import JobState, JobView
from kueue_rehearsal.paths import RehearsalError

JOB_KINDS_HERE = [JOB_KINDS["Job"], JOB_KINDS["JobSet"]]
SINCE = "2026-11-21T12:00:00Z"


class Clock:
    """The seconds that pass while a command sleeps."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Cluster(ClusterClients):
    """One cluster with what it answers at each second."""

    def __init__(self, answer: Callable[[str], Sequence[Mapping[str, Any]]]) -> None:
        self._answer = answer

    @property
    def names(self) -> list[str]:
        return ["solo"]

    def list(self, cluster: str, group: str, version: str, plural: str) -> list[dict[str, Any]]:
        assert cluster == "solo"
        return [dict(item) for item in self._answer(plural)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    result = Clock()
    monkeypatch.setattr("kueue_rehearsal.jobs.submission.time.monotonic", lambda: result.seconds)
    monkeypatch.setattr("kueue_rehearsal.jobs.submission.time.sleep", result.sleep)
    return result


def workload(name: str, kind: str, status: str = "True", reason: str = "") -> dict[str, Any]:
    waits = {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": SINCE}
    metadata = {"namespace": "team-a", "name": name, "ownerReferences": [{"uid": name}]}
    return {"metadata": metadata, "status": {"conditions": [waits]}}


JOBS = [
    {"kind": "Job", "metadata": {"uid": name, "namespace": "team-a", "name": name, "creationTimestamp": SINCE}}
    for name in ("a", "b")
]


def follow(clock: Clock, answer: Callable[[], Sequence[Mapping[str, Any]]]) -> tuple[list[JobView], float]:
    views: list[JobView] = []
    began = clock.seconds
    for views in follow_jobs(Cluster(lambda plural: answer()), "solo", JOBS, 300):  # noqa: B007
        pass
    return views, clock.seconds - began


def test_it_ends_when_all_have_ended(clock: Clock) -> None:
    views, seconds = follow(
        clock,
        lambda: [
            workload("a", "Finished", reason="Succeeded"),
            workload("b", "Finished" if clock.seconds > 120 else "Admitted", reason="Succeeded"),
        ],
    )
    assert 20 < seconds < 22
    assert all(view.settled for view in views)


def test_a_job_is_followed_while_others_are_still_submitted(clock: Clock) -> None:
    """Its Workload on the worker may be gone before the last is there."""
    jobs, submission = JOBS[:1], Future[None]()

    def answer() -> list[dict[str, Any]]:
        if clock.seconds > 120 and not submission.done():
            jobs.append(JOBS[1])
            submission.set_result(None)
        return [
            workload("a", "Admitted" if clock.seconds < 110 else "Finished", reason="Succeeded"),
            workload("b", "Finished", reason="Succeeded"),
        ]

    result = [*follow_jobs(Cluster(lambda plural: answer()), "solo", jobs, 300, submission=submission)]
    assert [(view.cluster, view.state) for view in result[0]] == [("solo", JobState.ADMITTED)]
    assert [(view.cluster, view.state) for view in result[-1]] == [
        ("solo", JobState.FINISHED),
        ("", JobState.FINISHED),
    ]


def test_what_refuses_the_submission_is_raised(clock: Clock) -> None:
    submission = Future[None]()
    submission.set_exception(RehearsalError("job is refused"))
    with pytest.raises(RehearsalError, match="job is refused"):
        next(follow_jobs(Cluster(lambda plural: []), "solo", [], 300, submission=submission))


def test_it_waits_as_long_as_something_runs_and_then_gives_up(clock: Clock) -> None:
    views, seconds = follow(
        clock, lambda: [workload("a", "Admitted"), workload("b", "QuotaReserved", "False", "WaitingForQuota")]
    )
    assert 300 <= seconds < 302
    assert not any(view.settled for view in views)


def test_it_does_not_wait_for_what_only_waits_for_others(clock: Clock) -> None:
    """`a` can never run, and has all quota."""
    views, seconds = follow(
        clock,
        lambda: [
            workload("a", "QuotaReserved", "False", "ExceedsMaxQuota"),
            workload("b", "QuotaReserved", "False", "WaitingForQuota"),
        ],
    )
    assert QUIET_SECONDS < seconds < QUIET_SECONDS + 2
    assert views[1].reasons == (("solo", "WaitingForQuota: ; no running workload will release quota"),)


def test_a_job_that_kueue_has_not_come_to_is_waited_for(clock: Clock) -> None:
    """`a` has ended; on a busy machine the Workload of `b` comes later than all else is quiet."""
    ended = workload("a", "Finished", reason="Succeeded")
    late = workload("b", "Finished", reason="Succeeded")
    views, seconds = follow(clock, lambda: [ended, late] if clock.seconds > 150 else [ended])
    assert 50 < seconds < 52
    assert [view.state for view in views] == [JobState.FINISHED, JobState.FINISHED]


def test_something_has_to_be_quiet_for_that(clock: Clock) -> None:
    _, seconds = follow(
        clock,
        lambda: [
            workload("a", "QuotaReserved", "False", "ExceedsMaxQuota"),
            workload("b", "QuotaReserved", "False", "WaitingForQuota" if clock.seconds > 150 else "Suspended"),
        ],
    )
    assert QUIET_SECONDS < seconds < QUIET_SECONDS + 2
    flickers = ["WaitingForQuota", "Suspended"]
    _, seconds = follow(
        clock,
        lambda: [
            workload("a", "QuotaReserved", "False", "ExceedsMaxQuota"),
            workload("b", "QuotaReserved", "False", flickers[int(clock.seconds // 5) % 2]),
        ],
    )
    assert seconds >= 300


def job(name: str, ended: str = "", queue: str = "gpu", owner: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "uid": name, "creationTimestamp": SINCE, "labels": {QUEUE_LABEL: queue}}
    if not queue:
        del metadata["labels"]
    if owner:
        metadata["ownerReferences"] = [{"name": owner}]
    return {"metadata": metadata, "status": {"conditions": [{"type": ended, "status": "True"}] if ended else []}}


def test_jobs_of_earlier_runs() -> None:
    there = {
        "jobs": [
            job("b"),
            job("a"),
            job("done", "Complete"),
            job("lost", "Failed"),
            job("plain", queue=""),
            job("of-set", owner="set"),
        ],
        "jobsets": [job("set"), job("ended", "Completed")],
    }
    there["jobs"].append(job("over"))
    there["workloads"] = [workload("over", "Finished"), workload("a", "Admitted")]
    result = unfinished_jobs(Cluster(lambda plural: there[plural]), "solo", JOB_KINDS_HERE)
    assert [(item["kind"], item["metadata"]["name"]) for item in result] == [
        ("Job", "a"),
        ("Job", "b"),
        ("JobSet", "set"),
    ]
    without = unfinished_jobs(Cluster(lambda plural: there[plural]), "solo", JOB_KINDS_HERE[:1])
    assert [entry["kind"] for entry in without] == ["Job", "Job"]


class Written(ClusterClients):
    """A cluster that refuses objects of some kinds, and says what was written."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.written: list[str] = []

    @property
    def names(self) -> list[str]:
        return ["hub", "worker"]

    def create(self, cluster: str, job: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        return self._take(cluster, job, "" if dry_run else f"{job['kind']} on {cluster}")

    def apply(self, cluster: str, used: Mapping[str, Any]) -> dict[str, Any]:
        return self._take(cluster, used, f"{used['kind']} on {cluster}")

    def _take(self, cluster: str, body: Mapping[str, Any], written: str) -> dict[str, Any]:
        if cluster == "hub" and body["kind"] in self.refused:
            raise RehearsalError(f"{body['kind']} is refused")
        self.written += [written] if written else []
        return {"metadata": body["metadata"]}


MNIST = Path(__file__).parents[3] / "examples/batch-platform/mnist.yaml"


def test_what_a_job_uses_is_on_every_cluster_before_it() -> None:
    documents = jobs_in(MNIST)
    cluster = Written()
    submitted = submit_jobs(cluster, "hub", list(reversed(documents)))
    assert [job["metadata"]["name"] for job in submitted] == ["team-a-low-priority-job-0"]
    used = [f"{kind} on {item}" for kind in ("ConfigMap", "Service") for item in cluster.names]
    assert cluster.written == [*used, "Job on hub"]


@pytest.mark.parametrize("kind", ["Service", "Job"])
def test_no_job_is_written_when_something_is_refused(kind: str) -> None:
    cluster = Written(kind)
    with pytest.raises(RehearsalError, match=rf"^{kind} is refused\nno job has been submitted"):
        submit_jobs(cluster, "hub", jobs_in(MNIST))
    assert "Job on hub" not in cluster.written


def test_what_serves_is_settled_when_all_of_it_is_admitted(clock: Clock) -> None:
    """A LeaderWorkerSet has a Workload for each of its groups."""
    groups = [workload("a", "QuotaReserved", "False", "WaitingForQuota"), workload("a", "Admitted")]
    served = [{**JOBS[0], "kind": "LeaderWorkerSet"}]
    [waiting] = next(follow_jobs(Cluster(lambda plural: groups), "solo", served, 300))
    assert (waiting.state, waiting.settled) == (JobState.PENDING, False)
    [[view]] = follow_jobs(Cluster(lambda plural: groups[1:]), "solo", served, 300)
    assert (view.state, view.settled) == (JobState.ADMITTED, True)
