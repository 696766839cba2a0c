"""Which jobs a rehearsal submits, and what it says while it waits for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kueue_admission.cli.console import CommandError
from kueue_fleet.cli.bring_up import LongWaits
from kueue_fleet.cli.job_report import JobLog
from kueue_fleet.cli.rehearsed_jobs import find_jobs, read_jobs
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_rehearsal.jobs.views import Answer, JobState, JobView
from kueue_rehearsal.pulumi_events import Operation
from kueue_rehearsal.session import Session
from kueue_rehearsal.state_folder import mark_kept


def view(name: str, state: JobState, cluster: str = "", *reasons: Answer) -> JobView:
    return JobView("Job", "team-a", name, state, cluster, (), 3.0, tuple(reasons))


EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_jobs_of_a_file_with_what_they_use() -> None:
    fleet = parse_fleet_text((EXAMPLES / "kinds-of-jobs/fleet.yaml").read_text(), "fleet.yaml")
    read = [read_jobs(fleet, EXAMPLES / f"kinds-of-jobs/{name}.yaml") for name in ("trainjob", "rayjob", "pods")]
    kinds = [job["kind"] for jobs in read for job in jobs]
    assert kinds == ["TrainingRuntime", "TrainJob", "RayJob", *["Pod"] * 4]
    with pytest.raises(CommandError, match="PyTorchJob: nothing runs it in a rehearsal; use Job, JobSet, RayJob, "):
        read_jobs(fleet, EXAMPLES / "kinds-of-jobs/pytorchjob.yaml")


def test_pods_run_no_longer_than_is_said(tmp_path: Path) -> None:
    fleet = parse_fleet_text((EXAMPLES / "jobs/fleet.yaml").read_text(), "fleet.yaml")
    file = tmp_path / "job.yaml"
    file.write_text((EXAMPLES / "jobs/finetune-with-token.yaml").read_text())

    def annotations(most: int | None) -> Any:
        [job] = read_jobs(fleet, file, most)
        return job["spec"]["template"]["metadata"]["annotations"]

    assert [annotations(most) for most in (None, 10, 6000)] == [
        {"kueue-fleet.dev/run-seconds": seconds} for seconds in ("5400", "10", "5400")
    ]
    file.write_text(file.read_text().replace("5400", "²"))
    with pytest.raises(CommandError, match="'²' is not a number of seconds; write 0 to 1,000,000,000, in quotes"):
        annotations(10)


def test_what_pulumi_waits_for_is_said_ever_more_seldom() -> None:
    output: list[str] = []
    clock = iter(range(1000, 1300, 10))
    long_waits = LongWaits(output.append, lambda: float(next(clock)))
    kind = "kubernetes:kueue.x-k8s.io/v1beta2:MultiKueueCluster"
    stuck = Operation("create", kind, "fleet/w", {}, 1000, status='Waiting for condition "Active=True"')
    for _ in range(30):
        long_waits([stuck])
    assert output == [
        f'waiting for MultiKueueCluster fleet/w, {seconds} s so far (create): Waiting for condition "Active=True"'
        for seconds in (60, 120, 240)
    ]


def test_of_many_waits_some_are_named() -> None:
    output: list[str] = []
    LongWaits(output.append, lambda: 1060.0)(
        [Operation("create", "kubernetes:v1:Pod", name, {}, 1000) for name in "abcde"]
    )
    assert output == [*(f"waiting for Pod {name}, 60 s so far (create)" for name in "abc"), "and for 2 more"]


class TestLog:
    @pytest.fixture(autouse=True)
    def clock(self) -> None:
        self.seconds = 1000.0

    def lines(self, capsys: pytest.CaptureFixture[str]) -> list[str]:
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    def test_the_first_column_is_the_time_since_the_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        log = JobLog(900.0, 300.0, lambda: self.seconds)
        log([view("a", JobState.PENDING), view("b", JobState.PENDING)])
        self.seconds = 1007.0
        log([view("a", JobState.ADMITTED, "east"), view("b", JobState.PENDING)])
        assert self.lines(capsys) == ["100 s a Pending", "100 s b Pending", "107 s a Admitted east"]

    def test_it_says_what_it_waits_for_when_nothing_happens(self, capsys: pytest.CaptureFixture[str]) -> None:
        log = JobLog(900.0, 300.0, lambda: self.seconds)
        stuck = [
            view("a", JobState.FINISHED, "east"),
            view(
                "b",
                JobState.QUOTA_RESERVED,
                "",
                *(Answer(item, "Unsatisfied: dws Pending") for item in ("east", "west")),
            ),
            view("c", JobState.ADMITTED, "east"),
        ]
        log(stuck)
        self.lines(capsys)
        for self.seconds in (1005.0, 1009.5):
            log(stuck)
        assert self.lines(capsys) == []
        self.seconds = 1010.0
        log(stuck)
        assert self.lines(capsys) == [
            "110 s waiting for 2 jobs, 290 s at most:",
            "110 s b: east, west: Unsatisfied: dws Pending",
            "110 s c: Admitted, not finished",
        ]
        for self.seconds in (1011.0, 1039.0):
            log(stuck)
        assert self.lines(capsys) == []
        self.seconds = 1040.0
        log(stuck)
        assert self.lines(capsys)[0] == "140 s waiting for 2 jobs, 260 s at most:"

    def test_many_are_counted(self, capsys: pytest.CaptureFixture[str]) -> None:
        log = JobLog(900.0, 300.0, lambda: self.seconds)
        views = [
            view(f"j{number}", JobState.PENDING, "", Answer("solo", "WaitingForQuota: none")) for number in range(9)
        ]
        log(views)
        self.seconds = 1020.0
        log(views)
        assert self.lines(capsys)[-1] == "120 s and 4 more"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path / "s"))
    result = Session.for_stack("tiny", tmp_path)
    result.paths.root.mkdir(parents=True)
    return result


def test_the_projects_jobs_are_submitted_once_to_a_kept_rehearsal(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "examples" / "tiny" / "jobs.yaml"
    assert find_jobs(session, None, none=False).none == f"there is no {file}; name a file with --jobs"
    file.parent.mkdir(parents=True)
    file.write_text("")
    assert find_jobs(session, None, none=False).none is None
    session.paths.submitted.write_text(f"/other.yaml\n{file}\n")
    # Of a rehearsal that was killed; the next one begins anew.
    assert find_jobs(session, None, none=False).none is None
    mark_kept(session.paths)
    again = find_jobs(session, None, none=False)
    assert again.none == f"an earlier run submitted them; --jobs {file} submits them again"
    assert again.followed
    assert find_jobs(session, file, none=False).none is None


def test_no_jobs_at_all(session: Session) -> None:
    jobs = find_jobs(session, None, none=True)
    assert (jobs.none, jobs.followed) == ("--no-jobs", False)
