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
        "jobs: line 4: has 'many' for nvidia.com/gpu, which is not a valid quantity",
        "jobs: line 5: has no time in submitted, or no number in runSeconds",
    ]


def test_a_table_without_a_column_is_refused() -> None:
    with pytest.raises(SpecError, match="has no column runSeconds"):
        events("submitted,queue,gpus\n")


def test_other_text_is_no_table() -> None:
    assert table_reader("apiVersion: v1\nkind: List\n") is None


def test_a_time_without_a_zone_is_utc() -> None:
    assert job(slurm()).arrival.time == seconds_of("2026-10-01T08:00:00Z")


@pytest.mark.parametrize(
    "header",
    [
        '"submitted","queue","gpus","runSeconds"',
        "submitted;queue;gpus;runSeconds",
        "submitted\tqueue\tgpus\trunSeconds",
        "Submitted, Queue, GPUs, RunSeconds",
    ],
)
def test_other_ways_to_write_a_csv(header: str) -> None:
    delimiter = next(each for each in ",;\t" if each in header)
    found = job(f"{header}\r\n" + delimiter.join(["2026-10-01T08:00:00Z", "vision/gpu", "4", "60"]) + "\r\n")
    assert (found.arrival.requests, found.run_seconds) == ({"nvidia.com/gpu": 4.0}, 60.0)


def test_a_priority_may_be_negative() -> None:
    assert job("submitted,queue,gpus,runSeconds,priority\n0,a/b,1,5,-100\n").arrival.priority == -100


def refused(text: str) -> str:
    with pytest.raises(SpecError) as wrong:
        events(text)
    return "\n".join(map(str, wrong.value.problems))


GPUS = "submitted,queue,gpus,runSeconds,started,pods,priority,name\n"
AT = "2026-10-01T08:00:00Z"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (f"{AT},a/b", "has another number of values, 2, than the first line, 8"),
        (f"{AT},a/b,1,60,,,,,more", "has another number of values, 9,"),
        (f'{AT},a/b,1,60,,,,"train', "has a quote that ends on a later line"),
        (f"{AT},a/b,1,60,,,,{'x' * 200_000}", "field larger than field limit"),
        (f"{AT},a/b,1,60,,many,,", "has 'many' in pods; write a whole number from 1 on"),
        (f"{AT},a/b,1,60,,0,,", "has '0' in pods"),
        (f"{AT},a/b,1,60,,,high,", "has 'high' in priority"),
        (f"{AT},a/b,-1,60,,,,", "has '-1' for nvidia.com/gpu; write a whole number"),
        (f"{AT},a/b,0.5,60,,,,", "has '0.5' for nvidia.com/gpu; write a whole number"),
        (f"{AT},a/b,,60,,,,", "does not say what it asks for; write gpus, 0 if it asks for none"),
        (f"{AT},a/b,1,1e400,,,,", "no number in runSeconds"),
        (f"{AT},a/b,1,1e18,,,,", "no number in runSeconds"),
        (f"{AT},a/b,1,60,2026-10-01T07:00:00Z,,,", "was started before it was submitted"),
        ("1759643631000,a/b,1,60,,,,", "has '1759643631000' in submitted, which is not in the years 1970 to 2199"),
        ("0001-01-01T00:00:00Z,a/b,1,60,,,,", "not in the years 1970 to 2199"),
        ("-5,a/b,1,60,,,,", "not in the years 1970 to 2199"),
        ("1e400,a/b,1,60,,,,", "not in the years 1970 to 2199"),
        (f"{AT},a/b/c,1,60,,,,", "has the queue 'a/b/c'; write NAMESPACE/LOCALQUEUE"),
    ],
)
def test_a_row_that_cannot_be_is_refused_by_its_line(row: str, told: str) -> None:
    found = refused(f"{GPUS}{AT},a/b,1,60,,,,first\n{row}\n")
    assert told in found
    assert "line " in found


