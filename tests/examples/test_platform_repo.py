"""The platform team's repository: its own tests, and every step of its pipeline that needs no cloud account."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.examples.platform_pipeline import ELSEWHERE, REPOSITORY, WORKFLOW, Step, step, steps, workflow

import pulumi_mocks
from forked_command import program_folder

HERE = [each for each in steps() if each.name not in ELSEWHERE]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone on a branch that gives away half of the spot quota, with main as `origin/main`."""
    folder = tmp_path / "platform-repo"
    shutil.copytree(REPOSITORY, folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git("add", ".")
    git("commit", "--message=fleet")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    return folder


def run(given: Step, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The step as GitHub's runner does it, for a pull request to main."""
    own = {key: re.sub(r"\$\{\{ *github\.base_ref *\}\}", "main", value) for key, value in given.environment.items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", given.run],
        cwd=folder,
        env={
            **os.environ,
            "PATH": os.pathsep.join((program_folder(), str(Path(sys.executable).parent), os.environ["PATH"])),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "NO_COLOR": "1",
            **own,
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_pipeline_checks_tests_simulates_and_previews_before_it_brings_up() -> None:
    jobs = workflow()["jobs"]
    assert [jobs[name].get("needs") for name in ("check", "preview", "up")] == [None, "check", "preview"]
    assert {entry.name for entry in steps()} - {each.name for each in HERE} == set(ELSEWHERE), "each has its reason"
    assert all("--policy-pack policies" in step(name).run for name in ("Preview", "Up", "Judge the state"))
    assert "secrets." not in "".join(each.run for each in steps()), "secrets come by the environment"
    assert "github." not in "".join(item.run for item in steps()), "so does what a stranger can write"


@pytest.mark.parametrize("given", HERE, ids=lambda given: given.name)
def test_a_step_that_needs_no_cloud_account(given: Step, clone: Path) -> None:
    result = run(given, clone)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_page_shows_the_step_that_runs_its_tests() -> None:
    command = step("Test the component and the rules").run
    page = (REPOSITORY.parents[1] / "docs" / "tasks" / "own-component.md").read_text()
    assert re.search(rf"^\$ cd examples/platform-repo && {command} .*\n\d+ passed$", page, re.MULTILINE)


def test_a_change_is_told_and_a_day_that_takes_too_long_fails(clone: Path) -> None:
    fleet = clone / "Pulumi.dev.yaml"
    fleet.write_text(fleet.read_text().replace("nvidia.com/gpu, nominalQuota: 16", "nvidia.com/gpu, nominalQuota: 8"))
    told = run(step("Say what changes"), clone)
    assert told.returncode == 0, told.stderr
    assert "training" in (clone / "summary.md").read_text()
    day = run(step("Simulate a day"), clone)
    assert day.returncode == 3
    assert "clusterQueues[training]" in day.stderr
    assert "over the goal of 1800 s" in day.stderr
    assert "<html" in (clone / "day.html").read_text(), "the report is there all the more"


def test_a_fleet_that_breaks_a_rule_fails_at_once(clone: Path) -> None:
    fleet = clone / "Pulumi.dev.yaml"
    before, _, after = fleet.read_text().rpartition("- name: l4-spot\n")
    fleet.write_text(f"{before}- name: l4-sport\n{after}")
    result = run(step("Check the fleet"), clone)
    assert result.returncode == 1
    assert "there is no flavor l4-sport" in result.stderr


def test_kueue_fleet_is_installed_from_the_clone() -> None:
    [installing] = {entry.run.partition("pip install ")[2].strip() for entry in steps() if entry.name == "Install"}
    assert f"pip install {installing}" in (REPOSITORY / "README.md").read_text()
    # All else is installed already: without an index, only what the file itself names can be found.
    offline = ["--dry-run", "--no-index", "--no-build-isolation", "--report", "-", "--quiet"]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *offline, *installing.split()]
    result = subprocess.run(pip, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    results = {each["metadata"]["name"]: each["download_info"]["url"] for each in json.loads(result.stdout)["install"]}
    clone = REPOSITORY.parents[1]
    ours = ["components/kueue_admission", "components/kueue_rehearsal", "policies"]
    assert set(results.values()) == {item.as_uri() for item in (REPOSITORY, clone, *(clone / path for path in ours))}


def test_the_program_takes_the_charts_of_the_stacks_config(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a rehearsal writes them there: the program itself does nothing for it."""
    monkeypatch.syspath_prepend(str(REPOSITORY))
    config = yaml.safe_load((REPOSITORY / "Pulumi.dev.yaml").read_text())["config"]
    charts = {"kueue": "/charts/kueue", "jobSet": "/charts/jobset"}
    # The project of the mocks is not the repository's.
    config |= {"kueue-fleet:charts": charts, "kueue-fleet:spaces": config["company-platform:spaces"]}
    program = str(REPOSITORY / "__main__.py")
    recording = pulumi_mocks.run(lambda: runpy.run_path(program, run_name="__main__") and None, config=config)
    assert {result.inputs["chart"] for result in recording.of_type("Release")} == set(charts.values())


def test_no_action_is_taken_from_a_branch() -> None:
    actions = re.findall(r"uses: (\S+)", WORKFLOW.read_text())
    assert actions
    assert all(re.fullmatch(r"[\w./-]+@v\d+", action) for action in actions)
