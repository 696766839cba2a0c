"""`kueue-fleet init`: answers in, a fleet file that `check` passes out."""

from __future__ import annotations

import json
import re
import resource
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from job_files import jobs_in
from kueue_admission.cli import console
from kueue_admission.cli.input_files import write_text
from kueue_fleet.cli import app
from kueue_fleet.fleet_file import FleetSpec, ServiceAccountToken, check_fleet, parse_fleet_text
from kueue_fleet.google.resources import resources_on


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["init", *arguments], input=stdin)


def written(folder: Path, *arguments: str) -> FleetSpec:
    result = run(*arguments, "-C", str(folder), "--yes")
    assert result.exit_code == 0, result.output
    [file] = folder.glob("Pulumi.*.yaml")
    assert f"{file}: written, and valid.\n" in result.stdout
    fleet = parse_fleet_text(file.read_text(), str(file))
    assert [problem.path for problem in check_fleet(fleet)] == (["multiKueue.dispatcher"] if fleet.multi_kueue else [])
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


def test_a_cluster_of_any_kubernetes_is_one_without_google_cloud(tmp_path: Path) -> None:
    fleet = written(tmp_path, "lab", "--kubernetes", "kind-kind")
    [cluster] = fleet.clusters
    assert (cluster.name, cluster.role, cluster.platform) == ("kind-kind", "standalone", "Kubernetes")
    assert resources_on(fleet) == ()


def test_a_context_that_is_no_name_of_a_cluster_is_named(tmp_path: Path) -> None:
    [cluster] = written(tmp_path, "lab", "--kubernetes", "admin@k8s.example").clusters
    assert (cluster.name, cluster.context) == ("lab", "admin@k8s.example")


def test_rotation_is_the_month_in_which_the_tokens_are_made(tmp_path: Path) -> None:
    fleet = written(tmp_path, "prod", "--project", "my-project", "--region", "europe-west4,us-east4")
    assert fleet.multi_kueue is not None
    credentials = fleet.multi_kueue.credentials
    assert isinstance(credentials, ServiceAccountToken)
    assert credentials.rotation == f"{date.today():%Y-%m}"  # noqa: DTZ011
    assert credentials.rotate_by == date.today() + timedelta(days=90)  # noqa: DTZ011


@pytest.mark.parametrize(
    "where",
    [
        ["--project", "my-project", "--region", "us-central1", "--gpus", "1"],
        ["--project", "my-project", "--region", "europe-west4,us-east4", "--gpus", "1"],
        ["--kubernetes", "kind-kind"],
    ],
    ids=["one region", "two regions", "any Kubernetes"],
)
def test_the_jobs_run_on_the_fleet(tmp_path: Path, where: list[str]) -> None:
    written(tmp_path, "dev", *where)
    jobs = tmp_path / "examples/dev/jobs.yaml"
    command = ["simulate", "fleet", str(tmp_path / "Pulumi.dev.yaml"), "--jobs", str(jobs), "--output", "json"]
    workloads = json.loads(CliRunner().invoke(app, command).stdout)["workloads"]
    assert [(item["namespace"], item["state"]) for item in workloads] == [
        ("team-a", "Finished"),
        ("team-b", "Finished"),
    ]
    assert len(jobs_in(jobs)) == 2


def test_jobs_are_where_a_rehearsal_looks_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: p")
    monkeypatch.chdir(tmp_path)
    result = run("dev", "--project", "my-project", "--yes")
    assert result.stdout == (
        "stacks/Pulumi.dev.yaml: written, and valid.\n"
        "examples/dev/jobs.yaml: written: a job for each team.\n"
        "Next:\n"
        "  kueue-fleet simulate fleet stacks/Pulumi.dev.yaml --jobs examples/dev/jobs.yaml\n"
        "  kueue-fleet rehearse run --stack dev\n"
        "  pulumi stack init dev\n"
        "  pulumi up --stack dev\n"
    )
    assert (tmp_path / "examples/dev/jobs.yaml").is_file()


def test_without_a_project_one_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("dev", "--project", "my-project", "--yes")
    assert result.stdout.splitlines()[:4] == [
        "stacks/Pulumi.dev.yaml: written, and valid.",
        "Pulumi.yaml: written.",
        "__main__.py: written.",
        "examples/dev/jobs.yaml: written: a job for each team.",
    ]
    assert yaml.safe_load(Path("Pulumi.yaml").read_text()) == {
        "name": "dev", "runtime": "python", "stackConfigDir": "stacks",
    }  # fmt: skip
    again = run("prod", "--project", "my-project", "--yes")
    assert again.stdout.splitlines()[:2] == [
        "stacks/Pulumi.prod.yaml: written, and valid.",
        "examples/prod/jobs.yaml: written: a job for each team.",
    ]


