"""Templates of a team, the budget that is said before a job is submitted, and `submit` from Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_submit import FILE, JOBS, WORKLOADS, command, fleet, workload

import kueue_fleet
from kueue_admission.simulate.errors import SimulationError

__all__ = ["command", "fleet"]
TEMPLATE = {
    "name": "finetune",
    "queue": "training",
    "image": "trainer:1",
    "command": ["python", "train.py"],
    "gpus": 2,
    "time": "90m",
    "env": {"MODE": "fast", "SEED": "1"},
    "mounts": {"/data": "gs://data"},
}


def with_team(tmp_path: Path, **team: Any) -> str:
    """The fleet of the example, whose first team has this too."""
    data = yaml.safe_load(Path(FILE).read_text())
    data["teams"][0] |= team
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump(data))
    return str(file)


def container(job: Any) -> Any:
    return job["spec"]["template"]["spec"]["containers"][0]


def test_a_template_says_what_is_not_given(tmp_path: Path, command: Any) -> None:
    file = with_team(tmp_path, jobTemplates=[TEMPLATE])
    ended = command(f"submit --fleet {file} --template finetune --env SEED=7 --dry-run -- --epochs 3")
    assert ended.code == 0, ended.err
    job = yaml.safe_load(ended.out)
    result = container(job)
    assert result["command"] == ["python", "train.py", "--epochs", "3"]
    assert {item["name"]: item["value"] for item in result["env"]} == {"MODE": "fast", "SEED": "7"}
    assert result["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert job["spec"]["activeDeadlineSeconds"] == 5400
    assert job["metadata"]["namespace"] == "research"


def test_options_go_before_a_template(tmp_path: Path, command: Any) -> None:
    file = with_team(tmp_path, jobTemplates=[TEMPLATE])
    ended = command(f"submit --fleet {file} --template research/finetune --gpus 1 --time 1h --name mine --dry-run")
    job = yaml.safe_load(ended.out)
    assert (job["metadata"]["name"], job["spec"]["activeDeadlineSeconds"]) == ("mine", 3600)
    assert container(job)["resources"]["limits"] == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("templates", "says"),
    [
        ([TEMPLATE], "template: finetun is not in the file; did you mean research/finetune?"),
        ([], "template: finetun is not in the file; add it to jobTemplates of the team"),
    ],
)
def test_a_template_that_is_not_there(templates: list[Any], says: str, tmp_path: Path, command: Any) -> None:
    file = with_team(tmp_path, jobTemplates=templates)
    ended = command(f"submit --fleet {file} --template finetun --dry-run")
    assert ended.code == 1
    assert says.split(";")[0] in ended.err


def test_a_template_is_listed_once(tmp_path: Path, command: Any) -> None:
    file = with_team(tmp_path, jobTemplates=[TEMPLATE, TEMPLATE])
    ended = command(f"check {file}")
    assert ended.code == 1
    assert "jobTemplates[finetune]: is listed twice; give each template a name of its own" in ended.err


def used(hours: float) -> dict[str, Any]:
    """A Workload that held two GPUs for so many hours until now."""
    result = workload()
    pods = {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": 2}}}]}}
    result["spec"]["podSets"] = [{"name": "main", "count": 1, "template": pods}]
    result["status"]["accumulatedPastExecutionTimeSeconds"] = int(3600 * hours)
    result["status"]["conditions"] = [
        {"type": "Admitted", "status": "False", "reason": "R", "message": "", "lastTransitionTime": now()}
    ]
    return result


def now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - the command has the clock


def test_the_budget_of_the_team_is_said_before(tmp_path: Path, fleet: Any, command: Any) -> None:
    file = with_team(tmp_path, budget={"gpuHours": 1000})
    fleet.tables["batch"][WORKLOADS] = [used(10)]
    fleet.tables["batch"]["/apis/kueue.x-k8s.io/v1beta2/workloads"] = []
    ended = command(f"submit --fleet {file} -q training --image trainer:1 --gpus 1 --name train")
    assert ended.code == 0, ended.err
    # What of it was before the first of the month is not counted.
    output = re.search(r"^Budget of research: (\d+) of 1,000 GPU hours per month", ended.out, re.MULTILINE)
    assert output is not None
    assert int(output[1]) <= 20
    assert output.start() < ended.out.index("Job research/train is submitted")


def test_a_budget_that_cannot_be_known_is_said_and_does_not_hold_the_job(
    tmp_path: Path, fleet: Any, command: Any
) -> None:
    file = with_team(tmp_path, budget={"gpuHours": 1000})
    fleet.refused["/v1beta2/"] = 403
    ended = command(f"submit --fleet {file} -q training --image trainer:1 --gpus 1 --name train")
    assert (ended.code, len(fleet.created)) == (0, 1)
    assert "How far the budget is used is not known: " in ended.out


def spec() -> Any:
    return kueue_fleet.parse_fleet_text(Path(FILE).read_text(), source=FILE)


def test_python_submits(fleet: Any, tmp_path: Path) -> None:
    job = kueue_fleet.JobRequest(name="train", queue="training", image="trainer:1", gpus=1)
    result = kueue_fleet.submit(spec(), job)
    [(cluster, path, sent)] = fleet.created
    assert (cluster, path, sent["metadata"]["name"], result["kind"]) == ("batch", JOBS, "train", "Job")


def test_python_prints_what_it_would_submit(fleet: Any) -> None:
    job = kueue_fleet.JobRequest(name="train", queue="training", image="trainer:1", gpus=1)
    assert kueue_fleet.submit(spec(), job, dry_run=True)["metadata"]["namespace"] == "research"
    assert fleet.created == []


def test_python_gets_every_problem_at_once() -> None:
    job = kueue_fleet.JobRequest(name="train", queue="trainin", image="i", nodes=0, env={"1": "x"})
    with pytest.raises(SimulationError) as wrong:
        kueue_fleet.submit(spec(), job)
    assert len(wrong.value.problems) == 3


def test_python_learns_what_the_server_refuses(fleet: Any) -> None:
    fleet.refused[JOBS] = 403
    with pytest.raises(RuntimeError, match="Job research/train is not submitted"):
        kueue_fleet.submit(spec(), kueue_fleet.JobRequest(name="train", queue="training", image="i", gpus=1))


def test_what_is_wrong_names_the_template(tmp_path: Path, command: Any) -> None:
    file = with_team(tmp_path, jobTemplates=[TEMPLATE])
    ended = command(f"submit --fleet {file} --template finetune --nodes 2 --array 2 --dry-run")
    assert "template finetune with the options: " in ended.err
