"""`explain --second`: the state a simulation leaves, explained; it agrees with what `simulate --until` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_explain import cluster, write
from tests.cli.test_explain import job as a_job
from tests.simulation.fleets import job
from tests.simulation.test_fleet_dispatch import checked_data
from typer.testing import CliRunner

from kueue_admission.cli.console import CommandError
from kueue_fleet.cli import app

ROOT = Path(__file__).parents[2]
STACK = str(ROOT / "stacks" / "Pulumi.dws-multikueue.yaml")
JOBS = str(ROOT / "examples" / "dws-multikueue" / "workload.yaml")
CREATED = "2026-11-20T08:00:{second:02}Z"
TAKEN = ("WaitingForQuota", "ExceedsMaxQuota", "WaitingForPreemptedWorkloads")


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--output", "json"])
    assert result.exception is None, result.output
    return json.loads(result.stdout)


def refused(*arguments: str) -> CommandError:
    result = CliRunner().invoke(app, ["explain", *arguments])
    assert isinstance(result.exception, CommandError), result.output
    assert result.stdout == ""
    return result.exception


def timed_job(name: str, cpu: int, created: int, seconds: int) -> dict[str, Any]:
    result = a_job(name, cpu)
    result["metadata"] |= {
        "creationTimestamp": CREATED.format(second=created),
        "annotations": {"kueue-fleet.dev/run-seconds": str(seconds)},
    }
    return result


@pytest.fixture
def dump(tmp_path: Path) -> str:
    jobs = [timed_job("first", 3, 0, 20), timed_job("second", 3, 5, 10), timed_job("third", 1, 50, 10)]
    return str(write(tmp_path / "dump.yaml", [*cluster(4), *jobs]))


class TestObjects:
    def test_who_holds_the_quota_at_that_second(self, dump: str) -> None:
        [result] = run("explain", "second", "--objects", dump, "--second", "10")["explanations"]
        assert (result["state"], result["reason"]) == ("Pending", "WaitingForQuota")
        [figures] = result["flavors"][0]["resources"]
        assert (figures["asked"], figures["free"], figures["missing"]) == (3000, 1000, 2000)
        assert [holder["workload"] for holder in figures["holders"]] == ["team-a/first"]
        assert result["next_step"].startswith("Wait until team-a/first has finished")

    def test_later_it_runs(self, dump: str) -> None:
        [result] = run("explain", "second", "--objects", dump, "--second", "25")["explanations"]
        assert (result["state"], result["holdings"]) == (
            "Admitted",
            [{"flavor": "default", "amounts": [["cpu", 3000]]}],
        )

    def test_and_is_finished(self, dump: str) -> None:
        [result] = run("explain", "team-a/second", "--objects", dump, "--second", "32")["explanations"]
        assert (result["state"], result["headline"]) == ("Finished", "It ran from second 21 to second 31.")

    def test_one_that_has_yet_to_arrive(self, dump: str) -> None:
        output = str(refused("third", "--objects", dump, "--second", "49"))
        assert output.startswith(f"{dump} at second 49: there is no workload third;")

    def test_a_bad_object(self, tmp_path: Path) -> None:
        dump = write(tmp_path / "dump.yaml", [*cluster("ten"), a_job("train")])
        output = str(refused("train", "--objects", str(dump), "--second", "1"))
        assert f"{dump}:" in output
        assert "nominalQuota" in output


class TestStack:
    @pytest.mark.parametrize("second", ["250", "900", "2400"])
    def test_the_states_are_those_of_simulate(self, second: str) -> None:
        simulated = run("simulate", "fleet", STACK, "--workload", JOBS, "--until", second, "--seed", "3")["workloads"]
        assert simulated
        for item in simulated:
            key = f"{item['namespace']}/{item['name']}"
            options = ("--stack", STACK, "--workload", JOBS, "--second", second, "--seed", "3")
            result = run("explain", key, *options)["explanations"]
            assert result[0]["state"] == item["state"], key
            if item["state"] == "Pending":
                assert (result[0]["reason"] in TAKEN) == (item["reason"] in TAKEN), (result[0]["reason"], item)

    def test_every_cluster_is_explained(self) -> None:
        result = run("explain", "detector-3", "--stack", STACK, "-w", JOBS, "--second", "250")["explanations"]
        fleet = yaml.safe_load(Path(STACK).read_text())["config"]["kueue-fleet:fleet"]
        assert [item["cluster"] for item in result] == [entry["name"] for entry in fleet["clusters"]]
        assert {each["reason"] for each in result} == {"UnsatisfiedAdmissionChecks"}
        assert "worker cluster" in result[0]["next_step"]
        assert "ProvisioningRequest" in result[1]["next_step"]

    def test_one_that_has_yet_to_arrive(self) -> None:
        output = str(refused("deadline", "--stack", STACK, "-w", JOBS, "--second", "20"))
        assert output == (
            "team-language/deadline: is not there at second 20, it arrives at second 1800; give a later --second"
        )

    def test_what_the_fleets_own_check_said(self, tmp_path: Path) -> None:
        window = {"name": "night", "start": "2026-12-01T22:00:00Z", "duration": "8h"}
        fleet = write(tmp_path / "fleet.yaml", [checked_data({"windows": [window]})])
        jobs = [job("long", maxRunSeconds=72_000), job("fits", maxRunSeconds=3600)]
        file = write(tmp_path / "jobs.yaml", [{"begin": "2026-11-20T00:00:00Z", "jobs": jobs}])
        options = ("--stack", str(fleet), "-w", str(file), "--second", "500")
        rejected, waiting = (run("explain", name, *options)["explanations"][0] for name in ("long", "fits"))
        assert "A run of 72000 s fits into none of the windows" in rejected["headline"]
        assert rejected["next_step"] == "Remove the cause of that, then set spec.active to true."
        ours = next(check for check in waiting["checks"] if check["name"] == "ours")
        assert ours["message"] == "Waits for window night, which opens at 2026-12-01T22:00:00Z"

    def test_the_text_begins_with_every_cluster(self) -> None:
        options = ["--stack", STACK, "-w", JOBS, "--second", "250"]
        result = CliRunner().invoke(app, ["explain", "detector-3", *options])
        assert result.exception is None, result.output
        lines = result.stdout.splitlines()
        assert lines[0] == "team-vision/detector-3 on 4 clusters:"
        assert lines[1] == "  manager-europe-west4: QuotaReserved, UnsatisfiedAdmissionChecks"
        assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of"),
        (["--objects", "x", "--stack", STACK, "-w", JOBS], "give one of"),
        (["--stack", STACK], "give one of"),
        (["--stack", STACK, "-w", JOBS], "--stack: give --second"),
        (["--objects", "a=x", "--objects", "b=y", "--second", "3"], "--second: simulates one cluster"),
        (["--objects", "x", "--second", "3", "--at", "2026-01-01"], "--at:"),
        (["--stack", STACK, "-w", JOBS, "--second", "3", "--fair-sharing"], "--fair-sharing: a stack says so"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], message: str) -> None:
    output = refused("train", *arguments)
    assert message in str(output)
    assert output.exit_code == 2
