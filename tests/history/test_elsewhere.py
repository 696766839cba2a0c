"""Histories of before Kueue: sacct, and a CSV."""

from __future__ import annotations

import json

import pytest

from kueue_admission.forms.problem import SpecError
from kueue_admission.history.elsewhere import table_reader
from kueue_admission.history.jobs import PastJob, past_of
from kueue_admission.history.schema import Event
from kueue_admission.read.fields import seconds_of

SACCT = "JobID|Account|Partition|Submit|Start|End|State|ReqTRES|NNodes\n"
SUBMIT, START, END = "2026-10-01T08:00:00", "2026-10-01T08:10:00", "2026-10-01T09:10:00"


def events(text: str) -> list[Event]:
    read = table_reader(text)
    assert read is not None
    return read(text, "jobs")


def job(text: str) -> PastJob:
    (found,) = past_of(events(text)).jobs
    return found


def slurm(state: str = "COMPLETED", start: str = START, end: str = END, number: str = "7") -> str:
    tres = "billing=16,cpu=16,gres/gpu=8,mem=64G,node=2"
    return f"{SACCT}{number}|vision|gpu|{SUBMIT}|{start}|{end}|{state}|{tres}|2\n"


def test_a_job_of_slurm_waits_and_runs() -> None:
    found = job(slurm())
    assert (found.wait, found.run_seconds) == (600.0, 3600.0)
    assert (found.arrival.namespace, found.arrival.queue) == ("vision", "gpu")


def test_the_nodes_of_slurm_are_pods() -> None:
    arrival = job(slurm()).arrival
    (pod_set,) = json.loads(arrival.pod_sets)
    assert pod_set["count"] == 2
    requests = pod_set["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "8", "memory": str(32 * 2**30), "nvidia.com/gpu": "4"}
    assert arrival.requests == {"cpu": 16.0, "memory": 64.0 * 2**30, "nvidia.com/gpu": 8.0}


@pytest.mark.parametrize(
    ("state", "start", "end", "runs", "ended", "deleted"),
    [
        ("PENDING", "Unknown", "Unknown", 0, False, False),
        ("RUNNING", START, "Unknown", 1, False, False),
        ("CANCELLED by 1000", "None", END, 0, True, True),
        ("CANCELLED by 1000", START, END, 1, True, False),
        ("TIMEOUT", START, END, 1, True, False),
    ],
)
def test_states_of_slurm(state: str, start: str, end: str, runs: int, ended: bool, deleted: bool) -> None:
    found = job(slurm(state, start, end))
    assert (len(found.runs), found.ended is not None, found.is_deleted) == (runs, ended, deleted)


def test_a_job_that_slurm_starts_again_has_two_runs() -> None:
    again = "2026-10-01T10:00:00|2026-10-01T11:00:00|COMPLETED"
    text = slurm("PREEMPTED") + f"7|vision|gpu|{SUBMIT}|{again}|cpu=16,gres/gpu=8,mem=64G|2\n"
    found = job(text)
    assert (len(found.runs), found.evictions, found.run_seconds) == (2, 1, 3600.0)


def test_steps_of_slurm_are_no_jobs() -> None:
    assert events(slurm(number="7.batch")) == []


CSV = "submitted,queue,gpus,runSeconds,started,pods\n"


def test_a_row_of_a_csv_is_a_job() -> None:
    found = job(CSV + "2026-10-01T08:00:00Z,vision/gpu,4,60,2026-10-01T08:00:30Z,2\n")
    assert (found.wait, found.run_seconds, found.arrival.requests) == (30.0, 60.0, {"nvidia.com/gpu": 8.0})


def test_a_row_without_a_start_has_its_run_time() -> None:
    found = job(CSV + "2026-10-01T08:00:00Z,vision/gpu,4,60,,\n")
    assert (found.wait, found.run_seconds) == (None, 60.0)


def test_times_of_a_csv_may_be_seconds() -> None:
    assert job(CSV + "1000,vision/gpu,4,60,,\n").arrival.time == 1000.0


def test_resources_of_a_csv_are_those_of_a_pod() -> None:
    found = job("submitted,queue,requests,runSeconds,pods\n0,a/b,cpu=500m memory=1Gi,5,3\n")
    assert found.arrival.requests == {"cpu": 1.5, "memory": 3.0 * 2**30}


def test_everything_that_is_wrong_is_said_at_once_by_line() -> None:
    with pytest.raises(SpecError) as refused:
        events(CSV + "yesterday,vision/gpu,4,60,,\n2026-10-01,gpu,4,60,,\n2026-10-01,a/b,many,60,,\n0,a/b,1,-5,,\n")
    assert [str(each).split(";")[0] for each in refused.value.problems] == [
        "jobs: line 2: has 'yesterday' in submitted",
        "jobs: line 3: has the queue 'gpu'",
        "jobs: line 4: is not a valid quantity",
        "jobs: line 5: has no time in submitted, or no number in runSeconds",
    ]


def test_a_table_without_a_column_is_refused() -> None:
    with pytest.raises(SpecError, match="has no column runSeconds"):
        events("submitted,queue,gpus\n")


def test_other_text_is_no_table() -> None:
    assert table_reader("apiVersion: v1\nkind: List\n") is None


def test_a_time_without_a_zone_is_utc() -> None:
    assert job(slurm()).arrival.time == seconds_of("2026-10-01T08:00:00Z")
