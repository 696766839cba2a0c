"""`kueue-fleet plan`: what it finds for the example company, and what it says of it."""

from __future__ import annotations

import json
import math
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.bench.plan import compare, question_of, record_example
from typer.testing import CliRunner, Result

from kueue_admission.cli.console import CommandError
from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.google.cost import cost_of

FLEET = Path(__file__).parents[2] / "examples" / "plan" / "fleet.yaml"
QUICK = ("--seeds", "1", "--processes", "1")
RESERVED = "resourceGroups[0].flavors[l4-reserved].resources[nvidia.com/gpu].nominalQuota"
ON_DEMAND = "resourceGroups[0].flavors[l4-ondemand].resources[nvidia.com/gpu].nominalQuota"
FEW = (
    "reservations[l4].count,nodePools[l4-reserved].nodeCount=1..8",
    f"clusterQueues[research].{RESERVED}=0..16/2",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    result = str(tmp_path_factory.mktemp("history"))
    record_example(result)
    return result


def run(store: str, *arguments: str, file: Path = FLEET, may_change: tuple[str, ...] = ()) -> Result:
    options = [text for item in may_change for text in ("--may-change", item)]
    return CliRunner().invoke(app, ["plan", str(file), "--store", store, *options, *arguments])


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report") / "plan.html"


@pytest.fixture(scope="module")
def document(store: str, report: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run(store, *QUICK, "-o", "json", "--html", str(report)).stdout)
    return result


def test_what_is_recommended_is_cheaper_and_meets_the_goals(document: dict[str, Any]) -> None:
    assert document["recommended"]["usdAMonth"] < 0.5 * document["today"]["usdAMonth"]
    assert {goal["standing"] for goal in document["recommended"]["goals"]} == {"met"}


def test_the_goals_are_judged_in_the_weeks_that_were_held_out(document: dict[str, Any]) -> None:
    assert document["end"] < document["heldOutUntil"]
    assert [goal["standing"] for goal in document["heldOut"]] == ["met", "met"]


def test_the_diff_gives_a_file_that_check_accepts_with_its_comments(document: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET.read_text())
    subprocess.run(["patch", "-s", "fleet.yaml"], cwd=tmp_path, input=document["diff"], text=True, check=True)
    text = (tmp_path / "fleet.yaml").read_text()
    assert CliRunner().invoke(app, ["check", str(tmp_path / "fleet.yaml")]).exit_code == 0
    assert [line.partition("#")[2] for line in text.splitlines()] == [
        line.partition("#")[2] for line in FLEET.read_text().splitlines()
    ]
    paid = 730 * cost_of(parse_fleet_text(text, "changed"), list_prices()).always
    assert paid == pytest.approx(document["recommended"]["paidAnywayUsdAMonth"], abs=0.01)


def test_each_change_says_what_would_be_without_it(document: dict[str, Any]) -> None:
    changes = {reason["change"] for reason in document["reasons"]}
    assert len(changes) == len(document["reasons"]) > 0
    for reason in document["reasons"]:
        costs = reason["without"] and reason["without"]["usdAMonth"] - document["recommended"]["usdAMonth"]
        assert any(text in reason["why"] for text in ("check refuses", "is missed", "is at risk")) or costs > 0


def test_the_frontier_has_less_waiting_for_more_money(document: dict[str, Any]) -> None:
    points = [(item["usdAMonth"], -item["meanWaitSeconds"]) for item in document["frontier"]]
    assert points == sorted(points)
    assert len(points) > 1


def test_the_report_draws_the_frontier_and_both_fleets(document: dict[str, Any], report: Path) -> None:
    drawn = json.loads(report.read_text().partition('id="data">')[2].partition("</script>")[0])
    costs = {item["usdAMonth"] for item in (document["today"], *document["frontier"])}
    assert {round(usd, 2) for _, usd, *_ in drawn["choices"]} == costs
    assert [name for name, *_ in drawn["choices"] if name] == ["today", "recommended"]
    assert [section["name"] for section in drawn["sections"]] == ["Today", "Recommended"]
    today, recommended = (sum(entry["quota"] for entry in section["quotas"]) for section in drawn["sections"])
    assert today > recommended


def test_what_the_history_cannot_say_is_said(document: dict[str, Any]) -> None:
    assert "how fast jobs run on flavor l4-ondemand, as none of the history did" in "; ".join(document["notKnown"])


def test_it_is_as_cheap_as_the_best_of_all_with_a_tenth_of_the_simulations(tmp_path: Path) -> None:
    some = tmp_path / "fleet.yaml"
    text = FLEET.read_text().replace("most: 8", "most: 6")
    text = text.replace("most: 16\n      step: 2", "most: 8\n      step: 4", 1)
    some.write_text(text.replace("most: 16", "most: 8"))
    question, _ = question_of(some, record_example(str(tmp_path / "store")), datetime(2026, 10, 7, tzinfo=UTC))
    result = compare(question, range(1), math.inf)
    assert result["cost"] <= result["bruteCost"] + 0.01
    assert result["fleets"] <= result["bruteFleets"] / 10


def test_several_processes_give_the_same(store: str) -> None:
    one, two = (
        run(store, "--seeds", "2", "--to", "2026-10-08", "--processes", count, may_change=FEW).stdout for count in "12"
    )
    assert one == two
    assert "recommended" in one


def test_a_search_that_ended_early_goes_on(store: str, tmp_path: Path) -> None:
    study = tmp_path / "study.jsonl"
    arguments = (*QUICK, "--to", "2026-10-08")
    assert "at its limit" in run(store, *arguments, "--study", str(study), "--fleets", "2", may_change=FEW).stdout
    first = study.read_text()
    study.write_text(f"{first}{{'cut")
    whole = run(store, *arguments, "--study", str(study), may_change=FEW).stdout
    assert whole == run(store, *arguments, may_change=FEW).stdout
    assert study.read_text().startswith(first)
    result = study.read_text()
    assert run(store, *arguments, "--study", str(study), may_change=FEW).stdout == whole
    assert study.read_text() == result


def test_a_study_of_something_else_is_refused(store: str, tmp_path: Path) -> None:
    study = tmp_path / "study.jsonl"
    run(store, *QUICK, "--to", "2026-10-08", "--study", str(study), "--fleets", "1", may_change=FEW)
    refused = run(store, *QUICK, "--growth", "2", "--study", str(study), may_change=FEW).exception
    assert str(refused).endswith("is of another fleet, history or --may-change; give it a --study of its own")
    study.write_text("{}\nnone\n")
    assert "is not a study of plan; name another file" in str(
        run(store, *QUICK, "--study", str(study), may_change=FEW).exception
    )


def test_a_fleet_without_a_goal_that_can_be_met_ends_with_3(store: str, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET.read_text().replace("p90: 30m", "p90: 1s"))
    limits = ("reservations[l4].count,nodePools[l4-reserved].nodeCount=6..7", f"clusterQueues[vision].{RESERVED}=4..4")
    result = run(store, *QUICK, "--to", "2026-10-08", "--growth", "6", file=fleet, may_change=limits)
    assert isinstance(result.exception, CommandError)
    assert result.exception.exit_code == 3
    assert "clusterQueues[vision]" in str(result.exception.problems[0])


def test_a_budget_that_no_fleet_keeps_ends_with_3(store: str) -> None:
    result = run(store, *QUICK, "--to", "2026-10-08", "--budget", "500", "--fleets", "5")
    assert isinstance(result.exception, CommandError)
    assert result.exception.exit_code == 3


def test_limits_that_the_file_is_outside_of_are_only_warned_of_until_it_plans(store: str, tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET.read_text().replace("least: 1", "least: 7", 1))
    checked = CliRunner().invoke(app, ["check", str(file)])
    assert (checked.exit_code, "[KF843]" in checked.stderr) == (0, True)
    refused = run(store, file=file).exception
    assert isinstance(refused, CommandError)
    assert "plan.mayChange[0]: reservations[l4].count is 6 in the file, which is none of the levels" in str(refused)


def test_only_what_may_change_changes(store: str) -> None:
    limits = (f"nodePools[l4-ondemand].autoscaling.totalMaxNodeCount,clusterQueues[vision].{ON_DEMAND}=1..2",)
    document = json.loads(run(store, *QUICK, "--to", "2026-10-08", "-o", "json", may_change=limits).stdout)
    assert {change.partition("=")[0].partition(".")[0] for change in document["recommended"]["changes"]} <= {
        "nodePools[l4-ondemand]",
        "clusterQueues[vision]",
    }


def history(tmp_path: Path, *rows: str) -> str:
    """The store of a history of these rows of a CSV."""
    (tmp_path / "jobs.csv").write_text("\n".join(["submitted,queue,gpus,runSeconds,pods", *rows, ""]))
    objects = str(tmp_path / "store")
    result = CliRunner().invoke(app, ["record", str(FLEET), "--store", objects, "--from", str(tmp_path / "jobs.csv")])
    assert result.exit_code == 0
    return objects


@pytest.mark.parametrize(
    ("row", "options", "told"),
    [
        (
            "2026-10-25T00:00:00Z,elsewhere/gpu,1,60,1",
            (),
            "jobs of LocalQueue elsewhere/gpu, which is not in the fleet",
        ),
        (
            "2026-10-25T00:00:00Z,vision/gpu,1,60,1",
            ("--growth", "0"),
            "clusterQueues[vision] meets a goal: there is no",
        ),
    ],
)
def test_no_fleet_is_recommended_by_goals_that_are_not_known(
    row: str, options: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    refused = run(history(tmp_path, row), *QUICK, *options, may_change=FEW).exception
    assert isinstance(refused, CommandError)
    assert "no goal can be judged, so that any fleet would do" in refused.message
    assert told in "; ".join(refused.problems)


def test_a_fleet_in_which_no_job_runs_does_not_meet_a_share(tmp_path: Path) -> None:
    """Its share of no GPUs at all is not known, which is no reason to take it for the cheapest one."""
    fleet = tmp_path / "fleet.yaml"
    text = FLEET.read_text().replace("goals: { wait: { p90: 30m } }", "goals: { share: 30 }")
    fleet.write_text(
        text.replace("nominalQuota: 4 }", "nominalQuota: 0 }").replace("nominalQuota: 8 }", "nominalQuota: 0 }")
    )
    store = history(tmp_path, *(f"2026-10-05T{hour:02}:00:00Z,vision/gpu,2,7200,2" for hour in range(8)))
    paths = ["nodePools[l4-ondemand].autoscaling.totalMaxNodeCount"]
    paths += [f"clusterQueues[{queue}].{ON_DEMAND}" for queue in ("vision", "research")]
    result = json.loads(run(store, *QUICK, "-o", "json", file=fleet, may_change=(f"{','.join(paths)}=1..2",)).stdout)
    assert result["recommended"]["changes"] == []
    assert result["recommended"]["goals"][0]["standing"] == "met"


def test_where_nothing_is_better_the_table_has_today_once_and_says_what_check_refuses(store: str) -> None:
    output = run(store, *QUICK, "--to", "2026-10-06", may_change=("nodePools[l4-reserved].nodeCount=5..8",)).stdout
    assert [line.split()[0] for line in output.splitlines() if "9,004" in line] == ["recommended"]
    assert "- check refuses others: " in output


def test_a_study_with_other_prices_is_another_one(store: str, tmp_path: Path) -> None:
    study, prices = tmp_path / "study.jsonl", tmp_path / "prices.csv"
    arguments = (*QUICK, "--to", "2026-10-06", "--fleets", "1", "--study", str(study), "--prices", str(prices))
    prices.write_text("# Prices of 2026\nof,regions,onDemand,spot,flexStart\nnvidia-l4,,0.5,0.2,0.3\n")
    assert run(store, *arguments, may_change=FEW).exit_code == 0
    prices.write_text(prices.read_text().replace("0.5", "0.6"))
    assert "is of another fleet, history or --may-change" in str(run(store, *arguments, may_change=FEW).exception)


@pytest.mark.parametrize("path", ["clusterQueues[vision].goals.wait.p90=10..40", "plan.mayChange[0].most=1..9"])
def test_what_plan_aims_at_does_not_change(path: str, store: str) -> None:
    refused = run(store, *QUICK, may_change=(path,)).exception
    assert isinstance(refused, CommandError)
    assert f"{path.partition('=')[0]} is what plan aims at; write a path of nodes, machines or quotas" in str(refused)


def test_a_budget_of_nothing_is_refused(store: str) -> None:
    assert run(store, *QUICK, "--budget", "0", may_change=FEW).exit_code == 2
