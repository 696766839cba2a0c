"""`kueue-fleet init`: answers in, a fleet file that `check` passes out."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kueue_fleet.cli import app, console
from kueue_fleet.spec import FleetSpec, check_fleet, parse_fleet_text


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["init", *arguments], input=stdin)


def written(folder: Path, *arguments: str) -> FleetSpec:
    result = run(*arguments, "-C", str(folder), "--yes")
    assert result.exit_code == 0, result.output
    [file] = folder.iterdir()
    assert f"{file}: written, and valid. Next:" in result.stdout
    fleet = parse_fleet_text(file.read_text(), str(file))
    assert check_fleet(fleet) == []
    return fleet


def test_one_region_is_one_cluster(tmp_path: Path) -> None:
    fleet = written(tmp_path, "dev", "--project", "my-project", "--region", "us-central1")
    assert [(cluster.name, cluster.role) for cluster in fleet.clusters] == [("dev-us-central1", "standalone")]
    assert [team.name for team in fleet.teams] == ["team-a", "team-b"]
    assert fleet.multi_kueue is None


def test_several_regions_have_a_manager_and_workers(tmp_path: Path) -> None:
    regions = ["--region", "europe-west4", "--region", "us-east4"]
    fleet = written(
        tmp_path, "prod", "--project", "my-project", *regions, "--gpus", "32", "--accelerator", "nvidia-h100-80gb",
        "--team", "vision",
    )  # fmt: skip
    assert fleet.worker_names == ("worker-europe-west4", "worker-us-east4")
    assert fleet.manager is not None
    assert fleet.manager.region == "europe-west4"
    [quota, *_] = fleet.cluster_queues[0].resource_groups[0].flavors[0].resources
    assert str(quota.nominal_quota) == "32"


def test_on_a_terminal_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "interactive", lambda: True)
    answers = "lab\nmy-project\nus-central1, us-east4\n\n4\nvision language\n"
    result = run("-C", str(tmp_path), stdin=answers)
    assert result.exit_code == 0, result.output
    fleet = parse_fleet_text((tmp_path / "Pulumi.lab.yaml").read_text(), "lab")
    assert len(fleet.clusters) == 3
    assert [team.name for team in fleet.teams] == ["vision", "language"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dev", "--yes"], "--project: is missing; give your Google Cloud project id"),
        (["dev", "--yes", "--project", "My_Project"], "project:"),
        (["dev", "--yes", "--project", "my-project", "--region", "us-centrall"], "is no region of Google Cloud"),
        (["Dev Fleet", "--yes", "--project", "my-project"], "name:"),
        (["dev", "--yes", "--project", "my-project", "--team", "Team A"], "teams[Team A].name"),
    ],
)
def test_slips_are_named_and_nothing_is_written(tmp_path: Path, arguments: list[str], message: str) -> None:
    failure = run(*arguments, "-C", str(tmp_path)).exception
    assert isinstance(failure, console.CommandError)
    assert message in str(failure)
    assert not list(tmp_path.iterdir())


def test_a_file_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text("mine")
    failure = run("dev", "--yes", "--project", "my-project", "-C", str(tmp_path)).exception
    assert "is there already" in str(failure)
    assert (tmp_path / "Pulumi.dev.yaml").read_text() == "mine"
