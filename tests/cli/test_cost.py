"""`kueue-fleet cost`: tables, JSON, own prices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kueue_admission.cli.console import CommandError
from kueue_fleet.cli import app

PROD = Path(__file__).parents[2] / "stacks" / "Pulumi.prod.yaml"


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["cost", *arguments], input=stdin)


def test_text_names_the_prices_each_pool_and_what_is_missing() -> None:
    lines = run(str(PROD)).stdout.splitlines()
    assert lines[0] == "USD, prices of 2026-11; a month has 730 hours"
    (spot,) = [line.split() for line in lines if line.startswith("worker-us-central1") and "l4-spot" in line]
    assert spot[1:] == ["l4-spot", "spot", "0", "to", "32", "g2-standard-24", "0.81", "-", "25.99"]
    (h100,) = [line for line in lines if line.startswith("worker-us-central1") and "h100-flex" in line]
    assert "0.67 + ?" in h100
    assert "  the price of nvidia-h100-80gb in us-central1, flexStart" in lines[lines.index("Not in the sums") :]


def test_json_has_the_same_sums() -> None:
    document = json.loads(run(str(PROD), "-o", "json").stdout)
    assert (document["schemaVersion"], document["currency"], document["prices"]) == (1, "USD", "2026-11")
    total = document["total"]
    assert total["always"]["month"] == pytest.approx(total["always"]["hour"] * 730, abs=0.1)
    for sums in ("byCluster", "byClass"):
        assert sum(item["inUse"]["month"] for item in document[sums].values()) == pytest.approx(
            total["inUse"]["month"], abs=0.1
        )
    assert document["notInSums"]
    assert {line["class"] for line in document["lines"]} == {"cluster", "onDemand", "spot", "flexStart", "reserved"}


def test_own_prices(tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("of,regions,onDemand,spot,flexStart\nnvidia-h100-80gb,us-central1 europe-west4,9,3,4\n")
    output = run(str(PROD), "--prices", str(own)).stdout
    assert f"prices of 2026-11, and {own}" in output
    assert "nvidia-h100-80gb" not in output
    assert "the price of a3-highgpu-8g in us-central1, flexStart" in output
    own.write_text("of,regions,onDemand,spot,flexStart\na,b,c,d,\n")
    refused = run(str(PROD), "--prices", str(own)).exception
    assert isinstance(refused, CommandError)
    assert len(refused.problems) == 2, "all problems at once"
    assert "line 2: spot: d is not a price" in str(refused)
    missing = run(str(PROD), "--prices", str(tmp_path / "none.csv")).exception
    assert isinstance(missing, CommandError)
    assert "no such file" in str(missing)
    both = run("-", "--prices", "-").exception
    assert isinstance(both, CommandError)
    assert both.exit_code == 2


def test_prices_of_a_misspelt_name_or_region_are_warned_of(tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("of,regions,onDemand,spot,flexStart\nnvidia-l5,us-centrl1,9,3,4\nmine,,1,,\na4x-,us-new7,1,,\n")
    told = run(str(PROD), "--prices", str(own)).stderr
    assert "nvidia-l5 is not known, and its price counts for nothing; did you mean nvidia-l4?" in told
    assert "us-centrl1 is not a known region, and its prices count for nothing; did you mean us-central1?" in told
    assert told.count("warning:") == 2


def test_a_fleet_from_stdin() -> None:
    assert run("-", stdin=PROD.read_text()).stdout == run(str(PROD)).stdout


def test_diff_says_what_a_change_costs(tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(PROD.read_text().replace("count: 12", "count: 14"))
    output = CliRunner().invoke(app, ["diff", str(PROD), str(new)]).stdout
    assert "What it costs\n  reservations: 78.85 -> 91.99 USD an hour used or not\n" in output
    own = tmp_path / "own.csv"
    own.write_text("of,regions,onDemand,spot,flexStart\nnvidia-l4,us-central1 europe-west4 asia-southeast1,0,,\n")
    document = CliRunner().invoke(app, ["diff", str(PROD), str(new), "-o", "json", "--prices", str(own)]).stdout
    (first, *_) = [item for item in json.loads(document)["differences"] if item["area"] == "cost"]
    assert first["text"] != "78.85 -> 91.99 USD an hour used or not"


def test_a_fleet_with_errors_is_refused_for_these_and_not_for_its_warnings() -> None:
    stack = (PROD.parent / "Pulumi.dws-multikueue.yaml").read_text()
    refused = run("-", stdin=stack.replace("us-east4 }", "us-eats4 }")).exception
    assert isinstance(refused, CommandError)
    heading, problem = str(refused).splitlines()
    assert heading == "<stdin> does not describe a fleet:"
    assert problem.startswith("  <stdin>:23: clusters[worker-us-east4].region: us-eats4 is not a known region; ")


SHARED = PROD.parents[1] / "examples" / "shared-gpus" / "fleet.yaml"
"""Team research has a budget for each week."""
JOBS = """submitted,queue,gpus,runSeconds,started
2026-10-05T08:00:00Z,research/training,4,36000,2026-10-05T08:10:00Z
2026-10-12T08:00:00Z,research/training,8,360000,2026-10-17T00:00:00Z
"""


def used(folder: Path, *options: str) -> Result:
    (folder / "jobs.csv").write_text(JOBS)
    store = str(folder / "history")
    result = CliRunner().invoke(app, ["record", str(SHARED), "--store", store, "--from", str(folder / "jobs.csv")])
    assert result.exit_code == 0
    return run(str(SHARED), "--store", store, *options)


def test_what_teams_used_by_week_against_their_budgets(tmp_path: Path) -> None:
    document = json.loads(used(tmp_path, "--per", "week", "-o", "json").stdout)
    result = [(item["begin"], item["team"], item["gpuHours"], item["budget"][0]) for item in document["used"]]
    budget = {"of": "GPU hours", "limit": 2000}
    # The last one runs for 100 hours, the first two days of them in the week of the 12th.
    assert result == [
        ("2026-10-05", "research", 40.0, {**budget, "percent": 2}),
        ("2026-10-12", "research", 8 * 48.0, {**budget, "percent": 19}),
        ("2026-10-19", "research", 8 * 52.0, {**budget, "percent": 20}),
    ]


def test_jobs_of_which_only_the_length_is_known_are_said_to_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "submitted,queue,gpus,runSeconds\n2026-10-05T08:00:00Z,research/training,8,3600\n"
    )
    store = str(tmp_path / "history")
    CliRunner().invoke(app, ["record", str(SHARED), "--store", store, "--from", str(tmp_path / "jobs.csv")])
    assert "it is not known when 1 job ran, which no month has" in run(str(SHARED), "--store", store).stderr


def test_by_month_a_budget_for_weeks_does_not_count(tmp_path: Path) -> None:
    lines = used(tmp_path).stdout.splitlines()
    assert lines[1].split() == ["month", "of", "team", "GPU", "hours", "USD", "budget"]
    assert lines[2].split()[:3] == ["2026-10-01", "research", "840.0"]
    assert lines[2].endswith("-")