def test_a_program_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text("mine")
    assert run("dev", "--project", "my-project", "--yes", "-C", str(tmp_path)).exit_code == 0
    assert (tmp_path / "__main__.py").read_text() == "mine"
    assert "stackConfigDir: ." in (tmp_path / "Pulumi.yaml").read_text()


class TestQuestions:
    @pytest.fixture(autouse=True)
    def terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(console, "on_a_terminal", lambda: True)

    def test_they_are_asked_one_after_the_other(self, tmp_path: Path) -> None:
        answers = "lab\nmy-project\nus-central1, us-east4\n\n4\nvision language\n"
        result = run("-C", str(tmp_path), stdin=answers)
        assert result.exit_code == 0, result.output
        fleet = parse_fleet_text((tmp_path / "Pulumi.lab.yaml").read_text(), "lab")
        assert len(fleet.clusters) == 3
        assert [team.name for team in fleet.teams] == ["vision", "language"]
        assert "Kinds of GPU in us-central1, us-east4: nvidia-a100-80gb, " in result.stdout

    def test_a_wrong_answer_is_asked_for_again_and_the_others_are_kept(self, tmp_path: Path) -> None:
        (tmp_path / "Pulumi.taken.yaml").write_text("mine")
        answers = [
            *("Lab!", "taken", "lab"),
            *("", "12345", "My Project", "my-project"),
            *("us-centrl1", ",", "us-east4"),
            *("nvidia l4", "?", "nvidia-l44", "nvidia-tesla-t4"),
            *("many", "0", "٣", "3"),
            *("Team A", "vision"),
        ]
        result = run("-C", str(tmp_path), stdin="".join(f"{answer}\n" for answer in answers))
        assert result.exit_code == 0, result.output
        asked = {"Name of": 3, "Google Cloud": 4, "Regions": 3, "Kind of GPU": 4, "GPUs in each": 4, "Teams": 2}
        assert {question: len(re.findall(f"{question} .*?: ", result.output)) for question in asked} == asked
        for text in (
            "did you mean us-central1?",
            "nvidia-l44 is not a known kind of GPU; did you mean nvidia-l4?",
            "is a project's number",
            "already exists",
            "many is not a whole",
        ):
            assert text in result.output
        fleet = parse_fleet_text((tmp_path / "Pulumi.lab.yaml").read_text(), "lab")
        assert fleet.flavors[0].node_labels == {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
        assert (tmp_path / "Pulumi.taken.yaml").read_text() == "mine"

    def test_what_is_given_is_not_asked_for(self, tmp_path: Path) -> None:
        given = ["lab", "--project", "my-project", "--region", "us-east4", "--gpus", "2", "--team", "vision"]
        result = run(*given, "-C", str(tmp_path), stdin="\n")
        assert result.exit_code == 0, result.output
        assert "Name of the fleet" not in result.output

    def test_answers_that_end(self, tmp_path: Path) -> None:
        result = run("-C", str(tmp_path), stdin="lab\n")
        assert str(result.exception) == "the answers end before the last question; nothing is written"
        assert result.output.endswith("\n")
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dev", "--yes"], "--project: is missing; give your Google Cloud project id"),
        (["dev", "--yes", "--project", "My_Project"], '--project: "My_Project" is not a valid project ID'),
        (["dev", "--yes", "--project", "my-project", "--region", "us-centrall"], "is not a region of Google Cloud"),
        (["Dev Fleet", "--yes", "--project", "my-project"], 'NAME: "Dev Fleet" has characters'),
        (["dev", "--yes", "--project", "my-project", "--team", "Team A"], '--team: "Team A" has characters'),
        (["dev", "--yes", "--project", "1", "--team", "A", "--region", "x"], "--team"),
    ],
)
def test_slips_are_named_and_nothing_is_written(tmp_path: Path, arguments: list[str], message: str) -> None:
    failure = run(*arguments, "-C", str(tmp_path)).exception
    assert isinstance(failure, console.CommandError)
    assert failure.exit_code == 2
    assert message in str(failure)
    assert not list(tmp_path.iterdir())


def test_files_are_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text("mine")
    failure = run("dev", "--yes", "--project", "my-project", "-C", str(tmp_path)).exception
    assert "already exists" in str(failure)
    assert (tmp_path / "Pulumi.dev.yaml").read_text() == "mine"
    (tmp_path / "Pulumi.dev.yaml").unlink()
    jobs = tmp_path / "examples/dev/jobs.yaml"
    jobs.parent.mkdir(parents=True)
    jobs.write_text("mine")
    assert run("dev", "--yes", "--project", "my-project", "-C", str(tmp_path)).exit_code == 0
    assert jobs.read_text() == "mine"


def test_a_file_stays_as_it_was_where_the_disk_is_full(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text("mine")
    file.chmod(0o640)
    write_text(file, "new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o640)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(console.CommandError, match="cannot be written: File too large; name another file"):
            write_text(file, "more" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("file")
    write_text(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "file").read_text() == "new"
