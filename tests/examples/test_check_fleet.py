"""The step for pull requests: its script on a change of a real repository, and the action that calls it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from forked_command import program_folder

ACTION = Path(__file__).parents[2] / "actions" / "check-fleet"
PLATFORM = Path(__file__).parents[2] / "examples" / "platform-repo"
FILE = "Pulumi.dev.yaml"
DAY = ("--workload", "day.yaml", "--until", "40000")


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the fleet file on its branch main, and a smaller quota in the working copy."""
    for name in (FILE, "day.yaml"):
        shutil.copy(PLATFORM / name, tmp_path)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "before")
    return tmp_path


def change(clone: Path, old: str, new: str) -> None:
    text = (clone / FILE).read_text()
    assert old in text
    (clone / FILE).write_text(text.replace(old, new, 1))


def judge(clone: Path, *options: str) -> tuple[int, str, str]:
    """The exit code, the comment, and what the script printed."""
    path = f"{program_folder()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    result = subprocess.run(
        [ACTION / "check-fleet", "--base", "main", "--comment", clone / "comment.md", *options],
        cwd=clone, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    comment = clone / "comment.md"
    return result.returncode, comment.read_text() if comment.exists() else "", result.stderr


def summaries(comment: str) -> list[str]:
    return re.findall(r"<summary>(.*)</summary>", comment)


def test_a_change_is_judged_in_one_comment(clone: Path) -> None:
    change(clone, "nominalQuota: 16 }", "nominalQuota: 12 }")
    code, comment, _ = judge(clone, *DAY, "--max-wait", "training=36000", FILE)
    assert code == 0, comment
    assert comment.startswith(f"## Fleet `{FILE}`\n")
    assert summaries(comment) == ["check: passed", "diff against main: passed", "budget for waiting: passed"]
    assert "4 nvidia.com/gpu (16 -> 12)" in comment


def test_a_budget_that_is_exceeded_fails_and_the_rest_is_shown(clone: Path) -> None:
    code, comment, output = judge(clone, *DAY, "--max-wait", "training=1", FILE)
    assert code == 1
    assert summaries(comment)[-1] == "budget for waiting: **failed** (exit code 3)"
    assert "over the goal of 1 s" in comment
    assert "over the goal of 1 s" in output


def test_after_an_error_nothing_else_is_tried(clone: Path) -> None:
    change(clone, "clusters:", "clustres:")
    code, comment, _ = judge(clone, FILE)
    assert code == 1
    assert summaries(comment) == ["check: **failed** (exit code 1)"]
    assert "did you mean clusters? [KF502]" in comment


def test_a_new_file_is_compared_with_nothing(clone: Path) -> None:
    shutil.copy(clone / FILE, clone / "Pulumi.new.yaml")
    code, comment, _ = judge(clone, "Pulumi.new.yaml")
    assert (code, summaries(comment)) == (0, ["check: passed"])
    assert "It is new: `main` does not have it." in comment


def test_a_base_that_is_not_there_fails(clone: Path) -> None:
    code, comment, _ = judge(clone, "--base", "nowhere", FILE)
    assert (code, summaries(comment)) == (1, ["check: passed", "diff against nowhere: **failed** (exit code 1)"])
    assert "there is no commit nowhere; fetch it, such as by fetch-depth: 0 of actions/checkout" in comment


