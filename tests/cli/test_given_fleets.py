"""FILE of every command: a file with a fleet, or a program and a fleet in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.in_process import Command

from kueue_fleet.program import run as programs
from kueue_fleet.program.handed_out import DeclaredFleet, first_difference
from kueue_fleet.program.run import ProgramFailedError
from small_fleets import WORKER, fleet_data

FLEET = fleet_data(WORKER)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    folder = tmp_path / "platform"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: platform\nruntime: python\n")
    (folder / "__main__.py").touch()
    return folder


@pytest.fixture
def declares(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the program declares, instead of running it."""

    def declares(*fleets: DeclaredFleet, failure: ProgramFailedError | None = None) -> list[str]:
        def fleets_of(project: Any, stack: str, python: Path | None = None) -> list[DeclaredFleet]:
            stacks.append(stack)
            if failure is not None:
                failure.fleets = fleets
                raise failure
            return list(fleets)

        stacks: list[str] = []
        monkeypatch.setattr(programs, "fleets_of", fleets_of)
        return stacks

    return declares


def one(data: dict[str, Any] = FLEET, name: str = "lab", project: str | None = None) -> DeclaredFleet:
    return DeclaredFleet(name, data, project)


def failed() -> ProgramFailedError:
    return ProgramFailedError("main", "the program failed", "correct it", ["ValueError:\tx"])


def stack(folder: Path, name: str, config: dict[str, Any]) -> Path:
    file = folder / f"Pulumi.{name}.yaml"
    file.write_text(yaml.safe_dump({"config": config}))
    return file


@pytest.mark.parametrize("given", ["", "/Pulumi.yaml", "::lab"])
def test_a_folder_names_the_fleet_of_its_program(platform: Path, declares: Any, run: Command, given: str) -> None:
    assert declares(one()) == []
    result = run(["check", f"{platform}{given}"])
    assert (result.code, result.out.partition(" is valid")[0]) == (0, f"{platform}{given}: fleet lab")


@pytest.mark.parametrize("command", [["cost"], ["render"], ["render", "--cloud"], ["diff", "{}"], ["preflight"]])
def test_every_command_takes_a_program(platform: Path, declares: Any, run: Command, command: list[str]) -> None:
    declares()
    result = run([*(item.format(platform) for item in command), str(platform)])
    assert (result.code, result.err) == (
        1, f"error: {platform}: the program declares no Fleet; add one, or give the file of a fleet\n"
    )  # fmt: skip


