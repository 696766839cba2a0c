"""What `upgrade --rehearse` says of the jobs that it submitted, and whether that is good."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from tests.simulation.fleets import fleet, fleet_data

from kueue_admission.cli.console import CommandError
from kueue_fleet.cli.given_fleets import given_fleet
from kueue_fleet.cli.rehearsed_upgrade import rehearse_upgrade
from kueue_fleet.cli.watched_jobs import Row, Seen, ask_again, report
from kueue_fleet.fleet_simulation.recorded import Recorder
from kueue_rehearsal.jobs.views import JobState, JobView
from kueue_rehearsal.jobs.witness import Sighting, Witnesses


def witnesses(*jobs: str, jobset: str = "") -> Witnesses:
    """Of one worker, which had these Jobs, one after the other."""
    result = Witnesses({})
    labels = {"jobset.sigs.k8s.io/jobset-name": jobset} if jobset else {}
    metadata = [{"name": name, "namespace": "team-a", "labels": labels} for name in jobs]
    seen = {str(at): Sighting({"metadata": item}, at, at + 0.9) for at, item in enumerate(metadata)}
    result.jobs["worker"] = cast("Any", SimpleNamespace(seen=seen))
    return result


def reported(state: JobState, *jobs: str) -> bool:
    stream = cast("Any", SimpleNamespace(submitted=[], refusals=["worker: its webhook does not answer"]))
    view = JobView("Job", "team-a", "train-001", state, "worker", ("l4",), 3.0)
    seen = Seen(stream, witnesses(*jobs), Recorder("manager"))
    return report([Row.of(view, seen, fleet())], seen)


def test_jobs_that_ran_once_are_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(JobState.FINISHED, "train-001")
    printed = capsys.readouterr().out
    assert "every job finished, and each ran once" in printed
    assert "worker: its webhook does not answer" in printed


@pytest.mark.parametrize(
    ("state", "jobs", "said"),
    [
        (JobState.ADMITTED, ["train-001"], "train-001: is Admitted, not finished"),
        (JobState.FAILED, ["train-001"], "train-001: is Failed, not finished"),
        (JobState.FINISHED, ["train-001", "train-001"], "train-001: was started 2 times"),
    ],
)
def test_a_job_that_is_lost_or_ran_twice_is_not(
    state: JobState, jobs: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not reported(state, *jobs)
    assert said in capsys.readouterr().out


def test_of_a_kind_without_jobs_it_is_not_known_how_often_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(JobState.FINISHED)
    assert "every job finished, and how often 1 job ran is not known" in capsys.readouterr().out


def test_a_jobset_ran_where_its_jobs_are() -> None:
    result = witnesses("train-a-0", "train-b-0", jobset="train").runs_of("team-a", "train")
    assert [(cluster, item["metadata"]["name"]) for cluster, item in result] == [
        ("worker", "train-a-0"),
        ("worker", "train-b-0"),
    ]


def test_a_job_that_ran_twice_at_one_time_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    seen = Seen(cast("Any", SimpleNamespace(submitted=[], refusals=[])), witnesses("train-001"), Recorder("manager"))
    other = Sighting({"metadata": {"name": "train-001", "namespace": "team-a"}}, 0.1, 0.5)
    seen.witnesses.jobs["other"] = cast("Any", SimpleNamespace(seen={"other": other}))
    view = JobView("Job", "team-a", "train-001", JobState.FINISHED, "worker", ("l4",), 3.0)
    assert not report([Row.of(view, seen, fleet())], seen)
    assert "ran twice at one time: train-001 on worker until 0.9 and on other from 0.1" in capsys.readouterr().out


def test_releases_that_meet_between_two_steps_have_to_go_together(tmp_path: Path) -> None:
    """Back to 0.17 the manager goes first, and the workers finish what it copies there."""
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump(fleet_data()))
    with pytest.raises(CommandError, match=r"clusters\[worker-us-east4\]\.kueue\.version: 0\.19\.2, whose Workloads"):
        rehearse_upgrade(file, given_fleet(file), fleet(), "0.17.1", [])


@pytest.mark.parametrize(("status", "asked"), [({}, True), ({"nominatedClusterNames": ["worker"]}, False)])
def test_a_job_that_kueue_does_not_dispatch_is_looked_at_again(status: dict[str, Any], asked: bool) -> None:
    annotated: list[tuple[str, str]] = []
    clients = cast("Any", SimpleNamespace(merge=lambda cluster, path, _: annotated.append((cluster, path))))
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}
    conditions = [{**reserved, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    metadata = {"name": "job-train-001-a", "namespace": "team-a"}
    workload = {"metadata": metadata, "spec": {"podSets": []}, "status": {**status, "conditions": conditions}}
    seen = Seen(cast("Any", None), witnesses(), Recorder("manager"))
    ask_again(seen, clients, "manager", [workload])
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team-a/workloads/job-train-001-a"
    assert annotated == ([("manager", path)] if asked else [])
    assert list(seen.left) == (["team-a/job-train-001-a"] if asked else [])
    ask_again(seen, clients, "manager", [workload])
    assert len(annotated) == asked, "once in 30 seconds"


def test_a_file_without_a_project_beside_it_takes_the_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, asked = tmp_path / "fleet.yaml", list[Path]()
    file.write_text(yaml.safe_dump(fleet_data()))

    def for_stack(_: str, folder: Path) -> None:
        asked.append(folder)
        raise ZeroDivisionError

    monkeypatch.setattr("kueue_rehearsal.session.Session.for_stack", for_stack)
    with pytest.raises(CommandError, match="name its folder with --project"):
        rehearse_upgrade(file, given_fleet(file), fleet(), "0.18.3", [])
    with pytest.raises(ZeroDivisionError):
        rehearse_upgrade(file, given_fleet(file), fleet(), "0.18.3", [], tmp_path / "project")
    assert asked == [tmp_path / "project"]
