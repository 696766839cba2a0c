"""`--help` of every command: 80 columns, and examples that can be copied and that the command understands."""

from __future__ import annotations

import re
import shlex

import pytest
import typer
from typer.testing import CliRunner

from kueue_fleet.cli import COMMANDS, app

WIDTH = 80


def shown(*arguments: str) -> str:
    return (
        CliRunner()
        .invoke(app, [*arguments, "--help"], env={"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH)})
        .stdout
    )


def examples(command: str) -> list[str]:
    """The examples, each on one line, as a shell reads them."""
    block = shown(command).partition("Examples:\n")[2].partition("\n\n")[0]
    return [line.strip() for line in re.sub(r"\\\n *", "", block).splitlines()]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_it_fits_80_columns(command: list[str]) -> None:
    text = shown(*command)
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_its_examples_are_understood(command: str) -> None:
    calls = [
        part.strip()
        for line in examples(command)
        if not line.startswith("#")
        for part in re.split(r"\s*(?:\||&&|;|>)\s*", line)
        if part.strip().startswith("kueue-fleet ")
    ]
    assert any(call.split()[1] == command for call in calls)
    group = typer.main.get_command(app)
    for call in calls:
        name, *arguments = shlex.split(call)[1:]
        context = group.make_context("kueue-fleet", [name, *arguments])
        found = group.get_command(context, name)  # type: ignore[attr-defined]
        found.make_context(name, arguments, parent=context)
