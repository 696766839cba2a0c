"""Which engines a fleet needs, and what of it no engine here runs."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.fleet_file import parse_fleet
from kueue_rehearsal.fleet_engines import check_runs_here, fleet_engines, runs_otherwise
from rehearse_command import fleet


def with_kueue(version: str, **clusters: str) -> dict[str, Any]:
    data = {**fleet(), "kueue": {"version": version}}
    for item in data["clusters"]:
        if item["name"] in clusters:
            item["kueue"] = {"version": clusters[item["name"]]}
    return data


def test_grafana_is_left_out_and_named() -> None:
    [problem] = runs_otherwise(parse_fleet({**fleet(), "observability": {}}))
    assert problem.path == "observability.grafana"
    assert problem.severity == "warning"
    off = {"grafana": {"enabled": False}}, {"grafana": {"existing": True}}
    assert all(runs_otherwise(parse_fleet({**fleet(), "observability": item})) == [] for item in off)


def test_an_operator_of_another_version_than_runs_here_is_named() -> None:
    operators = {"kubeRay": {"version": "1.6.3"}, "leaderWorkerSet": {}, "trainer": {"version": "2.3.0"}}
    data = {**fleet(), "jobSet": {"enabled": True}, "operators": operators}
    result = [str(problem) for problem in runs_otherwise(parse_fleet(data))]
    fix = "do not rely on it for what changed between them"
    assert result == [
        f"operators.kubeRay.version: is 1.6.3, but a rehearsal runs 1.6.2; {fix}",
        f"operators.trainer.version: is 2.3.0, but a rehearsal runs 2.2.1; {fix}",
    ]
    assert {problem.severity for problem in runs_otherwise(parse_fleet(data))} == {"warning"}


NAME = fleet()["clusters"][0]["name"]


@pytest.mark.parametrize(
    ("data", "engines"),
    [
        (with_kueue("0.19.2"), []),
        (with_kueue("0.18.3"), ["kueue-0.18"]),
        (with_kueue("0.19.2", **{NAME: "0.17.0"}), ["kueue-0.17"]),
    ],
)
def test_a_cluster_runs_the_release_that_it_names(data: dict[str, Any], engines: list[str]) -> None:
    assert fleet_engines(parse_fleet(data)) == engines


def test_a_release_without_an_engine_is_refused_where_it_is_named() -> None:
    [problem] = check_runs_here(parse_fleet(with_kueue("0.20.7")))
    assert str(problem) == (
        "kueue.version: 0.20.7, but a rehearsal has Kueue 0.19.2, 0.17.1 and 0.18.3; write one of them in a copy of "
        "this stack"
    )
    [problem] = check_runs_here(parse_fleet(with_kueue("0.19.2", **{NAME: "0.16.0"})))
    assert problem.path == f"clusters[{NAME}].kueue.version"


def test_another_patch_release_of_kueue_is_named() -> None:
    [problem] = runs_otherwise(parse_fleet(with_kueue("0.17.2")))
    assert str(problem).startswith("kueue.version: is 0.17.2, but a rehearsal runs 0.17.1;")