def test_two_jobs_of_one_name_and_time_are_not_one() -> None:
    row = f"{AT},a/b,1,60,,,,sweep\n"
    assert len(past_of(events(GPUS + row + row)).jobs) == 1  # The same row twice is the same job.
    assert "line 3: is another job with the name, the queue and the time of line 2" in refused(
        GPUS + row + row.replace("60", "70")
    )


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("submitted,queue,gpu,runSeconds", "has a column gpu; did you mean gpus?"),
        ("submitted,queue,gpu,runSeconds", "has no column gpus or requests"),
        ("submitted,queue,gpus,runSeconds,start", "has a column start; did you mean started?"),
        ("submitted,queue,gpus,gpus,runSeconds", "has the column gpus twice"),
        ("JobID  Account  Partition  Submit", "print it with sacct --parsable2"),
    ],
)
def test_columns_that_are_not_read_are_not_passed_over(header: str, told: str) -> None:
    assert told in refused(f"{header}\n")


def test_columns_of_ones_own_are_passed_over() -> None:
    assert job(f"submitted,queue,gpus,runSeconds,user,cost\n{AT},a/b,1,60,jane,7\n").run_seconds == 60.0


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        ("cpu", "has 'cpu' in requests"),
        ("cpu=-4", "has '-4' for cpu; write 0 or more"),
        ("cpu=1 cpu=2", "has 'cpu=2' in requests; write each resource once"),
        ("nvidia.com/gpu=4", "has nvidia.com/gpu in requests, and gpus"),
    ],
)
def test_requests_that_cannot_be_are_refused(requests: str, told: str) -> None:
    assert told in refused(f"submitted,queue,gpus,runSeconds,requests\n{AT},a/b,2,60,{requests}\n")


def test_gpus_of_which_slurm_counts_the_type_alone() -> None:
    text = slurm().replace("gres/gpu=8", "gres/gpu:a100=6,gres/gpu:h100=2")
    assert (job(text).arrival.requests or {})["nvidia.com/gpu"] == 8.0
    both = slurm().replace("gres/gpu=8", "gres/gpu=8,gres/gpu:a100=8")
    assert (job(both).arrival.requests or {})["nvidia.com/gpu"] == 8.0


@pytest.mark.parametrize(
    ("gpus", "nodes", "pods", "each"), [(3, 2, 3, "1"), (7, 2, 7, "1"), (1, 2, 1, "1"), (6, 2, 2, "3")]
)
def test_gpus_that_do_not_divide_by_nodes_are_as_many_as_slurm_gave(
    gpus: int, nodes: int, pods: int, each: str
) -> None:
    text = slurm().replace("gres/gpu=8", f"gres/gpu={gpus}").replace("node=2|2", f"node={nodes}|{nodes}")
    arrival = job(text).arrival
    (pod_set,) = json.loads(arrival.pod_sets)
    assert pod_set["count"] == pods
    assert pod_set["template"]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] == each
    assert (arrival.requests or {})["nvidia.com/gpu"] == gpus
    assert (arrival.requests or {})["cpu"] == pytest.approx(16, abs=0.01)


def test_tasks_of_an_array_that_wait_in_one_row_are_jobs() -> None:
    waiting = slurm("PENDING", "Unknown", "Unknown", "7_[1-3,9-13:2%2]")
    begun = slurm(number="7_2").removeprefix(SACCT)
    jobs = past_of(events(waiting + begun)).jobs
    assert sorted(each.arrival.uid for each in jobs) == [f"slurm/7_{task}" for task in (1, 11, 13, 2, 3, 9)]
    assert sum(bool(each.runs) for each in jobs) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            slurm("PENDING", "Unknown", "Unknown", "7_[1-3,...]"),
            "whose tasks are not known; print each with sacct --array",
        ),
        (slurm("PENDING", "Unknown", "Unknown", "7_[0-999999999]"), "whose tasks are not known"),
        (slurm().replace("mem=64G", "mem="), "has '' for memory"),
        (slurm().replace("|2\n", "|1.5K\n"), "has '1.5K' in NNodes"),
        (slurm(start="2026-10-01T07:10:00"), "has times of Submit, Start and End that are not in this order"),
        (slurm(end="2026-10-01T08:05:00"), "that are not in this order; print them with TZ=UTC"),
        (f"{SACCT}7|vision\n", "has another number of values, 2,"),
    ],
)
def test_a_row_of_slurm_that_cannot_be_is_refused(text: str, told: str) -> None:
    assert told in refused(text)
