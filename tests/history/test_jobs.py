"""Jobs as their events tell."""

from __future__ import annotations

from typing import Any

from kueue_admission.history.jobs import past_of
from kueue_admission.history.schema import Event, Kind


def event(kind: Kind, time: float, **more: Any) -> Event:
    about = {"namespace": "vision", "workload": "job-train", "uid": "own", "cluster": "manager", **more}
    return Event(kind=kind, time=time, key=f"{about['uid']}{kind}{time}", **about)


def copied(kind: Kind, time: float, cluster: str = "eu", **more: Any) -> Event:
    return event(kind, time, cluster=cluster, uid=f"in-{cluster}", region=cluster, copy=True, flavors=("l4",), **more)


def test_a_job_that_the_manager_finished_without_admitting_it_ran_where_its_copy_ended() -> None:
    own = [event(Kind.ARRIVED, 0.0), event(Kind.RESERVED, 1.0), event(Kind.ENDED, 9.0)]
    lost = [copied(Kind.ADMITTED, 2.0, "us"), copied(Kind.DELETED, 3.0, "us")]
    won = [copied(Kind.ADMITTED, 4.0), copied(Kind.ENDED, 8.0)]
    [job] = past_of([*own, *won, *lost]).jobs
    [run] = job.runs
    assert (run.cluster, run.region, run.flavors, run.admitted, run.ended) == ("eu", "eu", ("l4",), 4.0, 9.0)


def test_a_job_that_was_finished_before_any_copy_was_admitted_never_ran() -> None:
    [job] = past_of([event(Kind.ARRIVED, 0.0), event(Kind.ENDED, 9.0), copied(Kind.RESERVED, 2.0)]).jobs
    assert job.runs == []


def test_the_managers_own_admission_goes_before_that_of_a_copy() -> None:
    own = [event(Kind.ARRIVED, 0.0), event(Kind.ADMITTED, 5.0, worker="eu"), event(Kind.ENDED, 9.0)]
    [job] = past_of([*own, copied(Kind.ADMITTED, 4.0), copied(Kind.ENDED, 8.0)]).jobs
    assert [run.admitted for run in job.runs] == [5.0]
