"""`kueue-fleet evidence`: what it prints of a history, and how it ends."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.history.workloads import ADMITTED, ASSIGNED, RESERVED, workload
from typer.testing import CliRunner, Result

from kueue_admission.cli.console import CommandError
from kueue_fleet.cli import app
from kueue_fleet.controller.history import Watched

FLEET = Path(__file__).parents[2] / "stacks" / "Pulumi.prod.yaml"
NOVEMBER = ("--from", "2026-11-01", "--to", "2026-12-01")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["evidence", *arguments], env={"COLUMNS": "120"})


def refusal(done: Result) -> str:
    assert isinstance(done.exception, CommandError)
    return str(done.exception)


@pytest.fixture
def history(tmp_path: Path) -> tuple[str, str]:
    """A fleet with a team that is bound to Europe, and the history of one of its jobs, which was in America."""
    result = workload(RESERVED, ADMITTED, admission=ASSIGNED)
    result["metadata"] |= {"namespace": "language", "labels": {"kueue.x-k8s.io/multikueue-origin": "m"}}
    (tmp_path / "worker.json").write_text(json.dumps(result))
    source = f"worker-us-central1={tmp_path / 'worker.json'}"
    store = str(tmp_path / "history")
    recorded = CliRunner().invoke(app, ["record", str(FLEET), "--store", store, "--from", source])
    assert recorded.exit_code == 0, recorded.output
    return str(FLEET), store


def test_a_job_that_was_outside_is_named_and_ends_with_3(history: tuple[str, str]) -> None:
    fleet, store = history
    result = run(fleet, "--store", store, *NOVEMBER)
    assert result.exit_code == 3
    assert "was on worker-us-central1, in us-central1, from" in result.stdout
    assert "the team's allowedRegions allows only europe-west4" in result.stdout


def test_a_job_is_of_the_team_that_the_file_says_whoever_recorded_it(history: tuple[str, str], tmp_path: Path) -> None:
    fleet, _ = history
    other = tmp_path / "other.yaml"  # In which the namespace is of no team that is bound to a region.
    other.write_text(Path(fleet).read_text().replace("language", "poetry"))
    again = str(tmp_path / "again")
    source = f"worker-us-central1={tmp_path / 'worker.json'}"
    assert CliRunner().invoke(app, ["record", str(other), "--store", again, "--from", source]).exit_code == 0
    assert run(fleet, "--store", again, *NOVEMBER).exit_code == 3


def test_a_time_without_jobs_ends_with_0(history: tuple[str, str]) -> None:
    fleet, store = history
    result = run(fleet, "--store", store, "--from", "2026-10-01", "--to", "2026-10-02")
    assert result.exit_code == 0
    assert "No job that the history has ran where it may not." in result.stdout
    assert "not followed 2026-10-01T00:00:00Z to 2026-10-02T00:00:00Z" in result.stdout


def test_of_a_job_whose_worker_is_not_known_nothing_is_said(history: tuple[str, str], tmp_path: Path) -> None:
    fleet, _ = history
    store, manager = str(tmp_path / "again"), f"manager-europe-west4={tmp_path / 'worker.json'}"
    assert CliRunner().invoke(app, ["record", fleet, "--store", store, "--from", manager]).exit_code == 0
    result = run(fleet, "--store", store, *NOVEMBER)
    assert result.exit_code == 0
    assert "No job whose region is known ran where it may not." in result.stdout


def test_whoever_has_the_document_can_make_its_digest(history: tuple[str, str]) -> None:
    fleet, store = history
    document = json.loads(run(fleet, "--store", store, *NOVEMBER, "-o", "json").stdout)
    lines = (json.dumps(stay, sort_keys=True, separators=(",", ":")) + "\n" for stay in document["stays"])
    assert document["sha256"] == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_without_teams_that_are_bound_there_is_nothing_to_show(tmp_path: Path) -> None:
    lab = FLEET.parents[1] / "examples" / "lab" / "fleet.yaml"
    assert "none has allowedRegions" in refusal(run(str(lab), "--store", str(tmp_path), *NOVEMBER))


def test_a_team_that_is_not_there_is_refused(tmp_path: Path) -> None:
    told = refusal(run(str(FLEET), "--store", str(tmp_path), *NOVEMBER, "--team", "langauge"))
    assert "did you mean language?" in told


def test_a_cluster_is_followed_while_every_kind_is() -> None:
    watched = Watched()
    watched.hear("Workload", 1.0, follows=True)
    assert watched.seen_until(2.0) is None
    watched.hear("Node", 3.0, follows=True)
    assert [watched.seen_until(4.0), watched.seen_until(5.0)] == [3.0, 4.0]
    watched.hear("Node", 6.0, follows=False)
    assert watched.seen_until(7.0) is None
