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
    done = subprocess.run(
        [ACTION / "check-fleet", "--base", "main", "--comment", clone / "comment.md", *options],
        cwd=clone, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    comment = clone / "comment.md"
    return done.returncode, comment.read_text() if comment.exists() else "", done.stderr


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
    code, comment, said = judge(clone, *DAY, "--max-wait", "training=1", FILE)
    assert code == 1
    assert summaries(comment)[-1] == "budget for waiting: **failed** (exit code 3)"
    assert "over the goal of 1 s" in comment
    assert "over the goal of 1 s" in said


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
    assert "The file is new: `main` does not have it." in comment


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "the fleet file is missing"),
        (("--max-wait", "a=1", FILE), "--max-wait and --until: simulate a --workload"),
        (("--stack", "dev", FILE), "--stack and --policy-pack go together"),
        (("--bse", "main", FILE), "--bse: there is no such option"),
        ((FILE, "--workload"), "--workload: its value is missing"),
        ((FILE, "other.yaml"), "other.yaml: one file only"),
    ],
)
def test_a_wrong_call_is_refused(clone: Path, options: tuple[str, ...], says: str) -> None:
    code, comment, said = judge(clone, *options)
    assert (code, comment) == (2, "")
    assert said.startswith(f"check-fleet: {says}\nusage: check-fleet ")


def test_the_action_passes_on_each_of_its_inputs_and_nothing_else() -> None:
    text = (ACTION / "action.yml").read_text()
    action: dict[str, Any] = yaml.safe_load(text)
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(action["inputs"])
    for step in action["runs"]["steps"]:
        # A value in the text of a command would be run by the shell, whatever a pull request writes there.
        assert "${{" not in step["run"]
        subprocess.run(["bash", "-n", "-c", step["run"]], check=True)


def test_the_action_calls_the_script_with_what_it_was_given(clone: Path) -> None:
    action: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text())
    [step] = [each for each in action["runs"]["steps"] if each["name"] == "Judge"]
    given = dict.fromkeys(step["env"], "") | {
        "FILE": FILE, "BASE": "main", "COMMENT": str(clone / "comment.md"), "WORKLOAD": "day.yaml", "UNTIL": "40000",
        "MAX_WAIT": "training=36000 adhoc=36000", "GITHUB_ACTION_PATH": str(ACTION),
        "GITHUB_STEP_SUMMARY": str(clone / "summary.md"), "PREFLIGHT": "false",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=clone, env={**os.environ, **given}, check=False)
    assert done.returncode == 0
    assert (clone / "summary.md").read_text() == (clone / "comment.md").read_text()
    assert summaries((clone / "comment.md").read_text())[-1] == "budget for waiting: passed"
