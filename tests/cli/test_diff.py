"""`kueue-fleet diff`: two files in, sentences out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.fleet_file.builders import standalone_data
from typer.testing import CliRunner, Result

from kueue_admission.cli import console
from kueue_fleet.cli import app

ROOT = Path(__file__).parents[2]
STACK = ROOT / "stacks" / "Pulumi.dws-multikueue.yaml"
WORKLOAD = ROOT / "examples" / "dws-multikueue" / "workload.yaml"


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["diff", *arguments], input=stdin)


@pytest.fixture
def smaller(tmp_path: Path) -> Path:
    file = tmp_path / "smaller.yaml"
    file.write_text(
        STACK.read_text().replace("name: nvidia.com/gpu, nominalQuota: 4", "name: nvidia.com/gpu, nominalQuota: 2")
    )
    return file


def test_the_same_file_has_no_difference() -> None:
    result = run(str(STACK), str(STACK), "--exit-code")
    assert (result.exit_code, result.stdout) == (0, "no difference\n")


def test_a_smaller_quota_is_told_by_team_and_cluster(smaller: Path) -> None:
    result = run(str(STACK), str(smaller))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Quotas",
        "  clusterQueues[dws]: team-vision and team-language lose 2 nvidia.com/gpu (4 -> 2) of t4-dws on "
        "worker-europe-west4, worker-us-east4 and worker-asia-southeast1",
    ]
    assert run(str(STACK), str(smaller), "--exit-code").exit_code == 1


def test_one_side_may_come_from_stdin(smaller: Path) -> None:
    assert "lose 2 nvidia.com/gpu" in run("-", str(smaller), stdin=STACK.read_text()).stdout


def test_a_load_on_both_shows_who_waits_longer(smaller: Path) -> None:
    result = run(str(STACK), str(smaller), "--workload", str(WORKLOAD), "--output", "json")
    document = json.loads(result.stdout)
    assert document["schemaVersion"] == 1
    assert {item["area"] for item in document["differences"]} == {"quota"}
    assert document["workloads"]
    assert "fare differently." in run(str(STACK), str(smaller), "--workload", str(WORKLOAD)).stdout


def test_slips_are_named(tmp_path: Path) -> None:
    assert "only one can be read from stdin" in str(run("-", "-").exception)
    missing = run(str(STACK), str(tmp_path / "none.yaml")).exception
    assert isinstance(missing, console.CommandError)
    assert "no such file" in str(missing)
    broken = tmp_path / "broken.yaml"
    broken.write_text(STACK.read_text().replace("clusterQueue: dws", "clusterQueue: dsw"))
    assert "there is no queue dsw; did you mean dws?" in str(run(str(STACK), str(broken)).exception)


def test_rows_that_look_equal_say_what_differs(tmp_path: Path) -> None:
    """A job that runs at the same time in the same place, on another flavor."""
    files = []
    for flavor in ("l4", "t4"):
        data = json.loads(json.dumps(standalone_data()).replace('"l4"', f'"{flavor}"'))
        files.append(tmp_path / f"{flavor}.yaml")
        files[-1].write_text(yaml.safe_dump(data))
    workload = tmp_path / "jobs.yaml"
    requests = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "nvidia.com/gpu": "1"}
    job = {"name": "one", "namespace": "default", "queue": "gpu", "runSeconds": 1234567, "requests": requests}
    workload.write_text(yaml.safe_dump({"jobs": [job]}))
    lines = run(*map(str, files), "--workload", str(workload)).stdout.splitlines()
    output = [line.split(maxsplit=2) for line in lines if line.startswith("default/one")]
    assert [(run, " ".join(rest.split())) for _, run, rest in output] == [
        ("before", "0 Finished only - on l4"),
        ("after", "0 Finished only - on t4"),
    ]


def test_what_is_alike_on_several_clusters_is_one_row(tmp_path: Path) -> None:
    more = yaml.safe_load(STACK.read_text())
    fleet = more["config"]["kueue-fleet:fleet"]
    for name in ("worker-b", "worker-a"):
        fleet["clusters"].append({"name": name, "role": "worker", "region": "us-central1"})
        fleet["multiKueue"]["workers"].append(name)
    file = tmp_path / "more.yaml"
    file.write_text(yaml.safe_dump(more))
    rows = run(str(STACK), str(file)).stdout.splitlines()
    assert "  clusters[worker-b] and clusters[worker-a]: new worker in us-central1" in rows