@pytest.fixture
def shallow(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runner's clone of a pull request's commit alone, with a smaller quota."""
    git(clone, "checkout", "--quiet", "-b", "change")
    change(clone, "nominalQuota: 16 }", "nominalQuota: 12 }")
    git(clone, "commit", "--quiet", "--all", "-m", "after")
    result = tmp_path_factory.mktemp("runner") / "clone"
    git(
        clone,
        "clone",
        "--quiet",
        "--depth",
        "1",
        "--single-branch",
        "--branch",
        "change",
        f"file://{clone}",
        str(result),
    )
    return result


def test_a_shallow_clone_fetches_its_base(shallow: Path) -> None:
    code, comment, _ = judge(shallow, "--base", "origin/main", FILE)
    assert (code, summaries(comment)) == (0, ["check: passed", "diff against origin/main: passed"])
    assert "4 nvidia.com/gpu (16 -> 12)" in comment


def test_a_renamed_file_is_compared_with_what_it_was(clone: Path) -> None:
    (clone / "stacks").mkdir()
    git(clone, "mv", FILE, "stacks/Pulumi.lab.yaml")
    git(clone, "checkout", "--quiet", "-b", "change")
    git(clone, "commit", "--quiet", "-m", "renamed")
    text = (clone / "stacks/Pulumi.lab.yaml").read_text()
    (clone / "stacks/Pulumi.lab.yaml").write_text(text.replace("nominalQuota: 16 }", "nominalQuota: 12 }"))
    code, comment, _ = judge(clone, "stacks/Pulumi.lab.yaml")
    assert (code, summaries(comment)) == (0, ["check: passed", "diff against main: passed"])
    assert "4 nvidia.com/gpu (16 -> 12)" in comment


@pytest.mark.parametrize("options", [(), ("--comment", "/dev/stdout")])
def test_a_comment_on_standard_output_keeps_what_the_file_has(clone: Path, options: tuple[str, ...]) -> None:
    log, path = clone / "log", f"{program_folder()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    with log.open("w") as output:
        print("before", file=output, flush=True)
        subprocess.run(
            [ACTION / "check-fleet", "--base", "main", *options, FILE],
            cwd=clone, env={**os.environ, "PATH": path}, stdout=output, stderr=output, check=True,
        )  # fmt: skip
    assert log.read_text().startswith("before\ncheck: passed\n")
    assert f"\n## Fleet `{FILE}`\n" in log.read_text()


PROGRAM = """
import pulumi
import kueue_fleet as kf
from sizes import GPUS

size = pulumi.Config().require("size")
quota = kf.Quota(gpu=GPUS[size], cpu=48, memory="192Gi", ephemeral_storage="400Gi")
kf.Fleet("lab", kf.FleetSpec(
    "lab", "lab-project", clusters=[kf.Standalone("batch", "us-central1")], flavors=[kf.Flavor("l4", gpu="nvidia-l4")],
    cluster_queues=[kf.Queue("gpu", {"l4": quota})],
    teams=[kf.TeamEntry("vision", local_queues=[kf.TeamQueue("gpu", cluster_queue="gpu")])],
))
"""


@pytest.fixture
def program(clone: Path) -> Path:
    """A repository with a program of two stacks in a folder, whose environment git does not have."""
    folder = clone / "platform"
    (folder / ".venv" / "bin").mkdir(parents=True)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"')
    python.chmod(0o755)
    (folder / ".venv" / "pyvenv.cfg").write_text("")
    options = {"toolchain": "pip", "virtualenv": ".venv"}
    (folder / "Pulumi.yaml").write_text(
        yaml.safe_dump({"name": "platform", "runtime": {"name": "python", "options": options}})
    )
    for stack in ("dev", "prod"):
        (folder / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": {"platform:size": stack}}))
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "sizes.py").write_text('GPUS = {"dev": 4, "prod": 16}')
    (clone / ".gitignore").write_text(".venv/")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "a program")
    (folder / "sizes.py").write_text('GPUS = {"dev": 4, "prod": 12}')
    return clone


def test_a_program_may_have_its_environment_outside_of_the_repository(program: Path) -> None:
    environment = program.parent / f"{program.name}-environment"
    (program / "platform" / ".venv").rename(environment)
    project = yaml.safe_load((program / "platform" / "Pulumi.yaml").read_text())
    project["runtime"]["options"]["virtualenv"] = f"../../{environment.name}"
    (program / "platform" / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    git(program, "commit", "--quiet", "-m", "its environment is elsewhere", "platform/Pulumi.yaml")
    code, comment, _ = judge(program, "platform/Pulumi.prod.yaml")
    assert (code, summaries(comment)) == (0, ["check: passed", "diff against main: passed"]), comment
    assert "16 -> 12" in comment


def test_the_environment_of_a_program_may_be_a_link(program: Path) -> None:
    environment = program.parent / f"{program.name}-environment"
    link = program / "platform" / ".venv"
    link.rename(environment)
    link.symlink_to(environment)
    code, comment, _ = judge(program, "platform/Pulumi.prod.yaml")
    assert (code, summaries(comment)) == (0, ["check: passed", "diff against main: passed"]), comment


def test_stacks_of_a_program_are_compared_each_in_its_own_section(program: Path) -> None:
    stacks = [f"platform/Pulumi.{stack}.yaml" for stack in ("dev", "prod")]
    code, comment, _ = judge(program, *stacks)
    assert (code, summaries(comment)) == (0, ["check: passed", "diff against main: passed"] * 2), comment
    dev, prod = comment.split(f"## Fleet `{stacks[1]}`")
    assert "16 -> 12" in prod
    assert "16 -> 12" not in dev


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "the fleet file is missing"),
        (("--max-wait", "a=1", FILE), "--max-wait and --until: simulate a --workload"),
        (("--stack", "dev", FILE), "--stack and --policy-pack go together"),
        (("--bse", "main", FILE), "--bse: there is no such option"),
        ((FILE, "--workload"), "--workload: its value is missing"),
    ],
)
def test_a_wrong_call_is_refused(clone: Path, options: tuple[str, ...], says: str) -> None:
    code, comment, output = judge(clone, *options)
    assert (code, comment) == (2, "")
    assert output.startswith(f"check-fleet: {says}\nusage: check-fleet ")


def test_the_action_passes_on_each_of_its_inputs_and_nothing_else() -> None:
    text = (ACTION / "action.yml").read_text()
    action: dict[str, Any] = yaml.safe_load(text)
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(action["inputs"])
    for step in action["runs"]["steps"]:
        # A value in the text of a command would be run by the shell, whatever a pull request writes there.
        assert "${{" not in step["run"]
        subprocess.run(["bash", "-n", "-c", step["run"]], check=True)


def test_by_default_the_action_installs_what_its_own_commit_has(tmp_path: Path) -> None:
    action: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text())
    [step] = [item for item in action["runs"]["steps"] if item["name"] == "Install"]
    pip = tmp_path / "pip"
    pip.write_text('#!/bin/sh\nprintf "%s\\n" "$@"')
    pip.chmod(0o755)
    given = {"WHAT": "", "GITHUB_ACTION_PATH": str(ACTION), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["bash", "-e", "-c", step["run"]], env={**os.environ, **given}, capture_output=True, text=True, check=True
    )
    root = ACTION.parents[1]
    assert result.stdout.split() == ["install", "--quiet", f"{root}[preflight]", f"{root}/components/kueue_admission"]


def test_a_pull_request_from_a_fork_gets_no_comment_but_the_summary() -> None:
    action: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text())
    judge, comment = action["runs"]["steps"][-2:]
    assert "!github.event.pull_request.head.repo.fork" in comment["if"]
    assert "GITHUB_STEP_SUMMARY" in judge["run"]
    assert "GH_TOKEN" not in judge["env"]


def test_the_action_calls_the_script_with_what_it_was_given(clone: Path) -> None:
    action: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text())
    [step] = [item for item in action["runs"]["steps"] if item["name"] == "Judge"]
    given = dict.fromkeys(step["env"], "") | {
        "FILE": FILE, "BASE": "main", "COMMENT": str(clone / "comment.md"), "WORKLOAD": "day.yaml", "UNTIL": "40000",
        "MAX_WAIT": "training=36000 adhoc=36000", "GITHUB_ACTION_PATH": str(ACTION),
        "GITHUB_STEP_SUMMARY": str(clone / "summary.md"), "PREFLIGHT": "false",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    result = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=clone, env={**os.environ, **given}, check=False)
    assert result.returncode == 0
    assert (clone / "summary.md").read_text() == (clone / "comment.md").read_text()
    assert summaries((clone / "comment.md").read_text())[-1] == "budget for waiting: passed"
