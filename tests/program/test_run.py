"""Programs that are run for their fleets: what they get, and how each that cannot be run, or fails, is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kueue_fleet.program.project import Project, ProjectError
from kueue_fleet.program.run import ProgramFailedError, fleets_of

WHOLE = """
import os
import sys
import pulumi
import pulumi_gcp as gcp
import kueue_fleet as kf
from beside import QUEUES

config = pulumi.Config()
assert config.require("owner") == "research"
assert config.require_secret("token") is not None
assert config.get_int("gpus") == 8
assert pulumi.get_stack() == "dev" and pulumi.get_project() == "platform"
assert not {"GOOGLE_CREDENTIALS", "PULUMI_ACCESS_TOKEN"} & os.environ.keys()
project = gcp.organizations.Project("batch", project_id="acme-batch-1", name="batch", folder_id="1234")
network = gcp.compute.get_network_output(name="shared")
kf.Fleet("acme", {
    "name": "acme", "project": "acme-batch-1",
    "clusters": [{"name": "batch", "role": "standalone", "region": "us-central1"}],
    "clusterQueues": QUEUES,
}, project=project.project_id)
kf.Fleet("second", {"name": "second", "project": "acme-batch-2", "clusters": [
    {"name": "other", "role": "standalone", "region": "us-central1"}]}, project="acme-batch-3")
pulumi.export("id", network.id)
"""


def project_of(folder: Path, program: str, settings: str = "runtime: python\n") -> Project:
    (folder / "Pulumi.yaml").write_text(f"name: platform\n{settings}")
    (folder / "__main__.py").write_text(program)
    return Project.read(folder)


def test_a_program_declares_its_fleets_with_the_config_of_its_stack_and_no_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_CREDENTIALS", "a")
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "a")
    settings = "runtime: {name: python}\nstackConfigDir: stacks\nconfig: {gpus: {type: integer, default: 8}}\n"
    project = project_of(tmp_path, WHOLE, settings)
    (tmp_path / "beside.py").write_text("QUEUES = [{'name': 'prod', 'stopPolicy': 'Hold'}]\n")
    (tmp_path / "stacks").mkdir()
    stack = "config:\n  platform:owner: research\n  platform:token: {secure: AAAA}\n"
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text(stack)
    one, two = fleets_of(project, "dev")
    assert (one.name, one.project, one.data["clusterQueues"]) == (
        "acme", None, [{"name": "prod", "stopPolicy": "Hold"}],
    )  # fmt: skip
    assert (two.name, two.data["project"], two.spec["project"]) == ("second", "acme-batch-3", "acme-batch-2")


FAILS = """
import sys
import kueue_fleet as kf
for number in range(100_000):
    print("line", number)
sys.stdout.write("x" * 10_000_000 + "\\n")
try:
    kf.Fleet("acme", {"name": "acme"})
except kf.SpecError:
    raise LookupError("no such team") from None
"""


def test_of_a_program_that_fails_the_end_of_its_output_is_shown_and_what_it_had_declared(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailedError) as raised:
        fleets_of(project_of(tmp_path, FAILS), "dev")
    assert [fleet.data for fleet in raised.value.fleets] == [{"name": "acme"}]
    assert raised.value.printed[-1] == "LookupError: no such team"
    assert raised.value.printed[-4:-3] == ("Traceback (most recent call last):",)
    assert sum(map(len, raised.value.printed)) < 200_000


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("x = (:\n", "SyntaxError: invalid syntax"),
        (
            "import pulumi\npulumi.Config().require('owner')\n",
            "Missing required configuration variable 'platform:owner'",
        ),
        ("import sys\nsys.exit(3)\n", "it ended itself: sys.exit(3)"),
    ],
)
def test_a_program_that_cannot_run_says_why(tmp_path: Path, program: str, printed: str) -> None:
    with pytest.raises(ProgramFailedError) as raised:
        fleets_of(project_of(tmp_path, program), "dev")
    assert any(printed in line for line in raised.value.printed)
    assert not any("kueue_fleet/program" in line for line in raised.value.printed)


def test_a_program_that_does_not_end_is_ended_with_what_it_started(tmp_path: Path) -> None:
    program = "import subprocess\nsubprocess.run(['sleep', '1000'])\n"
    with pytest.raises(ProjectError, match="the program did not end within 5 s; see where it waits"):
        fleets_of(project_of(tmp_path, program), "dev", seconds=5)


def test_a_python_without_the_library_is_named(tmp_path: Path) -> None:
    bare = Path(sys.base_prefix, "bin", "python3")
    with pytest.raises(ProjectError, match=f"{bare}: cannot run the program; install this release of kueue-fleet"):
        fleets_of(project_of(tmp_path, ""), "dev", bare)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("runtime: nodejs\n", "Pulumi.yaml: runtime: is nodejs; give the file of its fleet"),
        ("main: elsewhere\nruntime: python\n", "main: there is no .*/elsewhere; name the folder or the file"),
        (
            "runtime: {name: python, options: {virtualenv: venv}}\n",
            "runtime.options.virtualenv: there is no .*/venv/bin/python; make it with `pulumi install`",
        ),
        ("runtime: {name: python, options: {toolchain: uv}}\n", "there is no .*/.venv/bin/python"),
        ("runtime: [\n", "Pulumi.yaml:2: "),
    ],
)
def test_a_project_that_cannot_be_run_says_why(tmp_path: Path, settings: str, says: str) -> None:
    with pytest.raises(ProjectError, match=says):
        fleets_of(project_of(tmp_path, "", settings), "dev")


def test_a_folder_without_a_program(tmp_path: Path) -> None:
    project = project_of(tmp_path, "")
    project.program.unlink()
    with pytest.raises(ProjectError, match=r"main: there is no .*/__main__\.py; name the folder or the file"):
        fleets_of(project, "dev")


def test_a_stack_that_is_not_there(tmp_path: Path) -> None:
    project = project_of(tmp_path, "")
    assert project.stack_settings("dev") == {}, "a program without config has no file"
    (tmp_path / "Pulumi.prod.yaml").touch()
    with pytest.raises(ProjectError, match=r"stack dev: there is no .*; "):
        fleets_of(project, "dev")
