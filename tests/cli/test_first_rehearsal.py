"""Before it builds its engines, a rehearsal shows what is known of the stack, and how long the build takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueue_fleet.cli.first_rehearsal import show_what_is_known
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.given_fleets import given_fleet
from kueue_fleet.cli.rehearsed_jobs import Jobs
from kueue_rehearsal.session import Session

ROOT = Path(__file__).parents[2]


def shown(jobs: Jobs, capsys: pytest.CaptureFixture[str]) -> str:
    session = Session.for_stack("dws-multikueue", ROOT)
    given = given_fleet(session.stack_file)
    show_what_is_known(session, given, load_fleet(given), jobs, 1100.0)
    return capsys.readouterr().out


def test_what_is_known_comes_first_and_then_the_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(Jobs(ROOT / "examples/dws-multikueue/jobs.yaml"), capsys)
    parts = (
        "Pulumi.dws-multikueue.yaml: valid",
        "4 clusters, 0 node pools, 121 Kubernetes objects",
        "team-vision/detector-6",
        "builds the engines once, about 19 minutes; Ctrl-C keeps what is built",
        "kueue-fleet render ",
    )
    places = [out.find(part) for part in parts]
    assert -1 not in places, out
    assert places == sorted(places)


def test_a_job_that_is_not_simulated_is_named_and_the_rest_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "cluster.yaml"
    job.write_text(
        "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, namespace: team-vision}, spec: {rayVersion: 1}}"
    )
    out = shown(Jobs(job), capsys)
    assert "Simulation    not known: " in out
    assert "First run " in out


def test_without_jobs_nothing_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Simulation" not in shown(Jobs(Path(), "--no-jobs"), capsys)
