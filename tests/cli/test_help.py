"""`--help` of every command: 80 columns, and examples that can be copied and that the command understands."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from tests.cli.in_process import GROUP, commands_below
from typer.testing import CliRunner

from kueue_fleet.cli import app

WIDTH = 80


def shown(*arguments: str) -> str:
    return (
        CliRunner()
        .invoke(app, [*arguments, "--help"], env={"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH)})
        .stdout
    )


def examples(*command: str) -> list[str]:
    """The examples, each on one line, as a shell reads them."""
    block = shown(*command).partition("Examples:\n")[2].partition("\n\n")[0]
    return [line.strip() for line in re.sub(r"\\\n *", "", block).splitlines()]


LEAVES = [name.split() for name, _ in commands_below(GROUP)]


@pytest.mark.parametrize("command", [[], ["simulate"], *LEAVES], ids=" ".join)
def test_it_fits_80_columns(command: list[str]) -> None:
    text = shown(*command)
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("command", [[], ["simulate"], ["rehearse"], *LEAVES], ids=" ".join)
def test_it_names_values_and_not_their_types_in_python(command: list[str]) -> None:
    text = shown(*command)
    assert re.findall(r"<(?:str|int|float|path|list|datetime|%).*?>|[{]", text.replace("${", "")) == []


@pytest.mark.parametrize("command", ["simulate", "rehearse"])
def test_a_group_has_examples_and_a_whole_line_for_each_command(command: str) -> None:
    assert examples(command)
    assert "..." not in shown(command).partition("Commands:\n")[2]


PROGRAM = (
    *("check", "cost", "diff", "preflight", "rehearse run", "render", "rotate"),
    *("simulate fleet", "status", "top", "upgrade", "when"),
)
"""The commands that take a program."""


@pytest.mark.parametrize("command", PROGRAM)
def test_an_example_gives_a_program(command: str) -> None:
    assert [line for line in examples(*command.split()) if "." in line.split()]


def understood(group: Any, called: str, arguments: list[str], parent: Any = None) -> None:
    """Parse the arguments as the command that they name does; raises what it raises."""
    context = group.make_context(called, list(arguments), parent=parent)
    if hasattr(group, "get_command"):
        understood(group.get_command(context, arguments[0]), arguments[0], arguments[1:], context)


@pytest.mark.parametrize("command", LEAVES, ids=" ".join)
def test_its_examples_are_understood(command: list[str]) -> None:
    calls = [
        part.strip()
        for line in examples(*command)
        if not line.startswith("#")
        for part in re.split(r"\s*(?:\||&&|;|>)\s*", line)
        if part.strip().startswith("kueue-fleet ")
    ]
    assert any(call.split()[1 : len(command) + 1] == command for call in calls)
    for call in calls:
        understood(GROUP, "kueue-fleet", shlex.split(call)[1:])
