"""Options that do nothing beside others, and empty ones: no command takes them in silence."""

from __future__ import annotations

import pytest
from tests.cli.in_process import Command


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("explain KF503 --objects X", "--objects: does nothing with KF503, the code of a message; leave it out"),
        ("explain KF503 --short --seed 0 -o json", "--seed, --short, --output: do nothing with KF503"),
        ("explain --objects X --short", "--short: does nothing without a workload"),
        ("explain a/b --objects X --short -o json", "--short: does nothing with --output json"),
        ("explain a/b --objects X --second 5 --seed 7", "--seed: does nothing with --objects"),
        ("diff a.yaml b.yaml --seed 1 --until 9", "--seed, --until: do nothing without --workload; leave them out"),
        ("status f.yaml --every 9", "--every: does nothing without --watch"),
        ("status f.yaml --usage --every 9", "--every: does nothing without --watch"),
        ("status f.yaml --port 8080", "--port: does nothing without --page"),
        ("status f.yaml --page --watch --usage", "--watch, --usage: do nothing with --page"),
        ("submit -q q --image i --dry-run --wait", "--wait: does nothing with --dry-run"),
        ("submit -q q --image i --dry-run -l --kubeconfig k", "--logs, --kubeconfig: do nothing with --dry-run"),
        ("when f.yaml --job a/b --objects d --kubeconfig k", "--kubeconfig: does nothing with --objects"),
        ("preflight f.yaml --page -o json", "--output: does nothing with --page"),
        ("record f.yaml --store s --prune --team a --once", "--once: does nothing with --prune"),
        ("record f.yaml --store s --prune --team a --from x --label l", "--label, --from: do nothing with --prune"),
        ("record f.yaml --store s --from x --once", "--once: does nothing with --from"),
        ("record f.yaml --store s --from x --kubeconfig k", "--kubeconfig: does nothing with --from"),
        ("record f.yaml --store s --once --every 5", "--every: does nothing where a write is the only one"),
        ("import a=x --name f --project my-project --force", "--force: does nothing without --output FILE"),
        ("rehearse run f.yaml --no-jobs --max-run-seconds 9", "--max-run-seconds and --no-jobs: no job runs"),
    ],
)
def test_they_are_refused(typed: str, said: str, command: Command) -> None:
    ended = command(typed)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("explain a/b --objects X --second inf", "--second inf: is not a number of seconds; write 0 to 1,000,000,000"),
        ("diff a.yaml b.yaml -w w.yaml --until 1e300", "--until 1e+300: is not a number of seconds"),
        ("simulate objects a.yaml --until nan", "--until nan: is not a number of seconds"),
        ("status f.yaml --watch --every inf", "Input should be less than or equal to 86400"),
        ("record f.yaml --store s --every 1e9", "Input should be less than or equal to 86400"),
    ],
)
def test_a_time_without_end_is_none(typed: str, said: str, command: Command) -> None:
    ended = command(typed)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["render", "f.yaml", "--output-dir", ""], "--output-dir: is empty; give a value, or leave the option out"),
        (["render", "f.yaml", "--output-dir="], "--output-dir: is empty"),
        (["check", "f.yaml", ""], "FILE: is empty"),
        (["diff", "", "f.yaml"], "OLD: is empty"),
        (["explain", "--objects", "a.yaml", "--objects", ""], "--objects: is empty"),
        (["simulate", "fleet", "f.yaml", "-w", ""], "--workload: is empty"),
    ],
)
def test_an_empty_value_is_none(typed: list[str], said: str, command: Command) -> None:
    ended = command(typed)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_an_empty_argument_of_a_program_is_one(command: Command) -> None:
    ended = command(["submit", "-q", "q", "--image", "i", "--", "echo", ""])
    assert "--fleet: is missing" in ended.err


def test_what_a_variable_says_is_not_typed(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "nofile")
    ended = command("explain KF503")
    assert (ended.code, ended.err) == (0, "")
