"""What is said about a job that waits for several flavors at once."""

from __future__ import annotations

import json
from pathlib import Path

from tests.decide.build import job
from tests.decide.workload.test_variants import cluster, run
from typer.testing import CliRunner

from kueue_admission.explain import explain
from kueue_fleet.cli import app

DUMP = Path(__file__).parent / "variants.yaml"


def run_on_dump(*command: str) -> str:
    result = CliRunner().invoke(app, [*command, str(DUMP), *(["-o", "json"] if "simulate" in command else [])])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_of_a_dump_each_job_is_listed_once() -> None:
    lines = run_on_dump("explain", "--objects").splitlines()
    assert [line.partition(":")[0] for line in lines] == ["v0/job-b"]


def test_a_job_goes_by_its_own_name() -> None:
    assert run_on_dump("explain", "job-b", "--objects").startswith("v0/job-b is Pending: WaitingForQuota")


def test_a_simulation_goes_on_with_the_variants_of_the_dump() -> None:
    result = json.loads(run_on_dump("simulate", "objects"))
    states = {item["name"]: (item["state"], item["reason"]) for item in result["workloads"]}
    assert states == {"job-a": ("Admitted", "Admitted"), "job-b": ("Pending", "WaitingForQuota")}


def test_the_job_is_explained_as_if_it_tried_its_flavors_in_turn() -> None:
    result = run(cluster(res=1, spot=2), job("a", 4))
    answer = explain(result.engine.snapshot(), "ns/a", cluster="")
    assert [flavor.flavor for flavor in answer.flavors] == ["res", "spot"]


def test_changes_are_tried_without_its_variants() -> None:
    result = run(cluster(res=4, spot=2), job("b", 4), job("a", 4))
    assert any(change.admits for change in explain(result.engine.snapshot(), "ns/b", cluster="").changes)


def test_a_variant_has_its_own_answer() -> None:
    result = run(cluster(res=1, spot=2), job("a", 4))
    answer = explain(result.engine.snapshot(), "ns/a-variant-spot", cluster="")
    assert "skipping flavor res due to WorkloadAllowedResourceFlavorAnnotation annotation" in answer.message
