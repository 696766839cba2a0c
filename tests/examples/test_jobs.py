"""The jobs for each class of capacity: the fleet beside them is valid, and each gets the flavor it is meant for."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.fleet_file.model.capacity import Calendar, FlexStart, Reserved, Spot

FOLDER = Path(__file__).parents[2] / "examples" / "jobs"
FLEET = FOLDER / "fleet.yaml"
MEANT = {
    "job.yaml": ("train", {"main": "l4-reserved"}),
    "jobset.yaml": ("train-distributed", {"driver": "l4-reserved", "workers": "l4-reserved"}),
    "finetune-with-token.yaml": ("finetune-gemma", {"main": "l4-reserved"}),
    "dws.yaml": ("finetune", {"main": "a100-flex"}),
    "calendar.yaml": ("foundation", {"main": "h100-calendar"}),
    "compact.yaml": ("all-reduce", {"main": "a100-compact"}),
    "preemptible-with-checkpoint.yaml": ("train-spot", {"main": "l4-spot"}),
}
"""Name of the job in each file, and the flavor of each of its pod sets."""
DEADLINE_SECONDS = 20.0


def test_every_file_is_there_and_no_other() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*MEANT, FLEET.name}


def test_the_fleet_is_valid_and_has_every_class_of_capacity() -> None:
    result = CliRunner().invoke(app, ["check", str(FLEET)])
    assert result.exit_code == 0, result.output
    fleet = parse_fleet_text(FLEET.read_text(), str(FLEET))
    pools = {pool.name: pool for pool in fleet.node_pools}
    assert isinstance(pools["l4-reserved"].capacity, Reserved)
    assert isinstance(pools["l4-spot"].capacity, Spot)
    assert isinstance(pools["a100-flex"].capacity, FlexStart)
    assert isinstance(pools["h100-calendar"].capacity, Calendar)
    assert pools["a100-compact"].compact_placement


@pytest.mark.parametrize("name", MEANT)
def test_each_job_is_admitted_to_the_flavor_it_is_meant_for(name: str) -> None:
    result = CliRunner().invoke(app, ["simulate", "fleet", str(FLEET), "--jobs", str(FOLDER / name), "-o", "json"])
    assert result.exit_code == 0, result.output
    (workload,) = json.loads(result.stdout)["workloads"]
    job, flavors = MEANT[name]
    assert (workload["name"], workload["state"], workload["admittedAt"]) == (job, "Finished", 0.0)
    assert {pod_set: set(chosen.values()) for pod_set, chosen in workload["flavors"].items()} == {
        pod_set: {flavor} for pod_set, flavor in flavors.items()
    }


@pytest.mark.parametrize("name", MEANT)
def test_explain_finds_nothing_in_its_way(name: str, tmp_path: Path) -> None:
    rendered = CliRunner().invoke(app, ["render", str(FLEET)])
    (tmp_path / "objects.yaml").write_text(rendered.stdout)
    shutil.copy(FOLDER / name, tmp_path)
    job, flavors = MEANT[name]
    result = CliRunner().invoke(app, ["explain", f"research/{job}", "--objects", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "the next cycle admits" in result.stdout
    assert f"Flavor {next(iter(flavors.values()))}" in result.stdout


def test_the_files_can_be_submitted_together() -> None:
    jobs = [job for name in MEANT for job in yaml.safe_load_all((FOLDER / name).read_text())]
    assert sorted(job["metadata"]["name"] for job in jobs) == sorted(job for job, _ in MEANT.values())
    assert {job["metadata"]["namespace"] for job in jobs} == {"research"}
    assert all(job["spec"]["suspend"] for job in jobs)


def checkpointing() -> tuple[list[str], dict[str, str]]:
    job: dict[str, Any] = yaml.safe_load((FOLDER / "preemptible-with-checkpoint.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return container["command"], {item["name"]: item["value"] for item in container["env"]}


def test_the_checkpoint_is_written_when_told_to_end_and_gone_on_from(tmp_path: Path) -> None:
    command, environment = checkpointing()
    environment |= {
        "PATH": os.environ["PATH"],
        "CHECKPOINTS": str(tmp_path),
        "JOB_COMPLETION_INDEX": "2",
        "STEPS": "6",
        "STEP_SECONDS": "0.2",
    }
    first = subprocess.Popen(command, env=environment | {"SAVE_EVERY": "2"}, stdout=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        saved = tmp_path / "train-spot-2"
        while not saved.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        first.send_signal(signal.SIGTERM)
        output, _ = first.communicate(timeout=DEADLINE_SECONDS)
    finally:
        first.kill()
        first.wait()
    assert first.returncode == 143
    step = int(saved.read_text())
    assert f"told to end at step {step}" in output
    assert 2 <= step < 6

    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert second.returncode == 0, second.stderr
    assert f"begins at step {step}" in second.stdout
    assert saved.read_text() == "6\n"


def test_the_programs_of_the_examples_are_python() -> None:
    """They are not run here: there is neither a GPU nor PyTorch."""
    service, program, job = yaml.safe_load_all((FOLDER.parent / "batch-platform/mnist.yaml").read_text())
    compile(program["data"]["mnist.py"], "mnist.py", "exec")
    pods = job["spec"]["template"]["spec"]
    name, subdomain = job["metadata"]["name"], service["metadata"]["name"]
    assert (pods["subdomain"], service["spec"]["selector"]) == (subdomain, {"job-name": name})
    assert f"--master-addr={name}-0.{subdomain}" in pods["containers"][0]["args"]
    assert pods["volumes"][0]["configMap"]["name"] == program["metadata"]["name"]
    finetune = yaml.safe_load((FOLDER / "finetune-with-token.yaml").read_text())["spec"]["template"]["spec"]
    (container,) = finetune["containers"]
    compile(container["args"][0].partition("<<'PROGRAM'\n")[2].partition("PROGRAM")[0], "upload.py", "exec")
    (team,) = parse_fleet_text(FLEET.read_text(), str(FLEET)).teams
    assert container["env"][0]["valueFrom"]["secretKeyRef"]["name"] in team.secrets
    assert finetune["serviceAccountName"] == team.service_account_name


def test_a_service_and_a_config_map_may_stand_beside_a_job() -> None:
    stack = FOLDER.parents[1] / "stacks/Pulumi.batch-platform.yaml"
    mnist = FOLDER.parent / "batch-platform/mnist.yaml"
    result = CliRunner().invoke(app, ["check", str(stack), "--jobs", str(mnist)])
    assert result.exit_code == 0, result.output
