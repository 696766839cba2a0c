"""The README's two commands, and what CI runs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "README.md").read_text().partition("\n## Two commands\n")[2].partition("\n## ")[0]


def test_the_two_commands_are_there_each_with_how_long_it_takes() -> None:
    commands = re.findall(r"```sh\n(.*?)\n```", SECTION, re.DOTALL)
    assert commands[:2] == ["make rehearse", "make test"]
    assert {"first-run", "suite"} <= set(re.findall(r"<!-- figure ([\w-]+) -->", SECTION))


def test_ci_runs_the_second_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "make check" in lines
    assert "make test" in lines