def test_diff_compares_a_file_with_a_program(platform: Path, declares: Any, run: Command, tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(yaml.safe_dump(FLEET))
    queue, *others = FLEET["clusterQueues"]
    declares(one({**FLEET, "clusterQueues": [{**queue, "stopPolicy": "Hold"}, *others]}))
    result = run(["diff", str(old), str(platform)])
    assert result.code == 0
    assert "clusterQueues[gpu].stopPolicy" in result.out


def test_simulate_changes_a_program(platform: Path, declares: Any, run: Command, tmp_path: Path) -> None:
    declares(one())
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text(
        "jobs: [{name: a, namespace: team-a, queue: gpu, runSeconds: 5, pods: 1, requests: {nvidia.com/gpu: 1}}]\n"
    )
    result = run(
        ["simulate", "fleet", str(platform), "-w", str(jobs), "--what-if", "clusterQueues[gpu].stopPolicy=Hold"]
    )
    assert (result.code, result.err) == (0, "")
    assert "a" in result.out


def test_problems_of_the_fleet_are_those_of_a_file_without_lines(platform: Path, declares: Any, run: Command) -> None:
    declares(one({**FLEET, "clusters": []}), failure=failed())
    result = run(["check", str(platform)])
    assert result.code == 1
    assert result.err.startswith(f"error: {platform}: clusters: ")
    assert "ValueError" not in result.err, "the program failed because of these problems"


def test_a_failure_of_the_program_is_shown_as_it_is(platform: Path, declares: Any, run: Command) -> None:
    declares(one(), failure=failed())
    result = run(["cost", str(platform)])
    assert (result.code, result.err) == (1, "error: main: the program failed; correct it\n  ValueError:\tx\n")
    result = run(["check", str(platform)])
    assert result.err == "  ValueError:\tx\nerror: main: the program failed; correct it [KF904]\n"


def test_the_file_of_a_program_is_no_fleet(platform: Path, run: Command, tmp_path: Path) -> None:
    result = run(["check", str(platform / "__main__.py")])
    assert result.err == f"error: {platform}/__main__.py: is a program; give its folder, {platform} [KF904]\n"
    (tmp_path / "fleet.py").touch()
    assert "is a program; give its folder with a Pulumi.yaml, or" in run(["cost", str(tmp_path / "fleet.py")]).err


def test_several_fleets_are_named(platform: Path, declares: Any, run: Command) -> None:
    declares(one(), one({**FLEET, "name": "two"}, "two"))
    result = run(["check", str(platform)])
    assert f"{platform}: the program declares 2 fleets; name one: {platform}::lab, {platform}::two" in result.err
    assert "fleet two is valid" in run(["check", f"{platform}::two"]).out
    result = run(["check", f"{platform}::three"])
    assert f"the program declares no Fleet three; give {platform}::lab, {platform}::two" in result.err


def test_a_stack_is_named_by_its_file_which_holds_no_fleet(platform: Path, declares: Any, run: Command) -> None:
    stacks = declares(one())
    prod = stack(platform, "prod", {"platform:owner": "research"})
    assert run(["check", str(platform)]).code == 0, "the only stack"
    stack(platform, "dev", {})
    result = run(["check", str(platform)])
    assert f"{platform}: has 2 stacks; give the file of one: {platform}/Pulumi.dev.yaml, {prod}" in result.err
    assert run(["check", str(prod)]).code == 0
    assert stacks == ["prod", "prod"]


def test_a_stack_file_with_a_fleet_is_read_and_no_program_is_run(platform: Path, declares: Any, run: Command) -> None:
    stacks = declares(one({**FLEET, "name": "other"}))
    assert "fleet lab is valid" in run(["check", str(stack(platform, "dev", {"kueue-fleet:fleet": FLEET}))]).out
    assert stacks == []


def test_the_first_field_in_which_program_and_file_differ_is_named(platform: Path, declares: Any, run: Command) -> None:
    queue, *others = FLEET["clusterQueues"]
    file = stack(platform, "dev", {"kueue-fleet:fleet": FLEET})
    declares(one({**FLEET, "clusterQueues": [{**queue, "stopPolicy": "Hold"}, *others]}))
    result = run(["check", str(platform)])
    wrong = 'clusterQueues[gpu].stopPolicy: is "None", but in the program\'s Fleet lab "Hold"'
    assert result.err.startswith(f"error: {file}: {wrong}; write the same in both, or remove kueue-fleet:fleet")
    declares(one(project="elsewhere-1"))
    assert run(["check", str(platform)]).code == 0, "the project is the program's to give"


def test_what_is_wrong_with_the_file_has_its_lines(platform: Path, declares: Any, run: Command) -> None:
    stack(platform, "dev", {"kueue-fleet:fleet": {**FLEET, "clusters": []}})
    declares(failure=failed())
    result = run(["check", str(platform)])
    assert f"{platform}/Pulumi.dev.yaml:" in result.err
    assert "ValueError" not in result.err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("nowhere", "nowhere: no such file"),
        (".", ".: is a folder; give a Pulumi.<env>.yaml"),
        ("fleet.yaml::lab", "fleet.yaml: is a file with one fleet; leave out ::lab"),
    ],
)
def test_what_is_no_program(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch, given: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(FLEET))
    result = run(["check", given])
    assert result.code == 1
    assert says in result.err


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}, None),
        ({"a": {"b": 1}}, {"a": {}}, ("a.b", 1, None)),
        ({"q": [{"name": "x", "n": 1}]}, {"q": [{"name": "x", "n": 2}]}, ("q[x].n", 1, 2)),
        ({"q": [{"name": "x"}]}, {"q": []}, ("q", [{"name": "x"}], [])),
        ({"q": [{"name": "x"}, {"name": "y"}]}, {"q": [{"name": "y"}, {"name": "x"}]}, ("q", ..., ...)),
    ],
)
def test_the_first_difference_is_named(one: Any, other: Any, difference: tuple[str, Any, Any] | None) -> None:
    result = first_difference(one, other)
    assert (result and result[0]) == (difference and difference[0])
    if difference and difference[1] is not ...:
        assert result == difference
