"""Pulumi sets the environment up in a fresh clone: `pulumi install`, and `pulumi up` too, run `uv sync`.

That they do is toolchain/uv.go of github.com/pulumi/pulumi/sdk/v3/python@v3.250.0.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def runtime(file: str) -> dict[str, Any]:
    options: dict[str, Any] = yaml.safe_load((ROOT / file).read_text())["runtime"]["options"]
    return options


@pytest.mark.parametrize(
    "file", ["Pulumi.yaml", "examples/dws-single-cluster/Pulumi.yaml", "policies/PulumiPolicy.yaml"]
)
def test_projects_of_the_repository_use_its_lock_and_its_environment(file: str) -> None:
    options = runtime(file)
    assert options["toolchain"] == "uv"
    assert (ROOT / file).parent.joinpath(options["virtualenv"]).resolve() == ROOT / ".venv"


@pytest.mark.parametrize(
    "file",
    [
        "examples/plain-cluster/program/Pulumi.yaml",
        "examples/platform-repo/Pulumi.yaml",
        "examples/three-stacks/Pulumi.yaml",
        "components/pulumi_plugin/PulumiPlugin.yaml",
    ],
)
def test_projects_with_requirements_of_their_own_say_so_as_the_lock_above_them_would_be_found(file: str) -> None:
    assert runtime(file)["toolchain"] == "pip"
    assert (ROOT / file).with_name("requirements.txt").is_file()


def test_the_lock_is_that_of_the_project_and_is_read_without_a_network(tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    result = subprocess.run(
        [uv, "lock", "--check", "--offline", "--project", ROOT],
        env={**os.environ, "UV_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_every_package_comes_from_pypi_with_its_hash() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    ours = {package["name"] for package in packages if "editable" in package["source"]}
    assert ours == {
        "kueue-admission",
        "kueue-fleet",
        "kueue-fleet-offline",
        "kueue-fleet-policies",
        "kueue-fleet-rehearsal",
    }
    for package in packages:
        if package["name"] not in ours:
            assert package["source"] == {"registry": "https://pypi.org/simple"}
            assert all(file["hash"].startswith("sha256:") for file in package["wheels"])


Install = Callable[..., tuple[set[str], str]]


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Asks pip what it would install, without an index, where all is there but what this repository makes.

    Gives the names and what is said; URL and CLONE stand for a clone of this repository.
    """
    folder = tmp_path_factory.mktemp("install")
    subprocess.run(["git", "clone", "--quiet", ROOT, folder / "clone"], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "kueue" not in entry.name:
            (packages / entry.name).symlink_to(entry)
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--dry-run", "--no-index")
    environment = {**os.environ, "PIP_FIND_LINKS": ""}

    def ask(*what: str) -> tuple[set[str], str]:
        places = [
            item.replace("URL", f"file://{folder / 'clone'}").replace("CLONE", str(folder / "clone")) for item in what
        ]
        command = [*pip, "--no-build-isolation", *places]
        result = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        output = result.stdout + result.stderr
        return set(re.findall(r"kueue-[a-z-]*[a-z](?=-0)", output)) if result.returncode == 0 else set(), output

    return ask


BOTH = {"kueue-admission", "kueue-fleet"}


@pytest.mark.parametrize(
    "line", ["git+URL git+URL#subdirectory=components/kueue_admission", "CLONE CLONE/components/kueue_admission"]
)
def test_pip_installs_a_repository_by_the_line_of_the_page(install: Install, line: str) -> None:
    assert f"pip install {line}".replace("CLONE", "./CLONE") in (ROOT / "docs/programs.md").read_text()
    assert install(*line.split())[0] == BOTH


def test_pip_says_of_one_distribution_what_the_page_explains(install: Install) -> None:
    missing = "No matching distribution found for kueue-admission"
    assert missing in (ROOT / "docs/programs.md").read_text()
    assert missing in install("git+URL")[1]


def test_uv_finds_the_other_distributions_of_a_repository() -> None:
    """Of a repository and of a clone: https://docs.astral.sh/uv/concepts/projects/workspaces/#workspace-sources."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    assert settings["sources"]["kueue-admission"] == {"workspace": True}
    assert "components/kueue_admission" in settings["workspace"]["members"]


def test_the_hook_for_pre_commit_installs_both_from_its_clone(install: Install) -> None:
    """`pip install .` and the dependencies, in the clone: pre_commit/languages/python.py of pre-commit 4."""
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["language"] == "python"
    assert install("CLONE", *(item.replace("./", "CLONE/") for item in hook["additional_dependencies"]))[0] == BOTH
