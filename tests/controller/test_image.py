"""What goes into the image is enough to run; tests/engines/test_controller_image.py builds it and runs it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from tests.controller.closure import image_files

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "components"
FOLDER = PACKAGES / "kueue_fleet/controller/image"
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
BUILD, RESULT = DOCKERFILE.split("\n\nFROM ")
IGNORED = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
COPIED = [line.removeprefix("!") for line in IGNORED if line.startswith("!")]


PINNED = dict(re.findall(r"^(\S+)==(\S+) \\", (FOLDER / "requirements.lock").read_text(), re.MULTILINE))
"""Version by distribution."""


def is_pinned(distribution: str) -> bool:
    return re.sub(r"[-_.]+", "-", distribution).lower() in PINNED


def test_what_is_copied_is_what_the_programs_import(request: pytest.FixtureRequest) -> None:
    comments = [line for line in IGNORED if line.startswith("#")]
    listed = [*comments, "*", *(f"!{name}" for name in image_files()), "**/__pycache__"]
    if request.config.getoption("update_snapshots"):
        (FOLDER / "Dockerfile.dockerignore").write_text("\n".join(listed) + "\n")
    assert listed == IGNORED


def test_what_is_copied_runs_with_what_is_pinned_and_nothing_else(tmp_path: Path) -> None:
    for name in COPIED:
        (copy := tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (source := PACKAGES / name).is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copy(source, copy)
    modules = packages_distributions().items()
    missing = {name for name, of in modules if not any(map(is_pinned, of))} - {"kueue_fleet", "kueue_admission"}
    assert missing >= {"pulumi", "pulumi_gcp", "pulumi_kubernetes", "typer", "rich", "psutil", "grpc"}
    program = (
        "import runpy, sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        f"for name in {missing!r}:\n"
        "    sys.modules[name] = None\n"
        "import kueue_fleet\n"
        f"assert kueue_fleet.__file__.startswith({str(tmp_path)!r}), kueue_fleet.__file__\n"
        "sys.argv = ['controller', '--help']\n"
        "runpy.run_module('kueue_fleet.controller', run_name='__main__')\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "--workers" in result.stdout


def test_every_base_is_pinned_by_digest_and_the_result_runs_nothing_and_is_nobody() -> None:
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))
    bases = [arguments[name] for name in re.findall(r"^FROM \$\{(\w+)\}", DOCKERFILE, re.MULTILINE)]
    assert len(bases) == len(re.findall(r"^FROM ", DOCKERFILE, re.MULTILINE)) == 2
    assert all(re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", base) for base in bases)
    assert "RUN " not in RESULT
    assert "USER 65532:65532" in RESULT


def test_every_file_that_is_copied_is_in_the_package_and_every_command_is_there_to_run(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=PACKAGES, capture_output=True, text=True, check=True
    ).stdout.split()
    for source in COPIED:
        assert any(name == source or name.startswith(f"{source}/") for name in tracked), source
    assert re.findall(r"^COPY (.*)$", BUILD, re.MULTILINE) == [
        "kueue_fleet/controller/image/requirements.lock ./",
        "kueue_admission /app/kueue_admission/",
        "kueue_fleet /app/kueue_fleet/",
    ]
    copied, _ = next(iter(re.findall(r"^COPY (\S+) (\S+)$", BUILD, re.MULTILINE)))
    assert copied in COPIED
    assert re.findall(r"-r (\S+)", BUILD) == ["requirements.lock"]
    assert "COPY --from=build --chown=0:0 /app /app" in RESULT
    [entry] = re.findall(r"^ENTRYPOINT (\[.*\])$", RESULT, re.MULTILINE)
    interpreter, *arguments = json.loads(entry)
    assert interpreter == "python3"
    environment = {"PYTHONPATH": str(ROOT / "components"), "PATH": str(tmp_path)}
    result = subprocess.run([sys.executable, *arguments, "--help"], env=environment, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr


def test_every_dependency_is_pinned_by_hash_as_everywhere_else() -> None:
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    everywhere = {package["name"]: package["version"] for package in locked}
    assert PINNED
    assert {name: everywhere.get(name) for name in PINNED} == PINNED
    assert "--require-hashes" in BUILD
    assert not {"pulumi", "pip", "setuptools"} & set(PINNED)
