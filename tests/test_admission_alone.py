"""kueue-admission alone: a plain cluster's dump is explained and simulated, without Pulumi and Google Cloud."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "components" / "kueue_admission"
DUMP = ROOT / "examples/plain-cluster/dump.yaml"


def needed(name: str, found: set[str] | None = None) -> set[str]:
    """The distributions that one needs, itself among them."""
    found = set() if found is None else found
    if name in found:
        return found
    found.add(name)
    for text in requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            needed(requirement.name.lower().replace("_", "-"), found)
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of kueue-admission unpacked, and what it names as needed, and nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheels")],
        cwd=PACKAGE, check=True, capture_output=True,
    )  # fmt: skip
    [wheel] = (folder / "wheels").glob("*.whl")
    site = folder / "site"
    shutil.unpack_archive(wheel, site, "zip")
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    names: set[str] = set()
    for text in project["dependencies"]:
        needed(Requirement(text).name.lower(), names)
    assert not names & {"pulumi", "pulumi-gcp", "pulumi-kubernetes", "kubernetes", "aiohttp"}
    origin = Path(sysconfig.get_path("purelib"))
    for name in names:
        for top in {
            file.parts[0] for file in distribution(name).files or () if file.parts[0] not in ("..", "__pycache__")
        }:
            if not (site / top).exists():
                (site / top).symlink_to(origin / top)
    return site


def called(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from kueue_admission.cli.commands import main; main()"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(site)!r}); {program}", *arguments],
        env={"PATH": os.environ["PATH"], "NO_COLOR": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_it_explains_a_dump(installed: Path) -> None:
    result = called(installed, "explain", "team-a/big", "--objects", str(DUMP), "--at", "2026-11-21T00:10:00")
    assert result.returncode == 0, result.stderr
    assert "team-a/big is Pending" in result.stdout
    assert "What would change it (each one tried):" in result.stdout


def test_it_simulates_a_dump(installed: Path) -> None:
    result = called(installed, "simulate", "objects", str(DUMP))
    assert result.returncode == 0, result.stderr
    assert "team-a/small" in result.stdout


def test_it_has_nothing_of_the_fleet(installed: Path) -> None:
    assert not [item.name for item in installed.iterdir() if item.name.startswith(("kueue_fleet", "kueue_rehearsal"))]
