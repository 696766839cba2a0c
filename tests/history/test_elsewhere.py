"""Histories of before Kueue: a CSV, and how the page makes one of what Slurm prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kueue_admission.history.elsewhere import table_reader
from kueue_admission.history.jobs import PastJob, past_of
from kueue_admission.history.schema import Event
from kueue_admission.kernel.problem import SpecError
from kueue_admission.read.fields import seconds_of


def events(text: str) -> list[Event]:
    read = table_reader(text)
    assert read is not None
    return read(text, "jobs")


def job(text: str) -> PastJob:
    (result,) = past_of(events(text)).jobs
    return result


CSV = "submitted,queue,gpus,runSeconds,started,pods\n"


def test_a_row_of_a_csv_is_a_job() -> None:
    result = job(CSV + "2026-10-01T08:00:00Z,vision/gpu,4,60,2026-10-01T08:00:30Z,2\n")
    assert (result.wait, result.run_seconds, result.arrival.requests) == (30.0, 60.0, {"nvidia.com/gpu": 8.0})


def test_a_row_without_a_start_has_its_run_time() -> None:
    result = job(CSV + "2026-10-01T08:00:00Z,vision/gpu,4,60,,\n")
    assert (result.wait, result.run_seconds) == (None, 60.0)


def test_times_of_a_csv_may_be_seconds() -> None:
    assert job(CSV + "1000,vision/gpu,4,60,,\n").arrival.time == 1000.0


def test_resources_of_a_csv_are_those_of_a_pod() -> None:
    result = job("submitted,queue,requests,runSeconds,pods\n0,a/b,cpu=500m memory=1Gi,5,3\n")
    assert result.arrival.requests == {"cpu": 1.5, "memory": 3.0 * 2**30}


def test_everything_that_is_wrong_is_said_at_once_by_line() -> None:
    with pytest.raises(SpecError) as refused:
        events(CSV + "yesterday,vision/gpu,4,60,,\n2026-10-01,gpu,4,60,,\n2026-10-01,a/b,many,60,,\n0,a/b,1,-5,,\n")
    assert [str(item).split(";")[0] for item in refused.value.problems] == [
        "jobs: line 2: has 'yesterday' in submitted",
        "jobs: line 3: has the queue 'gpu'",
        "jobs: line 4: has 'many' for nvidia.com/gpu, which is not a valid quantity",
        "jobs: line 5: has no time in submitted, or no number in runSeconds",
    ]


def test_a_table_without_a_column_is_refused() -> None:
    with pytest.raises(SpecError, match="has no column runSeconds"):
        events("submitted,queue,gpus\n")


def test_a_table_of_other_columns_says_which_it_needs() -> None:
    with pytest.raises(SpecError, match="has no column submitted, runSeconds; add it to the first line") as refused:
        events("job,queue,gpus,cell\n1,a/b,1,x\n")
    assert len(refused.value.problems) == 1
    with pytest.raises(SpecError) as refused:
        events("JobID|Account|Partition|Submit|Start|State\n1|radar|main|2026-10-20T08:00:00|None|COMPLETED\n")
    [problem] = refused.value.problems
    assert problem.wrong == "is a table without the columns submitted, queue, runSeconds"
    assert problem.fix == "write them into the first line, or make a CSV of what sacct prints, as docs/record.md says"


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: List\n",
        "# of a, b, and c\nkind: List\n",
        '{"apiVersion": "v1", "kind": "List", "items": []}',
        "{\n",
        "[]",
        "",
        "\n",
        "NAME  QUEUE  RESERVED IN\n",
    ],
)
def test_other_text_is_no_table(text: str) -> None:
    assert table_reader(text) is None


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
    delimiter = next(item for item in ",;\t" if item in header)
    result = job(f"{header}\r\n" + delimiter.join(["2026-10-01T08:00:00Z", "vision/gpu", "4", "60"]) + "\r\n")
    assert (result.arrival.requests, result.run_seconds) == ({"nvidia.com/gpu": 4.0}, 60.0)


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
    result = refused(f"{GPUS}{AT},a/b,1,60,,,,first\n{row}\n")
    assert told in result
    assert "line " in result


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


def of_slurm(rows: str, folder: Path) -> str:
    """The CSV that the page's awk makes of what sacct prints."""
    page = (Path(__file__).parents[2] / "docs/record.md").read_text()
    program = page.partition("```awk\n")[2].partition("```")[0]
    (folder / "sacct.txt").write_text(rows)
    return subprocess.run(["awk", program, "sacct.txt"], cwd=folder, check=True, capture_output=True, text=True).stdout


SUBMIT, START = "2026-10-01T08:00:00", "2026-10-01T08:10:00"
TRES = "billing=16,cpu=16,gres/gpu=8,mem=64G,node=2"


def test_the_page_makes_a_csv_of_what_slurm_prints(tmp_path: Path) -> None:
    result = job(of_slurm(f"{SUBMIT}|vision|gpu|2|{TRES}|{START}|3600|COMPLETED\n", tmp_path))
    assert (result.wait, result.run_seconds) == (600.0, 3600.0)
    assert (result.arrival.namespace, result.arrival.queue) == ("vision", "gpu")
    assert result.arrival.requests == {"cpu": 16.0, "memory": 64.0 * 2**30, "nvidia.com/gpu": 8.0}
    assert result.arrival.time == seconds_of(f"{SUBMIT}Z")


def test_a_job_of_slurm_that_waits_has_not_started(tmp_path: Path) -> None:
    result = job(of_slurm(f"{SUBMIT}|vision|gpu|1|cpu=2,mem=500M|Unknown|0|PENDING\n", tmp_path))
    assert (result.runs, result.ended) == ([], None)


def test_gpus_of_slurm_that_have_a_type_are_counted_once(tmp_path: Path) -> None:
    for tres in ("gres/gpu:a100=6,gres/gpu:h100=2", "gres/gpu=8,gres/gpu:a100=8"):
        row = f"{SUBMIT}|vision|gpu,long|2|cpu=2,mem=1G,{tres}|{START}|60|COMPLETED\n"
        arrival = job(of_slurm(row, tmp_path)).arrival
        assert (arrival.queue, arrival.requests["nvidia.com/gpu"]) == ("gpu", 8.0)
