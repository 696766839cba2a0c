"""Pulumi sets the environment up in a fresh clone: `pulumi install`, and `pulumi up` too, run `uv sync`.

That they do is toolchain/uv.go of github.com/pulumi/pulumi/sdk/v3/python@v3.250.0.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
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


@pytest.mark.parametrize("file", ["examples/platform-repo/Pulumi.yaml", "components/pulumi_plugin/PulumiPlugin.yaml"])
def test_projects_with_requirements_of_their_own_say_so_as_the_lock_above_them_would_be_found(file: str) -> None:
    assert runtime(file)["toolchain"] == "pip"
    assert (ROOT / file).with_name("requirements.txt").is_file()


def test_the_lock_is_that_of_the_project_and_is_read_without_a_network(tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [uv, "lock", "--check", "--offline", "--project", ROOT],
        env={**os.environ, "UV_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


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
